"""Threads make random calls of a `sparklog.Producer` while its server is stopped and killed. A model has what became of each record.

The interleavings are those of the machine; the printed seed gives the calls.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from handmade import Record, Topic, draw_seed
from serve.serving import RunningServer, server_pid

import sparklog

# An interrupt may come where a thread of a test begins or ends. Every other error of a thread breaks a rule.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
WAIT_S = 600
CALLS = 60
PARTITIONS = 3
KEYS = [f"key-{number}" for number in range(20)]
BY_CALL = {
    "send": {"PRODUCER_CLOSED", "SEND_FULL", "SEND_UNROUTED"},
    "get": {"SEND_UNANSWERED", "SEND_REFUSED", "SEND_FAILED"},
    "flush": {"SEND_UNANSWERED"},
    "close": {"SEND_UNANSWERED"},
}
"""The errors that each call may raise; in a callback also PRODUCER_IN_CALLBACK."""


@dataclass
class Sent:
    """A record that a program sent; `future` is None if the call of `send` was interrupted, or has raised."""

    by: str
    topic: str
    value: str
    key: str | None
    future: sparklog.RecordFuture | None = None


@dataclass
class World:
    """A producer, the records that it sent, and the rules that its calls broke."""

    producer: sparklog.Producer
    topics: list[str]
    sent: list[Sent] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    closed: threading.Event = field(default_factory=threading.Event)
    """A call of `close` has returned."""

    def call(self, name: str, do: Callable[[], object]) -> None:
        was_closed = self.closed.is_set()
        in_callback = threading.current_thread().name == "sparklog-producer"
        try:
            do()
        except sparklog.SparklogError as error:
            if error.id not in BY_CALL[name] | ({"PRODUCER_IN_CALLBACK"} if in_callback else set()):
                self.broken.append(f"{name} raised {error}")
            return
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.broken.append(f"{name} raised {error!r}")
            return
        if name == "send" and was_closed:
            self.broken.append("a record was sent after the end of close")
        if name == "close" and not in_callback:
            self.closed.set()

    def send(self, by: str, chance: random.Random) -> None:
        key = chance.choice([None, *KEYS])
        record = Sent(by, chance.choice(self.topics), f"{by}-{len(self.sent)}-{chance.random()}", key)
        partition = chance.choice([None, None, None, 0, PARTITIONS - 1, 99])
        padding = chance.choice(["", "", "x" * 500, "x" * 3_000])
        self.sent.append(record)

        def send() -> None:
            record.future = self.producer.send(record.topic, f"{record.value} {padding}", record.key, partition=partition)
            if partition is not None:
                record.key = None  # which chose nothing
            if chance.random() < 0.2:
                record.future.add_done_callback(self.callback(chance.random()))

        self.call("send", send)

    def callback(self, seed: float) -> Callable[[object], None]:
        def called(_: object) -> None:
            chance = random.Random(seed)
            match chance.randrange(4):
                case 0:
                    raise ValueError
                case 1:
                    self.send("callback", chance)
                case 2:
                    self.call("flush", lambda: self.producer.flush(0))
                case _:
                    self.call("close", lambda: self.producer.close(0))

        return called

    def act(self, by: str, chance: random.Random, may_close: bool) -> None:
        timeout = chance.choice([0, 0.01, 0.3])
        match chance.randrange(20 if may_close else 19):
            case 0:
                self.call("flush", lambda: self.producer.flush(timeout))
            case 1 | 2:
                if record := next((each for each in reversed(self.sent.copy()) if each.future), None):
                    self.call("get", lambda: record.future and record.future.get(timeout=timeout))
            case 3:
                time.sleep(timeout / 3)
            case 19:
                if chance.random() < 0.2:
                    self.call("close", lambda: self.producer.close(timeout))
            case _:
                self.send(by, chance)


@contextlib.contextmanager
def troubled(pid: Callable[[], int | None], chance: random.Random, *, kills: int) -> Iterator[None]:
    """Stops the server for moments while the block runs, and kills the server at most `kills` times."""
    over = threading.Event()

    def trouble() -> None:
        killed = 0
        while not over.wait(chance.uniform(0.05, 0.5)):
            if (server := pid()) is not None:
                with contextlib.suppress(ProcessLookupError):
                    if killed < kills and chance.random() < 0.3:
                        os.kill(server, signal.SIGKILL)
                        killed += 1
                        continue
                    os.kill(server, signal.SIGSTOP)
                    over.wait(chance.uniform(0.05, 0.6))
                    os.kill(server, signal.SIGCONT)

    thread = threading.Thread(target=trouble)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def interrupt(thread: threading.Thread) -> None:
    """Raises KeyboardInterrupt in a thread, at any of its instructions in Python."""
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt))


def run(world: World, seed: int, *, interrupts: bool) -> None:
    chance = random.Random(seed)
    may_close = chance.random() < 0.4

    def work(by: str, own: random.Random) -> None:
        done = 0
        while done < CALLS:
            try:
                while done < CALLS:
                    done += 1
                    world.act(by, own, may_close)
            except KeyboardInterrupt:
                pass
            except BaseException as error:
                world.broken.append(f"thread {by} ended: {error!r}")
                return

    threads = [threading.Thread(target=work, args=(f"t{n}", random.Random(seed * 10 + n))) for n in range(3)]
    for each in threads:
        each.start()
    while any(each.is_alive() for each in threads):
        threads[0].join(chance.uniform(0.01, 0.3))
        if interrupts and threads[0].is_alive():
            interrupt(threads[0])
    for each in threads:
        each.join()


def broken_rules(world: World, root: Path) -> list[str]:
    """The rules that the outcomes break."""
    broken = list(world.broken)
    rows = dict[str, list[tuple[str, int, int]]]()
    for topic in world.topics:
        if topic in sparklog.Log(root):
            for row in sparklog.Log(root)[topic].read().to_pylist():
                rows.setdefault(row["value"].decode().split(" ")[0], []).append((topic, row["partition"], row["offset"]))
    broken += [f"{value} is there {len(places)} times" for value, places in rows.items() if len(places) > 1]
    broken += [f"{value} was never sent" for value in rows.keys() - {each.value for each in world.sent}]
    last = dict[tuple[str, str, int], int]()
    for each in world.sent:
        if each.future is None:
            continue
        if not each.future.done():
            broken.append(f"{each.value} has no answer, and close has returned")
            continue
        error, there = each.future.exception(), rows.get(each.value, [])
        if error is None:
            placed = each.future.result()
            if (placed.topic, placed.partition, placed.offset) not in there:
                broken.append(f"{each.value} is not where it was acknowledged: {placed}, {there}")
            if each.key is not None and placed.partition != sparklog.partition_for(each.key, PARTITIONS):
                broken.append(f"{each.value} is not in the partition of its key {each.key}: {placed}")
            place = (each.by, placed.topic, placed.partition)
            if each.by != "callback" and last.get(place, -1) >= placed.offset:
                broken.append(f"{each.value} is before an earlier record of its thread")
            last[place] = placed.offset
        elif isinstance(error, sparklog.CallError) and there:
            broken.append(f"{each.value} is there, although it was refused: {error}")
        elif not isinstance(error, sparklog.CallError | sparklog.UnknownOutcomeError):
            broken.append(f"{each.value} failed by {error!r}")
    return broken


def settings(chance: random.Random) -> dict[str, int]:
    return {
        "linger_ms": chance.choice([0, 0, 20]),
        "max_block_ms": chance.choice([0, 100, 60_000]),
        "buffer_memory": chance.choice([4_096, 32 << 20]),
        "delivery_timeout_ms": chance.choice([300, 5_000, 0]),
    }


def create(address: dict[str, str], topic: str) -> None:
    new = NewTopic(topic, num_partitions=PARTITIONS, config={"partitioner": "murmur3"})
    admin = AdminClient(address)  # its requests end with it
    admin.create_topics([new])[topic].result()


def history_beside_a_server(server: RunningServer, seed: int) -> None:
    chance = random.Random(seed)
    topic = f"history-{seed}"
    create({"bootstrap.servers": server.address}, topic)
    world = World(sparklog.Producer(bootstrap_servers=server.address, **settings(chance)), [topic])
    with troubled(lambda: server.process.pid, chance, kills=0):
        run(world, seed, interrupts=chance.random() < 0.5)
    world.call("close", lambda: world.producer.close(chance.choice([0, WAIT_S])))
    assert broken_rules(world, server.root) == [], f"seed {seed}"


def test_threads_that_share_a_producer_lose_and_double_no_record(serve_classpath: str, tmp_path: Path) -> None:
    with RunningServer(serve_classpath, tmp_path / "log") as server:
        for seed in range(6):
            history_beside_a_server(server, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_threads_that_share_a_producer_of_a_root_whose_server_is_killed(tmp_path: Path, seed: int) -> None:
    root, chance = tmp_path / "log", random.Random(seed)
    Topic(root, "t", partitions=PARTITIONS).append([Record(b"before", KEYS[0].encode())], sparklog.partition_for(KEYS[0], PARTITIONS))
    world = World(sparklog.Producer(root, **settings(chance)), ["t"])
    with troubled(lambda: server_pid(root), chance, kills=3):
        run(world, seed, interrupts=chance.random() < 0.5)
    world.call("close", lambda: world.producer.close(chance.choice([0, WAIT_S])))
    world.sent.append(Sent("before", "t", "before", None))
    assert broken_rules(world, root) == []
    assert server_pid(root) is None
    assert sparklog.Log(root).verify().ok


@pytest.mark.soak
def test_threads_that_share_a_producer_for_new_seeds(serve_classpath: str, tmp_path: Path) -> None:
    first = draw_seed()
    with RunningServer(serve_classpath, tmp_path / "log") as server:
        for seed in range(first, first + 300):
            history_beside_a_server(server, seed)
