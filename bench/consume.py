"""Reading a topic from its start to its end without Spark: our consumer, `Log`, and kafka-python from a broker with the same records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import kafka

from bench.broker import JARS, broker
from bench.harness import PARTITIONS, Bench, topic_options
from sparklog import Consumer, Log

RECORDS = 300_000
"""kafka-python takes seconds for these."""
SMALL_COMMITS = 100


def run(bench: Bench) -> None:
    if not JARS.exists():
        raise SystemExit("Kafka's jars are missing: make kafka fetches them")
    rows = bench.data().limit(RECORDS).coalesce(4)
    root = bench.path("consume")
    rows.write.format("partlog").options(**topic_options("none")).mode("append").save(root)
    count = sum(Log(root)["t"].end_offsets().values())
    ours = Consumer(root, "t", auto_offset_reset="earliest")
    sides = {
        "Consumer.poll_batches": partial(_batches, ours, count),
        "Consumer.poll": partial(_records, ours, count),
        "Log.scan": partial(_scan, root, count),
    }
    bench.processes.append(os.getpid())
    try:
        with broker(Path(bench.path("broker")), "t", PARTITIONS) as (address, process):
            fill(root, address)
            theirs = kafka.KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
            theirs.assign([kafka.TopicPartition("t", partition) for partition in range(PARTITIONS)])
            bench.processes.append(process)
            bench.compare(
                "consume without Spark, beside kafka-python from a broker",
                "Consumer.poll",
                sides | {"kafka-python": partial(_records, theirs, count)},
                records=count,
            )
            for format, words in (("lines", []), ("JSON", ["--json"])):
                bench.compare(
                    f"print all records as {format}, beside kafka-python from a broker",
                    "sparklog cat",
                    {"sparklog cat": partial(_cat, root, words), "kafka-python": partial(_print, theirs, count, format == "JSON")},
                    records=count,
                )
            theirs.close()
            bench.processes.remove(process)
        _small(bench)
    finally:
        bench.processes.remove(os.getpid())


def _small(bench: Bench) -> None:
    """A backlog of commits of a stream that were not merged."""
    root = bench.path("consume-small")
    rows = bench.data().limit(200).coalesce(1).persist()
    for _ in range(SMALL_COMMITS):
        rows.write.format("partlog").options(**topic_options("none"), merge=False).mode("append").save(root)
    count = 200 * SMALL_COMMITS
    ours = Consumer(root, "t", auto_offset_reset="earliest")
    sides = {"Consumer.poll_batches": partial(_batches, ours, count), "Log.scan": partial(_scan, root, count)}
    bench.compare(f"consume {SMALL_COMMITS} commits of 200 records without Spark", "Consumer.poll_batches", sides, records=count)


def _batches(consumer: Consumer, count: int) -> None:
    consumer.seek_to_beginning()
    found = 0
    while batches := consumer.poll_batches():
        found += sum(batch.num_rows for batch in batches.values())
    assert found == count


def _records(consumer: Consumer | kafka.KafkaConsumer, count: int) -> None:
    consumer.seek_to_beginning()
    found = 0
    while found < count:
        found += sum(map(len, consumer.poll(timeout_ms=1000).values()))
    assert found == count


def _cat(root: str, words: list[str]) -> None:
    """A process of its own, with its start."""
    subprocess.run([sys.executable, "-m", "sparklog", "cat", root, "t", *words], stdout=subprocess.DEVNULL, check=True)


def _print(consumer: kafka.KafkaConsumer, count: int, as_json: bool) -> None:
    """Prints records as a script with kafka-python does."""
    consumer.seek_to_beginning()
    found = 0
    with Path(os.devnull).open("wb") as out:
        while found < count:
            for (topic, partition), records in consumer.poll(timeout_ms=1000).items():
                found += len(records)
                for each in records:
                    if as_json:
                        key, value = (octets.decode(errors="backslashreplace") for octets in (each.key, each.value))
                        line = {"topic": topic, "partition": partition, "offset": each.offset, "timestamp": each.timestamp}
                        out.write(json.dumps({**line, "key": key, "value": value}).encode() + b"\n")
                    else:
                        out.write(each.value + b"\n")


def _scan(root: str, count: int) -> None:
    assert sum(batch.num_rows for batch in Log(root)["t"].scan()) == count


def fill(root: str, address: str) -> None:
    """Sends all records to the same partitions of the broker, in batches of the size that ours have."""
    producer = kafka.KafkaProducer(bootstrap_servers=address, linger_ms=100, batch_size=1 << 18)
    for batch in Log(root)["t"].scan(columns=["partition", "key", "value"]):
        for partition, key, value in zip(*batch.to_pydict().values(), strict=True):
            producer.send("t", value, key, partition=partition)
    producer.flush()
    producer.close()
