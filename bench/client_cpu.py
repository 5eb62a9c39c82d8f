"""The CPU time that clients in Python take for the same records: our consumer, the floor of its `poll`, kafka-python and confluent-kafka.

It is the time of all threads of this process, so neither the broker nor the network counts, and other work of the machine counts little.
"""

from __future__ import annotations

import contextlib
import gc
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka
import pyarrow as pa

from bench.broker import JARS, broker
from bench.consume import RECORDS, fill
from bench.harness import PARTITIONS, ROUNDS_MAX, Bench, topic_options
from sparklog import Consumer, ConsumerRecord, Log

AT_ONCE = 500
"""The records that `poll` returns at most by default, here and in kafka-python."""
VALUES = "CPU of a client in Python, values of records"
FIELDS = "CPU of a client in Python, all fields of records"
_THRESHOLD = 2_000
"""So many new objects make Python 3.13 collect garbage; earlier versions do it after 700, which a poll of 500 records exceeds."""
Use = Callable[[Any], object]
"""Takes from records what a program wants of them."""


def run(bench: Bench) -> None:
    if not JARS.exists():
        raise SystemExit("Kafka's jars are missing: make kafka fetches them")
    root = bench.path("client-cpu")
    rows = bench.data().limit(RECORDS).coalesce(4)
    rows.write.format("partlog").options(**topic_options("none")).mode("append").save(root)
    count = sum(Log(root)["t"].end_offsets().values())
    with (
        broker(Path(bench.path("client-cpu-broker")), "t", PARTITIONS) as (address, _),
        Consumer(root, "t", auto_offset_reset="earliest") as ours,
        contextlib.closing(kafka.KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)) as slow,
        contextlib.closing(confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False})) as fast,
    ):
        fill(root, address)
        slow.assign([kafka.TopicPartition("t", partition) for partition in range(PARTITIONS)])
        cases = {
            VALUES: {
                "Consumer.poll": partial(_poll, ours, count, _value),
                "Consumer.poll, garbage collected as by Python 3.13": partial(_with_threshold, partial(_poll, ours, count, _value)),
                "Consumer, iteration": partial(_iterate, ours, count),
                "Consumer.poll_batches": partial(_batches, ours, count),
                "objects of records alone": partial(_objects, list(_slices(root)), count),
                "kafka-python": partial(_poll, slow, count, _value),
                "confluent-kafka": partial(_consume, fast, count, _value_of_message),
            },
            FIELDS: {
                "Consumer.poll": partial(_poll, ours, count, _fields),
                "confluent-kafka": partial(_consume, fast, count, _fields_of_message),
            },
        }
        spent = _in_turns(bench, {(case, name): side for case, sides in cases.items() for name, side in sides.items()})
    for case, sides in cases.items():
        bench.times(case, "Consumer.poll", {name: spent[case, name] for name in sides}, records=count)


def _in_turns(bench: Bench, sides: dict[tuple[str, str], Callable[[], None]]) -> dict[tuple[str, str], list[float]]:
    """The CPU seconds of each run of each side, after a run that warms up. The sides take turns, in a new order each time."""
    spent: dict[tuple[str, str], list[float]] = {each: [] for each in sides}
    order = list(sides)
    ends = time.perf_counter() + bench.seconds
    rounds = 0
    while rounds <= bench.rounds or (time.perf_counter() < ends and rounds < ROUNDS_MAX):
        random.shuffle(order)
        for each in order:
            gc.collect()  # a side does not pay for the garbage of others
            began = time.process_time()
            sides[each]()
            if rounds:
                spent[each].append(time.process_time() - began)
        rounds += 1
    return spent


def _slices(root: str) -> Iterator[pa.RecordBatch]:
    """All records, in Arrow batches of the size that `poll` makes records of."""
    for batch in Log(root)["t"].scan():
        for first in range(0, batch.num_rows, AT_ONCE):
            yield batch.slice(first, AT_ONCE)


def _objects(batches: list[pa.RecordBatch], count: int) -> None:
    """The floor of `poll`: nothing is read, and Arrow's fastest ways make the objects of each record, up to the tuple of the fields."""
    found = 0
    times = pa.int64()
    for batch in batches:
        rows = batch.num_rows
        names = ("offset", "timestamp", "timestampType", "key", "value")
        offset, micros, *others = (batch.column(name) for name in names)
        columns = [offset.to_pylist(), micros.view(times).to_pylist(), *(each.to_pylist() for each in others), [[] for _ in range(rows)]]
        fields = zip(repeat("t"), repeat(0), *columns, strict=False)
        _value(list(map(tuple.__new__, repeat(ConsumerRecord), fields)))
        found += rows
    assert found == count


def _poll(consumer: Consumer | kafka.KafkaConsumer, count: int, use: Use) -> None:
    consumer.seek_to_beginning()
    found = 0
    while found < count:
        for records in consumer.poll(timeout_ms=1000).values():
            use(records)
            found += len(records)
    assert found == count


def _with_threshold(side: Callable[[], None]) -> None:
    before = gc.get_threshold()
    gc.set_threshold(_THRESHOLD, *before[1:])
    side()
    gc.set_threshold(*before)


def _iterate(consumer: Consumer, count: int) -> None:
    consumer.seek_to_beginning()
    for each in islice(consumer, count):
        _ = each.value


def _batches(consumer: Consumer, count: int) -> None:
    consumer.seek_to_beginning()
    found = 0
    while found < count:
        found += sum(batch.num_rows for batch in consumer.poll_batches(timeout_ms=1000).values())
    assert found == count


def _consume(consumer: confluent_kafka.Consumer, count: int, use: Use) -> None:
    consumer.assign([confluent_kafka.TopicPartition("t", partition, 0) for partition in range(PARTITIONS)])
    found = 0
    while found < count:
        messages = consumer.consume(AT_ONCE, 1.0)
        use(messages)
        found += len(messages)
    consumer.unassign()
    assert found == count


def _value(records: list[ConsumerRecord]) -> None:
    for each in records:
        _ = each.value


def _fields(records: list[ConsumerRecord]) -> None:
    for each in records:
        _topic, _partition, _offset, _timestamp, _timestamp_type, _key, _value, _headers = each


def _value_of_message(messages: list[confluent_kafka.Message]) -> None:
    for each in messages:
        _ = each.value()


def _fields_of_message(messages: list[confluent_kafka.Message]) -> None:
    for each in messages:
        _ = each.topic(), each.partition(), each.offset(), each.timestamp(), each.key(), each.value(), each.headers()
