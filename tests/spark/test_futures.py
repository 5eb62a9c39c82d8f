"""Spark on additions of a later release: reads, scans and joins by key, and streams answer by the table that all other readers keep."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from foreign.futures import CASES, CORRUPT, KEY, NEW, OK, Future, in_a_checkpoint, rows, topic_with
from handmade import Topic
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession

import sparklog

Found = list[tuple[int, int, bytes, bytes]]
COLUMNS = ("partition", "offset", "key", "value")


class Made(NamedTuple):
    root: Path
    topics: dict[str, tuple[Topic, Future]]
    """By what each has of tomorrow."""

    def differences(
        self, rows_of: Callable[[str], list[Row]], expected: Callable[[Future], str], key: bytes | None = None
    ) -> dict[str, object]:
        """The topics with another answer than the expected one: all records, or those of a key, or the id of an error.

        The topics that must be read are read as one.
        """
        going = [topic.name for topic, future in self.topics.values() if expected(future) == OK]
        together = rows_of(",".join(going))
        differ: dict[str, object] = {}
        for what, (topic, future) in self.topics.items():
            if topic.name in going:
                here = found([row for row in together if row["topic"] == topic.name])
                right: object = [row for row in rows(topic, future) if key in (None, row[2])]
            else:
                here, right = refused(topic, future, lambda: rows_of(topic.name)), expected(future)  # noqa: B023
            if here != right:
                differ[what] = (here, right)
        return differ

    def read(self, spark: SparkSession, topics: str) -> DataFrame:
        return spark.read.format("partlog").option("subscribe", topics).load(str(self.root)).select("topic", *COLUMNS)


@pytest.fixture(scope="module", params=["version", pytest.param("checkpoint", marks=pytest.mark.slow)])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The additions are in a version alone, or in the checkpoint of the version, too."""
    root, topics = tmp_path_factory.mktemp("futures"), {}
    for number, (what, future) in enumerate(CASES.items()):
        topic = topic_with(root, f"f{number}", future)
        if request.param == "version" or in_a_checkpoint(topic, what):
            topics[what] = (topic, future)
    return Made(root, topics)


def found(table: list[Row]) -> Found:
    return sorted((row["partition"], row["offset"], bytes(row["key"]), bytes(row["value"])) for row in table)


def refused(topic: Topic, future: Future, call: Callable[[], list[Row]]) -> object:
    """The id of the error with which a call refuses a topic. The text must say what of the topic is of tomorrow."""
    try:
        return found(call())
    except StreamingQueryException as error:
        text = str(error)
        id = text.partition("[PARTLOG_")[2].partition("]")[0]
    except PySparkException as error:
        text, id = str(error), str(error.getCondition()).removeprefix("PARTLOG_")
    if id == NEW and not (future.says in text and "Upgrade sparklog" in text):
        return text
    # A checkpoint is damaged, and so is its version: a program may report either.
    return CORRUPT if id == "VERSION_MISSING" and not topic.version_file(0).exists() else id


def test_reads(spark: SparkSession, made: Made) -> None:
    assert made.differences(lambda topics: made.read(spark, topics).collect(), lambda future: future.record) == {}


@pytest.mark.slow
def test_scans_by_key(spark: SparkSession, made: Made) -> None:
    """A scan leaves out the partition that does not have the key, but only if it knows how keys get their partition."""
    planned: dict[str, int] = {}

    def scan(topics: str) -> list[Row]:
        query = made.read(spark, topics).where(f"key = X'{KEY.hex()}'")
        leaf = query._jdf.queryExecution().optimizedPlan().collectLeaves().head()
        planned[topics] = int(str(leaf.stats().rowCount().get()))
        return query.collect()

    assert made.differences(scan, lambda future: future.record, key=KEY) == {}
    of_today = [row for topic, future in made.topics.values() if future.key == OK for row in rows(topic, future)]
    elsewhere = [row for topic, future in made.topics.values() if future.elsewhere for row in rows(topic, future)]
    assert list(planned.values()) == [sum(row[0] == 0 for row in of_today) + len(elsewhere)]


def test_joins_by_key(spark: SparkSession, made: Made) -> None:
    """Two topics of today are joined without a shuffle. Where keys have other partitions, no key would meet its like so."""
    catalog = f"of_{made.root.name}"
    sparklog.attach(spark, catalog, made.root)
    given = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.files.minPartitionNum": "1"}
    today = {"today": (made.topics["an operation of tomorrow"])}
    shuffled = {}
    for key, value in given.items():
        spark.conf.set(key, value)
    try:
        for what, (topic, future) in (today | made.topics).items():
            if future.elsewhere or what in today:
                one, other = (f"{catalog}.{each.name}" for each in (topic, today["today"][0]))
                query = spark.sql(f"SELECT /*+ MERGE(b) */ DISTINCT a.* FROM {one} a JOIN {other} b ON a.key = b.key")
                shuffled[what] = "Exchange hashpartitioning(key" in query._jdf.queryExecution().executedPlan().toString()
                assert found(query.collect()) == rows(topic, future), what
    finally:
        for key in given:
            spark.conf.unset(key)
    assert shuffled == {what: what not in today for what in shuffled} and len(shuffled) > 4


@pytest.mark.slow
def test_streams(spark: SparkSession, made: Made, tmp_path: Path) -> None:
    """A stream keeps the order of the records of a key over re-routes, so it is a key reader."""

    def stream(topics: str) -> list[Row]:
        read = spark.readStream.format("partlog").options(subscribe=topics, startingOffsets="earliest").load(str(made.root))
        name = topics.replace(",", "_")
        query = read.writeStream.format("memory").queryName(name).option("checkpointLocation", str(tmp_path / name[:50]))
        query.trigger(availableNow=True).start().awaitTermination()
        found = spark.table(name).collect()
        spark.catalog.dropTempView(name)
        return found

    assert made.differences(stream, lambda future: future.key) == {}
