"""Groups in short, a line for each: for lists of many."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from sparklog.errors import SparklogError
from sparklog.groups import rows
from sparklog.groups.rows import Group, Position
from sparklog.groups.topics import Topics, require_same
from sparklog.show.display import SHOWN, Display, Displayed, counted, readable, when

_SHOWN_OF_TEXTS = 100
_SHOWN_OF_ERRORS = 200


@dataclass(frozen=True)
class GroupSummary:
    """A group in short.

    * home: `table` if its positions are rows of an offset table, and `topic` if they are records of `__consumer_offsets`.
    * partitions: in how many it has a position. committed_at: when it last wrote one; None without positions.
    * running: whether a tracker or a consumer runs it. It counts as running until it says that it ended, or for three minutes. False if
      the state of its members is damaged, as `error` says.
    * lag: the offsets that it has not read in these partitions; None if that cannot be told. Then `error` says why, unless the table was
      opened without a root.
    """

    group: str
    generation: int
    topics: list[str]
    partitions: int
    lag: int | None
    committed_at: datetime.datetime | None
    running: bool
    error: SparklogError | None = None
    home: str = "table"

    @classmethod
    def of(cls, group: Group, topics: Topics) -> GroupSummary:
        """The summary of a group, with its `error` if its lag cannot be told."""
        positions = group.positions
        lag, running, error = None, False, None
        try:
            running = group.is_running(rows.now())
            if topics.root is not None:
                lag = sum(_unread(each, topics) for each in positions)
        except SparklogError as failed:
            error = failed
        names = sorted({each.topic for each in positions})
        last = max((each.committed_at for each in positions), default=None)
        return cls(group.name, group.generation, names, len(positions), lag, last, running, error, group.home)


def _unread(position: Position, topics: Topics) -> int:
    state = topics.state(position.topic)
    require_same(topics.root, position, state)
    return state.unread(position.partition, position.offset)


class GroupSummaries(Displayed, list[GroupSummary]):
    """Groups, sorted by name. In a terminal and in a notebook the list shows itself as a table.

    The table has the home of each group if one is in a topic.
    """

    def __init__(self, groups: list[GroupSummary], path: str) -> None:
        super().__init__(groups)
        self.path = path

    def _display(self) -> Display:
        return self.display()

    def display(self, most: int | None = SHOWN) -> Display:
        """The table of the first ones, at most that many."""
        columns = ["group", "home", "topics", "partitions", "lag", "state", "last commit (UTC)", "error"]
        cells: list[list[object]] = [
            [
                readable(each.group, _SHOWN_OF_TEXTS),
                each.home,
                readable(", ".join(each.topics), _SHOWN_OF_TEXTS),
                each.partitions,
                "" if each.lag is None else each.lag,
                "running" if each.running else "not running",
                when(each.committed_at),
                "" if each.error is None else readable(str(each.error), _SHOWN_OF_ERRORS),
            ]
            for each in self[:most]
        ]
        if not any(each.error for each in self):
            columns, cells = columns[:-1], [row[:-1] for row in cells]
        if not any(each.home == "topic" for each in self):
            columns, cells = columns[:1] + columns[2:], [row[:1] + row[2:] for row in cells]
        title = f"{counted(len(self), 'group')} in {self.path}"
        return Display(title, [], columns, cells, more=len(self) - len(cells))
