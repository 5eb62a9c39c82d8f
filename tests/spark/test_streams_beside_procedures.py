"""Streams whose topics an operator changes or deletes meanwhile."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from collecting import Stream, wait_until
from epochs import Sink
from logtool import LogTool
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from sparklog import Log

Call = Callable[..., list[dict[str, Any]]]


def test_a_running_stream_sees_what_is_done_to_its_topic(stream: Stream, call: Call) -> None:
    stream.write(range(20), partitions=2)
    query = stream.start(available_now=False, startingOffsets="earliest")
    wait_until(lambda: len(stream.rows) == 20, query)
    call("delete_records", topic="'events'", offsets='\'{"0":5,"1":-1}\'')
    call("add_partitions", topic="'events'", partitions=3)
    stream.write(range(20, 29), partition=2, partitions=3)
    wait_until(lambda: len(stream.rows) == 29, query)
    assert sorted(stream.rows[20:]) == [(2, offset, str(20 + offset)) for offset in range(9)]
    call("delete_topic", topic="'events'")
    with pytest.raises(StreamingQueryException, match="PARTLOG_STREAM_TOPIC_GONE"):
        query.awaitTermination(30)
    stream.write(range(3), partitions=1)
    assert len(stream.rows) == 29
    stream.fails("STREAM_TOPIC_REPLACED", failOnDataLoss=False)
    assert len(stream.rows) == 29
    stream.checkpoint = stream.checkpoint.with_name("another")
    assert stream.run(startingOffsets="earliest") == ["0", "1", "2"]


def test_expired_offsets_are_told_by_number(stream: Stream, call: Call) -> None:
    stream.write(range(40), partition=0, partitions=1)
    assert len(stream.run(startingOffsets="earliest")) == 40
    stream.write(range(40, 100), partition=0, partitions=1)
    call("delete_records", topic="'events'", offsets="'{\"0\":70}'")
    said = stream.fails("OFFSETS_EXPIRED")
    assert "Offsets 40 to 70 (exclusive) of topic events, partition 0" in said and "30 in all" in said
    stream.rows = []
    query = stream.start(failOnDataLoss=False)
    query.awaitTermination()
    assert [value for _, _, value in sorted(stream.rows)] == [str(number) for number in range(70, 100)]
    assert query.lastProgress.sources[0].metrics["dataLoss"] == "30"


def test_retention_beside_a_running_stream(stream: Stream, java_classpath: str, tmp_path: Path) -> None:
    """It comes with checkpoints, and runs ahead of two streams. Each offset is read, or told by number."""
    tool = LogTool(java_classpath, stream.root)
    arguments = {"topic": "events", "records": 20, "tasks": 1, "partitions": 1, "pace": 5, "retention.bytes": 0}
    tool.run("append", tag="a", commits=3, **arguments)
    strict = Stream(stream.spark, stream.root, tmp_path / "strict")
    assert len(strict.run(startingOffsets="earliest")) == 60
    query = stream.start(available_now=False, startingOffsets="earliest", failOnDataLoss=False, maxOffsetsPerTrigger=15)
    wait_until(lambda: bool(stream.rows), query)
    tool.run("append", tag="b", commits=30, **arguments)
    log = Log(stream.root)["events"]
    start, end = log.start_offsets()[0], log.end_offsets()[0]
    assert (60 < start < end, end) == (True, 660)
    assert "delete-records" in [commit.operation for commit in log.commits()]
    wait_until(lambda: json.loads(query.lastProgress.sources[0].endOffset or "{}") == {"events": {"0": end}}, query)
    lost = int(query.lastProgress.sources[0].metrics["dataLoss"])
    read = [offset for _, offset, _ in stream.rows]
    print(f"read {len(read)}, lost {lost}, start {start}")
    assert lost > 0 and len(read) == len(set(read)) and len(read) + lost == end
    said = strict.fails("OFFSETS_EXPIRED")
    assert f"Offsets 60 to {start} (exclusive) of topic events, partition 0" in said and f"{start - 60} in all" in said


def test_a_stream_and_a_writer_beside_deletions(stream: Stream, call: Call, java_classpath: str) -> None:
    """Each offset of a partition is read, or counted as lost; and no record of the topic that follows is read as one of this topic."""
    tool = LogTool(java_classpath, stream.root)
    writing = tool.start("append", topic="events", tag="a", commits=100_000, records=20, partitions=2)
    try:
        assert writing.stdout is not None
        assert writing.stdout.readline().startswith("done")
        query = stream.start(available_now=False, startingOffsets="earliest", failOnDataLoss=False)
        wait_until(lambda: bool(stream.rows), query)
        deleted = 0
        for _ in range(6):
            rows = call("delete_records", topic="'events'", offsets='\'{"0":-1,"1":-1}\'')
            deleted += sum(row["records_deleted"] for row in rows)
            call("merge")
        wait_until(lambda: len(query.recentProgress) > 3, query)
        id = call("topics")[0]["topic_id"]
        assert [row["topic_id"] for row in call("delete_topic", topic="'events'")] == [id]
        # Between two micro-batches, or in a task that looks for a data file that is gone.
        with pytest.raises(StreamingQueryException, match=r"PARTLOG_(STREAM_TOPIC_(GONE|REPLACED)|TOPIC_(NOT_FOUND|REPLACED))"):
            query.awaitTermination(30)
    finally:
        writing.kill()
        writing.communicate()
    read = [(partition, offset) for partition, offset, _ in stream.rows]
    assert len(read) == len(set(read))
    triggers = [trigger for trigger in query.recentProgress if trigger.sources[0].endOffset]
    ends = {int(partition): end for partition, end in json.loads(triggers[-1].sources[0].endOffset)["events"].items()}
    lost = int(triggers[-1].sources[0].metrics["dataLoss"])
    print(f"read {len(read)}, lost {lost} of {deleted} deleted, ends {ends}")
    assert deleted > 0
    assert len([offset for partition, offset in read if offset < ends[partition]]) + lost == sum(ends.values())
    if "events" in Log(stream.root):
        now = {value.decode() for value in Log(stream.root)["events"].read(columns=["value"])["value"].to_pylist()}
        assert not now & {value for _, _, value in stream.rows}


def test_a_stream_into_a_topic_whose_partitions_are_added(spark: SparkSession, sink: Sink, call: Call) -> None:
    sink.run(sink.numbers(1), partitions=2)
    slow = sink.numbers(1).selectExpr("value || replace(reflect('java.lang.Thread', 'sleep', 1500L), 'null', '') AS value")
    given = {"topic": "t", "path": sink.root, "checkpointLocation": sink.checkpoint}
    query = slow.writeStream.format("partlog").options(**given).trigger(availableNow=True).start()
    while not spark.sparkContext.statusTracker().getActiveJobsIds():
        assert query.isActive
        time.sleep(0.02)
    call("add_partitions", topic="'t'", partitions=4)
    with pytest.raises(StreamingQueryException, match="PARTLOG_ROUTING_CHANGED"):
        query.awaitTermination()
    assert sink.values() == [0]
    sink.run(sink.numbers(1))
    assert sink.values() == [0, 1, 2]
    assert Log(sink.root)["t"].partitions == 4
