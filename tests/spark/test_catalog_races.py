"""Tables of a catalog while other statements and processes create and drop them: an error or the rows of one topic, never a mixture."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from logtool import LogTool
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark.held import Held

import sparklog


class Table:
    """Topic t of a root of its own, as `name` in SQL."""

    def __init__(self, spark: SparkSession, catalog: str, tool: LogTool) -> None:
        sparklog.attach(spark, catalog, str(tool.root))
        self.spark, self.name, self.tool = spark, f"{catalog}.t", tool

    def create(self, prefix: str, partitions: int = 4, records: int = 400) -> None:
        """Creates it with records `<prefix>-<number>` in each partition, through Spark."""
        self.spark.sql(f"CREATE TABLE {self.name} (key STRING, value STRING) TBLPROPERTIES ('partitions' = '{partitions}')")
        self.insert(prefix, partitions, records)

    def insert(self, prefix: str, partitions: int = 4, records: int = 400) -> None:
        self.spark.sql(
            f"INSERT INTO {self.name} (partition, value) "
            f"SELECT CAST(id % {partitions} AS INT) AS partition, concat('{prefix}-', id) AS value FROM range(0, {records}, 1, 1)"
        )

    def again(self, prefix: str) -> None:
        """Drops it, and creates another with twice the records."""
        self.spark.sql(f"DROP TABLE {self.name}")
        self.create(prefix, records=800)

    @property
    def version(self) -> int:
        return int(sparklog.Log(self.tool.root).topic("t").commits()[-1].version)


@pytest.fixture
def table(spark: SparkSession, java_classpath: str, tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    catalog = f"races_{abs(hash(request.node.name)) % 10**9}"
    return Table(spark, catalog, LogTool(java_classpath, tmp_path / "root"))


def prefixes(values: list[str]) -> set[str]:
    return {value.partition("-")[0] for value in values}


def test_a_scan_that_was_planned_reads_the_topic_that_is_gone_or_fails(table: Table) -> None:
    """All jobs are of one plan; the first reads a partition before the topic is dropped and created again, the others after that."""
    table.create("old")
    rows = table.spark.table(table.name).select("partition", "value").toLocalIterator()
    seen = [next(rows).value]
    table.again("new")
    with pytest.raises(Exception, match="PARTLOG_TOPIC_REPLACED"):  # Py4J's own
        seen.extend(row.value for row in rows)
    assert prefixes(seen) == {"old"}
    assert len(seen) < 400
    assert table.spark.table(table.name).count() == 800


def test_a_cached_plan_never_mixes_two_topics(table: Table, fails: Callable[..., str]) -> None:
    """Part of it is in memory when another process drops the topic, of which Spark hears nothing."""
    table.create("old")
    frame = table.spark.table(table.name).select("partition", "value").cache()
    try:
        assert frame.where("partition = 0").first().value.startswith("old")
        table.tool.run("change", what="delete")
        table.tool.run("append", tag="new")
        fails("TOPIC_REPLACED", lambda: frame.count())
    finally:
        frame.unpersist()


def test_a_dataframe_reads_the_topic_that_has_the_name_when_it_first_runs(table: Table, fails: Callable[..., str]) -> None:
    """After that it has a plan, which is of that topic."""
    table.create("old")
    never, again = (table.spark.table(table.name).select("value") for _ in range(2))
    joined = never.alias("a").join(never.alias("b"), "value")
    assert prefixes([row.value for row in again.collect()]) == {"old"}
    table.again("new")
    assert prefixes([row.value for row in never.collect()]) == {"new"}
    assert joined.count() == 800
    fails("TOPIC_REPLACED", again.collect)
    late = table.spark.table(table.name).select("value")
    table.spark.sql(f"DROP TABLE {table.name}")
    with pytest.raises(PySparkException) as caught:
        late.collect()
    assert caught.value.getCondition() in ("PARTLOG_TOPIC_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND"), str(caught.value)


def test_an_earlier_version_of_a_topic_that_is_gone_is_not_read_from_another(table: Table, fails: Callable[..., str]) -> None:
    table.create("old")
    version = table.version
    by_number = table.spark.sql(f"SELECT value FROM {table.name} VERSION AS OF {version}")
    by_time = table.spark.sql(f"SELECT value FROM {table.name} TIMESTAMP AS OF now()")
    counted = table.spark.sql(f"SELECT count(*) FROM {table.name} VERSION AS OF {version}")
    table.again("new")
    for frame in (by_number, by_time, counted):
        fails("TOPIC_REPLACED", frame.collect)


def test_a_stream_from_a_table_ends_where_another_topic_begins(table: Table, tmp_path: Path) -> None:
    table.create("old")
    values: list[str] = []
    source = table.spark.readStream.option("startingOffsets", "earliest").table(table.name)
    query = (
        source.writeStream.foreachBatch(lambda batch, _: values.extend(row.value for row in batch.select("value").collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    query.processAllAvailable()
    table.again("new")
    with pytest.raises(PySparkException) as caught:
        query.processAllAvailable()
    assert "PARTLOG_STREAM_TOPIC_REPLACED" in str(caught.value) or "PARTLOG_STREAM_TOPIC_GONE" in str(caught.value)
    assert (prefixes(values), len(values)) == ({"old"}, 400)


def test_a_write_that_was_planned_writes_to_its_own_topic_or_fails(table: Table, fails: Callable[..., str], tmp_path: Path) -> None:
    table.create("old")
    task = Held(table.spark, tmp_path / "held")
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(table.spark.sql, f"INSERT INTO {table.name} (value) SELECT held('late') AS value FROM range(1)")
        try:
            task.wait_for("late")
            table.again("new")
        finally:
            task.go_on()
        fails("TOPIC_RECREATED", slow.result)
    assert prefixes([row.value for row in table.spark.table(table.name).collect()]) == {"new"}


@pytest.mark.parametrize("other", ["another CTAS", "CREATE TABLE", "a first write", "the same, with other settings"])
def test_one_of_two_that_create_a_table_at_once_does(table: Table, other: str, tmp_path: Path) -> None:
    """Nothing is there when both begin. The one that commits last finds the other's topic, and leaves nothing of its own."""
    ctas = f"CREATE TABLE {table.name} TBLPROPERTIES ('partitions' = '3') AS SELECT held('{{value}}') AS value FROM range(1)"
    task = Held(table.spark, tmp_path / "held")
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(table.spark.sql, ctas.format(value="one"))]
        try:
            if other == "another CTAS":
                both.append(pool.submit(table.spark.sql, ctas.format(value="two")))
                task.wait_for("one", "two")
            else:
                task.wait_for("one")
                if other == "CREATE TABLE":
                    table.spark.sql(f"CREATE TABLE {table.name}")
                else:
                    table.tool.run("append", tag="two", partitions=3 if other == "a first write" else 5)
        finally:
            task.go_on()
        errors = [each.exception() for each in both]
    conditions = [error.getCondition() for error in errors if isinstance(error, PySparkException)]
    assert len(conditions) == sum(error is not None for error in errors) == 1, errors
    assert conditions[0] in ("PARTLOG_TOPIC_EXISTS", "TABLE_OR_VIEW_ALREADY_EXISTS")
    rows = [bytes(row.value).decode() for row in table.spark.sql(f"SELECT CAST(value AS BINARY) AS value FROM {table.name}").collect()]
    expected = {"another CTAS": [["one"], ["two"]], "CREATE TABLE": [[]]}
    if other in expected:
        assert rows in expected[other]
    else:
        assert len(rows) == 20 and "one" not in rows
    assert table.version == 0
