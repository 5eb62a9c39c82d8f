"""`spark.read.format("partlog")`: the tests that need a session. The others are the Java tests of `source` and `read`."""

import datetime
import json
import re
import struct
import time
import uuid
import zoneinfo
from collections.abc import Callable
from pathlib import Path

import pytest
from chispa import assert_df_equality
from handmade import Record, Topic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sparklog

RECORDS = 20_000
UTC = datetime.timezone.utc

EVENTS = """
    SELECT CASE WHEN id % 11 = 0 THEN NULL ELSE CAST(concat('k', id % 101) AS BINARY) END AS key,
           CASE WHEN id % 7 = 0 THEN NULL ELSE CAST(concat('value ', id) AS BINARY) END AS value,
           CAST(id % 4 AS INT) AS partition,
           timestamp_millis(1700000000000 + id * 1000) AS timestamp,
           CASE WHEN id % 3 = 0 THEN array(named_struct('key', 'n', 'value', CAST(CAST(id AS STRING) AS BINARY))) END AS headers
    FROM range(0, {records}, 1, {tasks})
"""


def save(rows: DataFrame, root: Path, topic: str, **options: object) -> None:
    rows.write.format("partlog").options(topic=topic, **options).mode("append").save(str(root))


def load(spark: SparkSession, root: Path, **options: object) -> DataFrame:
    return spark.read.format("partlog").options(**options).load(str(root))


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Topic `events`, four partitions, written by two tasks in two commits; topic `other`, one record."""
    root = tmp_path_factory.mktemp("source") / "root"
    for _ in range(2):
        save(spark.sql(EVENTS.format(records=RECORDS // 2, tasks=2)), root, "events", **{"partitions": 4, "batch.size": 4096})
    save(spark.sql("SELECT 'x' AS value"), root, "other")
    return root


@pytest.fixture
def events(spark: SparkSession, root: Path) -> DataFrame:
    return load(spark, root, subscribe="events")


def plan(rows: DataFrame) -> str:
    return rows._jdf.queryExecution().explainString(rows._sc._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted"))


def stage_metrics(spark: SparkSession, action: Callable[[], object]) -> tuple[int, int]:
    """Bytes and records that Spark's UI shows as read by the stages that `action` runs."""
    store = spark.sparkContext._jsc.sc().statusStore()
    group = str(uuid.uuid4())
    spark.sparkContext.setJobGroup(group, "")
    action()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(group)
    stages = {stage for job in jobs for stage in spark.sparkContext.statusTracker().getJobInfo(job).stageIds}
    attempts = [store.lastStageAttempt(stage) for stage in stages]
    return sum(stage.inputBytes() for stage in attempts), sum(stage.inputRecords() for stage in attempts)


def log_bytes(root: Path, topic: str) -> int:
    version = sorted((root / "_partlog" / topic).glob("*.json"))
    return sum(segment["bytes"] for file in version for segment in json.loads(file.read_text().splitlines()[0])["added"])


def test_the_columns_are_those_of_the_kafka_source(spark: SparkSession, root: Path, events: DataFrame) -> None:
    assert events.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    assert [field.nullable for field in events.schema] == [True, True, False, False, False, False, False, True]
    assert load(spark, root, includeHeaders=False).columns == events.columns[:-1]


def test_rows_are_what_was_written(spark: SparkSession, events: DataFrame) -> None:
    written = spark.sql(EVENTS.format(records=RECORDS // 2, tasks=1))
    columns = ["key", "value", "partition", "timestamp", "headers"]
    assert_df_equality(events.select(columns), written.union(written).select(columns), ignore_row_order=True, ignore_nullable=True)
    assert events.count() == RECORDS
    offsets = events.groupBy("partition").agg(F.min("offset"), F.max("offset"), F.countDistinct("offset"), F.count("*"))
    assert sorted(map(tuple, offsets.collect())) == [(p, 0, RECORDS // 4 - 1, RECORDS // 4, RECORDS // 4) for p in range(4)]
    assert {row[0] for row in events.select("topic").distinct().collect()} == {"events"}


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Asia/Manila"])
def test_times_that_python_does_not_have(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    """`collect` makes local times of Python: these zones are the farthest east of UTC, and in the year 1 the farthest west."""
    first, last = datetime.datetime(1, 1, 3, tzinfo=UTC), datetime.datetime(9999, 12, 31, 9, 59, 59, 999_000, UTC)
    millis = [-1, -(2**62), -62_135_596_800_000, 253_402_300_799_999, 1_790_000_000 * 10**9, 2**62]
    Topic(tmp_path).append([Record(timestamp=each) for each in millis])
    rows = load(spark, tmp_path)
    monkeypatch.setenv("TZ", zone)
    try:
        time.tzset()
        found = {row["offset"]: row["timestamp"].replace(tzinfo=zoneinfo.ZoneInfo(zone)).astimezone(UTC) for row in rows.collect()}
    finally:
        monkeypatch.undo()
        time.tzset()
    none = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)
    assert [found[offset] for offset in range(len(millis))] == [none, first, first, last, last, last]
    # A filter sees the time that is shown.
    assert rows.where("timestamp >= timestamp_millis(253402250399999)").count() == 3
    assert rows.where("timestamp <= timestamp_millis(-62135424000000)").count() == 2
    assert sparklog.Log(tmp_path)["t"].read()["timestamp"].to_pylist() == [found[offset] for offset in range(len(millis))]


def test_columns_that_are_not_asked_for_are_not_read(events: DataFrame) -> None:
    text = plan(events.select("offset").where("offset >= 0"))
    assert "Output [1]: [offset#" in text, text
    assert "BatchScan" in text and "partlog[subscribe=events]" in text, text
    # A query can use a part of the headers.
    keys = events.where("headers IS NOT NULL").select(F.col("headers")[0]["key"]).distinct().collect()
    assert [row[0] for row in keys] == ["n"]
    assert events.select(F.explode("headers.value")).count() == len([n for n in range(RECORDS // 2) if n % 3 == 0]) * 2


def test_functions_of_every_column(events: DataFrame) -> None:
    """Each column through an operator that keeps rows longer than their batch."""
    row = events.selectExpr(
        "max(key)", "max(value)", "max(topic)", "max(partition)", "max(offset)", "max(timestamp)", "max(timestampType)", "max(headers)"
    ).first()
    assert row is not None
    assert bytes(row[0]) == b"k99" and bytes(row[1]) == b"value 9999" and row[2:5] == ("events", 3, RECORDS // 4 - 1)
    assert row[6] == 0 and bytes(row[7][0]["value"]) == b"9999"
    sort = [tuple(row) for row in events.orderBy(F.desc("offset"), "partition").select("offset", "value").limit(4).collect()]
    assert [offset for offset, _ in sort] == [RECORDS // 4 - 1] * 4
    # 9996 is a multiple of 7.
    assert [value and bytes(value) for _, value in sort] == [None, b"value 9997", b"value 9998", b"value 9999"]


def test_the_ui_shows_what_was_read(spark: SparkSession, root: Path, events: DataFrame) -> None:
    whole = log_bytes(root, "events")
    read, records = stage_metrics(spark, lambda: events.agg(F.sum(F.length("value"))).collect())
    assert records == RECORDS
    assert whole <= read <= whole * 1.02


def test_offsets(spark: SparkSession, root: Path) -> None:
    middle = {"events": {"0": 100, "1": -2, "2": 5000, "3": 4999}}
    end = {"events": {"0": 110, "1": 1, "2": -1, "3": -1}}
    rows = load(spark, root, subscribe="events", startingOffsets=json.dumps(middle), endingOffsets=json.dumps(end))
    found = sorted((row.partition, row.offset) for row in rows.collect())
    assert found == [(0, offset) for offset in range(100, 110)] + [(1, 0), (3, 4999)]


def test_times(spark: SparkSession, root: Path) -> None:
    """Every commit begins at the same time. The first record at or after the time counts, even if earlier times follow it."""
    rows = load(
        spark, root, subscribe="events", startingTimestamp=1700000000000 + 4_000 * 1000, endingTimestamp=1700000000000 + 4_100 * 1000
    )
    found = rows.groupBy("partition").agg(F.min("offset"), F.count("*")).orderBy("partition").collect()
    assert [tuple(row) for row in found] == [(p, 1000, 25) for p in range(4)]


def test_splits(spark: SparkSession, root: Path, events: DataFrame) -> None:
    assert events.rdd.getNumPartitions() == 4
    assert load(spark, root, subscribe="events", minPartitions=30).rdd.getNumPartitions() >= 30
    capped = load(spark, root, subscribe="events", maxRecordsPerPartition=700)
    per_task = capped.groupBy(F.spark_partition_id()).count().collect()
    assert len(per_task) == 4 * 8 and max(row["count"] for row in per_task) <= 700
    assert capped.count() == RECORDS


def test_a_pattern_of_no_topic_reads_nothing(spark: SparkSession, root: Path) -> None:
    assert load(spark, root, subscribePattern="nothing.*").collect() == []


def test_errors_of_planning_and_of_tasks(
    spark: SparkSession, root: Path, fails: Callable[[str, Callable[[], object]], str], tmp_path: Path
) -> None:
    assert "`includeHeaders` has the value yes" in fails("OPTION_VALUE", lambda: load(spark, root, includeHeaders="yes"))
    assert "Existing topics: events, other" in fails("TOPIC_NOT_FOUND", lambda: load(spark, root, subscribe="event").collect())
    assert "one root" in fails("OPTION_VALUE", lambda: spark.read.format("partlog").load([str(root), str(tmp_path)]))
    fails("OFFSETS_OUT_OF_RANGE", lambda: load(spark, root, subscribe="other", startingOffsets=_all_at(9)).collect())
    fails("TIMESTAMP_NOT_FOUND", lambda: load(spark, root, subscribe="events", startingTimestamp=1900000000000).collect())
    save(spark.range(1000).selectExpr("CAST(id AS STRING) AS value"), tmp_path, "t", partitions=1)
    (file,) = tmp_path.glob("_partlog/t/data/*/*.log")
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    text = fails("BATCH_CORRUPT", lambda: load(spark, tmp_path).agg(F.sum(F.length("value"))).collect())
    assert re.search(rf"Topic t, partition 0: the record batch at byte \d+ of {re.escape(str(file))} is damaged", text)
    file.unlink()
    fails("SEGMENT_MISSING", lambda: load(spark, tmp_path).agg(F.sum(F.length("value"))).collect())


def _all_at(offset: int) -> str:
    return json.dumps({"other": {str(partition): offset for partition in range(8)}})


def test_tables_and_views(spark: SparkSession, root: Path) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW events_view USING partlog OPTIONS (path '{root}', subscribe 'events')")
    spark.sql(f"CREATE TABLE events_table USING partlog OPTIONS (path '{root}', topic 'events')")
    try:
        for name in ("events_view", "events_table"):
            assert spark.sql(f"SELECT count(*) FROM {name} WHERE `offset` < 10").first()[0] == 40
        assert spark.read.table("events_table").count() == RECORDS
    finally:
        spark.sql("DROP VIEW events_view")
        spark.sql("DROP TABLE events_table")


# Which parts of a query the source evaluates


def pushed(rows: DataFrame) -> str:
    """The description of the scan in a query's plan."""
    found = re.search(
        r"partlog\[[^]]*\] (\S+?)((?:, (?:filters|limit|aggregates): .*?)?)(?: RuntimeFilters|\n|$)", rows._jdf.queryExecution().toString()
    )
    assert found, rows._jdf.queryExecution().toString()
    return found[2].removeprefix(", ")


def bytes_of(spark: SparkSession, rows: DataFrame) -> int:
    return stage_metrics(spark, lambda: rows.collect())[0]


def test_explain_shows_what_was_pushed(events: DataFrame) -> None:
    text = plan(events.where("partition = 3 AND `offset` >= 5 AND length(value) > 2").limit(7))
    assert "filters: partition = 3 AND offset >= 5" in text, text
    assert "limit" not in text.split("filters:")[1].split("\n")[0], "Spark must see all rows to find 7 of them"
    assert "limit: 7" in plan(events.where("`offset` >= 5").limit(7))


def test_counts_run_no_task_and_open_no_segment(spark: SparkSession, root: Path, events: DataFrame, tmp_path: Path) -> None:
    query = events.selectExpr("count(*)", "count(1)", "count(topic)", "min(`offset`)", "max(`offset`)", "min(partition)", "max(partition)")
    assert "BatchScan" not in plan(query)
    assert tuple(query.first()) == (RECORDS, RECORDS, RECORDS, 0, RECORDS // 4 - 1, 0, 3)
    grouped = events.where("`offset` BETWEEN 10 AND 19 AND partition <> 2").groupBy("partition").agg(F.count("*"), F.max("offset"))
    assert "BatchScan" not in plan(grouped)
    assert sorted(map(tuple, grouped.collect())) == [(p, 10, 19) for p in (0, 1, 3)]
    assert events.where("`offset` < 0").count() == 0
    assert events.where("`offset` < 0").agg(F.max("offset")).first()[0] is None
    everything = load(spark, root).groupBy("topic").count()
    assert sorted(map(tuple, everything.collect())) == [("events", RECORDS), ("other", 1)]
    save(spark.range(5000).selectExpr("CAST(id AS STRING) AS value"), tmp_path, "t")
    for file in tmp_path.glob("_partlog/t/data/*/*.log"):
        file.unlink()
    assert load(spark, tmp_path).count() == 5000
    # Everything that needs the records reads them.
    assert "BatchScan" in plan(events.selectExpr("count(value)"))
    assert events.selectExpr("count(value)").first()[0] == RECORDS - 2 * len(range(0, RECORDS // 2, 7))


def test_less_is_read(spark: SparkSession, root: Path, events: DataFrame) -> None:
    whole = log_bytes(root, "events")
    assert bytes_of(spark, events.where("partition = 3").select("value")) < whole * 0.3
    assert bytes_of(spark, events.where("topic = 'none'").select("value")) == 0
    assert bytes_of(spark, load(spark, root).where("topic = 'other'").select("value")) < 1000


@pytest.mark.slow
def test_of_a_gigabyte_little_is_read(spark: SparkSession, tmp_path: Path) -> None:
    records = 9_200_000
    first, half, last = 1_700_000_000_000, records // 2, records - 1
    rows = spark.range(0, records, 1, 1).selectExpr(
        "CAST(repeat('x', 100) AS BINARY) AS value", f"timestamp_millis({first} + id) AS timestamp"
    )
    save(rows, tmp_path, "t", **{"partitions": 1, "batch.size": 16384})
    log = load(spark, tmp_path).select("offset", "value")
    whole = log_bytes(tmp_path, "t")
    assert whole > 1_000_000_000
    few = whole * 0.01
    # A task that does not know its last byte reads 256 KiB.
    for start in (0, half, records * 29 // 30):
        assert bytes_of(spark, log.where(f"`offset` >= {start}").limit(10)) < few
    assert bytes_of(spark, log.where(f"`offset` IN (5, {half}, {last})")) < few
    assert bytes_of(spark, log.where(f"`offset` BETWEEN {half} AND {half + 10}")) < few
    assert bytes_of(spark, log.where(f"timestamp >= timestamp_millis({first + last - 2_000})")) < few
    some = log.where(f"timestamp BETWEEN timestamp_millis({first + half}) AND timestamp_millis({first + half + 10})")
    assert bytes_of(spark, some) < few
    assert [row["offset"] for row in some.collect()] == list(range(half, half + 11))
    starting = {"startingTimestamp": first + half, "endingTimestamp": first + half + 10}
    assert bytes_of(spark, load(spark, tmp_path, **starting)) < few


def test_groups_and_windows_by_partition_need_no_shuffle(spark: SparkSession, root: Path, events: DataFrame) -> None:
    split = load(spark, root, subscribe="events", minPartitions=24)
    for rows in (events, split):
        counts = rows.groupBy("partition").agg(F.sum(F.length("value")).alias("bytes"), F.count("*").alias("records"))
        assert "Exchange" not in plan(counts)
        assert sorted(row["records"] for row in counts.collect()) == [RECORDS // 4] * 4
        numbered = rows.selectExpr("partition", "`offset`", "row_number() OVER (PARTITION BY partition ORDER BY `offset`) AS n")
        assert "Exchange" not in plan(numbered)
        assert numbered.where("n <> `offset` + 1").count() == 0
    # Grouping by fewer columns than those of a split, or by others, needs a shuffle; so do joins of rows that are grouped differently.
    both = load(spark, root).groupBy("partition").agg(F.count("*").alias("records"), F.count("value"))
    assert "Exchange" in plan(both)
    assert sum(row["records"] for row in both.collect()) == RECORDS + 1
    joined = events.groupBy("partition").agg(F.max("timestamp").alias("latest")).join(split.where("`offset` = 5"), "partition")
    assert joined.count() == 4
    assert events.select("value").groupBy(F.lit(1)).count().first()[1] == RECORDS


def test_a_flipped_bit_in_an_index_shows_no_other_records(spark: SparkSession, tmp_path: Path) -> None:
    """I7. The worst bit has the value of the segment's base offset: flipping it makes an absolute offset look like a relative one."""
    base, records = 1024, 100_000
    save(spark.range(0, base, 1, 1).selectExpr("CAST(id AS STRING) AS value"), tmp_path, "t", partitions=1)
    rows = spark.range(base, base + records, 1, 1).selectExpr("concat(id, repeat(' ', 40)) AS value")
    save(rows, tmp_path, "t", **{"batch.size": 16_384})
    [index] = tmp_path.glob("t-0/*1024.index")
    right = index.read_bytes()
    entry = len(right) // 16
    (last,) = struct.unpack_from(">i", right, 8 * entry)
    for bit in range(64):
        wrong = bytearray(right)
        wrong[8 * entry + (3 - bit // 8) % 8] ^= 1 << bit % 8
        index.write_bytes(wrong)
        (claimed,) = struct.unpack_from(">i", wrong, 8 * entry)
        for offset in {base + last, base + last + 100, base + claimed, base + claimed + 100, base + claimed + base + 100}:
            if base <= offset < base + records:
                table = sparklog.Log(tmp_path).topic("t").read(partition=0, start=offset, end=offset + 1)
                assert [int(value) for value in table["value"].to_pylist()] == [offset], f"bit {bit}, offset {offset}, in Python"
                if bit in (9, 10, 11, 42):
                    found = load(spark, tmp_path).where(f"`offset` = {offset}").collect()
                    assert [int(row["value"]) for row in found] == [offset], f"bit {bit}, offset {offset}, in Spark"
