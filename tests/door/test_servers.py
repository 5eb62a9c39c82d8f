"""Several servers of one root: clients find all of them, and go on when one dies or sleeps."""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, ClusterMetadata
from door.serving import Door
from door.test_kills import RECORDS, Writer, require_exact
from logtool import LogTool

pytestmark = pytest.mark.filterwarnings("ignore:.*socket.socket:pytest.PytestUnraisableExceptionWarning", "ignore:unclosed:ResourceWarning")
"""kafka-python leaves a socket open when a server dies."""

QUICK = ("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=2500")
WAIT_S = 60


@pytest.fixture
def root(serve_classpath: str, tmp_path: Path) -> Path:
    """A root with the topic `t`, which has 4 partitions and 40 records."""
    LogTool(serve_classpath, tmp_path / "root").run("append", tag="A", topic="t", commits=1, tasks=1, records=40, kafka_view="none")
    return tmp_path / "root"


@pytest.fixture
def servers(serve_classpath: str, root: Path) -> Iterator[tuple[Door, Door]]:
    with Door(serve_classpath, root, QUICK) as one, Door(serve_classpath, root, QUICK) as other:
        until(lambda: told(one.address) == {one.address, other.address})
        yield one, other
    gc.collect()  # The sockets that kafka-python leaves open are warned of in this test, and not at the end of all tests.


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def told(address: str) -> set[str]:
    """The addresses of servers that a server names; of none if it does not answer."""
    try:
        return {f"{server.host}:{server.port}" for server in metadata(address).brokers.values()}
    except confluent_kafka.KafkaException:
        return set()


def leader(address: str, topic: str) -> str:
    """The address of the server that is preferred for a topic."""
    found = metadata(address)
    [node] = {partition.leader for partition in found.topics[topic].partitions.values()}
    return f"{found.brokers[node].host}:{found.brokers[node].port}"


def metadata(address: str) -> ClusterMetadata:
    return AdminClient({"bootstrap.servers": address}).list_topics(timeout=10)


def member(address: str, group: str) -> confluent_kafka.Consumer:
    settings = {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    return confluent_kafka.Consumer({**settings, "session.timeout.ms": 6000})


def consumed(address: str) -> list[bytes]:
    """The numbered records that a group reads."""
    consumer = member(address, "g")
    consumer.subscribe(["t"])
    values: list[bytes] = []
    deadline = time.monotonic() + WAIT_S
    try:
        while len(values) < RECORDS:
            assert time.monotonic() < deadline, f"{len(values)} records were read"
            found = [record.value() for record in consumer.consume(1000, 0.5) if record.error() is None]
            values += [value for value in found if value.startswith(b"x:")]
        consumer.commit(asynchronous=False)
        return values
    finally:
        consumer.close()


def test_each_server_names_all_and_the_same_leader(servers: tuple[Door, Door]) -> None:
    one, other = servers
    assert told(other.address) == {one.address, other.address}
    assert leader(one.address, "t") == leader(other.address, "t")


def test_a_server_that_ends_is_not_named(servers: tuple[Door, Door], root: Path) -> None:
    one, other = servers
    other.process.send_signal(signal.SIGTERM)
    other.process.wait(WAIT_S)
    left = {file.name[:22] for file in (root / "_servers").glob("*-*.json")}  # By the identities of servers.
    assert len(left) == 1
    until(lambda: told(one.address) == {one.address})


@pytest.mark.parametrize("act", ["kill", "sleep"])
def test_a_producer_and_a_group_go_on_without_their_server(servers: tuple[Door, Door], root: Path, act: str) -> None:
    one, other = servers
    lost = one if leader(one.address, "t") == one.address else other
    kept = other if lost is one else one
    writer = Writer(lost.address)  # It learns of the other server by itself.
    writer.until(RECORDS // 4)
    os.kill(lost.process.pid, signal.SIGKILL if act == "kill" else signal.SIGSTOP)
    until(lambda: told(kept.address) == {kept.address})
    os.kill(lost.process.pid, signal.SIGCONT)
    values = consumed(kept.address)
    writer.end()
    assert writer.failed == []
    require_exact(root)
    assert sorted(set(values)) == [f"x:{number:06d}".encode() for number in range(RECORDS)]


def test_a_group_keeps_its_position_when_its_coordinator_dies(servers: tuple[Door, Door]) -> None:
    one, other = servers
    for offset, serving in enumerate(servers, start=1):
        for group in range(6):  # Some of the groups are of each server.
            consumer = member(serving.address, f"g{group}")
            consumer.commit(offsets=[confluent_kafka.TopicPartition("t", 0, offset)], asynchronous=False)
            consumer.close()
    one.kill()
    for group in range(6):
        consumer = member(other.address, f"g{group}")
        [position] = consumer.committed([confluent_kafka.TopicPartition("t", 0)], timeout=WAIT_S)
        assert position.offset == 2
        consumer.close()
