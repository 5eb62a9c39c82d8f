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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.harness import Bench, Side, topic_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OURS, PEER, DISK, ALONE = "partlog", "parquet", "partlog, local disk", "bytes alone"
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
    for name in places():
        many(bench, name)
    for name, uri in {LOCAL: bench.path("stores-commits"), **{name: f"{uri}/commits" for name, uri in places().items()}}.items():
        bench.note(f"{name}: commits of {ROWS:,} rows by a stream, milliseconds", **_commits(bench, uri))
        remove(bench, uri)


def many(bench: Bench, name: str) -> None:
    """Writes and scans of the data in one store, beside Parquet there, our own local disk, and the bytes alone by the same client."""
    from bench.scan import values

    uri, data, numbers, roots = places()[name], bench.data(), itertools.count(), dict[str, str]()

    def clear() -> None:
        """Names new roots. A writer to S3 remembers a root for some seconds, and refuses the root if it was deleted meanwhile."""
        for root in roots.values():
            remove(bench, root)
        number = next(numbers)
        roots.update({OURS: f"{uri}/log-{number}", PEER: f"{uri}/parquet-{number}", ALONE: f"{uri}/alone-{number}"})
        roots[DISK] = bench.path(f"stores-disk/{number}")
        os.sync()

    clear()
    writes = {side: _write(data, side, roots) for side in (OURS, PEER, DISK)}
    kept = bench.path("stores-kept")
    if not Path(kept).exists():
        data.write.format(OURS).options(**topic_options("none")).mode("append").save(kept)
    writes[ALONE] = lambda: sent(bench, Path(kept) / "_partlog" / "t" / "data", roots[ALONE])
    bench.compare(f"{name}: write, uncompressed", OURS, writes, before=clear)
    clear()
    for write in writes.values():
        write()
    readers = {side: bench.spark.read.format(_format(side)).load(roots[side]) for side in (OURS, PEER, DISK)}
    assert {rows.count() for rows in readers.values()} == {bench.records}
    scans: dict[str, Side] = {side: values(rows) for side, rows in readers.items()}
    scans[ALONE] = lambda: _fetched(bench, roots[ALONE])
    bench.compare(f"{name}: scan, uncompressed, sum(length(value))", OURS, scans)
    clear()


def sent(bench: Bench, folder: Path, target: str) -> None:
    """Writes the data files below a folder of the disk with Hadoop's client, as many at once as Spark has cores."""
    jvm = bench.spark._jvm
    assert jvm
    files = _files(bench, target)

    def send(file: Path) -> None:
        to = files.create(jvm.org.apache.hadoop.fs.Path(f"{target}/{file.parent.name}-{file.name}"), True)
        jvm.org.apache.hadoop.io.IOUtils.copyBytes(jvm.java.io.FileInputStream(str(file)), to, 1 << 20, True)

    with ThreadPoolExecutor(bench.spark.sparkContext.defaultParallelism) as pool:
        assert list(pool.map(send, folder.glob("*/*.log")))


def _fetched(bench: Bench, folder: str) -> None:
    """Reads each file in a folder with Hadoop's client, as many at once as Spark has cores."""
    jvm = bench.spark._jvm
    assert jvm
    files = _files(bench, folder)

    def fetch(status: Any) -> None:
        file = files.open(status.getPath())
        jvm.org.apache.hadoop.io.IOUtils.copyBytes(file, jvm.java.io.OutputStream.nullOutputStream(), 1 << 20, True)

    with ThreadPoolExecutor(bench.spark.sparkContext.defaultParallelism) as pool:
        assert list(pool.map(fetch, files.listStatus(jvm.org.apache.hadoop.fs.Path(folder))))


def _files(bench: Bench, path: str) -> Any:
    """Hadoop's file system of a path."""
    jvm = bench.spark._jvm
    assert jvm
    return jvm.org.apache.hadoop.fs.Path(path).getFileSystem(bench.spark._jsparkSession.sessionState().newHadoopConf())


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
    _files(bench, path).delete(jvm.org.apache.hadoop.fs.Path(path), True)
