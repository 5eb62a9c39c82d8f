"""A group at one moment: every answer about it is of one state of the table."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups import lags, views
from sparklog.groups.member.heartbeats import Heartbeats, Mark
from sparklog.groups.rows import Group, Positions
from sparklog.groups.summaries import GroupSummary
from sparklog.groups.topics import Topics
from sparklog.groups.views import GroupMembers, GroupShare
from sparklog.show.display import Display, Displayed


class Unread(NamedTuple):
    """How many records a group has not read in a partition.

    * offset: its position; None if it has none.
    * records: without a position, all records of the partition. None if the topic was deleted, or created again, since the commit.
    """

    topic: str
    partition: int
    offset: int | None
    records: int | None


class GroupSnapshot(Displayed):
    """A group at one moment, as `OffsetTable.group` returns it: from one query of the table, and one state of each of its topics.

    In a terminal and in a notebook it shows its lag as a table.
    """

    name: str
    """The name of the group."""

    home: str
    """`table` if its positions are rows of an offset table, and `topic` if they are records of `__consumer_offsets`."""

    def __init__(self, found: Group, topics: Topics, heartbeats: Callable[[str], Heartbeats] | None) -> None:
        """`heartbeats` finds the heartbeats of a group by its name; None if the group is in a topic."""
        self.name = found.name
        self.home = found.home
        self._found = found
        self._topics = topics
        self._heartbeats = heartbeats
        self._lags: dict[str, list[dict[str, Any]]] = {}
        """The rows of `lag`, by topic."""

    @functools.cached_property
    def summary(self) -> GroupSummary:
        """The group in short: topics, lag, last commit, and whether a program runs it."""
        return GroupSummary.of(self._found, self._topics)

    def positions(self, topic: str | None = None) -> Positions:
        """As `OffsetTable.positions`."""
        wanted = None if topic is None else arguments.text("topic", topic)
        return Positions(self._topics.noted(each) for each in self._found.positions if wanted in (None, each.topic))

    def members(self) -> GroupMembers:
        """As `OffsetTable.members`. The heartbeats are read at the call."""
        if self._heartbeats is None:
            return GroupMembers(self.name, views.clients(self._found.clients, self._topics.unread(self._found.positions)))
        if self._found.state is None:
            return GroupMembers(self.name, [])
        marks: dict[str, Mark] = {}
        with suppress(OSError, SparklogError):  # they cannot be reached: then no heartbeat is known
            marks = self._heartbeats(self.name).marks()
        return GroupMembers(self.name, views.members(self._found.state, marks, self._topics.unread(self._found.positions)))

    def assignments(self) -> list[GroupShare]:
        """As `OffsetTable.assignments`."""
        if self._found.clients:
            return views.shares_of_clients(self._found.clients, self._found.generation)
        return [] if self._found.state is None else views.shares(self._found.state)

    def lag(self, topic: str | None = None, *, gone: bool = False) -> pa.Table:
        """As `OffsetTable.lag`, as an Arrow table. Each topic is read once, however often this is called.

        A position in a topic that was deleted or created again is an error. With `gone`, and in a group of members, which go on without
        the topic, the position has a row without numbers.
        """
        noted = self.positions(topic)
        unknown = {(each.topic, each.partition): each for each in noted if each.note and (gone or self._found.state)}
        read = [each for each in noted if (each.topic, each.partition) not in unknown]
        rows = []
        for name in sorted({each.topic for each in read}):
            if name not in self._lags:
                of = [each for each in read if each.topic == name]
                self._lags[name] = lags.of_topic(self.name, self._topics.log(name), self._topics.state(name), of)
            rows += [row for row in self._lags[name] if (name, row["partition"]) not in unknown]
        return pa.Table.from_pylist(rows + [lags.unknown(each) for each in unknown.values()], lags.LAG)

    def unread(self) -> list[Unread]:
        """How many records the group has not read, in each partition of its topics, sorted. It opens no data file.

        Raises:
            SparklogError: If a topic cannot be read.
        """
        noted = self.positions()
        found = {(each.topic, each.partition): Unread(each.topic, each.partition, each.offset, None) for each in noted if each.note}
        offsets = {(each.topic, each.partition): each.offset for each in noted if not each.note}
        for topic in {topic for topic, _ in offsets}:
            state = self._topics.state(topic)
            for place in ((topic, partition) for partition in range(state.partitions)):
                if place not in found:
                    offset = offsets.get(place)
                    unread = state.unread(place[1], state.starts[place[1]] if offset is None else offset)
                    found[place] = Unread(*place, offset, unread)
        return [found[place] for place in sorted(found)]

    def show(self) -> None:
        """Prints the lag as text; in a notebook, as a table."""
        self._display().show()

    def _display(self) -> Display:
        return lags.shown(self.lag(), self.name)
