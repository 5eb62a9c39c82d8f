"""Offset tables and Spark: with a session that has Delta, in a process of its own, and with one that has not."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1] / "groups" / "with_delta_spark.py"


@pytest.mark.slow
def test_offset_tables_with_delta_spark():
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", TESTS]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=TESTS.parents[2])
    assert ran.returncode == 0, ran.stdout[-4_000:]
    assert "8 passed" in ran.stdout
