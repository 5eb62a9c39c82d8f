"""Where a reset puts a group, and the files of Kafka's tools that say so."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.offsets.rows import Group, Position
from sparklog.ondisk.reader import PartitionReader
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog

Offsets = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition."""
Ids = Mapping[str, str]
"""The ids of topics."""
Target = str | int | datetime.datetime | datetime.timedelta | Offsets
_LATE = "it has no record at or after that time: the end offset"
_FORMATS = ("json", "csv")
_NUMBER = re.compile("-?[0-9]+")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


@dataclass(frozen=True)
class Move:
    """What a reset does to one partition: `was` is None if the group had no position in it. `note` says what is special, if anything is.

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
        """Where the partitions of the topic go: all of them, or those that the target names, or for a shift those with a position.

        With `only`, it is those of these partitions, which must exist.
        """
        moves = self._moves(to)
        if only is None:
            return moves
        if isinstance(only, str) or not isinstance(only, Iterable):
            raise TypeError(f"`topics` has {only!r} for topic {self._state.topic}; partitions are given as {{topic: [partition, …]}}")
        wanted = {partition for each in only for partition in arguments.partitions(self._state, self._log.root, each, "topics")}
        return [move for move in moves if move.partition in wanted]

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
        start, end = self._state.starts[position.partition], self._state.ends[position.partition]
        wanted = position.offset + by
        if wanted < start:
            return self._move(position.partition, start, f"{wanted} is before the first offset")
        if wanted > end:
            return self._move(position.partition, end, f"{wanted} is after the end offset")
        return self._move(position.partition, wanted)

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


def target(to: Any) -> Any:
    """A target of a reset, a duration as the time that it reaches back to. TypeError or CallError if it is none."""
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
    """These moves. CallError if `to` is a time after all records: a mistake, for whoever wants the end offsets says so.

    A duration is not: it tells how much to read again at most.
    """
    is_time = isinstance(to, str | datetime.datetime) and to not in ("earliest", "latest")
    if is_time and moves and all(_LATE in (move.note or "") for move in moves):
        topics = ", ".join(sorted({move.topic for move in moves}))
        reason = f"it is after the last record of {topics}; give an earlier time, or 'latest' for the end offsets"
        raise SparklogError("OPTION_VALUE", option="to", value=to, reason=reason)
    return moves


def placed_in(state: State, root: str, partition: object, offset: object, starts: Iterable[int]) -> tuple[int, int]:
    """The partition and the offset, after a check that the partition exists and the offset is from that in `starts` to the end offset."""
    (placed,) = arguments.partitions(state, root, arguments.integer("partition", partition), "offsets")
    checked = arguments.integer("offset", offset)
    if not list(starts)[placed] <= checked <= state.ends[placed]:
        raise SparklogError(
            "OFFSETS_OUT_OF_RANGE",
            option="offsets",
            offset=checked,
            topic=state.topic,
            partition=placed,
            root=root,
            start=state.starts[placed],
            end=state.ends[placed],
            way="Give an offset in that range; reset() to 'earliest' or 'latest' gives the ends of it",
        )
    return placed, checked


def require_same(root: str | None, position: Position, state: State) -> None:
    """CallError if the topic was created again since the position was committed, or does not have the partition (it never loses one)."""
    if position.topic_id != state.topic_id:
        raise SparklogError(
            "GROUP_OF_OTHER_TOPIC",
            group=position.group,
            topic=position.topic,
            root=root,
            expected=position.topic_id,
            found=state.topic_id,
        )
    arguments.partitions(state, str(root), position.partition)


def require_id(root: str | None, state: State, expected: str | None) -> None:
    """RetryError if the topic has another id than the one that was read; None is any."""
    if expected not in (None, state.topic_id):
        raise SparklogError("TOPIC_RECREATED", topic=state.topic, root=root, expected=expected, found=state.topic_id)


# ---- the files of Kafka's tools


def written(positions: Iterable[Position], format: str) -> str:
    """The positions as JSON that kafka-delete-records.sh takes, or as CSV that kafka-consumer-groups.sh takes with --from-file."""
    _require_format(format)
    places = [{"topic": each.topic, "partition": each.partition, "offset": each.offset} for each in positions]
    if format == "json":
        return json.dumps({"partitions": places, "version": 1})
    return "".join(f"{each['topic']},{each['partition']},{each['offset']}\n" for each in places)


def read(text: str, format: str, group: str) -> dict[str, dict[int, int]]:
    """The offsets of a group in such a file. Lines of CSV may begin with a group: then only those of this group count."""
    _require_format(format)
    if not isinstance(text, str):
        raise TypeError(f"`text` is of type {type(text).__name__}; it must be a string, the content of a file and not its path")
    text = text.removeprefix("\ufeff")  # spreadsheets begin files with it
    found: dict[str, dict[int, int]] = {}
    for where, topic, partition, offset in (_of_json if format == "json" else _of_csv)(text, group):
        if partition in found.setdefault(topic, {}):
            raise _not_readable(f"{where} names partition {partition} of topic {topic} a second time")
        found[topic][partition] = offset
    if not found:
        raise _not_readable(f"it has no offset of group {group}")
    return found


def _of_csv(text: str, group: str) -> Iterable[tuple[str, str, int, int]]:
    lines = csv.reader(io.StringIO(text), strict=True)
    for number in itertools.count(1):
        try:
            line = next(lines, None)
        except csv.Error as error:
            raise _not_readable(f"line {number} is not CSV: {error}") from None
        if line is None:
            return
        if not line:
            continue
        if len(line) not in (3, 4):
            raise _not_readable(f"line {number} has {len(line)} fields, not topic,partition,offset or group,topic,partition,offset")
        if len(line) == 4 and line[0] != group:
            continue
        topic, partition, offset = (field.strip() for field in line[-3:])
        try:
            if not _NUMBER.fullmatch(partition) or not _NUMBER.fullmatch(offset):
                raise ValueError  # Python's own numbers, as 1_000, are none of Kafka's
            yield f"line {number}", topic, int(partition), int(offset)
        except ValueError:
            raise _not_readable(f"line {number} has partition {partition!r} and offset {offset!r}, which must be numbers") from None


def _of_json(text: str, _: str) -> Iterable[tuple[str, str, int, int]]:
    try:
        content = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise _not_readable(f"it is not JSON: {error}") from None
    entries = content.get("partitions") if isinstance(content, dict) else None
    if not isinstance(entries, list) or content.get("version", 1) != 1:
        raise _not_readable('it is not {"partitions": [{"topic": …, "partition": …, "offset": …}, …], "version": 1}')
    for number, entry in enumerate(entries, 1):
        topic, partition, offset = (entry.get(name) if isinstance(entry, dict) else None for name in ("topic", "partition", "offset"))
        if not isinstance(topic, str) or type(partition) is not int or type(offset) is not int:
            raise _not_readable(f"entry {number} does not have a topic (text), a partition and an offset (integers)")
        yield f"entry {number}", topic, partition, offset


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        twice = next(name for number, (name, _) in enumerate(members) if name in dict(members[:number]))
        raise _not_readable(f"an object in it has {twice!r} twice")
    return found


def _require_format(format: str) -> None:
    arguments.choice("format", format, _FORMATS)


def _not_readable(reason: str) -> SparklogError:
    return SparklogError("OFFSETS_FILE", reason=reason)
