"""A new user's mistakes with Spark, from the tables in tests/mistakes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mistakes import Mistake, check, reading, sql, streams, writing
from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql.streaming.query import StreamingQuery


@dataclass
class World:
    """The root and the table that mistakes are made with, and a folder for each of them."""

    spark: SparkSession
    root: Path
    tmp: Path = field(default=Path())

    def format(self) -> DataFrameReader:
        return self.spark.read.format("partlog")

    def read(self, root: object = None, **options: object) -> DataFrame:
        return self.format().options(**options).load(str(root or self.root))

    def stream(self) -> DataFrame:
        return self.spark.readStream.format("partlog").option("subscribe", "t").load(str(self.root))

    def rows(self, *columns: str) -> DataFrame:
        return self.spark.range(1).selectExpr(*(columns or ("'k' AS key", "'v' AS value")))

    def writer(self) -> DataFrameWriter:
        return self.rows().write.format("partlog").option("topic", "t")

    def save(self, *columns: str, root: object = None, mode: str = "append", **options: object) -> None:
        given = {name: value for name, value in {"topic": "t", **options}.items() if value is not None}
        self.rows(*columns).write.format("partlog").options(**given).mode(mode).save(str(root or self.root))

    def count(self) -> int:
        return self.read(self.tmp / "new").count()

    def sql(self, text: str) -> DataFrame:
        return self.spark.sql(text.format(root=self.root, tmp=self.tmp))

    def add_column(self) -> list[str]:
        self.sql("CREATE TABLE mistaken_new USING partlog OPTIONS (path '{root}', topic 't')")
        self.sql("ALTER TABLE mistaken_new ADD COLUMN x INT")
        return self.spark.table("mistaken_new").columns

    def relative_table(self) -> bool:
        """Whether its root is in Spark's warehouse."""
        self.sql("CREATE TABLE mistaken_new USING partlog OPTIONS (path 'log', topic 't')")
        self.sql("INSERT INTO mistaken_new (value) VALUES ('v')")
        return (Path(self.spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")) / "log" / "_partlog" / "t").is_dir()

    def reused(self) -> StreamingQuery:
        """A query that was started with the checkpoint of another."""
        streams.started(self, self.stream()).awaitTermination()
        self.save(root=self.tmp / "other", topic="z")
        others = self.spark.readStream.format("partlog").option("subscribe", "z").load(f"{self.tmp}/other")
        return streams.started(self, others)

    def partitioned(self) -> list[str]:
        """Names of the columns that a reader of the sink can select beside its place."""
        rows = self.spark.readStream.format("partlog").options(subscribe="t", startingOffsets="earliest").load(str(self.root))
        writer = rows.select("key", "value").writeStream.format("partlog").partitionBy("key").trigger(availableNow=True)
        writer.options(topic="u", checkpointLocation=f"{self.tmp}/checkpoint").start(f"{self.tmp}/new").awaitTermination()
        written = self.spark.read.format("partlog").load(f"{self.tmp}/new").select("key", "value")
        assert written.count() == 20
        return written.columns

    def file(self) -> Path:
        (self.tmp / "file").write_text("mine")
        return self.tmp / "file"

    def folder(self) -> Path:
        (self.tmp / "folder").mkdir()
        return self.tmp / "folder"


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = tmp_path_factory.mktemp("mistakes") / "root"
    rows = spark.range(20).selectExpr("concat('k', id) AS key", "CAST(id AS STRING) AS value")
    rows.write.format("partlog").options(topic="t", partitions=4).mode("append").save(str(root))
    spark.sql(f"CREATE TABLE mistaken USING partlog OPTIONS (path '{root}', topic 't')")
    yield World(spark, root)
    spark.sql("DROP TABLE mistaken")


@pytest.mark.parametrize("mistake", [*reading.TABLE, *writing.TABLE, *sql.TABLE, *streams.TABLE], ids=lambda mistake: mistake.what)
def test_a_mistake(made: World, tmp_path: Path, mistake: Mistake) -> Any:
    made.tmp = tmp_path
    try:
        check(mistake, made, made.root)
    finally:
        made.spark.sql("DROP TABLE IF EXISTS mistaken_new")
