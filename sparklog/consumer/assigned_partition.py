"""A partition that a consumer reads: how far it is, and what it holds of the records after that."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from sparklog.consumer.records import TopicPartition, last_offset, rows_before, together
from sparklog.consumer.topic_reads import TopicReads


class AssignedPartition:
    """A partition of a consumer. `position` is the offset that the caller gets next; None as long as it is to be found out."""

    def __init__(self, followed: TopicReads, partition: TopicPartition, *, late: bool) -> None:
        self.followed = followed
        self.partition = partition
        self.number = partition.partition
        self.topic_id = followed.state.topic_id
        """The topic that the position is in; there may be another one of the name by now."""
        self.latest = self.start if late else self.end
        """The offset from which records are new: the end, or the start of a partition that came to be while the consumer was reading."""
        self.position: int | None = None
        self.paused = False
        self._held: pa.RecordBatch | None = None
        self._held_from = self._held_to = -1

    @property
    def start(self) -> int:
        """The log start offset."""
        return self.followed.state.starts[self.number]

    @property
    def end(self) -> int:
        """The end offset."""
        return self.followed.state.ends[self.number]

    def renew(self) -> None:
        """It is of another topic now, all of which is new."""
        self.topic_id = self.followed.state.topic_id
        self.latest = self.start if self.number < self.followed.state.partitions else 0
        self.position = self._held = None

    @property
    def holds(self) -> bool:
        """Whether there are more records than the last `take` returned."""
        return self._held is not None

    def take(self, records_max: int, bytes_max: int, until: int) -> tuple[pa.RecordBatch, int] | None:
        """The next records before the offset `until`, and the position after them.

        None if there is nothing to read, or if the newest state must be asked for first. It reads a part of `bytes_max` bytes and holds
        what exceeds `records_max` or `until`. The position must be in the log. It stays as it is, unless the next offsets have no records.
        """
        if self.followed.has_moved:
            return None  # another partition of the topic found that out, and this position may be in a topic that is gone
        if self._held_from != self.position:
            self._held = None
        while self._held is None:
            assert self.position is not None
            if self.position >= min(self.end, until):
                return None
            part = self.followed.part(self.number, self.position, bytes_max)
            if part.offset == self.position:
                return None
            if part.batches:
                self._held, self._held_to = together(part.batches), part.offset
                self._held_from = self.position
            else:
                self.position = min(part.offset, until)
        batch = self._held
        rows = min(records_max, rows_before(batch, until))
        if not rows:
            self.position = self._held_from = until
            return None
        if batch.num_rows > rows:
            self._held = batch.slice(rows)
            batch = batch.slice(0, rows)
            self._held_from = last_offset(batch) + 1
        else:
            self._held = None
            self._held_from = self._held_to
        return batch, self._held_from
