"""A streaming query is tracked into a group, stopped, and started from it."""

import datetime
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from handmade import TIME, Topic, records, sample
from owners import Own
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import sparklog
from sparklog.groups import OffsetTable, track

Read = list[tuple[str, int, int]]


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """Topic `t` of two partitions, with offsets 0 to 24 and 0 to 9."""
    return sample(tmp_path / "root")


@pytest.fixture
def table(topic: Topic, tmp_path: Path) -> OffsetTable:
    return OffsetTable(topic.root, tmp_path / "table")


@pytest.fixture
def start(spark: SparkSession, topic: Topic, tmp_path: Path) -> Callable[..., tuple[StreamingQuery, Read]]:
    """Starts a query with a new checkpoint, and gives it with the places that it reads."""
    begun = iter(range(100))

    def run(starting: str = "earliest", always: bool = False, rows: DataFrame | None = None) -> tuple[StreamingQuery, Read]:
        read: Read = []
        options = {"subscribe": "t", "startingOffsets": starting, "maxOffsetsPerTrigger": 10}
        if rows is None:
            rows = spark.readStream.format("partlog").options(**options).load(str(topic.root)).select("topic", "partition", "offset")

        def keep(batch: DataFrame, epoch: int) -> None:
            read.extend(tuple(row) for row in batch.collect())

        writer = rows.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / f"checkpoint-{next(begun)}"))
        trigger = {"processingTime": "0 seconds"} if always else {"availableNow": True}
        return writer.trigger(**trigger).start(), read

    yield run
    for query in spark.streams.active:
        query.stop()


def places(table: OffsetTable, group: str = "g") -> dict[int, int]:
    return {each.partition: each.offset for each in table.positions(group)}


def until(done: Callable[[], object], seconds: float = 120) -> None:
    ends = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_a_query_goes_on_from_its_group_exactly_and_is_rewound_by_time(start, topic, table):
    query, first = start()
    tracker = track(query, "g", topic.root, table)
    query.awaitTermination()
    until(lambda: places(table) == {0: 25, 1: 10})  # the last micro-batch, without a call
    tracker.stop()
    assert tracker.failure is None
    assert {each.query_id for each in table.positions("g")} == {query.id}

    topic.append(records(7, timestamp=TIME + 10_000))
    query, second = start(table.starting_offsets("g"))
    query.awaitTermination()
    track(query, "g", topic.root, table.path)  # which has ended
    assert sorted(first + second) == [("t", 0, offset) for offset in range(32)] + [("t", 1, offset) for offset in range(10)]
    assert len(second) == 7

    moves = table.reset("g", datetime.datetime.fromtimestamp(TIME / 1000 + 10, datetime.timezone.utc), dry_run=False)
    assert {move.partition: move.now for move in moves} == {0: 25, 1: 10}
    again, third = start(table.starting_offsets("g"))
    again.awaitTermination()
    assert sorted(third) == [("t", 0, offset) for offset in range(25, 32)]

    topic.append(records(1))
    table.reset("g", "latest", dry_run=False)
    with pytest.raises(sparklog.CallError, match="PARTLOG_QUERY_ENDED"):
        track(query, "g", topic.root, table)
    assert places(table) == {0: 33, 1: 10}


def test_a_query_of_a_topic_that_was_created_again_takes_the_group_there_though_it_has_ended(start, topic, table):
    Own(table, "g", {"t": {0: 25, 1: 10}}).end()
    topic.delete()
    topic.append(records(4))
    query, read = start('{"t":{"0":0,"1":0}}')
    query.awaitTermination()
    track(query, "g", topic.root, table)
    assert len(read) == 4
    assert places(table) == {0: 4, 1: 0}


def test_a_tracker_ends_where_its_table_was_deleted_and_made_again(start, topic, table, caplog):
    query, _ = start(always=True)
    query.processAllAvailable()
    tracker = track(query, "g", topic.root, table.path, interval_s=0.1)
    until(lambda: places(table) == {0: 25, 1: 10})
    Path(table.path).rename(f"{table.path}-before")
    again = OffsetTable(topic.root, table.path)
    Own(again, "g", {"t": {0: 1}})
    topic.append(records(1))
    until(lambda: not any(each.name == "sparklog tracker of g" for each in threading.enumerate()))
    for call in (tracker.flush, tracker.stop):
        with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_TABLE_REPLACED"):
            call()
    assert tracker.failure is not None
    assert "the tracker of group g stopped: [PARTLOG_OFFSETS_TABLE_REPLACED]" in caplog.text
    assert places(again) == {0: 1}


def test_a_query_that_began_further_back_takes_the_group_back_and_a_zombie_moves_nothing(start, topic, table):
    Own(table, "g", {"t": {0: 25, 1: 10}}).end()
    topic.append(records(1))
    query, _ = start('{"t":{"0":0,"1":0}}', always=True)
    query.processAllAvailable()
    tracker = track(query, "g", topic.root, table.path, interval_s=600)
    tracker.flush()
    assert places(table) == {0: 26, 1: 10}
    with pytest.raises(sparklog.CallError, match="PARTLOG_GROUP_RUNNING"):
        table.reset("g", "earliest", dry_run=False)
    table.reset("g", "earliest", dry_run=False, force=True)
    topic.append(records(1))
    query.processAllAvailable()
    with pytest.raises(sparklog.GenerationFencedError):
        tracker.flush()
    assert isinstance(tracker.failure, sparklog.GenerationFencedError)
    assert places(table) == {0: 0, 1: 0}
    assert query.isActive, "a tracker that stops does not stop the query"
    with track(query, "g", topic.root, table.path, interval_s=600):
        pass
    assert places(table) == {0: 27, 1: 10}
    table.reset("g", "earliest", dry_run=False)  # which ended, so it is not refused
    query.stop()


def test_what_a_tracker_could_not_write_it_tries_again(start, topic, table, monkeypatch, caplog):
    query, _ = start(always=True)
    query.processAllAvailable()
    tracker = track(query, "g", topic.root, table, interval_s=0.2)
    until(lambda: places(table) == {0: 25, 1: 10})
    append, broken = table.lake.append, True

    def fails(*arguments, **named):
        if broken:
            raise sparklog.SparklogError("OFFSETS_TABLE", table=table.path, cause="made to fail")
        return append(*arguments, **named)

    monkeypatch.setattr(table.lake, "append", fails)
    topic.append(records(2))
    until(lambda: isinstance(tracker.failure, sparklog.RetryError))
    assert query.isActive
    assert "the tracker of group g tries again in 0 s: [PARTLOG_OFFSETS_TABLE]" in caplog.text
    broken = False
    until(lambda: tracker.failure is None)
    assert places(table) == {0: 27, 1: 10}
    tracker.stop()


def test_several_sources_and_none(start, spark, topic, table, tmp_path):
    other = Topic(tmp_path / "root", "u", partitions=1)
    other.append(records(4))

    def stream(**options: object) -> DataFrame:
        given = {"startingOffsets": "earliest", **options}
        return spark.readStream.format("partlog").options(**given).load(str(topic.root)).select("topic", "partition", "offset")

    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    ticks = rate.selectExpr("'' AS topic", "0 AS partition", "value AS offset")
    query, _ = start(rows=stream(subscribe="t").union(stream(subscribePattern="[tu]", maxOffsetsPerTrigger=39)).union(ticks))
    query.awaitTermination()
    track(query, "g", topic.root, table)
    assert {(each.topic, each.partition): each.offset for each in table.positions("g")} == {("t", 0): 25, ("t", 1): 10, ("u", 0): 4}
    query, _ = start(rows=ticks)
    query.awaitTermination()
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_QUERY_NOT_OF_ROOT.* does not read a topic under"):
        track(query, "h", topic.root, table)
    assert table.groups() == ["g"]


def test_a_query_of_a_pattern_without_topics_is_tracked(start, spark, topic, table, tmp_path):
    rows = spark.readStream.format("partlog").options(subscribePattern="u", startingOffsets="earliest").load(str(topic.root))
    query, _ = start(rows=rows.select("topic", "partition", "offset"), always=True)
    until(lambda: query.lastProgress)
    tracker = track(query, "g", topic.root, table, interval_s=0.2)
    Topic(tmp_path / "root", "u", partitions=1).append(records(4))
    until(lambda: {(each.topic, each.partition): each.offset for each in table.positions("g")} == {("u", 0): 4})
    tracker.stop()
