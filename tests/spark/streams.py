"""Streaming queries whose driver may die at any moment, and what of them must be in the log afterwards, read without Spark."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from logtool import TIMEOUT_S, LogTool
from spark import running_jvm, streaming_driver

from sparklog import Log
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog

Offsets = dict[tuple[str, int], int]
"""By topic and partition."""
Place = tuple[str, int, int]
"""Topic, partition and offset of a record of the input."""
Record = tuple[bytes | None, bytes]


class Driver:
    """A process of `streaming_driver.py`, the Python and the JVM together."""

    def __init__(self, command: list[str], said: Path, jvm: dict[str, str] | None = None) -> None:
        self.said = said
        with said.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(jvm or {}), "PYTHONPATH": os.pathsep.join(sys.path)},
            )

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Waits for a condition, which must come while the driver is alive."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert self.process.poll() is None, f"the driver ended before {what}:\n{self.text()}"
            assert time.monotonic() < deadline, f"the driver did not come to {what}:\n{self.text()}"
            time.sleep(0.01)

    def until_says(self, text: str) -> None:
        self.until(lambda: text in self.text(), text)

    def text(self) -> str:
        return self.said.read_text(errors="replace")

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to all its processes."""
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.send(signal.SIGKILL)
            self.process.wait(TIMEOUT_S)

    def wait(self) -> int:
        try:
            return self.process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the driver did not end:\n{self.text()}") from None


@dataclass(frozen=True)
class Write:
    """One write of an epoch: its topic, its id in the version's `query`, and which records of the epoch it has."""

    topic: str
    query: str
    half: int | None

    def has(self, place: Place) -> bool:
        return self.half is None or place[2] % 2 == self.half


class Queries:
    """Queries of `streaming_driver.py` in one folder. With a `jvm`, the drivers that run to the end share it."""

    def __init__(self, classpath: str, folder: Path, *names: str, jvm: dict[str, str] | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.jvm = jvm
        self.names = names or streaming_driver.NAMES
        self.input = LogTool(classpath, folder / "in")
        self.output = LogTool(classpath, folder / "out")
        self.drivers: list[Driver] = []
        self._fed = 0

    def feed(self, records: int, topic: str = "in-a", **arguments: object) -> None:
        """Appends records to a topic of the input, in one commit of two tasks."""
        self._fed += 1
        self.input.run("append", topic=topic, tag=f"F{self._fed}", records=records // 2, **arguments)

    def start(self, trigger: str = "available", *, stop: str | None = None, release: Path | None = None, **stream: object) -> Driver:
        """Starts a driver of all queries, in a JVM of its own."""
        return self._start(trigger, None, stop, release, stream)

    def _start(self, trigger: str, jvm: dict[str, str] | None, stop: str | None, release: Path | None, stream: dict[str, object]) -> Driver:
        java = [f"-Dpartlog.stop={stop}"] if stop else []
        java += [f"-Dpartlog.stop.release={release}"] if release else []
        settings = json.dumps({"stream": stream, "java": " ".join(java)})
        runner = [] if jvm is None else [running_jvm.__file__]
        command = [sys.executable, *runner, streaming_driver.__file__, str(self.folder), trigger, ",".join(self.names), settings]
        driver = Driver(command, self.folder / f"driver-{len(self.drivers)}.txt", jvm)
        self.drivers.append(driver)
        return driver

    def run(self, **stream: object) -> None:
        """Runs all queries to the end of what is there."""
        driver = self._start("available", self.jvm, None, None, stream)
        assert driver.wait() == 0, driver.text()

    def stop(self) -> None:
        for driver in self.drivers:
            driver.kill()

    def writes(self, name: str) -> list[Write]:
        metadata = streaming_driver.checkpoint(self.folder, name) / "metadata"
        query = json.loads(metadata.read_text())["id"]
        if name == "append":
            return [Write("append", query, None)]
        if name == "odd":
            return [Write("odd", query, 1)]
        if name == "split":
            return [Write(f"split-{half}", query, half) for half in (0, 1)]
        return [Write(name, f"{query}/{half}" if name == "own" else f"named-{half}", half) for half in (0, 1)]

    def epochs(self, name: str) -> dict[int, tuple[Offsets, Offsets]]:
        """Where each epoch of a query starts and ends, by Spark's own log."""
        checkpoint = streaming_driver.checkpoint(self.folder, name)
        logged = {int(file.name): file for file in (checkpoint / "offsets").glob("[0-9]*")}
        ends = {epoch: _offsets(logged[epoch].read_text().splitlines()[2]) for epoch in sorted(logged)}
        if not ends:
            return {}
        assert list(ends) == list(range(len(ends))), f"epochs of {name} are missing in Spark's log: {list(ends)}"
        first = json.loads((checkpoint / "sources" / "0" / "0").read_text().splitlines()[0])["topics"]
        before = {(topic, int(p)): offset for topic in first for p, offset in first[topic]["offsets"].items()}
        return {epoch: (ends.get(epoch - 1, before), end) for epoch, end in ends.items()}

    def check(self, whole: bool = True) -> int:
        """Checks that each epoch is in each topic once, with the records that Spark's log says, and in order; the number of epochs.

        `whole`: all epochs are done, and hold all of the input. Otherwise the newest one may be missing.
        """
        log = Log(self.input.root)
        ends = {(topic, partition): end for topic in log.topics() for partition, end in log.topic(topic).end_offsets().items()}
        fed = _records(log)
        total = 0
        for name in self.names:
            epochs = self.epochs(name)
            for write in self.writes(name) if epochs else ():
                found = self.found(write)
                for epoch, (start, end) in epochs.items():
                    held = [place for partition, last in end.items() for place in _places(partition, start.get(partition, 0), last)]
                    expected = sorted(_named(place, fed[place]) for place in held if write.has(place))
                    if not whole and epoch == len(epochs) - 1 and epoch not in found:
                        continue
                    told = f"epoch {epoch} of {name} in topic {write.topic}"
                    assert sorted(found.pop(epoch, [])) == expected, f"{told} does not hold what Spark's log says it read"
                assert not found, f"topic {write.topic} has epochs of {name} that Spark's log does not have: {sorted(found)}"
            if whole:
                last = epochs[len(epochs) - 1][1]
                # An empty partition of a topic that was found later need not be named.
                assert {place: last.get(place, 0) for place in ends} == ends, f"{name} has not read all of the input"
            total += len(epochs)
        return total

    def found(self, write: Write) -> dict[int, list[Record]]:
        """The records of each epoch of a write. No epoch may have two versions; a partition keeps the order of the input."""
        # Data files may be there, of a driver that died before it created the topic.
        if not (self.output.root / "_partlog").is_dir() or write.topic not in Log(self.output.root).topics():
            return {}
        commits = TopicLog(Root.at(str(self.output.root)), write.topic)
        versions = commits.history()
        newest = Log(self.output.root).topic(write.topic)
        epochs: dict[int, list[Record]] = {}
        before = dict.fromkeys(range(newest.partitions), 0)
        order: dict[tuple[int, bytes], int] = defaultdict(lambda: -1)
        for version in versions:
            after = {**before, **version.ends}
            if version.query is not None and version.query[0] == write.query:
                epoch = version.query[1]
                assert epoch not in epochs, f"topic {write.topic} has epoch {epoch} of {write.query} twice"
                assert not epochs or epoch > max(epochs), f"topic {write.topic} has epoch {epoch} after {max(epochs)}"
                table = newest.read(start=before, end=after, columns=["partition", "key", "value"])
                records = epochs[epoch] = []
                for partition, key, value in zip(*(column.to_pylist() for column in table.columns), strict=True):
                    source, offset = _source(value)
                    assert order[partition, source] < offset, f"topic {write.topic} has {value!r} after offset {order[partition, source]}"
                    order[partition, source] = offset
                    records.append((key, value))
            before = after
        return epochs


def _records(log: Log) -> dict[Place, Record]:
    """All records of a log."""
    found: dict[Place, Record] = {}
    for topic in log.topics():
        table = log.topic(topic).read(columns=["partition", "offset", "key", "value"])
        for partition, offset, key, value in zip(*(column.to_pylist() for column in table.columns), strict=True):
            found[topic, partition, offset] = (key, value)
    return found


def _offsets(text: str) -> Offsets:
    return {(topic, int(partition)): offset for topic, ends in json.loads(text).items() for partition, offset in ends.items()}


def _places(partition: tuple[str, int], start: int, end: int) -> list[Place]:
    return [(*partition, offset) for offset in range(start, end)]


def _named(place: Place, record: Record) -> Record:
    """A record of the input as the queries change it."""
    key, value = record
    return key, ":".join(map(str, place)).encode() + b":" + value


def _source(value: bytes) -> tuple[bytes, int]:
    """The partition and the offset that a record of the output comes from."""
    topic, partition, offset, _ = value.split(b":", 3)
    return topic + b"-" + partition, int(offset)
