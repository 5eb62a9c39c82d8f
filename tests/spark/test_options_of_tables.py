"""Options and properties that have no meaning for a table are refused, and change nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import sparklog


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The root of the catalog `asked`, with a topic of two versions after its creation."""
    root = str(tmp_path_factory.mktemp("options") / "log")
    sparklog.attach(spark, "asked", root)
    spark.sql("CREATE TABLE asked.t (key STRING, value STRING) TBLPROPERTIES ('partitions' = '1')")
    for value in "12":
        spark.sql(f"INSERT INTO asked.t (key, value) VALUES ('k', '{value}')")
    return root


def condition(action: Callable[[], object]) -> str | None:
    with pytest.raises(PySparkException) as refused:
        action()
    return refused.value.getCondition()


@pytest.mark.parametrize("then", [{"versionAsOf": "1"}, {"timestampAsOf": "2001-01-01"}])
def test_the_format_does_not_travel_in_time(spark: SparkSession, root: str, tmp_path: Path, then: dict[str, str]) -> None:
    rows = spark.sql("SELECT 'v' AS value")
    save = rows.write.format("partlog").options(topic="new", **then)
    stream = spark.readStream.format("partlog").load(root).select("value").writeStream.format("partlog")
    start = stream.options(topic="new", checkpointLocation=str(tmp_path / "checkpoint"), **then).start
    for action in (
        lambda: spark.read.format("partlog").options(**then).load(root).count(),
        lambda: spark.readStream.format("partlog").options(**then).load(root),
        lambda: save.save(root),
        lambda: save.mode("append").save(root),
        lambda: start(root).awaitTermination(120),
    ):
        assert condition(action) == "PARTLOG_OPTION_VALUE"
    assert sparklog.Log(root).topics() == ["t"]
    assert spark.read.option("versionAsOf", 1).table("asked.t").count() == 1


@pytest.mark.parametrize("then", [{"versionAsOf": "1"}, {"timestampAsOf": "2100-01-01"}])
def test_a_stream_is_not_of_an_earlier_version(spark: SparkSession, root: str, then: dict[str, str]) -> None:
    """Spark itself has no error for it, only an assertion that fails."""
    for table in ("asked.t", f"partlog.`{root}`.t"):
        with pytest.raises(PySparkException, match="startingOffsets or startingTimestamp") as refused:
            spark.readStream.options(**then).table(table)
        assert refused.value.getCondition() == "PARTLOG_STATEMENT_UNSUPPORTED"
        with pytest.raises(PySparkException, match="startingOffsets or startingTimestamp"):
            spark.readStream.format("partlog").options(**then).load(root)


def test_a_save_that_fails_leaves_nothing_to_the_next_statement(spark: SparkSession, tmp_path: Path) -> None:
    """About the same topic, on the same thread. A save makes columns of bytes, a statement of text."""
    root = f"{tmp_path}/root"
    save = spark.sql("SELECT 'k' AS key, 'v' AS value").write.format("partlog").option("topic", "t")
    with pytest.raises(PySparkException):
        save.partitionBy("nothing").save(root)
    spark.sql(f"CREATE TABLE partlog.`{root}`.t AS SELECT 'k' AS key, 'v' AS value")
    assert sparklog.Log(root).topic("t").config["value.type"] == "string"
    read = spark.read.format("partlog").load(root).selectExpr("string(key) AS key", "string(value) AS value")
    read.write.format("partlog").option("topic", "u").save(root)
    assert "value.type" not in sparklog.Log(root).topic("u").config


def test_a_table_about_a_topic_takes_no_options(spark: SparkSession, root: str) -> None:
    for table in ("commits", "partitions", "segments"):
        assert spark.table(f"asked.t.{table}").count() > 0
        assert condition(spark.read.option("startingOffsets", "latest").table(f"asked.t.{table}").count) == "PARTLOG_OPTION_CONFLICT"
        assert condition(spark.read.option("startngOffsets", "latest").table(f"asked.t.{table}").count) == "PARTLOG_OPTION_UNKNOWN"


def test_a_property_is_checked_whatever_its_name_begins_with(spark: SparkSession, root: str) -> None:
    assert condition(lambda: spark.sql("CREATE TABLE asked.bad TBLPROPERTIES ('option.partitions' = '3')")) == "PARTLOG_OPTION_UNKNOWN"
    assert sparklog.Log(root).topics() == ["t"]
