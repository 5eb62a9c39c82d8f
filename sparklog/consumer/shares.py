"""The shares of a consumer: the partitions that it holds, each with its position."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import pyarrow as pa

from sparklog.consumer import requests as ask
from sparklog.consumer.records import TopicPartition
from sparklog.consumer.requests import Known, View
from sparklog.consumer.settings import Settings
from sparklog.consumer.subscription import Subscription
from sparklog.errors import SparklogError
from sparklog.groups.commits import OffsetCommit
from sparklog.ondisk.state import State, unread
from sparklog.steps import Steps

_log = logging.getLogger(__name__)
ALONE = "alone"
"""How a consumer holds partitions that it does not share."""


class AssignedPartition:
    """A partition that the consumer holds, in one topic and one epoch: when either is another one, it is another share."""

    def __init__(self, partition: TopicPartition, topic_id: str, holding: object, new_from: int) -> None:
        self.partition, self.number = partition, partition.partition
        self.topic_id, self.holding = topic_id, holding
        self.new_from = new_from
        """Records from this offset on are new, unless the group has read the topic before."""
        self.was_read = False
        """True if the group is known to have read a topic of this name before."""
        self.position: int | None = None
        """The offset that the program gets next; None until it is known."""
        self.paused = False
        self.is_going = False
        """Whether the program was notified that it goes, and it is not given up yet."""
        self.alive = True
        """False once it is not held, or its topic no longer exists: then nothing of it is returned."""
        self.batch: pa.RecordBatch | None = None
        """Records that were fetched and not returned, from offset `batch_from` up to `batch_to`."""
        self.batch_from = self.batch_to = -1
        self.failed: Failed | None = None
        """The record that could not be decoded, if the share stopped at one."""

    def commit(self, offset: int) -> OffsetCommit:
        """A commit of it at an offset."""
        return OffsetCommit(*self.partition, self.topic_id, offset, holding=self.holding)

    @property
    def is_read(self) -> bool:
        """Whether records of it may be taken."""
        return self.alive and not self.paused and not self.is_going

    @property
    def has_fetched(self) -> bool:
        """Whether its next records were fetched already."""
        return self.batch is not None and self.batch_from == self.position


@dataclass
class Failed:
    """A record that cannot be decoded: its offset, and whether the program must still learn of it before it gets others."""

    offset: int
    error: Exception
    to_raise: bool


class Shares:
    """The shares that the consumer holds, their order, and their positions.

    * `order` has each share that is held, once. A share that is no longer held is not `alive`.
    * Without a group that shares its topics, the shares of a topic are the wanted partitions of its state, and no others.
    * If `are_resolved`, each position is known, and was in the log of its topic's state.
    * If `is_idle`, the newest known states have no records beyond the positions that may be returned.
    * Each change of shares, of states, or of positions by anything but reading calls `changed`, which ends both.
    """

    def __init__(self, settings: Settings, subscription: Subscription) -> None:
        self._settings, self._subscription = settings, subscription
        self.is_committed: Callable[[OffsetCommit], bool] = lambda _: False
        """Whether the group is at an offset, as far as is known. The group alone remembers its positions."""
        self.held: dict[TopicPartition, AssignedPartition] = {}
        """The shares by partition."""
        self.order: deque[AssignedPartition] = deque()
        """The order in which shares are read."""
        self.last: list[tuple[AssignedPartition, int | None]] = []
        """The shares whose positions the last call moved over the records that it returns, each with its position before."""
        self.are_resolved = False
        self.is_idle = False
        self.refreshed = float("-inf")
        """When the states of the topics were refreshed last."""
        self.setbacks = 0
        """How often a position may have become lower than before."""

    # ---- answers

    def share(self, partition: TopicPartition) -> AssignedPartition:
        """CallError PARTITION_NOT_ASSIGNED."""
        share = self.held.get(partition)
        if share is None or not share.alive:
            raise SparklogError("PARTITION_NOT_ASSIGNED", topic=partition.topic, partition=partition.partition, root=self._settings.root)
        return share

    def assigned(self) -> dict[TopicPartition, AssignedPartition]:
        """The shares that are alive."""
        return {partition: share for partition, share in self.held.items() if share.alive}

    def start(self, share: AssignedPartition) -> int:
        """The log start offset of a share."""
        return self._subscription.states[share.partition.topic].starts[share.number]

    def end(self, share: AssignedPartition) -> int:
        """The end offset of a share."""
        return self._subscription.states[share.partition.topic].ends[share.number]

    def lags(self) -> list[int]:
        """How far each partition is behind its end offset, where its position is known."""
        shares = self.assigned().values()
        return [unread(each.position, self.start(each), self.end(each)) for each in shares if each.position is not None]

    def commits(self, partitions: Iterable[TopicPartition]) -> list[OffsetCommit]:
        """The positions of these shares, where they are known."""
        shares = (self.held[each] for each in partitions if each in self.held)
        return [share.commit(share.position) for share in shares if share.position is not None]

    @property
    def are_of_member(self) -> bool:
        """Whether the group gives the shares to this consumer, and may take them."""
        return self._subscription.is_member

    def not_committed(self, partitions: Iterable[TopicPartition]) -> list[OffsetCommit]:
        """The positions of these shares that are not committed, of topics that are still there."""
        its = self.commits(partitions)
        return [each for each in its if each.topic in self._subscription.states and not self.is_committed(each)]

    # ---- calls of the program

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        for share in list(map(self.share, partitions)):
            share.paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for share in list(map(self.share, partitions)):
            share.paused = False
        self.changed()

    def seek(self, share: AssignedPartition, offset: int) -> None:
        """The program goes on at this offset."""
        share.position, share.failed = offset, None
        self.changed(back=True)

    def take_back(self) -> None:
        """The last call was interrupted before the program had its records."""
        if self.last:
            for share, position in self.last:
                share.position = position
            self.last = []
            self.changed(back=True)

    def position(self, partition: TopicPartition) -> Steps[int]:
        """The position of a share. CallError PARTITION_NOT_ASSIGNED, OFFSET_NOT_COMMITTED."""
        self.share(partition)
        yield from self.resolve()
        share = self.share(partition)  # its topic may be another topic now
        assert share.position is not None
        return share.position

    # ---- changes of shares

    def changed(self, *, back: bool = False) -> None:
        """Positions, shares or states are others. `back`: a position may be lower."""
        self.are_resolved = self.is_idle = False
        self.setbacks += back

    def hold(self, shares: dict[TopicPartition, AssignedPartition]) -> None:
        """Holds these shares, and no others."""
        order = shares if shares.keys() != self.held.keys() else (each.partition for each in self.order)
        ordered, before = deque(shares[partition] for partition in order), self.held
        self.order, self.held = ordered, shares
        for partition, share in before.items():
            if shares.get(partition) is not share:
                share.alive = False

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Holds these shares no longer."""
        if partitions:
            self.hold({partition: share for partition, share in self.held.items() if partition not in partitions})
            self.changed(back=True)

    def take(self, partitions: Iterable[TopicPartition], view: View) -> list[TopicPartition]:
        """Holds shares that a member was given, where their topics are still there; and returns these."""
        came: dict[TopicPartition, AssignedPartition] = {}
        for each in partitions:
            state, holding = self._subscription.states.get(each.topic), view.held[each]
            if state is not None and state.topic_id == holding.topic_id and each.partition < state.partitions:
                share = came[each] = AssignedPartition(each, holding.topic_id, holding, state.ends[each.partition])
                if at := view.positions.get(each):
                    share.was_read = at.topic_id != holding.topic_id
                    if not share.was_read:
                        share.position = at.offset
        self.hold(dict(sorted((self.held | came).items())))
        self.changed(back=True)
        return list(came)

    def let_others(self, share: AssignedPartition) -> None:
        """A share that cannot go on comes after all others."""
        if share in self.order:
            self.order = deque([*(each for each in self.order if each is not share), share])

    # ---- states

    def follow_subscription(self) -> None:
        """The program named other topics or partitions."""
        states = self._subscription.states
        self.hold({partition: share for partition, share in self.held.items() if partition.topic in states})
        for state in states.values():
            self._align(state, was_read=False)
        self.changed(back=True)

    def add_topic(self, state: State) -> None:
        """A topic came to the subscription."""
        self._subscription.states[state.topic] = state
        self._align(state, was_read=True)

    def saw(self, topic: str, found: State | SparklogError) -> None:
        """A question of the program showed this state of a topic, or that it does not exist."""
        its = self._subscription
        if topic not in its.states or found is its.states[topic]:
            return
        if isinstance(found, SparklogError):
            its.news[topic] = found  # the next poll reports it, if that topic may not go
        else:
            its.news.pop(topic, None)
            self._take_state(found)

    def take_news(self) -> None:
        """Takes the states that were seen. Raises the error of a topic that may not go."""
        its = self._subscription
        news, its.news = its.news, {}
        error: SparklogError | None = None
        for name, found in news.items():
            if name not in its.states or found is its.states[name]:
                continue
            if not isinstance(found, SparklogError):
                self._take_state(found)
            elif found.id == "TOPIC_NOT_FOUND" and its.may_go(name):
                del its.states[name]
                self._drop_topic(name)
            else:
                error = error or found
                self.refreshed = float("-inf")
        if error:
            raise error

    def _take_state(self, state: State) -> None:
        self.add_topic(state)
        self.changed(back=True)

    def _drop_topic(self, topic: str) -> None:
        """The topic was deleted. A member holds the shares until its group takes them."""
        its = [partition for partition in self.held if partition.topic == topic]
        if self._subscription.is_member:
            for each in its:
                self.held[each].alive = False
        else:
            self.drop(its)
        self.changed(back=True)

    def _align(self, state: State, *, was_read: bool) -> None:
        """Makes the shares of a topic fit its state. A member holds what its group gives it, and reads no share of another topic."""
        its = {partition: share for partition, share in self.held.items() if partition.topic == state.topic}
        if self._subscription.is_member:
            for share in its.values():
                share.alive = share.topic_id == state.topic_id and share.number < state.partitions
            return
        kept: dict[TopicPartition, AssignedPartition] = {}
        for partition in self._subscription.wanted(state):
            was = its.get(partition)
            if was is None or was.topic_id != state.topic_id:
                new, exists = was_read or was is not None, partition.partition < state.partitions
                first = (state.starts if new else state.ends)[partition.partition] if exists else 0
                kept[partition] = AssignedPartition(partition, state.topic_id, ALONE, first)
                kept[partition].paused = was is not None and was.paused
            else:
                kept[partition] = was
        if kept != its:
            self.hold({partition: share for partition, share in self.held.items() if partition.topic != state.topic} | kept)

    def refresh(self, now: float) -> Steps[None]:
        """Takes the newest states of the topics, and with a pattern all topics that match it."""
        idle = self.is_idle
        for state in (yield from self._subscription.find_new(now)).values():
            self.add_topic(state)
            self.changed()
        self._subscription.news |= yield from ask.News(list(self._subscription.states), idle)
        self.take_news()
        self.refreshed = now

    # ---- positions

    def resolve(self) -> Steps[None]:
        """Finds out unknown positions, and moves positions that are not in the log."""
        its = self._subscription
        if its.news:
            yield from self.refresh((yield from ask.Now()))
        if self.are_resolved:
            return
        refreshed: set[str] = set()
        while True:
            for share in self.assigned().values():
                its.require(its.states[share.partition.topic], share.partition)
            if any(share.position is None for share in self.assigned().values()):
                yield from self._find_positions()
            strayed = [each for each in self.assigned().values() if not self.start(each) <= (each.position or 0) <= self.end(each)]
            # A position may be in the log now: only the newest state can show that it is not.
            if not (topics := {each.partition.topic for each in strayed} - refreshed):
                break
            refreshed |= topics
            its.news |= yield from ask.RefreshTopics(sorted(topics), surely=True)
            self.take_news()
        for each in strayed:
            each.position = self._in_log(each)
        self.are_resolved = True

    def _find_positions(self) -> Steps[None]:
        """Finds out the positions that are not known."""
        known: Known = {}
        if self._settings.has_group and not self._subscription.is_member:
            known = yield from ask.ReadCommitted()
        read = {partition.topic for partition, _ in known}
        for share in self.assigned().values():
            if share.position is not None:
                continue
            if found := known.get((share.partition, share.topic_id)):
                share.position = found.offset
                continue
            topic, number = share.partition
            # If the group has read a topic, new partitions of it are read from their first record.
            was_read = share.was_read or self._subscription.has_read(topic, read)
            first = self._subscription.beginning(share.partition, share.topic_id, self.start(share), share.new_from, was_read)
            if first is None:
                raise SparklogError("OFFSET_NOT_COMMITTED", topic=topic, partition=number, root=self._settings.root)
            share.position = first

    def _in_log(self, share: AssignedPartition) -> int:
        """The position to go on at, if the present position is not in the log."""
        assert share.position is not None
        topic, number = share.partition
        start, end, reset = self.start(share), self.end(share), self._settings.reset
        if reset == "none":
            raise SparklogError(
                "OFFSETS_OUT_OF_RANGE",
                option="position",
                way="Seek to an offset in that range",
                offset=share.position,
                topic=topic,
                partition=number,
                root=self._settings.root,
                start=start,
                end=end,
            )
        to = start if reset == "earliest" else end
        _log.warning("Offset %d of topic %s, partition %d is not in the log; going on at %d (%s)", share.position, topic, number, to, reset)
        return to
