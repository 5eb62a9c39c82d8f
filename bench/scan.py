"""Reading all of a topic."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.harness import Bench, log_and_copy


def run(bench: Bench) -> None:
    for codec in ("none", "zstd"):
        log, copy = log_and_copy(bench, codec)
        expected = (bench.records, bench.records * 100)
        for side in (log, copy):
            found = side.agg(F.count("key"), F.sum(F.length("value"))).first()
            assert tuple(found) == expected, f"{found} is not {expected}"
        label = "uncompressed" if codec == "none" else codec
        for query, ask in (("sum(length(value))", _values), ("sum(offset)", _offsets), ("all columns to noop", _rows)):
            bench.compare(f"scan, {label}, {query}", "partlog", {"partlog": ask(log), "parquet": ask(copy)})


def _values(rows: DataFrame) -> Callable[[], None]:
    return lambda: rows.agg(F.sum(F.length("value"))).collect() and None


def _offsets(rows: DataFrame) -> Callable[[], None]:
    return lambda: rows.agg(F.sum("offset")).collect() and None


def _rows(rows: DataFrame) -> Callable[[], None]:
    return lambda: rows.write.format("noop").mode("overwrite").save()
