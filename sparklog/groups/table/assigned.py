"""A consumer with assigned partitions, which commits to a group beside others of its kind."""

from __future__ import annotations

from contextlib import suppress

from sparklog.errors import GenerationFencedError, SparklogError
from sparklog.groups import rows
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.rows import Group, Position
from sparklog.groups.table.offset_table import OffsetTable
from sparklog.groups.table.owner import is_behind, moved


class Assigned:
    """Commits of a consumer that was assigned its partitions: as in Kafka, such consumers of one group do not fence each other.

    The first commit of any of them takes the next generation of the group, with the event `assign`; the others then commit to this
    generation. So they end one owner of the group, and a group with members refuses them. A claim of another kind, such as a reset, fences
    each of them if it began earlier. docs/reference/offset-tables.md has the rules.
    """

    def __init__(self, table: OffsetTable, group: str) -> None:
        self._table = table
        self.group = rows.require_group(group)
        self._seen: int | None = None
        """The newest generation that it knows. Its commits follow from the positions of this generation."""

    def positions(self) -> list[Position]:
        """Returns the positions of the group, as the table has them now.

        Raises:
            RetryError: OFFSETS_TABLE if the table cannot be read.
        """
        found = self._table.generations.group(self.group)
        if self._seen is None:
            self._seen = found.generation
        return found.positions if found.exists else []

    def commit(self, commits: list[OffsetCommit]) -> None:
        """Moves the group to offsets, forward or back.

        Args:
            commits: The offsets of the next records.

        Raises:
            CallError: GROUP_HAS_MEMBERS if members share the group.
            GenerationFencedError: If the group was taken, reset or deleted since this consumer first looked at it. Nothing was moved.
            RetryError: TOPIC_RECREATED if a topic has another id now; OFFSETS_TABLE.
        """
        while True:
            group = self._table.generations.group(self.group)
            self._require_mine(group)
            with suppress(GenerationFencedError):  # another program took the group since the refresh
                self._seen = self._committed(group, commits)
                return

    def is_committed(self, commit: OffsetCommit) -> bool:
        """Returns whether the group is at an offset, as far as this object knows.

        Args:
            commit: The offset.

        Returns:
            True if the group is there.
        """
        return self._seen is not None and self._table.generations.is_committed(self.group, self._seen, commit)

    def _committed(self, group: Group, commits: list[OffsetCommit]) -> int:
        """Commits to a group as it was at a refresh, and returns the generation of the commit.

        GenerationFencedError if there is a later generation.
        """
        generations, topics = self._table.generations, self._table.topics
        if group.event == rows.ASSIGNED and not is_behind(commits, group.positions):
            generations.add(self.group, group.generation, lambda found: moved(found, topics, commits))
            return group.generation
        first = topics.rows(self.group, commits)
        since = {"since": group.since}
        return generations.claim(self.group, rows.ASSIGNED, lambda _: first, after=group.generation, more=since)

    def _require_mine(self, group: Group) -> None:
        if group.state is not None:
            raise SparklogError("GROUP_HAS_MEMBERS", group=self.group, table=self._table.path)
        if self._seen is None:
            self._seen = group.generation
        if not group.since <= self._seen <= group.generation:
            raise self._table.generations.fenced(self.group, self._seen, group.generation)
