"""The rows of an offset commit table: its schema, the meaning of a row, and which rows count."""

from __future__ import annotations

import datetime
import functools
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups.member.state import GroupState
from sparklog.groups.topic.records import Client
from sparklog.show.display import SHOWN, Display, Displayed, readable, when

COLUMNS = {
    "group": (pa.string(), "The group: any text of 1 to 255 characters."),
    "generation": (pa.int64(), "The number of the owner that wrote the row: 1, 2, 3, …."),
    "topic": (pa.string(), "The topic; empty in an event."),
    "topic_id": (pa.string(), "The id of the topic, which another topic of its name does not have; empty in an event."),
    "partition": (pa.int32(), "The partition, from 0 on; −1 in an event."),
    "offset": (pa.int64(), "The offset that the group reads next; −1 in an event."),
    "committed_at": (pa.timestamp("us", "UTC"), "The time of the write, by the writer's clock."),
    "query_id": (pa.string(), "The id of the streaming query that was tracked."),
    "epoch": (pa.int64(), "The micro-batch of that query."),
    "seq": (
        pa.int64(),
        "The number of the row's commit; without one, the newest number of the group that the writer knew.",
    ),
    "metadata": (pa.string(), "Free text of the writer; in an event, JSON: its name (`event`), and an id of the row."),
}
"""The columns by name, each with its type and its meaning. Those up to `committed_at` are never null."""
_NULLABLE = list(COLUMNS)[list(COLUMNS).index("committed_at") + 1 :]
SCHEMA = pa.schema([pa.field(name, type, nullable=name in _NULLABLE) for name, (type, _) in COLUMNS.items()])
PROPERTIES = {
    "delta.checkpointInterval": "100",
    # The history of a group is in its rows, so that Delta's own may be short: each commit lists the files of Delta's log.
    "delta.logRetentionDuration": "interval 1 hours",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}
ALIVE = datetime.timedelta(minutes=3)
"""A group that wrote a row within this time, and did not say that it ended, is running."""
GROUP_MAX = 255
_NOTE = -1
"""The partition of an event, which is a row that is not a position: its topic is empty, and its metadata has the name of the event."""
RUNNING = "begin"
"""The event of a new owner, which repeats it as a heartbeat while it has no positions."""
ASSIGNED = "assign"
"""The event of a consumer with assigned partitions. Such consumers do not fence each other: see `Group.since`."""


@dataclass(frozen=True)
class Position:
    """A row of the table: the group has read the partition up to `offset`, which it reads next.

    `generation` counts the owners of the group. `note` says, if it is not None, why the position does not fit the root.

    Example:
        >>> position = table.positions("billing")[0]
        >>> position.topic, position.partition, position.offset, position.generation, position.note
        ('orders', 0, 3, 1, None)
    """

    group: str
    generation: int
    topic: str
    topic_id: str
    partition: int
    offset: int
    committed_at: datetime.datetime
    query_id: str | None = None
    epoch: int | None = None
    seq: int | None = None
    metadata: str | None = None
    note: str | None = None


class Positions(Displayed, list[Position]):
    """Positions of a group, which the list shows as a table in a terminal and in a notebook."""

    def _display(self) -> Display:
        columns = ["topic", "partition", "offset", "generation", "committed at (UTC)", "query", "epoch", "metadata", "note"]
        rows: list[list[object]] = [
            [
                *(each.topic, each.partition, each.offset, each.generation, when(each.committed_at)),
                *(readable(each.query_id or "", 60), "" if each.epoch is None else each.epoch),
                *(readable(each.metadata or "", 60), each.note or ""),
            ]
            for each in self[:SHOWN]
        ]
        group = readable(self[0].group, 60) if self else ""
        return Display(f"Group {group}".rstrip(), [], columns, rows, more=len(self) - SHOWN)


class Group:
    """One group as the table has it: its newest generation, the positions of that, and whether something runs it."""

    home = "table"
    """The kind of place that has its positions: `table` or `topic`."""
    clients: Sequence[Client] = ()
    """The members of a group in a topic; a group in a table has its `state`."""

    def __init__(self, name: str, found: Iterable[Position]) -> None:
        """`found`: its current rows, one of each topic and partition and one note. Rows of older generations do not count."""
        rows = list(found)
        self.name = name
        self.generation = max((row.generation for row in rows), default=0)
        newest = [row for row in rows if row.generation == self.generation]
        self.at = {(row.topic, row.partition): row for row in sorted(newest, key=_place) if not is_note(row)}
        """The positions by topic and partition, sorted."""
        self._note = next(filter(is_note, newest), None)
        self._said = {} if self._note is None else _said(self._note)
        event = self._said.get("event")
        self.event = event if isinstance(event, str) else None
        """The event that the newest note tells: begin, assign, end, reset, load, forget or delete."""
        self.note_seq = (self._note.seq or 0) if self._note else 0
        """The number of the commit that wrote the newest note."""
        self.last = max((row.committed_at for row in newest), default=None)
        """When the newest generation wrote its last row."""

    @property
    def since(self) -> int:
        """The generation from which consumers with assigned partitions alone took the group; else its own.

        A program that knew this generation, or a later one, was fenced by no other program.
        """
        since = self._said.get("since")
        return since if self.event == ASSIGNED and type(since) is int else self.generation

    @functools.cached_property
    def state(self) -> GroupState | None:
        """The state of a group whose members share its topics; None if one owner runs it alone, or none does.

        DataError GROUP_STATE if it is damaged. Only this group is unreadable then, not the table.
        """
        try:
            return GroupState.of(self._said)
        except ValueError as error:
            raise SparklogError("GROUP_STATE", group=self.name, number=self.note_seq, cause=error) from error

    @property
    def positions(self) -> list[Position]:
        """The positions, sorted by topic and partition."""
        return list(self.at.values())

    def after(self, added: Iterable[Position]) -> Group:
        """The group after commits that added these rows, in any order."""
        found = {_place(row): row for row in [*self.at.values(), *([self._note] if self._note else [])]}
        for row in added:
            found[_place(row)] = max(found.get(_place(row), row), row, key=_rank)
        return Group(self.name, found.values())

    @property
    def exists(self) -> bool:
        """Whether there is such a group; not after it was deleted."""
        return self.generation > 0 and self.event != "delete"

    def is_running(self, now: datetime.datetime) -> bool:
        """Whether a tracker or a consumer wrote a row within `ALIVE`, and did not say that it ended."""
        return (self.state is not None or self.event == RUNNING) and self.last is not None and now - self.last < ALIVE


def current(rows: pa.Table) -> dict[str, Group]:
    """The groups that these current rows are of, by name; the deleted ones too."""
    found: dict[str, list[Position]] = {}
    for position in positions(rows):
        found.setdefault(position.group, []).append(position)
    return {name: Group(name, of) for name, of in sorted(found.items())}


def positions(rows: pa.Table) -> list[Position]:
    """The rows as objects, in their order."""
    return [Position(**row) for row in rows.to_pylist()]


def is_note(row: Position) -> bool:
    """Whether the row is not a position, but the note of an event of its group."""
    return row.partition == _NOTE


def _place(row: Position) -> tuple[str, int]:
    return row.topic, row.partition


def _rank(row: Position) -> tuple[object, ...]:
    """The row with the greatest rank counts, of each topic and partition; `Lake` ranks in the same way in SQL."""
    return row.generation, row.offset, row.seq or 0, row.committed_at, row.metadata or ""


def note(group: str, generation: int, event: str, more: Mapping[str, Any] | None = None) -> Position:
    """The row that notes an event. Its metadata tells it from every other one; `more` are fields of it."""
    text = json.dumps({"event": event, "id": uuid.uuid4().hex, **(more or {})})
    return Position(group, generation, "", "", _NOTE, _NOTE, now(), metadata=text)


def note_of_members(group: str, generation: int, by: str, why: str, state: GroupState, event: str = RUNNING) -> Position:
    """The note of a change of a group's members, with their state after it."""
    return note(group, generation, event if state.members else "end", {"by": by, "why": why, **state.stored()})


def table_of(rows: Iterable[Position]) -> pa.Table:
    """The rows as a table of the schema `SCHEMA`."""
    names = [field.name for field in fields(Position) if field.name != "note"]
    return pa.Table.from_pylist([{name: getattr(row, name) for name in names} for row in rows], SCHEMA)


def now() -> datetime.datetime:
    """The time in UTC."""
    return datetime.datetime.now(datetime.timezone.utc)


def require_group(group: object, option: str = "group") -> str:
    """The name of a group, checked: text of 1 to 255 characters. The error names the option."""
    name = arguments.text(option, group)
    if not 0 < len(name) <= GROUP_MAX or "\0" in name:
        reason = f"it must have 1 to {GROUP_MAX} characters, none of which is NUL"
        raise SparklogError("OPTION_VALUE", option=option, value=repr(name), reason=reason)
    return name


def require_schema(table: str, found: Mapping[str, tuple[str, bool]]) -> None:
    """CallError if a table does not have the columns of `SCHEMA`, or has others that must not be null.

    `found` gives the columns by name, each with its type in Delta's words and whether it may be null.
    """
    expected = {field.name: _delta_type(field.type) for field in SCHEMA}
    wrong = [f"{name} is {found[name][0]}, not {type}" for name, type in expected.items() if name in found and found[name][0] != type]
    missing = [name for name in expected if name not in found]
    more = [name for name in found if name not in expected]
    said = [", ".join(wrong)] if wrong else []
    said += [f"missing: {', '.join(missing)}"] if missing else []
    if said or not all(found[name][1] for name in more):
        said += [f"unknown: {', '.join(more)}"] if more else []
        raise SparklogError("OFFSETS_SCHEMA", table=table, columns="; ".join(said))


def _delta_type(type: pa.DataType) -> str:
    return {pa.string(): "string", pa.int64(): "long", pa.int32(): "integer"}.get(type, "timestamp")


def _said(row: Position) -> dict[str, Any]:
    """The fields of a note; empty if its metadata is not the metadata of a note."""
    try:
        said: Any = json.loads(row.metadata or "")
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
