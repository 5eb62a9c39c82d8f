"""Streaming queries that start again from a checkpoint in any state that a crash, or a copy that was put back, can leave."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from spark.streaming_driver import NAMES, checkpoint, start
from spark.streams import Queries

from sparklog import Log
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog

EPOCHS = 4
LIMIT = 30
TOPICS = {"append": ["append"], "split": ["split-0", "split-1"], "own": ["own"], "named": ["named"]}


class Runs(Queries):
    """Queries that run in the session of the tests."""

    def __init__(self, spark: SparkSession, classpath: str, folder: Path, *names: str) -> None:
        super().__init__(classpath, folder, *names)
        self.spark = spark

    def run(self, *names: str, between: Callable[[int], None] = lambda epoch: None, **stream: object) -> None:  # type: ignore[override]
        options = {"maxOffsetsPerTrigger": LIMIT, **stream}
        running = [start(self.spark, self.folder, name, between=between, **options) for name in names or self.names]
        failed: list[StreamingQueryException] = []
        for query in running:
            try:
                query.awaitTermination()
            except StreamingQueryException as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def epoch_files(self, name: str, log: str) -> list[Path]:
        """The files of Spark's logs `offsets` or `commits`, the newest first."""
        return sorted((checkpoint(self.folder, name) / log).glob("[0-9]*"), key=lambda file: -int(file.name))

    def forget(self, name: str, log: str, epochs: int) -> None:
        """Deletes the newest files of `offsets` or `commits`."""
        for file in self.epoch_files(name, log)[:epochs]:
            file.unlink()
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    def undo(self, topic: str) -> None:
        """Deletes the newest version file of a topic of the output, as if the commit had ended before its link."""
        self.version_files(topic)[-1].unlink()

    def version_files(self, topic: str) -> list[Path]:
        return sorted((self.output.root / "_partlog" / topic).glob("*.json"))

    def committed(self) -> dict[Path, bytes]:
        """The version files of the output that hold an epoch: merges come between them or not."""
        files = {file: file.read_bytes() for file in sorted(self.output.root.glob("_partlog/*/*.json"))}
        return {file: content for file, content in files.items() if json.loads(content.splitlines()[0])["query"]}


Fresh = Callable[..., Runs]


@pytest.fixture(scope="module")
def base(spark: SparkSession, java_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Four epochs of every query, all done. Tests work with copies."""
    runs = Runs(spark, java_classpath, tmp_path_factory.mktemp("base"))
    runs.feed(EPOCHS * LIMIT)
    runs.run()
    assert runs.check() == EPOCHS * len(NAMES)
    return runs


@pytest.fixture
def fresh(spark: SparkSession, java_classpath: str, tmp_path: Path) -> Iterator[Fresh]:
    """Makes queries with the given names, in a folder of their own."""
    yield lambda *names: Runs(spark, java_classpath, tmp_path / "runs", *names)
    for query in spark.streams.active:
        query.stop()


@pytest.fixture
def runs(base: Runs, fresh: Fresh, tmp_path: Path) -> Runs:
    """A copy of `base`: roots and checkpoints may be moved."""
    shutil.copytree(base.folder, tmp_path / "runs")
    return fresh()


def answer_is_lost(runs: Runs, name: str) -> None:
    """After the sink's commit, before commits/N."""
    runs.forget(name, "commits", 1)


def before_the_commit(runs: Runs, name: str) -> None:
    """After offsets/N, in the tasks, or in the commit before the link."""
    runs.forget(name, "commits", 1)
    for topic in TOPICS[name]:
        runs.undo(topic)
    if name in ("own", "named"):
        runs.undo(name)  # both writes of the epoch


def between_two_writes(runs: Runs, name: str) -> None:
    """Between the commits of two topics, or two writes of a foreachBatch."""
    runs.forget(name, "commits", 1)
    runs.undo(TOPICS[name][-1])


def older_checkpoint(runs: Runs, name: str) -> None:
    """An older copy of the checkpoint is put back."""
    runs.forget(name, "commits", 3)
    runs.forget(name, "offsets", 3)


def only_the_starts_are_left(runs: Runs, name: str) -> None:
    runs.forget(name, "commits", EPOCHS)
    runs.forget(name, "offsets", EPOCHS)


def older_commits(runs: Runs, name: str) -> None:
    """Spark repeats only the newest epoch of `offsets`."""
    runs.forget(name, "commits", 3)


@pytest.mark.parametrize(
    "state", [answer_is_lost, before_the_commit, between_two_writes, older_checkpoint, only_the_starts_are_left, older_commits]
)
def test_the_same_cuts_are_passed(runs: Runs, state: Callable[[Runs, str], None]) -> None:
    """Epochs that the log has are found done, others are written; then the queries go on."""
    before = runs.committed()
    for name in NAMES:
        state(runs, name)
    kept = runs.committed()
    runs.run()
    assert runs.check() == EPOCHS * len(NAMES)
    after = runs.committed()
    assert after.keys() == before.keys() and kept.items() <= after.items(), "an epoch that was there was written again"
    runs.feed(LIMIT)
    runs.run()
    assert runs.check() == (EPOCHS + 1) * len(NAMES)


def refused(runs: Runs, name: str, limit: int) -> str:
    """The error of a query that repeats an epoch with another cut."""
    with pytest.raises(StreamingQueryException) as caught:
        runs.run(name, maxOffsetsPerTrigger=limit)
    assert "[PARTLOG_EPOCH_DIFFERS]" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("state", [older_checkpoint, only_the_starts_are_left])
def test_other_cuts_are_refused(runs: Runs, tmp_path: Path, state: Callable[[Runs, str], None]) -> None:
    """Nothing is written, the error names both inputs, and the newer checkpoint can be put back."""
    before = runs.committed()
    for name in ("append", "split", "own"):
        saved = shutil.copytree(checkpoint(runs.folder, name), tmp_path / name)
        state(runs, name)
        query = json.loads((saved / "metadata").read_text())["id"]
        text = refused(runs, name, LIMIT - 1)
        assert query in text and str(runs.output.root) in text and TOPICS[name][0] in text, text
        assert runs.committed() == before
        shutil.rmtree(checkpoint(runs.folder, name))
        shutil.copytree(saved, checkpoint(runs.folder, name))
    runs.feed(LIMIT)
    runs.run()
    assert runs.check() == (EPOCHS + 1) * len(NAMES)


def test_a_copied_checkpoint_is_refused_where_it_parts(runs: Runs) -> None:
    """Two checkpoints of the same query id: the second one's epochs are other ones from the first cut that differs."""
    copied, original = runs.folder / "copied", checkpoint(runs.folder, "append")
    shutil.copytree(original, copied)
    runs.feed(4 * LIMIT)
    runs.run("append", maxOffsetsPerTrigger=LIMIT)
    before = runs.committed()
    shutil.rmtree(original)
    copied.rename(original)
    refused(runs, "append", LIMIT + 1)
    assert runs.committed() == before


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        # Epoch 1 was b1, an odd offset. Now it is a2, an even one, and epoch 2 would be b1.
        pytest.param("odd", {"in-a": 3, "in-b": 1}, id="an epoch that now has no records"),
        pytest.param("split", {"in-a": 3, "in-b": 1}, id="an epoch that now has records for another topic only"),
        pytest.param("split", {"in-a": 3, "in-b": 2}, id="an epoch that now has records for a further topic"),
    ],
)
def test_another_epoch_is_refused_as_a_whole(fresh: Fresh, name: str, ends: dict[str, int]) -> None:
    """Nothing of it may be committed: its records would come again, there or in a later epoch."""
    runs = fresh(name)

    def feed(topic: str, records: int) -> None:
        runs.input.run("append", topic=topic, tag="x", tasks=1, records=records, partitions=1)

    feed("in-a", 2)
    feed("in-b", 1)
    runs.run()
    feed("in-b", 1)
    runs.run()
    feed("in-a", 1)
    before = runs.committed()
    offsets = checkpoint(runs.folder, name) / "offsets" / "1"
    logged = offsets.read_text()
    line = logged.splitlines()[2]
    assert line == '{"in-a":{"0":2},"in-b":{"0":2}}'
    runs.forget(name, "commits", 1)
    runs.forget(name, "offsets", 1)
    offsets.write_text(logged.replace(line, json.dumps({topic: {"0": end} for topic, end in ends.items()}, separators=(",", ":"))))
    refused(runs, name, LIMIT)
    assert runs.committed() == before
    runs.forget(name, "offsets", 1)
    offsets.write_text(logged)
    runs.run()
    assert runs.check() == 3


def starts(runs: Runs, name: str) -> dict[str, int]:
    file = checkpoint(runs.folder, name) / "sources" / "0" / "0"
    [topic] = json.loads(file.read_text().splitlines()[0])["topics"].values()
    return dict(topic["offsets"])


def ends(runs: Runs, topic: str = "in-a") -> dict[str, int]:
    return {str(partition): end for partition, end in Log(runs.input.root).topic(topic).end_offsets().items()}


def begin(runs: Runs, name: str) -> None:
    """Starts a query from `latest`, and leaves what a crash leaves after sources/0/0 is there, before offsets/0."""
    query = start(runs.spark, runs.folder, name, available=False, startingOffsets="latest")
    until = time.monotonic() + 300
    while not runs.epoch_files(name, "commits"):
        assert query.exception() is None and time.monotonic() < until
        time.sleep(0.01)
    query.stop()
    for folder in (checkpoint(runs.folder, name) / "offsets", checkpoint(runs.folder, name) / "commits", runs.output.root):
        shutil.rmtree(folder)


def test_a_query_from_latest_begins_where_it_first_looked(fresh: Fresh) -> None:
    """A crash after sources/0/0 and before offsets/0 keeps the start; one before sources/0/0 makes the query resolve it again."""
    runs = fresh("append")
    runs.feed(40)
    begin(runs, "append")
    first = ends(runs)
    assert starts(runs, "append") == first
    shutil.rmtree(checkpoint(runs.folder, "append") / "sources")
    runs.feed(40)
    begin(runs, "append")
    second = ends(runs)
    assert starts(runs, "append") == second != first
    runs.feed(40)
    runs.run(startingOffsets="latest")
    assert starts(runs, "append") == second
    assert runs.check() == 2
    assert len(Log(runs.output.root).topic("append").read()) == 40


def test_a_query_from_latest_that_fails_in_its_first_batch_has_no_gap(fresh: Fresh) -> None:
    runs = fresh("own")
    runs.feed(40)
    begin(runs, "own")
    runs.feed(40)

    def fail(epoch: int) -> None:
        raise ValueError("made to fail")

    with pytest.raises(StreamingQueryException, match="made to fail"):
        runs.run(between=fail, startingOffsets="latest")
    assert len(runs.epoch_files("own", "offsets")) == 1 and not runs.epoch_files("own", "commits")
    runs.feed(40)
    runs.run(startingOffsets="latest", maxOffsetsPerTrigger=1000)
    assert runs.check() == 2
    assert len(Log(runs.output.root).topic("own").read()) == 80


def test_a_topic_that_a_crash_found(runs: Runs) -> None:
    """A crash after sources/0/1, before the epoch that names the topic; and one before both."""
    runs.names = ("append",)
    runs.feed(20, topic="in-b", partitions=2)
    runs.run()
    found = checkpoint(runs.folder, "append") / "sources" / "0" / "1"
    assert '"in-b"' in found.read_text()
    for removed in ([], [found]):
        runs.forget("append", "commits", 1)
        runs.forget("append", "offsets", 1)
        runs.undo("append")
        for file in removed:
            file.unlink()
        runs.feed(10, topic="in-b")
        runs.run()
        runs.check()


@pytest.mark.slow
def test_a_batch_reader_sees_whole_epochs(fresh: Fresh, spark: SparkSession) -> None:
    """Readers without and with Spark, in a loop beside the queries: what they count is always what some version ends with."""
    runs = fresh("append", "split")
    runs.feed(LIMIT)
    runs.run()
    runs.feed(20 * LIMIT)
    seen: dict[str, set[tuple[int, ...]]] = {}
    queries = [start(spark, runs.folder, name, maxOffsetsPerTrigger=LIMIT) for name in runs.names]
    while any(query.isActive for query in queries):
        for topic in ("append", "split-0", "split-1"):
            log = Log(runs.output.root).topic(topic)
            mine = log.read(columns=["partition"])["partition"].to_pylist()
            rows = spark.read.format("partlog").option("subscribe", topic).load(str(runs.output.root)).select("partition").collect()
            for counts in (Counter(mine), Counter(row[0] for row in rows)):
                seen.setdefault(topic, set()).add(tuple(counts[partition] for partition in range(log.partitions)))
    for query in queries:
        query.awaitTermination()
    assert runs.check() == 2 * 21
    for topic, counted in seen.items():
        of_topic = TopicLog(Root.at(str(runs.output.root)), topic)
        ends = {state.ends for version in of_topic.history() if (state := of_topic.at(version.version))}
        assert counted <= ends, f"a reader of {topic} saw a part of an epoch: {counted - ends}"
        assert len(counted) > 3, f"the readers of {topic} saw {len(counted)} states, which proves little"
