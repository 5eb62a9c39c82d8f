"""The requests of Spark's driver to an S3 server that takes 30 ms for each: how many there are, and how many wait for one before."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from handmade import Record, Topic
from pyspark.sql import SparkSession
from stores.buckets import copied
from stores.faults import FaultProxy, most_at_once, rounds
from stores.s3 import S3
from stores.sessions import session

TOPICS = 54
VERSIONS = 100
DELAY_S = 0.03
_T = TypeVar("_T")


@pytest.fixture(scope="module")
def spark(s3a_jars: Path) -> Iterator[SparkSession]:
    with session(s3a_jars) as spark:
        yield spark


@pytest.fixture
def proxy(s3: S3, spark: SparkSession, fault_proxy: Callable[[str], FaultProxy]) -> Iterator[FaultProxy]:
    """A proxy in front of the server, which the session asks by itself."""
    proxy = fault_proxy(s3.endpoint)
    settings = s3.settings(proxy.endpoint)
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield proxy
    for key in settings:
        spark.conf.unset(key)


class Asked:
    """The requests of a call: by kind, the most at once, those in a row, and the seconds of the call."""

    def __init__(self, proxy: FaultProxy, what: str, call: Callable[[], object]) -> None:
        proxy.clear()
        proxy.delay_s = DELAY_S
        began = time.monotonic()
        self.answer = call()
        self.seconds = time.monotonic() - began
        proxy.delay_s = 0.0
        requests = list(proxy.requests)
        self.kinds = Counter(request.kind for request in requests)
        self.total, self.at_once, self.rounds = len(requests), most_at_once(requests), rounds(requests)
        print(f"{what}: {dict(self.kinds)}, {self.at_once} at once, {self.rounds} in a row, {self.seconds:.1f} s")


@pytest.fixture(scope="module")
def many_topics(s3: S3, tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("many") / "root"
    for number in range(TOPICS):
        Topic(root, f"t{number:02}", partitions=2).append([Record(b"v")])
    return copied(s3, root)


def test_the_topics_of_a_root(spark: SparkSession, proxy: FaultProxy, many_topics: str):
    def call() -> int:
        return len(spark.sql(f"CALL partlog.topics(root => '{many_topics}')").collect())

    first = Asked(proxy, "CALL topics, first", call)
    again = Asked(proxy, "CALL topics, again", call)
    assert (first.answer, again.answer) == (TOPICS, TOPICS)
    assert first.total <= 4 * TOPICS + 6
    assert again.total <= 2 * TOPICS + 6
    assert 1 < again.at_once <= 16
    assert max(first.rounds / first.total, again.rounds / again.total) < 0.6


def test_a_pattern_of_many_topics(spark: SparkSession, proxy: FaultProxy, many_topics: str):
    reader = spark.read.format("partlog").options(maxRequests="8").option("subscribePattern", "t.*")
    asked = Asked(proxy, "count() of a pattern", lambda: reader.load(many_topics).count())
    assert asked.answer == TOPICS
    assert asked.kinds["LIST"] <= 2 * TOPICS + 4
    assert asked.total <= 4 * TOPICS + 8
    assert 1 < asked.at_once <= 8
    assert asked.rounds < 0.6 * asked.total


def test_a_topic_of_many_versions(s3: S3, spark: SparkSession, proxy: FaultProxy, tmp_path: Path):
    topic = Topic(tmp_path / "root")
    for number in range(VERSIONS):
        topic.append([Record(f"v{number}".encode())])
    reader = spark.read.format("partlog")
    for how, lists in (("all topics", 3), ("subscribe", 2)):
        url = copied(s3, topic.root)
        named = reader if how == "all topics" else reader.option("subscribe", "t")
        asked = Asked(proxy, f"a topic of 100 versions, {how}", lambda named=named, url=url: named.load(url).count())  # type: ignore[misc]
        assert asked.answer == VERSIONS
        # The names of topics, or a topic that is named, prove the root: no request looks at it.
        assert asked.kinds == {"LIST": lists, "GET": VERSIONS}
        assert asked.rounds < 0.6 * asked.total


def test_a_stream_that_reads_a_topic(s3: S3, spark: SparkSession, proxy: FaultProxy, tmp_path: Path):
    """A trigger asks its topic once, and the idle query looks a few times a second, then once."""
    topic = Topic(tmp_path / "root")
    for number in range(5):
        topic.append([Record(f"v{number}".encode())])
    url = copied(s3, topic.root)
    reader = spark.readStream.format("partlog").option("subscribe", "t").option("startingOffsets", "earliest")
    stream = reader.option("maxOffsetsPerTrigger", "1").load(url)
    query = stream.writeStream.format("noop").option("checkpointLocation", f"file:{tmp_path / 'checkpoint'}").start()
    try:

        def read() -> None:
            query.processAllAvailable()

        Asked(proxy, "five triggers", read)
        versions = [request for request in proxy.requests if ".json" in request.key]
        # Each of five triggers, and each look that finds nothing, has a GET and a HEAD. The first look may open the topic.
        assert len(versions) <= 5 + 2 + 2 * 7, [request.key for request in versions]
        time.sleep(10)
        idle = Asked(proxy, "five idle seconds", lambda: time.sleep(5))
        assert 2 <= idle.total <= 2 * 8
    finally:
        query.stop()
