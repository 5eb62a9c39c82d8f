"""Reading a whole topic."""

from __future__ import annotations

import functools

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.alone import alone
from bench.data import KEY_BYTES, VALUE_BYTES
from bench.harness import PARTITIONS, Bench, Side, copy_of, log_and_copies

TIMES = 8
BARE = "bytes and CRC-32C alone, in Java"
FREE = "a source that costs nothing"


def run(bench: Bench) -> None:
    for codec in ("none", "zstd"):
        readers = log_and_copies(bench, codec)
        readers[FREE] = _free(bench, readers["partlog"])
        expected = (bench.records, bench.records * VALUE_BYTES)
        for side in readers.values():
            found = side.agg(F.count("key"), F.sum(F.length("value"))).collect()
            assert found == [expected], f"{found} is not {expected}"
        label = "uncompressed" if codec == "none" else codec
        for query, ask in (("sum(length(value))", values), ("all columns to noop", rows)):
            bench.compare(f"scan, {label}, {query}", "partlog", {name: ask(frame) for name, frame in readers.items()})
        with alone(bench, copy_of(bench, "partlog", codec), "checksum") as bare:
            offsets = {name: _offsets(rows) for name, rows in readers.items()}
            bench.compare(f"scan, {label}, sum(offset)", "partlog", offsets | {BARE: bare})
            # The fixed costs of any Spark query count less if there is more to read.
            often = {"partlog": _offsets(_over(readers["partlog"])), BARE: lambda: [bare() for _ in range(TIMES)]}
            bench.compare(f"scan, {label}, sum(offset), {TIMES} times over", "partlog", often, records=TIMES * bench.records)


def _free(bench: Bench, log: DataFrame) -> DataFrame:
    """A source with as many records as the log and with its columns, which costs nothing: reading it measures Spark alone."""
    options = {"records": bench.records, "partitions": PARTITIONS, "keyBytes": KEY_BYTES, "valueBytes": VALUE_BYTES}
    return bench.spark.read.format("FreeSource").schema(log.schema).options(**options).load()


def values(rows: DataFrame) -> Side:
    """A query that reads every value."""
    return lambda: rows.agg(F.sum(F.length("value"))).collect()


def _offsets(rows: DataFrame) -> Side:
    return lambda: rows.agg(F.sum("offset")).collect()


def _over(rows: DataFrame) -> DataFrame:
    return functools.reduce(DataFrame.union, [rows] * TIMES)


def rows(rows: DataFrame) -> Side:
    """A query that reads every column of every row."""
    return lambda: rows.write.format("noop").mode("overwrite").save()
