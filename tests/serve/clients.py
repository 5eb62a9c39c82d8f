"""Consumers of Kafka, which read partitions from offsets on up to their ends."""

import asyncio
import gc
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import aiokafka
import confluent_kafka
import kafka
import pytest
from kafka.errors import KafkaConfigurationError, KafkaError

from sparklog import Log

WAIT_S = 600
T = TypeVar("T")


class Read(NamedTuple):
    """A record as a client sees it, without its topic."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def assert_refused(connect: Callable[[], object]) -> None:
    """A client of kafka-python cannot connect. It leaves its sockets to the garbage collector then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            connect()
        except KafkaConfigurationError:
            raise
        except KafkaError:
            gc.collect()
        else:
            pytest.fail("the server let the client in")
        gc.collect()


def kafka_python_member(topic: str, **options: object) -> kafka.KafkaConsumer:
    """A member of a group that knows the partitions of its topic before it joins.

    kafka-python 3.0.12 joins again when it is told them later, and then forgets the assignment if its poll ends meanwhile: it stops
    heartbeats, and never has a partition.
    """
    consumer = kafka.KafkaConsumer(topic, **options)
    assert consumer.partitions_for_topic(topic)
    return consumer


Client = Callable[[str, str, dict[int, int], dict[int, int]], list[Read]]
"""Reads a topic at an address from the first to the second offsets, by partition. The records are in the order of offsets."""


def of_log(root: Path, topic: str) -> list[Read]:
    """All records of a topic, by the reader that needs no Java."""
    rows = Log(root).topic(topic).read().to_pylist()
    return [Read(row["partition"], row["offset"], int(row["timestamp"].timestamp() * 1000), row["key"], row["value"]) for row in rows]


def _is_short(records: list[Read], starts: dict[int, int], ends: dict[int, int], deadline: float) -> bool:
    assert time.monotonic() < deadline, f"{len(records)} records of {ends}"
    return len(records) < sum(ends.values()) - sum(starts.values())


def kafka_python(address: str, topic: str, starts: dict[int, int], ends: dict[int, int]) -> list[Read]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
    try:
        consumer.assign([kafka.TopicPartition(topic, number) for number in ends])
        for number, start in starts.items():
            consumer.seek(kafka.TopicPartition(topic, number), start)
        records: list[Read] = []
        deadline = time.monotonic() + WAIT_S
        while _is_short(records, starts, ends, deadline):
            for found in consumer.poll(500).values():
                records += [Read(one.partition, one.offset, one.timestamp, one.key, one.value) for one in found]
        return records
    finally:
        consumer.close()


def librdkafka(address: str, topic: str, starts: dict[int, int], ends: dict[int, int]) -> list[Read]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False, "check.crcs": True})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, number, start) for number, start in starts.items()])
        records: list[Read] = []
        deadline = time.monotonic() + WAIT_S
        while _is_short(records, starts, ends, deadline):
            for one in consumer.consume(1000, 0.5):
                assert one.error() is None, one.error()
                records.append(Read(one.partition(), one.offset(), one.timestamp()[1], one.key(), one.value()))
        return records
    finally:
        consumer.close()


def asyncio_kafka(address: str, topic: str, starts: dict[int, int], ends: dict[int, int]) -> list[Read]:
    async def read() -> list[Read]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
        await consumer.start()
        try:
            consumer.assign([aiokafka.TopicPartition(topic, number) for number in ends])
            for number, start in starts.items():
                consumer.seek(aiokafka.TopicPartition(topic, number), start)
            records: list[Read] = []
            deadline = time.monotonic() + WAIT_S
            while _is_short(records, starts, ends, deadline):
                for found in (await consumer.getmany(timeout_ms=500)).values():
                    records += [Read(one.partition, one.offset, one.timestamp, one.key, one.value) for one in found]
            return records
        finally:
            await consumer.stop()

    return asyncio.run(read())


CLIENTS: dict[str, Client] = {"kafka-python": kafka_python, "librdkafka": librdkafka, "aiokafka": asyncio_kafka}


def while_coordinators_change(ask: Callable[[], T]) -> T:
    """The answer of librdkafka. While a group moves to another server, a server may answer that it is not the coordinator."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return ask()
        except confluent_kafka.KafkaException as error:
            passing = (confluent_kafka.KafkaError.NOT_COORDINATOR, confluent_kafka.KafkaError._WAIT_COORD)
            if error.args[0].code() not in passing or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def committed(consumer: confluent_kafka.Consumer, places: list[confluent_kafka.TopicPartition]) -> list[confluent_kafka.TopicPartition]:
    """The positions of the group."""
    return while_coordinators_change(lambda: consumer.committed(places, timeout=WAIT_S))
