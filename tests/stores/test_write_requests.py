"""Spark's writes to S3: their requests, and how many of these come one after another."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyarrow.fs import FileSelector
from pyspark.sql import SparkSession
from stores.buckets import unique
from stores.faults import FaultProxy, Request, most_at_once, rounds
from stores.s3 import S3
from stores.sessions import session

ROWS = 1000
DELAY_S = 0.1
"""The time of a request. Requests that are made at once begin within less time."""
PROBE = "/_probe/"
"""In the keys of the probe, which tries once whether the server lets one of several puts win."""


class Writes:
    """Writes to a root in S3, and their requests."""

    def __init__(self, spark: SparkSession, s3: S3, proxy: FaultProxy) -> None:
        self.spark, self.proxy, self.s3 = spark, proxy, s3
        self.settings = s3.settings(proxy.endpoint)
        self.new_root()

    def new_root(self) -> None:
        self.root = f"s3a://{self.s3.bucket}/{unique('writes')}"

    def write(self, topic: str, **options: str) -> list[Request]:
        frame = self.spark.range(ROWS, numPartitions=1).selectExpr("CAST(id AS STRING) AS value")
        ask = frame.write.format("partlog").options(**self.settings, topic=topic, **options).mode("append")
        return self.asked(lambda: ask.save(self.root))

    def count(self, topics: str) -> int:
        return self.spark.read.format("partlog").options(**self.settings, subscribe=topics).load(self.root).count()

    def asked(self, act: Callable[[], object]) -> list[Request]:
        """The requests of an act, in their order."""
        self.proxy.clear()
        self.proxy.delay_s = DELAY_S
        act()
        self.proxy.delay_s = 0.0
        return [request for request in self.proxy.requests if PROBE not in request.key]


@pytest.fixture(scope="module")
def writes(s3: S3, s3a_jars: Path) -> Iterator[Writes]:
    with session(s3a_jars) as spark, FaultProxy(s3.endpoint) as proxy:
        yield Writes(spark, s3, proxy)


def shown(requests: list[Request]) -> str:
    """The requests in their order, for the message of a test that fails."""
    return "\n".join(f"{each.told} {each.kind} {each.key} {each.query}" for each in requests)


def assert_asks(requests: list[Request], **by_kind: int) -> None:
    """Also that the look before the put of the version does not delay it: the records are put at the same time."""
    assert Counter(each.kind for each in requests) == by_kind, shown(requests)
    assert rounds(requests) == len(requests) - 1, shown(requests)


def test_a_write_to_a_new_root_a_new_topic_and_a_topic_that_is_there(writes: Writes):
    """The last of these looks for a later version when it is planned, and at the version that it extends before its put and after it."""
    writes.new_root()
    assert len(asked := writes.write("t")) <= 16, shown(asked)
    assert rounds(asked) <= 14, shown(asked)
    for topic in ("u", "v"):
        assert len(asked := writes.write(topic)) <= 9, shown(asked)
        assert rounds(asked) <= 8, shown(asked)
        for _ in range(2):
            assert_asks(writes.write(topic), PUT=2, GET=1, HEAD=2)
    assert writes.count("t,u,v") == 7 * ROWS


def test_the_first_write_of_a_program_asks_nothing_of_the_root(writes: Writes):
    """A version of the topic proves the root. Other settings are another program: it shares no answer with the programs before it."""
    writes.new_root()
    writes.write("t")
    asked = writes.write("t", **{"fs.s3a.threads.max": "95"})
    looks = {f"{writes.root.removeprefix('s3a://')}{below}" for below in ("", "/_partlog")}
    assert not [each for each in asked if each.key in looks or each.query.endswith("_partlog%2F")], shown(asked)
    assert len(asked) <= 10, shown(asked)
    assert writes.count("t") == 2 * ROWS


def test_a_root_that_is_removed_by_hand_between_two_writes(writes: Writes):
    """The write that follows at once is refused before it puts a version. It leaves nothing, and a repeated write makes the root again."""
    writes.new_root()
    writes.write("t")
    writes.write("t")
    store, below = writes.s3.filesystem(), FileSelector(writes.root.removeprefix("s3a://"), recursive=True, allow_not_found=True)

    def files() -> list[str]:
        found = [info.path for info in store.get_file_info(below) if info.is_file]
        return [path for path in found if "/_probe/" not in path]  # The first root of a program in a bucket has a note of the probe there.

    assert len(files()) == 4, "two versions, two data files"
    for file in files():
        store.delete_file(file)
    with pytest.raises(Exception, match="PARTLOG_TOPIC_RECREATED"):
        writes.write("t")
    assert not files()
    writes.write("t")
    writes.write("t")
    assert writes.count("t") == 2 * ROWS


def test_a_large_file_is_sent_in_parts_while_the_task_fills_it(writes: Writes):
    """One task makes one file of 200 MB. Most of its bytes are sent before the task has filled the file, by several requests at once."""
    writes.new_root()
    rows = writes.spark.range(200_000, numPartitions=1).selectExpr("repeat('x', 1000) AS value")
    options = {**writes.settings, "topic": "t", "partitions": "1", "compression.type": "none"}
    ask = rows.write.format("partlog").options(**options).mode("append")
    writes.proxy.bytes_per_s = 100e6
    asked = writes.asked(lambda: ask.save(writes.root))
    writes.proxy.bytes_per_s = float("inf")
    parts = [each for each in asked if "partNumber=" in each.query]
    last = max(each.began for each in parts)
    assert len(parts) >= 12, shown(asked)
    assert 1 < most_at_once(parts) <= 4, shown(asked)
    assert sum(each.ended < last for each in parts) >= len(parts) / 2, [(each.began, each.ended) for each in parts]
    assert {each.told for each in asked if each.method in ("PUT", "POST")} == {200}, shown(asked)
    assert writes.count("t") == 200_000


@pytest.mark.parametrize("merge", ["false", "true"])
def test_a_trigger_of_a_stream(writes: Writes, tmp_path: Path, merge: str):
    """Merging that has nothing to merge asks nothing."""
    writes.new_root()
    source, new = tmp_path / "source", tmp_path / "new.txt"
    source.mkdir()
    rows = writes.spark.readStream.format("text").load(str(source))
    sink = rows.writeStream.format("partlog").options(**writes.settings, topic="t", merge=merge)
    query = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).start(writes.root)

    def trigger() -> None:
        new.write_text("value\n" * ROWS)
        new.rename(source / f"{time.monotonic_ns()}.txt")
        query.processAllAvailable()

    try:
        writes.asked(trigger)
        for _ in range(3):
            assert_asks(writes.asked(trigger), PUT=2, GET=1, HEAD=2)
    finally:
        query.stop()
    assert writes.count("t") == 4 * ROWS
