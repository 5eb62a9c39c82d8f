"""From a key to its partition, as the connector routes records. FORMAT.md section 13."""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, overload

import mmh3

from sparklog.errors import SparklogError
from sparklog.options import topic_option

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_CATALOG_SEEN: weakref.WeakKeyDictionary[SparkSession, bool] = weakref.WeakKeyDictionary()
_POSITIVE = 0x7FFF_FFFF
_WORD = 0xFFFF_FFFF


@overload
def partition_for(key: None, partitions: int, partitioner: str = ...) -> None: ...
@overload
def partition_for(key: bytes | bytearray | memoryview | str, partitions: int, partitioner: str = ...) -> int: ...
def partition_for(key: bytes | bytearray | memoryview | str | None, partitions: int, partitioner: str = "murmur3") -> int | None:
    """The partition of a record with this key, in a topic with `partitions` partitions (1 to 10,000).

    A string is encoded as UTF-8. The result is None for the key None: records without a key go to the partition with the fewest records.
    A record that was written to an explicit partition can be in another one. TypeError for any other type of key; CallError
    PARTLOG_OPTION_VALUE for an impossible number of partitions or an unknown partitioner.
    """
    partitions = operator.index(partitions)
    hash_of = _hash_of(partitions, partitioner)
    if key is None:
        return None
    if isinstance(key, str):
        key = key.encode()
    elif not isinstance(key, bytes | bytearray | memoryview):
        # bytes(5) would be five zero bytes, whose partition would be a wrong answer.
        raise TypeError(f"a key is str, bytes or None, not {type(key).__name__}; a log stores what the key was cast to")
    return (hash_of(bytes(key)) & _POSITIVE) % partitions


def murmur3_partition(column: Column | str, partitions: int) -> Column:
    """The partitions (INT) of records with these keys, in a topic that routes by murmur3; null where the key is null.

    `column` is a column of STRING or BINARY, or the name of one. In SQL this is `partlog.murmur3_partition(key, partitions)`. In a session
    without that function, Python workers compute the same numbers.
    """
    return _column_of("murmur3", column, partitions)


def murmur2_partition(column: Column | str, partitions: int) -> Column:
    """The same as murmur3_partition, for a topic that routes by murmur2, as Kafka's Java clients do."""
    return _column_of("murmur2", column, partitions)


def _column_of(partitioner: str, column: Column | str, partitions: int) -> Column:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    partitions = operator.index(partitions)
    _hash_of(partitions, partitioner)  # refuses a number of partitions that no topic has
    key = F.col(column) if isinstance(column, str) else column
    if _has_catalog(SparkSession.active()):
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


@functools.lru_cache(maxsize=16)
def _hash_of(partitions: int, partitioner: str) -> Callable[[bytes], int]:
    for option, value in (("partitions", partitions), ("partitioner", partitioner)):
        if problem := topic_option(option).problem(str(value)):
            raise SparklogError("OPTION_VALUE", option=option, value=value, reason=problem)
    hashes: dict[str, Callable[[bytes], int]] = {"murmur3": mmh3.hash, "murmur2": _murmur2}
    return hashes[partitioner.lower()]


def _murmur2(octets: bytes) -> int:
    """MurmurHash2 of 32 bits with the seed of Kafka's Java clients, unsigned."""
    multiplier = 0x5BD1_E995
    whole = len(octets) & ~3
    result = 0x9747_B28C ^ len(octets)
    for at in range(0, whole, 4):
        word = int.from_bytes(octets[at : at + 4], "little") * multiplier & _WORD
        word = (word ^ word >> 24) * multiplier & _WORD
        result = result * multiplier & _WORD ^ word
    if whole < len(octets):
        result = (result ^ int.from_bytes(octets[whole:], "little")) * multiplier & _WORD
    result = (result ^ result >> 13) * multiplier & _WORD
    return result ^ result >> 15
