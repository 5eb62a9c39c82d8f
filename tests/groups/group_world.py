"""Processes that share a group, stopped at every step of their calls, run on in a random order, or killed there.

Each look at the table and each commit of it is a step, and so is the moment between a writer's last look and its commit. Offsets are used
once, so that a position tells which commit it is from.
"""

import itertools
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import deltalake
from handmade import Topic, records
from owners import add, commits

from sparklog.errors import GenerationFencedError
from sparklog.groups import OffsetTable, rows

WAIT_S = 600
ENDS = 600


_made_here = threading.local()
"""Its `call` is the call of this thread."""


class Killed(BaseException):
    """Ends a call as the death of its process does."""


class Call:
    """A call on a thread of its own, which runs from step to step."""

    def __init__(self, call: Callable[[], int]) -> None:
        self.result: int | BaseException | None = None
        self._call = call
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._killed = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def run_on(self, *, kill: bool = False) -> bool:
        """Runs it to its next step, or kills it where it is. False if it is over."""
        self._killed = kill
        self._go.release()
        assert self._stopped.acquire(timeout=WAIT_S), "a step hangs"
        return self.result is None

    def stop(self) -> None:
        """On its thread: a step."""
        self._stopped.release()
        self._wait()

    def _wait(self) -> None:
        assert self._go.acquire(timeout=WAIT_S), "nothing runs it on"
        if self._killed:
            raise Killed

    def _run(self) -> None:
        _made_here.call = self
        try:
            self._wait()
            self.result = self._call()
        except BaseException as error:
            self.result = error
        self._stopped.release()


class Process:
    """A process with the table open, which does one thing at a time."""

    def __init__(self, path: Path, root: Path) -> None:
        self.table = OffsetTable(root, path)
        self.call: Call | None = None
        self.does: tuple[str, int, int, int] = ("", 0, 0, 0)
        """Its act, with which generation, to which partition and offset."""
        self.generation = 0
        engine: Any = self.table.lake
        for name in ("rows", "refresh", "last", "append"):
            setattr(engine, name, with_steps(getattr(engine, name)))


def with_steps(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method before and after which a call stops, if one makes it."""

    def stepping(*given: Any, **named: Any) -> Any:
        if call := _made_here.__dict__.get("call"):
            call.stop()
        result = method(*given, **named)
        if call:
            call.stop()
        return result

    return stepping


class World:
    """Three processes, and what they were told: `fault` says what the group must not be, by that."""

    def __init__(self, seed: int, folder: Path, changed: Callable[[Process], None] = lambda _: None) -> None:
        """`changed` changes each process, to put a fault into it."""
        self._random = random.Random(seed)
        topic = Topic(folder / "root", partitions=2)
        for partition in (0, 1):
            topic.append(records(ENDS), partition)
        self._new = lambda: Process(folder / "offsets", topic.root)
        self._changed = changed
        self._watch = OffsetTable(topic.root, folder / "offsets")
        self._processes = [self._started() for _ in range(3)]
        self._unused = [self._shuffled(), self._shuffled()]
        self._kept: list[tuple[int, int, int]] = []
        """The commits that a process was told of: generation, partition, offset."""
        self._moves: list[tuple[int, int, int]] = []
        self._unknown: list[tuple[int, int, int]] = []
        """The commits of processes that were killed: each may count, or not."""

    def run(self, steps: int) -> str | None:
        """Runs that many steps, and then what is under way; the fault, if there is one."""
        with mock.patch.object(deltalake, "write_deltalake", with_steps(deltalake.write_deltalake)):
            return self._run(steps)

    def _run(self, steps: int) -> str | None:
        for number in itertools.count():
            busy = [each for each in self._processes if each.call]
            if number >= steps and not busy:
                return None
            process = self._random.choice(self._processes if number < steps else busy)
            if process.call is None:
                self._begin(process)
            elif self._random.random() < 0.03 and process.does[0] != "move":
                process.call.run_on(kill=True)
                if process.does[0] == "append":
                    self._unknown.append(process.does[1:])
                self._processes[self._processes.index(process)] = self._started()
            elif not process.call.run_on():
                self._end(process)
                if fault := self._fault():
                    return f"step {number}, after {process.does}: {fault}"
        return None

    def _started(self) -> Process:
        process = self._new()
        self._changed(process)
        return process

    def _shuffled(self) -> Iterator[int]:
        """Offsets that rise on the whole."""
        return iter(sorted(range(ENDS), key=lambda offset: offset + self._random.randrange(40)))

    def _begin(self, process: Process) -> None:
        kind = self._random.choices(("append", "begin", "move", "end"), (6, 3, 1, 0.5))[0]
        if kind in ("append", "end") and not process.generation:
            kind = "begin"
        table, generation, partition = process.table, process.generation, self._random.randrange(2)
        offset = next(self._unused[partition]) if kind in ("append", "move") else -1
        generations, topics, to = table.generations, table.topics, {"t": {partition: offset}}
        calls: dict[str, Callable[[], int]] = {
            "append": lambda: add(table, "g", generation, to),
            "begin": lambda: generations.claim("g", rows.RUNNING, lambda _: []),
            "move": lambda: generations.claim("g", rows.RUNNING, lambda _: topics.rows("g", commits(topics, to))),
            "end": lambda: generations.end("g", generation) or 0,
        }
        process.does = (kind, generation, partition, offset)
        process.call = Call(calls[kind])

    def _end(self, process: Process) -> None:
        """Writes down what the process was told."""
        assert process.call is not None
        result, process.call = process.call.result, None
        kind, generation, partition, offset = process.does
        if isinstance(result, GenerationFencedError):
            process.generation = 0
        elif isinstance(result, BaseException):
            raise result
        elif kind == "append":
            self._kept.append((generation, partition, offset))
        elif kind in ("begin", "move"):
            assert result is not None
            process.generation = result
            if kind == "move":
                self._moves.append((result, partition, offset))

    def _fault(self) -> str | None:
        under_way = [each for each in self._processes if each.call]
        if any(each.does[0] == "move" for each in under_way) or not self._watch.exists():
            return None  # it may have moved the group, or not
        shown = {each.partition: each.offset for each in self._watch.positions("g")}
        for partition in (0, 1):
            moved, to = max(((generation, offset) for generation, of, offset in self._moves if of == partition), default=(0, -1))

            def since(commits: list[tuple[int, int, int]], partition: int = partition, moved: int = moved) -> set[int]:
                return {offset for generation, of, offset in commits if of == partition and generation >= moved}

            kept = since(self._kept) | {to}
            unknown = since([*self._unknown, *(each.does[1:] for each in under_way if each.does[0] == "append")])
            offset = shown.get(partition, -1)
            if offset < max(kept):
                return f"partition {partition} is at {offset}, and a commit of {max(kept)} is lost"
            if offset not in kept | unknown:
                return f"partition {partition} is at {offset}, whose commit was refused"
        return None
