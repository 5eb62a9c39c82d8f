"""A consumer that shares its topics with others of its group: partitions come and go between its polls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from sparklog.consumer.assignment import Assignment
from sparklog.consumer.reader import Reader
from sparklog.consumer.records import TopicPartition
from sparklog.consumer.subscription import Subscription

if TYPE_CHECKING:
    from sparklog.offsets import Membership

_log = logging.getLogger(__name__)
Told = Callable[[Sequence[TopicPartition]], object]
"""Is called with partitions that came or go."""


class Shared:
    """The partitions of an assignment that a member owns."""

    subscribes = True

    def __init__(self, whole: Assignment, membership: Membership) -> None:
        self._whole, self._membership = whole, membership
        self.searches = whole.searches

    def finds(self, topic: str) -> bool:
        return not self.searches or self._whole.finds(topic)

    def of(self, topic: str, partitions: int) -> Iterable[TopicPartition]:
        return [TopicPartition(topic, number) for number in self._membership.owned(topic) if number < partitions]

    def is_late(self, partition: TopicPartition) -> bool:
        return self._membership.is_late(partition)


class Sharing:
    """Hands partitions over. `assign`, `revoke` and `lose` are told of it; `commits` says whether positions are committed with it."""

    def __init__(
        self,
        membership: Membership,
        subscription: Subscription,
        reader: Reader,
        *,
        assign: Told,
        revoke: Told,
        lose: Told,
        commits: bool,
    ) -> None:
        self._membership, self._subscription, self._reader = membership, subscription, reader
        self._assign, self._revoke, self._lose = assign, revoke, lose
        self._commits = commits

    def turn(self) -> None:
        """Learns what changed in the group, gives up what others wait for, and takes what is free. GenerationFenced as `Membership`."""
        try:
            self._membership.look()
        finally:
            self._drop_lost()
        if free := _named(self._membership.to_release()):
            self._revoke(free)
            known = self._reader.positions()
            going = {each: known[each] for each in free if each in known} if self._commits else {}
            offsets: dict[str, dict[int, int]] = {}
            for (topic, number), (_, at) in going.items():
                offsets.setdefault(topic, {})[number] = at.offset
            self._membership.release(free, offsets, {topic: id for (topic, _), (id, _) in going.items()})
            self._realign()
        if new := _named(self._membership.take()):
            self._realign()
            self._assign([each for each in new if each in self._subscription.assigned])
            self._begin(new)
        self._drop_lost()

    def leave(self) -> None:
        """Tells that all partitions go, before the consumer leaves the group."""
        if self._subscription.assigned:
            self._revoke(sorted(self._subscription.assigned))

    def _begin(self, new: Iterable[TopicPartition]) -> None:
        """Commits where partitions begin that have no position, so that another member would go on there."""
        self._reader.settle()
        positions = self._reader.positions()
        has = self._reader.committed().keys()
        self._reader.commit({each: positions[each] for each in new if each in positions and (each, positions[each][0]) not in has})

    def _drop_lost(self) -> None:
        lost = _named(self._membership.lost())
        if not lost:
            return
        for topic in sorted({each.topic for each in lost}):
            if not self._subscription.exists(topic):
                _log.error("Topic %s was deleted: group %s reads it no more", topic, self._membership.group)
        self._realign()
        self._lose(lost)

    def _realign(self) -> None:
        self._subscription.realign(self._membership.topics())
        self._reader.moved()


def _named(partitions: Iterable[tuple[str, int]]) -> list[TopicPartition]:
    return sorted(TopicPartition(*each) for each in partitions)
