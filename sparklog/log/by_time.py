"""Records of several partitions in one order: by their times, where each partition keeps the order of its offsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparklog.batches.columns import numbers, numbers_of
from sparklog.ondisk.reader import PART_BYTES_MAX, PartitionReader, Wanted

Longs = npt.NDArray[np.int64]
Places = tuple[Longs, Longs]
"""Records of a partition: their offsets, and their times in microseconds."""
PLACES = ["offset", "timestamp"]
"""The columns that make places."""


def order(times: Sequence[Longs], *, last: bool) -> Longs:
    """The order of records that stand partition by partition, as their positions there; `times` are the times of each partition's records.

    No partition is reordered: a record sorts by the greatest time up to it in its partition, so the first records come as early as
    possible. With `last`, a record sorts by the least time from it on, so the last records come as late as possible.
    """
    keys = [np.minimum.accumulate(each[::-1])[::-1] if last else np.maximum.accumulate(each) for each in times]
    return np.argsort(np.concatenate([np.empty(0, np.int64), *keys]), kind="stable")


def last_batches(reader: PartitionReader, low: int, high: int, count: int, wanted: Wanted, columns: Sequence[str]) -> list[pa.RecordBatch]:
    """Batches that end with the last `count` wanted records of a partition between two offsets, or with all if they are fewer.

    They may begin with more of them.
    """
    span = count
    while True:
        first = max(low, high - span)
        found = list(reader.records(first, high, None, wanted, columns))
        if first == low or sum(batch.num_rows for batch in found) >= count:
            return found
        span *= 4  # offsets have gaps, and other records have other keys and times


def places(batches: Iterable[pa.RecordBatch]) -> Places:
    """The places of records. They do not keep the batches in memory, which have the columns of PLACES."""
    offsets, times = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for batch in batches:
        offsets.append(np.array(numbers_of(batch.column(0))))
        times.append(np.array(numbers_of(batch.column(1))))
    return np.concatenate(offsets), np.concatenate(times)


def last_places(reader: PartitionReader, low: int, high: int, count: int, wanted: Wanted) -> Places:
    """The places of the last `count` wanted records of a partition between two offsets, or of all if they are fewer."""
    offsets, times = places(last_batches(reader, low, high, count, wanted, PLACES))
    few = slice(max(0, offsets.size - count), None)
    return offsets[few], times[few]


def chosen(found: Sequence[Places], count: int, *, last: bool) -> tuple[Longs, Longs]:
    """The first `count` of these records in the order of `order`, or with `last` the last: the numbers of their partitions, and offsets.

    A partition has the number of its place in `found`. The chosen records of a partition are its first ones, or its last ones.
    """
    owners = np.repeat(np.arange(len(found)), [offsets.size for offsets, _ in found])
    ordered = order([times for _, times in found], last=last)
    ordered = ordered[max(0, ordered.size - count) :] if last else ordered[:count]
    offsets = np.concatenate([np.empty(0, np.int64), *(each for each, _ in found)])
    return owners[ordered], offsets[ordered]


def interleaved(tables: Sequence[pa.Table], owners: Longs) -> pa.Table:
    """The rows of some tables as one table: each row is the next row of the table with the number that `owners` has for it."""
    if owners.size > 1 and sum(table.nbytes for table in tables) > PART_BYTES_MAX:
        # An array cannot hold the bytes of too many rows.
        half = owners.size // 2
        counts = np.bincount(owners[:half], minlength=len(tables)).tolist()
        cut = list(zip(tables, counts, strict=True))
        parts = ([table.slice(0, count) for table, count in cut], [table.slice(count) for table, count in cut])
        return pa.concat_tables([interleaved(parts[0], owners[:half]), interleaved(parts[1], owners[half:])])
    at = np.empty(owners.size, np.int64)
    at[np.argsort(owners, kind="stable")] = np.arange(owners.size)
    return pa.concat_tables(tables).take(numbers(pa.int64(), at))
