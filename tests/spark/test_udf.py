"""Every kind of Python function over a log, in a classic session and in Spark Connect.

In a process of its own: a function that waits forever must fail the test, not block what comes after it.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf, pandas_udf

import sparklog

RECORDS = 1_500
RESULT = "partition INT, offset LONG, n LONG"


def number(value: bytes | None) -> int | None:
    return None if value is None else int(bytes(value))


def numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
    kept = [batch.column(name) for name in ("partition", "offset")]
    found = pa.array([number(value) for value in batch.column("value").to_pylist()], pa.int64())
    return pa.RecordBatch.from_arrays([*kept, found], ["partition", "offset", "n"])


def with_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[["partition", "offset"]].assign(n=rows["value"].map(number, na_action="ignore").astype("Int64"))


def in_pandas(values: pd.Series) -> pd.Series:
    return values.map(number, na_action="ignore").astype("Int64")


def in_arrow(values: pa.Array) -> pa.Array:
    return pa.array([number(value) for value in values.to_pylist()], pa.int64())


def each_in_pandas(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    return map(with_numbers, batches)


def each_in_arrow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return map(numbers, batches)


def all_in_arrow(rows: pa.Table) -> pa.Table:
    return pa.Table.from_batches(map(numbers, rows.to_batches()))


def over(make: Callable[[], object]) -> Callable[[DataFrame], DataFrame]:
    # Created only after the session: Connect has other functions.
    return lambda log: log.select("partition", "offset", make()("value").alias("n"))  # type: ignore[operator]


KINDS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "udf": over(lambda: F.udf(lambda value: number(value), "long")),
    "udf without Arrow": over(lambda: F.udf(lambda value: number(value), "long", useArrow=False)),
    "pandas_udf": over(lambda: pandas_udf(in_pandas, "long")),
    "arrow_udf": over(lambda: arrow_udf(in_arrow, "long")),
    "mapInPandas": lambda log: log.mapInPandas(each_in_pandas, RESULT),
    "mapInArrow": lambda log: log.mapInArrow(each_in_arrow, RESULT),
    "applyInPandas": lambda log: log.groupBy("partition").applyInPandas(with_numbers, RESULT),
    "applyInArrow": lambda log: log.groupBy("partition").applyInArrow(all_in_arrow, RESULT),
}


def try_all(spark: SparkSession, root: str) -> None:
    rows = spark.range(RECORDS).selectExpr("CONCAT('key-', id % 17) AS key", "IF(id % 100 = 0, NULL, CAST(id AS STRING)) AS value")
    log = rows.write.format("partlog").option("topic", "t").option("partitions", 3).option("batch.size", 1_000)
    log.mode("append").save(root)
    read = spark.read.format("partlog").option("subscribe", "t").load(root)
    expected = read.selectExpr("partition", "offset", "CAST(CAST(value AS STRING) AS LONG) AS n").cache()
    total = expected.agg(F.sum("n"), F.count("*")).first()
    assert total is not None
    assert tuple(total) == (sum(n for n in range(RECORDS) if n % 100), RECORDS)
    for kind, make in KINDS.items():
        print(kind, flush=True)
        assert_df_equality(make(read), expected, ignore_row_order=True, ignore_nullable=True)
    found = read.where(F.udf(lambda key, partition: key == b"key-3" and partition >= 0, "boolean")("key", "partition"))
    assert found.count() == len(range(3, RECORDS, 17))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["classic", pytest.param("connect", marks=pytest.mark.soak)])
def test_over_a_log(how: str, tmp_path: Path) -> None:
    try:
        ran = subprocess.run([sys.executable, __file__, how, str(tmp_path / "root")], capture_output=True, text=True, timeout=400)
    except subprocess.TimeoutExpired as waited:
        pytest.fail(f"it hangs in: {(waited.stdout or b'').decode().splitlines()[-1:]}")
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4_000:]
    assert ran.stdout.splitlines()[-len(KINDS) :] == list(KINDS)
    assert "Failed to set spark.jars" not in ran.stderr and "Failed to set spark.pyspark.python" not in ran.stderr


if __name__ == "__main__":
    how, root = sys.argv[1:]
    place = {"spark.master": "local[2]"} if how == "classic" else {"spark.remote": "local[2]"}
    session = sparklog.session(conf={**place, "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "3"})
    try_all(session, root)
    session.stop()
