"""The owner of a group: a tracker, `write_delta` or a consumer commits through it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from sparklog.errors import CallError
from sparklog.offsets import rows
from sparklog.offsets.rows import Group, Position
from sparklog.offsets.table import OffsetTable
from sparklog.offsets.topics import Ids, Offsets

_HEARTBEAT_S = 60
"""A group that wrote nothing for three minutes does not count as running."""


def is_behind(offsets: Offsets, ids: Ids, positions: Iterable[Position]) -> bool:
    """Whether a position is further than these offsets in topics of these ids, or of a topic that was created again since."""
    return any(
        each.topic in ids
        and (each.topic_id != ids[each.topic] or offsets.get(each.topic, {}).get(each.partition, each.offset) < each.offset)
        for each in positions
    )


class Owner:
    """A generation of a group. It begins when this is made, with the positions of the one before, which it ends."""

    group: str
    """The name of the group."""

    def __init__(self, table: OffsetTable, group: str) -> None:
        self._generations, self._topics = table.generations, table.topics
        self.group = rows.require_group(group)
        self._generation = self._generations.claim(self.group, rows.RUNNING, lambda _: [])
        self._wrote = time.monotonic()

    def positions(self) -> list[Position]:
        """The positions of the group, as the table has them now."""
        return self._generations.existing(self.group).positions

    def commit(
        self,
        offsets: Offsets,
        ids: Ids,
        *,
        query_id: str | None = None,
        epoch: int | None = None,
        metadata: Mapping[tuple[str, int], str | None] | None = None,
    ) -> None:
        """Moves the group to these offsets, by topic and partition, in topics of these ids. GenerationFenced if another owner took it.

        `metadata` are texts by topic and partition. In a generation, offsets only rise. So to go back, it takes the next one, if its own is
        still the newest.
        """
        texts = metadata or {}
        if is_behind(offsets, ids, self._remembered().values()):
            first = self._topics.placed(self.group, offsets, ids)
            self._generation = self._generations.claim(self.group, rows.RUNNING, lambda _: first, after=self._generation)

        def made(group: Group) -> list[Position]:
            moved = {
                topic: {
                    partition: offset
                    for partition, offset in of.items()
                    if _is_new(group.at.get((topic, partition)), offset, texts.get((topic, partition)))
                }
                for topic, of in offsets.items()
            }
            placed = self._topics.placed(self.group, moved, ids, group.positions) if any(moved.values()) else []
            return [
                dataclasses.replace(each, query_id=query_id, epoch=epoch, metadata=texts.get((each.topic, each.partition)))
                for each in placed
            ]

        self._generations.add(self.group, self._generation, made)
        self._wrote = time.monotonic()

    def require(self) -> None:
        """GenerationFenced if another owner took the group."""
        self._generations.require_newest(self.group, self._generation)

    def beat(self) -> None:
        """Says once a minute that the group is running. GenerationFenced as in `commit`."""
        now = time.monotonic()
        if now - self._wrote >= _HEARTBEAT_S:
            self._wrote = now
            self._generations.add(self.group, self._generation, self._heartbeat)

    def end(self) -> None:
        """Says that the group is not running any more. GenerationFenced as in `commit`."""
        self._generations.end(self.group, self._generation)

    def is_committed(self, topic: str, id: str, partition: int, offset: int) -> bool:
        """Whether the group is at this offset of a topic with this id, as far as this object knows."""
        known = self._remembered().get((topic, partition))
        return known is not None and (known.topic_id, known.offset) == (id, offset)

    def _remembered(self) -> Mapping[tuple[str, int], Position]:
        return self._generations.remembered(self.group, self._generation)

    def _heartbeat(self, group: Group) -> list[Position]:
        for each in group.positions[:1]:
            with suppress(CallError):  # its topic was deleted or created again, and the group runs nevertheless
                repeated = self._topics.placed(self.group, {each.topic: {each.partition: each.offset}}, known=[each])
                # The whole row again: of rows with the same offset the newest one counts.
                return [dataclasses.replace(each, committed_at=now.committed_at) for now in repeated]
        return [rows.note(self.group, self._generation, rows.RUNNING)]


def _is_new(known: Position | None, offset: int, metadata: str | None) -> bool:
    return known is None or known.offset != offset or metadata not in (None, known.metadata)
