"""Roots in HDFS and in S3, beside Parquet in the same store and our own local disk: write, scan, and the latency of commits.

The servers are those that the environment tells of, as `make bench-stores` sets it. They run on this machine: what is measured is the work
that clients and servers do, without the way between them.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import time
from typing import TYPE_CHECKING

from bench.harness import Bench, Side, topic_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OURS, PEER, DISK = "partlog", "parquet", "partlog, local disk"
HDFS, S3, LOCAL = "HDFS", "S3", "local disk"
ROWS = 1000
TRIGGERS = 100
WARM_UP_TRIGGERS = 10


def places() -> dict[str, str]:
    """The stores that the environment tells of, by name: the URI of a folder in each."""
    told = {HDFS: os.environ.get("STORES_HDFS"), S3: os.environ.get("STORES_S3_URI")}
    return {name: f"{uri}/bench" for name, uri in told.items() if uri}


def settings() -> dict[str, str]:
    """The settings with which Spark reaches them. Paths without a scheme stay local."""
    told = json.loads(os.environ.get("STORES_S3_SETTINGS", "{}"))
    return {"spark.hadoop.fs.defaultFS": "file:///", **{f"spark.hadoop.{name}": value for name, value in told.items()}}


def run(bench: Bench) -> None:
    from bench.scan import values

    disk, numbers = bench.path("stores-disk"), itertools.count()
    for name, uri in places().items():
        data = bench.data()
        roots: dict[str, str] = {}

        def clear(uri: str = uri, roots: dict[str, str] = roots) -> None:
            """Names new roots: a writer to S3 remembers a root for some seconds, and refuses a root that was deleted meanwhile."""
            for root in roots.values():
                remove(bench, root)
            number = next(numbers)
            roots.update({OURS: f"{uri}/log-{number}", PEER: f"{uri}/parquet-{number}", DISK: f"{disk}/{number}"})
            os.sync()

        clear()
        writes = {side: _write(data, side, roots) for side in (OURS, PEER, DISK)}
        bench.compare(f"{name}: write, uncompressed", OURS, writes, before=clear)
        clear()
        for write in writes.values():
            write()
        readers = {side: bench.spark.read.format(_format(side)).load(root) for side, root in roots.items()}
        assert {rows.count() for rows in readers.values()} == {bench.records}
        bench.compare(f"{name}: scan, uncompressed, sum(length(value))", OURS, {side: values(rows) for side, rows in readers.items()})
        clear()
    for name, uri in {LOCAL: bench.path("stores-commits"), **{name: f"{uri}/commits" for name, uri in places().items()}}.items():
        bench.note(f"{name}: commits of {ROWS:,} rows by a stream, milliseconds", **_commits(bench, uri))
        remove(bench, uri)


def _format(side: str) -> str:
    return PEER if side == PEER else OURS


def _write(rows: DataFrame, side: str, roots: dict[str, str]) -> Side:
    options = topic_options("none") if _format(side) == OURS else {"compression": "none"}

    def write() -> None:
        rows.write.format(_format(side)).options(**options).mode("append").save(roots[side])
        os.sync()

    return write


def _commits(bench: Bench, root: str) -> dict[str, object]:
    """Quantiles of what the sink reports of the triggers after the first ones: the commit, and the whole trigger."""
    kept = "spark.sql.streaming.numRecentProgressUpdates"
    bench.spark.conf.set(kept, "1000")
    rows = bench.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    written = rows.selectExpr("CAST(value AS STRING) AS key", "repeat('x', 100) AS value").writeStream.format("partlog")
    bench.remove("stores-checkpoint")
    query = (
        written.options(**topic_options("none"), path=root, checkpointLocation=bench.path("stores-checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    ends = time.perf_counter() + 120
    while len(query.recentProgress) < WARM_UP_TRIGGERS + TRIGGERS and time.perf_counter() < ends:
        assert not query.awaitTermination(1), "the query has ended"
    found = query.recentProgress[WARM_UP_TRIGGERS:]
    query.stop()
    bench.spark.conf.unset(kept)
    assert len(found) >= TRIGGERS // 2, f"{root}: only {len(found)} triggers"
    commits = [int(trigger["sink"]["metrics"]["commitMs"]) for trigger in found]
    triggers = [int(trigger["durationMs"]["triggerExecution"]) for trigger in found]
    return {"commits": len(found), **_quantiles("commit", commits), **_quantiles("trigger", triggers)}


def _quantiles(name: str, milliseconds: list[int]) -> dict[str, object]:
    cuts = statistics.quantiles(milliseconds, n=100, method="inclusive")
    return {f"{name} p50": round(cuts[49]), f"{name} p99": round(cuts[98])}


def remove(bench: Bench, path: str) -> None:
    jvm = bench.spark._jvm
    assert jvm
    there = jvm.org.apache.hadoop.fs.Path(path)
    there.getFileSystem(bench.spark._jsparkSession.sessionState().newHadoopConf()).delete(there, True)
