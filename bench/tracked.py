"""A query of many small triggers, with a tracker of its offsets and without: what a tracker costs."""

from __future__ import annotations

from bench.harness import Bench, Side, topic_options
from sparklog.groups import track

TRIGGERS = 100
ROWS = 80
"""Records of a trigger."""


def run(bench: Bench) -> None:
    root, table = bench.path("tracked-log"), bench.path("tracked-offsets")
    bench.remove("tracked-log")
    rows = bench.data().limit(TRIGGERS * ROWS).selectExpr("key", "value", "now() AS timestamp").coalesce(1)
    rows.write.format("partlog").options(**topic_options("none")).mode("append").save(root)

    def query(tracked: bool) -> Side:
        """From the start of the query to its end; with a tracker, to the end of that, which has begun and ended a generation."""

        def drain() -> None:
            bench.remove("checkpoint")
            log = bench.spark.readStream.format("partlog").option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", ROWS)
            writer = log.load(root).writeStream.format("noop").option("checkpointLocation", bench.path("checkpoint"))
            running = writer.trigger(availableNow=True).start()
            if tracked:
                with track(running, "bench", root, table):
                    running.awaitTermination()
            else:
                running.awaitTermination()

        return drain

    bench.compare(
        f"tracker, a query of {TRIGGERS} triggers of {ROWS} records",
        "partlog, tracked",
        {"partlog, tracked": query(True), "partlog": query(False)},
        records=TRIGGERS * ROWS,
    )
