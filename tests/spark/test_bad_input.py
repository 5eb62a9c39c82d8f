"""Bad input to a write raises a clear error with its condition. Nothing is written or lost."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from handmade import featured
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sparklog


@pytest.fixture
def root(spark: SparkSession, tmp_path: Path) -> Path:
    """A root with ten records in topic t of four partitions."""
    save(spark.range(10).selectExpr("CAST(id AS STRING) AS value"), tmp_path / "root", partitions=4)
    return tmp_path / "root"


def save(rows: DataFrame, root: Path, **options: object) -> None:
    rows.write.format("partlog").options(**{"topic": "t", **options}).mode("append").save(str(root))


def files(root: Path) -> dict[str, bytes]:
    return {str(file.relative_to(root)): file.read_bytes() for file in sorted(root.rglob("*")) if file.is_file()}


VALUE = "'v' AS value"

ROWS = {
    "no value": (["'k' AS key"], "COLUMN_REQUIRED", "to_json(struct(*))"),
    "value of the wrong type": (["1 AS value"], "COLUMN_TYPE", "STRING or BINARY"),
    "key of the wrong type": ([VALUE, "1.5 AS key"], "COLUMN_TYPE", "`key`"),
    "partition of the wrong type": ([VALUE, "'1' AS partition"], "COLUMN_TYPE", "INT"),
    "timestamp of the wrong type": ([VALUE, "1 AS timestamp"], "COLUMN_TYPE", "TIMESTAMP"),
    "headers of the wrong type": ([VALUE, "map('a', 'b') AS headers"], "COLUMN_TYPE", "transform(map_entries(headers),"),
    "headers with other fields": (
        [VALUE, "array(named_struct('k', 'a', 'v', X'01')) AS headers"],
        "COLUMN_TYPE",
        "ARRAY<STRUCT<key: STRING,",
    ),
    "headers with one field twice": ([VALUE, "array(named_struct('key', 'a', 'KEY', X'01')) AS headers"], "COLUMN_TYPE", "value: BINARY>>"),
    "headers with a third field": (
        [VALUE, "array(named_struct('key', 'a', 'value', X'01', 'more', 1)) AS headers"],
        "COLUMN_TYPE",
        "value: BINARY>>",
    ),
    "headers the wrong way round": (
        [VALUE, "array(named_struct('value', 'a', 'key', X'01')) AS headers"],
        "COLUMN_TYPE",
        "value: BINARY>>",
    ),
    "a struct for value": (["struct(1 AS a) AS value"], "COLUMN_TYPE", "for example with to_json(value)."),
    "a time in milliseconds": ([VALUE, "1700000000000 AS timestamp"], "COLUMN_TYPE", "for example with timestamp_millis(timestamp)."),
    "a date for a time": ([VALUE, "current_date() AS timestamp"], "COLUMN_TYPE", "for example with CAST(timestamp AS TIMESTAMP)."),
    "an unknown column": ([VALUE, "1 AS user"], "COLUMN_UNKNOWN", "`user`"),
    "value twice": ([VALUE, "'w' AS VALUE"], "COLUMN_UNKNOWN", "at most once"),
    "partition beyond the last": ([VALUE, "4 AS partition"], "PARTITION_OUT_OF_RANGE", "0 to 3"),
    "negative partition": ([VALUE, "-1 AS partition"], "PARTITION_OUT_OF_RANGE", "partition -1"),
    "a time before 1970": ([VALUE, "timestamp_micros(-1) AS timestamp"], "TIMESTAMP_NEGATIVE", "1970"),
    "a header without key": (
        [VALUE, "array(named_struct('key', CAST(NULL AS STRING), 'value', CAST('x' AS BINARY))) AS headers"],
        "HEADER_KEY_NULL",
        "topic t",
    ),
    "a large record": (["repeat('x', 1100000) AS value"], "RECORD_TOO_LARGE", "max.message.bytes"),
}


@pytest.mark.parametrize("case", ROWS)
def test_rows(spark: SparkSession, root: Path, fails: Callable[..., str], case: str) -> None:
    columns, condition, says = ROWS[case]
    before = files(root)
    # If a row is at fault, it is the last row of the last task.
    bad = spark.range(0, 2_000, 1, 2).selectExpr(*columns)
    assert says in fails(condition, lambda: save(bad, root))
    assert files(root) == before


@pytest.mark.parametrize(
    "column",
    [
        "1.5 AS key",
        "struct(1 AS a) AS key",
        "map('a', 1) AS value",
        "array(1, 2) AS value",
        "parse_json('[1]') AS value",
        "'1' AS partition",
        "1700000000000 AS timestamp",
        "'2026-01-01' AS timestamp",
        "map('a', 'b', 'c', NULL) AS headers",
        "'a' AS headers",
    ],
)
def test_what_an_error_recommends_works(spark: SparkSession, tmp_path: Path, fails: Callable[..., str], column: str) -> None:
    rows = spark.range(1).selectExpr(*([column] if column.endswith(" value") else [VALUE, column]))
    said = fails("COLUMN_TYPE", lambda: save(rows, tmp_path)).splitlines()[0]
    advice = re.search(r"Column `(\w+)` has type .* Convert the column, for example with (.*)\.$", said)
    assert advice, said
    save(rows.withColumn(advice[1], F.expr(advice[2])), tmp_path)
    assert spark.read.format("partlog").load(str(tmp_path)).count() == 1


OPTIONS = {
    "a topic that leaves the root": ({"topic": "../x"}, "TOPIC_NAME_ILLEGAL", "../x"),
    "a topic of 300 characters": ({"topic": "a" * 300}, "TOPIC_NAME_ILLEGAL", "300"),
    "a dot": ({"topic": "."}, "TOPIC_NAME_ILLEGAL", "directory"),
    "no topic name": ({"topic": ""}, "TOPIC_NAME_ILLEGAL", "empty"),
    "a slash": ({"topic": "a/b"}, "TOPIC_NAME_ILLEGAL", "other characters"),
    "an unknown option": ({"partitons": 4}, "OPTION_UNKNOWN", "`partitions`"),
    "the name that other sources have": ({"compression": "zstd"}, "OPTION_UNKNOWN", "Did you mean `compression.type`?"),
    "an option's value": ({"partitions": "many"}, "OPTION_VALUE", "integer"),
    "a value out of range": ({"partitions": 0}, "OPTION_VALUE", "from 1"),
    "a codec": ({"compression.type": "brotli"}, "OPTION_VALUE", "zstd"),
    "other partitions": ({"partitions": 5}, "OPTION_CONTRADICTS_TOPIC", "has 4"),
    "another partitioner": ({"partitioner": "murmur2"}, "OPTION_CONTRADICTS_TOPIC", "murmur3"),
    "another codec": ({"compression.type": "zstd"}, "OPTION_CONTRADICTS_TOPIC", "none"),
    "a transaction's long name": (
        {"txnAppId": "ä" * 16_385, "txnVersion": 1},
        "OPTION_VALUE",
        "at most 32768 bytes in UTF-8, and has 32770",
    ),
    "half a transaction": ({"txnAppId": "job"}, "OPTION_VALUE", "txnVersion"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options(spark: SparkSession, root: Path, fails: Callable[..., str], case: str) -> None:
    options, condition, says = OPTIONS[case]
    before = files(root)
    assert says in fails(condition, lambda: save(spark.sql(f"SELECT {VALUE}"), root, **options))
    assert files(root) == before


def test_options_that_agree_are_taken(spark: SparkSession, root: Path) -> None:
    save(spark.sql(f"SELECT {VALUE}"), root, **{"partitions": 4, "compression.type": "uncompressed", "kafka.bootstrap.servers": "b:9092"})


def test_no_topic(spark: SparkSession, tmp_path: Path, fails: Callable[..., str]) -> None:
    rows = spark.sql(f"SELECT {VALUE}")
    fails("TOPIC_REQUIRED", lambda: rows.write.format("partlog").mode("append").save(str(tmp_path / "root")))
    fails(
        "TOPIC_NULL",
        lambda: (
            rows.selectExpr("value", "CAST(NULL AS STRING) AS topic").write.format("partlog").mode("append").save(str(tmp_path / "root"))
        ),
    )
    fails(
        "TOPIC_NAME_ILLEGAL",
        lambda: rows.selectExpr("value", "'a/b' AS topic").write.format("partlog").mode("append").save(str(tmp_path / "root")),
    )
    assert not list(tmp_path.rglob("*.json"))


def test_overwrite_is_refused_and_touches_nothing(spark: SparkSession, root: Path, fails: Callable[..., str]) -> None:
    before = files(root)
    rows = spark.sql(f"SELECT {VALUE}").write.format("partlog").option("topic", "t")
    assert 'mode("append")' in fails("SAVE_MODE", lambda: rows.mode("overwrite").save(str(root)))
    assert files(root) == before


def test_roots(spark: SparkSession, tmp_path: Path, fails: Callable[..., str]) -> None:
    rows = spark.sql(f"SELECT {VALUE}")
    file = tmp_path / "file"
    file.write_text("mine")
    fails("ROOT_NOT_A_DIRECTORY", lambda: save(rows, file))
    assert file.read_text() == "mine"
    fails("ROOT_NOT_WRITABLE", lambda: save(rows, file / "below"))
    fails("ROOT_NOT_WRITABLE", lambda: save(rows, Path("/proc/partlog")))
    for elsewhere in ("gs://bucket/root", f"file://host{tmp_path}/root"):
        fails("STORE_UNSUPPORTED", lambda root=elsewhere: rows.write.format("partlog").option("topic", "t").mode("append").save(root))
    said = fails("STORE_UNAVAILABLE", lambda: rows.write.format("partlog").option("topic", "t").mode("append").save("s3a://bucket/root"))
    assert "the package org.apache.hadoop:hadoop-aws" in said
    save(rows, Path(f"file:{tmp_path}/one"))
    rows.write.format("partlog").option("topic", "t").mode("append").save(f"file://{tmp_path}/two")
    rows.write.format("partlog").option("topic", "t").mode("append").save(f"file://localhost{tmp_path}/three")
    assert sorted(folder.name for folder in tmp_path.iterdir() if folder.is_dir()) == ["one", "three", "two"]


def test_directories_that_are_not_roots_give_the_same_errors_in_both_languages(
    spark: SparkSession, tmp_path: Path, root: Path, fails: Callable[..., str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broker" / "t-0").mkdir(parents=True)
    (tmp_path / "broker" / "meta.properties").write_text("")
    rows = spark.sql(f"SELECT {VALUE}")
    for place, condition in (
        (tmp_path / "nowhere", "ROOT_NOT_FOUND"),
        (tmp_path / "empty", "ROOT_WITHOUT_LOG"),
        (root / "t-0", "PARTITION_DIRECTORY"),
        (tmp_path / "broker", "BROKER_DIRECTORY"),
        (tmp_path / "broker" / "t-0", "BROKER_DIRECTORY"),
        ("~/log", "OPTION_VALUE"),
        ("file:log", "OPTION_VALUE"),
        ("gs://bucket/log", "STORE_UNSUPPORTED"),
        ("file://host/log", "STORE_UNSUPPORTED"),
    ):
        for options in ({}, {"subscribe": "t"}):
            said = fails(condition, lambda at=place, given=options: spark.read.format("partlog").options(**given).load(str(at)).count())
            with pytest.raises(sparklog.CallError) as caught:
                sparklog.Log(place)
            assert said.splitlines()[0].endswith(str(caught.value).splitlines()[0]), said
    for place, condition in ((root / "t-0", "PARTITION_DIRECTORY"), ("~/log", "OPTION_VALUE")):
        fails(condition, lambda at=place: save(rows, at))
    for name in ("u#1", "u?2", "u%41", "u 3"):
        save(rows, Path(f"file:{tmp_path}/{name}"))
        assert sparklog.Log(f"file:{tmp_path}/{name}").topic("t").end_offsets() == sparklog.Log(tmp_path / name).topic("t").end_offsets()
        assert spark.read.format("partlog").load(f"file:{tmp_path}/{name}").count() == 1


@pytest.mark.parametrize("file", ["meta.properties", "recovery-point-offset-checkpoint", "replication-offset-checkpoint"])
def test_a_brokers_directory_is_never_written_to(spark: SparkSession, tmp_path: Path, fails: Callable[..., str], file: str) -> None:
    (tmp_path / file).write_text("0\n0\n")
    (tmp_path / "t-0").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for root in (tmp_path, tmp_path / "t-0", tmp_path / "new"):
        assert file in fails("BROKER_DIRECTORY", lambda root=root: save(spark.sql(f"SELECT {VALUE}"), root))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_version_from_the_future_is_left_alone(spark: SparkSession, root: Path, fails: Callable[..., str]) -> None:
    import google_crc32c

    file = root / "_partlog/t/00000000000000000000.json"
    for change in ({"format": 2}, {"features": featured("slot-table", binds="readers")}):
        version = json.loads(file.read_text().splitlines()[0]) | change
        line = json.dumps(version).encode()
        future = root.with_name(f"future-{next(iter(change))}")
        (future / "_partlog/t").mkdir(parents=True)
        (future / "_partlog/t" / file.name).write_bytes(line + b"\ncrc32c:%08x\n" % google_crc32c.value(line))
        before = files(future)
        assert "Upgrade" in fails("FORMAT_TOO_NEW", lambda where=future: save(spark.sql(f"SELECT {VALUE}"), where))
        fails("FORMAT_TOO_NEW", lambda where=future: spark.read.format("partlog").load(str(where)).count())
        assert files(future) == before


def test_a_topic_with_the_routing_of_the_future_is_read_by_offset_alone(spark: SparkSession, root: Path, fails: Callable[..., str]) -> None:
    import google_crc32c

    file = root / "_partlog/t/00000000000000000000.json"
    line = json.dumps(json.loads(file.read_text().splitlines()[0]) | {"features": featured("routing.tables")}).encode()
    file.write_bytes(line + b"\ncrc32c:%08x\n" % google_crc32c.value(line))
    before = files(root)
    rows = spark.read.format("partlog").load(str(root))
    assert rows.count() == 10
    assert {row.value.decode() for row in rows.collect()} == {str(number) for number in range(10)}
    assert rows.where("key = X'31' OR value = X'33'").count() == 1
    assert rows.groupBy("key").count().collect()[0]["count"] == 10
    stream = spark.readStream.format("partlog").option("startingOffsets", "earliest").load(str(root))
    assert "routing.tables" in fails("FORMAT_TOO_NEW", lambda: save(spark.sql(f"SELECT {VALUE}"), root))
    for procedure, arguments in {
        "add_partitions": ", partitions => 5",
        "close_partitions": ", partitions => array(0)",
        "reroute": ", weights => '{\"0\": 2}'",
        "delete_records": ", offsets => '{\"0\": 1}'",
        "delete_topic": "",
        "expire": ", retention_ms => 1000",
        "merge": "",
        "move_slots": ", moves => map('1', 1)",
        "vacuum": "",
    }.items():
        for dry_run in ("true", "false"):
            call = f"CALL partlog.{procedure}(root => '{root}', topic => 't'{arguments}, dry_run => {dry_run})"
            assert "routing.tables" in fails("FORMAT_TOO_NEW", lambda call=call: spark.sql(call)), call
    with pytest.raises(StreamingQueryException, match=r"PARTLOG_FORMAT_TOO_NEW.*routing\.tables"):
        stream.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()
    assert files(root) == before


def test_a_damaged_log_is_not_written_to(spark: SparkSession, root: Path, fails: Callable[..., str]) -> None:
    file = root / "_partlog/t/00000000000000000000.json"
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 2] ^= 1
    file.write_bytes(whole)
    before = files(root)
    assert str(file.name) in fails("VERSION_CORRUPT", lambda: save(spark.sql(f"SELECT {VALUE}"), root))
    assert files(root) == before


def test_a_damaged_topic_is_the_trouble_of_its_own_rows_only(spark: SparkSession, root: Path, fails: Callable[..., str]) -> None:
    """Topics share nothing: damage of one topic stops neither writes to others by a topic column nor `publish`."""
    rows = spark.sql(f"SELECT {VALUE}, 'other' AS topic")
    rows.write.format("partlog").mode("append").save(str(root))
    [version] = root.glob("_partlog/t/*.json")
    version.write_bytes(version.read_bytes()[:-1])
    rows.write.format("partlog").mode("append").save(str(root))
    assert spark.read.format("partlog").option("subscribe", "other").load(str(root)).count() == 2
    before = files(root)
    both = rows.union(spark.sql(f"SELECT {VALUE}, 't' AS topic"))
    fails("VERSION_CORRUPT", lambda: both.write.format("partlog").mode("append").save(str(root)))
    assert spark.read.format("partlog").option("subscribe", "other").load(str(root)).count() == 2
    for file in root.glob("other-*/*"):
        file.unlink()
    assert version.name in fails("CALL_INCOMPLETE", lambda: spark.sql(f"CALL partlog.publish(root => '{root}')").collect())
    assert {name: content for name, content in files(root).items() if "other-" in str(name)} == {
        name: content for name, content in before.items() if "other-" in str(name)
    }


@pytest.mark.slow
def test_a_commit_beyond_the_limits_is_refused(spark: SparkSession, tmp_path: Path, fails: Callable[..., str]) -> None:
    """24 tasks with records of all 10,000 partitions would need a version file that exceeds the limits."""
    save(spark.sql(f"SELECT {VALUE}"), tmp_path, partitions=10_000)
    rows = spark.range(0, 240_000, 1, 24).selectExpr("cast(id % 10000 as int) AS partition", "cast(id AS string) AS value")
    assert "240000 segments" in fails("COMMIT_TOO_LARGE", lambda: save(rows, tmp_path))
    assert spark.read.format("partlog").load(str(tmp_path)).count() == 1
    assert not [file for file in tmp_path.glob("_partlog/t/data/*/*") if "pool" not in file.name]
