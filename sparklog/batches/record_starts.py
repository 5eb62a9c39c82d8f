"""Where records begin. FORMAT.md section 3.

Each record begins with its length. A record's position is therefore known only after the lengths of all records before it in the batch.
Nothing else about records must be found one by one. Three things make this fast: steps through many batches in parallel, jumps over runs of
records of the same length, and little work in each step. This module reads only lengths, and it ignores their signs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sparklog.batches.header import VARINT_BYTES_MAX
from sparklog.store.store import Damaged

Longs = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]

PADDING = bytes(16)
"""Callers append this to the data. Then the first bytes of a number can be read without asking whether the data end before."""

_ABREAST_MIN = 48
_STEPS_MIN = 64
_STEPS_MAX = 1 << 14
_EQUAL_MAX = 1 << 12

# For a length of two bytes, a and b, the next record begins _LOW[a] + _HIGH[b] bytes after a. The lowest bit of a is the sign.
_LOW = tuple((byte & 0x7F) >> 1 for byte in range(256))
_HIGH = tuple(2 + (byte << 6) for byte in range(128))

_words = np.arange(1 << 16)
# The same for two bytes read as one little-endian number. The second byte counts only if the first byte requires it.
_STEP = np.where(_words & 0x80, 2 + ((_words & 0x7F) >> 1) + (_words >> 8 << 6), 1 + ((_words & 0xFF) >> 1))
# For a length of three bytes or more: a step beyond the end of any data.
_BEYOND = 1 << 40
_STEP[_words & 0x8080 == 0x8080] = _BEYOND


def starts(data: bytes, at: int, count: int) -> Longs:
    """The positions of `count` records, beginning at `at`; then the end of the last record. Damaged if the data end before."""
    array = np.frombuffer(data, dtype=np.uint8)
    runs = []
    patience = _STEPS_MIN
    while count:
        try:
            steps = np.fromiter(_steps(data, at, min(patience, count)), dtype=np.int64)
        except (IndexError, OverflowError):
            raise Damaged("a record reaches beyond its end") from None
        runs.append(steps[:-1])
        count -= steps.size - 1
        at = int(steps[-1])
        size = at - int(steps[-2])
        equal = _equal(array, at, size, min(count, _EQUAL_MAX))
        runs.append(np.arange(at, at + equal * size, size))
        count -= equal
        at += equal * size
        patience = _STEPS_MIN if equal > _STEPS_MIN else min(2 * patience, _STEPS_MAX)
    runs.append(np.array([at]))
    return np.concatenate(runs)


def _steps(data: bytes, at: int, count: int) -> Iterator[int]:
    low, high = _LOW, _HIGH
    for _ in range(count):
        yield at
        first = data[at]
        if first < 0x80:
            at += 1 + (first >> 1)
        elif (second := data[at + 1]) < 0x80:
            at += low[first] + high[second]
        else:
            length, at = varint(data, at)
            at += length >> 1
    yield at


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at `at`, still in zigzag, and the position after it. IndexError if the data end before."""
    value = 0
    for shift in range(0, 7 * VARINT_BYTES_MAX, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise Damaged("a number has too many bytes")


def _equal(array: ByteArray, at: int, size: int, count: int) -> int:
    """How many records from `at` on, at most `count`, begin with the same length field as the record of `size` bytes before them."""
    count = min(count, (array.size - at) // size)
    if count <= 0:
        return 0
    rows = array[at - size : at + count * size].reshape(-1, size)
    width = 1 + int((rows[0] < 0x80).argmax())
    if (rows[1, :width] != rows[0, :width]).any():
        return 0
    same = (rows[1:, :width] == rows[0, :width]).all(axis=1)
    return count if same.all() else int(same.argmin())


def starts_abreast(data: bytes, bounds: Longs, counts: Longs) -> Longs | None:
    """The same as `starts`, for batches between consecutive `bounds` and have `counts` records each.

    The caller must check that each batch ends at its bound. None if this way would not help: the batches are too few, their counts too
    different, or their records too large.
    """
    total, most = int(counts.sum()), int(counts.max(initial=0))
    if not total or total < _ABREAST_MIN * most:
        return None
    order = np.argsort(-counts, kind="stable")
    at = bounds[:-1][order]
    to = (np.cumsum(counts) - counts)[order]
    found = np.empty(total + 1, dtype=np.int64)
    found[-1] = bounds[-1]
    words: npt.NDArray[np.uint16] = np.ndarray(shape=len(data) - 1, dtype="<u2", buffer=data, strides=1)
    # `order` puts batches with more records first. So the batches that have a record number 0, 1, 2, … are always its first ones.
    having = counts.size - np.searchsorted(np.sort(counts), np.arange(most), side="right")
    for batches in having.tolist():
        at, to = at[:batches], to[:batches]
        found[to] = at
        to = to + 1
        try:
            at = at + _STEP.take(words[at])
        except IndexError:
            return None
    return found
