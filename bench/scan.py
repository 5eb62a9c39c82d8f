"""Reading all of a topic."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.harness import Bench

PARTITIONS = 8


def run(bench: Bench) -> None:
    for codec in ("none", "zstd"):
        data = bench.data()
        options = {"topic": "t", "partitions": PARTITIONS, "compression.type": codec}
        bench.remove(f"log-{codec}")
        bench.remove(f"parquet-{codec}")
        data.write.format("partlog").options(**options).mode("append").save(bench.path(f"log-{codec}"))
        data.write.option("compression", codec).parquet(bench.path(f"parquet-{codec}"))
        log = bench.spark.read.format("partlog").option("subscribe", "t").load(bench.path(f"log-{codec}"))
        parquet = bench.spark.read.parquet(bench.path(f"parquet-{codec}"))
        expected = (bench.records, bench.records * 100)
        for side in (log, parquet):
            found = side.agg(F.count("*"), F.sum(F.length("value"))).first()
            assert tuple(found) == expected, f"{found} is not {expected}"
        label = "uncompressed" if codec == "none" else codec
        for query, ask in (("sum(length(value))", _values), ("key and value to noop", _rows)):
            bench.compare(f"scan, {label}, {query}", "partlog", {"partlog": ask(log), "parquet": ask(parquet)})
        bench.remove(f"log-{codec}")
        bench.remove(f"parquet-{codec}")


def _values(rows: DataFrame) -> Callable[[], None]:
    return lambda: rows.agg(F.sum(F.length("value"))).collect() and None


def _rows(rows: DataFrame) -> Callable[[], None]:
    return lambda: rows.select("key", "value").write.format("noop").mode("overwrite").save()
