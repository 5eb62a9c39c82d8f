"""Three servers of one root, and clients of them that keep the history of what they saw."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
from ports import free_address
from serve.histories import Assign, Commit, History, Kept, Place, Poll, Seen, Send
from serve.serving import RunningServer

from sparklog import Log

HEAP = ("-Xmx256m",)
START_S = 120
HERE = Path(__file__).parent


def until(asked: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not asked():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


class Fleet:
    """Servers with an address each, which they keep over their starts."""

    def __init__(self, classpath: str, root: Path, count: int = 3) -> None:
        self.addresses = [free_address() for _ in range(count)]
        self._classpath, self._root = classpath, root
        self._servers: list[RunningServer | None] = [None] * count
        self.refused_starts: list[str] = []
        self.ended: list[str] = []
        """The servers that ended without a kill."""

    def start(self, number: int) -> None:
        """Starts a server that does not run. A disk that is full for a moment refuses the start, which is tried again."""
        end = time.monotonic() + START_S
        while True:
            server = RunningServer(
                self._classpath, self._root, ("--listen", self.addresses[number], "group.initial.rebalance.delay.ms=500"), java=HEAP
            )
            try:
                server.__enter__()
            except AssertionError as e:
                server.__exit__()
                self.refused_starts.append(str(e)[:2000])
                assert time.monotonic() < end, self.refused_starts
                time.sleep(1)
            else:
                self._servers[number] = server
                return

    def _running(self, number: int) -> RunningServer:
        server = self._servers[number]
        assert server is not None
        if (status := server.process.poll()) is not None:
            self.ended.append(f"server {number} ended with status {status}: {server.log()[-2000:]}")
        return server

    def kill(self, number: int) -> None:
        self._running(number).kill()

    def end(self, number: int) -> None:
        """By SIGTERM, which lets the server answer first."""
        self._running(number).__exit__()

    def freeze(self, number: int) -> None:
        os.kill(self._running(number).process.pid, signal.SIGSTOP)

    def wake(self, number: int) -> None:
        os.kill(self._running(number).process.pid, signal.SIGCONT)

    def __enter__(self) -> "Fleet":
        for number in range(len(self.addresses)):
            self.start(number)
        return self

    def __exit__(self, *failure: object) -> None:
        for number, server in enumerate(self._servers):
            if server is not None:
                if server.process.poll() is None:
                    self.wake(number)
                self.end(number)


class Producer:
    """Sends numbered records in a thread of its own until it is ended, by one idempotent producer after another if one fails for good."""

    def __init__(self, addresses: list[str], name: str, places: list[Place], pause_s: float, seed: int) -> None:
        self.name, self._addresses, self._places, self._pause_s = name, addresses, places, pause_s
        self._chance = random.Random(seed)
        self._over = threading.Event()
        self._sends: list[Send] = []
        self.errors: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        life = 0
        while not self._over.is_set():
            self._live(f"{self.name}.{life}")
            life += 1

    def _live(self, label: str) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": ",".join(self._addresses),
                "enable.idempotence": True,
                "linger.ms": self._chance.choice([0, 5, 50]),
                "batch.num.messages": self._chance.choice([1, 10, 10_000]),
                "message.timeout.ms": 90_000,
                "socket.timeout.ms": 10_000,
                "request.timeout.ms": 8_000,
                "topic.metadata.refresh.interval.ms": 2_000,
            }
        )
        failed: list[object] = []
        number = 0
        while not self._over.is_set() and not failed:
            place = self._chance.choice(self._places)
            at, value = len(self._sends), f"{label}:{number:06d}"

            def told(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message, at: int = at) -> None:
                if error is None:
                    self._sends[at] = self._sends[at]._replace(offset=message.offset())
                else:
                    self.errors[str(error.name())] += 1
                    failed.append(error)

            try:
                self._sends.append(Send(label, place, value))
                producer.produce(place.topic, value, partition=place.partition, on_delivery=told)
                number += 1
            except BufferError:
                self._sends.pop()
            except confluent_kafka.KafkaException as e:
                failed.append(e)
            self._poll(producer, failed)
        until(lambda: self._poll(producer, failed) == 0, 100)
        if left := len(producer):
            self.errors["left"] += left

    def _poll(self, producer: confluent_kafka.Producer, failed: list[object]) -> int:
        """Hears of records. Returns how many are under way."""
        try:
            producer.poll(self._pause_s)
        except confluent_kafka.KafkaException as e:  # A fatal error is raised here once, and the records follow with errors.
            self.errors[str(e)[:200]] += 1
            failed.append(e)
        return len(producer)

    def end(self) -> list[Send]:
        self._over.set()
        self._thread.join()
        return self._sends

    @property
    def acknowledged(self) -> int:
        return sum(each.offset is not None for each in list(self._sends))


class Member:
    """A process that reads as a member of a group."""

    def __init__(self, addresses: list[str], group: str, protocol: str, name: str, seed: int, topics: list[str]) -> None:
        self.name, self.seen, self.errors = name, list[Seen](), Counter[str]()
        self.positions: dict[Place, int] = {}
        """After the last record of each partition that it has polled."""
        command = [sys.executable, str(HERE / "member.py"), ",".join(addresses), group, protocol, str(seed), *topics]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
        self._begun: dict[tuple[int, Place], Commit] = {}
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                if line.endswith("\n"):  # A kill may cut the last one.
                    self._take(*json.loads(line))
        self.seen += self._begun.values()

    def _take(self, what: str, *words: object) -> None:
        match what, words:
            case "assign", (str(topic), int(partition), float(at)):
                self.seen.append(Assign(self.name, Place(topic, partition), at))
            case "poll", (str(topic), int(partition), float(at), list(records)):
                self.seen.append(Poll(self.name, Place(topic, partition), tuple((offset, value) for offset, value in records), at))
                self.positions[Place(topic, partition)] = records[-1][0] + 1
            case "begin", (int(number), str(topic), int(partition), int(position), float(at)):
                place = Place(topic, partition)
                self._begun[number, place] = Commit(self.name, place, position, at)
            case "done", (int(number), str(topic), int(partition), float(at)):
                self.seen.append(self._begun.pop((number, Place(topic, partition)))._replace(ended=at))
            case "error", (str(error),):
                self.errors[error[:100]] += 1

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(START_S)

    def end(self) -> list[Seen]:
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
        self._thread.join()
        return self.seen


class Group:
    """Members that come and go. The group always has two that are alive, or asleep."""

    def __init__(self, addresses: list[str], name: str, protocol: str, topics: list[str], chance: random.Random) -> None:
        self.name, self._protocol, self._addresses, self._topics, self._chance = name, protocol, addresses, topics, chance
        self._all: list[Member] = []
        self._now = [self._join(), self._join()]

    def _join(self) -> Member:
        name = f"{self.name}.{len(self._all)}"
        member = Member(self._addresses, self.name, self._protocol, name, self._chance.randrange(2**32), self._topics)
        self._all.append(member)
        return member

    def replace(self, number: int) -> None:
        """Kills a member; another comes."""
        self._now[number].kill()
        self._now[number] = self._join()

    def freeze(self, number: int) -> None:
        self._now[number].process.send_signal(signal.SIGSTOP)

    def wake(self, number: int) -> None:
        self._now[number].process.send_signal(signal.SIGCONT)

    def has_read(self, kept: dict[Place, Kept]) -> bool:
        """Whether somebody has polled the last record of each partition."""
        return all(max(member.positions.get(place, 0) for member in self._all) >= each.end for place, each in kept.items())

    def end(self) -> list[Seen]:
        return [each for member in self._all for each in member.end()]

    @property
    def errors(self) -> Counter[str]:
        return sum((member.errors for member in self._all), Counter())


class SparkBeside:
    """A Spark job that appends to a topic."""

    def __init__(self, root: Path, topic: str, name: str = "spark") -> None:
        self._topic, self._name = topic, name
        command = [sys.executable, str(HERE / "spark_beside.py"), str(root), topic, name]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
        self.done: list[int] = []
        self.errors: list[str] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                word, _, rest = line.strip().partition(" ")
                if word == "done":
                    self.done.append(int(rest))
                elif word == "error":
                    self.errors.append(rest)

    def end(self) -> list[str]:
        """The values that it was told are there."""
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._thread.join()
        return [f"{self._name}.{commit}:{number}" for commit in self.done for number in range(20)]


def kept(root: Path, topics: list[str]) -> dict[Place, Kept]:
    """The records of the topics, by the reader that needs no Java."""
    found: dict[Place, Kept] = {}
    for name in topics:
        topic = Log(root).topic(name)
        for partition in range(topic.partitions):
            rows, start = topic.read(partition).to_pylist(), topic.start_offsets()[partition]
            assert [row["offset"] for row in rows] == list(range(start, topic.end_offsets()[partition]))
            found[Place(name, partition)] = Kept(start, tuple(row["value"].decode() for row in rows))
    return found


def history(root: Path, topics: list[str], sends: list[Send], groups: list[Group], patience_s: float) -> History:
    """Ends the groups when they have read the last record of each partition, or when their time is over."""
    there = kept(root, topics)
    until(lambda: all(group.has_read(there) for group in groups), patience_s)
    return History(sends, {group.name: group.end() for group in groups}, there)
