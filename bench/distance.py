"""The cost of reads and writes where a store is far: seconds, requests of each kind, the most at once, and those one after another.

The servers are those of `bench.stores`. All requests to S3 go through a proxy, which delays each of them by nothing, 10, 30 or 100 ms.
In HDFS it delays Python's requests to the NameNode alone. Scans and writes of many bytes have a limit of bytes a second and connection too.
Peers take turns with partlog.
"""

from __future__ import annotations

import datetime
import itertools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import far
from bench.far import Store
from bench.harness import Bench, Side, topic_options
from bench.stores import HDFS, S3, places
from bench.stream import MANAGER, MANAGERS
from sparklog import Consumer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

TOLD_MS = 30
"""The delay of the cases whose requests are shown: S3 Standard takes 20 to 100 ms to the first byte."""
DELAYS_MS = (0, 10, TOLD_MS, 100)
BYTES_DELAYS_MS = (0, TOLD_MS)
CONNECTION_BYTES_PER_S = 60_000_000
TOPICS, IDLE_TOPICS = 54, 20
VERSIONS = 99
"""The versions of a topic, each with a segment. One more makes a checkpoint due."""
SEGMENTS = 40
ROWS = 1000
TRIGGERS, WARM_UP_TRIGGERS = 8, 3
TRIGGERS_MAX_S = 200
IDLE_WAIT_S, IDLE_S = 15, 30
"""An idle reader looks less often the longer it has found nothing, up to a limit that it reaches after 10 s by default."""
RANGE_BYTES = 64 << 20
LARGE_RECORDS = 1_000_000
"""Their values have 1,000 bytes: a segment of about 1 GiB."""

# The cases that docs/guide/stores.md shows.
OPEN_BY_SPARK = f"open a topic of {VERSIONS} versions without a checkpoint, Spark"
CALL_TOPICS = f"CALL topics, {TOPICS} topics"
SUM = f"sum(length(value)) of {VERSIONS} segments"
COMMAND_TOPICS = f"sparklog topics, {TOPICS} topics"
LOG_TOPICS = f"log.topics(), {TOPICS} topics"
NAME_IN_LOG = f"name in log, {TOPICS} topics"
OPEN_BY_PYTHON = f"open a topic of {VERSIONS} versions without a checkpoint, Python"
READ = f"read() of {VERSIONS} segments"
VERIFY_QUICK = f"verify(quick=True) of {VERSIONS} segments"
IDLE_BY_PATTERN = f"Consumer, idle on {IDLE_TOPICS} topics, a second"
IDLE_BY_NAME = f"Consumer, idle on {IDLE_TOPICS} topics by name, a second"
CONSUME = f"Consumer, all of {SEGMENTS} segments"


def run(bench: Bench, what: str, delays_ms: Sequence[int]) -> None:
    roots = bench.folder / "far"
    if not roots.exists():
        _make(bench, roots)
    {"python": _by_python, "spark": _by_spark, "streams": _by_streams, "bytes": _by_bytes}[what](bench, roots, delays_ms)


def _by_python(bench: Bench, roots: Path, delays_ms: Sequence[int]) -> None:
    for name, stores in {S3: far.s3, HDFS: far.hdfs}.items():
        if name in places():
            with stores(bench) as store:
                for delay_ms in delays_ms:
                    _python(store, roots, delay_ms)
                store.delete("")


def _by_spark(bench: Bench, roots: Path, delays_ms: Sequence[int]) -> None:
    with far.s3(bench) as store:
        spark = _Spark(bench, store, roots)
        for delay_ms in delays_ms:
            spark.measure(delay_ms)
        store.delete("")


def _by_streams(bench: Bench, roots: Path, delays_ms: Sequence[int]) -> None:
    with far.s3(bench) as store:
        streams = _Streams(bench, store, store.copy(roots / "log"))
        for delay_ms in delays_ms:
            streams.measure(delay_ms)
        store.delete("")


def _by_bytes(bench: Bench, _: Path, delays_ms: Sequence[int]) -> None:
    with far.s3(bench) as store:
        with store.proxy.near():
            _write(_rows(bench, 1), f"{store.uri}/tried", **store.options(), topic="t")  # tries the server
        for delay_ms in delays_ms:
            if delay_ms in BYTES_DELAYS_MS:
                _many_bytes(bench, store, delay_ms)
        _range(bench, store, TOLD_MS)
        store.delete("")


def _rows(bench: Bench, rows: int) -> DataFrame:
    return bench.spark.range(rows, numPartitions=1).selectExpr("CAST(id AS STRING) AS key", "repeat('x', 100) AS value")


def _write(rows: DataFrame, root: str, **options: str) -> None:
    rows.write.format("partlog").options(**options).mode("append").save(root)


def _make(bench: Bench, folder: Path) -> None:
    """Makes roots and the tables of peers on the disk. They have the same files in every store, so copies of them are the same there."""
    import deltalake

    topic = f"concat('t', lpad(CAST(CAST(key AS INT) % {TOPICS} AS STRING), 3, '0')) AS topic"
    _write(_rows(bench, TOPICS * 20).selectExpr(topic, "value"), str(folder / "topics"), partitions="2")
    for name, segments in (("long", VERSIONS), ("short", SEGMENTS)):
        for _ in range(segments):
            _write(_rows(bench, ROWS), str(folder / "log"), topic=name, partitions="1", merge="false")
    for _ in range(VERSIONS):
        deltalake.write_deltalake(folder / "deltalake", _rows(bench, ROWS).toArrow(), mode="append")
    _rows(bench, VERSIONS * ROWS).repartition(VERSIONS).write.parquet(str(folder / "parquet"))


def _same(found: object, expected: object) -> None:
    assert found == expected, f"{found!r} is not {expected!r}"


# ---- Python


def _python(store: Store, roots: Path, delay_ms: int) -> None:
    topics, root = store.copy(roots / "topics"), store.copy(roots / "log")
    command = [sys.executable, "-m", "sparklog", "topics", store.python(topics)[0]]
    sides: dict[str, Side] = {
        COMMAND_TOPICS: lambda: subprocess.run(command, check=True, capture_output=True, env=store.environment()),
        LOG_TOPICS: lambda: _same(len(store.log(topics).topics()), TOPICS),
        NAME_IN_LOG: lambda: _same("t007" in store.log(topics), True),
        OPEN_BY_PYTHON: lambda: _same(store.log(root)["long"].partitions, 1),
        READ: lambda: _same(store.log(root)["long"].read().num_rows, VERSIONS * ROWS),
        VERIFY_QUICK: lambda: _same(store.log(root).verify(["long"], quick=True).findings, []),
        f"verify() of {VERSIONS} segments": lambda: _same(store.log(root).verify(["long"]).findings, []),
        CONSUME: lambda: _consume(store, root),
    }
    if store.name == S3:
        sides |= _deltalake(store, store.copy(roots / "deltalake"))
    for what, side in sides.items():
        store.measure(delay_ms, {what: side})
    _idle(store, topics, delay_ms, IDLE_BY_NAME, topics=[f"t{number:03}" for number in range(IDLE_TOPICS)])
    _idle(store, topics, delay_ms, IDLE_BY_PATTERN, pattern="t0[01].*")


def _consume(store: Store, root: str) -> None:
    where, options = store.python(root)
    with Consumer(where, "short", **options, auto_offset_reset="earliest") as consumer:
        got = 0
        while got < SEGMENTS * ROWS:
            found = sum(map(len, consumer.poll(timeout_ms=60_000).values()))
            assert found, f"only {got} records"
            got += found


def _idle(store: Store, root: str, delay_ms: int, what: str, **subscription: Any) -> None:
    where, options = store.python(root)
    with store.proxy.near(), Consumer(where, **options, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(**subscription)
        while consumer.poll(timeout_ms=1000):
            pass
        assert len(consumer.subscription() or ()) == IDLE_TOPICS
        consumer.poll(timeout_ms=IDLE_WAIT_S * 1000)
        store.proxy.begin(delay_ms)
        consumer.poll(timeout_ms=IDLE_S * 1000)
        store.note(delay_ms, what, 1, store.proxy.requests(), IDLE_S)


def _deltalake(store: Store, copy: str) -> dict[str, Side]:
    import deltalake

    uri, options = f"s3://{copy.partition('//')[2]}", store.deltalake()

    def read() -> None:
        _same(deltalake.DeltaTable(uri, storage_options=options).to_pyarrow_table().num_rows, VERSIONS * ROWS)

    return {
        f"open a table of {VERSIONS} commits, deltalake": lambda: deltalake.DeltaTable(uri, storage_options=options),
        f"read of {VERSIONS} files, deltalake": read,
    }


# ---- Spark


class _Spark:
    """Small reads and small writes. The server has been tried, and the process has a client of it, but knows no root."""

    def __init__(self, bench: Bench, store: Store, roots: Path) -> None:
        self.bench, self.store, self.roots = bench, store, roots
        self.parquet = store.copy(roots / "parquet")
        self.root = store.copy(roots / "log")
        with store.proxy.near():
            self.write("first")  # tries the server
        self._new = 0

    def measure(self, delay_ms: int) -> None:
        cases: list[tuple[Callable[[], object], dict[str, Side]]] = [
            (
                partial(self.copy, "log"),
                {OPEN_BY_SPARK: lambda: self.read("long").count()},
            ),
            (partial(self.copy, "topics"), {CALL_TOPICS: self.list}),
            (
                self.copy_known,
                {
                    SUM: lambda: _length(self.read("long")),
                    f"sum(length(value)) of {VERSIONS} files, parquet": lambda: _length(self.bench.spark.read.parquet(self.parquet)),
                },
            ),
            (
                partial(self.write, "there"),
                {
                    f"write of {ROWS:,} rows, topic there": lambda: self.write("there"),
                    f"write of {ROWS:,} rows, parquet": lambda: self.write_peer("parquet"),
                    f"write of {ROWS:,} rows, delta": lambda: self.write_peer("delta"),
                },
            ),
            (lambda: None, {f"write of {ROWS:,} rows, new topic": self.write_new}),
            (lambda: None, {f"write of {ROWS:,} rows, new root": self.write_root}),
        ]
        for before, sides in cases:
            self.store.measure(delay_ms, sides, before=before)

    def copy(self, name: str) -> None:
        self.root = self.store.copy(self.roots / name)

    def copy_known(self) -> None:
        """The process has opened the topic."""
        self.copy("log")
        self.read("long").count()

    def read(self, topic: str) -> DataFrame:
        return self.bench.spark.read.format("partlog").options(**self.store.options(), subscribe=topic).load(self.root)

    def list(self) -> None:
        _same(self.bench.spark.sql(f"CALL partlog.topics(root => '{self.root}')").count(), TOPICS)

    def write(self, topic: str) -> None:
        _write(_rows(self.bench, ROWS), self.root, **self.store.options(), topic=topic, merge="false")

    def write_peer(self, format: str) -> None:
        _rows(self.bench, ROWS).write.format(format).mode("append").save(f"{self.store.uri}/small-{format}")

    def write_new(self) -> None:
        self._new += 1
        self.write(f"new{self._new}")

    def write_root(self) -> None:
        self._new += 1
        _write(_rows(self.bench, ROWS), f"{self.store.uri}/new{self._new}", **self.store.options(), topic="t")


class _Streams:
    """Triggers of streams, one query after another."""

    def __init__(self, bench: Bench, store: Store, root: str) -> None:
        self.bench, self.store, self.root = bench, store, root
        self._new = 0
        bench.spark.conf.set("spark.databricks.delta.snapshotPartitions", "2")  # its default of 50 is for large tables

    def measure(self, delay_ms: int) -> None:
        self.triggers(delay_ms, f"sink, a trigger of {ROWS:,} rows", self.sink({}))
        self.triggers(delay_ms, f"sink, a trigger of {ROWS:,} rows, merge=false", self.sink({"merge": "false"}))
        self.triggers(delay_ms, f"source, a trigger of {ROWS:,} rows", self.source(), idle="source, idle on one topic, a second")
        self.checkpoints(delay_ms)
        self.triggers(
            delay_ms, f"sink, a trigger of {ROWS:,} rows, delta", self.rate().format("delta").option("path", f"{self.store.uri}/sink-delta")
        )

    def rate(self) -> DataStreamWriter:
        rows = self.bench.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
        return rows.selectExpr("CAST(value AS STRING) AS key", "repeat('x', 100) AS value").writeStream

    def sink(self, options: Mapping[str, str]) -> DataStreamWriter:
        self._new += 1
        return (
            self.rate()
            .format("partlog")
            .options(**topic_options("none") | {"topic": f"sink{self._new}"}, **self.store.options(), **options, path=self.root)
        )

    def source(self) -> DataStreamWriter:
        options = {"subscribe": "long", "startingOffsets": "earliest", "maxOffsetsPerTrigger": str(ROWS)}
        rows = self.bench.spark.readStream.format("partlog").options(**self.store.options(), **options).load(self.root)
        return rows.writeStream.format("noop")

    def checkpoints(self, delay_ms: int) -> None:
        """The requests of Spark for a checkpoint in the store, by a query that asks for nothing else there."""
        for name, manager in MANAGERS.items():
            self.bench.spark.conf.set(MANAGER, manager)
            self._new += 1
            checkpoint = f"{self.store.uri}/checkpoint{self._new}"
            self.triggers(delay_ms, f"checkpoint in the store, a trigger, {name}", self.rate().format("noop"), checkpoint=checkpoint)
        self.bench.spark.conf.unset(MANAGER)

    def triggers(
        self, delay_ms: int, what: str, writer: DataStreamWriter, *, idle: str | None = None, checkpoint: str | None = None
    ) -> None:
        """The triggers after the first ones: the times that Spark reports, and the requests since they began.

        The checkpoint is on the local disk by default.
        """
        self.bench.remove("far-checkpoint")
        self.store.proxy.begin(delay_ms)
        since_epoch = time.time() - time.monotonic()
        query = (
            writer.option("checkpointLocation", checkpoint or self.bench.path("far-checkpoint")).trigger(processingTime="0 seconds").start()
        )
        ends = time.monotonic() + TRIGGERS_MAX_S
        while len(query.recentProgress) <= WARM_UP_TRIGGERS + TRIGGERS and time.monotonic() < ends:
            assert not query.awaitTermination(1), "the query has ended"
        progress = query.recentProgress[WARM_UP_TRIGGERS : WARM_UP_TRIGGERS + TRIGGERS + 1]
        began = [datetime.datetime.fromisoformat(each["timestamp"]).timestamp() - since_epoch for each in progress]
        requests = [each for each in self.store.proxy.requests() if began[0] <= each.began < began[-1]]
        seconds = statistics.median(int(each["durationMs"]["triggerExecution"]) / 1000 for each in progress[:-1])
        self.store.note(delay_ms, what, seconds, requests, len(progress) - 1)
        if idle:
            with self.store.proxy.near():
                query.processAllAvailable()
                query.awaitTermination(IDLE_WAIT_S)
            self.store.proxy.begin(delay_ms)
            query.awaitTermination(IDLE_S)
            self.store.note(delay_ms, idle, 1, self.store.proxy.requests(), IDLE_S)
        query.stop()


def _length(rows: DataFrame) -> int:
    return int(rows.selectExpr("sum(length(value))").collect()[0][0])


# ---- many bytes


def _many_bytes(bench: Bench, store: Store, delay_ms: int) -> None:
    """Writes and scans of data beside Parquet, and the bytes of the topic alone, by the same client of the store."""
    data, numbers, written = bench.data(), itertools.count(), dict[str, str]()
    limit = float("inf") if delay_ms == 0 else CONNECTION_BYTES_PER_S

    def place(side: str) -> str:
        """A new folder: a process may not know that a root is gone."""
        written[side] = f"{store.uri}/{side}-{delay_ms}-{next(numbers)}"
        return written[side]

    sides: dict[str, Side] = {
        "write of many records": lambda: _write(data, place("many"), **store.options(), **topic_options("none")),
        "write of many records, parquet": lambda: data.write.option("compression", "none").parquet(place("parquet")),
    }
    local = bench.path("many")
    if not Path(local).exists():
        _write(data, local, **topic_options("none"))
    sides["write of many records, bytes alone by S3A"] = lambda: _sent(bench, Path(local) / "_partlog" / "t" / "data", place("alone"))
    store.measure(delay_ms, sides, bytes_per_s=limit, records=bench.records)
    topic = bench.spark.read.format("partlog").options(**store.options(), subscribe="t").load(written["many"])
    scans: dict[str, Side] = {
        "scan of many records": lambda: _length(topic),
        "scan of many records, parquet": lambda: _length(bench.spark.read.parquet(written["parquet"])),
        "scan of many records, bytes alone by S3A": lambda: _fetched(bench, f"{written['many']}/_partlog/t/data"),
    }
    store.measure(delay_ms, scans, bytes_per_s=limit, records=bench.records)


def _sent(bench: Bench, folder: Path, target: str) -> None:
    """Writes the data files below a folder of the disk with Hadoop's client, as many at once as Spark has cores."""
    jvm = bench.spark._jvm
    assert jvm
    path = jvm.org.apache.hadoop.fs.Path(target)
    files = path.getFileSystem(bench.spark._jsparkSession.sessionState().newHadoopConf())

    def send(file: Path) -> None:
        to = files.create(jvm.org.apache.hadoop.fs.Path(f"{target}/{file.name}"), True)
        jvm.org.apache.hadoop.io.IOUtils.copyBytes(jvm.java.io.FileInputStream(str(file)), to, 1 << 20, True)

    with ThreadPoolExecutor(bench.spark.sparkContext.defaultParallelism) as pool:
        sent = list(pool.map(send, folder.glob("*/*.log")))
        assert sent


def _fetched(bench: Bench, folder: str) -> None:
    """Reads each file below a folder with Hadoop's client, as many at once as Spark has cores."""
    jvm = bench.spark._jvm
    assert jvm
    path = jvm.org.apache.hadoop.fs.Path(folder)
    files = path.getFileSystem(bench.spark._jsparkSession.sessionState().newHadoopConf())
    found, names = files.listFiles(path, True), []
    while found.hasNext():
        names.append(found.next().getPath())

    def fetch(name: Any) -> None:
        jvm.org.apache.hadoop.io.IOUtils.copyBytes(files.open(name), jvm.java.io.OutputStream.nullOutputStream(), 8 << 20, True)

    with ThreadPoolExecutor(bench.spark.sparkContext.defaultParallelism) as pool:
        assert names
        list(pool.map(fetch, names))


def _range(bench: Bench, store: Store, delay_ms: int) -> None:
    """The records of 64 MiB in the middle of one segment."""
    root = f"{store.uri}/range"
    rows = bench.spark.range(LARGE_RECORDS, numPartitions=1).selectExpr("lpad(CAST(id AS STRING), 1000, 'x') AS value")
    with store.proxy.near():
        _write(rows, root, **store.options(), **topic_options("none") | {"partitions": "1"})
    (segment,) = store.log(root)["t"].segments()
    wanted = RANGE_BYTES * LARGE_RECORDS // segment.bytes
    start = (LARGE_RECORDS - wanted) // 2
    options = {
        "assign": json.dumps({"t": [0]}),
        "startingOffsets": json.dumps({"t": {"0": start}}),
        "endingOffsets": json.dumps({"t": {"0": start + wanted}}),
    }

    def by_spark() -> None:
        read = bench.spark.read.format("partlog").options(**store.options(), **options).load(root)
        _same(read.selectExpr("count(value)", "sum(length(value))").collect()[0][0], wanted)

    sides: dict[str, Callable[[], object]] = {
        "64 MiB in the middle of a segment of 1 GB, Spark": by_spark,
        "64 MiB in the middle of a segment of 1 GB, Python": lambda: _same(
            store.log(root)["t"].read(0, start, start + wanted).num_rows, wanted
        ),
    }
    for what, side in sides.items():
        store.measure(delay_ms, {what: side})
    store.delete("range")
