"""Offset tables beside delta-spark, and `write_delta`: tests/spark/test_offsets.py runs this file in a process of its own.

A session in which Delta is the catalog of Spark cannot read tables `USING partlog`, which other tests need.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from handmade import Topic, records, sample
from owners import Own
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import sparklog
from sparklog.groups import OffsetTable, write_delta

DELTA = Path(__file__).resolve().parents[2] / ".tools" / "delta"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = {
        "spark.master": "local[2]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        # VACUUM lists a table of any size in that number of tasks, by default 10,000.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    session = sparklog.session(app_name="offset tables", delta=DELTA, conf=settings)
    yield session
    session.stop()


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """Topic `t` of two partitions, with offsets 0 to 24 and 0 to 9."""
    return sample(tmp_path / "root")


def places(table: OffsetTable, group: str) -> dict[tuple[str, int], int]:
    return {(each.topic, each.partition): each.offset for each in table.positions(group)}


def test_spark_reads_the_table_at_its_path(spark, topic, tmp_path):
    """It is an ordinary Delta table; its path and its group need quotes."""
    table = OffsetTable(topic.root, tmp_path / "~ 50%zz it's `the` u#1?2 a:b {x}* ü 🦀")
    group = 'it\'s `g` \\ {x} :y "z"'
    own = Own(table, group)
    own.to({"t": {0: 5, 1: 2}}, query_id="q", epoch=7, metadata="m")
    own.to({"t": {0: 6}})
    found = spark.read.format("delta").load(table.path)
    history = list(found.where("partition >= 0").orderBy("seq", "partition").collect())
    assert [(row.group, row.partition, row.offset, row.seq) for row in history] == [(group, 0, 5, 2), (group, 1, 2, 2), (group, 0, 6, 3)]
    assert [(each.partition, each.offset, each.seq) for each in table.history(group)] == [(0, 5, 2), (1, 2, 2), (0, 6, 3)]
    assert {(row.query_id, row.epoch, row.metadata) for row in history[:2]} == {("q", 7, "m")}


def test_delta_spark_may_tidy_the_table(spark, topic, tmp_path):
    """The upkeep that operators run on every Delta table, and rows that are deleted by hand, leave the numbers of commits."""
    table = OffsetTable(topic.root, tmp_path / "table")
    own = Own(table, "g")
    for offset in range(1, 5):
        own.to({"t": {0: offset}})
    before = table.history("g")
    spark.sql(f"OPTIMIZE delta.`{table.path}`").collect()
    spark.sql(f"VACUUM delta.`{table.path}`").collect()
    assert table.history("g") == OffsetTable(None, table.path).history("g") == before
    own.to({"t": {0: 5}})
    spark.sql(f"DELETE FROM delta.`{table.path}`").collect()
    assert Own(OffsetTable(topic.root, table.path), "g").generation == 7, "no generation of rows that were deleted was above their numbers"
    with pytest.raises(sparklog.GenerationFencedError):
        own.to({"t": {0: 20}})


def test_a_query_whose_group_was_taken_writes_no_output_any_more(spark, topic, tmp_path):
    table = OffsetTable(topic.root, tmp_path / "table")
    out, checkpoint = tmp_path / "out", str(tmp_path / "checkpoint")
    function = write_delta(out, table=table.path, group="g", root=topic.root, checkpoint=checkpoint)
    given = spark.readStream.format("partlog").options(subscribe="t", startingOffsets="earliest").load(str(topic.root))
    query = given.select("partition", "offset").writeStream.foreachBatch(function).option("checkpointLocation", checkpoint).start()
    try:
        query.processAllAvailable()
        assert spark.read.format("delta").load(str(out)).count() == 35
        assert places(table, "g") == {("t", 0): 25, ("t", 1): 10}
        table.reset("g", "earliest", dry_run=False, force=True)
        topic.append(records(1))
        with pytest.raises(StreamingQueryException, match="PARTLOG_GENERATION_FENCED"):
            query.processAllAvailable()
    finally:
        query.stop()
    assert spark.read.format("delta").load(str(out)).count() == 35
    assert places(table, "g") == {("t", 0): 0, ("t", 1): 0}


def test_a_query_that_starts_again_commits_to_the_table_that_took_the_place_of_another_one(spark, topic, tmp_path):
    """The function is the same: a program that supervises a query starts the query again with the same function."""
    table, out, checkpoint = OffsetTable(topic.root, tmp_path / "table"), tmp_path / "out", str(tmp_path / "checkpoint")
    function = write_delta(out, table=table.path, group="g", root=topic.root, checkpoint=checkpoint)
    given = spark.readStream.format("partlog").options(subscribe="t", startingOffsets="earliest").load(str(topic.root))
    writer = given.select("partition", "offset").writeStream.foreachBatch(function).option("checkpointLocation", checkpoint)
    query = writer.start()
    try:
        query.processAllAvailable()
        Path(table.path).rename(tmp_path / "table-before")
        again = OffsetTable(topic.root, table.path)
        Own(again, "g", {"t": {0: 1}})
        topic.append(records(1))
        with pytest.raises(StreamingQueryException, match="PARTLOG_OFFSETS_TABLE_REPLACED"):
            query.processAllAvailable()
        query = writer.start()
        query.processAllAvailable()
    finally:
        query.stop()
    assert places(again, "g") == {("t", 0): 26, ("t", 1): 10}
    assert spark.read.format("delta").load(str(out)).count() == 36


def test_write_delta_opens_a_topic_once_for_all_micro_batches(spark, topic, tmp_path, opens):
    table, checkpoint = str(tmp_path / "table"), str(tmp_path / "checkpoint")
    function = write_delta(tmp_path / "out", table=table, group="g", root=topic.root, checkpoint=checkpoint)
    given = spark.readStream.format("partlog").options(subscribe="t", startingOffsets="earliest").load(str(topic.root))
    query = given.select("offset").writeStream.foreachBatch(function).option("checkpointLocation", checkpoint).start()
    try:
        for _ in range(3):
            query.processAllAvailable()
            topic.append(records(1))
    finally:
        query.stop()
    assert opens == ["t"]


def test_sql_reads_a_topic_through_a_view(spark, topic):
    options = f"USING partlog OPTIONS (path '{topic.root}', topic 't')"
    spark.sql(f"CREATE TEMPORARY VIEW seen {options}")
    assert spark.sql("SELECT count(*) FROM seen").first()[0] == 35


def test_a_pattern_without_topics_and_one_whose_topic_went(spark, topic, tmp_path):
    """A micro-batch that names no topic has no positions to commit."""
    table = OffsetTable(topic.root, tmp_path / "table")
    out, checkpoint = tmp_path / "out", str(tmp_path / "checkpoint")
    function = write_delta(out, table=table.path, group="g", root=topic.root, checkpoint=checkpoint)
    options = {"subscribePattern": "u.*", "startingOffsets": "earliest", "failOnDataLoss": False}

    def run() -> None:
        given = spark.readStream.format("partlog").options(**options).load(str(topic.root)).select("partition", "offset")
        writer = given.writeStream.foreachBatch(function).option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()

    run()
    later = Topic(topic.root, "u", partitions=1)
    later.append(records(4))
    run()
    assert spark.read.format("delta").load(str(out)).count() == 4
    assert places(table, "g") == {("u", 0): 4}
    later.delete()
    run()
    later.append(records(2))
    run()
    assert spark.read.format("delta").load(str(out)).count() == 6
    assert places(table, "g") == {("u", 0): 2}


def test_members_are_tables_of_sql(spark, topic, tmp_path):
    table = OffsetTable(topic.root, tmp_path / "off`sets {table}")
    with sparklog.Consumer(
        topic.root, "t", group_id="it's `g`", table=table, partition_assignment_strategy="sticky", auto_offset_reset="earliest"
    ) as one:
        one.poll(200)
        Own(table, "alone").end()
        table.create_views(spark)
        (member,) = table.members("it's `g`")
        (row,) = spark.table("group_members").collect()
        assert (row.group, row.consumer_id, row.partitions, row.topics) == ("it's `g`", member.consumer_id, member.partitions, ["t"])
        shares = {(row.topic, row.partition): (row.owner, row.wanted_by, row.epoch) for row in spark.table("group_assignments").collect()}
        expected = table.assignments("it's `g`")
        assert shares == {(each.topic, each.partition): (each.consumer_id, each.wanted_by, each.epoch) for each in expected}
    changes = table.changes("it's `g`")
    rows = spark.table("group_history").where("`group` != 'alone'").orderBy("number").collect()
    assert [(row.number, row.why, row.by, row.members, row.owned) for row in rows] == [
        (each.number, each.why, each.by, each.members, each.owned) for each in changes
    ]
    assert spark.table("group_members").count() == spark.table("group_assignments").count() == 0
