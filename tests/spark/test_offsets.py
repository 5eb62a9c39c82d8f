"""Offset tables and Spark: with a session that has Delta, in a process of its own, and with one that has not."""

import subprocess
import sys
from pathlib import Path

import pytest
from handmade import sample
from pyspark.sql import SparkSession

from sparklog.groups import OffsetTable

TESTS = Path(__file__).parents[1] / "offsets" / "with_delta_spark.py"


@pytest.mark.slow
def test_offset_tables_with_delta_spark():
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", TESTS]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=TESTS.parents[2])
    assert ran.returncode == 0, ran.stdout[-4_000:]
    assert "8 passed" in ran.stdout


def test_lag_is_a_dataframe_of_the_session(spark: SparkSession, tmp_path: Path):
    """The session need not have Delta: the table is read and written without it."""
    topic = sample(tmp_path / "root")
    table, alone = OffsetTable(tmp_path / "table", topic.root, spark=spark), OffsetTable(tmp_path / "table", topic.root)
    table.append("g", table.begin("g"), {"t": {0: 5}})
    for ask in ("lag", "lag_history"):
        found = getattr(table, ask)("g")
        expected = getattr(alone, ask)("g")
        assert found.columns == expected.column_names
        assert found.toArrow().to_pylist() == expected.to_pylist()
    assert [row.records for row in table.lag("g").orderBy("partition").collect()] == [20, None]
