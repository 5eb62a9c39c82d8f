"""The owner of a group: a tracker, `write_delta` or a consumer commits through it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Iterable, Mapping

from sparklog.groups import rows
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.rows import Group, Position
from sparklog.groups.table.offset_table import OffsetTable
from sparklog.groups.topics import Topics

_HEARTBEAT_S = 60
"""A group that wrote nothing for three minutes does not count as running."""


def is_behind(commits: Collection[OffsetCommit], positions: Iterable[Position]) -> bool:
    """Whether a position is further than these commits, or of a topic that was created again since."""
    to = {each.place: each.offset for each in commits}
    ids = {each.topic: each.topic_id for each in commits}
    return any(
        each.topic in ids and (each.topic_id != ids[each.topic] or to.get((each.topic, each.partition), each.offset) < each.offset)
        for each in positions
    )


class Owner:
    """A generation of a group. It begins when this is made, with the positions of the generation before it, which it ends.

    Example:
        >>> from sparklog.groups.table.owner import Owner
        >>> owner = Owner(table, "billing")
        >>> [each.offset for each in owner.positions()]
        [3, 10]
    """

    group: str
    """The name of the group."""
    generation: int
    """The number of the generation. A commit that goes back takes the next one."""

    def __init__(self, table: OffsetTable, group: str) -> None:
        self._generations, self._topics = table.generations, table.topics
        self.group = rows.require_group(group)
        self.generation = self._generations.claim(self.group, rows.RUNNING, lambda _: [])
        self._wrote = time.monotonic()

    def positions(self) -> list[Position]:
        """Returns the positions of the group, as the table has them now.

        Returns:
            The positions.

        Raises:
            RetryError: OFFSETS_TABLE if the table cannot be read.

        Example:
            >>> [each.offset for each in owner.positions()]
            [3, 10]
        """
        return self._generations.existing(self.group).positions

    def commit(self, commits: Collection[OffsetCommit], *, query_id: str | None = None, epoch: int | None = None) -> None:
        """Moves the group to offsets.

        In a generation offsets only rise. To go back, it takes the next generation, if its own is still the newest.

        Args:
            commits: The offsets of the next records.
            query_id: The id of the streaming query that read the records.
            epoch: The micro-batch of that query.

        Raises:
            GenerationFencedError: If another owner took the group. Nothing was moved.
            RetryError: TOPIC_RECREATED if a topic has another id now; OFFSETS_TABLE.

        Example:
            >>> from sparklog.groups.commits import OffsetCommit
            >>> owner.commit([OffsetCommit("orders", 0, owner.positions()[0].topic_id, 5)])
            >>> [each.offset for each in owner.positions()]
            [5, 10]
        """
        if is_behind(commits, self._remembered().values()):
            first = self._topics.rows(self.group, commits)
            self.generation = self._generations.claim(self.group, rows.RUNNING, lambda _: first, after=self.generation)

        def made(group: Group) -> list[Position]:
            placed = moved(group, self._topics, commits)
            return [dataclasses.replace(each, query_id=query_id, epoch=epoch) for each in placed]

        self._generations.add(self.group, self.generation, made)
        self._wrote = time.monotonic()

    def require(self) -> None:
        """Checks that the generation is still the newest.

        Raises:
            GenerationFencedError: If another owner took the group.

        Example:
            >>> owner.require()
        """
        self._generations.require_newest(self.group, self.generation)

    def beat(self) -> None:
        """Says once a minute that the group is running.

        Raises:
            GenerationFencedError: If another owner took the group.

        Example:
            >>> owner.beat()
        """
        now = time.monotonic()
        if now - self._wrote >= _HEARTBEAT_S:
            self._wrote = now
            self._generations.add(self.group, self.generation, self._heartbeat)

    def end(self) -> None:
        """Notes that the group no longer runs.

        Raises:
            GenerationFencedError: If another owner took the group.

        Example:
            >>> owner.end()
        """
        self._generations.end(self.group, self.generation)

    def is_committed(self, commit: OffsetCommit) -> bool:
        """Returns whether the group is at an offset, as far as this object knows.

        Args:
            commit: The offset.

        Returns:
            True if the group is there.

        Example:
            >>> from sparklog.groups.commits import OffsetCommit
            >>> owner.is_committed(OffsetCommit("orders", 0, owner.positions()[0].topic_id, 5))
            False
        """
        return self._generations.is_committed(self.group, self.generation, commit)

    def _remembered(self) -> Mapping[tuple[str, int], Position]:
        return self._generations.remembered(self.group, self.generation)

    def _heartbeat(self, group: Group) -> list[Position]:
        for each in group.positions[:1]:
            if self._topics.noted(each).note is None:  # else its topic was deleted or created again, and the group runs nevertheless
                return [dataclasses.replace(each, committed_at=rows.now())]  # of rows with the same offset the newest one counts
        return [rows.note(self.group, self.generation, rows.RUNNING)]


def moved(group: Group, topics: Topics, commits: Iterable[OffsetCommit]) -> list[Position]:
    """The rows of these commits, without offsets that are committed already. Errors are those of `Topics.rows`."""
    new = [each for each in commits if _is_new(group.at.get(each.place), each)]
    return topics.rows(group.name, new, group.positions) if new else []


def _is_new(known: Position | None, commit: OffsetCommit) -> bool:
    return known is None or known.offset != commit.offset or commit.metadata not in (None, known.metadata)
