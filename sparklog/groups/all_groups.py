"""All groups of a root, in both homes: rows of an offset table, and records of the root's topic of groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

from sparklog.errors import SparklogError
from sparklog.groups.summaries import GroupSummaries
from sparklog.show.display import readable

if TYPE_CHECKING:
    from sparklog.groups.snapshots import GroupSnapshot
    from sparklog.groups.table.offset_table import OffsetTable
    from sparklog.groups.topic.topic_groups import TopicGroups

T = TypeVar("T")


class AllGroups:
    """The groups of an offset table and of the root's topic of groups, as far as each is given. It only reads.

    Groups with the same name in both homes are two groups.
    """

    def __init__(self, table: OffsetTable | None, topic: TopicGroups | None) -> None:
        self._table = table
        self._topic = topic

    def snapshots(self, unreadable: Callable[[SparklogError], None] | None = None) -> list[GroupSnapshot]:
        """All groups, sorted by name, then by home.

        If the topic cannot be read, `unreadable` gets the error, and the groups of the table are returned. Without it the error is raised.
        """
        found = [] if self._table is None else self._table.snapshots()
        found += self._in_topic(lambda topic: topic.snapshots(), unreadable)
        return sorted(found, key=lambda each: (each.name, each.home))

    def summaries(self, unreadable: Callable[[SparklogError], None] | None = None) -> GroupSummaries:
        """All groups in short, in the order of `snapshots`, with `unreadable` as there."""
        parts = [] if self._table is None else [self._table.summaries()]
        parts += self._in_topic(lambda topic: [topic.summaries()], unreadable)
        found = sorted((each for part in parts for each in part), key=lambda each: (each.group, each.home))
        return GroupSummaries(found, " and ".join(part.path for part in parts))

    def named(self, group: str, unreadable: Callable[[SparklogError], None] | None = None) -> list[GroupSnapshot]:
        """The group of this name in each home that has it, the table first, with `unreadable` as of `snapshots`.

        CallError if no home has it.
        """
        if self._table is None:
            return [] if self._topic is None else [self._topic.group(group)]
        found = self._in_topic(lambda topic: [topic.group(group)] if group in topic.groups() else [], unreadable)
        try:
            return [self._table.group(group), *found]
        except SparklogError as error:
            if error.id != "GROUP_NOT_FOUND" or not found:
                raise
            return found

    def _in_topic(self, read: Callable[[TopicGroups], list[T]], unreadable: Callable[[SparklogError], None] | None) -> list[T]:
        """The answer of the topic. It is empty without a topic, and after `unreadable` got an error."""
        try:
            return [] if self._topic is None else read(self._topic)
        except SparklogError as error:
            if unreadable is None:
                raise
            unreadable(error)
            return []


def in_both_homes(names: Iterable[str]) -> str | None:
    """A line about the names of groups that are among these twice; None without such a name."""
    both = [readable(name, 100) for name, count in sorted(Counter(names).items()) if count > 1]
    if not both:
        return None
    return f"In the table and in the topic: {', '.join(both)}. These are two groups, each with positions of its own."
