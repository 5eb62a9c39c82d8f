"""A stream into a root that runs epoch by epoch, for the tests of the sink and of `foreachBatch`.

The input is Spark's source `rate-micro-batch`: epoch e holds the numbers from e·n to (e+1)·n − 1, and with `availableNow` a run of the
query is one epoch.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

EPOCH = 10


class Sink:
    """A root, and queries from one checkpoint that write to it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.root, self.checkpoint = spark, folder / "root", folder / "checkpoint"

    def numbers(self, rows: int = EPOCH) -> DataFrame:
        ticks = self.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).load()
        return ticks.selectExpr("value AS n", "CAST(value AS STRING) AS value")

    def run(self, rows: DataFrame | None = None, mode: str = "append", **options: object) -> list[dict[str, Any]]:
        """Runs a query that writes rows for one more epoch, after the one it has to repeat, if any. Gives its progress, by epoch."""
        written = (self.numbers() if rows is None else rows).drop("n").writeStream.format("partlog").outputMode(mode)
        given = {"topic": "t", "path": self.root} | options
        return self.finish(written.options(**{key: value for key, value in given.items() if value is not None}))

    def each(self, function: Callable[[DataFrame, int], None], rows: int = EPOCH) -> list[dict[str, Any]]:
        return self.finish(self.numbers(rows).writeStream.foreachBatch(function))

    def finish(self, writer: Any) -> list[dict[str, Any]]:
        query: StreamingQuery = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()
        return [json.loads(progress.json) for progress in query.recentProgress]

    def save(self, rows: DataFrame, topic: str | None = "t", **options: object) -> None:
        """A batch write."""
        given = options if topic is None else {"topic": topic, **options}
        rows.drop("n").write.format("partlog").options(**given).mode("append").save(str(self.root))

    def forget(self) -> int:
        """Leaves the files of a driver that dies after the sink's commit of an epoch: Spark's log lacks the epoch. Gives its number."""
        last = self.epochs() - 1
        for name in (f"{last}", f".{last}.crc"):
            (self.checkpoint / "commits" / name).unlink()
        return last

    def values(self, topic: str = "t") -> list[int]:
        rows = self.spark.read.format("partlog").option("subscribe", topic).load(str(self.root)).select("value").collect()
        return sorted(int(bytes(row["value"])) for row in rows)

    def versions(self, topic: str = "t") -> list[dict[str, Any]]:
        files = sorted((self.root / "_partlog" / topic).glob("*.json"))
        return [json.loads(file.read_text().splitlines()[0]) for file in files]

    def epochs(self) -> int:
        """How many epochs Spark has finished."""
        return 1 + max(int(file.name) for file in (self.checkpoint / "commits").iterdir() if file.name.isdecimal())

    def files(self) -> dict[str, int]:
        """The files under the root, with their numbers of bytes."""
        return {str(file.relative_to(self.root)): file.stat().st_size for file in self.root.rglob("*") if file.is_file()}
