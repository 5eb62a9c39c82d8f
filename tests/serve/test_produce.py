"""Clients write to a root: their records are there for every reader as soon as they are acknowledged, each once."""

import asyncio
import shutil
import subprocess
import threading
import zlib
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError as KafkaErrorCode
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from handmade import draw_seed
from kafka import KafkaProducer
from kafka.errors import KafkaError
from logtool import LogTool, small_jvm
from serve.clients import CLIENTS, of_log
from serve.serving import RunningServer

import sparklog

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


def topic_of(server: RunningServer, name: str) -> str:
    """A new topic with 4 partitions and 40 records."""
    LogTool(server.classpath, server.root).run("append", tag="A", topic=name, commits=1, tasks=1, records=40, kafka_view="none")
    return name


def values(server: RunningServer, topic: str, begins: str) -> list[str]:
    """The values that begin so, in the order of their partitions and offsets."""
    rows = sparklog.Log(server.root).topic(topic).read().to_pylist()
    found = [row["value"].decode() for row in sorted(rows, key=lambda row: (row["partition"], row["offset"]))]
    return [value for value in found if value.startswith(begins)]


@pytest.mark.parametrize("codec", CODECS)
def test_kafka_python_writes_what_readers_find_at_once(server: RunningServer, codec: str | None) -> None:
    topic = topic_of(server, f"python-{codec}")
    producer = KafkaProducer(bootstrap_servers=server.address, compression_type=codec)
    try:
        for number in range(3):
            sent = producer.send(topic, f"x:{number}".encode(), key=b"k", partition=2, headers=[("h", b"1")]).get(60)
            rows = sparklog.Log(server.root).topic(topic).read().to_pylist()
            [record] = [row for row in rows if (row["partition"], row["offset"]) == (2, sent.offset)]
            assert (record["value"], record["key"]) == (f"x:{number}".encode(), b"k")
    finally:
        producer.close()
    assert sparklog.Log(server.root).verify(topics=[topic]).ok


def test_keys_that_a_client_routes_in_its_own_way_are_warned_of_once(server: RunningServer) -> None:
    topic = topic_of(server, "split")  # by murmur3
    keys = [b"key-%d" % number for number in range(20)]
    said = "keys of topic split under"
    producer = KafkaProducer(bootstrap_servers=server.address)
    try:
        for key in keys:
            assert producer.send(topic, b"1", key, partition=sparklog.partition_for(key, 4)).get(60)
        assert said not in server.log()
        for _ in range(2):
            for key in keys:  # by murmur2
                assert producer.send(topic, b"1", key).get(60)
    finally:
        producer.close()
    assert server.log().count(said) == 1
    assert "murmur3, the topic's partitioner" in server.log()


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka_writes(server: RunningServer, codec: str | None) -> None:
    topic = topic_of(server, f"librdkafka-{codec}")
    told: list[tuple[object, int]] = []
    producer = Producer({"bootstrap.servers": server.address, "compression.type": codec or "none", "enable.idempotence": True})
    for number in range(1000):
        producer.produce(topic, f"x:{number:06d}", partition=1, on_delivery=lambda error, message: told.append((error, message.offset())))
    producer.flush(60)
    assert [error for error, offset in told if error] == []
    assert len(told) == 1000
    assert values(server, topic, "x:") == [f"x:{number:06d}" for number in range(1000)]
    assert sparklog.Log(server.root).verify(topics=[topic]).ok


def test_aiokafka_writes(server: RunningServer) -> None:
    topic = topic_of(server, "aiokafka")

    async def write() -> None:
        for codec in CODECS:
            async with AIOKafkaProducer(bootstrap_servers=server.address, compression_type=codec, enable_idempotence=True) as producer:
                await producer.send_and_wait(topic, f"x:{codec}".encode(), partition=0)

    asyncio.run(write())
    assert values(server, topic, "x:") == [f"x:{codec}" for codec in CODECS]


def test_a_client_learns_why_its_records_are_refused(server: RunningServer) -> None:
    topic = topic_of(server, "refused")
    producer = KafkaProducer(bootstrap_servers=server.address, max_request_size=4 << 20, enable_idempotence=False)
    try:
        with pytest.raises(KafkaError, match="MessageSizeTooLarge"):
            producer.send(topic, bytes(2 << 20), partition=0).get(60)
        with pytest.raises(KafkaError, match="InvalidTimestamp"):
            producer.send(topic, b"x", partition=0, timestamp_ms=-7).get(60)
        producer.send(topic, b"x:good", partition=0).get(60)
    finally:
        producer.close()
    assert values(server, topic, "x:") == ["x:good"]


def test_transactions_are_refused(server: RunningServer) -> None:
    producer = Producer({"bootstrap.servers": server.address, "transactional.id": "x"})
    with pytest.raises(KafkaException) as failure:
        producer.init_transactions(30)
    assert failure.value.args[0].fatal()


def test_two_servers_add_the_records_of_a_producer_once(server: RunningServer, serve_classpath: str) -> None:
    topic = topic_of(server, "two")
    with RunningServer(serve_classpath, server.root) as other:
        failed: list[Any] = []
        threads = []
        for number, address in enumerate((server.address, other.address)):

            def write(number: int = number, address: str = address) -> None:
                producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 0})
                for each in range(1000):
                    value = f"{number}:{each:06d}"
                    producer.produce(
                        topic,
                        value,
                        partition=zlib.crc32(value.encode()) % 4,
                        on_delivery=lambda error, message: failed.append(error) if error else None,
                    )
                    producer.poll(0.001)
                producer.flush(120)

            threads.append(threading.Thread(target=write))
            threads[-1].start()
        for thread in threads:
            thread.join(180)
    assert failed == []
    for number in range(2):
        found = values(server, topic, f"{number}:")
        assert sorted(found) == [f"{number}:{each:06d}" for each in range(1000)]
        for partition in range(4):
            own = [value for value in found if zlib.crc32(value.encode()) % 4 == partition]
            assert own == sorted(own)
    assert sparklog.Log(server.root).verify(topics=[topic]).ok


def test_clients_of_a_server_that_is_read_only_read_and_write_no_record(serve_classpath: str, server: RunningServer) -> None:
    """librdkafka asks for no record of a server that does not name Produce."""
    expected = sorted(of_log(server.root, "t"))
    ends = sparklog.Log(server.root)["t"].end_offsets()
    with RunningServer(serve_classpath, server.root, ("--read-only",)) as reading:
        for client in CLIENTS.values():
            assert sorted(client(reading.address, "t", dict.fromkeys(ends, 0), ends)) == expected
        if shutil.which("kcat"):
            command = ["kcat", "-q", "-b", reading.address, "-t", "t", "-C", "-e"]
            lines = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=600, check=True).stdout.splitlines()
            assert sorted(lines) == sorted((each.value or b"").decode() for each in expected)
        told: list[int] = []
        producer = Producer({"bootstrap.servers": reading.address})
        producer.produce("t", b"x", partition=0, on_delivery=lambda error, message: told.append(error.code()))
        producer.flush(60)
        assert told == [KafkaErrorCode.TOPIC_AUTHORIZATION_FAILED]
        writer = KafkaProducer(bootstrap_servers=reading.address)
        with pytest.raises(KafkaError, match="ClusterAuthorizationFailed"):
            writer.send("t", b"x", partition=0).get(60)
        writer.close(5)
    assert sorted(of_log(server.root, "t")) == expected


def test_batches_that_are_let_in_are_read_by_all_readers(server: RunningServer) -> None:
    made = NewTopic("mutated", 4, 1, config={"message.timestamp.after.max.ms": str(2**63 - 1)})
    admin = AdminClient({"bootstrap.servers": server.address})
    admin.create_topics([made])["mutated"].result(60)
    topic = topic_of(server, "mutated")
    tool = LogTool(server.classpath, server.root)
    command = [
        *small_jvm(server.classpath),
        "io.sparklog.commits.IntakeTool",
        str(server.root),
        topic,
        str(draw_seed()),
        "4000",
    ]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    batches, records = map(int, done.stdout.split())
    assert 400 < batches < 3600, "the mutations leave some batches right, and break others"
    assert sparklog.Log(server.root).topic(topic).read().num_rows == 40 + records
    assert tool.run("read", topic=topic), "the reader in Java decodes all"
    assert sparklog.Log(server.root).verify(topics=[topic]).ok
