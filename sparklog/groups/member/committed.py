"""The positions of its shares that a member knows, so that it commits only new ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sparklog.groups.assignors import Partition
from sparklog.groups.rows import Position
from sparklog.groups.topics import Ids, Offsets


class Committed:
    """The positions of shares, as the table had them when they were taken, or as they were committed since."""

    def __init__(self) -> None:
        self._at: dict[Partition, Position] = {}

    def remember(self, rows: Iterable[Position]) -> None:
        """Takes these positions in place of earlier ones."""
        self._at |= {(each.topic, each.partition): each for each in rows}

    def forget(self, share: Partition) -> None:
        """Knows nothing more of a share."""
        self._at.pop(share, None)

    def all(self) -> list[Position]:
        """The positions that are known. They are copied in one step, beside other threads."""
        return list(self._at.values())

    def first(self, shares: Collection[Partition]) -> Position | None:
        """The position of a share; None without a position."""
        return next((position for share, position in self._at.items() if share in shares), None)

    def is_at(self, topic: str, id: str, partition: int, offset: int) -> bool:
        """Whether the group is at this offset of a topic with this id."""
        known = self._at.get((topic, partition))
        return known is not None and (known.topic_id, known.offset) == (id, offset)

    def is_back(self, to: Position) -> bool:
        """Whether a position is lower than the known one, or in a topic that was created again: rows of the generation hide it."""
        known = self._at.get((to.topic, to.partition))
        return known is not None and (known.topic_id != to.topic_id or known.offset > to.offset)

    def new(self, offsets: Offsets, ids: Ids, metadata: Mapping[Partition, str | None]) -> dict[str, dict[int, int]]:
        """The offsets that still need a commit."""
        found: dict[str, dict[int, int]] = {}
        for topic, by_partition in offsets.items():
            for number, offset in by_partition.items():
                if metadata.get((topic, number)) is not None or not self.is_at(topic, ids.get(topic, ""), number, offset):
                    found.setdefault(topic, {})[number] = offset
        return found
