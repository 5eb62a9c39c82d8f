"""A group at one moment: every answer about it is of one state of the table."""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa

from sparklog import arguments
from sparklog.offsets import lags, views
from sparklog.offsets.heartbeats import Heartbeats, Mark
from sparklog.offsets.rows import Group, Positions
from sparklog.offsets.summaries import GroupSummary
from sparklog.offsets.topics import Topics
from sparklog.offsets.views import GroupMembers, GroupShare
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

    def __init__(self, found: Group, topics: Topics, table: str) -> None:
        self.name = found.name
        self._found = found
        self._topics = topics
        self._table = table
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
        if self._found.state is None:
            return GroupMembers(self.name, [])
        marks: dict[str, Mark] = {}
        with suppress(OSError):  # the folder cannot be reached: then no heartbeat is known
            marks = Heartbeats(self._table, self.name).look()
        return GroupMembers(self.name, views.members(self._found.state, marks, self._topics.unread(self._found.positions)))

    def assignments(self) -> list[GroupShare]:
        """As `OffsetTable.assignments`."""
        return [] if self._found.state is None else views.shares(self._found.state)

    def lag(self, topic: str | None = None) -> pa.Table:
        """As `OffsetTable.lag`, as an Arrow table. Each topic is read once, however often this is called."""
        noted = self.positions(topic)
        # Members go on where a topic was deleted or created again, and so does the question how far they are.
        gone = [each for each in noted if each.note] if self._found.state else []
        rows = []
        for name in sorted({each.topic for each in noted} - {each.topic for each in gone}):
            if name not in self._lags:
                of = [each for each in noted if each.topic == name]
                self._lags[name] = lags.of_topic(self.name, self._topics.log(name), self._topics.state(name), of)
            rows += self._lags[name]
        return pa.Table.from_pylist(rows + [lags.unknown(each) for each in gone], lags.LAG)

    def unread(self) -> list[Unread]:
        """How many records the group has not read, in each partition of its topics, sorted. It opens no data file.

        Raises:
            SparklogError: If a topic cannot be read.
        """
        found = []
        by_topic: dict[str, dict[int, int]] = {}
        for each in self.positions():
            if each.note is None:
                by_topic.setdefault(each.topic, {})[each.partition] = each.offset
            else:
                found.append(Unread(each.topic, each.partition, each.offset, None))
        for topic, offsets in by_topic.items():
            state = self._topics.state(topic)
            for partition in range(state.partitions):
                offset = offsets.get(partition)
                unread = state.unread(partition, state.starts[partition] if offset is None else offset)
                found.append(Unread(topic, partition, offset, unread))
        return sorted(found)

    def show(self) -> None:
        """Prints the lag as text; in a notebook, as a table."""
        self._display().show()

    def _display(self) -> Display:
        return lags.shown(self.lag(), self.name)
