"""`df.writeStream.format("partlog")`: each epoch once, whatever is repeated."""

import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from handmade import seeded
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from spark.collecting import stop
from spark.epochs import EPOCH, Sink

from sparklog import Log


class Warnings:
    """Lines of the log of the session's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        jvm = spark._jvm
        assert jvm is not None
        self._context = jvm.org.apache.logging.log4j.LogManager.getContext(False)
        self._text = jvm.java.io.StringWriter()
        log4j = jvm.org.apache.logging.log4j.core
        layout = log4j.layout.PatternLayout.createDefaultLayout()
        self._appender = log4j.appender.WriterAppender.createAppender(layout, None, self._text, "taken", False, True)
        self._appender.start()
        self._context.getConfiguration().getRootLogger().addAppender(self._appender, None, None)
        self._context.updateLoggers()

    def take(self) -> str:
        text = str(self._text.toString())
        self._text.getBuffer().setLength(0)
        return text

    def stop(self) -> None:
        self._context.getConfiguration().getRootLogger().removeAppender("taken")
        self._context.updateLoggers()
        self._appender.stop()


@pytest.fixture
def warnings(spark: SparkSession) -> Iterator[Warnings]:
    taken = Warnings(spark)
    yield taken
    taken.stop()


def test_an_epoch_is_one_version_and_one_data_file(sink: Sink) -> None:
    for epoch in range(4):
        sink.run(partitions=3)
        assert len(list((sink.root / "_partlog" / "t" / "data").rglob("*.log"))) == epoch + 1
        assert len(sink.versions()) == epoch + 1
    assert sink.values() == list(range(4 * EPOCH))


def test_the_kafka_view_copies_little_of_what_the_demo_writes(spark: SparkSession, sink: Sink) -> None:
    """As in `make demo`, two tasks write 1 MB each for a partition, and then a query some 300 KB a partition in each micro-batch.

    The demo has 8 partitions, and codes its batches.
    """
    sink.save(spark.range(0, 13_500, 1, 2).selectExpr("CAST(id AS STRING) AS key", "repeat('x', 300) AS value"), "flights", partitions=2)
    options = {"subscribe": "flights", "startingOffsets": "earliest", "maxOffsetsPerTrigger": 2_000}
    flights = spark.readStream.format("partlog").options(**options).load(str(sink.root)).select("key", "value")
    assert len(sink.run(flights, topic="departures", partitions=2)) == 7
    for topic in ("flights", "departures"):
        about = Log(sink.root)[topic].describe()
        assert sum(file.stat().st_size for file in sink.root.glob(f"{topic}-*/*.log")) == about["bytes"] > 4_000_000
        assert about["view_bytes"] < 0.2 * about["bytes"]


@pytest.mark.parametrize("each_batch", [False, True])
def test_a_query_that_writes_what_it_reads_is_warned_once(
    spark: SparkSession, tmp_path: Path, warnings: Warnings, each_batch: bool
) -> None:
    """By name, as its records come back to it; not a query that writes to another topic, or to that of another root."""
    root, other = str(tmp_path / "root"), str(tmp_path / "other")
    for number in range(3):
        rows = spark.range(number, number + 1).selectExpr("CAST(id AS STRING) AS value")
        rows.write.format("partlog").options(topic="t", partitions=1).mode("append").save(root)

    def copies(topic: str, to: str) -> str:
        """The warnings of a query that takes three epochs."""
        read = spark.readStream.format("partlog").options(subscribe="t", startingOffsets="earliest", maxOffsetsPerTrigger=1).load(root)
        writer = read.select("value").writeStream.trigger(availableNow=True).option("checkpointLocation", f"{to}-{topic}-checkpoint")
        if each_batch:
            query = writer.foreachBatch(lambda rows, _: rows.write.format("partlog").option("topic", topic).mode("append").save(to)).start()
        else:
            query = writer.format("partlog").option("topic", topic).start(to)
        query.awaitTermination()
        assert len(query.recentProgress) >= 3
        return warnings.take()

    assert "which it reads" not in copies("u", root) + copies("t", other)
    told = copies("t", root)
    assert told.count(f"writes to topic t under {root}, which it reads: each record that it writes there comes back") == 1, told


def test_an_epoch_is_known_by_query_number_and_input(sink: Sink) -> None:
    """The input: the lines of the sources in Spark's offset log, of the epoch before and of this one."""
    for _ in range(3):
        sink.run(sink.numbers().unionAll(sink.numbers(EPOCH + 1)))
    logged = [(sink.checkpoint / "offsets" / str(epoch)).read_text().splitlines()[2:] for epoch in range(3)]
    assert [len(lines) for lines in logged] == [2, 2, 2]
    read = [logged[0], logged[0] + logged[1], logged[1] + logged[2]]
    id = json.loads((sink.checkpoint / "metadata").read_text())["id"]
    assert [version["query"] for version in sink.versions()] == [
        {"id": id, "epoch": epoch, "input": hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]} for epoch, lines in enumerate(read)
    ]


def test_progress_says_what_a_trigger_committed(sink: Sink) -> None:
    rows = sink.numbers().selectExpr("value", "IF(n % 5 = 0, 'few', 'many') AS topic")
    for epoch in range(2):
        (progress,) = sink.run(rows, topic=None, partitions=2)
        shown = progress["sink"]
        assert shown["description"] == f"partlog {sink.root}"
        assert shown["numOutputRows"] == EPOCH
        metrics = shown["metrics"]
        assert json.loads(metrics["version"]) == {"few": epoch, "many": epoch}
        assert metrics["records"] == str(EPOCH)
        added = [segment for topic in ("few", "many") for segment in sink.versions(topic)[-1]["added"]]
        assert metrics["bytes"] == str(sum(segment["bytes"] for segment in added))
        assert metrics["liveSegments"] == str(sum(len(version["added"]) for topic in ("few", "many") for version in sink.versions(topic)))
        assert 0 < int(metrics["commitMs"]) + int(metrics["tidyMs"]) < 60_000
    sink.forget()
    repeated, following = sink.run(rows, topic=None, partitions=2)
    assert json.loads(following["sink"]["metrics"]["version"]) == {"few": 2, "many": 2}
    assert repeated["batchId"] == 1
    assert repeated["sink"]["metrics"] | {"commitMs": "", "tidyMs": ""} == {
        "version": "{}", "records": "0", "bytes": "0", "mergedBytes": "0", "liveSegments": "0", "commitMs": "", "tidyMs": "",
    }  # fmt: skip


def test_an_epoch_that_spark_forgot_is_not_written_again(sink: Sink) -> None:
    for epoch in range(3):
        sink.run()
        before = sink.versions()
        assert sink.forget() == 2 * epoch
        assert [progress["batchId"] for progress in sink.run()] == [2 * epoch, 2 * epoch + 1]
        assert sink.versions()[:-1] == before
    assert sink.values() == list(range(6 * EPOCH))


def test_a_restored_checkpoint_passes_if_its_epochs_read_the_same(sink: Sink, tmp_path: Path) -> None:
    sink.run()
    shutil.copytree(sink.checkpoint, tmp_path / "older")
    for _ in range(3):
        sink.run()
    before = sink.versions()
    shutil.rmtree(sink.checkpoint)
    (tmp_path / "older").rename(sink.checkpoint)
    for epoch in (1, 2, 3):
        assert [progress["batchId"] for progress in sink.run()] == [epoch]
        assert sink.versions() == before
    sink.run()
    assert sink.values() == list(range(5 * EPOCH))


def test_an_epoch_with_other_input_is_refused(sink: Sink, tmp_path: Path) -> None:
    """Two checkpoints of one query, the second one a copy: of an older moment, then ahead. Records of the first one stay as they are."""
    copy = Sink(sink.spark, tmp_path)
    copy.checkpoint = tmp_path / "copy"
    sink.run()
    shutil.copytree(sink.checkpoint, copy.checkpoint)
    for _ in range(2):
        sink.run()
    before = sink.versions()
    for _ in range(2):
        with pytest.raises(
            StreamingQueryException, match=r"\[PARTLOG_EPOCH_DIFFERS\].* Epoch 1 of this .*: version 1 applied it with input"
        ):
            copy.run(copy.numbers(EPOCH + 1))
        assert sink.versions() == before
        assert sink.values() == list(range(3 * EPOCH))
    sink.run()
    assert sink.values() == list(range(4 * EPOCH))


def test_an_epoch_of_files_is_known_by_its_number_of_records(sink: Sink, tmp_path: Path) -> None:
    """A restored checkpoint, and a file more: Spark's offset log has the same line for both."""
    files = tmp_path / "files"
    files.mkdir()
    rows = sink.spark.readStream.text(str(files))
    for name in ("1", "2", "3"):
        (files / name).write_text(f"{name}\n")
        if name == "2":
            shutil.copytree(sink.checkpoint, tmp_path / "backup")
        if name == "3":
            shutil.rmtree(sink.checkpoint)
            shutil.move(tmp_path / "backup", sink.checkpoint)
            with pytest.raises(StreamingQueryException, match=r"EPOCH_DIFFERS\].* applied it with 1 records, and the write has 2"):
                sink.run(rows)
        else:
            sink.run(rows)
    assert [version["query"]["input"] for version in sink.versions()] == [None, None]
    assert sink.values() == [1, 2]


@pytest.mark.parametrize(("mode", "written"), [("complete", [10, 20, 20, 1010]), ("update", [10, 20, 1010])])
def test_a_mode_appends_what_it_gives(sink: Sink, mode: str, written: list[int]) -> None:
    """In complete mode the whole result in each epoch, in update mode what changed. The result: the twenties, with their counts."""
    counts = sink.numbers().selectExpr("n DIV 20 AS twenties").groupBy("twenties").count()
    for _ in range(3):
        sink.run(counts.selectExpr("CAST(1000 * twenties + `count` AS STRING) AS value"), mode)
    assert sink.values() == written


def test_a_failure_between_two_topics_is_made_up_for(sink: Sink) -> None:
    rows = sink.numbers().selectExpr("value", "IF(n % 2 = 0, 'a', 'b') AS topic")
    for _ in range(2):
        sink.run(rows, topic=None)
        before = sink.versions("a")
        epoch = sink.forget()
        (sink.root / "_partlog" / "b" / f"{epoch:020}.json").unlink()
        for folder in sink.root.glob("b-*"):
            shutil.rmtree(folder)
        sink.run(rows, topic=None)
        assert sink.versions("a")[:-1] == before
    n = range(sink.epochs() * EPOCH)
    assert (sink.values("a"), sink.values("b")) == (list(n[::2]), list(n[1::2]))


@pytest.mark.slow
def test_a_query_may_be_stopped_at_any_moment(sink: Sink) -> None:
    """Also in a commit. The commit is then done or not done, and stopping is not an error."""
    chance = seeded()
    writer = sink.numbers().drop("n").writeStream.format("partlog").options(topic="t", path=sink.root, checkpointLocation=sink.checkpoint)
    sink.run()
    lives = 0
    while lives < 15 or sink.epochs() < 15:  # A machine that is busy finishes few epochs in these moments.
        query = writer.start()
        time.sleep(chance.uniform(0.05, 0.6 + 0.02 * lives))
        stop(query)
        lives += 1
    sink.run()
    assert sink.epochs() > 15
    assert sink.values() == list(range(sink.epochs() * EPOCH))


@pytest.mark.parametrize(
    ("condition", "columns", "options"),
    [
        ("COLUMN_REQUIRED", ["'k' AS key"], {}),
        ("COLUMN_TYPE", ["n AS value"], {}),
        ("TOPIC_REQUIRED", ["value"], {"topic": None}),
        ("TOPIC_NULL", ["value", "IF(n < 3, NULL, 't') AS topic"], {"topic": None}),
    ],
)
def test_bad_input_is_an_error_and_writes_nothing(sink: Sink, condition: str, columns: list[str], options: dict[str, object]) -> None:
    rows = sink.numbers().selectExpr(*columns)
    with pytest.raises(StreamingQueryException, match=rf"\[PARTLOG_{condition}\]"):
        sink.run(rows, **options)
    assert sink.files() == {}


def test_a_stream_needs_a_checkpoint(sink: Sink) -> None:
    """Spark's own error."""
    with pytest.raises(AnalysisException, match="checkpointLocation"):
        sink.numbers().drop("n").writeStream.format("partlog").option("topic", "t").start(str(sink.root))
    assert sink.files() == {}


def test_continuous_processing_is_refused(sink: Sink) -> None:
    rows = sink.spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
    options = {"topic": "t", "path": sink.root, "checkpointLocation": sink.checkpoint}
    query = rows.writeStream.format("partlog").options(**options).trigger(continuous="1 second").start()
    with pytest.raises(StreamingQueryException, match=r"\[PARTLOG_TRIGGER_UNSUPPORTED\].* by continuous processing\."):
        query.awaitTermination(120)
    assert sink.files() == {}


def test_real_time_mode_is_refused(sink: Sink) -> None:
    """With Spark's own check, which names the sinks it allows, and without it."""
    java = sink.spark._jvm.org.apache.spark.sql
    memory = getattr(getattr(java.execution.streaming.sources, "LowLatencyMemoryStream$"), "MODULE$")
    rows = DataFrame(memory.apply(sink.spark._jsparkSession, java.Encoders.STRING()).toDF(), sink.spark)
    options = {"topic": "t", "path": sink.root, "checkpointLocation": sink.checkpoint}
    writer = rows.writeStream.format("partlog").outputMode("update").options(**options).trigger(realTime="5 seconds")
    for check, error in (("true", "STREAMING_REAL_TIME_MODE"), ("false", r"\[PARTLOG_TRIGGER_UNSUPPORTED\].* in Real-Time Mode\.")):
        sink.spark.conf.set("spark.sql.streaming.realTimeMode.allowlistCheck", check)
        try:
            with pytest.raises(Exception, match=error):
                writer.start().awaitTermination(120)
        finally:
            sink.spark.conf.unset("spark.sql.streaming.realTimeMode.allowlistCheck")
        assert sink.files() == {}
