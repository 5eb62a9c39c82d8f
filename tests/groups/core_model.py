"""The model of `core_world.py`: the records that a group was given, its beginnings, and the commits that may follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from groups.core_parts import MANY, Fault, Table, Topic

from sparklog import SparklogError
from sparklog.groups.rows import Group, Position

if TYPE_CHECKING:
    from groups.core_consumer import Consumer


class Model:
    """The promises to the programs of a group, checked as records are given and positions committed."""

    reset: str
    topics: dict[str, Topic | None]
    table: Table

    def __init__(self) -> None:
        self.commits = 0
        self.by_pattern = False
        self.given_of: dict[tuple[str, int], dict[int, int]] = {}
        """By topic id and partition the records that were given, each with the number of commits when its share was taken."""
        self.since: dict[tuple[str, int], int] = {}
        """The number of the commit by which an operator moved a position: records that were taken before do not count for it."""
        self.base: dict[tuple[str, int], int] = {}
        """Where the group begins: everything from there on must be given before a position passes it."""
        self.called: dict[tuple[str, int], int] = {}
        """The greatest end offset when a consumer subscribed, by topic id and partition: with `latest`, the group begins there at most."""
        self.ordered: Counter[str] = Counter()
        self.disturbed: set[str] = set()
        """Topics of which positions were moved by hand, or which were not read from their start: their keys may come in another order."""
        self.marks: set[str | None] = set()
        """The metadata of the rows of operators."""

    def has_read(self, name: str) -> bool:
        """Whether the group has positions in a topic of this name, or in one of its pattern."""
        its = {row.topic for row in self.table.newest.positions}
        return name in its or (self.by_pattern and bool(its))

    def waiting(self, name: str) -> set[str]:
        """The members that read a topic of this name: one that comes to be now is new to them."""
        state = self.table.newest.state
        return {each.id for each in state.members.values() if each.reads(name)} if state else set()

    def is_waited_for(self, topic: Topic, number: int, group: Group) -> bool:
        """Whether a member that was there before a partition is still there, and reads its topic."""
        members = group.state.members if group.state else {}
        return any(id in members and members[id].reads(topic.name) for id in topic.waiting[number])

    def subscribed(self, names: Iterable[str]) -> None:
        """A consumer has subscribed to topics: from their ends on, records are new to it."""
        for topic in filter(None, map(self.topics.get, names)):
            for number, end in enumerate(topic.ends):
                self.called[topic.id, number] = max(end, self.called.get((topic.id, number), 0))

    def state_of(self, name: str) -> Any:
        topic = self.topics.get(name)
        return topic.state if topic else SparklogError("TOPIC_NOT_FOUND", topic=name, root="root", topics="")

    def owns(self, one: Consumer, share: Any) -> bool:
        state = self.table.newest.state
        if state is None or one.member.id is None:
            return False
        held = state.owned(one.member.id).get(tuple(share.partition))
        return held is not None and held == share.holding.held

    def given(self, one: Consumer, share: Any, offsets: list[int], *, skipped: bool = False) -> None:
        """Records were returned to the program, or it was told that it cannot have them, and skipped them."""
        if not skipped and not one.member.is_live:
            raise Fault(f"{one.name} returned {offsets} of {share.partition}, and others may have it")
        if one.core.closed and not skipped:
            raise Fault(f"{one.name} returned {offsets} of {share.partition}, and is closed")
        last, following = one.next.get(share.partition, (None, 0))
        for offset in offsets:
            if last is share and offset < following:
                raise Fault(f"{one.name} returned {offset} of {share.partition} again, after {following}")
            last, following = share, offset + 1
            self._in_order(share, offset)
            its = self.given_of.setdefault((share.topic_id, share.number), {})
            its[offset] = max(its.get(offset, -1), share.since)
        one.next[share.partition] = last, following

    def _in_order(self, share: Any, offset: int) -> None:
        """The records of a key come in the order in which they were written, the first time that they come."""
        topic = self.topics.get(share.partition.topic)
        if topic is None or topic.id != share.topic_id or topic.id in self.disturbed:
            return
        key, number = topic.records[share.number][offset]
        if number > self.ordered[key]:
            left = [
                (partition, at)
                for partition, its in enumerate(topic.records)
                for at, (each, which) in enumerate(its)
                if each == key and self.ordered[key] <= which < number and at >= topic.starts[partition]
            ]
            if any(at not in self.given_of.get((topic.id, partition), {}) for partition, at in left):
                raise Fault(f"{share.partition} returned offset {offset}, {key} number {number}; {left} were not returned before")
        self.ordered[key] = max(self.ordered[key], number + 1)

    def committed(self, added: list[Position], before: Group, after: Group) -> None:
        """Rows were committed: every record below them was returned."""
        self.commits += 1
        for row in added:
            topic = self.topics.get(row.topic)
            if row.partition < 0 or topic is None or topic.id != row.topic_id:
                continue
            place = (row.topic_id, row.partition)
            was = before.at.get((row.topic, row.partition))
            if row.metadata in self.marks and (was is None or (was.metadata, was.offset) != (row.metadata, row.offset)):
                self.since[place] = self.commits
                # A position that has expired meanwhile goes on at the end.
                self.base[place] = MANY if self.reset == "latest" and row.offset < topic.starts[row.partition] else row.offset
                self.disturbed.add(row.topic_id)
                continue
            known = before.at.get((row.topic, row.partition))
            if known is not None and known.topic_id == row.topic_id and known.offset == row.offset:
                continue
            if place not in self.base:
                if topic.must_begin[row.partition] or self.reset == "earliest" or self.is_waited_for(topic, row.partition, after):
                    self.base[place] = 0
                else:
                    if row.offset > max(topic.starts[row.partition], self.called.get(place, 0)):
                        raise Fault(f"{place} begins at {row.offset}, and was at {self.called.get(place)} when its readers subscribed")
                    self.base[place] = row.offset
                    self.disturbed.add(row.topic_id)
            its = self.given_of.get(place, {})
            first = max(self.base[place], topic.starts[row.partition])
            missing = [at for at in range(first, row.offset) if its.get(at, -1) < self.since.get(place, 0)]
            if missing:
                raise Fault(f"{place} was committed at {row.offset}, and {missing} were not returned since {self.since.get(place, 0)}")
