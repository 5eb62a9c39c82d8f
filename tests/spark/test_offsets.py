"""Offset tables through delta-spark, in a process with a session that has Delta."""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import sparklog
from sparklog.offsets import OffsetTable

TESTS = Path(__file__).parents[1] / "offsets" / "through_delta_spark.py"


@pytest.mark.slow
def test_offset_tables_through_delta_spark():
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", TESTS]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=TESTS.parents[2])
    assert ran.returncode == 0, ran.stdout[-4_000:]
    assert "11 passed" in ran.stdout


def test_a_session_without_delta(spark: SparkSession, tmp_path: Path):
    with pytest.raises(sparklog.CallError, match="PARTLOG_DELTA_MISSING"):
        OffsetTable(tmp_path, spark=spark)
