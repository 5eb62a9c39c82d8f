"""Circumstances of a read or a write: other writers, the JVM's locale, and the existing records of a topic."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from logtool import LogTool
from pyspark.sql import DataFrame, SparkSession

import sparklog

pytestmark = pytest.mark.slow


def load(spark: SparkSession, root: Path, **options: object) -> DataFrame:
    return spark.read.format("partlog").options(**options).load(str(root))


def see_moments(spark: SparkSession, tool: LogTool) -> None:
    """While a writer commits: subqueries and both sides of a join and of a union see the same offsets; the next query sees later ones."""
    tool.run("append", tag="A")
    load(spark, tool.root, subscribe="t").createOrReplaceTempView("moments")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW moments_again USING partlog OPTIONS (path '{tool.root}', topic 't')")
    writer = tool.start("append", tag="B", commits=1_000_000, records=2)
    counts = []
    try:
        assert writer.stdout and writer.stdout.readline().startswith("done B-0 "), "the writer is at work before the first query"
        for _ in range(5):
            answers = spark.sql("""
                SELECT (SELECT count(*) FROM moments), (SELECT sum(1 + 0 * `offset`) FROM moments), (SELECT count(*) FROM moments_again),
                       (SELECT count(*) FROM moments m JOIN moments_again USING (partition, `offset`)),
                       (SELECT count(value) FROM (SELECT * FROM moments UNION ALL SELECT * FROM moments_again)) DIV 2
            """).first()
            assert len(set(answers)) == 1, answers
            counts.append(answers[0])
    finally:
        writer.kill()
        writer.communicate()
    assert counts == sorted(counts) and counts[0] < counts[-1], f"later queries see what was committed since: {counts}"


def test_a_query_sees_a_topic_at_one_moment(spark: SparkSession, java_classpath: str, tmp_path: Path) -> None:
    see_moments(spark, LogTool(java_classpath, tmp_path / "root"))


def test_a_query_over_connect_sees_a_topic_at_one_moment(connect: str, java_classpath: str, tmp_path: Path) -> None:
    """Connect plans a query before Spark gives its execution a number."""
    command = [sys.executable, __file__, connect, java_classpath, str(tmp_path / "root")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=400, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4_000:]


def test_a_function_of_a_stream_reads_what_it_wrote(spark: SparkSession, tmp_path: Path) -> None:
    """The function of foreachBatch runs within the micro-batch's execution, and a read of `rdd` does not begin one of its own."""
    counts = []

    def write_and_read(rows: DataFrame, batch: int) -> None:
        for _ in range(2):
            rows.selectExpr("CAST(value AS STRING) AS value").write.format("partlog").option("topic", "t").mode("append").save(
                str(tmp_path / "log")
            )
            counts.append(load(spark, tmp_path / "log").rdd.count())

    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    query = ticks.writeStream.foreachBatch(write_and_read).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        while len(counts) < 2:
            assert not query.awaitTermination(1)
    finally:
        query.stop()
    assert counts[:2] == [10, 20]


@contextmanager
def locale(spark: SparkSession, name: str) -> Iterator[None]:
    java = spark._jvm.java.util.Locale
    before = java.getDefault()
    java.setDefault(java.forLanguageTag(name))
    try:
        yield
    finally:
        java.setDefault(before)


@pytest.mark.parametrize("name", ["ar-EG-u-nu-arab", "fa-IR-u-nu-arabext", "my-MM-u-nu-mymr"])
def test_every_locale_writes_the_same_root(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Writes, reads and publishes in a locale with other digits, and in another beside it. All names on disk are ASCII."""
    root = tmp_path / "root"
    small = spark.range(100).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
    large = spark.range(2000).selectExpr("CAST(id AS STRING) AS key", "repeat('x', 2000) AS value")

    def write(rows: DataFrame, topic: str) -> None:
        rows.write.format("partlog").options(topic=topic, partitions=2).mode("append").save(str(root))

    write(small, "elsewhere")
    with locale(spark, name):
        assert not spark._jvm.java.text.NumberFormat.getInstance().format(7).isascii(), "this JVM has no such locale"
        write(small, "here")
        write(large, "here")
        write(large, "elsewhere")
        assert load(spark, root, subscribe="here,elsewhere").count() == 4200
        assert load(spark, root, subscribe="elsewhere").selectExpr("sum(length(value))").first()[0] == 190 + 4_000_000
        assert spark.sql(f"CALL partlog.publish(root => '{root}')").count() == 2
    assert {path.name for path in root.rglob("*") if not path.name.isascii()} == set()
    assert load(spark, root, subscribe="here").count() == 2100
    log = sparklog.Log(root)
    assert [log.topic(topic).describe()["records"] for topic in ("elsewhere", "here")] == [2100, 2100]


@pytest.mark.parametrize("tasks", [1, 4, 8])
def test_a_small_write_without_keys_leaves_a_partition_that_is_ahead_alone(spark: SparkSession, tmp_path: Path, tasks: int) -> None:
    """Partition 0 has twice the records of the others. A write that is smaller than the difference goes to the others in equal parts."""
    filled = spark.range(0, 5000, 1, 1).selectExpr("'v' AS value", "CAST(IF(id < 2000, 0, 1 + id % 3) AS INT) AS partition")
    filled.write.format("partlog").options(topic="t", partitions=4).mode("append").save(str(tmp_path))
    rows = spark.range(0, 80, 1, tasks).selectExpr("CAST(id AS STRING) AS value")
    rows.write.format("partlog").option("topic", "t").mode("append").save(str(tmp_path))
    written = load(spark, tmp_path).where("value <> 'v'").collect()
    found = Counter(row["partition"] for row in written)
    assert sum(found.values()) == 80
    assert found[0] == 0
    assert tasks == 1 or set(found) == {1, 2, 3}


def test_record_sizes_that_change_make_no_tiny_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """80 MB: 4,000 records of 20 KB, then 16,000 of one byte. Few tasks read a range of offsets, wherever it ends."""
    rows = spark.range(0, 20_000, 1, 1).selectExpr("repeat('x', IF(id < 4000, 20000, 1)) AS value")
    rows.write.format("partlog").options(topic="t", partitions=1, **{"batch.size": 16_384}).mode("append").save(str(tmp_path))
    for end in (3000, 4000, 5000, 10_000):
        some = load(spark, tmp_path, subscribe="t", endingOffsets=f'{{"t":{{"0":{end}}}}}')
        assert some.rdd.getNumPartitions() <= 24, f"up to offset {end}"
        assert some.count() == end


if __name__ == "__main__":
    server, classpath, root = sys.argv[1:]
    session = sparklog.session(conf={"spark.remote": server})
    see_moments(session, LogTool(classpath, Path(root)))
    session.stop()
