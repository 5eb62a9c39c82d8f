"""Key to partition, as the Java half routes it. FORMAT.md section 13."""

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
    """The partition of a topic with so many partitions where a record with this key lies.

    A string counts as its UTF-8 bytes. None for the key None: records without a key lie where there was least, so no
    partition is theirs. An explicit partition given on writing is not seen here. Any other type of key is a TypeError; a number of
    partitions that no topic has, or an unknown partitioner, a CallError (PARTLOG_OPTION_VALUE).
    """
    partitions = operator.index(partitions)
    hash_of = _hash_of(partitions, partitioner)
    if key is None:
        return None
    if isinstance(key, str):
        key = key.encode()
    elif not isinstance(key, bytes | bytearray | memoryview):
        # bytes(5) would be five zeros, and their partition a wrong answer.
        raise TypeError(f"a key is str, bytes or None, not {type(key).__name__}; a log holds what the key was cast to")
    return (hash_of(bytes(key)) & _POSITIVE) % partitions


def murmur3_partition(column: Column | str, partitions: int) -> Column:
    """The column (INT) of the partitions where records with these keys lie, in a topic that routes by murmur3.

    `column` is of STRING or BINARY, or the name of such a column; null where the key is null. It is what SQL calls
    `partlog.murmur3_partition(key, partitions)`; in a session that lacks that function, Python workers give the same
    answers.
    """
    return _column_of("murmur3", column, partitions)


def murmur2_partition(column: Column | str, partitions: int) -> Column:
    """As murmur3_partition, for a topic that routes by murmur2, as Kafka's Java clients do."""
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
        # Asked first: Spark logs an error, with all of Java's trace, where a function is not found.
        return False
    if spark not in _CATALOG_SEEN:
        try:
            _ = spark.sql("SELECT partlog.murmur3_partition('key', 1)").schema
            _CATALOG_SEEN[spark] = True
        except AnalysisException:
            # Not remembered: another catalog may get that name later.
            return False
    return True


def _arrow_udf(partitions: int, partitioner: str) -> Callable[[Column], Column]:
    import pyarrow as pa
    from pyspark.sql.pandas.functions import arrow_udf

    def place(keys: pa.Array) -> pa.Array:
        return pa.array((partition_for(key, partitions, partitioner) for key in keys.to_pylist()), pa.int32())

    # Told by hand: PySpark would look for the types among names that only type checkers see.
    place.__annotations__ = {"keys": pa.Array, "return": pa.Array}
    udf: Callable[[Column], Column] = arrow_udf(place, "int")  # type: ignore[call-overload] # its kind is told by the hints
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
