"""Streams: a whole topic with AvailableNow, and how long a trigger takes that finds little or nothing.

Floors are printed beside: a trigger of Spark whose source and sink cost nothing, with each of Spark's two managers of checkpoint files.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from bench.harness import Bench, Side, copy_of, log_and_copies, topic_options, write_to

ROWS = 1000
WARM_UP_TRIGGERS = 10
TRIGGERS = 25
COLUMNS = ("key", "value", "timestamp")
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
MANAGERS = {
    "Spark's default checkpoint manager": "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager",
    "checkpoint manager of FileSystem": "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
}

# Makes the query that is to run: its stream, its sink and their options.
Query: TypeAlias = Callable[[], DataStreamWriter]
# Spark's report of a trigger.
Trigger: TypeAlias = Mapping[str, Any]


def run(bench: Bench) -> None:
    _whole(bench)
    bench.spark.sparkContext.setLogLevel("OFF")  # a query that is stopped within a trigger logs its tasks as errors
    for manager, name in MANAGERS.items():
        bench.spark.conf.set(MANAGER, name)
        try:
            _small(bench, manager)
        finally:
            bench.spark.conf.unset(MANAGER)
    _idle(bench)
    bench.spark.sparkContext.setLogLevel("ERROR")


def _whole(bench: Bench) -> None:
    """Everything that is there, in one trigger."""
    log_and_copies(bench, "none")
    logged, filed = copy_of(bench, "partlog", "none"), copy_of(bench, "parquet", "none")

    def clear() -> None:
        for written in ("checkpoint", "streamed"):
            bench.remove(written)
        os.sync()

    reads: dict[str, Side] = {
        "partlog": _drain(bench, lambda: _log(bench, logged).writeStream.format("noop")),
        "parquet": _drain(bench, lambda: _files(bench, filed).writeStream.format("noop")),
    }
    bench.compare("stream, AvailableNow to noop, uncompressed", "partlog", reads, before=clear)
    copies: dict[str, Side] = {
        "partlog → partlog": _drain(bench, lambda: _to_log(bench, _log(bench, logged))),
        "parquet → parquet snappy": _drain(bench, lambda: _to_files(bench, _files(bench, filed))),
    }
    bench.compare("stream, AvailableNow, copied", "partlog → partlog", copies, before=clear)
    clear()


def _small(bench: Bench, manager: str) -> None:
    """Triggers that each find 1,000 records."""
    logged, filed = Path(bench.path("small-log")), Path(bench.path("small-files"))
    if not logged.exists():
        batch = bench.data().limit(ROWS).selectExpr("key", "value", "now() AS timestamp").cache()
        for _ in range(WARM_UP_TRIGGERS + TRIGGERS):
            write_to(bench, batch.coalesce(1), "partlog", "none", logged.name)()
            write_to(bench, batch.coalesce(1), "parquet", "uncompressed", filed.name)()
        batch.unpersist()
    limited = {"maxOffsetsPerTrigger": str(ROWS)}
    sides: dict[str, Query] = {
        "partlog → partlog": lambda: _to_log(bench, _log(bench, logged, **limited)),
        "partlog → noop": lambda: _log(bench, logged, **limited).writeStream.format("noop"),
        "partlog → partlog, nothing to write": lambda: _to_log(bench, _log(bench, logged, **limited).where("length(value) < 0")),
        "parquet → parquet snappy": lambda: _to_files(bench, _files(bench, filed, maxFilesPerTrigger="1")),
        "floor: Spark's rate source → noop": lambda: (
            bench.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load().writeStream.format("noop")
        ),
    }
    triggers = _triggers(bench, sides, lambda trigger: trigger["numInputRows"] == ROWS)
    case = f"stream, a trigger with {ROWS:,} records, {manager}"
    bench.times(case, "partlog → partlog", {side: _seconds(found) for side, found in triggers.items()}, records=ROWS)
    parts = [{**trigger["durationMs"], **trigger["sink"]["metrics"]} for trigger in triggers["partlog → partlog"]]
    shown = ("walCommit", "commitOffsets", "addBatch", "commitMs", "tidyMs")
    bench.note(
        f"{case}, partlog → partlog, median of milliseconds",
        **{part: round(statistics.median(int(each[part]) for each in parts)) for part in shown},
    )


def _idle(bench: Bench) -> None:
    """Triggers that find nothing new. Spark counts whole milliseconds, and writes no checkpoint."""
    logged, filed = Path(bench.path("small-log")), Path(bench.path("small-files"))
    setting = "spark.sql.streaming.noDataProgressEventInterval"
    bench.spark.conf.set(setting, "0")
    sides: dict[str, Query] = {
        "partlog": lambda: _to_log(bench, _log(bench, logged)),
        "parquet": lambda: _to_files(bench, _files(bench, filed)),
        # Between the seconds at which it has a row, this source has none.
        "floor": lambda: bench.spark.readStream.format("rate").option("rowsPerSecond", 1).load().writeStream.format("noop"),
    }
    try:
        triggers = _triggers(bench, sides, lambda trigger: trigger["numInputRows"] == 0 and "addBatch" not in trigger["durationMs"])
        medians = {side: round(1000 * statistics.median(_seconds(found))) for side, found in triggers.items()}
        bench.note("stream, a trigger that finds nothing, median of milliseconds", **medians)
    finally:
        bench.spark.conf.unset(setting)


def _triggers(bench: Bench, sides: dict[str, Query], counts: Callable[[Trigger], bool]) -> dict[str, list[Trigger]]:
    """The triggers of each side that count. The sides take turns, a query at a time."""
    triggers: dict[str, list[Trigger]] = {side: [] for side in sides}
    kept = "spark.sql.streaming.numRecentProgressUpdates"
    bench.spark.conf.set(kept, "1000")
    order = list(sides)
    for _ in range(bench.rounds):
        random.shuffle(order)
        for side in order:
            for written in ("checkpoint", "streamed"):
                bench.remove(written)
            os.sync()
            query = _start(bench, sides[side]().trigger(processingTime="0 seconds"))
            ends = time.perf_counter() + 60
            found: list[Trigger] = []
            while len(found) < WARM_UP_TRIGGERS + TRIGGERS and time.perf_counter() < ends:
                assert not query.awaitTermination(1), "the query has ended"
                found = [trigger for trigger in query.recentProgress if counts(trigger)]
            query.stop()
            triggers[side] += found[WARM_UP_TRIGGERS : WARM_UP_TRIGGERS + TRIGGERS]
    bench.spark.conf.unset(kept)
    return triggers


def _seconds(triggers: list[Trigger]) -> list[float]:
    return [trigger["durationMs"]["triggerExecution"] / 1000 for trigger in triggers]


def _drain(bench: Bench, query: Query) -> Side:
    """A side that streams what is there, and syncs it to disk."""

    def drain() -> None:
        bench.remove("checkpoint")
        _start(bench, query().trigger(availableNow=True)).awaitTermination()
        os.sync()

    return drain


def _start(bench: Bench, query: DataStreamWriter) -> StreamingQuery:
    return query.option("checkpointLocation", bench.path("checkpoint")).start()


def _log(bench: Bench, root: Path, **options: str) -> DataFrame:
    read = bench.spark.readStream.format("partlog").option("startingOffsets", "earliest").option("includeHeaders", False)
    return read.options(**options).load(str(root))


def _files(bench: Bench, folder: Path, **options: str) -> DataFrame:
    schema = bench.spark.read.parquet(str(folder)).schema
    return bench.spark.readStream.schema(schema).options(**options).parquet(str(folder))


def _to_log(bench: Bench, rows: DataFrame) -> DataStreamWriter:
    return rows.select(*COLUMNS).writeStream.format("partlog").options(**topic_options("none")).option("path", bench.path("streamed"))


def _to_files(bench: Bench, rows: DataFrame) -> DataStreamWriter:
    return rows.select(*COLUMNS).writeStream.format("parquet").option("compression", "snappy").option("path", bench.path("streamed"))
