"""A server dies, sleeps, or has no room. Each record that it has acknowledged is there once, and in order."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaProducer
from logtool import HALTED, LogTool
from ports import free_address
from serve.serving import RunningServer

import sparklog

FIRST_STEPS = ["commit.link", "commit.linked"]
"""The last step before a commit is made, and the first step after it."""

STEPS = ["commit.pool", "commit.read", "commit.put", "commit.synced", "commit.look", "commit.done"]
RECORDS = 200
READY_S = 120


@pytest.fixture
def root(serve_classpath: str, tmp_path: Path) -> Path:
    """A root with the topic `t`, which has 4 partitions and 40 records."""
    LogTool(serve_classpath, tmp_path / "root").run("append", tag="A", topic="t", commits=1, tasks=1, records=40, kafka_view="none")
    return tmp_path / "root"


class Writer:
    """A producer that numbers its records, and sends two a millisecond to two partitions. `failed` has the errors of its records."""

    def __init__(self, *addresses: str) -> None:
        self.failed: list[BaseException] = []
        self.acknowledged = 0
        self._producer = KafkaProducer(
            bootstrap_servers=list(addresses), enable_idempotence=True, request_timeout_ms=10_000, delivery_timeout_ms=600_000
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number in range(RECORDS):
            sent = self._producer.send("t", f"x:{number:06d}".encode(), partition=number % 2)
            sent.add_callback(self._count).add_errback(self.failed.append)
            time.sleep(0.002)
        self._producer.flush(READY_S)

    def _count(self, answer: object) -> None:
        self.acknowledged += 1

    def until(self, acknowledged: int) -> None:
        """Waits until so many records are acknowledged."""
        for _ in range(READY_S * 100):
            if self.acknowledged >= acknowledged:
                return
            time.sleep(0.01)
        raise TimeoutError(f"{self.acknowledged} of {acknowledged} records are acknowledged: {self.failed}")

    def end(self) -> None:
        self._thread.join(READY_S)
        self.until(RECORDS)
        self._producer.close()


def require_exact(root: Path) -> None:
    """Each record is there once, in the order of its partition."""
    for partition in range(2):
        found = [row["value"].decode() for row in sparklog.Log(root).topic("t").read(partition).to_pylist()]
        assert [value for value in found if value.startswith("x:")] == [f"x:{number:06d}" for number in range(partition, RECORDS, 2)]
    assert sparklog.Log(root).verify().ok


@pytest.mark.parametrize("step", [*FIRST_STEPS, *(pytest.param(step, marks=pytest.mark.slow) for step in STEPS)])
def test_a_server_that_dies_at_a_step_loses_and_doubles_nothing(serve_classpath: str, root: Path, step: str) -> None:
    address = free_address()
    listen = ("--listen", address)
    with RunningServer(serve_classpath, root, listen, java=(f"-Dpartlog.stop={step}:halt:3",)) as dies:
        writer = Writer(address)
        assert dies.process.wait(READY_S) == HALTED
    with RunningServer(serve_classpath, root, listen):
        writer.end()
    assert writer.failed == []
    require_exact(root)


def test_a_server_that_is_killed_again_and_again_loses_and_doubles_nothing(serve_classpath: str, root: Path) -> None:
    address = free_address()
    listen = ("--listen", address)
    with RunningServer(serve_classpath, root, listen) as first:
        writer = Writer(address)
        writer.until(1)
        first.kill()
    for part in (RECORDS // 3, 2 * RECORDS // 3):
        with RunningServer(serve_classpath, root, listen) as next_one:
            writer.until(part)
            next_one.kill()
    with RunningServer(serve_classpath, root, listen):
        writer.end()
    assert writer.failed == []
    require_exact(root)


def beside(act: Callable[[], None], done: threading.Event) -> threading.Thread:
    """Acts again and again in a thread, until `done`."""

    def run() -> None:
        while not done.is_set():
            act()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_server_that_sleeps_and_writers_beside_it_disturb_nothing(serve_classpath: str, root: Path) -> None:
    done = threading.Event()
    tool = LogTool(serve_classpath, root)
    with RunningServer(serve_classpath, root) as server:
        others = beside(lambda: tool.run("append", tag="B", topic="t", commits=1, tasks=1, records=4), done)
        writer = Writer(server.address)
        for part in (RECORDS // 4, RECORDS // 2):
            writer.until(part)
            os.kill(server.process.pid, signal.SIGSTOP)
            time.sleep(1)
            os.kill(server.process.pid, signal.SIGCONT)
        writer.end()
        done.set()
        others.join()
    assert writer.failed == []
    require_exact(root)
