"""The records that the cases write and read, kept as uncompressed Parquet. Each kind is the same in every run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

KEY_BYTES = 16
VALUE_BYTES = 100
_FILES = 4
# A reading of one of 5,000 sensors, as a string of 20 bytes like {"t":21.37,"h":45.2}.
_READING = (
    "concat('s', id % 5000) AS key",
    """format_string('{"t":%05.2f,"h":%04.1f}', 20 + 9 * sin(id / 5e4) + pmod(xxhash64(id), 90) / 100,
       50 + 20 * cos(id / 7e4) + pmod(xxhash64(-id), 30) / 10) AS value""",
    "timestamp_millis(1700000000000 + id * 10) AS timestamp",
)


def made(spark: SparkSession, folder: Path, kind: str, records: int) -> Path:
    """The folder with the records of a kind; makes it if it does not exist.

    * random: a key of 16 bytes and a value of 100 bytes, which no codec makes smaller.
    * flights: the events of `make demo`, JSON of about 300 bytes, repeated.
    * small: JSON of 20 bytes.
    """
    source = folder / f"source-{kind}-{records}"
    if not source.exists():
        print(f"Making {records:,} records of the kind {kind} …", flush=True)
        {"random": _random, "flights": _flights, "small": _small}[kind](spark, source, records)
    return source


def _random(_: SparkSession, target: Path, records: int) -> None:
    import numpy as np
    import pyarrow as pa

    numbers = np.random.default_rng(42)
    for file in range(_FILES):
        rows = _share(file, records)
        table = pa.table(
            {"key": _binary(numbers.bytes(rows * KEY_BYTES), KEY_BYTES), "value": _binary(numbers.bytes(rows * VALUE_BYTES), VALUE_BYTES)}
        )
        _write(table, target, file)


def _flights(spark: SparkSession, target: Path, records: int) -> None:
    import pyarrow as pa

    from bench.demo import flight_events, flights

    events = flight_events(spark, flights()).orderBy("n").drop("n").toArrow()
    at = 0
    for file in range(_FILES):
        rows = _share(file, records)
        parts = []
        while rows:
            part = events.slice(at % events.num_rows, rows)
            parts.append(part)
            at += part.num_rows
            rows -= part.num_rows
        _write(pa.concat_tables(parts), target, file)


def _small(spark: SparkSession, target: Path, records: int) -> None:
    rows = spark.range(0, records, 1, _FILES).selectExpr(*_READING)
    rows.write.option("compression", "none").parquet(str(target))


def _share(file: int, records: int) -> int:
    return records // _FILES + (1 if file < records % _FILES else 0)


def _write(table: pa.Table, target: Path, file: int) -> None:
    from pyarrow import parquet

    target.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, target / f"{file}.parquet", compression="none", use_dictionary=False, row_group_size=500_000)


def _binary(data: bytes, width: int) -> pa.Array:
    import pyarrow as pa

    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(data) // width, [None, pa.py_buffer(data)])
    return fixed.cast(pa.binary())
