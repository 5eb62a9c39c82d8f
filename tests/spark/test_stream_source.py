"""`spark.readStream.format("partlog")` with a real Spark: offsets, restarts, limits, and what must be refused."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery


class Stream:
    """A query that collects what it reads of a root in memory; `run` starts it again with the same checkpoint."""

    def __init__(self, spark: SparkSession, root: Path, folder: Path) -> None:
        self.spark, self.root, self.checkpoint = spark, root, folder / "checkpoint"
        self.rows: list[tuple[int, int, str]] = []
        self.batches: list[int] = []

    def write(self, values: range, partition: int | None = None, topic: str = "events", partitions: int = 4) -> None:
        """A record for each number, to one partition, or round robin."""
        to = f"id % {partitions}" if partition is None else str(partition)
        rows = self.spark.range(values.start, values.stop, values.step, 1).selectExpr(
            "CAST(id AS STRING) AS value", f"CAST({to} AS INT) AS partition"
        )
        rows.write.format("partlog").options(topic=topic, partitions=partitions).mode("append").save(str(self.root))

    def start(self, available_now: bool = True, **options: object) -> StreamingQuery:
        given = {} if {"subscribePattern", "assign"} & options.keys() else {"subscribe": "events"}
        stream = self.spark.readStream.format("partlog").options(**{**given, **options}).load(str(self.root))

        def keep(batch: DataFrame, epoch: int) -> None:
            rows = [(row[0], row[1], bytes(row[2]).decode()) for row in batch.select("partition", "offset", "value").collect()]
            self.rows += rows
            self.batches.append(len(rows))

        writer = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(self.checkpoint))
        return (writer.trigger(availableNow=True) if available_now else writer.trigger(processingTime="0 seconds")).start()

    def run(self, **options: object) -> list[str]:
        """Runs it to the end of what is there; the values that this run read, by partition and offset."""
        self.rows, self.batches = [], []
        query = self.start(**options)
        query.awaitTermination()
        return [value for _, _, value in sorted(self.rows)]

    def offsets(self) -> list[str]:
        """The offsets in Spark's log, as they are written there."""
        files = sorted((self.checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
        return [file.read_text().splitlines()[2] for file in files]

    def sources(self) -> list[dict[str, object]]:
        files = sorted((self.checkpoint / "sources" / "0").glob("[0-9]"))
        return [json.loads(file.read_text().splitlines()[0]) for file in files]


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Iterator[Stream]:
    yield Stream(spark, tmp_path / "root", tmp_path)
    for query in spark.streams.active:
        query.stop()


def test_a_restart_goes_on_where_the_last_run_ended(stream: Stream) -> None:
    stream.write(range(10))
    assert sorted(stream.run(startingOffsets="earliest"), key=int) == [str(n) for n in range(10)]
    assert stream.offsets() == ['{"events":{"0":3,"1":3,"2":2,"3":2}}']
    assert stream.run(startingOffsets="earliest") == []
    stream.write(range(10, 14))
    assert sorted(stream.run(), key=int) == ["10", "11", "12", "13"]
    assert stream.offsets()[1:] == ['{"events":{"0":4,"1":4,"2":3,"3":3}}']
    [first] = stream.sources()
    assert first["topics"]["events"]["offsets"] == {"0": 0, "1": 0, "2": 0, "3": 0}  # type: ignore[index]
