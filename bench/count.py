"""`count(*)` of a topic: from what is committed, without opening a segment."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from bench.harness import Bench, log_and_copies


def run(bench: Bench) -> None:
    readers = log_and_copies(bench, "none")
    assert {rows.count() for rows in readers.values()} == {bench.records}
    bench.compare("count(*)", "partlog", {name: _count(rows) for name, rows in readers.items()})


def _count(rows: DataFrame) -> Callable[[], None]:
    return lambda: rows.count() and None
