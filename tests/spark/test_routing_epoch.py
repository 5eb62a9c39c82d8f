"""The metadata column `_routing_epoch`: with the offset, it orders the records of a key over re-routes, in batches and in streams."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from handmade import draw_seed, featured
from pyspark.errors.exceptions.base import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from verifying import faults

import sparklog
from sparklog import Log

Call = Callable[..., list[dict[str, Any]]]
EPOCH = "_routing_epoch"
CATALOGS = count()
KEYS = [f"key-{number}" for number in range(12)]


class Topic:
    """Topic `t` of the root of `call`, whose values are the numbers of the records of their key: 1, 2, 3, …"""

    def __init__(self, spark: SparkSession, root: Path, **options: object) -> None:
        self.spark, self.root, self.options = spark, root, options
        self.random = random.Random(draw_seed())
        self.numbers: Counter[str] = Counter()

    def write(self, records: int = 60) -> None:
        rows = []
        for key in self.random.choices(KEYS, k=records):
            self.numbers[key] += 1
            rows.append((key, str(self.numbers[key])))
        frame = self.spark.createDataFrame(rows, "key STRING, value STRING").coalesce(1)
        frame.write.format("partlog").options(topic="t", **self.options).mode("append").save(str(self.root))
        self.options = {}

    def read(self) -> DataFrame:
        return self.spark.read.format("partlog").option("subscribe", "t").load(str(self.root))

    def records(self) -> int:
        return sum(self.numbers.values())

    def history(self, call: Call) -> None:
        """Keys move to and fro, partitions are added and closed."""
        self.write()
        for _ in range(4):
            key, partition = self.random.choice(KEYS), self.random.randrange(3)
            call("move_slots", topic="'t'", moves=f"map('{key}', {partition})")
            self.write()
        call("add_partitions", topic="'t'", partitions=5)
        self.write()
        call("close_partitions", topic="'t'", partitions="array(1)")
        self.write()
        call("move_slots", topic="'t'", moves="map('key-1', 4, 'key-2', 0)")
        self.write()

    def is_in_order(self, rows: list[Row]) -> bool:
        by_key = defaultdict(list)
        for row in sorted(rows, key=lambda row: (row[EPOCH], row.offset)):
            by_key[bytes(row.key).decode()].append(int(row.value))
        return all(numbers == sorted(numbers) for numbers in by_key.values())


@pytest.fixture
def topic(spark: SparkSession, tmp_path: Path, call: Call) -> Topic:
    topic = Topic(spark, tmp_path / "root", partitions=3)
    topic.history(call)
    return topic


@pytest.fixture
def table(spark: SparkSession, topic: Topic) -> str:
    """The topic as a table of a catalog; Spark keeps each catalog as it was at its first use."""
    name = f"epochs_{next(CATALOGS)}"
    sparklog.attach(spark, name, topic.root)
    return f"{name}.t"


@pytest.mark.parametrize("placement", ["modulo", "on_first_write"])
def test_keys_are_in_order_by_epoch_and_offset(spark: SparkSession, tmp_path: Path, call: Call, placement: str) -> None:
    topic = Topic(spark, tmp_path / "root", partitions=3, placement=placement)
    topic.write()
    assert {row[EPOCH] for row in topic.read().select("*", EPOCH).collect()} == {0}
    topic.history(call)
    rows = topic.read().select("*", EPOCH).collect()
    assert len(rows) == topic.records()
    assert topic.is_in_order(rows)
    by_offset_alone = [row.asDict() | {EPOCH: 0} for row in rows]
    assert not topic.is_in_order([Row(**row) for row in by_offset_alone])
    ends = Log(topic.root)["t"].end_offsets()
    half = {partition: end // 2 for partition, end in ends.items()}
    call("delete_records", topic="'t'", offsets=f"'{json.dumps(half)}'")
    left = topic.read().select("*", EPOCH).collect()
    assert topic.is_in_order(left)
    assert {(row.partition, row.offset): row[EPOCH] for row in rows if row.offset >= half[row.partition]} == {
        (row.partition, row.offset): row[EPOCH] for row in left
    }
    assert faults(topic.root) == []


def test_only_a_query_that_names_the_column_gets_it(spark: SparkSession, topic: Topic, table: str) -> None:
    rows = topic.read()
    assert EPOCH not in rows.columns
    assert EPOCH not in spark.table(table).columns
    expected = sorted(rows.select("partition", "offset", EPOCH).collect())
    assert len({row[EPOCH] for row in expected}) > 3
    for other in (
        spark.read.format("partlog").load(str(topic.root)).select("partition", "offset", EPOCH),
        spark.table(table).select("partition", "offset", EPOCH),
        spark.sql(f"SELECT partition, offset, {EPOCH} FROM {table}"),
        spark.sql(f"SELECT partition, offset, {EPOCH} FROM partlog.`{topic.root}`"),
        spark.sql(f"SELECT partition, offset, {EPOCH} FROM {table} VERSION AS OF {Log(topic.root)['t'].describe()['version']}"),
        rows.where("value IS NOT NULL").select("partition", "offset", EPOCH, "key").drop("key"),
    ):
        assert sorted(other.collect()) == expected
    assert [row.col_name for row in spark.sql(f"DESCRIBE EXTENDED {table}").collect() if row.col_name == EPOCH] == [EPOCH]
    assert "_routing_epoch" not in rows.select("key")._jdf.queryExecution().optimizedPlan().toString()


def test_filters_and_aggregates_agree_with_the_rows(topic: Topic, table: str, spark: SparkSession) -> None:
    rows = topic.read().select("*", EPOCH).collect()
    last = max(row[EPOCH] for row in rows)
    by_epoch = Counter(row[EPOCH] for row in rows)
    read = topic.read
    for epoch in range(-1, last + 2):
        assert read().where(F.col(EPOCH) == epoch).count() == by_epoch[epoch]
    assert read().where(f"{EPOCH} >= {last} AND partition = 0").count() == sum(row[EPOCH] == last and not row.partition for row in rows)
    assert read().where(f"NOT ({EPOCH} = 0 OR offset < 5)").count() == sum(bool(row[EPOCH]) and row.offset >= 5 for row in rows)
    assert len(read().where(f"{EPOCH} = {last}").limit(3).collect()) == 3
    assert {row[EPOCH]: row["count"] for row in read().groupBy(EPOCH).count().collect()} == by_epoch
    told = read().agg(F.min(EPOCH), F.max(EPOCH), F.count(EPOCH), F.count_distinct(EPOCH), F.max("offset")).first()
    assert tuple(told) == (0, last, len(rows), len(by_epoch), max(row.offset for row in rows))
    by_partition = {row.partition: row.epoch for row in read().groupBy("partition").agg(F.max(EPOCH).alias("epoch")).collect()}
    assert by_partition == {row.partition: max(r[EPOCH] for r in rows if r.partition == row.partition) for row in rows}
    joined = spark.sql(f"SELECT count(*) FROM {table} a JOIN {table} b USING (partition, offset) WHERE a.{EPOCH} = b.{EPOCH}")
    assert joined.first()[0] == len(rows)


def test_writes_and_deletions_do_not_depend_on_the_column(
    spark: SparkSession, topic: Topic, table: str, fails: Callable[..., str], tmp_path: Path
) -> None:
    before = topic.read().count()
    for condition in (f"{EPOCH} = 0", f"partition = 0 AND offset < 5 AND {EPOCH} = 0", f"partition = 0 AND (offset < 5 OR {EPOCH} = 0)"):
        text = fails("STATEMENT_UNSUPPORTED", lambda where=condition: spark.sql(f"DELETE FROM {table} WHERE {where}"))
        assert "only what lies before an offset of a partition can be deleted" in text
    assert topic.read().count() == before
    topic.read().select("*", EPOCH).drop("partition").write.format("partlog").option("topic", "copy").mode("append").save(
        str(tmp_path / "copy")
    )
    assert sum(Log(tmp_path / "copy")["copy"].end_offsets().values()) == before
    spark.sql(f"CREATE TABLE {table}_copy AS SELECT key, value, {EPOCH} FROM {table}")
    assert spark.table(f"{table}_copy").select(EPOCH).distinct().collect() == [(0,)]


def test_a_stream_has_the_column(spark: SparkSession, tmp_path: Path, call: Call) -> None:
    """Keys are in order over all micro-batches, though later ones see a newer state."""
    topic = Topic(spark, tmp_path / "root", partitions=3)
    topic.write()
    seen: list[Row] = []

    def run() -> None:
        stream = spark.readStream.format("partlog").options(subscribe="t", startingOffsets="earliest", maxOffsetsPerTrigger=100)
        rows = stream.load(str(topic.root))
        assert EPOCH not in rows.columns
        query = rows.select("*", EPOCH).writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.foreachBatch(lambda batch, _: seen.extend(batch.collect())).trigger(availableNow=True).start().awaitTermination()

    run()
    for _ in range(2):
        topic.history(call) if not Log(topic.root)["t"].describe()["routing"] else topic.write()
        run()
    assert len(seen) == topic.records()
    assert topic.is_in_order(seen)
    assert len({row[EPOCH] for row in seen}) > 3
    sink = spark.readStream.format("partlog").options(subscribe="t", startingOffsets="earliest").load(str(topic.root))
    counts = sink.where(f"{EPOCH} > 0").groupBy(EPOCH).count().writeStream.format("memory").queryName("epochs").outputMode("complete")
    counts.trigger(availableNow=True).start().awaitTermination()
    expected = Counter(row[EPOCH] for row in topic.read().select(EPOCH).collect() if row[EPOCH])
    assert {row[EPOCH]: row["count"] for row in spark.table("epochs").collect()} == expected


def test_a_topic_of_unknown_routing_has_all_columns_but_this_one(spark: SparkSession, tmp_path: Path, fails: Callable[..., str]) -> None:
    topic = Topic(spark, tmp_path / "root", partitions=3)
    topic.write()
    file = topic.root / "_partlog/t/00000000000000000000.json"
    line = json.dumps(json.loads(file.read_text().splitlines()[0]) | {"features": featured("routing.tables")}).encode()
    file.write_bytes(line + b"\ncrc32c:%08x\n" % google_crc32c.value(line))
    rows = spark.read.format("partlog").load(str(topic.root))
    assert len(rows.collect()) == topic.records()
    assert "routing.tables" in fails("FORMAT_TOO_NEW", lambda: rows.select(EPOCH).collect())
    assert "routing.tables" in fails("FORMAT_TOO_NEW", lambda: rows.where(f"{EPOCH} = 0").count())
    stream = spark.readStream.format("partlog").option("startingOffsets", "earliest").load(str(topic.root)).select(EPOCH)
    with pytest.raises(StreamingQueryException, match=r"PARTLOG_FORMAT_TOO_NEW.*routing\.tables"):
        stream.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()
