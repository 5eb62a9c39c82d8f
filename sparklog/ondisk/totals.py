"""What version files say of segments, summed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sparklog.ondisk.version import Segment


class Totals(NamedTuple):
    """Of some segments. Times are milliseconds since 1970-01-01 UTC, None where no record has one."""

    records: int
    batches: int
    bytes: int
    segments: int
    min_timestamp: int | None
    max_timestamp: int | None

    @classmethod
    def of(cls, segments: Iterable[Segment]) -> Totals:
        return cls.together([cls(each.records, each.batches, each.bytes, 1, *_times(each)) for each in segments])

    @classmethod
    def together(cls, parts: list[Totals]) -> Totals:
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
