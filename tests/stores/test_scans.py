"""Reads of data files on S3 and on HDFS: no byte twice, at most a tenth more than is needed, and the same rows while files go."""

import json
import re
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from audits import SPILLS, Writer
from logtool import MERGE_BYTES
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from stores.faults import FaultProxy, Request, most_at_once, rounds
from stores.places import HEADER_BYTES, TIME, Place
from stores.roots import in_hdfs, in_s3
from stores.s3 import S3
from stores.sessions import session

from sparklog import Consumer, Log
from sparklog.arguments import named_root

ROWS = 12_000
TOPICS = {"large": (2, {}), "small": (8, {}), "fine": (2, {"batch.size": "8192"})}
"""In how many writes the rows of a topic come, each a segment, and options: segments and batches are large or small."""
GONE_ROWS = 80_000
LARGE_ROWS, RANGE_BYTES = 260_000, 64 << 20
"""A segment of a quarter of a gigabyte, of records with 1,000 bytes, and the part of the segment that is read."""
TIDY = {"pace": 5, "merge": MERGE_BYTES, "file.delete.delay.ms": 0, "partitions": 2}
OF_LARGE_SEGMENTS = {"file.delete.delay.ms": "0", "batch.size": "65536", "compression.type": "none"}
"""With these options, the rows take more than 64 MiB, which a reader asks for before it has read the first records."""


LONG = pytest.mark.soak
in_s3_first = pytest.mark.parametrize("place", ["s3", pytest.param("hdfs", marks=LONG)], indirect=True)
"""`make test-stores` runs the test in S3, and `make soak-stores` in HDFS, where no requests can be seen."""


@pytest.fixture(scope="module")
def spark(s3a_jars: Path) -> Iterator[SparkSession]:
    # A segment is a split unless a read asks for more of them; rows go to Python a hundred at a time.
    splits = {"spark.sql.files.openCostInBytes": "1g", "spark.sql.files.maxPartitionBytes": "1g"}
    with session(s3a_jars, **splits, **{"spark.sql.execution.arrow.maxRecordsPerBatch": "100"}) as spark:
        yield spark


@pytest.fixture(scope="module", params=["hdfs", "s3"])
def place(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Place]:
    place = Place(spark, request.getfixturevalue(request.param))
    for key, value in place.settings.items():
        spark.conf.set(key, value)  # CALL takes no options
    if place.proxy:
        with place.proxy:
            yield place
    else:
        yield place
    for key in place.settings:
        spark.conf.unset(key)


@pytest.fixture(scope="module")
def topics(place: Place) -> Place:
    for topic, (writes, options) in TOPICS.items():
        rows = rows_of(topic) // writes
        for write in range(writes):
            place.write(topic, write * rows, rows, **options)
    return place


def rows_of(topic: str) -> int:
    return ROWS // 10 if topic == "small" else ROWS


def assert_no_byte_twice(place: Place, most: int) -> None:
    """But headers, by which a plan finds its way to a batch."""
    if place.proxy:
        for spans in place.spans().values():
            assert all(min(end, last) - following <= most for (_, end), (following, last) in pairwise(sorted(spans))), sorted(spans)


@in_s3_first
@pytest.mark.parametrize("topic", TOPICS)
def test_a_scan_reads_what_it_needs(topics: Place, topic: str):
    place, rows = topics, rows_of(topic)
    log = place.log()[topic]
    assert len(log.segments()) == TOPICS[topic][0]
    frame = place.read(topic)
    all_of_it = place.needed(topic)
    for ask in (
        lambda: frame.selectExpr("hash(value)").collect(),
        lambda: frame.select("offset", "timestamp").collect(),
        lambda: frame.where("offset >= 0").groupBy().count().collect(),
    ):
        assert place.bytes_of(ask) <= 1.1 * all_of_it
        assert_no_byte_twice(place, 0)
    start, end = rows * 3 // 4, rows * 7 // 8
    some = place.read(topic, startingOffsets=json.dumps({topic: {"0": start}}), endingOffsets=json.dumps({topic: {"0": end}}))
    asked = place.bytes_of(lambda: some.selectExpr("hash(value)").collect())
    assert asked <= 1.1 * place.needed(topic, start, end, lead=topic == "fine") + (1 << 16)
    assert_no_byte_twice(place, 1 << 16 if topic == "fine" else HEADER_BYTES)
    several = place.read(topic, minPartitions="6").selectExpr("hash(value)")
    assert topic == "fine" or several.rdd.getNumPartitions() >= 6
    assert place.bytes_of(several.collect) <= 1.1 * all_of_it
    assert_no_byte_twice(place, HEADER_BYTES)


@pytest.mark.parametrize("place", ["s3"], indirect=True)
def test_a_scan_asks_for_the_next_segments_while_it_reads(topics: Place):
    """Nothing is looked at before it is read: the version files say how long the segments are."""
    assert topics.proxy
    topics.proxy.delay_s = 0.1
    try:
        for topic, (segments, _) in TOPICS.items():
            topics.proxy.clear()
            assert len(topics.read(topic).selectExpr("hash(value)").collect()) == rows_of(topic)
            requests = [request for request in topics.proxy.requests if request.key.endswith(".log")]
            assert [request.kind for request in requests] == ["GET"] * segments
            # Four at the beginning, and twice as many after each segment that is read.
            print(f"{topic}: {len(requests)} requests, {most_at_once(requests)} at once, {rounds(requests)} rounds")
            assert most_at_once(requests) >= min(segments, 4)
            assert rounds(requests) <= (1 if segments == 2 else 3)
    finally:
        topics.proxy.delay_s = 0


@pytest.mark.parametrize("place", ["s3"], indirect=True)
def test_64_mib_in_the_middle_of_a_large_segment(place: Place):
    """The index leads to them, whatever comes before. Several tasks share the range, and each finds its first batch by the index."""
    assert place.proxy
    rows = place.spark.range(LARGE_ROWS, numPartitions=1).selectExpr("repeat('x', 1000) AS value")
    options = {**place.settings, "topic": "one", "partitions": "1", "compression.type": "none"}
    rows.write.format("partlog").options(**options).mode("append").save(place.root)
    (segment,) = place.log()["one"].segments()
    wanted = RANGE_BYTES * LARGE_ROWS // segment.bytes
    start = (LARGE_ROWS - wanted) // 2
    ends = {"startingOffsets": json.dumps({"one": {"0": start}}), "endingOffsets": json.dumps({"one": {"0": start + wanted}})}
    for tasks, most in ((1, 12), (4, 30)):
        frame = place.read("one", **ends, minPartitions=str(tasks)).selectExpr("length(value)")
        assert tasks <= frame.rdd.getNumPartitions() <= tasks + 1
        assert place.bytes_of(lambda frame=frame: frame.where("length(value) = 1000").count()) <= 1.2 * RANGE_BYTES  # type: ignore[misc]
        requests = [request for request in place.proxy.requests if request.key.endswith(".log")]
        print(f"{tasks} tasks: {len(requests)} requests, {most_at_once(requests)} at once")
        assert len(requests) <= most
    root, files = place.through(place.proxy)
    log = Log(root, **files)
    place.proxy.clear()
    assert log["one"].read(0, start, start + wanted).num_rows == wanted
    requests = [request for request in place.proxy.requests if request.key.endswith(".log")]
    print(f"Python: {Counter(each.kind for each in requests)}, {most_at_once(requests)} at once")
    assert sum(last - first for request in requests if request.span for first, last in [request.span]) <= 1.2 * RANGE_BYTES
    assert len(requests) <= 17, "pyarrow asks for the length of the file each time that it opens the file"


@in_s3_first
def test_a_scan_by_time_reads_what_it_needs(topics: Place):
    start, end = ROWS * 5 // 8, ROWS * 3 // 4
    from_time = topics.read("large", startingTimestamp=str(TIME + start)).selectExpr("hash(value)")
    assert topics.bytes_of(from_time.collect) <= 1.1 * topics.needed("large", start) + (1 << 18), "the first batch is looked into"
    times = f"timestamp >= timestamp_millis({TIME + start}) AND timestamp < timestamp_millis({TIME + end})"
    filtered = topics.read("large").where(times).selectExpr("hash(value)")
    assert topics.bytes_of(filtered.collect) <= 1.1 * topics.needed("large", start, end)
    assert_no_byte_twice(topics, HEADER_BYTES)


@in_s3_first
@pytest.mark.parametrize("how", ["scan", "poll"])
def test_python_reads_no_byte_twice(topics: Place, how: str):
    server = topics.server
    with FaultProxy(server.endpoint if isinstance(server, S3) else server.webhdfs[0]) as proxy:
        root, files = topics.through(proxy)
        for topic in TOPICS:
            proxy.clear()
            rows = 0
            if how == "scan":
                rows = sum(batch.num_rows for batch in Log(root, **files)[topic].scan())
            else:
                with Consumer(root, topic, **files, auto_offset_reset="earliest", max_poll_records=1000) as consumer:
                    while rows < rows_of(topic):
                        rows += sum(map(len, consumer.poll(timeout_ms=1000).values()))
            assert rows == rows_of(topic)
            spans: dict[str, list[tuple[int, int]]] = {}
            for request in proxy.requests:
                if request.told in (200, 206) and request.method == "GET" and request.key.endswith(".log") and request.span:
                    spans.setdefault(request.key, []).append(request.span)
            assert all(end <= following for each in spans.values() for (_, end), (following, _) in pairwise(sorted(each)))
            assert sum(end - first for each in spans.values() for first, end in each) <= 1.1 * topics.needed(topic)


@pytest.mark.parametrize("place", ["s3"], indirect=True)
def test_the_file_system_that_others_share_is_not_asked(place: Place, tmp_path: Path):
    """Each file system of S3 counts what it is asked."""
    path = place.spark._jvm.org.apache.hadoop.fs.Path(place.root)
    shared = path.getFileSystem(place.spark._jsparkSession.sessionState().newHadoopConf())
    assert shared.exists(path.getParent())
    before = dict(shared.getIOStatistics().counters())
    assert any(before.values())
    place.write("shared", 0, 100)
    assert place.read("shared").count() == 100
    assert place.read("shared").selectExpr("hash(value)").where("offset > 7").distinct().count() == 92
    stream = place.spark.readStream.format("partlog").options(**place.settings, subscribe="shared", startingOffsets="earliest")
    writer = stream.load(place.root).select("value").writeStream.format("partlog").options(**place.settings, topic="copy")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start(place.root)
    query.awaitTermination(60)
    assert place.read("copy").count() == 100
    call(place, f"merge(root => '{place.root}', topic => 'shared')")
    assert dict(shared.getIOStatistics().counters()) == before


LIMITS = {"maxOffsetsPerTrigger": "300", "maxBytesPerTrigger": str(300 << 10)}


@in_s3_first
@pytest.mark.parametrize("limit", ["maxOffsetsPerTrigger", pytest.param("maxBytesPerTrigger", marks=LONG)])
def test_a_stream_that_takes_part_of_a_large_segment_reads_what_it_needs(topics: Place, tmp_path: Path, limit: str):
    """Each trigger goes on where the one before it has stopped, and not at the segment's start."""
    options = {"subscribe": "large", "startingOffsets": "earliest", limit: LIMITS[limit]}
    source = topics.spark.readStream.format("partlog").options(**topics.settings, **options).load(topics.root)
    writer = source.selectExpr("offset").writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    triggers = 0

    def run() -> None:
        nonlocal triggers
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(120)
        assert query.exception() is None
        assert sum(progress.numInputRows for progress in query.recentProgress) == ROWS
        triggers = len(query.recentProgress)

    asked = topics.bytes_of(run)
    batches = len(list(topics.log()["large"].batches(0)))
    assert triggers >= 20
    # A batch that the limit cuts is read by two triggers, and so are the headers by which each finds its batch.
    assert asked <= 2.1 * topics.needed("large") + triggers * (1 << 16)
    if topics.proxy:
        requests = topics.proxy.count(r"/large/.*[.]log$")
        print(f"{limit}: {triggers} triggers over {batches} batches: {dict(requests)}, {asked} bytes of {topics.needed('large')}")
        assert requests.total() <= batches + 12 * triggers


# ---- files go in mid-read


class Paused:
    """Rows that stop after the first hundred, in the process of a task, until the test goes on."""

    def __init__(self, folder: Path) -> None:
        self.came, self.go = folder / "came", folder / "go"

    def rows(self) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """A function that a process of Python gets by value, as it does not know this module."""
        came, go = self.came, self.go

        def stopping(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import time

            for number, batch in enumerate(batches):
                if number == 0:
                    came.touch()
                    while not go.exists():
                        time.sleep(0.01)
                yield batch

        return stopping

    def run(self, read: Callable[[], object], act: Callable[[], None]) -> object:
        """Returns what `read` returns or raises, if `act` happens while it is stopped."""
        found: list[object] = []

        def reading() -> None:
            try:
                found.append(read())
            except PySparkException as error:
                found.append(error)

        thread = threading.Thread(target=reading)
        thread.start()
        while thread.is_alive() and not self.came.exists():
            thread.join(0.01)
        try:
            act()
        finally:
            self.go.touch()
            thread.join(120)
        return found[0]


class Files(NamedTuple):
    """Data files of a topic, and in HDFS the files of their blocks."""

    topic: str
    names: list[str]
    blocks: set[Path]

    def assert_gone(self, place: Place) -> None:
        """Also those of the blocks, with which a DataNode serves those that have a file open, for some seconds."""
        store = place.open().store
        assert not [name for name in self.names if store.exists(f"_partlog/{self.topic}/{name}")]
        until = time.monotonic() + 30
        while any(block.exists() for block in self.blocks):
            assert time.monotonic() < until, self.blocks
            time.sleep(0.05)


def blocks(place: Place) -> set[Path]:
    return set() if isinstance(place.server, S3) else place.server.blocks(1 << 20)


def two_segments(place: Place, topic: str) -> Files:
    """Larger than what a task asks for at once."""
    before = blocks(place)
    for half in range(2):
        place.write(topic, half * GONE_ROWS // 2, GONE_ROWS // 2, **OF_LARGE_SEGMENTS)
    return Files(topic, [segment.file for segment in place.log()[topic].segments()], blocks(place) - before)


def call(place: Place, text: str) -> None:
    place.spark.sql(f"CALL partlog.{text}").collect()


@pytest.mark.parametrize("how", ["batch", pytest.param("stream", marks=LONG)])
def test_files_are_merged_and_deleted_in_mid_read(place: Place, tmp_path: Path, how: str):
    topic = f"merged-{how}"
    files, paused = two_segments(place, topic), Paused(tmp_path)

    def act() -> None:
        call(place, f"merge(root => '{place.root}', topic => '{topic}')")
        files.assert_gone(place)

    def numbers(frame: DataFrame) -> DataFrame:
        return (
            frame.selectExpr("offset", "value")
            .mapInArrow(paused.rows(), "offset long, value binary")
            .selectExpr("offset", "crc32(value) AS crc")
        )

    def stream() -> list[object]:
        source = place.spark.readStream.format("partlog").options(**place.settings, subscribe=topic, startingOffsets="earliest")
        query = (
            numbers(source.load(place.root))
            .writeStream.format("memory")
            .queryName("mid_read")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        return list(place.spark.table("mid_read").collect())

    expected = sorted(place.read(topic).selectExpr("offset", "crc32(value) AS crc").collect())
    assert len(expected) == GONE_ROWS
    found = paused.run((lambda: numbers(place.read(topic)).collect()) if how == "batch" else stream, act)
    assert isinstance(found, list), found
    assert sorted(found) == expected
    if place.proxy:
        met = [request for request in place.proxy.requests if request.told == 404 and request.key.endswith(files.names[1])]
        assert met, "it was read before it was gone"


@pytest.mark.parametrize("how", [pytest.param("scan", marks=LONG), "poll"])
def test_python_goes_on_where_files_are_merged_and_deleted_in_mid_read(place: Place, how: str):
    """When it asks for the second part of a file, that is gone."""
    topic, server = f"python-{how}", place.server
    files, got, merged = two_segments(place, topic), list[int](), threading.Event()
    expected = [row.crc for row in place.read(topic).orderBy("offset").selectExpr("crc32(value) AS crc").collect()]
    with FaultProxy(server.endpoint if isinstance(server, S3) else server.webhdfs[0]) as proxy:

        def before(request: Request) -> None:
            begun = [each.key for each in proxy.requests if each.method == "GET" and each.told in (200, 206)]
            if request.method == "GET" and request.key in begun and request.key.endswith(".log") and not merged.is_set():
                merged.set()
                call(place, f"merge(root => '{place.root}', topic => '{topic}')")
                files.assert_gone(place)

        proxy.before = before
        root, options = place.through(proxy)
        if how == "scan":
            for batch in Log(root, **options)[topic].scan():
                got += map(zlib.crc32, batch.column("value").to_pylist())
        else:
            with Consumer(root, topic, **options, auto_offset_reset="earliest", max_poll_records=1000) as consumer:
                while len(got) < GONE_ROWS:
                    for records in consumer.poll(timeout_ms=5000).values():
                        got += (zlib.crc32(record.value) for record in records)
    assert merged.is_set()
    assert got == expected


@in_s3_first
@pytest.mark.parametrize(
    ("action", "conditions"),
    [
        ("delete_records(root => '{root}', topic => '{topic}', offsets => '{{\"0\":-1}}')", r"PARTLOG_OFFSETS_EXPIRED"),
        ("delete_topic(root => '{root}', topic => '{topic}', dry_run => false)", r"PARTLOG_TOPIC_NOT_FOUND"),
    ],
    ids=["records", "topic"],
)
def test_what_is_deleted_in_mid_read_is_an_error_that_says_so(place: Place, tmp_path: Path, action: str, conditions: str):
    topic = f"deleted-{tmp_path.name.rpartition('_')[2]}".replace("]", "").replace("[", "")
    files, paused = two_segments(place, topic), Paused(tmp_path)

    def act() -> None:
        call(place, action.format(root=place.root, topic=topic))
        if "delete_records" in action:
            files.assert_gone(place)

    frame = (
        place.read(topic).selectExpr("offset", "value").mapInArrow(paused.rows(), "offset long, value binary").selectExpr("crc32(value)")
    )
    found = paused.run(frame.collect, act)
    # A file that is still there is read to its end.
    assert (isinstance(found, list) and len(found) == GONE_ROWS and "delete_topic" in action) or re.search(conditions, str(found)), found


@pytest.mark.parametrize("commits", [30, pytest.param(1000, marks=LONG)])
def test_readers_go_on_beside_merges_and_clean_up(place: Place, jvm: str, commits: int):
    """Another process writes, merges, and deletes data files, checkpoints and version files, all within a few commits."""
    tool = in_s3(place.server, jvm) if isinstance(place.server, S3) else in_hdfs(place.server, jvm)
    files = {"filesystem": place.server.filesystem()} if isinstance(place.server, S3) else {}
    writer = Writer(tool, "w", SPILLS, commits, **TIDY)
    writer.wait_for(1)
    frame = place.spark.read.format("partlog").options(**place.settings, subscribe="t")
    polled: list[tuple[int, int, bytes]] = []
    reads = 0
    with Consumer(tool.python_root, "t", **files, auto_offset_reset="earliest", max_poll_records=200) as consumer:
        while len(polled) < commits * SPILLS.tasks * SPILLS.records:
            for records in consumer.poll(timeout_ms=1000).values():
                polled += ((record.partition, record.offset, record.value) for record in records)
            if len(polled) // 1000 >= reads:
                reads += 1
                for row in frame.load(str(tool.root)).groupBy("partition").agg({"value": "count", "offset": "max"}).collect():
                    assert row["count(value)"] == row["max(offset)"] + 1
    assert writer.join() == 0, writer.errors
    for partition in {partition for partition, _, _ in polled}:
        offsets = [offset for of, offset, _ in polled if of == partition]
        assert offsets == list(range(len(offsets))), f"partition {partition}"
    rows = frame.load(str(tool.root)).select("partition", "offset", "value").collect()
    assert sorted(polled) == sorted((row.partition, row.offset, bytes(row.value)) for row in rows)
    there = [file for file in named_root(tool.python_root, **files).store.names("_partlog/t") if file.endswith(".json")]
    assert len(there) < 30, "version files are cleaned up"
