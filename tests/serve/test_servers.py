"""Several servers of one root: clients find all of them, and go on when one dies or sleeps."""

import gc
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import ConsumerGroupState, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConsumerGroupDescription
from kafka import KafkaConsumer
from logtool import LogTool
from ports import free_address
from serve.clients import committed
from serve.serving import RunningServer
from serve.test_kills import RECORDS, Writer, require_exact
from starlette.testclient import TestClient

from sparklog.ui import application

QUICK = ("broker.heartbeat.interval.ms=300", "broker.session.timeout.ms=2500")
WAIT_S = 600


@pytest.fixture
def root(serve_classpath: str, tmp_path: Path) -> Path:
    """A root with the topic `t`, which has 4 partitions and 40 records."""
    LogTool(serve_classpath, tmp_path / "root").run("append", tag="A", topic="t", commits=1, tasks=1, records=40, kafka_view="none")
    return tmp_path / "root"


@pytest.fixture
def servers(serve_classpath: str, root: Path) -> Iterator[tuple[RunningServer, RunningServer]]:
    with RunningServer(serve_classpath, root, QUICK) as one, RunningServer(serve_classpath, root, QUICK) as other:
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
    return AdminClient({"bootstrap.servers": address}).list_topics(timeout=600)


def member(address: str, group: str, session_ms: int = 6000) -> confluent_kafka.Consumer:
    settings = {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    return confluent_kafka.Consumer({**settings, "session.timeout.ms": session_ms, "max.poll.interval.ms": max(session_ms, 300_000)})


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


def test_each_server_names_all_and_the_same_leader(servers: tuple[RunningServer, RunningServer]) -> None:
    one, other = servers
    until(lambda: told(other.address) == told(one.address) == {one.address, other.address})
    until(lambda: leader(one.address, "t") == leader(other.address, "t"))  # on a busy machine, a session may end meanwhile


def test_a_server_that_ends_is_not_named(servers: tuple[RunningServer, RunningServer], root: Path) -> None:
    one, other = servers
    other.process.send_signal(signal.SIGTERM)
    other.process.wait(WAIT_S)
    left = {file.name[:22] for file in (root / "_servers").glob("*-*.json")}  # By the identities of servers.
    assert len(left) == 1
    until(lambda: told(one.address) == {one.address})


def test_the_web_page_shows_servers_and_their_clients(servers: tuple[RunningServer, RunningServer], root: Path) -> None:
    one, other = servers
    page = TestClient(application(root), base_url="http://127.0.0.1")

    def shown() -> dict[str, bool]:
        """Whether servers are alive, by their addresses."""
        answer = page.get("/api/servers").json()
        assert (answer["more"], answer["unreadable"]) == (0, 0)
        clients.clear()
        for each in answer["servers"]:
            assert abs(time.time() * 1000 - each["since"]) < 600_000 and each["program"].startswith("sparklog ")
            clients.update((client["name"], client) for client in each["clients"])
        return {f"{each['listeners'][0]['host']}:{each['listeners'][0]['port']}": each["alive"] for each in answer["servers"]}

    clients: dict[str, dict[str, Any]] = {}
    half = "\1" * 99 + "\U0001f600"  # The server keeps 100 units of UTF-16, so it cuts the last character.
    both = {one.address: True, other.address: True}
    consumers = [KafkaConsumer(bootstrap_servers=one.address, client_id=name) for name in ("till", half)]
    until(lambda: shown() == both and clients.keys() == {"till", "\1" * 99 + "?"})
    till = clients["till"]
    assert (till["listener"], till["host"]) == ("PLAINTEXT", "127.0.0.1") and till["connections"] >= 1
    assert re.fullmatch(r"kafka-python 3\.[0-9.]+", till["software"])
    until(lambda: told(other.address) == {one.address, other.address})  # They can read each other's heartbeats.
    for consumer in consumers:
        consumer.close()
    until(lambda: shown() == both and not clients)
    os.kill(other.process.pid, signal.SIGSTOP)
    until(lambda: shown() == both | {other.address: False})
    os.kill(other.process.pid, signal.SIGCONT)
    until(lambda: shown() == both)
    one.process.send_signal(signal.SIGTERM)
    one.process.wait(WAIT_S)
    assert shown().keys() == {other.address}


@pytest.mark.parametrize("act", ["kill", "sleep"])
def test_a_producer_and_a_group_go_on_without_their_server(servers: tuple[RunningServer, RunningServer], root: Path, act: str) -> None:
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


def test_a_group_keeps_its_position_when_its_coordinator_dies(servers: tuple[RunningServer, RunningServer]) -> None:
    one, other = servers
    for offset, serving in enumerate(servers, start=1):
        for group in range(6):  # Some of the groups are of each server.
            consumer = member(serving.address, f"g{group}")
            consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
            consumer.close()
    one.kill()
    for group in range(6):
        consumer = member(other.address, f"g{group}")
        [position] = committed(consumer, [TopicPartition("t", 0)])
        assert position.offset == 2
        consumer.close()


class Members:
    """Two members of a group, who commit what they read. `positions` has the commits that the coordinator acknowledged."""

    def __init__(self, servers: tuple[RunningServer, RunningServer], group: str, protocol: str) -> None:
        self.read: list[bytes] = []
        self.positions: dict[int, int] = {}
        self.backwards: list[str] = []
        addresses = ",".join(server.address for server in servers)
        settings = {"bootstrap.servers": addresses, "group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
        settings |= {"enable.auto.commit": "false", "socket.timeout.ms": "4000"}
        if protocol == "classic":
            settings["session.timeout.ms"] = "6000"
        self.consumers = [confluent_kafka.Consumer(settings) for _ in range(2)]
        for consumer in self.consumers:
            consumer.subscribe(["t"], on_assign=self._assigned)

    def _assigned(self, consumer: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        for found in committed(consumer, partitions):
            if found.offset < self.positions.get(found.partition, found.offset):
                self.backwards.append(f"partition {found.partition}: from {self.positions[found.partition]} to {found.offset}")

    def until(self, records: int) -> None:
        """Reads and commits until so many numbered records are read, each of them counted once."""
        deadline = time.monotonic() + 2 * WAIT_S
        while len(set(self.read)) < records:
            assert time.monotonic() < deadline, f"{len(set(self.read))} of {records} records were read"
            for consumer in self.consumers:
                found = [record for record in consumer.consume(20, 0.2) if record.error() is None]
                self.read += [record.value() for record in found if record.value().startswith(b"x:")]
                if found:
                    self._commit(consumer)

    def _commit(self, consumer: confluent_kafka.Consumer) -> None:
        try:
            committed = consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException:
            return  # The partitions may be of the other member now, who reads the records again.
        for place in committed or []:
            if place.error is None:
                self.positions[place.partition] = place.offset

    def close(self) -> None:
        for consumer in self.consumers:
            consumer.close()


def described(address: str, group: str) -> ConsumerGroupDescription:
    admin = AdminClient({"bootstrap.servers": address})  # It answers as long as it is kept.
    [found] = admin.describe_consumer_groups([group], request_timeout=WAIT_S).values()
    return found.result(WAIT_S)


def coordinator(address: str, group: str) -> str:
    """The address of the server that coordinates a group."""
    return _address(described(address, group))


def _address(group: ConsumerGroupDescription) -> str:
    return f"{group.coordinator.host}:{group.coordinator.port}"


def write(addresses: str, numbers: range) -> None:
    settings = {"bootstrap.servers": addresses, "enable.idempotence": True, "socket.timeout.ms": 4000, "linger.ms": 5}
    producer = confluent_kafka.Producer(settings)
    failed: list[object] = []
    for number in numbers:
        producer.produce("t", f"x:{number:06d}".encode(), partition=number % 2, on_delivery=lambda error, _: error and failed.append(error))
    assert producer.flush(WAIT_S) == 0
    assert failed == []


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("act", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_a_live_group_goes_on_without_its_coordinator(
    servers: tuple[RunningServer, RunningServer], act: signal.Signals, protocol: str
) -> None:
    one, other = servers
    members = Members(servers, "live", protocol)
    addresses = f"{one.address},{other.address}"
    write(addresses, range(60))
    members.until(60)
    lost, kept = (one, other) if coordinator(one.address, "live") == one.address else (other, one)
    os.kill(lost.process.pid, act)
    write(addresses, range(60, 120))
    members.until(120)
    assert coordinator(kept.address, "live") == kept.address
    os.kill(lost.process.pid, signal.SIGCONT)
    write(addresses, range(120, 180))
    members.until(180)
    assert members.backwards == []
    for place in committed(members.consumers[0], [TopicPartition("t", partition) for partition in range(2)]):
        assert place.offset >= members.positions[place.partition]
    members.close()


ENDS_S = 14
"""A server with a member that waits and a consumer that waits ends in less than the 15 s that it gives its connections."""


def is_joining(address: str, group: str) -> bool:
    """Whether members wait for the other members of their group. The server at the address coordinates the group."""
    try:
        found = described(address, group)
    except confluent_kafka.KafkaException:  # the group does not exist yet
        return False
    return _address(found) == address and found.state is ConsumerGroupState.PREPARING_REBALANCING


@pytest.mark.slow  # seconds decide, and a busy machine may take too many
def test_a_server_ends_soon_while_members_and_consumers_wait(serve_classpath: str, root: Path) -> None:
    with RunningServer(serve_classpath, root, ("group.initial.rebalance.delay.ms=60000",)) as server:
        joins = member(server.address, "waits")
        joins.subscribe(["t"])
        settings = {"bootstrap.servers": server.address, "group.id": "none", "fetch.wait.max.ms": 50_000, "auto.offset.reset": "latest"}
        reads = confluent_kafka.Consumer(settings)
        reads.assign([TopicPartition("t", 0)])
        deadline = time.monotonic() + WAIT_S
        while not is_joining(server.address, "waits"):
            joins.poll(0.1), reads.poll(0.1)
            assert time.monotonic() < deadline
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(WAIT_S)
        assert time.monotonic() - began < ENDS_S
        joins.close(), reads.close()


@pytest.mark.slow
def test_a_member_that_waits_goes_to_the_server_that_takes_its_group_over(serve_classpath: str, root: Path) -> None:
    arguments = (*QUICK, "--listen", free_address())
    with RunningServer(serve_classpath, root, QUICK) as one:
        with RunningServer(serve_classpath, root, arguments) as other:
            until(lambda: told(one.address) == {one.address, other.address})
            group = next(name for name in map(str, range(100)) if coordinator(one.address, name) == other.address)
        until(lambda: told(one.address) == {one.address})
        first, second = (member(one.address, group, session_ms=600_000) for _ in range(2))
        first.subscribe(["t"])
        until(lambda: first.poll(0.1) is not None)
        second.subscribe(["t"])
        until(lambda: second.poll(0.1) is None and is_joining(one.address, group))  # The first one does not hear of it without a poll.
        with RunningServer(serve_classpath, root, arguments) as other:
            until(lambda: is_joining(other.address, group))
            until(lambda: any(each.poll(0.1) and each is second for each in (first, second)))
            first.close(), second.close()
