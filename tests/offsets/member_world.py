"""Processes that are members of a group: started, frozen, woken and killed by a test."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from handmade import Topic, records

from sparklog.offsets import OffsetTable

REPOSITORY = Path(__file__).parents[2]
SESSION_MS, HEARTBEAT_MS = 1_500, 150
WAIT_S = 60


class Process:
    """A process with a consumer: `process.poll(ms=100)` asks it to poll, and returns its answer."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        command = [sys.executable, str(Path(__file__).parent / "member_driver.py")]
        self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True, bufsize=1)

    def ready(self) -> Process:
        self.answer()
        return self

    def ask(self, do: str, **given: Any) -> None:
        assert self.popen.stdin
        self.popen.stdin.write(json.dumps({"do": do, **given}) + "\n")
        self.popen.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.popen.stdout
        assert select.select([self.popen.stdout], [], [], WAIT_S)[0], "the process does not answer"
        line = self.popen.stdout.readline()
        assert line, f"the process ended with {self.popen.wait()}"
        return json.loads(line)

    def __getattr__(self, do: str) -> Callable[..., dict[str, Any]]:
        def call(**given: Any) -> dict[str, Any]:
            self.ask(do, **given)
            return self.answer()

        return call

    def freeze(self) -> None:
        self.popen.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self.popen.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe:
                pipe.close()


class Group:
    """A topic, a table beside its root, and processes that read it as group `g`."""

    def __init__(self, folder: Path, partitions: int = 4, count: int = 20) -> None:
        self.folder = folder
        self.topic = Topic(folder / "root", "t", partitions=partitions)
        for number in range(partitions):
            self.topic.append(records(count), number)
        self.table = OffsetTable(folder / "offsets", folder / "root")
        self.processes: list[Process] = []

    def start(self, count: int = 1) -> list[Process]:
        started = [Process() for _ in range(count)]
        self.processes += started
        return [each.ready() for each in started]

    def open(self, process: Process, **more: Any) -> Process:
        given = {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": HEARTBEAT_MS, "assignor": "sticky", "names": ["t"]} | more
        given |= {"auto_offset_reset": "earliest", "poll_interval_ms": 20}
        answer = process.open(root=str(self.folder / "root"), group="g", table=str(self.folder / "offsets"), **given)
        assert answer == {}, answer
        return process

    def members(self, count: int, **more: Any) -> list[Process]:
        """So many members, once each has its part."""
        found = [self.open(each, **more) for each in self.start(count)]
        self.until(lambda: self.is_even(found), found)
        return found

    def is_even(self, members: list[Process]) -> bool:
        """Whether all partitions are owned, each member has its part, and none is asked for by another one."""
        state = self.state()
        if state is None or len(state.members) != len(members):
            return False
        return all(share.owner is not None and share.owner == share.wanted_by for share in state.shares.values())

    def state(self) -> Any:
        return self.table.generations.group("g").state

    def until(self, reached: Callable[[], object], polling: list[Process], seconds: float = 20) -> list[dict[str, Any]]:
        """Lets members poll until something is so; their answers."""
        until, answers = time.monotonic() + seconds, []
        while not reached():
            assert time.monotonic() < until, (self.state(), answers[-5:])
            for each in polling:
                each.ask("poll", ms=20)
            answers += [each.answer() for each in polling]
        return answers

    def positions(self) -> dict[int, int]:
        return {each.partition: each.offset for each in self.table.positions("g")}

    def owners(self) -> dict[int, str | None]:
        return {number: share.owner for (_, number), share in self.state().shares.items()}

    def end(self) -> None:
        for each in self.processes:
            each.wake()
            each.kill()


def group(folder: Path, **given: Any) -> Iterator[Group]:
    made = Group(folder, **given)
    try:
        yield made
    finally:
        made.end()
