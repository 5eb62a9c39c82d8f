"""SQL's functions of keys as functions of Spark's columns."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.router import partition_for, router
from sparklog.spark.installed import require_pyspark
from sparklog.spark.session import running_session

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

__all__ = ["murmur2_partition", "murmur3_partition"]
_CATALOG_SEEN: weakref.WeakKeyDictionary[SparkSession, bool] = weakref.WeakKeyDictionary()


def murmur3_partition(column: Column | str, partitions: int) -> Column:
    """Computes the partition of each key of a column, in a topic that routes by murmur3.

    In SQL this is `partlog.murmur3_partition(key, partitions)`. In a session without that function, Python workers compute the same
    numbers.

    Args:
        column: A column of STRING or BINARY, or its name.
        partitions: The number of partitions of the topic, 1 to 10,000.

    Returns:
        A column of INT; null where the key is null.

    Raises:
        CallError: SPARK_EXTRA if PySpark is not installed; SPARK_SESSION if no session runs; OPTION_VALUE if no topic has that number of
            partitions.

    Example:
        >>> from sparklog import spark_functions
        >>> keys = sparklog.session().createDataFrame([("customer-1",)], "key STRING")
        >>> keys.select(spark_functions.murmur3_partition("key", 2)).first()[0]
        0
    """
    return _column_of("murmur3", column, partitions)


def murmur2_partition(column: Column | str, partitions: int) -> Column:
    """Computes the partition of each key of a column, in a topic that routes by murmur2, as Kafka's Java clients do.

    In SQL this is `partlog.murmur2_partition(key, partitions)`. In a session without that function, Python workers compute the same
    numbers.

    Args:
        column: A column of STRING or BINARY, or its name.
        partitions: The number of partitions of the topic, 1 to 10,000.

    Returns:
        A column of INT; null where the key is null.

    Raises:
        CallError: SPARK_EXTRA if PySpark is not installed; SPARK_SESSION if no session runs; OPTION_VALUE if no topic has that number of
            partitions.

    Example:
        >>> from sparklog import spark_functions
        >>> keys = sparklog.session().createDataFrame([("user-7",)], "key STRING")
        >>> keys.select(spark_functions.murmur2_partition("key", 8)).first()[0]
        4
    """
    return _column_of("murmur2", column, partitions)


def _column_of(partitioner: str, column: Column | str, partitions: int) -> Column:
    require_pyspark()
    from pyspark.sql import functions as F

    partitions = arguments.integer("partitions", partitions)
    router(partitions, partitioner)  # refuses a number of partitions that no topic has
    spark = running_session()
    if spark is None:
        raise SparklogError("SPARK_SESSION", function=f"{partitioner}_partition")
    key = F.col(column) if isinstance(column, str) else column
    if _has_catalog(spark):
        return F.call_function(f"partlog.{partitioner}_partition", key, F.lit(partitions))
    return _arrow_udf(partitions, partitioner)(key.cast("binary"))


def _has_catalog(spark: SparkSession) -> bool:
    """Whether the session's server knows our functions in SQL; they cost a tenth of what Python workers do."""
    from pyspark.errors import AnalysisException

    if spark.conf.get("spark.sql.catalog.partlog", None) is None:
        # Checked first, because Spark logs an error with a full stack trace when a function is not found.
        return False
    if spark not in _CATALOG_SEEN:
        try:
            _ = spark.sql("SELECT partlog.murmur3_partition('key', 1)").schema
            _CATALOG_SEEN[spark] = True
        except AnalysisException:
            # Not remembered, because a catalog may get that name later.
            return False
    return True


def _arrow_udf(partitions: int, partitioner: str) -> Callable[[Column], Column]:
    import pyarrow as pa
    from pyspark.sql.pandas.functions import arrow_udf

    def place(keys: pa.Array) -> pa.Array:
        return pa.array((partition_for(key, partitions, partitioner) for key in keys.to_pylist()), pa.int32())

    # Set by hand: PySpark would look up the types by names that only type checkers import.
    place.__annotations__ = {"keys": pa.Array, "return": pa.Array}
    udf: Callable[[Column], Column] = arrow_udf(place, "int")  # type: ignore[call-overload] # the annotations decide its kind
    return udf
