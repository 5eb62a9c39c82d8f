"""`CALL partlog.rebuild` and `sparklog rebuild`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from handmade import Topic, featured, records
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from verifying import faults

from sparklog import Log

Call = Callable[[str], list[object]]


@pytest.fixture
def call(spark: SparkSession, tmp_path: Path) -> Call:
    return lambda text: [tuple(row) for row in spark.sql(f"CALL partlog.{text}".replace("{root}", str(tmp_path / "root"))).collect()]


def write(spark: SparkSession, root: Path, first: int, count: int, **options: object) -> None:
    rows = spark.range(first, first + count, numPartitions=1).selectExpr(
        "IF(id % 10 = 0, NULL, concat('k', id % 7)) AS key",
        "format_string('%06d', id) AS value",
        "array(named_struct('key', 'id', 'value', CAST(CAST(id AS STRING) AS BINARY))) AS headers",
        "timestamp_millis(1700000000000 + id) AS timestamp",
    )
    rows.write.format("partlog").options(topic="orders", includeHeaders="true", **options).mode("append").save(str(root))


@pytest.mark.parametrize("options", [{}, {"placement": "on_first_write"}, {"message.timestamp.type": "LogAppendTime"}], ids=str)
def test_a_rebuilt_topic_has_every_record_as_it_was(spark: SparkSession, call: Call, tmp_path: Path, options: dict[str, str]) -> None:
    root = tmp_path / "root"
    write(spark, root, 0, 500, partitions=3, **options)
    call("add_partitions('{root}', 'orders', 5)")
    write(spark, root, 500, 500)
    told = call("rebuild('{root}', 'orders', 'fewer', 2, dry_run => true)")
    assert Log(root).topics() == ["orders"]
    done = call("rebuild(root => '{root}', topic => 'orders', to => 'fewer', partitions => 2)")
    assert [row[:5] for row in done] == [row[:5] for row in told]
    assert sum(row[5] or 0 for row in done) == 1000
    columns = ["key", "value", "headers", "timestamp", "timestampType"]
    old, new = (Log(root)[topic].read(columns=[*columns, "partition", "offset"]).to_pylist() for topic in ("orders", "fewer"))
    assert sorted(repr([row[name] for name in columns]) for row in new) == sorted(repr([row[name] for name in columns]) for row in old)
    by_key: dict[bytes, list[bytes]] = {}
    for row in sorted(new, key=lambda row: (row["partition"], row["offset"])):
        if row["key"] is not None:
            by_key.setdefault(row["key"], []).append(row["value"])
    assert len(by_key) == 7
    assert all(values == sorted(values) for values in by_key.values())
    assert faults(root) == []
    write(spark, root, 1000, 10)
    key = next(iter(by_key)).decode()
    table = spark.read.format("partlog").option("subscribe", "fewer").load(str(root))
    assert table.where(f"key = '{key}'").count() == len(by_key[key.encode()])
    assert {row["partition"] for row in new if row["key"] == key.encode()} == {Log(root)["fewer"].partition_for(key.encode())}


@pytest.mark.parametrize(
    ("arguments", "condition"),
    [
        ("'orders', 'orders', 2", "PARTLOG_TOPIC_EXISTS"),
        ("'none', 'new', 2", "PARTLOG_TOPIC_NOT_FOUND"),
        ("'orders', 'new', 0", "PARTLOG_ARGUMENT_VALUE"),
        ("'orders', 'new', 10001", "PARTLOG_ARGUMENT_VALUE"),
        ("'orders', 'no/name', 2", "PARTLOG_TOPIC_NAME_ILLEGAL"),
    ],
)
def test_bad_input_changes_nothing(spark: SparkSession, call: Call, tmp_path: Path, arguments: str, condition: str) -> None:
    write(spark, tmp_path / "root", 0, 10)
    before = {path: path.read_bytes() for path in (tmp_path / "root").rglob("*") if path.is_file()}
    with pytest.raises(PySparkException) as refused:
        call(f"rebuild('{{root}}', {arguments})")
    assert refused.value.getCondition() == condition
    assert {path: path.read_bytes() for path in (tmp_path / "root").rglob("*") if path.is_file()} == before


def test_a_dry_run_is_refused_where_the_call_is(spark: SparkSession, call: Call, tmp_path: Path) -> None:
    """The version that deleted the other topic has a feature of a later release, which binds its writers."""
    root = tmp_path / "root"
    write(spark, root, 0, 10)
    other = Topic(root, "other")
    other.append(records(2))
    other.put(other.deletion() | {"features": featured("ledger")})
    for dry_run in ("true", "false"):
        with pytest.raises(PySparkException) as refused:
            call(f"rebuild('{{root}}', 'orders', 'other', 2, dry_run => {dry_run})")
        assert refused.value.getCondition() == "PARTLOG_FORMAT_TOO_NEW"
    assert len(list(other.folder.glob("*.json"))) == 2
