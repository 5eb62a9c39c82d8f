"""PySpark as a package that may be missing: the extra `sparklog[spark]` installs it."""

from __future__ import annotations

import importlib.util

from sparklog.errors import SparklogError


def require_pyspark() -> None:
    """CallError SPARK_EXTRA if PySpark is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        raise SparklogError("SPARK_EXTRA", module="pyspark")
