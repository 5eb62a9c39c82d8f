"""Random statements about the tables of a catalog, beside another session and other processes."""

from pathlib import Path

import pytest
from handmade import draw_seed
from logtool import LogTool
from pyspark.sql import SparkSession
from spark import catalog_world


@pytest.fixture(scope="module")
def other(spark: SparkSession) -> SparkSession:
    return spark.newSession()


def fault(seed: int, spark: SparkSession, other: SparkSession, tool: LogTool) -> str | None:
    return catalog_world.fault(seed, spark, other, f"world_{tool.root.parent.name}_{tool.root.name}", tool)


@pytest.mark.parametrize("seed", range(2))
def test_each_statement_finds_what_those_before_it_left(
    spark: SparkSession, other: SparkSession, java_classpath: str, tmp_path: Path, seed: int
) -> None:
    assert fault(seed, spark, other, LogTool(java_classpath, tmp_path / "root")) is None


def test_a_write_that_the_model_does_not_know_is_found(
    spark: SparkSession, other: SparkSession, java_classpath: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_world.World, "ACTS", (catalog_world.World.append_elsewhere, catalog_world.World.select))
    monkeypatch.setattr(
        catalog_world.World, "settle", lambda self, name, by="": self.tool.run("append", topic=name, tag="unknown", partitions=2)
    )
    assert fault(0, spark, other, LogTool(java_classpath, tmp_path / "root")) is not None


@pytest.mark.soak
def test_each_statement_finds_what_those_before_it_left_for_new_seeds(
    spark: SparkSession, other: SparkSession, java_classpath: str, tmp_path: Path
) -> None:
    first = draw_seed()
    for seed in range(first, first + 100):
        assert fault(seed, spark, other, LogTool(java_classpath, tmp_path / str(seed))) is None
