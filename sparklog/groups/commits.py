"""The one shape of a commit, from a program to the rows of a table."""

from __future__ import annotations

from typing import NamedTuple


class OffsetCommit(NamedTuple):
    """The offset of the next record of a partition, which a group is to commit."""

    topic: str
    partition: int
    topic_id: str
    """The id of the topic that was read: another topic of the name takes no such commit."""
    offset: int
    metadata: str | None = None
    holding: object = None
    """How a member held the share when it had this position. None if the program named a partition that the consumer does not read."""

    @property
    def place(self) -> tuple[str, int]:
        """The topic and the partition."""
        return self.topic, self.partition
