"""A consumer that shares its topics with others of its group: partitions come and go between its polls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sparklog import arguments
from sparklog.consumer.assignment import Assignment
from sparklog.consumer.reader import Reader, by_place, by_topic
from sparklog.consumer.records import TopicPartition
from sparklog.consumer.subscription import Subscription
from sparklog.errors import SparklogError
from sparklog.ondisk.state import State

if TYPE_CHECKING:
    from sparklog.offsets import Membership, OffsetTable

Rebalanced = Callable[[Any, list[TopicPartition]], object]
"""Is called with a consumer, and partitions that came to it or go."""


class Told:
    """Tells the program of a consumer which partitions come and go."""

    def __init__(self, consumer: object, on_assign: Rebalanced | None, on_revoke: Rebalanced | None, on_lost: Rebalanced | None) -> None:
        self._consumer = consumer
        self._on_assign, self._on_revoke, self._on_lost = on_assign, on_revoke, on_lost

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self._tell(self._on_assign, partitions)

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        self._tell(self._on_revoke, partitions)

    def lose(self, partitions: Iterable[TopicPartition]) -> None:
        self._tell(self._on_lost, partitions)

    def _tell(self, callback: Rebalanced | None, partitions: Iterable[TopicPartition]) -> None:
        if callback is not None:
            callback(self._consumer, list(partitions))


class Shared:
    """The partitions of an assignment that a member owns."""

    subscribes = True

    def __init__(self, whole: Assignment, membership: Membership) -> None:
        self._whole, self._membership = whole, membership
        self.searches = whole.searches

    def finds(self, topic: str) -> bool:
        return not self.searches or self._whole.finds(topic)

    def of(self, topic: str, state: State) -> Iterable[TopicPartition]:
        found = sorted(self._membership.held().items(), key=lambda each: each[0])
        mine = [TopicPartition(*share) for share, held in found if (share[0], held.topic_id) == (topic, state.topic_id)]
        return [each for each in mine if each.partition < state.partitions]

    def is_late(self, partition: TopicPartition, *, found_late: bool) -> bool:
        return self._membership.is_late(partition)


class Sharing:
    """Hands partitions over, and tells the program of it. `commits` says whether their positions are committed with that."""

    def __init__(self, membership: Membership, subscription: Subscription, reader: Reader, told: Told, *, commits: bool) -> None:
        self._membership, self._subscription, self._reader, self._told = membership, subscription, reader, told
        self._commits = commits
        self._leaves = False
        reader.turn, reader.known = self.turn, lambda: by_place(membership.known())

    def turn(self) -> None:
        """Learns what changed in the group, gives up what others wait for, and takes what is free.

        GenerationFenced as `Membership`. RetryError MEMBER_TOPIC_GONE, once for each topic that was deleted while it was read.
        """
        try:
            if not self._membership.look():
                return
        finally:
            self._drop_lost()
        if free := _named(self._membership.to_release()):
            self._told.revoke(free)
            self._reader.beside.settle()
            going = {each: at for each, at in self._reader.to_commit().items() if each in free} if self._commits else {}
            self._membership.release(free, *by_topic(going))
            self._reader.committed_elsewhere(going)
            self._reader.metrics.rebalances.add(len(free))
            self._realign()
        if new := _named(self._membership.take()):
            self._realign()
            self._reader.metrics.rebalances.add(len(new))
            self._told.assign([each for each in new if each in self._subscription.assigned])
            self._begin(new)
        self._drop_lost()
        if gone := self._membership.gone():
            of, (topic, numbers) = self._membership, gone
            partitions = ", ".join(map(str, sorted(numbers)))
            raise SparklogError("MEMBER_TOPIC_GONE", topic=topic, root=of.root, group=of.group, table=of.table, partitions=partitions)

    def leave(self) -> None:
        """Tells that all partitions go, before the consumer leaves the group."""
        if self._subscription.assigned and not self._leaves:
            self._leaves = True  # what it tells may close the consumer, which comes here again
            try:
                self._told.revoke(sorted(self._subscription.assigned))
            finally:
                self._leaves = False

    def _begin(self, new: Iterable[TopicPartition]) -> None:
        """Commits where partitions begin that have no position, so that another member would go on there."""
        self._reader.settle()
        positions = self._reader.positions()
        has = self._reader.known().keys()
        began = {each: positions[each] for each in new if each in positions and (each, positions[each][0]) not in has}
        self._reader.commit_what_stays(began)

    def _drop_lost(self) -> None:
        lost = _named(self._membership.lost())
        if lost:
            self._reader.metrics.rebalances.add(len(lost))
            self._realign()
            self._told.lose(lost)

    def _realign(self) -> None:
        self._subscription.realign({topic for topic, _ in self._membership.held()})
        self._reader.moved()


def _named(partitions: Iterable[tuple[str, int]]) -> list[TopicPartition]:
    return sorted(TopicPartition(*each) for each in partitions)


def part_of(membership: Membership | None) -> Callable[[Assignment], Assignment]:
    """Gives the part of an assignment that a consumer reads: all, or the shares of a member."""
    return lambda whole: whole if membership is None else Shared(whole, membership)


def membership(
    table: OffsetTable,
    group: str,
    assignor: str,
    weight: str,
    times: tuple[int, int, int],
    instance: str | None,
    capacity: int,
    rack: str | None,
) -> Membership:
    """The member that a consumer is, by its arguments; `times` are those of session, heartbeat and poll in milliseconds."""
    from sparklog.offsets import MemberSettings, Membership

    names = ("session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms")
    session, heartbeat, max_poll = (arguments.positive(name, value) for name, value in zip(names, times, strict=True))
    if 3 * heartbeat > session:
        reason = f"it must be at least three times heartbeat_interval_ms, which is {heartbeat}"
        raise SparklogError("OPTION_VALUE", option="session_timeout_ms", value=session, reason=reason)
    instance = None if instance is None else arguments.text("group_instance_id", instance)
    settings = MemberSettings(
        assignor, session / 1000, heartbeat / 1000, max_poll / 1000, instance, arguments.positive("capacity", capacity), rack, weight
    )
    return Membership(table, group, settings)
