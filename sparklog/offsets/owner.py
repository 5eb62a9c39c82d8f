"""The owner of a group: a tracker, `write_delta` or a consumer commits through it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from sparklog.errors import CallError
from sparklog.offsets import rows
from sparklog.offsets.moves import Offsets
from sparklog.offsets.rows import Position
from sparklog.offsets.table import OffsetTable

_HEARTBEAT_S = 60
"""A group that wrote nothing for three minutes does not count as running."""


def is_behind(offsets: Offsets, ids: Mapping[str, str], positions: Iterable[Position]) -> bool:
    """Whether a position is further than these offsets in topics of these ids, or of a topic that was created again since."""
    return any(
        each.topic in ids
        and (each.topic_id != ids[each.topic] or offsets.get(each.topic, {}).get(each.partition, each.offset) < each.offset)
        for each in positions
    )


class Owner:
    """A generation of a group. It begins when this is made, with the positions of the one before, which it ends."""

    def __init__(self, table: OffsetTable, group: str) -> None:
        self._table = table
        self._group = group
        self._generation = table.begin(group)
        self._known: dict[tuple[str, int], Position] = {}
        self._wrote = time.monotonic()
        self.positions()

    def positions(self) -> list[Position]:
        """The positions of the group, as the table has them now."""
        found = self._table.positions(self._group)
        self._known = {(each.topic, each.partition): each for each in found}
        return found

    def commit(
        self,
        offsets: Offsets,
        ids: Mapping[str, str],
        *,
        query_id: str | None = None,
        epoch: int | None = None,
        metadata: str | None = None,
    ) -> None:
        """Moves the group to these offsets, by topic and partition, in topics of these ids. GenerationFenced if another owner took it.

        In a generation, offsets only rise. So to go back, it takes the next one, if its own is still the newest.
        """
        if is_behind(offsets, ids, self._known.values()):
            self._generation = self._table.begin(self._group, offsets, after=self._generation, ids=ids)
            self.positions()
        moved = {
            topic: {partition: offset for partition, offset in of.items() if self._is_new(topic, partition, offset, metadata)}
            for topic, of in offsets.items()
        }
        if any(moved.values()):
            self._table.append(self._group, self._generation, moved, query_id=query_id, epoch=epoch, metadata=metadata, ids=ids)
            for topic, of in moved.items():
                for partition, offset in of.items():
                    now = Position(
                        self._group, self._generation, topic, ids[topic], partition, offset, rows.now(), query_id, epoch, metadata=metadata
                    )
                    self._known[topic, partition] = now
        else:
            self.require()
        self._wrote = time.monotonic()

    def require(self) -> None:
        """GenerationFenced if another owner took the group."""
        self._table.require_generation(self._group, self._generation)

    def beat(self) -> None:
        """Says once a minute that the group is running. GenerationFenced as in `commit`."""
        now = time.monotonic()
        if now - self._wrote >= _HEARTBEAT_S:
            self._wrote = now
            for each in list(self._known.values())[:1]:
                with suppress(CallError):  # its topic was deleted or created again, and the group runs nevertheless
                    repeated = {each.topic: {each.partition: each.offset}}
                    # The whole row again: of rows with the same offset the newest one counts.
                    self._table.append(
                        self._group, self._generation, repeated, query_id=each.query_id, epoch=each.epoch, metadata=each.metadata
                    )
                    return
            self._table.append(self._group, self._generation, {})

    def end(self) -> None:
        """Says that the group is not running any more. GenerationFenced as in `commit`."""
        self._table.end(self._group, self._generation)

    def is_committed(self, topic: str, id: str, partition: int, offset: int) -> bool:
        """Whether the group is at this offset of a topic with this id, as far as this object knows."""
        known = self._known.get((topic, partition))
        return known is not None and (known.topic_id, known.offset) == (id, offset)

    def _is_new(self, topic: str, partition: int, offset: int, metadata: str | None) -> bool:
        known = self._known.get((topic, partition))
        return known is None or known.offset != offset or metadata not in (None, known.metadata)
