"""Writing, with the files synced to disk inside the timed region of every side."""

from __future__ import annotations

import os

from bench.harness import Bench, Side, topic_options


def run(bench: Bench) -> None:
    data = bench.data()

    def clear() -> None:
        bench.remove("write")
        os.sync()

    def partlog(codec: str) -> Side:
        def write() -> None:
            data.write.format("partlog").options(**topic_options(codec)).mode("append").save(bench.path("write"))
            os.sync()

        return write

    def peer(name: str, codec: str) -> Side:
        def write() -> None:
            data.write.format(name).option("compression", codec).mode("append").save(bench.path("write"))
            os.sync()

        return write

    bench.compare(
        "write, uncompressed",
        "partlog",
        {
            "partlog": partlog("none"),
            "parquet snappy": peer("parquet", "snappy"),
            "parquet uncompressed": peer("parquet", "none"),
            "delta snappy": peer("delta", "snappy"),
        },
        before=clear,
    )
    bench.compare("write, zstd", "partlog zstd", {"partlog zstd": partlog("zstd"), "parquet zstd": peer("parquet", "zstd")}, before=clear)
    clear()
    bench.note("write, memory of a task", **_peak(bench, partlog("none")))
    bench.remove("write")


def _peak(bench: Bench, write: Side) -> dict[str, object]:
    """The most memory that one task's buffers took, as Spark's UI shows it, beside what `write.buffer.bytes` allows."""
    write()
    store = bench.spark._jsparkSession.sharedState().statusStore()  # the UI's own store; it has no public face in Python
    executions = store.executionsList()
    execution = executions.apply(executions.size() - 1)
    values = store.executionMetrics(execution.executionId())
    metrics = execution.metrics()
    for i in range(metrics.size()):
        metric = metrics.apply(i)
        if metric.name() == "peak buffer bytes of a task":
            return {"peak buffer bytes": int(values.apply(metric.accumulatorId())), "allowed": 64 << 20}
    raise AssertionError("the write has no metric of its buffers")
