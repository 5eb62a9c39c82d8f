"""The owner of a group that a streaming query moves: it commits what the query has read."""

from __future__ import annotations

import time
from collections.abc import Iterable

from sparklog.offsets.reads import Read
from sparklog.offsets.rows import Position
from sparklog.offsets.table import OffsetTable

_HEARTBEAT_S = 60


def is_behind(read: Read, positions: Iterable[Position]) -> bool:
    """Whether a position is further than what a query has read, or of a topic that was created again since."""
    return any(
        each.topic in read.ids
        and (each.topic_id != read.ids[each.topic] or read.offsets[each.topic].get(each.partition, each.offset) < each.offset)
        for each in positions
    )


class Owner:
    """A generation of a group. It begins when this is made, with the positions of the one before, which it ends."""

    def __init__(self, table: OffsetTable, group: str) -> None:
        self._table = table
        self._group = group
        self._generation = table.begin(group)
        self._known: dict[tuple[str, int], Position] = {}
        self._wrote = 0.0
        self._remember()

    def commit(self, read: Read) -> None:
        """Moves the group to what the query has read: back too, with a new generation. GenerationFenced if another owner took the group."""
        if is_behind(read, self._known.values()):
            self._table.append(self._group, self._generation, {})  # only if it is still this one's
            self._generation = self._table.begin(self._group, read.offsets)
            self._remember()
        else:
            moved = {
                topic: {partition: offset for partition, offset in of.items() if self._offset(topic, partition) != offset}
                for topic, of in read.offsets.items()
            }
            if not any(moved.values()):
                return
            self._table.append(self._group, self._generation, moved, query_id=read.query_id, epoch=read.epoch)
            self._remember()

    def beat(self) -> None:
        """Says once a minute that the group is running. GenerationFenced as in `commit`."""
        if time.monotonic() - self._wrote >= _HEARTBEAT_S:
            repeated = {each.topic: {each.partition: each.offset} for each in list(self._known.values())[:1]}
            self._table.append(self._group, self._generation, repeated)
            self._wrote = time.monotonic()

    def end(self) -> None:
        """Says that the group is not running any more. GenerationFenced as in `commit`."""
        self._table.end(self._group, self._generation)

    def _offset(self, topic: str, partition: int) -> int | None:
        known = self._known.get((topic, partition))
        return known.offset if known else None

    def _remember(self) -> None:
        self._wrote = time.monotonic()
        self._known = {(each.topic, each.partition): each for each in self._table.positions(self._group)}
