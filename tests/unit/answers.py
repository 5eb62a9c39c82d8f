"""Answers of `sparklog.Log` in a form that tests can compare."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from sparklog import SparklogError


def values(table: pa.Table) -> list[bytes]:
    return table["value"].to_pylist()


def offsets(table: pa.Table) -> list[int]:
    return table["offset"].to_pylist()


def places(table: pa.Table) -> list[tuple[int, int]]:
    """Partition and offset of each record."""
    return list(zip(table["partition"].to_pylist(), offsets(table), strict=True))


def failure(ask: Callable[[], object]) -> SparklogError:
    """The error that a question ends with."""
    with pytest.raises(SparklogError) as raised:
        ask()
    return raised.value
