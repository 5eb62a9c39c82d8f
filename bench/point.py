"""A few records out of many: by partition and offset, by time, by key."""

from __future__ import annotations

from pyspark.sql import DataFrame

import sparklog
from bench.harness import PARTITIONS, Bench, Side, log_and_copies, metric


def run(bench: Bench) -> None:
    readers = log_and_copies(bench, "none")
    copy = readers["parquet"]
    offset = bench.records // PARTITIONS // 2
    [[key]] = copy.where(f"partition = 3 AND `offset` = {offset}").select("key").collect()
    partition = sparklog.partition_for(bytes(key), PARTITIONS)

    def ask(rows: DataFrame, where: str) -> Side:
        return rows.where(where).select("offset", "value").collect

    for label, where in (
        ("10 records by partition and offset", f"partition = 3 AND `offset` >= {offset} AND `offset` < {offset + 10}"),
        ("one key, through its partition", f"partition = {partition} AND key = X'{bytes(key).hex()}'"),
    ):
        assert len({len(rows.where(where).collect()) for rows in readers.values()} - {0}) == 1
        bench.compare(f"point read, {label}", "partlog", {name: ask(rows, where) for name, rows in readers.items()})
    # Spark does not hand the second to a scan, which then reads all partitions, as it did before it took conditions on keys.
    keys = {"partlog": "key", "partlog, the condition left to Spark": "IF(length(key) >= 0, key, NULL)"}
    for label, operator in (("one key", "="), ("all keys but one", "<>")):
        sides = {}
        read = {}
        for name, term in keys.items():
            where = f"{term} {operator} X'{bytes(key).hex()}'"

            def found(where: str = where) -> DataFrame:
                """A new query each time: a DataFrame that ran once keeps what its exchanges gave."""
                return readers["partlog"].where(where).selectExpr("sum(length(value))", "count(*)")

            read[name] = metric(found(), "BatchScan", "bytesRead")
            sides[name] = lambda found=found: found().collect()
        bench.note(f"look-up, {label}, bytes read", **read)
        bench.compare(f"look-up, {label}", "partlog", sides)
