"""The topic whose records another one begins with, and which offsets of both correspond. FORMAT.md annex D."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sparklog.ondisk.fields import Fields, integer
from sparklog.ondisk.names import INT64_MAX, is_identity, is_topic
from sparklog.store.store import Damaged

_NUMBERS_MAX = 1_000_000
_PARTITIONS_MAX = 10_000


class Frontier(NamedTuple):
    """Offsets by partition of the origin, and of the topic that was made of it: both topics have the same records below them."""

    origin: tuple[int, ...]
    own: tuple[int, ...]

    def is_risen(self, before: Frontier) -> bool:
        """Whether it is of the same partitions as the one before it, and no offset is lower."""
        pairs = list(zip(before, self, strict=True))
        return all(len(old) == len(new) and all(map(int.__le__, old, new)) for old, new in pairs)


class Rebuilt(NamedTuple):
    """The field of a version that begins a topic with the records of another one: its name, id and version, and the frontiers."""

    topic: str
    topic_id: str
    version: int
    passed: Sequence[Frontier]

    @classmethod
    def read(cls, fields: Fields, topic_id: str) -> Rebuilt:
        """The field of a version with this topic id. Damaged if it breaks a rule."""
        read = cls(
            fields.string("topic"),
            fields.string("topicId"),
            fields.integer("version"),
            [_frontier(pair) for pair in fields.array("passed", _NUMBERS_MAX)],
        )
        if not is_topic(read.topic) or not is_identity(read.topic_id) or read.topic_id == topic_id:
            raise Damaged("`rebuilt` names no other topic")
        if sum(len(each.origin) + len(each.own) for each in read.passed) > _NUMBERS_MAX:
            raise Damaged(f"`passed` has more than {_NUMBERS_MAX} numbers")
        if (
            not read.passed
            or not all(read.passed[0])
            or not all(after.is_risen(before) for before, after in zip(read.passed, read.passed[1:], strict=False))
        ):
            raise Damaged("an offset in `passed` falls, or is of another partition")
        return read

    def leads(self, starts: tuple[int, ...], ends: tuple[int, ...]) -> bool:
        """Whether the frontiers go from these log start offsets of the topic to these ends."""
        return (self.passed[0].own, self.passed[-1].own) == (starts, ends)


def _frontier(pair: Any) -> Frontier:
    if type(pair) is not list or len(pair) != 2:
        raise Damaged("an entry of `passed` is not a pair")
    return Frontier(_offsets(pair[0]), _offsets(pair[1]))


def _offsets(numbers: Any) -> tuple[int, ...]:
    if type(numbers) is not list or len(numbers) > _PARTITIONS_MAX:
        raise Damaged("an entry of `passed` is not a pair of arrays")
    return tuple(integer(number, "passed", 0, INT64_MAX) for number in numbers)
