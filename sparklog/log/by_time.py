"""Records of several partitions in one order: by their times, where each partition keeps the order of its offsets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from sparklog.ondisk.reader import PartitionReader, Wanted

Longs = npt.NDArray[np.int64]


def order(times: Sequence[Longs], *, last: bool) -> Longs:
    """The order of records that stand partition by partition, as their positions there; `times` are those of each partition's records.

    A record counts as the latest of the records up to it in its partition, so the first ones are as near to the begin of all as can be;
    with `last` as the earliest of the records from it on, so that the last ones are as near to the end.
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
