"""The records that consumers read, and the offsets that they are told."""

import contextlib
import threading
import time
from collections import Counter

import confluent_kafka
import kafka
import pytest
from kafka.errors import OffsetOutOfRangeError
from logtool import LogTool
from serve.clients import CLIENTS, WAIT_S, Client, Read, of_log
from serve.serving import RunningServer

from sparklog import Log

BIG = 300_000


@pytest.fixture(scope="module")
def tool(server: RunningServer, serve_classpath: str) -> LogTool:
    return LogTool(serve_classpath, server.root)


@pytest.fixture(
    scope="module", params=["none", "zstd", *(pytest.param(codec, marks=pytest.mark.slow) for codec in ("gzip", "snappy", "lz4"))]
)
def written(request: pytest.FixtureRequest, tool: LogTool) -> str:
    """A topic of a codec, with small and large batches, of which some are merged, and the first have expired."""
    topic = f"codec-{request.param}"
    options = {"topic": topic, "compression_type": request.param, "max_message_bytes": 2 * BIG}
    tool.run("append", tag="A", commits=6, tasks=2, records=40, big=BIG // 40, **options)
    tool.run("merge", topic=topic)
    tool.run("append", tag="B", commits=3, tasks=2, records=30, **options)
    tool.run("change", topic=topic, what="records", offsets="1:7,2:1")
    return topic


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS.keys())
def test_a_client_reads_the_records_that_the_log_has(server: RunningServer, written: str, client: Client) -> None:
    topic = Log(server.root).topic(written)
    expected = of_log(server.root, written)
    starts, ends = topic.start_offsets(), topic.end_offsets()
    assert starts[1] == 7
    found = client(server.address, written, starts, ends)
    for partition in ends:  # Clients give partitions in any order, and each partition in the order of offsets.
        assert [read for read in found if read.partition == partition] == [read for read in expected if read.partition == partition]


def test_a_client_reads_on_from_the_middle_of_a_batch(server: RunningServer, written: str) -> None:
    ends = Log(server.root).topic(written).end_offsets()
    expected = of_log(server.root, written)
    for back in (1, 2, 11, 53):
        starts = {0: ends[0] - back}
        found = CLIENTS["librdkafka"](server.address, written, starts, {0: ends[0]})
        assert found == [read for read in expected if read.partition == 0 and read.offset >= starts[0]]


def test_offsets_are_told_by_time(server: RunningServer, written: str) -> None:
    expected = of_log(server.root, written)
    consumer = kafka.KafkaConsumer(bootstrap_servers=server.address)
    try:
        partitions = {number: kafka.TopicPartition(written, number) for number in Log(server.root).topic(written).end_offsets()}
        starts = {number: Log(server.root).topic(written).start_offsets()[number] for number in partitions}
        assert consumer.beginning_offsets(list(partitions.values())) == {partitions[number]: start for number, start in starts.items()}
        ends = Log(server.root).topic(written).end_offsets()
        assert consumer.end_offsets(list(partitions.values())) == {partitions[number]: end for number, end in ends.items()}
        times = sorted({read.timestamp for read in expected})
        for asked in (0, times[0], times[len(times) // 2] + 1, times[-1], times[-1] + 1):
            told = consumer.offsets_for_times(dict.fromkeys(partitions.values(), asked))
            for number, partition in partitions.items():
                first = next((read for read in expected if read.partition == number and read.timestamp >= asked), None)
                answer = told[partition]
                assert (first and (first.offset, first.timestamp)) == (answer and (answer.offset, answer.timestamp)), (asked, number)
    finally:
        consumer.close()


@pytest.mark.parametrize("offset", [6, 10_000])
def test_an_offset_that_does_not_exist_is_out_of_range(server: RunningServer, written: str, offset: int) -> None:
    consumer = kafka.KafkaConsumer(bootstrap_servers=server.address, enable_auto_commit=False, auto_offset_reset="none")
    try:
        partition = kafka.TopicPartition(written, 1)
        consumer.assign([partition])
        consumer.seek(partition, offset)
        with pytest.raises(OffsetOutOfRangeError):
            consumer.poll(WAIT_S * 1000)
    finally:
        consumer.close()


def test_a_waiting_consumer_gets_a_commit_of_another_process(server: RunningServer, tool: LogTool) -> None:
    tool.run("append", tag="A", topic="follow", commits=1, tasks=1, records=4)
    # The answer comes with the commit, and not after the longest wait.
    waits = {"fetch.wait.max.ms": 290_000, "socket.timeout.ms": 300_000}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.address, "group.id": "none", **waits})
    try:
        ends = Log(server.root).topic("follow").end_offsets()
        consumer.assign([confluent_kafka.TopicPartition("follow", number, end) for number, end in ends.items()])
        assert consumer.consume(1, 0.5) == []
        tool.run("append", tag="B", topic="follow", commits=1, tasks=1, records=4)
        assert len(consumer.consume(4, WAIT_S)) == 4
    finally:
        consumer.close()


def test_a_consumer_follows_a_writer_beside_merges_and_retention(server: RunningServer, tool: LogTool) -> None:
    """The records of a partition come in the order of offsets. None is lost, but for those that expired before they were read."""
    tool.run("append", tag="A", topic="busy", commits=1, tasks=2, records=20, keys=40)
    done, done_at = threading.Event(), float("inf")

    def write() -> None:
        nonlocal done_at
        try:
            for number in range(8):
                tool.run("append", tag=f"W{number}", topic="busy", commits=3, tasks=2, records=20, keys=40, seed=number)
                tool.run("merge", topic="busy")
                if number == 4:
                    tool.run("change", topic="busy", what="records", offsets="0:5,1:5,2:5,3:5")
        finally:
            done_at = time.monotonic()
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    found: list[Read] = []
    consumer = confluent_kafka.Consumer({"bootstrap.servers": server.address, "group.id": "none", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([confluent_kafka.TopicPartition("busy", number, 0) for number in range(4)])
        while time.monotonic() < done_at + WAIT_S:
            got = [one for one in consumer.consume(500, 0.2) if one.error() is None]
            found += [Read(one.partition(), one.offset(), one.timestamp()[1], one.key(), one.value()) for one in got]
            ends = Log(server.root).topic("busy").end_offsets()
            last = {read.partition: read.offset for read in found}
            if done.is_set() and all(last.get(number, -1) == end - 1 for number, end in ends.items()):
                break
    finally:
        consumer.close()
        writer.join()
    assert max(Counter((read.partition, read.offset) for read in found).values()) == 1
    for number in range(4):
        read = [one for one in found if one.partition == number]
        assert read == sorted(read, key=lambda one: one.offset)
        assert [one.offset for one in read if one.offset >= 5] == list(range(5, Log(server.root).topic("busy").end_offsets()[number]))
    assert set(of_log(server.root, "busy")) <= set(found)


def test_a_damaged_batch_stops_its_partition_alone(server: RunningServer, tool: LogTool) -> None:
    tool.run("append", tag="A", topic="damaged", commits=1, tasks=1, records=400, big=2_000, partitions=2)
    expected = of_log(server.root, "damaged")
    hurt = max(Log(server.root).topic("damaged").segments(), key=lambda segment: segment.bytes)
    with (server.root / "_partlog" / "damaged" / hurt.file).open("r+b") as file:
        file.seek(hurt.position + hurt.bytes - 20)
        file.write(b"damaged")
    [whole] = {0, 1} - {hurt.partition}
    consumer = kafka.KafkaConsumer(bootstrap_servers=server.address, enable_auto_commit=False)
    try:
        consumer.assign([kafka.TopicPartition("damaged", number) for number in (0, 1)])
        consumer.seek_to_beginning()
        found: list[int] = []
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until and len(found) < sum(read.partition == whole for read in expected):
            with contextlib.suppress(Exception):  # The client may raise an error of the damaged partition.
                polled = consumer.poll(500)
                found += [one.offset for partition, records in polled.items() if partition.partition == whole for one in records]
        assert found == [read.offset for read in expected if read.partition == whole]
    finally:
        consumer.close()
