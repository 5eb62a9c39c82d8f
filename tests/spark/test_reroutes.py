"""Partitions that are added, weighed and closed while a topic is written and read: each key stays in order, and nothing is lost."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from spark.collecting import wait_until
from verifying import faults

from sparklog import Consumer, Log

Call = Callable[..., list[dict[str, Any]]]
KEYS = [f"key-{number}" for number in range(40)]
CHANGES: list[tuple[str, dict[str, object]]] = [
    ("add_partitions", {"partitions": 6}),
    ("move_slots", {"moves": "map('key-1', 5, 'key-2', 5, 'key-3', 5)"}),
    ("add_partitions", {"partitions": 9}),
    ("move_slots", {"moves": "map('key-1', 8, 'key-3', 8)"}),
    ("close_partitions", {"partitions": "array(1, 4, 6, 7)"}),
    ("move_slots", {"moves": "map('key-2', 0)"}),
]
"""4 → 6 → 9 → 5 open partitions, and slots of keys that move between."""


class Written:
    """Writes records whose values are the numbers of their keys: 1, 2, 3, …"""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.spark, self.root = spark, root
        self.random = random.Random(1)
        self.numbers: Counter[str] = Counter()
        self.refused = 0

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Writes in a thread of its own, until the body has ended."""
        ended, failed = threading.Event(), []

        def run() -> None:
            try:
                while not ended.is_set():
                    self.write(60)
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        assert failed == []

    def write(self, count: int = 200) -> None:
        rows = []
        for key in self.random.choices(KEYS, k=count):
            self.numbers[key] += 1
            rows.append((key, str(self.numbers[key])))
        frame = self.spark.createDataFrame(rows, "key STRING, value STRING").coalesce(1)
        while True:
            try:
                # A write of another number of partitions than the topic has by then would be refused.
                first = {} if sum(self.numbers.values()) > count else {"partitions": 4}
                frame.write.format("partlog").options(topic="t", **first).mode("append").save(str(self.root))
                return
            except PySparkException as error:
                # It was planned before a re-route, and nothing of it was written.
                if error.getCondition() != "PARTLOG_ROUTING_CHANGED":
                    raise
                self.refused += 1


def numbered(rows: DataFrame) -> DataFrame:
    return rows.select(F.col("key").cast("string"), "partition", "offset", F.col("value").cast("string").cast("long").alias("number"))


def in_order(rows: DataFrame) -> DataFrame:
    """For each record the number that comes next for its key, and the number that it has."""

    class InOrder(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.last = handle.getValueState("last", "number LONG")

        def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timerValues: object) -> Iterator[Row]:
            last = self.last.get()[0] if self.last.exists() else 0
            for row in sorted(rows, key=lambda row: row.offset):
                yield Row(key=key[0], expected=last + 1, number=row.number)
                last = row.number
            self.last.update((last,))

        def close(self) -> None:
            pass

    return rows.groupBy("key").transformWithState(InOrder(), "key STRING, expected LONG, number LONG", "append", "none")


def poll(consumer: Consumer, read: Counter[str]) -> int:
    found = consumer.poll(max_records=150)
    for records in found.values():
        for record in records:
            key, number = record.key.decode(), int(record.value)
            assert number == read[key] + 1, f"{key} at {record.partition}:{record.offset}"
            read[key] = number
    return sum(map(len, found.values()))


@pytest.mark.slow
def test_each_key_stays_in_order(spark: SparkSession, tmp_path: Path, call: Call, request: pytest.FixtureRequest) -> None:
    root = tmp_path / "root"
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    request.addfinalizer(lambda: spark.conf.unset("spark.sql.streaming.stateStore.providerClass"))
    written = Written(spark, root)
    written.write()
    rows = numbered(spark.readStream.format("partlog").options(subscribe="t", startingOffsets="earliest").load(str(root)))
    seen: list[Row] = []
    query = (
        in_order(rows)
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .foreachBatch(lambda batch, _: seen.extend(batch.collect()))
        .start()
    )
    read: Counter[str] = Counter()
    try:
        with Consumer(root, "t", auto_offset_reset="earliest") as consumer:
            with written.going_on():
                for procedure, arguments in CHANGES:
                    time.sleep(1)
                    told, done = (call(procedure, topic="'t'", **arguments, dry_run=dry_run) for dry_run in ("true", "false"))
                    # A write between the two calls changes how many records were counted.
                    assert [row | {"records": 0} for row in done] == [row | {"records": 0} for row in told]
                    poll(consumer, read)
                time.sleep(1)
            while poll(consumer, read):
                pass
            assert read == written.numbers
            assert consumer.waiting() == {}
        total = sum(written.numbers.values())
        wait_until(lambda: len(seen) >= total, query, 120)
    finally:
        query.stop()
    assert [row for row in seen if row.expected != row.number] == []
    assert Counter(row.key for row in seen) == written.numbers
    # A batch read has every record once, and so have reads by key, which skip the segments where the key was not at that time.
    batch = spark.read.format("partlog").option("subscribe", "t").load(str(root))
    assert Counter(row.key for row in numbered(batch).collect()) == written.numbers
    for key in KEYS[:5]:
        numbers = sorted(row.number for row in numbered(batch.where(F.col("key") == F.lit(key).cast("binary"))).collect())
        assert numbers == list(range(1, written.numbers[key] + 1))
        assert Log(root)["t"].read(key=key).num_rows == written.numbers[key]
    closed = [row["partition"] for row in call("close_partitions", topic="'t'", partitions="array(1)", dry_run="true") if not row["weight"]]
    assert closed == [1, 4, 6, 7]
    assert faults(root) == []


def test_a_lone_stream_is_not_refused(spark: SparkSession, tmp_path: Path, call: Call) -> None:
    """Partitions are asked for while it runs, and its next epoch adds them first."""
    root = tmp_path / "root"
    written = Written(spark, root)
    written.write()
    query = (
        spark.readStream.format("partlog")
        .options(subscribe="t", startingOffsets="earliest")
        .load(str(root))
        .select("key", "value")
        .writeStream.format("partlog")
        .options(topic="copy", partitions=2, checkpointLocation=str(tmp_path / "copied"))
        .start(str(root))
    )
    try:
        for partitions in (3, 5):
            wait_until(lambda: _records(root) == sum(written.numbers.values()), query)
            call("add_partitions", topic="'copy'", partitions=partitions, when="'next_write'")
            assert Log(root)["copy"].partitions < partitions
            written.write()
        wait_until(lambda: _records(root) == sum(written.numbers.values()), query)
        assert query.exception() is None
    finally:
        query.stop()
    assert Log(root)["copy"].partitions == 5
    assert faults(root, unfinished=True) == []


REFUSED: list[tuple[str, dict[str, object], str, str]] = [
    ("close_partitions", {"partitions": "array(0, 1, 2)"}, "ARGUMENT_VALUE", "one partition at least must stay open"),
    ("close_partitions", {"partitions": "array()"}, "ARGUMENT_VALUE", "it must name partitions"),
    ("close_partitions", {"partitions": "array(1, 4)"}, "PARTITION_NOT_FOUND", "partition 4 of topic t"),
    ("close_partitions", {"partitions": "array(-1)"}, "PARTITION_NOT_FOUND", "partition -1 of topic t"),
    ("reroute", {"weights": "'{\"0\":0}'"}, "ARGUMENT_VALUE", "a weight must be from 1 to 1000000"),
    ("reroute", {"weights": "'{\"0\":-2}'"}, "ARGUMENT_VALUE", "a weight must be from 1 to 1000000"),
    ("reroute", {"weights": "'{\"0\":1000001}'"}, "ARGUMENT_VALUE", "a weight must be from 1 to 1000000"),
    ("reroute", {"weights": "'{\"3\":1}'"}, "ARGUMENT_VALUE", "partition 3 is closed, and stays so"),
    ("reroute", {"weights": "'{\"9\":1}'"}, "PARTITION_NOT_FOUND", "partition 9 of topic t"),
    ("reroute", {"weights": "'[1]'"}, "ARGUMENT_VALUE", "weights"),
    ("reroute", {"weights": "'{\"0\":2}'", "when": "'later'"}, "ARGUMENT_VALUE", "'now', 'next_write' or 'never'"),
    ("add_partitions", {"partitions": 3}, "ARGUMENT_VALUE", "has 4 partitions"),
    ("add_partitions", {"partitions": 10_001}, "ARGUMENT_VALUE", "from 1 to 10000"),
    ("add_partitions", {"partitions": 4_098}, "ARGUMENT_VALUE", "has 4096 slots for its keys"),
    ("move_slots", {"moves": "map('a', 3)"}, "PARTITION_CLOSED", "A row or a move asks for partition 3 of topic t"),
    ("move_slots", {"moves": "map('a', 4)"}, "PARTITION_NOT_FOUND", "`moves` names partition 4 of topic t"),
    ("move_slots", {"moves": "NULL"}, "ARGUMENT_VALUE", "it must have a value"),
    ("move_slots", {"moves": "map('a', CAST(NULL AS INT))"}, "ARGUMENT_VALUE", "a slot must move to a partition"),
    ("move_slots", {"moves": "map(0, 3)"}, "PARTITION_CLOSED", "partition 3 of topic t"),
    ("move_slots", {"moves": "map(0, 4)"}, "PARTITION_NOT_FOUND", "partition 4 of topic t"),
    ("move_slots", {"moves": "map(0, -1)"}, "PARTITION_NOT_FOUND", "partition -1 of topic t"),
    ("move_slots", {"moves": "map(4096, 0)"}, "ARGUMENT_VALUE", "has the slots 0 to 4095"),
    ("move_slots", {"moves": "map(-1, 0)"}, "ARGUMENT_VALUE", "has the slots 0 to 4095"),
    ("move_slots", {"moves": "map(0, CAST(NULL AS INT))"}, "ARGUMENT_VALUE", "a slot must move to a partition"),
    ("move_slots", {"moves": "map()"}, "ARGUMENT_VALUE", "it must name a slot"),
]


def test_what_cannot_be_is_refused(
    spark: SparkSession, tmp_path: Path, call: Call, fails: Callable[[str, Callable[[], object]], str]
) -> None:
    root = tmp_path / "root"
    Written(spark, root).write()
    call("close_partitions", topic="'t'", partitions="array(3)")
    files = {file: file.read_bytes() for file in root.rglob("*") if file.is_file()}
    for procedure, arguments, condition, part in REFUSED:
        for dry_run in ({}, {"dry_run": "true"}):
            assert part in fails(condition, lambda: call(procedure, topic="'t'", **arguments, **dry_run)), procedure  # noqa: B023
    rows = spark.createDataFrame([("key", "value", 3)], "key STRING, value STRING, partition INT")
    assert "partition 3 of topic t" in fails(
        "PARTITION_CLOSED", lambda: rows.write.format("partlog").option("topic", "t").mode("append").save(str(root))
    )
    assert {file: file.read_bytes() for file in root.rglob("*") if file.is_file()} == files
    call("delete_topic", topic="'t'")
    fails("TOPIC_NOT_FOUND", lambda: call("add_partitions", topic="'t'", partitions=6))


def _records(root: Path) -> int:
    log = Log(root)
    time.sleep(0.05)
    return sum(log["copy"].end_offsets().values()) if "copy" in log.topics() else 0
