"""A topic whose partitions change while it is written, in processes that are killed; and what its readers must have seen then."""

import random
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from audits import Load, Writer
from logtool import HALTED, MERGE_BYTES, TIMEOUT_S, LogTool

from sparklog import Log

KEYS = 40
LOAD = Load(1, 60, {"keys": KEYS})
TIDY = {"pace": 7, "merge": MERGE_BYTES, "file.delete.delay.ms": 0}
CHANGES: list[tuple[int, dict[str, object]]] = [
    (6, {"what": "partitions", "to": 6}),
    (6, {"what": "keys", "keys": "k0,k1,k2,k3", "to": 5}),
    (9, {"what": "partitions", "to": 9, "later": "true"}),
    (9, {"what": "keys", "keys": "k1,k2", "to": 0}),
    (5, {"what": "close", "partitions": "1:0,4:0,6:0,7:0"}),
]
"""How many partitions are open after each: 4 → 6 → 9 → 5. The slots of some keys move to partitions that stay open."""
OPERATOR_STEPS = ["admin.put", "admin.linked", "publish.done", "checkpoint.put", "checkpoint.done", "clean.version"]
WRITER_STEPS = ["task.write", "commit.read", "commit.put", "commit.link", "commit.linked", "commit.done", "admin.put", "admin.linked"]


def placed(key: str, number: int, epoch: int) -> int:
    """Which record of its key it is, from 0: an epoch has records 0 to 59, and record n has key n modulo 40."""
    its = int(key[1:])
    assert number % KEYS == its
    return epoch * len(range(its, LOAD.records, KEYS)) + number // KEYS


class World:
    """A topic, a writer that begins again where it died, and consumers of one group."""

    def __init__(self, tool: LogTool, folder: Path, seed: int) -> None:
        self.tool, self.folder = tool, folder
        self.random = random.Random(seed)
        self.first: dict[str, int] = {}
        """By tag of a life of the writer, its first epoch."""
        self.epochs = 0
        self.ended = threading.Event()
        self.refused = 0

    def index(self, key: str, value: str) -> int:
        """Which record of its key a value is."""
        name, _, number = value.split(":")
        tag, _, commit = name.rpartition("-")
        return placed(key, int(number), self.first[tag] + int(commit))

    def life(self, tag: str, commits: int, stop: str | None, ends: Callable[[], bool]) -> None:
        """A life of the writer, from its first epoch that was not confirmed."""
        self.first[tag] = begun = self.epochs
        writer = Writer(self.tool, tag, LOAD, commits, query="q", epoch=begun, partitions=4, pause=5, stop=stop, **TIDY)
        while writer.process.poll() is None and not ends():
            self.epochs = begun + len(writer.acknowledged)
            time.sleep(0.01)
        writer.kill()
        self.epochs = begun + len(writer.acknowledged)
        if writer.process.returncode == 1:
            assert "PARTLOG_ROUTING_CHANGED" in "".join(writer.errors), writer.errors
            self.refused += 1

    def write(self) -> None:
        for life in count():
            if self.ended.is_set():
                break
            step = self.random.choice([None, *WRITER_STEPS])
            self.life(f"L{life}", 1000, step and f"{step}:halt:{self.random.randint(1, 6)}", self.ended.is_set)
        self.life("last", 1, None, lambda: False)

    def change(self, arguments: dict[str, object], stop: str | None) -> None:
        """A call of an operator, which may be killed. A change that was made before is refused, or another one was faster."""
        process = self.tool.start("change", stop=stop, **arguments)
        _, err = process.communicate(timeout=TIMEOUT_S)
        allowed = any(f"PARTLOG_{known}" in err for known in ("OPTION_VALUE", "REROUTED"))
        assert process.returncode in (0, HALTED) or allowed, err

    def open(self) -> int:
        about = Log(self.tool.root)["t"].describe()
        return len(about["partitions"]) - len(about["routing"]["closed"] if about["routing"] else [])

    def expected(self, key: int) -> range:
        """The records of a key that there must be."""
        return range(placed(f"k{key}", key, self.epochs))

    def goes_on(self, epochs: int) -> None:
        """Waits until the writer has confirmed more epochs."""
        until, time_out = self.epochs + epochs, time.monotonic() + TIMEOUT_S
        while self.epochs < until:
            assert time.monotonic() < time_out
            time.sleep(0.02)


class InThread(threading.Thread):
    """A thread whose failure is that of the test."""

    def __init__(self, target: Callable[[], None]) -> None:
        super().__init__()
        self.what, self.failure = target, None
        self.start()

    def run(self) -> None:
        try:
            self.what()
        except BaseException as failure:
            self.failure = failure

    def end(self) -> None:
        self.join()
        if self.failure:
            raise self.failure


def run(world: World, steps: list[list[str]], *readers: Callable[[], None]) -> None:
    """The history: for each change, an operator dies at each of its steps, and then one does it. `readers` run until all is read.

    They read what is left once `world.ended` is set and `finished` is in the folder of the world.
    """
    world.life("first", 3, None, lambda: False)
    writer, others = InThread(world.write), [InThread(reader) for reader in readers]
    try:
        for (count_open, arguments), its in zip(CHANGES, steps, strict=True):
            world.goes_on(2)
            for step in its:
                world.change(arguments, f"{step}:halt")
            world.change(arguments, None)
            world.goes_on(3)
            assert world.open() == count_open
    finally:
        world.ended.set()
        writer.join()
        (world.folder / "finished").touch()
        for thread in (writer, *others):
            thread.end()
