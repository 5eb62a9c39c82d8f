"""Batch writes in the function of `foreachBatch`: each once, whatever is repeated."""

import os
import shutil
import subprocess
import sys
from multiprocessing.pool import ThreadPool
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame
from spark.epochs import EPOCH, Sink

import sparklog


def test_other_writes_in_a_repeated_epoch_are_refused(sink: Sink) -> None:
    """The function takes another branch: its first write is not the one that was first."""
    sink.each(lambda rows, epoch: sink.save(rows))
    sink.forget()
    with pytest.raises(
        StreamingQueryException, match=r"\[PARTLOG_EPOCH_DIFFERS\].* with 10 records, and the write has 3\.(.|\n)*txn_options"
    ):
        sink.each(lambda rows, epoch: sink.save(rows.limit(3)))
    assert sink.values() == list(range(EPOCH))


def test_writes_of_foreach_batch_are_exactly_once_on_the_thread_of_the_query(sink: Sink) -> None:
    """Two writes to one topic, one to another, and one to both: repeated after a failure between them, and as a whole."""
    failing = False

    def write(rows: DataFrame, epoch: int) -> None:
        sink.save(rows)
        if failing:
            raise RuntimeError("made to fail")
        sink.save(rows.selectExpr("CAST(-1 - n AS STRING) AS value"))
        sink.save(rows, "other")
        sink.save(rows.selectExpr("value", "IF(n % 2 = 0, 't', 'other') AS topic"), topic=None)

    for _ in range(2):
        failing = True
        with pytest.raises(StreamingQueryException, match="made to fail"):
            sink.each(write)
        failing = False
        sink.each(write)
        sink.forget()
        sink.each(write)
    n = range(sink.epochs() * EPOCH)
    assert sink.values() == sorted([*n, *(-1 - i for i in n), *n[::2]])
    assert sink.values("other") == sorted([*n, *n[1::2]])
    for topic, writes in (("t", 3), ("other", 2)):
        queries = [version["query"] for version in sink.versions(topic)]
        id = queries[0]["id"].partition("/")[0]
        expected = [(f"{id}/{i}", epoch) for epoch in range(sink.epochs()) for i in range(writes)]
        assert [(query["id"], query["epoch"]) for query in queries] == expected
        assert len({query["input"] for query in queries}) == sink.epochs()


def test_writes_of_foreach_batch_are_told_apart_by_topic_and_place(sink: Sink) -> None:
    """Neither a job group of the user's nor another path of the root makes the second write the first one."""
    path = sink.root.with_name("link")
    path.symlink_to(sink.root)

    def write(rows: DataFrame, epoch: int) -> None:
        sink.save(rows)
        rows.sparkSession.sparkContext.setJobGroup("mine", "a job of the user's")
        sink.save(rows)
        rows.select("value").write.format("partlog").option("topic", "t").mode("append").save(str(path))

    sink.each(write)
    assert [version["query"]["id"].partition("/")[2] for version in sink.versions()] == ["0", "1", "2"]
    assert sink.values() == sorted(list(range(EPOCH)) * 3)


def test_an_epoch_after_others_than_those_of_the_topic_is_refused(sink: Sink, tmp_path: Path) -> None:
    """A restored checkpoint, and other cuts: the function wrote nothing in the epoch that the topic has."""

    def write(rows: DataFrame, epoch: int) -> None:
        if epoch != 1 or skipped:
            return
        sink.save(rows)

    skipped = False
    sink.each(write)
    shutil.copytree(sink.checkpoint, tmp_path / "backup")
    sink.each(write)
    shutil.rmtree(sink.checkpoint)
    shutil.move(tmp_path / "backup", sink.checkpoint)
    skipped = True
    sink.each(write, EPOCH - 1)
    with pytest.raises(
        StreamingQueryException,
        match=r"\[PARTLOG_EPOCH_DIFFERS\].* Epoch 2 of this write does not .*: epoch 1 was applied with input .*own log",
    ):
        sink.each(lambda rows, epoch: sink.save(rows), EPOCH - 1)
    assert sink.values() == list(range(EPOCH, 2 * EPOCH))


def test_names_make_writes_of_other_threads_exactly_once(sink: Sink) -> None:
    def write(rows: DataFrame, epoch: int) -> None:
        def save(topic: str) -> None:
            sink.save(rows, topic, **sparklog.txn_options(f"{sink.checkpoint} {topic}", epoch))
            sink.save(rows, f"{topic}-unnamed")

        with ThreadPool(2) as pool:
            pool.map(save, ["t", "other"])

    sink.each(write)
    sink.forget()
    sink.each(write)
    for topic in ("t", "other"):
        assert sink.values(topic) == list(range(sink.epochs() * EPOCH))
        name = f"{sink.checkpoint} {topic}"
        assert [version["query"] for version in sink.versions(topic)] == [
            {"id": name, "epoch": epoch, "input": None} for epoch in range(sink.epochs())
        ]
        unnamed = [version["query"] for version in sink.versions(f"{topic}-unnamed")]
        assert unnamed == [None] * (sink.epochs() + 1), "a thread does not know its place in the order of writes"


@pytest.mark.slow
def test_names_make_writes_exactly_once_over_connect(connect: str, tmp_path: Path) -> None:
    command = [sys.executable, __file__, connect, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=850, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4_000:]


def over_connect(server: str, folder: Path) -> None:
    root = str(folder / "root")

    def write(rows: DataFrame, epoch: int) -> None:
        once = sparklog.txn_options("job", epoch)
        rows.select("value").write.format("partlog").options(topic="t", **once).mode("append").save(root)

    sink = Sink(sparklog.session(conf={"spark.remote": server}), folder)

    def run() -> None:
        """Spark gives the process that runs the function ten seconds to start, and a busy machine may need more."""
        while True:
            try:
                sink.each(write)
                return
            except PySparkException as error:
                if "Timed out while waiting for the Python worker" not in str(error):
                    raise

    try:
        run()
        sink.forget()
        run()
        assert sink.values() == list(range(sink.epochs() * EPOCH))
        assert [version["query"]["id"] for version in sink.versions()] == ["job"] * sink.epochs()
    finally:
        sink.spark.stop()


if __name__ == "__main__":
    over_connect(sys.argv[1], Path(sys.argv[2]))
