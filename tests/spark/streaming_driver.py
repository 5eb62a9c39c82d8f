"""Streaming queries from one log to another, and a program that runs them: a driver that tests kill, stop and start again.

python streaming_driver.py FOLDER TRIGGER NAMES SETTINGS

FOLDER holds the roots `in` and `out` and a checkpoint for each query. TRIGGER is `available` or `always`. NAMES of queries, with commas
between them. SETTINGS is JSON: `stream` has the options of reading, `java` those of the JVM.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import sparklog

NAMES = ("append", "split", "own", "named")
"""All queries but `odd`, which writes half of its input, and `ordered`, which says what came before each record of its key."""
BUFFER = {"write.buffer.bytes": 1 << 20}
"""As small as it may be: what a task has beyond it goes to files of its own."""
RUNNING = "the queries are running"
STOPPED = "stopped at"
"""In the error of a step that was made to throw."""


def checkpoint(folder: Path, name: str) -> Path:
    return folder / f"checkpoint-{name}"


def start(
    spark: SparkSession,
    folder: Path,
    name: str,
    *,
    available: bool = True,
    between: Callable[[int], None] = lambda epoch: None,
    **options: object,
) -> StreamingQuery:
    """Starts the query with this name. Each record goes to the topics that `streams.Queries` expects it in.

    `between` is called in each epoch of a foreachBatch, between its two writes.
    """
    subscribed = {} if options.keys() & {"subscribe", "assign"} else {"subscribePattern": "in-.*"}
    given = {**subscribed, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 60, **options}
    rows = spark.readStream.format("partlog").options(**given).load(str(folder / "in"))
    named = rows.selectExpr("key", "concat_ws(':', topic, partition, offset, CAST(value AS STRING)) AS value", "offset % 2 AS half")
    if name == "ordered":
        named = in_order(rows)
    writer = _writer(named, folder / "out", name, between).option("checkpointLocation", str(checkpoint(folder, name)))
    return writer.trigger(**({"availableNow": True} if available else {"processingTime": "0 seconds"})).queryName(name).start()


def in_order(rows: DataFrame) -> DataFrame:
    """For each record of a key the value of the record before it, and its own. Columns `key` and `value`."""

    class InOrder(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.last = handle.getValueState("last", "value STRING")

        def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timerValues: object) -> Iterator[Row]:
            last = self.last.get()[0] if self.last.exists() else "none"
            for row in sorted(rows, key=lambda row: row.offset):
                yield Row(key=key[0], value=f"{last} {row.value}")
                last = row.value
            self.last.update((last,))

        def close(self) -> None:
            pass

    texts = rows.selectExpr("CAST(key AS STRING) AS key", "offset", "CAST(value AS STRING) AS value").groupBy("key")
    return texts.transformWithState(InOrder(), "key STRING, value STRING", "append", "none")


def _writer(rows: DataFrame, out: Path, name: str, between: Callable[[int], None]) -> DataStreamWriter:
    if name in ("append", "ordered"):
        return rows.drop("half").writeStream.format("partlog").options(path=str(out), topic=name, **BUFFER)
    if name == "odd":
        return rows.where("half = 1").drop("half").writeStream.format("partlog").options(path=str(out), topic="odd", **BUFFER)
    if name == "split":
        topics = rows.selectExpr("key", "value", "concat('split-', half) AS topic")
        return topics.writeStream.format("partlog").options(path=str(out), **BUFFER)

    def write(batch: DataFrame, epoch: int) -> None:
        for half in (0, 1):
            once: dict[str, Any] = sparklog.txn_options(f"named-{half}", epoch) if name == "named" else {}
            part = batch.where(f"half = {half}").drop("half")
            part.write.format("partlog").options(topic=name, **BUFFER, **once).mode("append").save(str(out))
            if half == 0:
                between(epoch)

    return rows.writeStream.foreachBatch(write)


def main() -> None:
    folder, trigger, names, settings = sys.argv[1:]
    given = json.loads(settings)
    spark = sparklog.session(
        conf={
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # The whole log of offsets stays, which says what each epoch must hold.
            "spark.sql.streaming.minBatchesToRetain": "1000000",
            # Where a driver dies while it writes offsets/0, Spark refuses its temporary file in the checkpoint.
            "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
            # For the state of `ordered`.
            "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
            "spark.sql.shuffle.partitions": "3",
            # Starts sooner.
            "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {given['java']}",
        }
    )
    spark.sparkContext.setLogLevel("ERROR")

    def run(name: str) -> StreamingQuery:
        return start(spark, Path(folder), name, available=trigger == "available", **given["stream"])

    queries = {name: run(name) for name in names.split(",")}
    print(RUNNING, flush=True)
    for name, query in queries.items():
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if STOPPED not in str(error):
                raise
            run(name).awaitTermination()  # a query that failed in a process that lives on
    spark.stop()


if __name__ == "__main__":
    main()
