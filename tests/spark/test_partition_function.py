"""SQL, DataFrames, plain Python and the sink must choose the same partition for every key."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import mmh3
import pyarrow as pa
import pytest
from handmade import either, seeded
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sparklog
from sparklog import spark_functions

KEYS = either(100_000, 1_000_000)
PARTITIONS = 24


@pytest.fixture(scope="module")
def keys() -> list[bytes | None]:
    """Random keys of 0 to 40 bytes, some of them null."""
    source = seeded()
    return [None if i % 1000 == 7 else source.randbytes(i % 41) for i in range(KEYS)]


@pytest.fixture(scope="module")
def expected(keys: list[bytes | None]) -> list[int | None]:
    return [None if key is None else (mmh3.hash(key, signed=False) & 0x7FFFFFFF) % PARTITIONS for key in keys]


@pytest.fixture(scope="module")
def table(spark: SparkSession, keys: list[bytes | None], tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """The keys with their numbers, in Parquet, so that every question begins at the same place."""
    from pyarrow import parquet

    file = tmp_path_factory.mktemp("keys") / "keys.parquet"
    parquet.write_table(pa.table({"n": pa.array(range(KEYS)), "key": pa.array(keys, pa.binary())}), file, row_group_size=KEYS // 4)
    return spark.read.parquet(str(file)).cache()


def answers(rows) -> list[int | None]:  # type: ignore[no-untyped-def]
    return rows.orderBy("n").select("p").toArrow()["p"].to_pylist()


def test_sql_and_dataframe_and_python_and_sink(
    spark: SparkSession, table, keys: list[bytes | None], expected: list[int | None], tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    table.createOrReplaceTempView("keys_to_place")
    assert answers(spark.sql(f"SELECT n, partlog.murmur3_partition(key, {PARTITIONS}) AS p FROM keys_to_place")) == expected
    assert answers(table.select("n", spark_functions.murmur3_partition("key", PARTITIONS).alias("p"))) == expected
    assert [sparklog.partition_for(key, PARTITIONS) for key in keys] == expected
    rows = table.select("key", F.col("n").cast("string").alias("value"))
    rows.write.format("partlog").option("topic", "t").option("partitions", PARTITIONS).mode("append").save(str(tmp_path / "root"))
    log = spark.read.format("partlog").load(str(tmp_path / "root"))
    placed = log.where("key IS NOT NULL").select(F.col("value").cast("string").cast("long").alias("n"), F.col("partition").alias("p"))
    assert answers(placed) == [p for p in expected if p is not None]


@pytest.mark.slow
def test_without_the_catalog_the_answers_are_the_same_and_nothing_is_logged(
    spark: SparkSession, table, expected: list[int | None], capfd: pytest.CaptureFixture[str]
) -> None:  # type: ignore[no-untyped-def]
    name = "spark.sql.catalog.partlog"
    catalog = spark.conf.get(name)
    spark.conf.unset(name)
    try:
        some = table.where("n < 100000")
        column = spark_functions.murmur3_partition("key", PARTITIONS)
        assert "partlog" not in str(column), "it is a Python function"
        assert answers(some.select("n", column.alias("p"))) == expected[:100_000]
    finally:
        spark.conf.set(name, catalog)
    assert "UNRESOLVED_ROUTINE" not in capfd.readouterr().err


def test_murmur2(spark: SparkSession, table, keys: list[bytes | None]) -> None:  # type: ignore[no-untyped-def]
    some = table.where("n < 20000")
    there = answers(some.select("n", spark_functions.murmur2_partition(F.col("key"), PARTITIONS).alias("p")))
    assert there == [sparklog.partition_for(key, PARTITIONS, "murmur2") for key in keys[:20_000]]


def test_strings_count_as_their_utf8(spark: SparkSession) -> None:
    row = spark.sql(
        "SELECT partlog.murmur3_partition('ключ', 12), partlog.MURMUR2_partition('', 12), partlog.murmur3_partition(NULL, 12)"
    ).first()
    assert tuple(row) == (sparklog.partition_for("ключ", 12), sparklog.partition_for(b"", 12, "murmur2"), None)


def test_wrong_arguments(spark: SparkSession, fails: Callable[..., str]) -> None:
    assert "from 1 to 10000" in fails("OPTION_VALUE", lambda: spark.sql("SELECT partlog.murmur3_partition('a', 0)").collect())
    with pytest.raises(sparklog.CallError, match="partitions"):
        spark_functions.murmur3_partition("key", 0)


@pytest.mark.parametrize("name", ["murmur3_partition", "murmur2_partition"])
def test_without_a_session_the_error_names_the_calls(name: str) -> None:
    """In a program of its own, since this one has a session."""
    program = f"from sparklog import spark_functions\nspark_functions.{name}('customer-1', 2)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    said = ran.stderr.splitlines()[-1]
    assert said.startswith(f"sparklog.CallError: [PARTLOG_SPARK_SESSION] {name}() makes a column"), ran.stderr
    assert "Call sparklog.session() first" in said and "sparklog.partition_for()" in said


def test_rows_lie_where_they_will_be_written(spark: SparkSession, table) -> None:  # type: ignore[no-untyped-def]
    """repartitionById with the function: one task a partition."""
    placed = table.where("key IS NOT NULL AND n < 50000").withColumn("partition", spark_functions.murmur3_partition("key", 8))
    tasks = placed.repartitionById(8, "partition").select("partition", F.spark_partition_id().alias("task")).distinct().collect()
    assert {(row["partition"], row["task"]) for row in tasks} == {(p, p) for p in range(8)}


CONNECT = """
import sys, pyarrow as pa, sparklog
from sparklog import spark_functions
from pyspark.sql import SparkSession, functions as F
server, root = sys.argv[1:]
spark = sparklog.configure(SparkSession.builder.remote(server)).getOrCreate()
keys = [None, b"", b"a", b"ab", b"abc", b"key-%d" % 7, bytes(range(256))]
table = spark.createDataFrame(pa.table({"n": list(range(len(keys))), "key": pa.array(keys, pa.binary())}))
expected = [sparklog.partition_for(key, 24) for key in keys]
rows = table.select("n", spark_functions.murmur3_partition("key", 24).alias("p")).orderBy("n").collect()
assert [row["p"] for row in rows] == expected, rows
table.createOrReplaceTempView("k")
rows = spark.sql("SELECT partlog.murmur3_partition(key, 24) AS p FROM k ORDER BY n").collect()
assert [row["p"] for row in rows] == expected, rows
rows = table.selectExpr("key", "CAST(n AS STRING) AS value")
rows.write.format("partlog").option("topic", "t").option("partitions", 24).mode("append").save(root)
log = spark.read.format("partlog").load(root)
assert {row["p"] for row in log.where("key IS NULL").select(F.col("partition").alias("p")).collect()} <= set(range(24))
assert log.where("key IS NOT NULL").where(spark_functions.murmur3_partition("key", 24) != F.col("partition")).count() == 0
assert log.count() == len(keys)
try:
    spark.read.format("partlog").option("subscribe", "nope").load(root).count()
    raise AssertionError("a topic that is not there was read")
except Exception as error:
    assert error.getCondition() == "PARTLOG_TOPIC_NOT_FOUND", error
print("all agree")
"""


@pytest.mark.slow
def test_connect(connect: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CONNECT, connect, str(tmp_path / "root")], capture_output=True, text=True, timeout=300, check=False
    )
    assert "all agree" in ran.stdout, ran.stderr[-3_000:]


def test_throughput_beside_sparks_own_hash(spark: SparkSession, table) -> None:  # type: ignore[no-untyped-def]
    """Printed, not judged."""
    for name, column in (("murmur3_partition", spark_functions.murmur3_partition("key", PARTITIONS)), ("hash", F.hash("key"))):
        query = table.select(F.sum(column))
        query.collect()
        began = time.perf_counter()
        query.collect()
        print(f"{name}: {KEYS / (time.perf_counter() - began) / 1e6:.1f} M keys/s")
