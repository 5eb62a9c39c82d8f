"""Turns: every partition that a consumer reads gets its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from sparklog.consumer.assigned_partition import AssignedPartition

Taken = tuple[AssignedPartition, pa.RecordBatch, int]
"""A partition, its next records, and the position after them."""


class Turns:
    """The partitions in the order in which they are read.

    A turn ends with the part that was read, so a partition that has more does not keep others waiting.
    """

    def __init__(self, partitions: Iterable[AssignedPartition] = ()) -> None:
        self._waiting = deque(partitions)

    def take(self, records_max: int, bytes_max: int, part_bytes_max: int, until: Callable[[AssignedPartition], int]) -> list[Taken]:
        """The next records of some partitions, each with the position after them, which the caller sets.

        `until` gives the offset before which a partition may be read. It is asked before any position is set: what one call returns of
        a partition is not what another one waits for.
        """
        found: list[Taken] = []
        for _ in range(len(self._waiting)):
            each = self._waiting[0]
            taken = None if each.paused else each.take(records_max, min(bytes_max, part_bytes_max), until(each))
            if taken:
                found.append((each, *taken))
                records_max -= taken[0].num_rows
                bytes_max -= taken[0].nbytes
            if not taken or not each.holds:
                self._waiting.rotate(-1)
            if records_max <= 0 or bytes_max <= 0:
                break
        return found
