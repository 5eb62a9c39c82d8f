"""`spark.readStream.format("partlog")` with a real Spark: what it reads, and when. Refusals are in test_stream_refusals.py."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from spark.collecting import Stream, numbers, wait_until


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


def test_a_query_from_latest_that_fails_in_its_first_batch_goes_on_without_a_gap(spark: SparkSession, stream: Stream) -> None:
    stream.write(range(10))
    source = spark.readStream.format("partlog").load(str(stream.root))

    def fail(batch: DataFrame, epoch: int) -> None:
        raise RuntimeError("the sink is not there yet")

    query = source.writeStream.foreachBatch(fail).option("checkpointLocation", str(stream.checkpoint)).start()
    stream.write(range(10, 20))
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(120)
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


def test_assigned_partitions_only(stream: Stream) -> None:
    stream.write(range(8))
    assert numbers(stream.run(assign='{"events":[1,3]}', startingOffsets="earliest")) == [1, 3, 5, 7]
    assert stream.offsets() == ['{"events":{"1":2,"3":2}}']


def test_shares_of_a_topic_that_grows(stream: Stream) -> None:
    """Queries with shares of their own read each partition once; those that are added go to some, and change no other."""
    stream.write(range(8))
    seen: dict[str, list[int]] = {"1/3": [], "2/3": [], "3/3": []}
    begins = stream.checkpoint

    def run() -> None:
        for share, found in seen.items():
            stream.checkpoint = begins.with_name(f"share-{share[0]}")
            found += numbers(stream.run(share=share, startingOffsets="earliest"))

    run()
    assert seen == {"1/3": [0, 3, 4, 7], "2/3": [1, 5], "3/3": [2, 6]}
    stream.spark.sql(f"CALL partlog.add_partitions('{stream.root}', 'events', 6)")
    stream.write(range(8, 14), partitions=6)
    run()
    assert sorted(number for found in seen.values() for number in found) == list(range(14))
    assert json.loads(stream.offsets()[-1])["events"].keys() == {"2", "5"}


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
    query = stream.start(available_now=False, startingOffsets="earliest", minOffsetsPerTrigger=6, maxTriggerDelay="1d")
    wait_until(lambda: len(stream.rows) == 4, query)
    stream.write(range(4, 8))
    query.processAllAvailable()  # returns after a trigger that began since, and found too little
    assert len(stream.rows) == 4
    stream.write(range(8, 12))
    wait_until(lambda: len(stream.rows) == 12, query)
    query.stop()
    assert stream.batches == [4, 8]


def test_a_micro_batch_waits_no_longer_than_its_delay(stream: Stream) -> None:
    """The test of Java, `TopicStreamTest`, has a clock, and shows that it waits as long."""
    stream.write(range(4))
    query = stream.start(available_now=False, startingOffsets="earliest", minOffsetsPerTrigger=1_000, maxTriggerDelay="1s")
    wait_until(lambda: len(stream.rows) == 4, query)
    stream.write(range(4, 6))
    wait_until(lambda: len(stream.rows) == 6, query)
    query.stop()
    assert stream.batches == [4, 2]


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


def test_tiny_partitions_share_tasks(spark: SparkSession, stream: Stream) -> None:
    stream.write(range(80), partitions=8)
    tasks = []

    def count(batch: DataFrame, epoch: int) -> None:
        tasks.append(batch.rdd.getNumPartitions())

    for options in ({}, {"minPartitions": 4}, {"minPartitions": 8}, {"maxRecordsPerPartition": 20}):
        source = spark.readStream.format("partlog").options(startingOffsets="earliest", **options).load(str(stream.root))
        source.writeStream.foreachBatch(count).trigger(availableNow=True).start().awaitTermination()
    assert spark.sparkContext.defaultParallelism == 2
    assert tasks == [2, 4, 8, 4]


def test_a_batch_of_a_stream_has_all_columns_and_decodes_lazily(spark: SparkSession, stream: Stream) -> None:
    rows = spark.range(10).selectExpr(
        "CAST(id AS STRING) AS key", "concat('v', id) AS value", "array(named_struct('key', 'n', 'value', CAST('h' AS BINARY))) AS headers"
    )
    rows.write.format("partlog").options(topic="events", partitions=2).mode("append").save(str(stream.root))
    source = spark.readStream.format("partlog").option("startingOffsets", "earliest").load(str(stream.root))
    assert source.schema == spark.read.format("partlog").load(str(stream.root)).schema
    query = (
        source.selectExpr("topic", "CAST(key AS STRING)", "CAST(headers[0].value AS STRING)", "timestampType", "offset")
        .where("partition < 2")
        .writeStream.format("memory")
        .queryName("lazy")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    read = {tuple(row)[:4] for row in spark.table("lazy").collect()}
    assert read == {("events", str(n), "h", 0) for n in range(10)}
    assert "ColumnarToRow" in query._jsq.explainInternal(False)


def test_the_progress_says_where_the_query_is(stream: Stream) -> None:
    stream.write(range(100))
    query = stream.start(startingOffsets="earliest", maxOffsetsPerTrigger=40)
    query.awaitTermination()
    source = query.recentProgress[1]["sources"][0]
    assert source["description"] == f"partlog[subscribe=events] {stream.root}"
    offsets = [json.loads(source[name]) for name in ("startOffset", "endOffset", "latestOffset")]
    assert offsets == [{"events": {str(partition): next for partition in range(4)}} for next in (10, 20, 25)]
    assert source["numInputRows"] == 40
    metrics = source["metrics"]
    assert {name: metrics[name] for name in metrics if name not in ("bytesBehindLatest", "secondsBehindLatest")} == {
        "minOffsetsBehindLatest": "5",
        "maxOffsetsBehindLatest": "5",
        "avgOffsetsBehindLatest": "5.0",
        "dataLoss": "0",
        "topicIds": json.dumps({"events": stream.topic_id()}, separators=(",", ":")),
    }
    assert int(metrics["bytesBehindLatest"]) > 0 and float(metrics["secondsBehindLatest"]) >= 0
    last = query.recentProgress[2]["sources"][0]["metrics"]
    assert (last["maxOffsetsBehindLatest"], last["bytesBehindLatest"], last["secondsBehindLatest"]) == ("0", "0", "0.000")


def test_a_stream_in_joins_and_in_its_own_function(spark: SparkSession, stream: Stream) -> None:
    """Spark asks the scan for statistics; and the function of a foreachBatch reads the topic that its query reads."""
    stream.write(range(20))
    names = spark.range(20).selectExpr("CAST(CAST(id AS STRING) AS BINARY) AS value", "id % 3 AS kind")
    source = spark.readStream.format("partlog").option("startingOffsets", "earliest").load(str(stream.root))
    seen = []

    def look(batch: DataFrame, epoch: int) -> None:
        ends = spark.read.format("partlog").load(str(stream.root)).groupBy("partition").count().orderBy("partition").collect()
        seen.append((batch.count(), [row[1] for row in ends]))
        if epoch == 0:
            stream.write(range(20, 24))

    both = source.join(names, "value").select("kind").union(source.selectExpr("offset AS kind"))
    query = both.writeStream.foreachBatch(look).start()
    wait_until(lambda: len(seen) == 2, query)
    query.stop()
    assert seen == [(40, [5, 5, 5, 5]), (4, [6, 6, 6, 6])]


def test_a_table_is_a_stream(spark: SparkSession, stream: Stream) -> None:
    stream.write(range(8))
    spark.sql(f"CREATE TABLE streamed USING partlog OPTIONS (subscribe 'events', startingOffsets 'earliest') LOCATION '{stream.root}'")
    try:
        query = spark.readStream.table("streamed").writeStream.format("memory").queryName("of_table").trigger(availableNow=True).start()
        query.awaitTermination()
        assert spark.table("of_table").count() == 8
    finally:
        spark.sql("DROP TABLE streamed")


CONNECT = """
import os, sys, sparklog
from pyspark.sql import SparkSession
server, root, folder = sys.argv[1:]
spark = sparklog.configure(SparkSession.builder.remote(server)).getOrCreate()
source = spark.readStream.format("partlog").options(subscribe="events", startingOffsets="earliest", maxOffsetsPerTrigger=30)
for run in range(2):
    rows = source.load(root).selectExpr("CAST(value AS STRING)", "offset")
    writer = rows.writeStream.format("parquet").option("checkpointLocation", folder + "/checkpoint")
    query = writer.trigger(availableNow=True).start(folder + "/out")
    query.awaitTermination()
    print(len([name for name in os.listdir(folder + "/checkpoint/offsets") if not name.startswith(".")]))
    assert query.exception() is None
print(spark.read.parquet(folder + "/out").distinct().count())
refused = source.option("endingOffsets", "latest").load(root)  # Connect asks the server only for what needs an answer
try:
    refused.writeStream.format("noop").option("checkpointLocation", folder + "/c").start()
except Exception as error:
    print("[PARTLOG_OPTION_VALUE]" in str(error), len(spark.streams.active))
"""


@pytest.mark.slow
def test_connect(connect: str, stream: Stream, tmp_path: Path) -> None:
    stream.write(range(100))
    command = [sys.executable, "-c", CONNECT, connect, str(stream.root), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert ran.stdout.splitlines() == ["4", "4", "100", "True 0"]
