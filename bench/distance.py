"""The cost of reads and writes where a store is far: seconds, requests of each kind, the most at once, and those one after another.

The servers are those of `bench.stores`. All requests to S3 go through a proxy, which delays each of them by nothing, 10, 30 or 100 ms.
In HDFS it delays Python's requests to the NameNode alone. Scans and writes of many bytes have a limit of bytes a second and connection too.
Peers take turns with partlog, and so do the floors of `bench.distance_floor`: the requests that a call must make, by the same client alone.
"""

from __future__ import annotations

import datetime
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import far
from bench.distance_floor import ByHadoop, ByObstore
from bench.far import Store
from bench.harness import Bench, Side, topic_options
from bench.stores import HDFS, S3, many, places, sent
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
IDLE_WAIT_S, IDLE_S = 12, 20
"""An idle reader looks less often the longer it has found nothing, up to a limit that it reaches after 10 s by default."""
RANGE_BYTES = 64 << 20
LARGE_RECORDS = 1_000_000
"""Their values have 1,000 bytes: a segment of about 1 GiB."""
RECORDS, ROUNDS, SECONDS = 2_000_000, 3, 10.0
"""The defaults of these cases: records of a scan or a write, and the rounds of a comparison."""
DATA_BYTES, VERSION_BYTES = 115_000, 600
"""The two files that a write of 1,000 rows puts."""

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
SUM_OF_PARQUET = f"sum(length(value)) of {VERSIONS} files, parquet"
WRITE, WRITE_NEW = (f"write of {ROWS:,} rows, {where}" for where in ("topic there", "new topic"))
WRITE_ROOT = f"write of {ROWS:,} rows, new root"
WRITE_NOTHING = f"write of {ROWS:,} rows to nowhere, Spark alone"
SINK, SOURCE = (f"{what}, a trigger of {ROWS:,} rows" for what in ("sink", "source"))
SINK_ALONE = f"{SINK}, merge=false"
TRIGGER_NOTHING = f"a trigger of {ROWS:,} rows to nowhere, Spark alone"
RANGE_BY_SPARK, RANGE_BY_PYTHON = (f"64 MiB in the middle of a segment of 1 GB, {who}" for who in ("Spark", "Python"))
MANY_WRITTEN, MANY_SCANNED = "write of many records", "scan of many records"
MEMORY_OF_SCAN, MEMORY_OF_CONSUMER = f"memory of the {MANY_SCANNED}, Spark", "memory of a Consumer of many records"


def floor(what: str) -> str:
    """The case that has the floor of another."""
    return f"{what}, its requests alone"


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
    with far.s3(bench) as store, closing(ByHadoop(store)) as alone:
        spark = _Spark(bench, store, roots, alone)
        for delay_ms in delays_ms:
            spark.measure(delay_ms)
        store.delete("")


def _by_streams(bench: Bench, roots: Path, delays_ms: Sequence[int]) -> None:
    with far.s3(bench) as store, closing(ByHadoop(store)) as alone:
        streams = _Streams(bench, store, store.copy(roots / "log"), alone)
        for delay_ms in delays_ms:
            streams.measure(delay_ms)
        store.delete("")


def _by_bytes(bench: Bench, _: Path, delays_ms: Sequence[int]) -> None:
    with far.s3(bench) as store, closing(ByHadoop(store)) as alone:
        with store.proxy.near():
            _write(_rows(bench, 1), f"{store.uri}/tried", **store.options(), topic="t")  # tries the server
        for delay_ms in delays_ms:
            if delay_ms in BYTES_DELAYS_MS and bench.is_wanted(MANY_WRITTEN, MANY_SCANNED, MEMORY_OF_CONSUMER):
                _many_bytes(bench, store, delay_ms, alone)
        if bench.is_wanted(RANGE_BY_SPARK, RANGE_BY_PYTHON):
            _range(bench, store, TOLD_MS, alone)
        store.delete("")
    if HDFS in places() and bench.is_wanted(HDFS):
        many(bench, HDFS)


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
    floors = _floors(store, topics, root) if store.name == S3 else {}
    for what, side in sides.items():
        store.measure(delay_ms, {what: side, **{floor(what): least for of, least in floors.items() if of == what}})
    if store.name == S3:
        _idle(store, topics, delay_ms, IDLE_BY_NAME, topics=[f"t{number:03}" for number in range(IDLE_TOPICS)])
    _idle(store, topics, delay_ms, IDLE_BY_PATTERN, pattern="t0[01].*")


def _floors(store: Store, topics: str, root: str) -> dict[str, Side]:
    """The requests alone of each call, by a new client, which has no connection yet."""
    command = [sys.executable, "-m", "bench.distance_floor", topics.partition("//")[2]]
    bucket, _, here = topics.partition("//")[2].partition("/")
    there = root.partition("//")[2].removeprefix(f"{bucket}/")

    def alone() -> ByObstore:
        return ByObstore(bucket)

    return {
        COMMAND_TOPICS: lambda: subprocess.run(command, check=True, capture_output=True, env=store.environment()),
        LOG_TOPICS: lambda: alone().names(here),
        NAME_IN_LOG: lambda: alone().paths(f"{here}/_partlog/t007"),
        OPEN_BY_PYTHON: lambda: alone().open(there, "long"),
        READ: lambda: alone().read(there, "long"),
        VERIFY_QUICK: lambda: alone().open(there, "long"),
        CONSUME: lambda: alone().read(there, "short"),
    }


def _consume(store: Store, root: str) -> None:
    where, options = store.python(root)
    with Consumer(where, "short", **options, auto_offset_reset="earliest") as consumer:
        got = 0
        while got < SEGMENTS * ROWS:
            found = sum(map(len, consumer.poll(timeout_ms=60_000).values()))
            assert found, f"only {got} records"
            got += found


def _idle(store: Store, root: str, delay_ms: int, what: str, **subscription: Any) -> None:
    if not store.bench.is_wanted(what):
        return
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

    def __init__(self, bench: Bench, store: Store, roots: Path, alone: ByHadoop) -> None:
        self.bench, self.store, self.roots, self.alone = bench, store, roots, alone
        self.parquet = store.copy(roots / "parquet")
        self.root = store.copy(roots / "log")
        with store.proxy.near():
            self.write("first")  # tries the server
        self._new = 0

    def measure(self, delay_ms: int) -> None:
        puts = (DATA_BYTES, VERSION_BYTES)
        cases: list[tuple[Callable[[], object], dict[str, Side]]] = [
            (
                partial(self.copy, "log"),
                {OPEN_BY_SPARK: lambda: self.read("long").count(), floor(OPEN_BY_SPARK): lambda: self.alone.open(self.root, "long")},
            ),
            (partial(self.copy, "topics"), {CALL_TOPICS: self.list, floor(CALL_TOPICS): lambda: self.alone.topics(self.root)}),
            (
                self.copy_known,
                {
                    SUM: lambda: _length(self.read("long")),
                    SUM_OF_PARQUET: lambda: _length(self.bench.spark.read.parquet(self.parquet)),
                    floor(SUM): lambda: self.alone.fetch_all(f"{self.root}/_partlog/long/data"),
                },
            ),
            (
                partial(self.write, "there"),
                {
                    WRITE: lambda: self.write("there"),
                    floor(WRITE): lambda: self.alone.put(*puts),
                    f"write of {ROWS:,} rows, parquet": lambda: self.write_peer("parquet"),
                    f"write of {ROWS:,} rows, delta": lambda: self.write_peer("delta"),
                },
            ),
            (lambda: None, {WRITE_NOTHING: lambda: _rows(self.bench, ROWS).write.format("noop").mode("append").save()}),
            (lambda: None, {WRITE_NEW: self.write_new, floor(WRITE_NEW): lambda: self.alone.put(*puts, lists=1)}),
            (lambda: None, {WRITE_ROOT: self.write_root, floor(WRITE_ROOT): lambda: self.alone.put(*puts, lists=2)}),
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

    def __init__(self, bench: Bench, store: Store, root: str, alone: ByHadoop) -> None:
        self.bench, self.store, self.root, self.alone = bench, store, root, alone
        self._new = 0
        bench.spark.conf.set("spark.databricks.delta.snapshotPartitions", "2")  # its default of 50 is for large tables

    def measure(self, delay_ms: int) -> None:
        data = f"{self.root}/_partlog/long/data"
        self.triggers(delay_ms, TRIGGER_NOTHING, self.rate().format("noop"))
        self.triggers(delay_ms, SINK, self.sink({}))
        self.triggers(delay_ms, SINK_ALONE, self.sink({"merge": "false"}))
        self.triggers(delay_ms, SOURCE, self.source(), idle="source, idle on one topic, a second")
        self.store.measure(
            delay_ms,
            {
                floor(SINK): lambda: self.alone.put(DATA_BYTES, VERSION_BYTES),
                floor(SOURCE): lambda: self.alone.fetch_middle(data, DATA_BYTES * 9 // 10),
            },
        )
        self.checkpoints(delay_ms)
        self.triggers(delay_ms, f"{SINK}, delta", self.rate().format("delta").option("path", f"{self.store.uri}/sink-delta"))

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
        if not self.bench.is_wanted(what):
            return
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


def _many_bytes(bench: Bench, store: Store, delay_ms: int, alone: ByHadoop) -> None:
    """Writes and scans of data beside Parquet, and the bytes of the topic alone, by the same client of the store."""
    data, numbers = bench.data(), itertools.count()
    limit = float("inf") if delay_ms == 0 else CONNECTION_BYTES_PER_S

    def place(side: str) -> str:
        """A new folder: a process may not know that a root is gone."""
        return f"{store.uri}/{side}-{delay_ms}-{next(numbers)}"

    sides: dict[str, Side] = {
        MANY_WRITTEN: lambda: _write(data, place("many"), **store.options(), **topic_options("none")),
        f"{MANY_WRITTEN}, parquet": lambda: data.write.option("compression", "none").parquet(place("parquet")),
    }
    log, parquet = Path(bench.path("many")), Path(bench.path("many-parquet"))
    if not log.exists():
        _write(data, str(log), **topic_options("none"))
        data.write.option("compression", "none").parquet(str(parquet))
    sides[f"{MANY_WRITTEN}, bytes alone by S3A"] = lambda: sent(bench, log / "_partlog" / "t" / "data", place("alone"))
    store.measure(delay_ms, sides, bytes_per_s=limit, records=bench.records)

    # Each scan is of a new copy: the default stream of S3A, which reads Parquet, keeps bytes of the objects that it has read in memory.
    copies: dict[str, str] = {}

    def topic() -> DataFrame:
        return bench.spark.read.format("partlog").options(**store.options(), subscribe="t").load(copies[MANY_SCANNED])

    scans: dict[str, Side] = {
        MANY_SCANNED: lambda: _length(topic()),
        f"{MANY_SCANNED}, parquet": lambda: _length(bench.spark.read.parquet(copies[f"{MANY_SCANNED}, parquet"])),
        f"{MANY_SCANNED}, bytes alone by S3A": lambda: alone.fetch_all(f"{copies[MANY_SCANNED]}/_partlog/t/data"),
    }

    def copy(side: str) -> None:
        folder = parquet if "parquet" in side else log
        copies[side if "parquet" in side else MANY_SCANNED] = store.copy(folder)

    store.measure(delay_ms, scans, before={side: partial(copy, side) for side in scans}, bytes_per_s=limit, records=bench.records)
    if delay_ms == TOLD_MS:
        with store.proxy.near():
            copy(MANY_SCANNED)
        store.proxy.begin(delay_ms, limit)
        _memory(bench, store, topic(), copies[MANY_SCANNED])


def _memory(bench: Bench, store: Store, topic: DataFrame, root: str) -> None:
    """The memory of a process while it reads, by quarters of the reading, and that of Spark's heap after a collection of garbage."""
    jvm = bench.spark._jvm
    assert jvm

    def heap_mib() -> int:
        jvm.java.lang.System.gc()
        runtime = jvm.java.lang.Runtime.getRuntime()
        return int(runtime.totalMemory() - runtime.freeMemory()) >> 20

    before, peaks = heap_mib(), []
    with ThreadPoolExecutor(1) as thread:
        for _ in range(4):
            scan, seen = thread.submit(_length, topic), [_resident_mib(bench.processes[0])]
            while not scan.done():
                seen.append(_resident_mib(bench.processes[0]))
                time.sleep(0.02)
            peaks.append(max(seen))
    bench.note(MEMORY_OF_SCAN, **{"MiB resident at most, in four scans": _shown(peaks), "MiB of heap before": before, "after": heap_mib()})
    where, options = store.python(root)
    got, quarters = 0, list[int]()
    with Consumer(where, "t", **options, auto_offset_reset="earliest") as consumer:
        while got < bench.records:
            got += sum(map(len, consumer.poll(timeout_ms=60_000, max_records=5000).values()))
            if got * 4 >= bench.records * (len(quarters) + 1):
                quarters.append(_resident_mib(os.getpid()))
    bench.note(MEMORY_OF_CONSUMER, **{"MiB resident after each quarter": _shown(quarters)})


def _shown(figures: Sequence[int]) -> str:
    return " ".join(map(str, figures))


def _resident_mib(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def _range(bench: Bench, store: Store, delay_ms: int, alone: ByHadoop) -> None:
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

    sides: dict[str, Side] = {
        RANGE_BY_SPARK: by_spark,
        RANGE_BY_PYTHON: lambda: _same(store.log(root)["t"].read(0, start, start + wanted).num_rows, wanted),
        floor(RANGE_BY_SPARK): lambda: alone.fetch_middle(f"{root}/_partlog/t/data", RANGE_BYTES),
    }
    for what, side in sides.items():
        store.measure(delay_ms, {what: side})
    store.delete("range")
