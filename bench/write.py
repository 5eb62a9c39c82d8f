"""Writing, with the files synced to disk inside the timed region of every side."""

from __future__ import annotations

import os

from bench.harness import FASTER, Bench, Side, write_to


def run(bench: Bench) -> None:
    data = bench.data()

    def clear() -> None:
        bench.remove("write")
        os.sync()

    bench.compare(
        "write, uncompressed",
        "partlog",
        {
            "partlog": write_to(bench, data, "partlog", "none"),
            "parquet snappy": write_to(bench, data, "parquet", "snappy"),
            "parquet uncompressed": write_to(bench, data, "parquet", "none"),
            "delta snappy": write_to(bench, data, "delta", "snappy"),
        },
        before=clear,
    )
    bench.compare(
        "write, zstd",
        "partlog zstd",
        {
            "partlog zstd": write_to(bench, data, "partlog", "zstd"),
            "parquet zstd": write_to(bench, data, "parquet", "zstd"),
            FASTER: write_to(bench, data, "parquet", "zstd", level=1),
        },
        before=clear,
    )
    clear()
    bench.note("write, memory of a task", **_peak(bench, write_to(bench, data, "partlog", "none")))
    bench.remove("write")


def _peak(bench: Bench, write: Side) -> dict[str, object]:
    """The most memory that the buffers of one task took, from the metric in Spark's UI, and the limit that `write.buffer.bytes` sets."""
    write()
    store = bench.spark._jsparkSession.sharedState().statusStore()  # the store of the UI, which Python has no public access to
    executions = store.executionsList()
    execution = executions.apply(executions.size() - 1)
    values = store.executionMetrics(execution.executionId())
    metrics = execution.metrics()
    for i in range(metrics.size()):
        metric = metrics.apply(i)
        if metric.name() == "peak buffer bytes of a task":
            return {"peak buffer bytes": int(values.apply(metric.accumulatorId())), "allowed": 64 << 20}
    raise AssertionError("the write has no metric of its buffers")
