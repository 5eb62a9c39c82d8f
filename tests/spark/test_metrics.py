"""The metrics that Spark's UI shows of a write and of a read. A new metric changes the sets here: say what it must show."""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import sparklog


def shown(spark: SparkSession, action: Callable[[], object]) -> dict[str, str]:
    """The values of our metrics that the SQL tab shows for the one query that `action` runs, by their descriptions."""
    store = spark._jsparkSession.sharedState().statusStore()
    before = newest(store)
    action()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    execution = store.executionsList().last()
    assert execution.executionId() == before + 1
    values = {pair._1(): pair._2() for pair in each(store.executionMetrics(execution.executionId()))}
    metrics = [metric for metric in each(execution.metrics()) if metric.metricType().startswith("v2Custom_io.sparklog.")]
    return {metric.name(): values[metric.accumulatorId()] for metric in metrics}


def newest(store) -> int:
    """The id of the newest query; −1 if there is none. Spark keeps the last 1,000 of them, so their number does not tell."""
    return -1 if store.executionsList().isEmpty() else int(store.executionsList().last().executionId())


def each(collection):
    """The elements of a Scala collection."""
    elements = collection.iterator()
    while elements.hasNext():
        yield elements.next()


def test_each_metric_shows_what_it_is_called(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(0, 1_000, 1, 2).selectExpr("CAST(id AS STRING) AS key", "repeat('v', 100) AS value")
    write = rows.write.format("partlog").option("topic", "t").option("partitions", 2).option("batch.size", 4096).mode("append")
    written = shown(spark, lambda: write.save(str(tmp_path)))
    topic = sparklog.Log(tmp_path)["t"]
    batches = [batch for partition in range(2) for batch in topic.batches(partition)]
    whole = sum(batch.bytes for batch in batches)
    peak = int(written.pop("peak buffer bytes of a task"))
    assert whole / 2 <= peak < 2 * whole, "each of two tasks holds its half"
    assert written == {"records written": "1000", "bytes of record batches": str(whole)}

    one = [batch for batch in batches if batch.partition == 0]
    part = sum(batch.bytes for batch in one)
    read = shown(spark, lambda: spark.read.format("partlog").load(str(tmp_path)).where("partition = 0").select("value").collect())
    bytes_read = int(read.pop("bytes read"))
    assert part <= bytes_read <= part * 1.02
    assert read == {"record batches read": str(len(one)), "bytes of the topics that need not be read": str(whole - part)}
