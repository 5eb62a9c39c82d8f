"""Resets of a group: their targets, and the moves of its partitions."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups.rows import Group, Position
from sparklog.groups.topics import Offsets, placed_in, require_same
from sparklog.ondisk.reader import PartitionReader
from sparklog.ondisk.topic_log import TopicLog

Target = str | int | datetime.datetime | datetime.timedelta | Offsets
_LATE = "it has no record at or after that time: the end offset"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


@dataclass(frozen=True)
class Move:
    """The move of one partition by a reset: `was` is None if the group had no position in it. `note` has special facts, if any.

    `stays` says that the group is there already, in the topic that is there now.
    """

    topic: str
    topic_id: str
    partition: int
    was: int | None
    now: int
    note: str | None = None
    stays: bool = False


class Placing:
    """Finds the offsets of partitions of one topic, as it is committed in one state."""

    def __init__(self, log: TopicLog, group: Group) -> None:
        self._log = log
        self._state = log.newest()
        self._before = {each.partition: each for each in group.positions if each.topic == self._state.topic}

    def moves(self, to: Target, only: Iterable[int] | None = None) -> list[Move]:
        """The moves of the topic's partitions: of all, of the partitions that the target names, or for a shift of the partitions with a
        position.

        With `only`, the moves of these partitions, which must exist.
        """
        moves = self._moves(to)
        if only is None:
            return moves
        if isinstance(only, str) or not isinstance(only, Iterable):
            raise TypeError(f"`topics` has {only!r} for topic {self._state.topic}; partitions are given as {{topic: [partition, …]}}")
        wanted = {partition for each in only for partition in arguments.partitions(self._state, self._log.root, each, "topics")}
        return [move for move in moves if move.partition in wanted]

    def loaded(self, offsets: Mapping[int, int]) -> list[Move]:
        """The moves to offsets of a file, by partition. If the records at an offset have expired, the group moves to the log start offset.

        CallError if an offset is not from 0 to the end offset.
        """
        state = self._state
        return [self._within(*placed_in(state, self._log.root, *each, [0] * state.partitions)) for each in offsets.items()]

    def _moves(self, to: Target) -> list[Move]:
        state = self._state
        if isinstance(to, Mapping):
            return [self._given(partition, offset) for partition, offset in to.get(state.topic, {}).items()]
        if isinstance(to, int):
            return [self._shifted(position, to) for _, position in sorted(self._before.items())]
        if to == "earliest":
            return [self._move(partition, start) for partition, start in enumerate(state.starts)]
        if to == "latest":
            return [self._move(partition, end) for partition, end in enumerate(state.ends)]
        return [self._at(partition, arguments.millis(to)) for partition in range(state.partitions)]

    def _given(self, partition: object, offset: object) -> Move:
        placed = placed_in(self._state, self._log.root, partition, offset, self._state.starts)
        return self._move(*placed)

    def _shifted(self, position: Position, by: int) -> Move:
        require_same(self._log.root, position, self._state)
        return self._within(position.partition, position.offset + by)

    def _within(self, partition: int, wanted: int) -> Move:
        start, end = self._state.starts[partition], self._state.ends[partition]
        if wanted < start:
            return self._move(partition, start, f"{wanted} is before the log start offset")
        if wanted > end:
            return self._move(partition, end, f"{wanted} is after the end offset")
        return self._move(partition, wanted)

    def _at(self, partition: int, millis: int) -> Move:
        offset = PartitionReader(self._log, self._state, partition).offset_at(millis)
        late = offset == self._state.ends[partition]
        return self._move(partition, offset, _LATE if late else None)

    def _move(self, partition: int, now: int, note: str | None = None) -> Move:
        before = self._before.get(partition)
        if before is not None and before.topic_id != self._state.topic_id:
            note = f"{note}; " if note else ""
            note += "the topic was created again since"
        stays = before is not None and (before.topic_id, before.offset) == (self._state.topic_id, now)
        return Move(self._state.topic, self._state.topic_id, partition, before.offset if before else None, now, note, stays)


def carried(log: TopicLog, group: Group, origin: str) -> Offsets:
    """Where a group goes on in the topic of this log, which was rebuilt from `origin`: at the last frontier that it has passed.

    FORMAT.md annex D. A partition that the group has no position in counts as not read. CallError if the version that tells the
    frontiers is gone, or is of another topic, or if the group has no position in that one.
    """
    rebuilt = next((version.rebuilt for version in log.history() if version.rebuilt), None)
    if rebuilt is None or rebuilt.topic != origin:
        reason = f"none of its versions that are still there says that it was rebuilt from {origin}; reset the group to a time"
        raise SparklogError("OPTION_VALUE", option="to", value=log.topic, reason=reason)
    positions = {each.partition: each for each in group.positions if each.topic == origin}
    if not positions or {each.topic_id for each in positions.values()} != {rebuilt.topic_id}:
        another = (
            f"its positions are of another topic of that name than the one that {log.topic} was rebuilt from: reset the group to a time"
        )
        reason = another if positions else "the group has no positions in it: reset it to a time"
        raise SparklogError("OPTION_VALUE", option="topic", value=origin, reason=reason)
    first = rebuilt.passed[0]
    # Records that had expired before are not in the topic: a group that had not read them has passed the start.
    offsets = [max(positions[p].offset, start) if p in positions else start for p, start in enumerate(first.origin)]
    passed = [each for each in rebuilt.passed if all(map(int.__le__, each.origin, offsets))]
    starts = log.newest().starts
    return {log.topic: {p: max(offset, starts[p]) for p, offset in enumerate((passed or [first])[-1].own)}}


def target(to: Any) -> Any:
    """Parses the target of a reset. A duration means that long before now. TypeError or CallError if it is not a target."""
    if isinstance(to, datetime.timedelta):
        if to < datetime.timedelta(0):
            raise SparklogError("OPTION_VALUE", option="to", value=to, reason="a duration must not be negative")
        now = datetime.datetime.now(datetime.timezone.utc)
        return now - min(to, now - _EPOCH)
    if isinstance(to, Mapping):
        if wrong := [topic for topic, of in to.items() if not isinstance(topic, str) or not isinstance(of, Mapping)]:
            raise TypeError(f"`to` has {wrong[0]!r}; offsets are given as {{topic: {{partition: offset}}}}")
    elif isinstance(to, str | datetime.datetime):
        if to not in ("earliest", "latest"):
            arguments.millis(to)
    else:
        arguments.integer("to", to, ", which shifts, or 'earliest', 'latest', a time, a duration, or a dict {topic: {partition: offset}}")
    return to


def reached(to: Target, moves: list[Move]) -> list[Move]:
    """These moves. CallError if `to` is a time after all records: a mistake, since 'latest' asks for the end offsets.

    A duration is not a mistake: it limits how much is read again.
    """
    is_time = isinstance(to, str | datetime.datetime) and to not in ("earliest", "latest")
    if is_time and moves and all(_LATE in (move.note or "") for move in moves):
        topics = ", ".join(sorted({move.topic for move in moves}))
        reason = f"it is after the last record of {topics}; give an earlier time, or 'latest' for the end offsets"
        raise SparklogError("OPTION_VALUE", option="to", value=to, reason=reason)
    return moves
