"""The beliefs of a consumer: its subscription, its shares and their positions, and the states of topics. Decision 14 has the rules."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from sparklog.barrier import Barrier, Open
from sparklog.consumer.records import OffsetAndMetadata, TopicPartition
from sparklog.consumer.requests import At, Ats
from sparklog.errors import SparklogError
from sparklog.ondisk.state import State, unread

ALONE = "alone"
"""How a consumer holds partitions that it does not share."""
_TURN_S = 0.1
"""In a program that polls, turns are at most so many seconds apart. A turn looks at the group, and makes the commits that are due."""


@dataclass(frozen=True)
class Settings:
    """The arguments of a consumer, which do not change. Times are in seconds.

    * root: its name, for errors. far: whether its store is behind a network, so that the bytes of fetches are requested before.
    * group: the name of its group, if any. shares: whether it is a member of the group, which shares its topics.
    * reset: `auto_offset_reset`. commit_s: how often it commits by itself; None for never.
    """

    root: str
    group: str | None = None
    table: str | None = None
    shares: bool = False
    reset: str = "latest"
    interval_s: float = 0.1
    part_bytes: int = 1 << 20
    list_again_s: float = 5.0
    commit_s: float | None = None
    far: bool = False
    fetch_bytes: int = 50 << 20


class AssignedPartition:
    """A partition that the consumer holds, in one topic and one epoch: when either is another one, it is another share.

    `position` is the offset that the program gets next; None as long as it is not known.
    """

    def __init__(self, partition: TopicPartition, topic_id: str, holding: object, latest: int) -> None:
        self.partition, self.number = partition, partition.partition
        self.topic_id, self.holding = topic_id, holding
        self.latest = latest
        """The offset from which records are new, if the group did not read the topic before;"""
        self.late = False
        """it did."""
        self.position: int | None = None
        self.committed: int | None = None
        """The position that the group has committed, as far as is known."""
        self.paused = False
        self.asked = False
        """Whether the program was told that it goes, and it is not given up yet."""
        self.alive = True
        """False once it is not held, or its topic no longer exists: then nothing of it is returned."""
        self.batch: pa.RecordBatch | None = None
        """Records that were fetched and not given, from offset `batch_from` up to `batch_to`."""
        self.batch_from = self.batch_to = -1
        self.failed: Failed | None = None

    @property
    def at(self) -> At:
        """Its position, as a commit takes it."""
        assert self.position is not None
        return At(self.topic_id, self.holding, self.position)


@dataclass
class Failed:
    """A record of a share that cannot be decoded: its offset, and whether the program is to be told of it before it gets others."""

    offset: int
    error: Exception
    to_tell: bool


class Taken(NamedTuple):
    """The next records of a share, the position after them, and how many bytes they have, which Arrow takes long to count."""

    share: AssignedPartition
    batch: pa.RecordBatch
    after: int
    size: int


class Beliefs:
    """The memory of one consumer, and the changes of it that ask for nothing."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.has_group = settings.group is not None
        self.names: frozenset[str] | None = None
        """The topics that it is subscribed to by name, or"""
        self.pattern: re.Pattern[str] | None = None
        """a pattern, or"""
        self.by_hand: list[TopicPartition] = []
        """partitions that the program assigned."""
        self.states: dict[str, State] = {}
        """The topics that it reads, in the newest states that are known."""
        self.shares: dict[TopicPartition, AssignedPartition] = {}
        self._turns: deque[AssignedPartition] = deque()
        """The order in which shares are read."""
        self._news: dict[str, State | SparklogError] = {}
        """States that others asked for, and that positions are not in yet."""
        self._ends: dict[tuple[tuple[str, int], str], int] = {}
        """The end offsets when the program subscribed, by partition and topic id: from there on, records are new."""
        self._listed = self._looked = float("-inf")
        self._turn_s = min(_TURN_S, settings.interval_s, settings.list_again_s, _TURN_S if settings.commit_s is None else settings.commit_s)
        """The seconds from one turn to the next while nothing is found."""
        self._tried: float | None = None
        """When it committed last by itself, or first could have."""
        self._beside = 0
        """The number of commits that are on their way."""
        self._settled = False
        """Whether all positions are known and in the log."""
        self._idle = False
        """Whether all was read that is known to be there."""
        self._barriers: dict[str, Barrier] = {}
        self._open: dict[str, Open] = {}
        """By topic, the re-routes that are not passed, at the last look at it."""
        self._others: dict[tuple[TopicPartition, str], OffsetAndMetadata] = {}
        """The group's positions in partitions that this consumer does not read, at one moment: `_asked`."""
        self._asked = float("-inf")
        self._depends = False
        """Whether what waits depends on those."""
        self._told: set[tuple[TopicPartition, tuple[tuple[int, int], ...]]] = set()
        self._gone: dict[str, list[int]] = {}
        """By topic that was deleted or created again, the partitions that were read; the program learns of one topic in each turn."""
        self._is_fenced = False
        """Whether others ended its membership for good."""
        self._is_joined = True
        """Whether the group knows the subscription."""
        self._generation = 0
        """The generation of the group at the last look at it."""
        self.last: list[tuple[AssignedPartition, int | None]] = []
        """The shares whose positions the last call moved over the records that it returns, each with its position before."""
        self._raised: list[BaseException] = []
        """The errors of callbacks. The first of them reaches the caller when the turn is done."""
        self._within = ""
        """The event that the program is being told of."""
        self.woken = False
        self.closed = False
        self.given_records = self.given_bytes = 0
        """All that was given so far."""

    # ---- its answers

    @property
    def group(self) -> str | None:
        """The name of its group, if it has one."""
        return self._settings.group

    @property
    def commits_by_itself(self) -> bool:
        """Whether it commits without being asked."""
        return self.has_group and self._settings.commit_s is not None

    @property
    def subscribes(self) -> bool:
        """Whether topics or a pattern were named."""
        return self.names is not None or self.pattern is not None

    @property
    def topics(self) -> set[str] | None:
        """The topics that it is subscribed to; None if partitions were assigned, or nothing."""
        return set(self.states) if self.subscribes else None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read, and nothing that could come."""
        return not self.shares and not self.subscribes

    def assigned(self) -> dict[TopicPartition, AssignedPartition]:
        """The shares that it reads."""
        return {partition: share for partition, share in self.shares.items() if share.alive}

    def share(self, partition: TopicPartition) -> AssignedPartition:
        """CallError PARTITION_NOT_ASSIGNED."""
        share = self.shares.get(partition)
        if share is None or not share.alive:
            raise SparklogError("PARTITION_NOT_ASSIGNED", topic=partition.topic, partition=partition.partition, root=self._settings.root)
        return share

    def lags(self) -> list[int]:
        """How far each partition is behind its end offset, where its position is known."""
        shares = self.assigned().values()
        return [unread(each.position, self._start(each), self._end(each)) for each in shares if each.position is not None]

    def positions(self) -> Ats:
        """The positions that are known."""
        return {partition: share.at for partition, share in self.shares.items() if share.position is not None}

    def reads(self, topic: str) -> bool:
        """Whether it is subscribed to a topic of this name."""
        return self.pattern.match(topic) is not None if self.pattern else topic in (self.names or ())

    def beginning(self, partition: tuple[str, int], topic_id: str, start: int, end: int, late: bool) -> int | None:
        """Where a partition begins in which the group has no position. `late`: the group read its topic before. None: it is not known."""
        if self._settings.reset == "none":
            return None
        if self._settings.reset == "earliest" or late:
            return start
        # A partition that was not there when the program subscribed is new to it.
        return max(start, self._ends.get((partition, topic_id), start)) if self._settings.shares else end

    # ---- calls of the program that do not wait

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        for share in list(map(self.share, partitions)):
            share.paused = True

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        for share in list(map(self.share, partitions)):
            share.paused = False
        self._moved()

    def seek(self, share: AssignedPartition, offset: int) -> None:
        """The program goes on at this offset."""
        share.position, share.failed = offset, None
        self._moved(back=True)

    def take_back(self) -> None:
        """The last call was interrupted before the program had its records."""
        if self.last:
            for share, position in self.last:
                share.position = position
            self.last = []
            self._moved(back=True)

    def saw(self, topic: str, found: State | SparklogError) -> None:
        """A question of the program showed this state of a topic, or that it does not exist."""
        if topic not in self.states or found is self.states[topic]:
            return
        if isinstance(found, SparklogError):
            self._news[topic] = found  # the next poll reports it, if that topic may not go
        else:
            self._news.pop(topic, None)
            self._turn_to(topic, found)

    # ---- shares and states

    def _become(self, states: Mapping[str, State]) -> None:
        came = states.keys() - self.states.keys()
        self.states, self._news = dict(states), {}
        self._keep({partition: share for partition, share in self.shares.items() if partition.topic in states})
        for name in states:
            self._align(name, late=False)
        for name in came:
            for number, end in enumerate(states[name].ends):
                self._ends[TopicPartition(name, number), states[name].topic_id] = end
        self._moved(back=True)

    def _wanted(self, topic: str, state: State) -> list[TopicPartition]:
        if self.subscribes:
            return [TopicPartition(topic, number) for number in range(state.partitions)]
        return [each for each in self.by_hand if each.topic == topic]

    def _keep(self, shares: dict[TopicPartition, AssignedPartition]) -> None:
        order = shares if shares.keys() != self.shares.keys() else (each.partition for each in self._turns)
        turns, before = deque(shares[partition] for partition in order), self.shares
        self._turns, self.shares = turns, shares
        for partition, share in before.items():
            if shares.get(partition) is not share:
                share.alive = False

    def _align(self, topic: str, *, late: bool) -> None:
        """The shares of a topic are the partitions of its state.

        A member has the shares of its group, and does not read shares of another topic.
        """
        state = self.states[topic]
        its = {partition: share for partition, share in self.shares.items() if partition.topic == topic}
        if self._settings.shares:
            for share in its.values():
                share.alive = share.topic_id == state.topic_id and share.number < state.partitions
            return
        kept: dict[TopicPartition, AssignedPartition] = {}
        for partition in self._wanted(topic, state):
            was = its.get(partition)
            if was is None or was.topic_id != state.topic_id:
                new, exists = late or was is not None, partition.partition < state.partitions
                first = (state.starts if new else state.ends)[partition.partition] if exists else 0
                kept[partition] = AssignedPartition(partition, state.topic_id, ALONE, first)
                kept[partition].paused = was is not None and was.paused
            else:
                kept[partition] = was
        if kept != its:
            self._keep({partition: share for partition, share in self.shares.items() if partition.topic != topic} | kept)

    def _may_go(self, topic: str) -> bool:
        """Whether a topic may be deleted without an error of this kind: a new topic of its name is read later."""
        return self.subscribes and (self._settings.shares or self.pattern is not None) and self.reads(topic)

    def absorb(self) -> None:
        """Takes the states that were seen. Raises the error of a topic that may not go."""
        news, self._news = self._news, {}
        error: SparklogError | None = None
        for name, found in news.items():
            if name not in self.states or found is self.states[name]:
                continue
            if isinstance(found, SparklogError):
                if found.id != "TOPIC_NOT_FOUND" or not self._may_go(name):
                    error = error or found
                    self._looked = float("-inf")
                    continue
                del self.states[name]
                if self._settings.shares:
                    for share in self.shares.values():
                        share.alive = share.alive and share.partition.topic != name
                else:
                    self._keep({partition: share for partition, share in self.shares.items() if partition.topic != name})
                self._moved(back=True)
            else:
                self._turn_to(name, found)
        if error:
            raise error

    def _turn_to(self, topic: str, state: State) -> None:
        self.states[topic] = state
        self._align(topic, late=True)
        self._moved(back=True)

    def _moved(self, *, back: bool = False) -> None:
        """Positions, shares or states are others. `back`: a position may be lower."""
        self._settled = self._idle = False
        for barrier in self._barriers.values() if back else ():
            barrier.forget()

    def _start(self, share: AssignedPartition) -> int:
        return self.states[share.partition.topic].starts[share.number]

    def _end(self, share: AssignedPartition) -> int:
        return self.states[share.partition.topic].ends[share.number]

    def _require(self, state: State, partition: TopicPartition) -> None:
        topic, number = partition
        if not 0 <= number < state.partitions:
            last = state.partitions - 1
            raise SparklogError(
                "PARTITION_NOT_FOUND", option="partition", partition=number, topic=topic, root=self._settings.root, last=last
            )
