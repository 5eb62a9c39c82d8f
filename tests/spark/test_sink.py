"""`df.write.format("partlog")`: records come back as they were written, in order, and small writes stay small on disk."""

import json
from collections.abc import Callable
from pathlib import Path

import mmh3
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

import sparklog

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]

# Keys that repeat, are empty or null; values that are null, empty or long; headers that are absent, null, repeated,
# null-valued or not ASCII; times from 0 on.
EVENTS = """
    SELECT id AS n,
           CASE WHEN id % 11 = 0 THEN NULL WHEN id % 13 = 0 THEN '' ELSE concat('k', id % 1009) END AS key,
           CASE WHEN id % 7 = 0 THEN NULL WHEN id % 17 = 0 THEN ''
                ELSE concat('v', id, repeat('é', CAST(id % 23 AS INT))) END AS value,
           CASE WHEN id % 5 = 0 THEN NULL
                WHEN id % 5 = 1 THEN CAST(array() AS ARRAY<STRUCT<key: STRING, value: BINARY>>)
                ELSE array(named_struct('key', 'h', 'value', CAST(CAST(id AS STRING) AS BINARY)),
                           named_struct('key', 'h', 'value', CAST(NULL AS BINARY)),
                           named_struct('key', 'ключ', 'value', CAST('' AS BINARY)))
           END AS headers,
           CASE WHEN id % 3 = 0 THEN timestamp_millis(0) ELSE timestamp_millis(1700000000000 + id) END AS timestamp
    FROM range(0, {records}, 1, {tasks})
"""


def save(rows: DataFrame, root: Path, topic: str = "t", **options: object) -> None:
    rows.write.format("partlog").option("topic", topic).options(**options).mode("append").save(str(root))


def load(spark: SparkSession, root: Path, **options: object) -> DataFrame:
    return spark.read.format("partlog").options(**options).load(str(root))


def newest(root: Path, topic: str = "t") -> dict:
    file = sorted((root / "_partlog" / topic).glob("*.json"))[-1]
    return json.loads(file.read_text().splitlines()[0])


def compare(spark: SparkSession, events: DataFrame, log: DataFrame) -> None:
    """Equal in count, content and order per key."""
    columns = ["key", "value", "headers", "timestamp"]

    def placed(rows: DataFrame, *order: str) -> DataFrame:
        by_key = F.row_number().over(Window.partitionBy("key").orderBy(*order))
        # For Kafka, null headers and no headers are the same. Records without a key are not ordered.
        return rows.select(
            "key",
            "value",
            F.coalesce("headers", F.expr("CAST(array() AS ARRAY<STRUCT<key: STRING, value: BINARY>>)")).alias("headers"),
            "timestamp",
            F.when(F.col("key").isNotNull(), by_key).alias("place"),
        )

    source = placed(events.select("n", *columns), "n")
    back = placed(
        log.select(F.col("key").cast("string"), F.col("value").cast("string"), "headers", "timestamp", "partition", "offset"), "offset"
    )
    digest = F.xxhash64("key", "value", F.to_json("headers"), "timestamp", "place")
    sums = [F.count("*"), F.sum(digest.cast("decimal(38,0)")), F.bit_xor(digest)]
    assert source.agg(*sums).first() == back.agg(*sums).first()


def is_dense(log: DataFrame) -> bool:
    rows = log.groupBy("topic", "partition").agg(F.count("*").alias("n"), F.count_distinct("offset").alias("d"), F.max("offset").alias("m"))
    return all(row["n"] == row["d"] == row["m"] + 1 for row in rows.collect())


def round_trip(spark: SparkSession, root: Path, records: int, codec: str) -> None:
    events = spark.sql(EVENTS.format(records=records, tasks=4))
    save(events.drop("n"), root, **{"compression.type": codec, "partitions": 5})
    log = load(spark, root)
    assert log.count() == records
    assert is_dense(log)
    compare(spark, events, log)


@pytest.mark.parametrize("codec", CODECS)
def test_round_trip(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    round_trip(spark, tmp_path / "root", 60_000, codec)


@pytest.mark.soak
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_round_trip_of_ten_million(spark: SparkSession, tmp_path: Path, codec: str) -> None:
    round_trip(spark, tmp_path / "root", 10_000_000, codec)


def test_order_within_a_task_and_of_tasks_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    """With one partition the log is the DataFrame, row after row."""
    root = tmp_path / "root"
    save(spark.range(0, 50_000, 1, 7).selectExpr("CAST(id AS STRING) AS value"), root, partitions=1)
    rows = load(spark, root).orderBy("offset").select(F.col("value").cast("string").cast("long")).collect()
    assert [row[0] for row in rows] == list(range(50_000))


def test_sorted_rows_are_written_as_they_come(spark: SparkSession, tmp_path: Path) -> None:
    """After a sort, rows are in pages of Spark's memory and not in arrays of their own. The next row may be longer or shorter."""
    root = tmp_path / "root"
    events = spark.sql(EVENTS.format(records=5_000, tasks=3)).where("value LIKE 'v%'").drop("n")
    ordered = events.coalesce(1).sortWithinPartitions(F.reverse("value"), ascending=False)
    save(ordered, root, partitions=1)
    # For Kafka, null headers and no headers are the same.
    headers = "CASE WHEN size(headers) > 0 THEN headers END"
    columns = ["CAST(key AS STRING)", "CAST(value AS STRING)", headers, "timestamp"]
    back = load(spark, root).orderBy("offset").selectExpr(*columns)
    assert_df_equality(back, ordered.selectExpr(*columns), ignore_nullable=True)


def test_the_buffer_is_kept_and_order_with_it(spark: SparkSession, tmp_path: Path) -> None:
    """A task that spills 20 times, into several segments: the same rows in the same order."""
    root = tmp_path / "root"
    rows = spark.range(0, 20_000, 1, 2).selectExpr("CAST(id % 10 AS STRING) AS key", "concat(id, ':', repeat('x', 1000)) AS value")
    save(rows, root, **{"write.buffer.bytes": 1 << 20, "batch.size": 50_000, "segment.bytes": 700_000, "partitions": 3})
    log = load(spark, root)
    assert log.count() == 20_000
    assert is_dense(log)
    order = log.selectExpr(
        "partition", "offset", "CAST(key AS STRING) AS key", "CAST(split_part(CAST(value AS STRING), ':', 1) AS LONG) AS n"
    )
    after = F.lag("n").over(Window.partitionBy("key").orderBy("offset"))
    assert order.withColumn("before", after).where("before >= n").count() == 0
    segments = list(root.glob("t-*/*.log"))
    assert max(file.stat().st_size for file in segments) <= 700_000
    assert len(segments) >= 20_000_000 // 700_000


def test_large_values_need_a_larger_max_message_bytes(spark: SparkSession, tmp_path: Path, fails: Callable[..., str]) -> None:
    values = spark.range(0, 100, 1, 2).selectExpr("concat(id, ':', repeat('x', 1048576 - length(concat(id, ':')))) AS value")
    text = fails("RECORD_TOO_LARGE", lambda: save(values, tmp_path / "small"))
    assert "max.message.bytes" in text
    assert "topic t" in text
    assert "1048576" in text
    assert not list((tmp_path / "small").rglob("*.json"))
    save(values, tmp_path / "large", **{"max.message.bytes": 2_000_000})
    log = load(spark, tmp_path / "large")
    assert log.where("length(value) = 1048576").count() == 100
    assert log.selectExpr("CAST(split_part(CAST(value AS STRING), ':', 1) AS INT) AS n").distinct().count() == 100


def test_keys_lie_where_mmh3_says(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "root"
    save(spark.range(5_000).selectExpr("CASE WHEN id = 0 THEN '' ELSE concat('key', id) END AS key", "'v' AS value"), root, partitions=12)
    for row in load(spark, root).select(F.col("key").cast("string"), "partition").collect():
        assert row["partition"] == (mmh3.hash(row["key"], signed=False) & 0x7FFFFFFF) % 12


def test_an_explicit_partition_wins_and_null_does_not(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "root"
    rows = spark.range(1_000).selectExpr(
        "CAST(id AS STRING) AS key", "'v' AS value", "CASE WHEN id % 2 = 0 THEN CAST(id % 3 AS INT) END AS partition"
    )
    save(rows, root, partitions=4)
    for row in load(spark, root).select(F.col("key").cast("string"), "partition").collect():
        key = row["key"]
        routed = (mmh3.hash(key, signed=False) & 0x7FFFFFFF) % 4
        assert row["partition"] == (int(key) % 3 if int(key) % 2 == 0 else routed)
    assert not any(segment["routed"] for segment in newest(root)["added"] if segment["partition"] < 3)
    assert all(segment["routed"] for segment in newest(root)["added"] if segment["partition"] == 3)


def test_many_small_tasks_leave_one_data_file(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "root"
    rows = spark.range(0, 200_000, 1, 200).selectExpr("concat('value ', id) AS value", "CAST(id % 100 AS INT) AS partition")
    save(rows, root, partitions=100)
    data = [file for file in (root / "_partlog").rglob("*.log") if file.is_file()]
    assert len(data) == 1
    assert len(newest(root)["added"]) <= 100
    log = load(spark, root)
    assert log.count() == 200_000
    assert is_dense(log)
    assert log.where("CAST(substr(CAST(value AS STRING), 7) AS LONG) % 100 != partition").count() == 0


def test_null_keys_end_level(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "root"
    save(spark.range(0, 2_000, 1, 200).selectExpr("CAST(id AS STRING) AS value"), root, partitions=8)
    counts = [row["count"] for row in load(spark, root).groupBy("partition").count().collect()]
    assert len(counts) == 8
    assert max(counts) <= 1.1 * min(counts), counts


def test_null_keys_fill_up_the_emptiest(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "root"
    save(spark.range(4_000).selectExpr("CAST(id AS STRING) AS value", "CAST(0 AS INT) AS partition"), root, partitions=2)
    save(spark.range(0, 4_000, 1, 4).selectExpr("CAST(id AS STRING) AS value"), root, **{"batch.size": 1_000})
    counts = {row["partition"]: row["count"] for row in load(spark, root).groupBy("partition").count().collect()}
    assert abs(counts[0] - counts[1]) < 800, counts


def test_a_topic_column_writes_several_topics(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "root"
    rows = spark.range(0, 3_000, 1, 3).selectExpr("CAST(id AS STRING) AS value", "concat('topic', id % 3) AS topic")
    rows.write.format("partlog").option("partitions", 2).mode("append").save(str(root))
    rows.write.format("partlog").mode("append").save(str(root))
    log = load(spark, root)
    assert {(row["topic"], row["count"]) for row in log.groupBy("topic").count().collect()} == {(f"topic{i}", 2_000) for i in range(3)}
    assert log.where("CAST(CAST(value AS STRING) AS INT) % 3 != CAST(right(topic, 1) AS INT)").count() == 0
    assert is_dense(log)


def test_what_was_read_can_be_written(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.sql(EVENTS.format(records=500, tasks=2)).drop("n"), tmp_path / "one")
    log = load(spark, tmp_path / "one")
    save(log, tmp_path / "other", topic="copy")
    columns = ["key", "value", "partition", "timestamp", "headers"]
    assert log.count() == 500
    assert_df_equality(load(spark, tmp_path / "other").select(columns), log.select(columns), ignore_row_order=True)


def test_timestamps_are_floored_to_ms_and_filled_in(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "root"
    save(spark.sql("SELECT 'a' AS value, timestamp_micros(1234567) AS timestamp UNION ALL SELECT 'b', NULL"), root, partitions=1)
    times = {bytes(row["value"]): row["us"] for row in load(spark, root).selectExpr("value", "unix_micros(timestamp) AS us").collect()}
    assert times[b"a"] == 1_234_000
    assert abs(times[b"b"] / 1e3 - newest(root)["time"]) < 600_000


def test_log_append_time_is_one_time_for_a_write(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "root"
    rows = spark.range(0, 1_000, 1, 3).selectExpr("CAST(id AS STRING) AS value", "timestamp_millis(5) AS timestamp")
    save(rows, root, **{"message.timestamp.type": "LogAppendTime"})
    (row,) = load(spark, root).groupBy("timestampType", F.unix_millis("timestamp").alias("ms")).count().collect()
    assert (row["timestampType"], row["count"]) == (1, 1_000)
    assert row["ms"] > 1_700_000_000_000


def test_an_empty_dataframe_creates_the_topic_and_then_nothing(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "root"
    empty = spark.range(0).selectExpr("CAST(id AS STRING) AS value")
    save(empty, root, partitions=3)
    assert newest(root)["ends"] == {}
    save(empty, root)
    assert newest(root)["version"] == 0
    assert load(spark, root).count() == 0


def test_a_user_transaction_is_applied_once(spark: SparkSession, tmp_path: Path) -> None:
    """I3: also if other writes came between."""
    root = tmp_path / "root"
    rows = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
    for version in (1, 1, 2, 1, 2):
        save(rows, root, txnAppId="job", txnVersion=version)
        save(rows, root)
    assert load(spark, root).count() == (2 + 5) * 10


def test_sql_without_a_catalog(spark: SparkSession, tmp_path: Path, fails: Callable[..., str]) -> None:
    root = tmp_path / "root"
    spark.sql(f"CREATE TABLE sink_sql USING partlog OPTIONS (path '{root}', topic 't', partitions 2)")
    try:
        spark.sql("INSERT INTO sink_sql (key, value) VALUES ('a', 'b'), ('c', NULL)")
        spark.sql("INSERT INTO sink_sql BY NAME SELECT 'd' AS value")
        assert spark.table("sink_sql").count() == 3
        assert newest(root)["version"] == 1
        spark.range(5).selectExpr("CAST(id AS STRING) AS value").writeTo("sink_sql").append()
        assert spark.read.table("sink_sql").where("key IS NULL").count() == 6
        fails("COLUMN_REQUIRED", lambda: spark.sql("INSERT INTO sink_sql VALUES ('a', 'b')"))
    finally:
        spark.sql("DROP TABLE sink_sql")


def test_publish_rebuilds_the_view(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "root"
    save(spark.range(1_000).selectExpr("CAST(id AS STRING) AS value"), root, partitions=2)
    before = {file.relative_to(root): file.read_bytes() for file in root.glob("t-*/*")}
    assert len(before) == 6
    # Damage that keeps the length is found too. These small segments are copies, so the records are not affected.
    for file in root.glob("t-1/*"):
        if content := bytearray(file.read_bytes()):
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
    assert load(spark, root).count() == load(spark, root).select("value").distinct().count() == 1_000
    for file in root.glob("t-0/*"):
        file.unlink()
    (root / "t-0" / "00000000000000000777.log").write_bytes(b"left behind")
    assert load(spark, root).count() == 1_000
    rows = spark.sql(f"CALL partlog.publish(root => '{root}')").collect()
    assert [tuple(row) for row in rows] == [("t", 2)]
    assert {file.relative_to(root): file.read_bytes() for file in root.glob("t-*/*")} == before
    assert [tuple(row) for row in spark.sql(f"CALL partlog.publish('{root}', 't')").collect()] == [("t", 0)]


def test_a_table_without_a_path_holds_nothing(spark: SparkSession, fails: Callable[..., str]) -> None:
    """Spark would create the table in a folder of its own without asking. Dropping or replacing the table would delete the log."""
    spark.sql("CREATE TABLE sink_managed USING partlog OPTIONS (topic 't')")
    try:
        assert "LOCATION" in fails("ROOT_REQUIRED", lambda: spark.sql("INSERT INTO sink_managed (value) VALUES ('v')"))
        fails("ROOT_REQUIRED", lambda: spark.table("sink_managed").count())
    finally:
        spark.sql("DROP TABLE sink_managed")


def test_fields_of_headers_count_by_name(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql(
        "SELECT 'v' AS value, array(named_struct('VALUE', X'0102', 'Key', 'trace'), named_struct('VALUE', NULL, 'Key', '')) AS headers"
    )
    save(rows, tmp_path)
    given = spark.read.format("partlog").load(str(tmp_path)).select("headers").first()["headers"]
    assert [(header["key"], header["value"]) for header in given] == [("trace", b"\x01\x02"), ("", None)]
    [headers] = sparklog.Log(tmp_path).topic("t").read()["headers"].to_pylist()
    assert headers == [{"key": "trace", "value": b"\x01\x02"}, {"key": "", "value": None}]
