"""Values as SQL text, as Spark reads them."""

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparklog.spark.literals import literal


@pytest.mark.parametrize(
    "value",
    [
        *("", "it's", 'a \\ b "c" `d`', "-- ü\n:root ?", "${x} %"),
        *(b"", b"\x00\xff'"),
        *(True, False, 0, -1, 2**31, -(2**63) + 1, 2**63 - 1),
        *(timedelta(), timedelta(days=400, microseconds=1), timedelta(seconds=-1.5)),
        *([1, 2], ["a", "b'"], {"key": "v'"}, {"0": 2**40}),
    ],
    ids=repr,
)
def test_a_value_comes_back(spark: SparkSession, value: Any) -> None:
    [found] = spark.sql(f"SELECT {literal(value)}").collect()[0]
    assert (bytes(found) if isinstance(value, bytes) else found) == value


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match=r"1\.5, of type float, has no form in SQL"):
        literal(1.5)
