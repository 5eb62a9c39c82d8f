"""Sums of what version files say about segments."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.version import Segment


class Totals(NamedTuple):
    """Sums over some segments. Times are milliseconds since 1970-01-01 UTC; None if no record has one."""

    records: int
    batches: int
    bytes: int
    segments: int
    min_timestamp: int | None
    max_timestamp: int | None

    @classmethod
    def of(cls, segments: Iterable[Segment]) -> Totals:
        """The sums over these segments."""
        return cls.together([cls(each.records, each.batches, each.bytes, 1, *_times(each)) for each in segments])

    @classmethod
    def of_partitions(cls, log: TopicLog, state: State, segments_max: int | None = None) -> list[Totals] | None:
        """The sums for each partition of a state; None if they have more than `segments_max` segments. Each takes some microseconds."""
        found: list[Totals] = []
        for partition in range(state.partitions):
            left = None if segments_max is None else segments_max - sum(each.segments for each in found) + 1
            found.append(cls.of(islice(log.segments(state, partition), left)))
            if left is not None and found[-1].segments == left:
                return None
        return found

    @classmethod
    def together(cls, parts: list[Totals]) -> Totals:
        """The sums of several sums."""
        return cls(
            sum(part.records for part in parts),
            sum(part.batches for part in parts),
            sum(part.bytes for part in parts),
            sum(part.segments for part in parts),
            min((part.min_timestamp for part in parts if part.min_timestamp is not None), default=None),
            max((part.max_timestamp for part in parts if part.max_timestamp is not None), default=None),
        )


def _times(segment: Segment) -> tuple[int | None, int | None]:
    return (segment.min_timestamp, segment.max_timestamp) if segment.max_timestamp >= 0 else (None, None)
