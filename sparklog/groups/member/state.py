"""The state of a group whose members share its topics, and the steps by which it changes: functions from a state to a state."""

from __future__ import annotations

import dataclasses
import functools
import logging
import re
import socket
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups.assignors import Member, Partition, assign, canonical, owners_of

_log = logging.getLogger(__name__)
WEIGHTS = ("count", "lag", "rate")
"""The weights of a partition: like any other, its records that the group has not read, or its records of the last hour."""
_WEIGHED = {"lag": "sticky-lag", "rate": "sticky-rate"}
"""The assignors of groups whose state has weights, by the kind of weight. Programs that do not know these names do not join."""
ASSIGNORS = ("range", "roundrobin", "sticky", *_WEIGHED.values())
"""The assignors that the state of a group may name."""
_UNEVEN = Fraction(5, 4)
"""Weights change if the greatest load of a member is more than so many times the mean,"""
_BETTER = Fraction(9, 10)
"""and if the new plan makes it less than this part of it."""
_WEIGHT_MAX = 2**62


@dataclass(frozen=True)
class Registered:
    """A member as the state has it. It reads `topics`, or with a pattern the topics whose names begin with a match of it.

    session_ms: after how long without a heartbeat others expire it.
    """

    id: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    capacity: int = 1
    session_ms: int = 45_000
    instance: str | None = None
    rack: str | None = None
    host: str | None = None
    root: str | None = None

    def reads(self, topic: str) -> bool:
        """Whether it reads a topic of this name."""
        return topic in self.topics if self.pattern is None else _matches(self.pattern, topic)

    def has_another_root(self, other: Registered) -> bool:
        """Whether both are on one machine, and the directories of their roots are two."""
        if self.host != other.host or self.root is None or other.root is None:
            return False
        try:
            return not Path(self.root).samefile(other.root)
        except OSError:  # a bucket, or a path that this process does not see
            return False

    def has_read(self, topic: str, read: Collection[str]) -> bool:
        """Whether a group that has positions in the topics `read` has read this topic, or the topics that its pattern matched."""
        return topic in read or (self.pattern is not None and any(map(self.reads, read)))


def is_pattern(pattern: str) -> bool:
    """Whether it is a regular expression of Python."""
    return _compiled(pattern) is not None


@functools.lru_cache(1_000)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        _log.warning("a member reads the topics of the pattern %r, which is not one of Python: they are left out (%s)", pattern, error)
        return None


def _matches(pattern: str, topic: str) -> bool:
    """Whether a name begins with a match of a pattern. No name does if the pattern is not a pattern of Python."""
    compiled = _compiled(pattern)
    return compiled is not None and compiled.match(topic) is not None


_FIELDS = {each.name for each in dataclasses.fields(Registered)}
"""Those of a member. Others, of a later program, say nothing to this one."""


@dataclass(frozen=True)
class MemberSettings:
    """How a consumer is a member of a group; times are in seconds. `sparklog.Consumer` explains the settings.

    Example:
        >>> from sparklog.groups.member.state import MemberSettings
        >>> MemberSettings("roundrobin", session_s=10).shared_by
        'roundrobin'
    """

    assignor: str = "sticky"
    session_s: float = 45
    heartbeat_s: float = 5
    max_poll_s: float = 300
    instance: str | None = None
    capacity: int = 1
    rack: str | None = None
    weight: str = "count"

    @property
    def shared_by(self) -> str:
        """The assignor in the state of a group. CallError if it is unknown, or does not know the weight."""
        arguments.choice("weight", self.weight, WEIGHTS)
        rule = canonical(self.assignor)
        if self.weight == "count":
            return rule
        if rule != "sticky":
            reason = f"{rule} does not look at weights; give sticky, or leave weight out"
            raise SparklogError("OPTION_CONFLICT", options="partition_assignment_strategy and weight", reason=reason)
        return _WEIGHED[self.weight]

    def registered(self, id: str, topics: tuple[str, ...], pattern: str | None, root: str | None) -> Registered:
        """Makes the member of an id, on this machine.

        Args:
            id: The id of the member.
            topics: The topics that it reads.
            pattern: A regular expression for more topics, or None.
            root: The root of the topics, or None.

        Returns:
            The member, as the state of the group has it.

        Raises:
            CallError: OPTION_VALUE if a setting is out of its range.

        Example:
            >>> from sparklog.groups.member.state import MemberSettings
            >>> MemberSettings().registered("ann", ("orders",), None, None).topics
            ('orders',)
        """
        session_ms, host = round(self.session_s * 1000), socket.gethostname()
        return Registered(id, topics, pattern, self.capacity, session_ms, self.instance, self.rack, host, root)


@dataclass(frozen=True)
class Share:
    """A partition of a group: the member for which it is planned, the member that has it, and how often it changed hands."""

    wanted_by: str | None = None
    owner: str | None = None
    epoch: int = 0


@dataclass(frozen=True)
class Held:
    """A share as its owner has it: this member, in the topic of this id, and in this epoch. In others it was lost.

    Epochs begin again when the state of a group begins again, and members have other ids then. They begin again too when a topic leaves
    the state and comes back: see `Hold`.
    """

    topic_id: str
    epoch: int
    member: str


class Hold(NamedTuple):
    """The time from a take of a share to its loss. A later time has the same `held` if the topic left the group in between.

    So commits of the earlier time do not count.
    """

    held: Held
    number: int
    """The member counts its takes. No other member sees the number."""

    @property
    def topic_id(self) -> str:
        """The id of the topic."""
        return self.held.topic_id


@dataclass(frozen=True)
class SharedTopic:
    """A topic of a group: its id, and the number of its partitions."""

    id: str
    partitions: int


@dataclass(frozen=True)
class GroupState:
    """The members of a group, its topics, and its shares by topic and partition. No step changes it: each gives another one."""

    assignor: str
    members: Mapping[str, Registered] = field(default_factory=dict)
    topics: Mapping[str, SharedTopic] = field(default_factory=dict)
    shares: Mapping[Partition, Share] = field(default_factory=dict)
    weights: Mapping[Partition, int] = field(default_factory=dict)
    """The weights of partitions, with an assignor that weighs; 0 for partitions without a weight."""
    announced: str | None = None
    """The id of a change that an operator announced: members hold their commits for a moment, so that it goes first."""

    # ---- its content

    def owned(self, member: str) -> dict[Partition, Held]:
        """The shares of a member."""
        return {each: Held(self.topics[each[0]].id, share.epoch, member) for each, share in self.shares.items() if share.owner == member}

    def first_taken(self, before: GroupState, member: str) -> dict[Partition, Held]:
        """The shares that a member took since the state before, and that no member had before it in this topic: its change says where they
        begin.
        """
        had = before.owned(member)
        return {each: held for each, held in self.owned(member).items() if had.get(each) != held and held.epoch == 1}

    def new_owners(self, before: GroupState, *, but: str) -> set[str]:
        """The members that were given shares since the state before, without this one."""
        owners = {share.owner for each, share in self.shares.items() if share.owner != before.shares.get(each, Share()).owner}
        return {each for each in owners if each not in (None, but)}

    def first_owner(self) -> str | None:
        """The owner of the first share that has one."""
        return next((share.owner for _, share in sorted(self.shares.items(), key=lambda each: each[0]) if share.owner), None)

    @property
    def measure(self) -> str:
        """By what its assignor weighs partitions: `count`, `lag` or `rate`."""
        return next((measure for measure, name in _WEIGHED.items() if name == self.assignor), "count")

    def has_read(self, share: Partition, id: str) -> bool | None:
        """Whether the group read the topic of this name before this share of the topic of this id existed, so that the whole share is new.

        None if neither its topics nor its members show it.
        """
        topic = self.topics.get(share[0])
        if topic is not None:
            return topic.id != id or self.shares.get(share, Share()).epoch == 0
        return True if any(member.reads(share[0]) for member in self.members.values()) else None

    def to_release(self, member: str) -> list[Partition]:
        """The shares that a member owns, and another one wants."""
        return [each for each, share in self.shares.items() if share.owner == member != share.wanted_by]

    def to_take(self, member: str) -> list[Partition]:
        """The shares that a member wants, and that have no owner."""
        return [each for each, share in self.shares.items() if share.owner is None and share.wanted_by == member]

    def as_members(self) -> list[Member]:
        """The members as an assignor takes them."""
        return [
            Member(each.id, [name for name in self.topics if each.reads(name)], each.instance, each.capacity, each.rack)
            for each in self.members.values()
        ]

    def sessions(self, *, but: str) -> dict[str, float]:
        """The sessions of all members but one, in seconds."""
        return {each.id: each.session_ms / 1000 for each in self.members.values() if each.id != but}

    def of_instance(self, instance: str | None, *, but: str) -> str | None:
        """The member that has the place of a static member, if it is not the member of this id."""
        if instance is None:
            return None
        return next((each.id for each in self.members.values() if each.instance == instance and each.id != but), None)

    # ---- the steps

    def joined(self, member: Registered) -> GroupState:
        """With one member more, in the place of a member with its instance."""
        before = self.of_instance(member.instance, but=member.id)
        kept = {id: each for id, each in self.members.items() if id != before}
        shares = dict(self.shares)
        for each, share in self.shares.items() if before else ():
            wanted = member.id if share.wanted_by == before else share.wanted_by
            shares[each] = Share(wanted, None if share.owner == before else share.owner, share.epoch)
        return dataclasses.replace(self, members={**kept, member.id: member}, shares=shares)._planned()

    def without(self, *members: str) -> GroupState:
        """After members left or were expired."""
        kept = {id: member for id, member in self.members.items() if id not in members}
        shares = {each: dataclasses.replace(share, owner=None) if share.owner in members else share for each, share in self.shares.items()}
        return dataclasses.replace(self, members=kept, shares=shares)._planned()

    def with_topics(self, topics: Mapping[str, SharedTopic]) -> GroupState:
        """With these topics. The shares of a topic that has another id, or is not there, are gone."""
        shares = {}
        same = {name for name, topic in topics.items() if name in self.topics and self.topics[name].id == topic.id}
        for name, topic in topics.items():
            for number in range(topic.partitions):
                shares[name, number] = self.shares.get((name, number), Share()) if name in same else Share()
        weights = {each: weight for each, weight in self.weights.items() if each[0] in same}
        return dataclasses.replace(self, topics=dict(topics), shares=shares, weights=weights)._planned()

    def released(self, member: str, partitions: Iterable[Partition]) -> GroupState:
        """After a member gave up these of its shares."""
        mine = [each for each in partitions if each in self.shares and self.shares[each].owner == member]
        freed = {each: dataclasses.replace(self.shares[each], owner=None) for each in mine}
        return dataclasses.replace(self, shares={**self.shares, **freed})

    def given(self) -> GroupState:
        """After each share without an owner, which had one before, was given to the member that wants it."""
        free = {each: share for each, share in self.shares.items() if share.owner is None and share.wanted_by is not None and share.epoch}
        given = {each: Share(share.wanted_by, share.wanted_by, share.epoch + 1) for each, share in free.items()}
        return dataclasses.replace(self, shares={**self.shares, **given})

    def taken(self, member: str) -> GroupState:
        """After a member took its free shares, and gave all others that had an owner before to the members that want them."""
        mine = {each: Share(member, member, self.shares[each].epoch + 1) for each in self.to_take(member)}
        return dataclasses.replace(self, shares={**self.shares, **mine}).given()

    def reset(self, partitions: Iterable[Partition]) -> GroupState:
        """After an operator moved these partitions: their owners lost them, and whichever member wants them begins at the new positions."""
        freed = {
            each: dataclasses.replace(self.shares[each], owner=None, epoch=self.shares[each].epoch + 1)
            for each in partitions
            if each in self.shares
        }
        return dataclasses.replace(self, shares={**self.shares, **freed}, announced=None)

    def weighed(self, measured: Mapping[Partition, int]) -> GroupState:
        """With weights by the measure of each partition, if members are out of balance and the new plan helps; otherwise unchanged."""
        if any(share.owner is None or share.owner != share.wanted_by for share in self.shares.values()):
            return self
        weights = {each: _rounded(measured.get(each, 0)) for each in self.shares}
        after = dataclasses.replace(self, weights=weights)._planned()
        greatest, mean = self._loads(measured)
        return after if greatest > _UNEVEN * mean and after._loads(measured)[0] < _BETTER * greatest else self

    def _loads(self, measured: Mapping[Partition, int]) -> tuple[Fraction, Fraction]:
        """The greatest load of a member, as planned, and the mean: a partition adds one more than was measured of it."""
        loads: Counter[str | None] = Counter()
        for each, share in self.shares.items():
            loads[share.wanted_by] += 1 + measured.get(each, 0)
        greatest = max((Fraction(loads[id], member.capacity) for id, member in self.members.items()), default=Fraction(0))
        return greatest, Fraction(loads.total(), sum(member.capacity for member in self.members.values()) or 1)

    def _planned(self) -> GroupState:
        """With the partitions that each member wants, by the assignor."""
        now = {each: share.owner or share.wanted_by for each, share in self.shares.items()}
        owners = {each: owner for each, owner in now.items() if owner is not None}
        counts = {name: topic.partitions for name, topic in self.topics.items() if topic.partitions}
        weighs = self.measure != "count"
        rule, weights = ("sticky", self.weights) if weighs else (self.assignor, None)
        wanted = owners_of(assign(rule, counts, self.as_members(), owners=owners, weights=weights))
        shares = {each: dataclasses.replace(share, wanted_by=wanted.get(each)) for each, share in self.shares.items()}
        return dataclasses.replace(self, shares=shares)

    # ---- how it is stored

    def stored(self) -> dict[str, Any]:
        """The fields of a note, as docs/reference/offset-tables.md has them."""
        ids = sorted(self.members)
        place = {id: number for number, id in enumerate(ids)}
        shares: dict[str, list[list[int | None]]] = {}
        for (name, _), share in sorted(self.shares.items()):
            shares.setdefault(name, []).append([place.get(share.wanted_by or ""), place.get(share.owner or ""), share.epoch])
        members = [{key: value for key, value in vars(self.members[id]).items() if value not in (None, ())} for id in ids]
        topics = {name: {"id": topic.id, "partitions": topic.partitions} for name, topic in sorted(self.topics.items())}
        weights: dict[str, list[int]] = {}
        for name, number in sorted(self.shares) if self.weights else ():
            weights.setdefault(name, []).append(self.weights.get((name, number), 0))
        more = ({"weights": weights} if weights else {}) | ({"announced": self.announced} if self.announced else {})
        return {"assignor": self.assignor, "members": members, "topics": topics, "shares": shares, **more}

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> GroupState | None:
        """The state among the fields of a note; None if the group has no members. ValueError if it is damaged."""
        if not said.get("members"):
            return None
        try:
            members = [Registered(**{name: each[name] for name in _FIELDS & each.keys()}) for each in said["members"]]
            members = [dataclasses.replace(each, topics=tuple(each.topics)) for each in members]
            ids: list[str | None] = [each.id for each in members]
            shares = {
                (name, number): Share(None if wanted is None else ids[wanted], None if owner is None else ids[owner], epoch)
                for name, of in said["shares"].items()
                for number, (wanted, owner, epoch) in enumerate(of)
            }
            topics = {name: SharedTopic(of["id"], of["partitions"]) for name, of in said["topics"].items()}
            weights = {(name, number): weight for name, of in said.get("weights", {}).items() for number, weight in enumerate(of)}
            if any(type(weight) is not int or not 0 <= weight <= _WEIGHT_MAX for weight in weights.values()):
                raise ValueError("a weight is not an integer from 0 to 2 to the 62nd")
            announced = said.get("announced")
            if not isinstance(announced, str | None):
                raise ValueError("`announced` is not a text")
            return cls(said["assignor"], {each.id: each for each in members}, topics, shares, weights, announced)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
            raise ValueError(f"it is not the state of a group: {error!r}") from error


def _rounded(measured: int) -> int:
    """The greatest power of two that is not above it; 0 for 0."""
    return min(1 << measured.bit_length() - 1, _WEIGHT_MAX) if measured else 0
