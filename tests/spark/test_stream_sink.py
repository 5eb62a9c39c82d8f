"""`df.writeStream.format("partlog")`, and batch writes in the function of `foreachBatch`: each epoch once, whatever is repeated.

The input is Spark's source `rate-micro-batch`: epoch e holds the numbers from e·n to (e+1)·n − 1, and with `availableNow` a run of the
query is one epoch.
"""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import sparklog

EPOCH = 10


class Bench:
    """A root, and queries from one checkpoint that write to it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.root, self.checkpoint = spark, folder / "root", folder / "checkpoint"

    def numbers(self, rows: int = EPOCH) -> DataFrame:
        ticks = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).load()
        return ticks.selectExpr("value AS n", "CAST(value AS STRING) AS value")

    def run(self, rows: DataFrame | None = None, mode: str = "append", **options: object) -> list[dict[str, Any]]:
        """Runs a query that writes rows for one more epoch, after the one it has to repeat, if any. Gives its progress, by epoch."""
        written = (self.numbers() if rows is None else rows).drop("n").writeStream.format("partlog").outputMode(mode)
        given = {"topic": "t", "path": self.root} | options
        return self.finish(written.options(**{key: value for key, value in given.items() if value is not None}))

    def each(self, function: Callable[[DataFrame, int], None], rows: int = EPOCH) -> list[dict[str, Any]]:
        return self.finish(self.numbers(rows).writeStream.foreachBatch(function))

    def finish(self, writer: Any) -> list[dict[str, Any]]:
        query: StreamingQuery = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()
        return [json.loads(progress.json) for progress in query.recentProgress]

    def save(self, rows: DataFrame, topic: str | None = "t", **options: object) -> None:
        """A batch write."""
        given = options if topic is None else {"topic": topic, **options}
        rows.drop("n").write.format("partlog").options(**given).mode("append").save(str(self.root))

    def forget(self) -> int:
        """What a driver leaves that dies after the sink's commit of an epoch: Spark's own log does not hold the epoch. Gives its number."""
        last = self.epochs() - 1
        for name in (f"{last}", f".{last}.crc"):
            (self.checkpoint / "commits" / name).unlink()
        return last

    def values(self, topic: str = "t") -> list[int]:
        rows = self.spark.read.format("partlog").option("subscribe", topic).load(str(self.root)).select("value").collect()
        return sorted(int(bytes(row["value"])) for row in rows)

    def versions(self, topic: str = "t") -> list[dict[str, Any]]:
        files = sorted((self.root / "_partlog" / topic).glob("*.json"))
        return [json.loads(file.read_text().splitlines()[0]) for file in files]

    def epochs(self) -> int:
        """How many epochs Spark has finished."""
        return 1 + max(int(file.name) for file in (self.checkpoint / "commits").iterdir() if file.name.isdecimal())

    def files(self) -> dict[str, int]:
        """The files under the root, with their numbers of bytes."""
        return {str(file.relative_to(self.root)): file.stat().st_size for file in self.root.rglob("*") if file.is_file()}


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(spark, tmp_path)


def test_an_epoch_is_one_version_and_one_data_file(bench: Bench) -> None:
    for epoch in range(4):
        bench.run(partitions=3)
        assert len(list((bench.root / "_partlog" / "t" / "data").rglob("*.log"))) == epoch + 1
        assert len(bench.versions()) == epoch + 1
    assert bench.values() == list(range(4 * EPOCH))


def test_an_epoch_is_known_by_query_number_and_input(bench: Bench) -> None:
    """The input: the lines of the sources in Spark's offset log, of the epoch before and of this one."""
    for _ in range(3):
        bench.run(bench.numbers().unionAll(bench.numbers(EPOCH + 1)))
    logged = [(bench.checkpoint / "offsets" / str(epoch)).read_text().splitlines()[2:] for epoch in range(3)]
    assert [len(lines) for lines in logged] == [2, 2, 2]
    read = [logged[0], logged[0] + logged[1], logged[1] + logged[2]]
    id = json.loads((bench.checkpoint / "metadata").read_text())["id"]
    assert [version["query"] for version in bench.versions()] == [
        {"id": id, "epoch": epoch, "input": hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]} for epoch, lines in enumerate(read)
    ]


def test_progress_says_what_a_trigger_committed(bench: Bench) -> None:
    rows = bench.numbers().selectExpr("value", "IF(n % 5 = 0, 'few', 'many') AS topic")
    for epoch in range(2):
        (progress,) = bench.run(rows, topic=None, partitions=2)
        sink = progress["sink"]
        assert sink["description"] == f"partlog {bench.root}"
        assert sink["numOutputRows"] == EPOCH
        metrics = sink["metrics"]
        assert json.loads(metrics["version"]) == {"few": epoch, "many": epoch}
        assert metrics["records"] == str(EPOCH)
        added = [segment for topic in ("few", "many") for segment in bench.versions(topic)[-1]["added"]]
        assert metrics["bytes"] == str(sum(segment["bytes"] for segment in added))
        assert metrics["liveSegments"] == str(sum(len(version["added"]) for topic in ("few", "many") for version in bench.versions(topic)))
        assert 0 < int(metrics["commitMs"]) + int(metrics["tidyMs"]) < 60_000
    bench.forget()
    repeated, following = bench.run(rows, topic=None, partitions=2)
    assert json.loads(following["sink"]["metrics"]["version"]) == {"few": 2, "many": 2}
    assert repeated["batchId"] == 1
    assert repeated["sink"]["metrics"] | {"commitMs": "", "tidyMs": ""} == {
        "version": "{}", "records": "0", "bytes": "0", "liveSegments": "0", "commitMs": "", "tidyMs": "",
    }  # fmt: skip


def test_an_epoch_that_spark_forgot_is_not_written_again(bench: Bench) -> None:
    for epoch in range(3):
        bench.run()
        before = bench.versions()
        assert bench.forget() == 2 * epoch
        assert [progress["batchId"] for progress in bench.run()] == [2 * epoch, 2 * epoch + 1]
        assert bench.versions()[:-1] == before
    assert bench.values() == list(range(6 * EPOCH))


def test_a_restored_checkpoint_passes_if_its_epochs_read_the_same(bench: Bench, tmp_path: Path) -> None:
    bench.run()
    shutil.copytree(bench.checkpoint, tmp_path / "older")
    for _ in range(3):
        bench.run()
    before = bench.versions()
    shutil.rmtree(bench.checkpoint)
    (tmp_path / "older").rename(bench.checkpoint)
    for epoch in (1, 2, 3):
        assert [progress["batchId"] for progress in bench.run()] == [epoch]
        assert bench.versions() == before
    bench.run()
    assert bench.values() == list(range(5 * EPOCH))


def test_an_epoch_with_other_input_is_refused(bench: Bench, tmp_path: Path) -> None:
    """Two checkpoints of one query, the second one a copy: of an older moment, then ahead. What the first one wrote stays as it is."""
    copy = Bench(bench.spark, tmp_path)
    copy.checkpoint = tmp_path / "copy"
    bench.run()
    shutil.copytree(bench.checkpoint, copy.checkpoint)
    for _ in range(2):
        bench.run()
    before = bench.versions()
    for _ in range(2):
        with pytest.raises(StreamingQueryException, match=r"\[PARTLOG_EPOCH_DIFFERS\].* another epoch 1: version 1 applied it with input"):
            copy.run(copy.numbers(EPOCH + 1))
        assert bench.versions() == before
        assert bench.values() == list(range(3 * EPOCH))
    bench.run()
    assert bench.values() == list(range(4 * EPOCH))


def test_other_writes_in_a_repeated_epoch_are_refused(bench: Bench) -> None:
    """The function takes another branch: its first write is not the one that was first."""
    bench.each(lambda rows, epoch: bench.save(rows))
    bench.forget()
    with pytest.raises(
        StreamingQueryException, match=r"\[PARTLOG_EPOCH_DIFFERS\].* with 10 records, and the write has 3\.(.|\n)*write_once"
    ):
        bench.each(lambda rows, epoch: bench.save(rows.limit(3)))
    assert bench.values() == list(range(EPOCH))


@pytest.mark.parametrize(("mode", "written"), [("complete", [10, 20, 20, 1010]), ("update", [10, 20, 1010])])
def test_a_mode_appends_what_it_gives(bench: Bench, mode: str, written: list[int]) -> None:
    """In complete mode the whole result in each epoch, in update mode what changed. The result: the twenties, with their counts."""
    counts = bench.numbers().selectExpr("n DIV 20 AS twenties").groupBy("twenties").count()
    for _ in range(3):
        bench.run(counts.selectExpr("CAST(1000 * twenties + `count` AS STRING) AS value"), mode)
    assert bench.values() == written


def test_writes_of_foreach_batch_are_exactly_once_on_the_thread_of_the_query(bench: Bench) -> None:
    """Two writes to one topic, one to another, and one to both: repeated after a failure between them, and as a whole."""
    failing = False

    def write(rows: DataFrame, epoch: int) -> None:
        bench.save(rows)
        if failing:
            raise RuntimeError("made to fail")
        bench.save(rows.selectExpr("CAST(-1 - n AS STRING) AS value"))
        bench.save(rows, "other")
        bench.save(rows.selectExpr("value", "IF(n % 2 = 0, 't', 'other') AS topic"), topic=None)

    for _ in range(2):
        failing = True
        with pytest.raises(StreamingQueryException, match="made to fail"):
            bench.each(write)
        failing = False
        bench.each(write)
        bench.forget()
        bench.each(write)
    n = range(bench.epochs() * EPOCH)
    assert bench.values() == sorted([*n, *(-1 - i for i in n), *n[::2]])
    assert bench.values("other") == sorted([*n, *n[1::2]])
    for topic, writes in (("t", 3), ("other", 2)):
        queries = [version["query"] for version in bench.versions(topic)]
        id = queries[0]["id"].partition("/")[0]
        expected = [(f"{id}/{i}", epoch) for epoch in range(bench.epochs()) for i in range(writes)]
        assert [(query["id"], query["epoch"]) for query in queries] == expected
        assert len({query["input"] for query in queries}) == bench.epochs()


def test_names_make_writes_of_other_threads_exactly_once(bench: Bench) -> None:
    def write(rows: DataFrame, epoch: int) -> None:
        def save(topic: str) -> None:
            bench.save(rows, topic, **sparklog.write_once(f"{bench.checkpoint} {topic}", epoch))
            bench.save(rows, f"{topic}-unnamed")

        with ThreadPool(2) as pool:
            pool.map(save, ["t", "other"])

    bench.each(write)
    bench.forget()
    bench.each(write)
    for topic in ("t", "other"):
        assert bench.values(topic) == list(range(bench.epochs() * EPOCH))
        name = f"{bench.checkpoint} {topic}"
        assert [version["query"] for version in bench.versions(topic)] == [
            {"id": name, "epoch": epoch, "input": None} for epoch in range(bench.epochs())
        ]
        unnamed = [version["query"] for version in bench.versions(f"{topic}-unnamed")]
        assert unnamed == [None] * (bench.epochs() + 1), "a thread does not know its place in the order of writes"


def test_names_make_writes_exactly_once_over_connect(tmp_path: Path) -> None:
    command = [sys.executable, __file__, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=150, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4_000:]


def over_connect(folder: Path) -> None:
    root = str(folder / "root")

    def write(rows: DataFrame, epoch: int) -> None:
        once = sparklog.write_once("job", epoch)
        rows.select("value").write.format("partlog").options(topic="t", **once).mode("append").save(root)

    bench = Bench(sparklog.session(**{"spark.remote": "local[2]", "spark.ui.enabled": "false"}), folder)
    try:
        bench.each(write)
        bench.forget()
        bench.each(write)
        assert bench.values() == list(range(bench.epochs() * EPOCH))
        assert [version["query"]["id"] for version in bench.versions()] == ["job"] * bench.epochs()
    finally:
        bench.spark.stop()


def test_a_failure_between_two_topics_is_made_up_for(bench: Bench) -> None:
    rows = bench.numbers().selectExpr("value", "IF(n % 2 = 0, 'a', 'b') AS topic")
    for _ in range(2):
        bench.run(rows, topic=None)
        before = bench.versions("a")
        epoch = bench.forget()
        (bench.root / "_partlog" / "b" / f"{epoch:020}.json").unlink()
        for folder in bench.root.glob("b-*"):
            shutil.rmtree(folder)
        bench.run(rows, topic=None)
        assert bench.versions("a")[:-1] == before
    n = range(bench.epochs() * EPOCH)
    assert (bench.values("a"), bench.values("b")) == (list(n[::2]), list(n[1::2]))


def test_a_query_may_be_stopped_at_any_moment(bench: Bench) -> None:
    """Also in a commit. What it did then is done or not done, and stopping is not an error."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    writer = (
        bench.numbers().drop("n").writeStream.format("partlog").options(topic="t", path=bench.root, checkpointLocation=bench.checkpoint)
    )
    bench.run()
    for _ in range(15):
        query = writer.start()
        time.sleep(chance.uniform(0.05, 0.6))
        query.stop()
        assert query.exception() is None
    bench.run()
    assert bench.epochs() > 15
    assert bench.values() == list(range(bench.epochs() * EPOCH))


@pytest.mark.parametrize(
    ("condition", "columns", "options"),
    [
        ("COLUMN_REQUIRED", ["'k' AS key"], {}),
        ("COLUMN_TYPE", ["n AS value"], {}),
        ("OPTION_UNKNOWN", ["value"], {"partition": 3}),
        ("OPTION_VALUE", ["value"], {"txnAppId": "job", "txnVersion": 1}),
        ("TOPIC_REQUIRED", ["value"], {"topic": None}),
        ("TOPIC_NULL", ["value", "IF(n < 3, NULL, 't') AS topic"], {"topic": None}),
        ("TOPIC_NAME_ILLEGAL", ["value"], {"topic": "a/b"}),
    ],
)
def test_bad_input_is_an_error_and_writes_nothing(bench: Bench, condition: str, columns: list[str], options: dict[str, object]) -> None:
    rows = bench.numbers().selectExpr(*columns)
    with pytest.raises(StreamingQueryException, match=rf"\[PARTLOG_{condition}\]"):
        bench.run(rows, **options)
    assert bench.files() == {}


def test_a_stream_needs_a_checkpoint(bench: Bench) -> None:
    """Spark's own error."""
    with pytest.raises(AnalysisException, match="checkpointLocation"):
        bench.numbers().drop("n").writeStream.format("partlog").option("topic", "t").start(str(bench.root))
    assert bench.files() == {}


def test_continuous_processing_is_refused(bench: Bench) -> None:
    rows = bench.spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
    options = {"topic": "t", "path": bench.root, "checkpointLocation": bench.checkpoint}
    query = rows.writeStream.format("partlog").options(**options).trigger(continuous="1 second").start()
    with pytest.raises(StreamingQueryException, match=r"\[PARTLOG_TRIGGER_UNSUPPORTED\].* by continuous processing\."):
        query.awaitTermination(60)
    assert bench.files() == {}


def test_real_time_mode_is_refused(bench: Bench) -> None:
    """With Spark's own check, which names the sinks it allows, and without it."""
    java = bench.spark._jvm.org.apache.spark.sql
    stream = getattr(getattr(java.execution.streaming.sources, "LowLatencyMemoryStream$"), "MODULE$")
    rows = DataFrame(stream.apply(bench.spark._jsparkSession, java.Encoders.STRING()).toDF(), bench.spark)
    options = {"topic": "t", "path": bench.root, "checkpointLocation": bench.checkpoint}
    writer = rows.writeStream.format("partlog").outputMode("update").options(**options).trigger(realTime="5 seconds")
    for check, error in (("true", "STREAMING_REAL_TIME_MODE"), ("false", r"\[PARTLOG_TRIGGER_UNSUPPORTED\].* in Real-Time Mode\.")):
        bench.spark.conf.set("spark.sql.streaming.realTimeMode.allowlistCheck", check)
        try:
            with pytest.raises(Exception, match=error):
                writer.start().awaitTermination(60)
        finally:
            bench.spark.conf.unset("spark.sql.streaming.realTimeMode.allowlistCheck")
        assert bench.files() == {}


if __name__ == "__main__":
    over_connect(Path(sys.argv[1]))
