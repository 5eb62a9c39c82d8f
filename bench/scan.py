"""Reading all of a topic."""

from __future__ import annotations

import contextlib
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.harness import KEY_BYTES, PARTITIONS, VALUE_BYTES, Bench, Side, log_and_copies

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
        for query, ask in (("sum(length(value))", _values), ("all columns to noop", _rows)):
            bench.compare(f"scan, {label}, {query}", "partlog", {name: ask(rows) for name, rows in readers.items()})
        with _bare(bench, codec) as bare:
            offsets = {name: _offsets(rows) for name, rows in readers.items()}
            bench.compare(f"scan, {label}, sum(offset)", "partlog", offsets | {BARE: bare})
            # What Spark takes for any query counts less where there is more to read.
            often = {"partlog": _offsets(_over(readers["partlog"])), BARE: lambda: [bare() for _ in range(TIMES)]}
            bench.compare(f"scan, {label}, sum(offset), {TIMES} times over", "partlog", often, records=TIMES * bench.records)


def _free(bench: Bench, log: DataFrame) -> DataFrame:
    """As many records as the log has, and its columns: what is measured of them is Spark."""
    options = {"records": bench.records, "partitions": PARTITIONS, "keyBytes": KEY_BYTES, "valueBytes": VALUE_BYTES}
    return bench.spark.read.format("FreeSource").schema(log.schema).options(**options).load()


def _values(rows: DataFrame) -> Side:
    return lambda: rows.agg(F.sum(F.length("value"))).collect()


def _offsets(rows: DataFrame) -> Side:
    return lambda: rows.agg(F.sum("offset")).collect()


def _over(rows: DataFrame) -> DataFrame:
    return functools.reduce(DataFrame.union, [rows] * TIMES)


def _rows(rows: DataFrame) -> Side:
    return lambda: rows.write.format("noop").mode("overwrite").save()


@contextlib.contextmanager
def _bare(bench: Bench, codec: str) -> Iterator[Side]:
    """Reading and checksumming the topic's data files, and nothing else: in a JVM of its own, which stays for all rounds."""
    data = Path(bench.path(f"log-{codec}-{bench.records}")) / "_partlog" / "t" / "data"
    total = sum(file.stat().st_size for file in data.rglob("*.log"))
    command = ["java", str(Path(__file__).with_name("ReadAndChecksum.java")), str(data)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        requests, answers = process.stdin, process.stdout

        def ask() -> None:
            print(file=requests, flush=True)
            assert int(answers.readline()) == total

        yield ask
        requests.close()
