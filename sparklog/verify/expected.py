"""The input of a check of a segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sparklog.ondisk.producers import Sent
from sparklog.ondisk.version import Segment


class Expected(NamedTuple):
    """A segment as it is committed, and what else must be known to check it.

    * start: the log start offset of its partition.
    * partitions, partitioner, message_bytes_max: of the topic. table: the slot table of the segment's routing epoch; None without slots.
    * intervals: every value that `index.interval.bytes` had.
    * sent: by base offset, the batches of producers in the segment, by the version that added it; None if that version is not known.
    * has_view: whether the topic's Kafka view was ever made, and the segment belongs in it.
    * listed_bytes: the bytes of the data file by a listing; None if the file itself must be asked.
    """

    topic: str
    segment: Segment
    start: int
    partitions: int
    partitioner: str
    table: Sequence[int] | None
    message_bytes_max: int
    intervals: tuple[int, ...]
    sent: dict[int, Sent] | None
    has_view: bool
    listed_bytes: int | None
