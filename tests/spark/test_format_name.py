"""`format("sparklog")` is `format("partlog")`: the product's name finds the connector too."""

import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import sparklog

CONNECT = """
import sys
from pyspark.sql import SparkSession
server, root, folder = sys.argv[1:]
spark = SparkSession.builder.remote(server).getOrCreate()
spark.range(4).selectExpr("CAST(id AS STRING) AS value").write.format("sparklog").option("topic", "t").mode("append").save(root)
rows = spark.readStream.format("sparklog").options(subscribe="t", startingOffsets="earliest").load(root)
sink = rows.writeStream.format("sparklog").options(topic="copy", checkpointLocation=folder)
sink.trigger(availableNow=True).start(root).awaitTermination()
print(spark.read.format("sparklog").option("subscribe", "copy").load(root).count())
"""


def records(root: Path, topic: str) -> int:
    """How many records the reader without Spark finds."""
    return sparklog.Log(root).topic(topic).read().num_rows


def test_reads_and_writes(spark: SparkSession, tmp_path: Path) -> None:
    root = str(tmp_path / "log")
    rows = spark.range(8).selectExpr("CAST(id AS STRING) AS key", "'v' AS value")
    rows.write.format("sparklog").options(topic="t", partitions=2).save(root)
    rows.write.format("sparklog").option("topic", "t").mode("append").save(root)
    assert records(tmp_path / "log", "t") == 16
    read = spark.read.format("sparklog").option("subscribe", "t").load(root)
    assert read.collect() == spark.read.format("partlog").option("subscribe", "t").load(root).collect()
    assert read.where("key = '3'").count() == 2


def test_a_session_setting_of_the_format_holds_for_both_names(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.datasource.partlog.partitions", "3")
    try:
        for name in ("partlog", "sparklog"):
            spark.range(1).selectExpr("'v' AS value").write.format(name).option("topic", name).mode("append").save(str(tmp_path))
    finally:
        spark.conf.unset("spark.datasource.partlog.partitions")
    assert [sparklog.Log(tmp_path).topic(name).partitions for name in ("partlog", "sparklog")] == [3, 3]


def test_a_query_goes_on_under_the_other_name(spark: SparkSession, tmp_path: Path) -> None:
    """The checkpoint does not hold the name of the format."""
    root = str(tmp_path / "log")
    for name in ("partlog", "sparklog", "partlog"):
        spark.range(4).selectExpr("CAST(id AS STRING) AS value").write.format(name).option("topic", "t").mode("append").save(root)
        source = spark.readStream.format(name).options(subscribe="t", startingOffsets="earliest").load(root)
        sink = source.writeStream.format(name).options(topic="copy", checkpointLocation=str(tmp_path / "checkpoint"))
        sink.trigger(availableNow=True).start(root).awaitTermination()
    assert records(tmp_path / "log", "copy") == 12


def test_sql(spark: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "log"
    spark.sql(f"CREATE TABLE by_other_name USING sparklog OPTIONS (path '{root}', topic 't', partitions 2)")
    try:
        spark.sql("INSERT INTO by_other_name (key, value) VALUES ('a', 'b'), ('c', NULL)")
        assert spark.table("by_other_name").count() == records(root, "t") == 2
    finally:
        spark.sql("DROP TABLE by_other_name")
    spark.sql(f"CREATE TABLE partlog.`{root}`.made USING sparklog AS SELECT 'v' AS value")
    spark.sql(f"CREATE TEMPORARY VIEW by_other_name USING sparklog OPTIONS (path '{root}', subscribe 'made')")
    assert spark.sql("SELECT count(*) FROM by_other_name").first()[0] == 1
    spark.sql("DROP VIEW by_other_name")


def test_connect(connect: str, tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", CONNECT, connect, str(tmp_path / "log"), str(tmp_path / "checkpoint")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "4", done.stderr
