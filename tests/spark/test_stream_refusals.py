"""Refusals of a streaming read: checkpoints, topics and options that do not fit, and records that are lost."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from handmade import identity, summed
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from spark.collecting import Stream, numbers, wait_until


def test_a_topic_that_was_created_again_is_refused(stream: Stream) -> None:
    stream.write(range(4))
    stream.run(startingOffsets="earliest")
    before = stream.topic_id()
    shutil.rmtree(stream.root)
    stream.write(range(100, 120), topic="other")
    text = stream.fails("STREAM_TOPIC_GONE", subscribePattern="events")
    assert before in text and str(stream.checkpoint) in text and "failOnDataLoss=false" in text
    stream.write(range(200, 220))
    text = stream.fails("STREAM_TOPIC_REPLACED")
    assert before in text and stream.topic_id() in text and str(stream.checkpoint) in text and str(stream.root) in text
    assert "failOnDataLoss=false" in text
    assert numbers(stream.run(failOnDataLoss=False)) == list(range(200, 220))


def test_a_running_query_notices_that_its_topic_was_created_again(stream: Stream) -> None:
    stream.write(range(4))
    query = stream.start(available_now=False, startingOffsets="earliest")
    wait_until(lambda: len(stream.rows) == 4, query)
    before = stream.topic_id()
    shutil.rmtree(stream.root / "_partlog" / "events")
    for partition in range(4):
        shutil.rmtree(stream.root / f"events-{partition}")
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination(120)
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
            version=version["version"] + 1,
            previous=hashlib.sha256(content).hexdigest(),
            config={},
            ends={},
            added=[],
            removed=[],
            query=None,
        )
        version.update(operation="delete-records", txn=identity((topic, version["version"])))
        version["starts"] = {"0": offset}
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


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_lost_start_is_not_resolved_again(stream: Stream, epochs: int) -> None:
    """Also where the first micro-batch is in Spark's log and not done: from `latest` it would leave out what came since."""
    stream.write(range(4))
    stream.run(startingOffsets="earliest")
    for _ in range(1, epochs):
        stream.write(range(4, 8))
        stream.run()
    for file in (stream.checkpoint / "commits").glob(f"*{epochs - 1}*"):
        file.unlink()
    for file in (stream.checkpoint / "sources" / "0").iterdir():
        file.unlink()
    stream.write(range(8, 12))
    text = stream.fails("QUERY_CHECKPOINT_CORRUPT", startingOffsets="latest")
    assert str(stream.checkpoint / "sources" / "0" / "0") in text and "Spark's log has an offset" in text
    assert stream.sources() == []


def test_a_damaged_offset_in_sparks_log_is_refused(stream: Stream) -> None:
    stream.write(range(4))
    stream.run(startingOffsets="earliest")
    log = stream.checkpoint / "offsets" / "0"
    for file in log.parent.glob(".*.crc"):
        file.unlink()
    log.write_text(log.read_text().replace('{"0":1,', '{"0":-1,'))
    text = stream.fails("QUERY_CHECKPOINT_CORRUPT")
    assert "Spark's log of offsets" in text and str(stream.checkpoint) in text


def test_a_root_from_a_backup_that_has_fewer_records_is_refused(stream: Stream, tmp_path: Path) -> None:
    stream.write(range(8))
    shutil.copytree(stream.root, tmp_path / "backup")
    stream.write(range(8, 16))
    stream.run(startingOffsets="earliest")
    shutil.rmtree(stream.root)
    shutil.move(tmp_path / "backup", stream.root)
    for options in ({}, {"failOnDataLoss": False}):
        text = stream.fails("OFFSETS_OUT_OF_RANGE", **options)
        assert "offset 4 of topic events, partition 0" in text and "0 to 2 (exclusive)" in text and str(stream.checkpoint) in text


Fails = Callable[[str, Callable[[], object]], str]


@pytest.mark.parametrize(
    ("options", "condition", "part"),
    [
        ({"endingOffsets": "latest"}, "OPTION_VALUE", "`endingOffsets`"),
        ({"endingTimestamp": 5}, "OPTION_VALUE", "`endingTimestamp`"),
        ({"minOffsetsPerTrigger": 5, "maxOffsetsPerTrigger": 4}, "OPTION_VALUE", "greater than `maxOffsetsPerTrigger`, which is 4"),
        ({"subscribe": "missing"}, "TOPIC_NOT_FOUND", "Topic missing"),
        ({"assign": '{"events":[7]}'}, "PARTITION_NOT_FOUND", "partition 7"),
        ({"assign": "events"}, "OPTION_VALUE", "`assign`"),
        ({"maxOffsetsPerTrigger": 0}, "OPTION_VALUE", "`maxOffsetsPerTrigger`"),
        ({"maxBytesPerTrigger": "10m"}, "OPTION_VALUE", "10m: it must be an integer from 1 to 9223372036854775807, in bytes"),
        ({"maxTriggerDelay": "soon"}, "OPTION_VALUE", "`maxTriggerDelay`"),
        ({"subscribe": "events", "subscribePattern": "e.*"}, "OPTION_CONFLICT", "`subscribe` and `subscribePattern`"),
        ({"subscribePattern": "e(*"}, "OPTION_VALUE", "it must be a regular expression"),
        ({"maxFilesPerTrigger": 5}, "OPTION_UNKNOWN", "`maxFilesPerTrigger`"),
        ({"maxOffsetPerTrigger": 5}, "OPTION_UNKNOWN", "`maxOffsetPerTrigger` is unknown. Did you mean `maxOffsetsPerTrigger`?"),
        ({"path": ""}, "ROOT_REQUIRED", ""),
        ({"path": "/nowhere/at-all"}, "ROOT_NOT_FOUND", "/nowhere/at-all"),
    ],
)
def test_a_stream_that_cannot_be_is_refused_where_it_is_defined(
    spark: SparkSession, stream: Stream, fails: Fails, options: dict[str, object], condition: str, part: str
) -> None:
    stream.write(range(8))
    given = {"path": stream.root, **options}
    reader = spark.readStream.format("partlog").options(**{key: value for key, value in given.items() if value})
    if options.get("maxOffsetsPerTrigger") == 0:
        reader = reader.option("maxOffsetsPerTrigger", 0)
    assert part in fails(condition, lambda: reader.load())


def test_settings_of_the_session_are_checked_too(spark: SparkSession, stream: Stream, fails: Fails) -> None:
    stream.write(range(8))
    key = "spark.datasource.partlog.maxOffsetsPerTrigger"
    spark.conf.set(key, "none")
    try:
        reader = spark.readStream.format("partlog").option("path", stream.root)
        assert "`maxOffsetsPerTrigger`" in fails("OPTION_VALUE", reader.load)
        assert reader.option("MAXOFFSETSPERTRIGGER", 3).load().isStreaming
    finally:
        spark.conf.unset(key)


@pytest.mark.parametrize(
    ("options", "condition", "part"),
    [
        ({"startingOffsets": '{"events":{"0":0}}'}, "OPTION_VALUE", "partition 1 of topic events"),
        ({"startingOffsets": '{"events":{"0":9,"1":0,"2":0,"3":0}}'}, "OFFSETS_OUT_OF_RANGE", "offset 9"),
        ({"startingTimestamp": 1 << 50}, "TIMESTAMP_NOT_FOUND", "topic events"),
        ({"subscribe": "missing", "failOnDataLoss": False}, "TOPIC_NOT_FOUND", "Topic missing"),
    ],
)
def test_a_query_that_cannot_be(stream: Stream, options: dict[str, object], condition: str, part: str) -> None:
    """Only a query knows where it begins, and whether it has read a topic."""
    stream.write(range(8))
    assert part in stream.fails(condition, **options)
    assert stream.rows == [] and stream.sources() == []


def test_a_topic_that_comes_between_load_and_start_is_read(spark: SparkSession, stream: Stream) -> None:
    stream.write(range(4), topic="other")
    source = (
        spark.readStream.format("partlog").option("subscribePattern", "e.*").option("startingOffsets", "earliest").load(str(stream.root))
    )
    stream.write(range(8))
    query = source.writeStream.format("memory").queryName("between").option("checkpointLocation", str(stream.checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()
    assert spark.table("between").count() == 8


def test_there_is_no_other_source(spark: SparkSession, stream: Stream) -> None:
    """Spark falls back to a source of its first API, if a setting says so."""
    stream.write(range(4))
    key = "spark.sql.streaming.disabledV2MicroBatchReaders"
    spark.conf.set(key, "io.sparklog.catalog.PartlogProvider")
    try:
        assert key in stream.fails("STREAM_SOURCE_DISABLED")
    finally:
        spark.conf.unset(key)
    assert numbers(stream.run(startingOffsets="earliest")) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("options", "condition", "part"),
    [
        ({"partition": 4}, "OPTION_UNKNOWN", "`partitions`"),
        ({"partitions": 0}, "OPTION_VALUE", "`partitions`"),
        ({"batch.size": "1m"}, "OPTION_VALUE", "in bytes"),
        ({"topic": "a/b"}, "TOPIC_NAME_ILLEGAL", "a/b"),
        ({"txnAppId": "a", "txnVersion": 1}, "OPTION_VALUE", "`txnAppId`"),
        ({"path": None}, "ROOT_REQUIRED", ""),
        ({"path": "{file}"}, "ROOT_NOT_A_DIRECTORY", "file"),
    ],
)
def test_a_sink_that_cannot_be_is_refused_where_it_is_started(
    spark: SparkSession, stream: Stream, fails: Fails, tmp_path: Path, options: dict[str, object], condition: str, part: str
) -> None:
    (tmp_path / "file").touch()
    given = {"path": str(tmp_path / "out"), "topic": "t", "checkpointLocation": stream.checkpoint, **options}
    given = {key: str(value).format(file=tmp_path / "file") for key, value in given.items() if value is not None}
    rows = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
    assert part in fails(condition, rows.writeStream.format("partlog").options(**given).start)
    assert spark.streams.active == [] and not (tmp_path / "out").exists()


def test_options_of_a_stream_in_a_batch(spark: SparkSession, stream: Stream, fails: Fails) -> None:
    stream.write(range(8))
    batch = spark.read.format("partlog").option("subscribe", "events")
    assert batch.option("maxOffsetsPerTrigger", 3).load(str(stream.root)).count() == 8
    assert "earliest" in fails("OPTION_VALUE", lambda: batch.option("startingOffsets", "latest").load(str(stream.root)).count())
