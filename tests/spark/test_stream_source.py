"""`spark.readStream.format("partlog")` with a real Spark: offsets, restarts, limits, and what must be refused."""

import hashlib
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from handmade import summed
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery


class Stream:
    """A query that collects what it reads of a root in memory; `run` starts it again with the same checkpoint."""

    def __init__(self, spark: SparkSession, root: Path, folder: Path) -> None:
        self.spark, self.root, self.checkpoint = spark, root, folder / "checkpoint"
        self.rows: list[tuple[int, int, str]] = []
        self.batches: list[int] = []

    def write(self, values: range, partition: int | None = None, topic: str = "events", partitions: int = 4) -> None:
        """A record for each number, to one partition, or round robin."""
        to = f"id % {partitions}" if partition is None else str(partition)
        rows = self.spark.range(values.start, values.stop, values.step, 1).selectExpr(
            "CAST(id AS STRING) AS value", f"CAST({to} AS INT) AS partition"
        )
        rows.write.format("partlog").options(topic=topic, partitions=partitions).mode("append").save(str(self.root))

    def start(self, available_now: bool = True, **options: object) -> StreamingQuery:
        given = {} if {"subscribePattern", "assign"} & options.keys() else {"subscribe": "events"}
        stream = self.spark.readStream.format("partlog").options(**{**given, **options}).load(str(self.root))

        def keep(batch: DataFrame, epoch: int) -> None:
            rows = [(row[0], row[1], bytes(row[2]).decode()) for row in batch.select("partition", "offset", "value").collect()]
            self.rows += rows
            self.batches.append(len(rows))

        writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(self.checkpoint))
        return (writer.trigger(availableNow=True) if available_now else writer.trigger(processingTime="0 seconds")).start()

    def run(self, **options: object) -> list[str]:
        """Runs it to the end of what is there; the values that this run read, by partition and offset."""
        self.rows, self.batches = [], []
        query = self.start(**options)
        query.awaitTermination()
        return [value for _, _, value in sorted(self.rows)]

    def fails(self, condition: str, available_now: bool = True, **options: object) -> str:
        """Runs it, which must fail with `PARTLOG_<condition>`; the text of the error."""
        query = self.start(available_now, **options)
        with pytest.raises(StreamingQueryException) as caught:
            query.awaitTermination()
        assert f"[PARTLOG_{condition}]" in str(caught.value), str(caught.value)[:3000]
        return str(caught.value)

    def topic_id(self, topic: str = "events") -> str:
        first = next((self.root / "_partlog" / topic).glob("*.json")).read_text().splitlines()[0]
        return str(json.loads(first)["topicId"])

    def offsets(self) -> list[str]:
        """The offsets in Spark's log, as they are written there."""
        files = sorted((self.checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
        return [file.read_text().splitlines()[2] for file in files]

    def sources(self) -> list[dict[str, object]]:
        files = sorted((self.checkpoint / "sources" / "0").glob("[0-9]"))
        return [json.loads(file.read_text().splitlines()[0]) for file in files]


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Iterator[Stream]:
    yield Stream(spark, tmp_path / "root", tmp_path)
    for query in spark.streams.active:
        query.stop()


def test_a_restart_goes_on_where_the_last_run_ended(stream: Stream) -> None:
    stream.write(range(10))
    assert sorted(stream.run(startingOffsets="earliest"), key=int) == [str(n) for n in range(10)]
    assert stream.offsets() == ['{"events":{"0":3,"1":3,"2":2,"3":2}}']
    assert stream.run(startingOffsets="earliest") == []
    stream.write(range(10, 14))
    assert sorted(stream.run(), key=int) == ["10", "11", "12", "13"]
    assert stream.offsets()[1:] == ['{"events":{"0":4,"1":4,"2":3,"3":3}}']
    [first] = stream.sources()
    assert first["topics"]["events"]["offsets"] == {"0": 0, "1": 0, "2": 0, "3": 0}  # type: ignore[index]


def wait_until(done: Callable[[], bool], query: StreamingQuery, seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert query.exception() is None, query.exception()
        assert time.monotonic() < until, query.lastProgress
        time.sleep(0.05)


def numbers(values: list[str]) -> list[int]:
    return sorted(int(value) for value in values)


def test_a_query_from_latest_that_fails_in_its_first_batch_goes_on_without_a_gap(spark: SparkSession, stream: Stream) -> None:
    stream.write(range(10))
    source = spark.readStream.format("partlog").load(str(stream.root))

    def fail(batch: DataFrame, epoch: int) -> None:
        raise RuntimeError("the sink is not there yet")

    query = source.writeStream.foreachBatch(fail).option("checkpointLocation", str(stream.checkpoint)).start()
    stream.write(range(10, 20))
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(60)
    stream.write(range(20, 30))
    assert numbers(stream.run()) == list(range(10, 30))


@pytest.mark.parametrize(
    ("options", "read"),
    [
        ({}, []),
        ({"startingOffsets": "latest"}, []),
        ({"startingOffsets": '{"events":{"0":1,"1":-1,"2":-2,"3":2}}'}, [4, 2, 6]),
        ({"startingTimestamp": 0}, list(range(8))),
        ({"startingTimestamp": 1 << 50, "startingOffsetsByTimestampStrategy": "latest"}, []),
    ],
)
def test_where_a_query_starts(stream: Stream, options: dict[str, object], read: list[int]) -> None:
    stream.write(range(8))
    assert numbers(stream.run(**options)) == sorted(read)
    stream.write(range(8, 12))
    assert numbers(stream.run()) == [8, 9, 10, 11]


def test_a_running_query_finds_new_topics_of_its_pattern(stream: Stream) -> None:
    stream.write(range(4), topic="a1")
    stream.write(range(100, 104), topic="b1")
    query = stream.start(available_now=False, subscribePattern="a.*", startingOffsets="earliest")
    wait_until(lambda: len(stream.rows) == 4, query)
    stream.write(range(4, 9), topic="a2")
    wait_until(lambda: len(stream.rows) == 9, query)
    query.stop()
    assert numbers([value for _, _, value in stream.rows]) == list(range(9))
    assert stream.offsets()[-1] == '{"a1":{"0":1,"1":1,"2":1,"3":1},"a2":{"0":2,"1":1,"2":1,"3":1}}'
    first, second = stream.sources()
    assert second == {"format": 1, "topics": {"a2": {"id": stream.topic_id("a2"), "offsets": {}}}}
    assert list(first["topics"]) == ["a1"]  # type: ignore[call-overload]


def test_a_pattern_may_match_nothing_at_first(stream: Stream) -> None:
    stream.write(range(4), topic="other")
    assert stream.run(subscribePattern="e.*") == []
    assert stream.offsets() == ["{}"]
    stream.write(range(4))
    assert numbers(stream.run(subscribePattern="e.*")) == [0, 1, 2, 3]


def test_a_topic_that_was_created_again_is_refused(stream: Stream) -> None:
    stream.write(range(4))
    stream.run(startingOffsets="earliest")
    before = stream.topic_id()
    shutil.rmtree(stream.root)
    stream.write(range(100, 120), topic="other")
    text = stream.fails("STREAM_TOPIC_GONE", failOnDataLoss=False)
    assert before in text and str(stream.checkpoint) in text
    stream.write(range(200, 220))
    text = stream.fails("STREAM_TOPIC_REPLACED", failOnDataLoss=False)
    assert before in text and stream.topic_id() in text and str(stream.checkpoint) in text and str(stream.root) in text


def test_a_running_query_notices_that_its_topic_was_created_again(stream: Stream) -> None:
    stream.write(range(4))
    query = stream.start(available_now=False, startingOffsets="earliest")
    wait_until(lambda: len(stream.rows) == 4, query)
    before = stream.topic_id()
    shutil.rmtree(stream.root / "_partlog" / "events")
    for partition in range(4):
        shutil.rmtree(stream.root / f"events-{partition}")
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination(30)
    assert "[PARTLOG_STREAM_TOPIC_GONE]" in str(caught.value) and before in str(caught.value)


def test_the_subscription_may_grow_and_not_shrink_unnoticed(stream: Stream) -> None:
    stream.write(range(4))
    stream.write(range(10, 14), topic="more")
    assert numbers(stream.run(subscribe="events", startingOffsets="earliest")) == [0, 1, 2, 3]
    # A topic that is new to the query is read from its start, as one that was found later.
    assert numbers(stream.run(subscribe="events,more", startingOffsets="latest")) == [10, 11, 12, 13]
    stream.write(range(4, 8))
    text = stream.fails("STREAM_UNSUBSCRIBED", subscribe="events")
    assert "topic more" in text and str(stream.checkpoint) in text
    assert numbers(stream.run(subscribe="events", failOnDataLoss=False)) == [4, 5, 6, 7]
    assert stream.offsets()[-1] == '{"events":{"0":2,"1":2,"2":2,"3":2}}'


def test_assigned_partitions_only(stream: Stream) -> None:
    stream.write(range(8))
    assert numbers(stream.run(assign='{"events":[1,3]}', startingOffsets="earliest")) == [1, 3, 5, 7]
    assert stream.offsets() == ['{"events":{"1":2,"3":2}}']


def test_limits_are_exact(stream: Stream) -> None:
    for partition, count in enumerate([5000, 1, 0, 300, 17, 2500, 40, 900]):
        stream.write(range(count), partition, partitions=8)
    assert len(stream.run(startingOffsets="earliest", maxOffsetsPerTrigger=1000)) == 8758
    assert stream.batches == [1000] * 8 + [758]
    first = json.loads(stream.offsets()[0])["events"]
    assert [partition for partition in "01234567" if first[partition] == 0] == ["2"]


def test_bytes_of_a_micro_batch(spark: SparkSession, stream: Stream) -> None:
    rows = spark.range(0, 2000, 1, 1).selectExpr("repeat('x', 1000) AS value", "CAST(id % 2 AS INT) AS partition")
    rows.write.format("partlog").options(topic="events", partitions=2, **{"batch.size": 10_000}).mode("append").save(str(stream.root))
    assert len(stream.run(startingOffsets="earliest", maxBytesPerTrigger=200_000)) == 2000
    # A batch has nine records of about a kilobyte.
    assert len(stream.batches) == 11
    assert all(189 <= records <= 207 for records in stream.batches[:-1]), stream.batches


def test_a_micro_batch_waits_for_enough_offsets(stream: Stream) -> None:
    stream.write(range(4))
    query = stream.start(available_now=False, startingOffsets="earliest", minOffsetsPerTrigger=6, maxTriggerDelay="6s")
    wait_until(lambda: len(stream.rows) == 4, query)
    stream.write(range(4, 8))
    time.sleep(1)
    assert len(stream.rows) == 4
    stream.write(range(8, 12))
    wait_until(lambda: len(stream.rows) == 12, query, seconds=4)
    begun = time.monotonic()
    stream.write(range(12, 14))
    wait_until(lambda: len(stream.rows) == 14, query)
    assert 2 < time.monotonic() - begun < 20
    assert stream.batches == [4, 8, 2]


def test_available_now_takes_what_was_there_at_its_start(stream: Stream) -> None:
    stream.write(range(1000))
    stop = threading.Event()
    written = [1000]

    def write_on() -> None:
        while not stop.is_set():
            stream.write(range(written[0], written[0] + 10))
            written[0] += 10

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        query = stream.start(startingOffsets="earliest", maxOffsetsPerTrigger=200)
        assert query.awaitTermination(120)
    finally:
        stop.set()
        writer.join()
    read = numbers([value for _, _, value in stream.rows])
    assert 1000 <= len(read) < written[0]
    assert read == list(range(len(read)))
    assert stream.batches[:-1] == [200] * (len(stream.batches) - 1)
    rest = stream.run(maxOffsetsPerTrigger=100_000)
    assert numbers(rest) == list(range(len(read), written[0]))


def test_records_that_expired(stream: Stream, expire: Callable[[Path, str, int], None]) -> None:
    stream.write(range(10), 0)
    assert len(stream.run(startingOffsets="earliest", subscribe="events")) == 10
    stream.write(range(10, 20), 0)
    stream.write(range(20, 30), 0)
    expire(stream.root, "events", 17)
    text = stream.fails("OFFSETS_EXPIRED")
    assert "Offsets 10 to 17 (exclusive)" in text and "7 in all" in text
    query = stream.start(failOnDataLoss=False)
    query.awaitTermination()
    assert numbers([value for _, _, value in stream.rows]) == [*range(10), *range(17, 30)]
    assert query.lastProgress["sources"][0]["metrics"]["dataLoss"] == "7"


@pytest.fixture
def expire() -> Callable[[Path, str, int], None]:
    """Raises the log start offset of partition 0, as deleting records does: a version that no writer makes yet."""

    def put(root: Path, topic: str, offset: int) -> None:
        folder = root / "_partlog" / topic
        last = max(folder.glob("*.json"))
        content = last.read_bytes()
        version = json.loads(content.splitlines()[0])
        version.update(
            version=version["version"] + 1, previous=hashlib.sha256(content).hexdigest(), config={}, added=[], removed=[], query=None
        )
        version["starts"][0] = offset
        line = json.dumps(version).encode()
        (folder / f"{version['version']:020}.json").write_bytes(summed(line))

    return put


@pytest.mark.parametrize(
    ("damage", "condition", "part"),
    [
        (lambda text: text.replace(":0", ":1"), "QUERY_CHECKPOINT_CORRUPT", "checksum"),
        (lambda text: "v1\n{}", "QUERY_CHECKPOINT_CORRUPT", "checksum"),
        (lambda text: text[:20], "QUERY_CHECKPOINT_CORRUPT", "checksum"),
        (lambda text: summed(text.splitlines()[0].replace(":1,", ":2,", 1).encode()).decode(), "FORMAT_TOO_NEW", "its format is 2"),
    ],
    ids=["changed", "of another source", "cut", "of the future"],
)
def test_a_damaged_file_of_the_checkpoint_is_refused(stream: Stream, damage: Callable[[str], str], condition: str, part: str) -> None:
    stream.write(range(4))
    stream.run(startingOffsets="earliest")
    file = stream.checkpoint / "sources" / "0" / "0"
    file.write_text(damage(file.read_text()))
    text = stream.fails(condition)
    assert str(file) in text and part in text
    assert stream.rows == [] or len(stream.rows) == 4
