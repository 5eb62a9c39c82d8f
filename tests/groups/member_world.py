"""Members of a group for tests: threads of this process, or processes that are frozen, woken and killed."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from groups.member_driver import Driver
from groups.programs import made_members
from handmade import Topic, records

from sparklog.consumer import core
from sparklog.groups import OffsetTable
from sparklog.groups.member.membership import Membership

REPOSITORY = Path(__file__).parents[2]
HEARTBEAT_MS = 100
LASTING_MS = 86_400_000
"""The session of a member that is not to be expired, however slow the machine is."""
WAIT_S = 600


class Clock:
    """The seconds that members in this process measure sessions by: they pass as members are asked to poll, whatever the machine does.

    While a member is silent, they pass in longer steps. Some seconds pass between two heartbeats that a member writes; a session of
    a minute ends only for one that is silent.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.silent: set[Thread] = set()

    def __call__(self) -> float:
        return self.now

    def step(self) -> None:
        self.now += 5 if self.silent else HEARTBEAT_MS / 1000


class Member:
    """A consumer: `member.poll(ms=100)` asks it to poll, and returns its answer."""

    def __getattr__(self, do: str) -> Callable[..., dict[str, Any]]:
        def call(**given: Any) -> dict[str, Any]:
            self.ask(do, **given)
            return self.answer()

        return call

    def ready(self) -> Member:
        return self

    def freeze(self) -> None:
        """It does nothing until `wake`. In this process it falls silent since it polls no more."""

    def wake(self) -> None:
        pass

    def kill(self) -> None:
        """It never does anything again."""


class Thread(Member):
    mortal_ms = 60_000

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.driver = Driver()
        self.membership: Membership | None = None
        self.said: list[dict[str, Any]] = []

    def ask(self, do: str, **given: Any) -> None:
        if do == "open":
            given = {"max_poll_interval_ms": 30_000, **given}
        if do == "poll":
            self.clock.step()
        # Each poll has a round: its clock runs faster than that of the machine.
        with made_members(self.clock) as made, mock.patch.object(core, "ROUND_S", 0):
            self.said.append(json.loads(json.dumps(self.driver.do({"do": do, **given}))))
        for each in made:
            self.membership = each

    def freeze(self) -> None:
        self.clock.silent.add(self)

    kill = freeze

    def wake(self) -> None:
        self.clock.silent.discard(self)

    def answer(self) -> dict[str, Any]:
        return self.said.pop(0)

    def end(self) -> None:
        if self.membership is not None:
            self.membership.heartbeater.stop(5)


class Process(Member):
    mortal_ms = 1_500
    within: tuple[str, ...] = ()
    """The command in which it runs."""

    def __init__(self, clock: Clock) -> None:
        """It has a clock of its own, the machine's."""
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        command = [*self.within, sys.executable, str(Path(__file__).parent / "member_driver.py")]
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

    def end(self) -> None:
        self.kill()


class Group:
    """A topic, a table beside its root, and members that read it as group `g`."""

    def __init__(self, folder: Path, kind: type[Thread | Process] = Process, partitions: int = 4, count: int = 20) -> None:
        self.folder, self.kind, self.clock = folder, kind, Clock()
        self.topic = Topic(folder / "root", "t", partitions=partitions)
        for number in range(partitions):
            self.topic.append(records(count), number)
        self.table = OffsetTable(folder / "root", folder / "offsets")
        self.started: list[Thread | Process] = []

    def start(self, count: int = 1) -> list[Any]:
        started = [self.kind(self.clock) for _ in range(count)]
        self.started += started
        return [each.ready() for each in started]

    def member(self, **more: Any) -> Any:
        """One that joins with its first poll."""
        (found,) = self.start()
        return self.open(found, **more)

    def open(self, member: Any, *, mortal: bool = False, **more: Any) -> Any:
        given = {
            "session_timeout_ms": self.kind.mortal_ms if mortal else LASTING_MS,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "partition_assignment_strategy": "sticky",
        }
        given |= {"root": str(self.folder / "root"), "table": str(self.folder / "offsets"), "names": ["t"], "poll_interval_ms": 20}
        given |= {"auto_offset_reset": "earliest", **more}
        answer = member.open(group_id="g", **given)
        assert answer == {}, answer
        return member

    def members(self, count: int, mortal: int = 0, **more: Any) -> list[Any]:
        """So many members, once each has its part. The first `mortal` ones have short sessions."""
        found = [self.open(each, mortal=place < mortal, **more) for place, each in enumerate(self.start(count))]
        self.until_even(*found)
        return found

    def is_even(self, count: int) -> bool:
        """Whether so many members share all partitions, and none is asked for by another one."""
        state = self.state()
        if state is None or len(state.members) != count:
            return False
        return all(share.owner is not None and share.owner == share.wanted_by for share in state.shares.values())

    def state(self) -> Any:
        return self.table.generations.group("g").state

    def until(self, reached: Callable[[], object], polling: list[Any]) -> list[dict[str, Any]]:
        """Lets members poll until something is so; their answers."""
        return self._until(lambda _: reached(), polling)

    def _until(self, reached: Callable[[list[dict[str, Any]]], object], polling: list[Any]) -> list[dict[str, Any]]:
        """Lets members poll until something is so after these answers; their answers."""
        until, answers = time.monotonic() + WAIT_S, list[dict[str, Any]]()
        while not reached(answers):
            assert time.monotonic() < until, (self.state(), answers[-5:])
            for each in polling:
                each.ask("poll", ms=20)
            answers += [each.answer() for each in polling]
        return answers

    def until_even(self, *polling: Any) -> list[dict[str, Any]]:
        """Lets members poll until they, and no others, share all partitions, and each took up those given to it; their answers."""

        def has(answers: list[dict[str, Any]]) -> int:
            return sum(len(each.get("has", [])) for each in answers[-len(polling) :])

        return self._until(lambda answers: self.is_even(len(polling)) and has(answers) == len(self.state().shares), list(polling))

    def until_read(self, expected: int, *polling: Any, **more: Any) -> list[dict[str, Any]]:
        """Lets members poll until they got so many records; their answers."""
        answers: list[dict[str, Any]] = []
        until = time.monotonic() + WAIT_S
        while sum(len(offsets) for each in answers for offsets in each.get("got", {}).values()) < expected:
            assert time.monotonic() < until, (self.state(), answers[-5:])
            answers += [each.poll(ms=20, **more) for each in polling]
        return answers

    def pass_session(self) -> None:
        """Lets the session of a mortal member pass in which nothing is asked for."""
        if self.kind is Thread:
            self.clock.now += self.kind.mortal_ms / 1000
        else:
            time.sleep(self.kind.mortal_ms / 1000)

    def append(self, count: int) -> None:
        """Records in each partition."""
        for number in range(self.topic.partitions):
            self.topic.append(records(count), number)

    def positions(self) -> dict[int, int]:
        return {each.partition: each.offset for each in self.table.positions("g")}

    def owners(self) -> dict[int, str | None]:
        return {number: share.owner for (_, number), share in self.state().shares.items()}

    def end(self) -> None:
        for each in self.started:
            each.wake()
            each.end()


def group(folder: Path, kind: type[Thread | Process], **given: Any) -> Iterator[Group]:
    made = Group(folder, kind, **given)
    try:
        yield made
    finally:
        made.end()


def partitions(answer: dict) -> list[int]:
    return [number for _, number in answer["has"]]


def got(answers: list[dict]) -> Counter:
    """How often each record was returned, by partition and offset."""
    return Counter((name, offset) for answer in answers for name, offsets in answer.get("got", {}).items() for offset in offsets)


def each_of(offsets: range, partitions: range = range(4)) -> Counter:
    return Counter({(f"t-{number}", offset): 1 for number in partitions for offset in offsets})


def events(answers: list[dict], event: str) -> list[tuple[str, int]]:
    return sorted(
        (topic, number) for answer in answers for what, which in answer.get("events", []) if what == event for topic, number in which
    )


def until_error(member, error: str) -> None:
    until = time.monotonic() + 60
    while (answer := member.poll(ms=20)).get("error") != error:
        assert "error" not in answer
        assert time.monotonic() < until
