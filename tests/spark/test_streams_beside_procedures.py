"""Streams whose topics an operator changes or deletes while they run."""

import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from logtool import LogTool
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from spark.collecting import Stream, numbers, wait_until
from spark.epochs import Sink
from spark.held import Held

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
        query.awaitTermination(120)
    stream.write(range(3), partitions=1)
    assert len(stream.rows) == 29
    stream.fails("STREAM_TOPIC_REPLACED")
    assert len(stream.rows) == 29
    first = stream.checkpoint
    stream.checkpoint = stream.checkpoint.with_name("another")
    assert stream.run(startingOffsets="earliest") == ["0", "1", "2"]
    stream.checkpoint = first
    assert stream.run(failOnDataLoss=False) == ["0", "1", "2"]
    assert stream.run() == []


def test_a_pattern_goes_on_when_its_topics_are_deleted(stream: Stream, call: Call) -> None:
    """While it runs, and while it does not; also when none is left; and another topic of the name is read from its beginning."""
    stream.write(range(8), topic="x1")
    stream.write(range(100, 108), topic="x2")
    lenient = {"subscribePattern": "x.*", "startingOffsets": "earliest", "failOnDataLoss": False}
    query = stream.start(available_now=False, **lenient)
    wait_until(lambda: len(stream.rows) == 16, query)
    call("delete_topic", topic="'x2'")
    stream.write(range(8, 12), topic="x1")
    wait_until(lambda: len(stream.rows) == 20, query)
    call("delete_topic", topic="'x1'")
    wait_until(lambda: stream.offsets()[-1] == "{}", query)
    stream.write(range(200, 203), topic="x2", partitions=2)
    wait_until(lambda: len(stream.rows) == 23 and stream.is_committed, query)
    query.stop()
    assert numbers([value for _, _, value in stream.rows]) == [*range(12), *range(100, 108), *range(200, 203)]
    assert sorted(stream.rows[20:]) == [(0, 0, "200"), (0, 1, "202"), (1, 0, "201")]
    assert stream.offsets()[-1] == '{"x2":{"0":2,"1":1}}'
    assert [[*source["topics"]] for source in stream.sources()] == [["x1", "x2"], ["x2"]]  # type: ignore[misc]
    stream.write(range(300, 302), topic="x1")
    assert numbers(stream.run(subscribePattern="x.*")) == [300, 301]
    call("delete_topic", topic="'x2'")
    assert "start the query with failOnDataLoss=false" in stream.fails("STREAM_TOPIC_GONE", subscribePattern="x.*")
    assert stream.run(**lenient) == []
    assert stream.run(subscribePattern="x.*") == []


@pytest.mark.slow
def test_any_interleaving_of_deletions_and_runs(stream: Stream, call: Call) -> None:
    """Each record of a topic that stays is read once, whatever was deleted and created again before."""
    seed = 20261128
    print("seed", seed)
    choices = random.Random(seed)
    topics: dict[str, list[int]] = {}
    partitions: dict[str, int] = {}
    made = {"y1": 0, "y2": 0}
    read: dict[str, tuple[int, int]] = {}  # by topic: which of its name, and how many of its records
    next_value, dropped, failed = 0, 0, 0

    def unread() -> list[int]:
        values = [topics[topic][read[topic][1] if topic in read and read[topic][0] == made[topic] else 0 :] for topic in topics]
        return sorted(value for each in values for value in each)

    for step in range(40):
        topic = choices.choice(["y1", "y2"])
        action = choices.choice(["write", "write", "delete", "strict", "lenient"] if step < 39 else ["lenient"])
        if action == "write":
            values = range(next_value, next_value + choices.randint(1, 6))
            next_value = values.stop
            made[topic] += topic not in topics
            if topic not in topics:
                topics[topic], partitions[topic] = [], choices.randint(1, 3)
            stream.write(values, topic=topic, partitions=partitions[topic])
            topics[topic] += values
        elif action == "delete" and topic in topics:
            call("delete_topic", topic=f"'{topic}'")
            del topics[topic]
        elif action in ("strict", "lenient") and stream.root.exists():
            lost = [topic for topic in read if topic not in topics or read[topic][0] != made[topic]]
            options = {"subscribePattern": "y.*", "startingOffsets": "earliest", "failOnDataLoss": action == "strict"}
            if lost and action == "strict":
                with pytest.raises(StreamingQueryException, match=r"PARTLOG_STREAM_TOPIC_(GONE|REPLACED)"):
                    stream.run(**options)
                failed += 1
                continue
            dropped += len(lost)
            assert numbers(stream.run(**options)) == unread(), (step, topics, read)
            read = {topic: (made[topic], len(values)) for topic, values in topics.items()}
    print("dropped", dropped, "failed", failed)
    assert dropped > 3 and failed > 3


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
    goes_on = threading.Event()
    stream.between = lambda: goes_on.wait(120)
    query = stream.start(available_now=False, startingOffsets="earliest", failOnDataLoss=False, maxOffsetsPerTrigger=15)
    try:
        wait_until(lambda: bool(stream.rows), query)
        tool.run("append", tag="b", commits=30, **arguments)
    finally:
        goes_on.set()
    log = Log(stream.root)["events"]
    start, end = log.start_offsets()[0], log.end_offsets()[0]
    assert (60 < start < end, end) == (True, 660)
    assert "delete-records" in [commit.operation for commit in log.commits()]
    wait_until(lambda: at(query.lastProgress) == {"events": {"0": end}}, query)
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
        # The query drops the topic, and reads the one that the writer makes then, if it is not refused.
        wait_until(lambda: not reads(query.lastProgress, id), query)
    finally:
        writing.kill()
        writing.communicate()
    now = Log(stream.root)["events"].read(columns=["value"])["value"].to_pylist() if "events" in Log(stream.root) else []
    wait_until(lambda: {value for _, _, value in stream.rows} >= {value.decode() for value in now}, query)
    query.stop()
    old = [row for row in stream.rows if row[2].encode() not in now]
    assert len(stream.rows) == len(old) + len(now)
    read = [(partition, offset) for partition, offset, _ in old]
    assert len(read) == len(set(read))
    # The tasks of the last micro-batch of the topic may have found the files of its plan gone.
    last = [trigger for trigger in query.recentProgress if reads(trigger, id)][-2]
    ends = {int(partition): end for partition, end in json.loads(last.sources[0].endOffset)["events"].items()}
    lost = int(last.sources[0].metrics["dataLoss"])
    print(f"read {len(read)}, lost {lost} of {deleted} deleted, ends {ends}, then {len(now)}")
    assert deleted > 0
    assert len([offset for partition, offset in read if offset < ends[partition]]) + lost == sum(ends.values())


def at(trigger: StreamingQueryProgress | None) -> object:
    """The offsets up to which a query has read."""
    return json.loads(trigger.sources[0].endOffset or "{}") if trigger else {}


def reads(trigger: StreamingQueryProgress | None, id: str) -> bool:
    """Whether a trigger has read of the topic with this id."""
    [source] = trigger.sources if trigger else [None]
    return source is not None and "events" in json.loads(source.endOffset or "{}") and id in source.metrics["topicIds"]


def test_a_stream_into_a_topic_whose_partitions_are_added(spark: SparkSession, sink: Sink, call: Call, tmp_path: Path) -> None:
    sink.run(sink.numbers(1), partitions=2)
    task = Held(spark, tmp_path / "held")
    slow = sink.numbers(1).select(task.held("value").alias("value"))
    given = {"topic": "t", "path": sink.root, "checkpointLocation": sink.checkpoint}
    query = slow.writeStream.format("partlog").options(**given).trigger(availableNow=True).start()
    try:
        task.wait_for("1")
        call("add_partitions", topic="'t'", partitions=4)
    finally:
        task.go_on()
    with pytest.raises(StreamingQueryException, match="PARTLOG_ROUTING_CHANGED"):
        query.awaitTermination()
    assert sink.values() == [0]
    sink.run(sink.numbers(1))
    assert sink.values() == [0, 1, 2]
    assert Log(sink.root)["t"].partitions == 4
