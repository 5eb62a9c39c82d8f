"""Key to partition, as the Java half routes it. FORMAT.md section 13."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import overload

import mmh3

from sparklog.errors import SparklogError
from sparklog.options import topic_option

_POSITIVE = 0x7FFF_FFFF
_WORD = 0xFFFF_FFFF


@overload
def partition_for(key: None, partitions: int, partitioner: str = ...) -> None: ...
@overload
def partition_for(key: bytes | bytearray | memoryview | str, partitions: int, partitioner: str = ...) -> int: ...
def partition_for(key: bytes | bytearray | memoryview | str | None, partitions: int, partitioner: str = "murmur3") -> int | None:
    """The partition of a topic with so many partitions where a record with this key lies.

    A string counts as its UTF-8 bytes. None for the key None: records without a key lie where there was least, so no
    partition is theirs. An explicit partition given on writing is not seen here.
    """
    hash_of = _hash_of(partitions, partitioner)
    if key is None:
        return None
    return (hash_of(key.encode() if isinstance(key, str) else bytes(key)) & _POSITIVE) % partitions


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
