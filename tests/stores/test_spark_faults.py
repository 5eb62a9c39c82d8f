"""The connector on S3 behind a proxy that loses answers and counts requests."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from stores.faults import Fault, FaultProxy
from stores.s3 import S3
from stores.sessions import session

VERSION_FILE = r"_partlog/t/\d{20}\.json$"


@pytest.fixture(scope="module")
def spark(s3a_jars: Path) -> Iterator[SparkSession]:
    with session(s3a_jars) as spark:
        yield spark


@pytest.fixture
def proxy(s3: S3, fault_proxy: Callable[[str], FaultProxy]) -> FaultProxy:
    return fault_proxy(s3.endpoint)


def numbers(spark: SparkSession, first: int, count: int) -> DataFrame:
    return spark.range(first, first + count, numPartitions=2).selectExpr("CAST(id AS STRING) AS value", "0 AS partition")


def write(frame: DataFrame, root: str, settings: dict[str, str]) -> None:
    frame.write.format("partlog").options(**settings, topic="t", partitions="1", merge="false").mode("append").save(root)


def read(spark: SparkSession, root: str, settings: dict[str, str]) -> list[tuple[int, int]]:
    frame = spark.read.format("partlog").options(**settings, subscribe="t").load(root)
    return sorted((row.offset, int(row.value)) for row in frame.select("offset", "value").collect())


@pytest.mark.parametrize(
    "fault",
    [
        Fault("cut"),
        Fault("lose"),
        Fault("late", seconds=3),
        Fault("answer", status=409),
        Fault("answer", status=412),
        Fault("answer", status=500),
        Fault("belie", status=409),
        Fault("belie", status=412),
        Fault("belie", status=503),
    ],
    ids=str,
)
def test_a_put_of_a_version_goes_wrong_and_its_rows_are_there_once(spark: SparkSession, s3: S3, proxy: FaultProxy, fault: Fault):
    root, settings = f"s3a://{s3.bucket}/faults/{fault.kind}-{fault.status}", s3.settings(proxy.endpoint)
    write(numbers(spark, 0, 10), root, settings)
    proxy.inject(fault.kind, method="PUT", key=VERSION_FILE, status=fault.status, seconds=fault.seconds)
    write(numbers(spark, 10, 10), root, settings)
    assert [request.fault for request in proxy.requests if request.fault] == [fault]
    write(numbers(spark, 20, 10), root, settings)
    rows = read(spark, root, settings)
    assert [offset for offset, _ in rows] == list(range(30))
    assert sorted(number for _, number in rows) == list(range(30))


def test_requests_of_a_write_and_of_a_read(spark: SparkSession, s3: S3, proxy: FaultProxy):
    root, settings = f"s3a://{s3.bucket}/requests", s3.settings(proxy.endpoint)
    for batch in range(2):
        write(numbers(spark, 10 * batch, 10), root, settings)
    before = len(proxy.requests)
    write(numbers(spark, 20, 10), root, settings)
    made = proxy.requests[before:]
    assert Counter(request.method for request in made)["PUT"] == 2, made  # pool.log and the version
    assert sum(request.is_conditional for request in made) == 1
    assert sum("list-type" in request.query for request in made) <= 3  # two looks for the root, and the files of the write
    before = len(proxy.requests)
    assert len(read(spark, root, settings)) == 30
    made = proxy.requests[before:]
    assert Counter(request.method for request in made)["PUT"] == 0
