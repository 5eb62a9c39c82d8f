"""Several servers of one root: clients find all of them, and go on when one dies or sleeps."""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from door.serving import Door
from door.test_kills import RECORDS, Writer, require_exact
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
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
    """The addresses of servers that a server names."""
    admin = KafkaAdminClient(bootstrap_servers=address)
    try:
        return {f"{server['host']}:{server['port']}" for server in admin.describe_cluster()["brokers"]}
    except KafkaError:
        return set()  # It asked a server that has just died.
    finally:
        admin.close()


def leader(address: str, topic: str) -> str:
    """The address of the server that is preferred for a topic."""
    admin = KafkaAdminClient(bootstrap_servers=address)
    try:
        [described] = admin.describe_topics([topic])
        [node] = {partition["leader_id"] for partition in described["partitions"]}
        nodes = {server.get("node_id", server.get("broker_id")): server for server in admin.describe_cluster()["brokers"]}
        return f"{nodes[node]['host']}:{nodes[node]['port']}"
    finally:
        admin.close()


def consumed(address: str) -> list[bytes]:
    """The numbered records that a group reads."""
    consumer = KafkaConsumer("t", bootstrap_servers=address, group_id="g", auto_offset_reset="earliest", session_timeout_ms=6000)
    values: list[bytes] = []
    deadline = time.monotonic() + WAIT_S
    try:
        while sum(value.startswith(b"x:") for value in values) < RECORDS:
            assert time.monotonic() < deadline, f"{len(values)} records were read"
            for found in consumer.poll(500).values():
                values += [record.value for record in found]
            consumer.commit()
        return [value for value in values if value.startswith(b"x:")]
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
    place = TopicPartition("t", 0)
    for offset, (serving, groups) in enumerate([(one, range(6)), (other, range(6))], start=1):
        for group in groups:  # Some of the groups are of each server.
            consumer = KafkaConsumer(bootstrap_servers=serving.address, group_id=f"g{group}", enable_auto_commit=False)
            consumer.assign([place])
            consumer.seek(place, offset)
            consumer.commit()
            consumer.close()
    one.kill()
    for group in range(6):
        consumer = KafkaConsumer(bootstrap_servers=other.address, group_id=f"g{group}", enable_auto_commit=False)
        assert consumer.committed(place) == 2
        consumer.close()
