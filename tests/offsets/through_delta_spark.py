"""Offset tables through delta-spark, beside deltalake: tests/spark/test_offsets.py runs this file in a process with a session of its own.

A session in which Delta is the catalog of Spark cannot read tables `USING partlog`, which other tests need.
"""

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from handmade import Topic, records, sample
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import sparklog
from sparklog.offsets import OffsetTable, write_delta

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
    }
    session = sparklog.session(app_name="offset tables", delta=DELTA, **settings)
    yield session
    session.stop()


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """Topic `t` of two partitions, with offsets 0 to 24 and 0 to 9."""
    return sample(tmp_path / "root")


@pytest.fixture
def through(spark: SparkSession, topic: Topic, tmp_path: Path) -> dict[str, OffsetTable]:
    """The same table through both; its name needs quotes."""
    path = tmp_path / "it's `the` table"
    return {"spark": OffsetTable(path, topic.root, spark=spark), "lake": OffsetTable(path, topic.root)}


def places(table: OffsetTable, group: str) -> dict[tuple[str, int], int]:
    return {(each.topic, each.partition): each.offset for each in table.positions(group)}


def test_both_read_and_write_the_same_table(through):
    spark, lake = through["spark"], through["lake"]
    group = 'it\'s `g` \\ {x} :y "z"'
    assert spark.groups() == []
    assert not spark.exists() and not lake.exists()
    with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_TABLE_NOT_FOUND"):
        spark.positions(group)
    assert spark.begin(group) == 1
    assert spark.exists() and lake.exists()
    with pytest.raises(sparklog.CallError, match="PARTLOG_GROUP_NOT_FOUND"):
        spark.positions("other")
    assert lake.append(group, 1, {"t": {0: 5}}, query_id="q", epoch=7, metadata="m") == 1
    assert spark.append(group, 1, {"t": {0: 6, 1: 2}}) == 2
    assert lake.begin(group) == 2
    assert spark.begin(group) == 3
    with pytest.raises(sparklog.GenerationFenced, match="newest one is 3"):
        spark.append(group, 2, {"t": {0: 20}})
    lake.append(group, 3, {"t": {0: 9}})
    spark.end(group, 3)
    for read in ("groups", "fence"):
        assert getattr(spark, read)() == getattr(lake, read)()
    for read in ("positions", "history", "starting_offsets"):
        assert getattr(spark, read)(group) == getattr(lake, read)(group)
    assert places(spark, group) == {("t", 0): 9, ("t", 1): 2}
    assert spark.lag(group).toArrow().to_pylist() == lake.lag(group).to_pylist()
    assert spark.reset(group, "latest") == lake.reset(group, "latest")
    spark.reset(group, -1, dry_run=False)
    assert places(lake, group) == {("t", 0): 8, ("t", 1): 1}
    before = lake.history(group)
    assert spark.maintain()["joined"] > 5
    assert (places(lake, group), lake.history(group)) == ({("t", 0): 8, ("t", 1): 1}, before)
    lake.copy(group, "h")
    assert lake.maintain()["joined"] == 2
    spark.delete(group)
    assert lake.groups() == ["h"]


def test_four_writers_of_both_kinds_lose_nothing(through, spark, topic):
    """Each claims and commits a group of its own and one that all of them share, into a table that none of them has created."""
    path, together = through["lake"].path, threading.Barrier(4)
    rounds = 2

    def write(number: int) -> list[int]:
        table = OffsetTable(path, topic.root, spark=spark if number % 2 else None)
        together.wait()
        own = table.begin(f"own-{number}")
        claimed = []
        for offset in range(1, rounds + 1):
            table.append(f"own-{number}", own, {"t": {number % 2: offset}})
            claimed.append(table.begin("shared"))
        return claimed

    with ThreadPoolExecutor(4) as pool:
        claimed = list(pool.map(write, range(4)))
    lake = through["lake"]
    assert sorted(each for claims in claimed for each in claims) == list(range(1, 4 * rounds + 1))
    for number in range(4):
        assert [each.offset for each in lake.history(f"own-{number}")] == list(range(1, rounds + 1))
    assert through["spark"].groups() == lake.groups() == [*(f"own-{number}" for number in range(4)), "shared"]


@pytest.mark.parametrize(("one", "other"), [("spark", "lake"), ("lake", "spark")])
def test_a_commit_of_a_group_sees_all_commits_before(through, one, other):
    """Both engines give commits the same numbers: an owner commits beside a claim, and then a claim comes beside an owner's commit."""
    table, rival = through[one], through[other]
    engine, first = table._engine, table.begin("g")
    append = engine.append

    def beside(act):
        def late(*commit):
            engine.append = append
            act()
            return append(*commit)

        engine.append = late

    beside(lambda: rival.append("g", first, {"t": {0: 9}}))
    assert table.begin("g") == 2
    assert places(rival, "g") == {("t", 0): 9}
    beside(lambda: rival.begin("g"))
    with pytest.raises(sparklog.GenerationFenced, match="newest one is 3"):
        table.append("g", 2, {"t": {0: 20}})
    assert [each.offset for each in rival.history("g")] == [9, 9, 9]


def test_rows_that_were_deleted_by_hand_leave_their_numbers(through):
    table, lake = through["spark"], through["lake"]
    generation = lake.begin("g")
    for offset in range(1, 5):
        lake.append("g", generation, {"t": {0: offset}})
    import deltalake

    deltalake.DeltaTable(lake.path).delete("true")
    generation = table.begin("g")
    table.append("g", generation, {"t": {0: 9}})
    with pytest.raises(sparklog.GenerationFenced):
        lake.append("g", 1, {"t": {0: 20}})
    assert places(lake, "g") == {("t", 0): 9}


def test_a_file_that_may_still_be_committed_is_kept(through, tmp_path):
    """A writer sleeps between its data file and its commit: for two hours, and for eight days."""
    through["spark"].begin("g")
    slept = {}
    for hours in (2, 8 * 24):
        slept[hours] = Path(through["lake"].path, f"part-{hours}-0-c000.snappy.parquet")
        slept[hours].write_bytes(b"")
        os.utime(slept[hours], times=(time.time() - hours * 3600,) * 2)
    assert through["lake"].maintain()["deleted"] == 0
    assert through["spark"].maintain()["deleted"] == 1
    assert [hours for hours, file in slept.items() if file.exists()] == [2]


def test_both_find_a_table_at_the_same_path(spark, topic, tmp_path):
    name = "~ 50%zz u#1?2 a:b {x}* ü 🦀"
    written = OffsetTable(tmp_path / name, topic.root, spark=spark)
    assert written.begin("g") == 1
    assert OffsetTable(tmp_path / name, topic.root).begin("g") == 2
    assert OffsetTable(f"file:{tmp_path}/{name}", spark=spark).groups() == ["g"]


def test_wrong_input_through_spark(through, spark, topic, tmp_path):
    table = through["spark"]
    generation = table.begin("g")
    before = through["lake"].history("g")
    with pytest.raises(sparklog.CallError, match="offset 26 of topic t, partition 0"):
        table.append("g", generation, {"t": {0: 26}})
    with pytest.raises(sparklog.CallError, match="PARTLOG_GROUP_RUNNING"):
        table.delete("g")
    topic.delete()
    topic.append(records(2))
    assert through["lake"].history("g") == before
    other = str(tmp_path / "other")
    spark.range(3).write.format("delta").save(other)
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_OFFSETS_SCHEMA.*missing: group, .*; unknown: id"):
        OffsetTable(other, topic.root, spark=spark).begin("g")
    assert spark.read.format("delta").load(other).count() == 3


def test_a_query_whose_group_was_taken_writes_no_output_any_more(spark, topic, tmp_path):
    table = OffsetTable(tmp_path / "table", topic.root)
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


def test_sql_reads_a_topic_through_a_view(spark, topic):
    options = f"USING partlog OPTIONS (path '{topic.root}', topic 't')"
    spark.sql(f"CREATE TEMPORARY VIEW seen {options}")
    assert spark.sql("SELECT count(*) FROM seen").first()[0] == 35


def test_a_pattern_without_topics_and_one_whose_topic_went(spark, topic, tmp_path):
    """A micro-batch that names no topic has no positions to commit."""
    table = OffsetTable(tmp_path / "table", topic.root)
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
