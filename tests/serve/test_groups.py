"""Groups of Kafka's clients at a server: their own clients and tools, beside the groups that sparklog reads without a server."""

import asyncio
import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPlace
from confluent_kafka import Consumer as Confluent
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer
from kafka import TopicPartition as Place
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.structs import OffsetAndMetadata
from logtool import LogTool
from owners import Own
from serve.clients import committed, kafka_python_member, while_coordinators_change
from serve.kafka_tools import run_tool
from serve.serving import RunningServer

from sparklog.groups import OffsetTable, TopicGroups

WAIT_S = 600


@pytest.fixture
def group() -> str:
    """A name that no other test has."""
    return f"g-{uuid.uuid4().hex}"


def until(asked: Callable[[], object], what: str) -> None:
    end = time.monotonic() + WAIT_S
    while not asked():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def places(server: RunningServer, group: str) -> dict[int, int]:
    """The positions of a group in topic `t`, as sparklog reads them from the root's files."""
    return {each.partition: each.offset for each in TopicGroups(server.root).group(group).positions() if each.topic == "t"}


def test_kafka_python_commits_and_finds_its_offsets(server: RunningServer, group: str) -> None:
    places_of = [Place("t", number) for number in range(4)]
    first = KafkaConsumer(bootstrap_servers=server.address, group_id=group, enable_auto_commit=False)
    first.assign(places_of)
    first.commit({each: OffsetAndMetadata(3 + each.partition, "über", -1) for each in places_of})
    first.close()
    assert places(server, group) == {0: 3, 1: 4, 2: 5, 3: 6}
    second = KafkaConsumer(bootstrap_servers=server.address, group_id=group, enable_auto_commit=False)
    second.assign(places_of)
    assert [second.committed(each) for each in places_of] == [3, 4, 5, 6]
    assert second.committed(Place("t", 1), metadata=True).metadata == "über"
    second.close()
    client = KafkaAdminClient(bootstrap_servers=server.address)
    told = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "__consumer_offsets")], config_filter="all")
    assert told["topic"]["__consumer_offsets"]["cleanup.policy"]["value"] == "compact"
    client.close()


def test_members_of_kafka_python_share_the_partitions(server: RunningServer, group: str) -> None:
    one = kafka_python_member("t", bootstrap_servers=server.address, group_id=group, heartbeat_interval_ms=200)
    two = kafka_python_member("t", bootstrap_servers=server.address, group_id=group, heartbeat_interval_ms=200)
    try:
        with polling(one) as its, polling(two) as others:
            until(lambda: (its.count, others.count) == (2, 2), "two members do not share four partitions")
            found = TopicGroups(server.root).group(group)
            assert sorted(len(each.assignment["t"]) for each in found.members()) == [2, 2]
        two.close()
        with polling(one) as its:
            until(lambda: its.count == 4, "the last member does not have all partitions")
    finally:
        one.close(), two.close()


@contextmanager
def polling(consumer: KafkaConsumer) -> Iterator[SimpleNamespace]:
    """A thread of its own polls, as in a program: each member answers while the other one waits, however busy the machine is.

    `count` is the number of its partitions.
    """
    over, found = threading.Event(), SimpleNamespace(count=0)

    def poll() -> None:
        while not over.is_set():
            consumer.poll(500)
            found.count = len(consumer.assignment())

    with ThreadPoolExecutor(1) as thread:
        polled = thread.submit(poll)
        try:
            yield found
        finally:
            over.set()
            polled.result()


@pytest.fixture(params=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def confluent(server: RunningServer, group: str, protocol: str) -> Confluent:
    return Confluent({"bootstrap.servers": server.address, "group.id": group, "group.protocol": protocol, "enable.auto.commit": False})


def assigned(consumer: Confluent, count: int) -> None:
    def has_them() -> bool:
        consumer.poll(0.05)
        return len(consumer.assignment()) == count

    until(has_them, f"the member does not have {count} partitions")


def test_confluent_kafka_joins_by_both_protocols(server: RunningServer, group: str, protocol: str) -> None:
    consumer = confluent(server, group, protocol)
    consumer.subscribe(["t"])
    try:
        assigned(consumer, 4)
        consumer.commit(offsets=[TopicPartition("t", number, 7) for number in range(4)], asynchronous=False)
        assert [each.offset for each in consumer.committed([TopicPartition("t", number) for number in range(4)], 60)] == [7] * 4
        found = TopicGroups(server.root).group(group)
        assert (places(server, group), found.summary.running) == (dict.fromkeys(range(4), 7), True)
        assert [each.assignment for each in found.members()] == [{"t": [0, 1, 2, 3]}]
    finally:
        consumer.close()


def test_confluents_admin_lists_describes_and_deletes(server: RunningServer, group: str, protocol: str) -> None:
    consumer = confluent(server, group, protocol)
    consumer.subscribe(["t"])
    admin = AdminClient({"bootstrap.servers": server.address})
    try:
        assigned(consumer, 4)
        consumer.commit(offsets=[TopicPartition("t", 0, 5)], asynchronous=False)
        listed = {each.group_id: each for each in admin.list_consumer_groups().result(60).valid}
        assert listed[group].state.name == "STABLE"
        described = admin.describe_consumer_groups([group])[group].result(60)
        assert len(described.members) == 1 and len(described.members[0].assignment.topic_partitions) == 4
        with pytest.raises(KafkaException, match=r"NON_EMPTY_GROUP|not empty"):
            admin.delete_consumer_groups([group])[group].result(60)
    finally:
        consumer.close()
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition("t", 0)])]
    assert admin.list_consumer_group_offsets(asked)[group].result(60).topic_partitions[0].offset == 5
    admin.delete_consumer_groups([group])[group].result(60)
    assert group not in TopicGroups(server.root).groups()


def test_aiokafka_commits(server: RunningServer, group: str) -> None:
    async def commit() -> int | None:
        consumer = AIOKafkaConsumer("t", bootstrap_servers=server.address, group_id=group, enable_auto_commit=False)
        await consumer.start()
        try:
            while len(consumer.assignment()) < 4:
                await asyncio.sleep(0.05)
            await consumer.commit({AioPlace("t", 2): 9})
            return await consumer.committed(AioPlace("t", 2))
        finally:
            await consumer.stop()

    assert asyncio.run(commit()) == 9
    assert places(server, group) == {2: 9}


def test_a_commit_in_a_topic_that_does_not_exist_is_refused(server: RunningServer, group: str) -> None:
    consumer = confluent(server, group, "classic")
    try:
        for place in (TopicPartition("absent", 0, 1), TopicPartition("t", 99, 1)):
            with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
                consumer.commit(offsets=[place], asynchronous=False)
    finally:
        consumer.close()


@pytest.fixture
def own(serve_classpath: str, tmp_path: Path) -> Iterator[RunningServer]:
    """A server that a test ends."""
    root = tmp_path / "root"
    LogTool(serve_classpath, root).run("append", tag="A", topic="t", commits=1, tasks=2, records=10)
    with RunningServer(serve_classpath, root) as server:
        yield server


def test_a_group_survives_a_server_that_is_killed(own: RunningServer, group: str, protocol: str) -> None:
    consumer = confluent(own, group, protocol)
    consumer.subscribe(["t"])
    try:
        assigned(consumer, 4)
        for offset in range(1, 4):
            consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
        own.kill()
        with RunningServer(own.classpath, own.root, ("--listen", own.address)):

            def is_committed() -> bool:
                consumer.poll(0.05)
                try:
                    consumer.commit(offsets=[TopicPartition("t", 1, 2)], asynchronous=False)
                except KafkaException:
                    return False
                return True

            until(is_committed, "the group does not go on after a server was killed")
            assert [each.offset for each in committed(consumer, [TopicPartition("t", n) for n in (0, 1)])] == [3, 2]
    finally:
        consumer.close()


def test_clients_of_a_server_for_readers_commit(own: RunningServer, group: str) -> None:
    """A server with --read-only changes the state of groups, and nothing else."""
    with RunningServer(own.classpath, own.root, ("--read-only",)) as reader:
        consumer = confluent(reader, group, "classic")
        try:
            consumer.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False)
            assert committed(consumer, [TopicPartition("t", 0)])[0].offset == 3
        finally:
            consumer.close()
    assert places(own, group) == {0: 3}


def test_one_group_through_two_servers_in_turn(own: RunningServer, group: str) -> None:
    """One of them coordinates. Both may for a moment, and then each finds the commits of the other before it answers."""
    with RunningServer(own.classpath, own.root) as other:
        consumers = [confluent(each, group, "classic") for each in (own, other)]
        try:
            for offset in range(12):
                consumer = consumers[offset % 2]
                before = committed(consumer, [TopicPartition("t", 0)])[0].offset
                assert before == (offset - 1 if offset else -1001)
                place = TopicPartition("t", 0, offset)
                while_coordinators_change(lambda c=consumer, p=place: c.commit(offsets=[p], asynchronous=False))
        finally:
            for each in consumers:
                each.close()
    assert places(own, group) == {0: 11}


def test_positions_of_a_topic_that_is_created_again_do_not_count(own: RunningServer, group: str, serve_classpath: str) -> None:
    consumer = confluent(own, group, "classic")
    try:
        consumer.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False)
        tool = LogTool(serve_classpath, own.root)
        tool.run("change", what="delete", topic="t")
        tool.run("append", tag="B", topic="t", commits=1, tasks=2, records=10)
        until(lambda: consumer.committed([TopicPartition("t", 0)], 60)[0].offset == -1001, "the old position still counts")
        # The server deletes the position, and then the group, which has no other.
        left = [position for snapshot in TopicGroups(own.root).snapshots() for position in snapshot.positions()]
        assert all("created again" in str(position.note) for position in left if position.topic == "t"), left
    finally:
        consumer.close()


def sparklog(*words: object, status: int = 0) -> str:
    """Runs a command, and gives what it prints: on standard error if it does not end well."""
    command = [sys.executable, "-m", "sparklog", *map(str, words)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended.stdout if status == 0 else ended.stderr


@pytest.mark.slow
def test_a_group_is_copied_between_its_homes(server: RunningServer, group: str, tmp_path: Path) -> None:
    table = OffsetTable(server.root, tmp_path / "offsets")
    Own(table, group, {"t": {0: 5, 1: 6}}).end()
    words = ("groups", "copy", server.root, group, "-t", table.path)
    to_topic = (*words, "--to", "topic", "--server", server.address)
    assert "2 partitions would be moved" in sparklog(*to_topic)
    assert group not in TopicGroups(server.root).groups()
    assert "2 partitions moved" in sparklog(*to_topic, "--execute")
    assert places(server, group) == {0: 5, 1: 6}
    assert "needs --server" in " ".join(sparklog(*words, "--to", "topic", "--execute", status=2).replace("│", " ").split())

    consumer = confluent(server, group, "classic")
    consumer.subscribe(["t"])
    try:
        assigned(consumer, 4)
        consumer.commit(offsets=[TopicPartition("t", 0, 9)], asynchronous=False)
        assert "PARTLOG_GROUP_NOT_COPIED" in sparklog(*to_topic, "--execute", status=5)
    finally:
        consumer.close()
    assert places(server, group) == {0: 9, 1: 6}
    moves = json.loads(sparklog(*words, "--to", "table", "--execute", "--json"))["moves"]
    assert [(each["partition"], each["was"], each["now"], each["stays"]) for each in moves] == [(0, 5, 9, False), (1, 6, 6, True)]
    assert {each.partition: each.offset for each in table.positions(group)} == {0: 9, 1: 6}
    Own(table, group)
    for more in ((), ("--execute",)):
        assert "PARTLOG_GROUP_RUNNING" in sparklog(*words, "--to", "table", *more, status=2)


def test_a_copy_through_the_server_of_another_root_is_refused(
    server: RunningServer, own: RunningServer, group: str, tmp_path: Path
) -> None:
    table = OffsetTable(server.root, tmp_path / "offsets")
    Own(table, group, {"t": {0: 5}}).end()
    words = ("groups", "copy", server.root, group, "-t", table.path, "--to", "topic", "--execute", "--server")
    assert "serves another root" in sparklog(*words, own.address, status=5)
    assert group not in TopicGroups(own.root).groups()


@pytest.mark.slow
def test_kafkas_own_tool(server: RunningServer, group: str) -> None:
    consumer = confluent(server, group, "classic")
    consumer.commit(offsets=[TopicPartition("t", number, 3) for number in range(2)], asynchronous=False)
    consumer.close()

    assert group in run_tool(server.address, "kafka-consumer-groups", "--list").split()
    assert "Empty" in run_tool(server.address, "kafka-consumer-groups", "--group", group, "--describe", "--state")
    run_tool(server.address, "kafka-consumer-groups", "--group", group, "--topic", "t:1", "--delete-offsets")
    assert places(server, group) == {0: 3}
    run_tool(server.address, "kafka-consumer-groups", "--group", group, "--delete")
    assert group not in TopicGroups(server.root).groups()
