"""Partitions of many keys at once. FORMAT.md section 13.

Written for arrays, since a call for each key would take longer than all other checks of a record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Words: TypeAlias = Any  # arrays of numpy's uint32, whose operators mypy does not know

_U = np.uint32
_MURMUR2 = _U(0x5BD1E995)


def partitions_of(data: bytes, at: Longs, sizes: Longs, partitions: int, partitioner: str) -> Longs:
    """The partition of each key. Keys are the `sizes` bytes of `data` from `at` on; none is null. Some bytes must follow the last key."""
    words: Words = np.ndarray(shape=len(data) - 3, dtype="<u4", buffer=data, strides=1)
    hash_of = _HASHES[partitioner]
    first = int(sizes[0]) if sizes.size else 0
    if (sizes == first).all():
        hashes = hash_of(words, at, first)
    else:
        hashes = np.empty(at.size, dtype=np.uint32)
        for size in np.unique(sizes).tolist():
            rows = np.flatnonzero(sizes == size)
            hashes[rows] = hash_of(words, at[rows], size)
    placed: Longs = (hashes & _U(0x7FFF_FFFF)).astype(np.int64) % partitions
    return placed


def _turned(value: Words, bits: int) -> Words:
    return value << _U(bits) | value >> _U(32 - bits)


def _tail(words: Words, at: Longs, size: int) -> Words:
    """The last bytes of each key, fewer than four, as a little-endian number."""
    return words[at + (size & ~3)] & _U((1 << 8 * (size & 3)) - 1)


def _murmur3(words: Words, at: Longs, size: int) -> Words:
    found = np.zeros(at.size, dtype=np.uint32)
    for word in range(0, size & ~3, 4):
        found = _turned(found ^ _mixed(words[at + word]), 13) * _U(5) + _U(0xE6546B64)
    if size & 3:
        found = found ^ _mixed(_tail(words, at, size))
    found = found ^ _U(size & 0xFFFF_FFFF)
    found = (found ^ found >> _U(16)) * _U(0x85EBCA6B)
    found = (found ^ found >> _U(13)) * _U(0xC2B2AE35)
    return found ^ found >> _U(16)


def _mixed(word: Words) -> Words:
    return _turned(word * _U(0xCC9E2D51), 15) * _U(0x1B873593)


def _murmur2(words: Words, at: Longs, size: int) -> Words:
    found = np.full(at.size, 0x9747B28C ^ size, dtype=np.uint32)
    for word in range(0, size & ~3, 4):
        mixed = words[at + word] * _MURMUR2
        found = found * _MURMUR2 ^ (mixed ^ mixed >> _U(24)) * _MURMUR2
    if size & 3:
        found = (found ^ _tail(words, at, size)) * _MURMUR2
    found = (found ^ found >> _U(13)) * _MURMUR2
    return found ^ found >> _U(15)


_HASHES: dict[str, Callable[[Words, Longs, int], Words]] = {"murmur3": _murmur3, "murmur2": _murmur2}
