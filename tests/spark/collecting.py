"""A streaming query and what it has read, for the tests of streams."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery


class Stream:
    """A query that collects what it reads of a root in memory; `run` starts it again with the same checkpoint."""

    def __init__(self, spark: SparkSession, root: Path, folder: Path) -> None:
        self.spark, self.root, self.checkpoint = spark, root, folder / "checkpoint"
        self.rows: list[tuple[int, int, str]] = []
        self.batches: list[int] = []
        self.between: Callable[[], object] = lambda: None
        """A query calls it at the end of each micro-batch."""

    def write(self, values: range, partition: int | None = None, topic: str = "events", partitions: int = 4) -> None:
        """A record for each number, to one partition, or round robin."""
        to = f"id % {partitions}" if partition is None else str(partition)
        rows = self.spark.range(values.start, values.stop, values.step, 1).selectExpr(
            "CAST(id AS STRING) AS value", f"CAST({to} AS INT) AS partition"
        )
        rows.write.format("partlog").options(topic=topic, partitions=partitions).mode("append").save(str(self.root))

    def start(self, available_now: bool = True, **options: object) -> StreamingQuery:
        given = {} if {"subscribe", "subscribePattern", "assign"} & options.keys() else {"subscribe": "events"}
        stream = self.spark.readStream.format("partlog").options(**{**given, **options}).load(str(self.root))

        def keep(batch: DataFrame, epoch: int) -> None:
            rows = [(row[0], row[1], bytes(row[2]).decode()) for row in batch.select("partition", "offset", "value").collect()]
            self.rows += rows
            self.batches.append(len(rows))
            self.between()

        writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(self.checkpoint))
        return (writer.trigger(availableNow=True) if available_now else writer.trigger(processingTime="0 seconds")).start()

    def run(self, **options: object) -> list[str]:
        """Runs it to the end of what is there; the values that this run read, by partition and offset."""
        self.rows, self.batches = [], []
        query = self.start(**options)
        query.awaitTermination()
        return [value for _, _, value in sorted(self.rows)]

    def fails(self, condition: str, available_now: bool = True, **options: object) -> str:
        """Runs it, which must fail with `PARTLOG_<condition>`; the text of the error."""
        query = self.start(available_now, **options)
        with pytest.raises(StreamingQueryException) as caught:
            query.awaitTermination()
        assert f"[PARTLOG_{condition}]" in str(caught.value), str(caught.value)[:3000]
        return str(caught.value)

    def topic_id(self, topic: str = "events") -> str:
        first = next((self.root / "_partlog" / topic).glob("*.json")).read_text().splitlines()[0]
        return str(json.loads(first)["topicId"])

    def offsets(self) -> list[str]:
        """The offsets in Spark's log, as they are written there."""
        files = sorted((self.checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
        return [file.read_text().splitlines()[2] for file in files]

    @property
    def is_committed(self) -> bool:
        """Whether Spark has noted each batch as done. One that it has not, although its rows are collected, is read again after a stop."""
        begun, done = ({file.name for file in (self.checkpoint / log).glob("[0-9]*")} for log in ("offsets", "commits"))
        return begun == done

    def sources(self) -> list[dict[str, object]]:
        files = sorted((self.checkpoint / "sources" / "0").glob("[0-9]"))
        return [json.loads(file.read_text().splitlines()[0]) for file in files]


def wait_until(done: Callable[[], bool], query: StreamingQuery, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert query.exception() is None, query.exception()
        assert time.monotonic() < until, query.lastProgress
        time.sleep(0.05)


def stop(query: StreamingQuery) -> None:
    """Stops a query wherever it is. The interrupt must not fail it; only Spark itself takes one for a failure, while it copies a plan."""
    query.stop()
    if query.exception() is not None:
        causes = [query._jsq.exception().get().getCause()]
        while (cause := causes[-1].getCause()) is not None:
            causes.append(cause)
        names = [cause.getClass().getName() for cause in causes]
        assert names == ["java.lang.reflect.InvocationTargetException", "java.lang.InterruptedException"], query.exception()


def numbers(values: list[str]) -> list[int]:
    return sorted(int(value) for value in values)
