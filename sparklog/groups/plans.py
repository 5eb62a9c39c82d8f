"""Plans of groups: the partitions that an assignor would give to each member. Nothing is done."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups.assignors import ASSIGNORS, Assignment, Member, Partition, assign, owners_of
from sparklog.groups.member import weights
from sparklog.groups.member.state import WEIGHTS
from sparklog.groups.rows import Position, require_group
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_logs import TopicLogs
from sparklog.show.display import SHOWN, Display, Displayed, counted, readable

_SHOWN_OF_TEXTS = 100


@dataclass(frozen=True)
class PlannedPartition:
    """A partition of a plan.

    * consumer_id: the member that would get it; None without members. was: the member that has it before; None if none has.
    * lag: the offsets that the group has not read; None if it has no position in it.
    """

    topic: str
    partition: int
    consumer_id: str | None
    was: str | None
    lag: int | None


class GroupPlan(Displayed):
    """The answer of an assignor for a group. In a terminal and in a notebook it shows itself as a table of the members.

    Example:
        >>> plan = table.plan("billing", 2)
        >>> plan.after
        {'consumer-1': [('orders', 0)], 'consumer-2': [('orders', 1)]}
    """

    def __init__(self, group: str, assignor: str, weight: str, before: Assignment, after: Assignment, lags: Mapping[Partition, int | None]):
        self.group = group
        self.assignor = assignor
        self.weight = weight
        self.before = before
        """The partitions of each member before; of none, if no member comes or goes."""
        self.after = after
        """The partitions of each member as planned."""
        now, was = owners_of(after), owners_of(before)
        self.partitions = [PlannedPartition(*each, now.get(each), was.get(each), lags[each]) for each in sorted(lags)]
        """All partitions, sorted by topic and number."""

    @property
    def moved(self) -> list[PlannedPartition]:
        """The partitions that another member had before."""
        return [each for each in self.partitions if each.was not in (None, each.consumer_id)]

    def by_topic(self, member: str) -> dict[str, list[int]]:
        """Returns the partitions that a member would get.

        Args:
            member: The id of the member.

        Returns:
            The numbers of the partitions, by topic.

        Raises:
            KeyError: If the plan does not have the member.

        Example:
            >>> plan.by_topic("consumer-1")
            {'orders': [0]}
        """
        return _by_topic(self.after[member])

    def lag(self, member: str) -> int:
        """Returns the lag of the partitions that a member would get, together.

        Args:
            member: The id of the member.

        Returns:
            The number of unread records. A partition without a position counts as 0.

        Example:
            >>> plan.lag("consumer-1")
            2
        """
        return sum(each.lag or 0 for each in self.partitions if each.consumer_id == member)

    def _display(self) -> Display:
        return self.display()

    def display(self, most: int | None = SHOWN) -> Display:
        """Makes the table of the first members.

        Args:
            most: The most members to show; None for all.

        Returns:
            The table, which a terminal and a notebook show.

        Example:
            >>> print(plan.display(1).text())
            Group billing...
        """
        columns = ["consumer-id", "#partitions", "lag", "assignment"]
        cells: list[list[object]] = [
            [readable(id, _SHOWN_OF_TEXTS), len(given), self.lag(id), named(given)] for id, given in list(self.after.items())[:most]
        ]
        about = [f"{self.assignor}, by {self.weight}: {counted(len(self.partitions), 'partition')} of {self._topics()}"]
        if self.before:
            columns += ["gets", "gives up"]
            for row, (id, given) in zip(cells, self.after.items(), strict=False):
                had = self.before.get(id, [])
                row += [named(each for each in given if each not in had), named(each for each in had if each not in given)]
            for id in self.before.keys() - self.after.keys():
                about.append(f"{readable(id, _SHOWN_OF_TEXTS)} leaves {named(self.before[id]) or 'nothing'}")
            about.append(f"{counted(len(self.moved), 'partition')} would go to another member")
        title = f"Group {readable(self.group, _SHOWN_OF_TEXTS)}: {counted(len(self.after), 'member')} (a plan; nothing was changed)"
        return Display(title, about, columns, cells, more=len(self.after) - len(cells))

    def _topics(self) -> str:
        return readable(", ".join(sorted({each.topic for each in self.partitions})), _SHOWN_OF_TEXTS)


def named(partitions: Iterable[Partition]) -> str:
    """The partitions of a member as Kafka's tools name them: `orders(0,2), refunds(1)`."""
    return ", ".join(f"{topic}({','.join(map(str, numbers))})" for topic, numbers in _by_topic(partitions).items())


def _by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    return by_topic


def plan(
    root: str | os.PathLike[str] | Root | TopicLogs,
    group: str,
    members: int | Iterable[str | Member],
    topics: Sequence[str] | str | None = None,
    *,
    joining: str | Iterable[str | Member] = (),
    leaving: Iterable[str] | str = (),
    assignor: str = "sticky",
    weight: str = "count",
    positions: Iterable[Position] = (),
    owners: Mapping[Partition, str] | None = None,
) -> GroupPlan:
    """Plans a group: it shows the partitions that an assignor would give to members. Nothing is changed.

    Args:
        root: The root that holds the topics, as in `Log`.
        group: The name of the group.
        members: The number of members, which are then called consumer-1, consumer-2 and so on; or their ids, each of which reads all
            topics; or `Member` objects.
        topics: The topics that the group reads; by default those of `positions`, or those that members name.
        joining: Members that come. The assignor's answer without them says which partitions each member has before.
        leaving: The ids of members that go.
        assignor: One of `sparklog.groups.assignors.ASSIGNORS`; default `sticky`.
        weight: For `sticky`, the measure by which it evens out: `count` (default), `lag` or `rate`.
        positions: The positions of the group, for its topics and its lag. Without a position, all records of a partition are its lag.
        owners: By partition, the id of the member that has it now; by default the assignor says which member has which before.

    Returns:
        The plan: the partitions of each member before and after.

    Raises:
        CallError: OPTION_VALUE if there are no topics, or members cannot be told apart; TOPIC_NOT_FOUND.

    Example:
        >>> from sparklog.groups import plan
        >>> plan("events", "new", ["ann", "bob"], "orders").after
        {'ann': [('orders', 0)], 'bob': [('orders', 1)]}
    """
    require_group(group)
    arguments.choice("weight", weight, WEIGHTS)
    arguments.choice("assignor", assignor, ASSIGNORS)
    logs = arguments.topic_logs(root)
    known = list(positions)
    crew, new = _members(members), _members(joining)
    read = {topic for each in [*crew, *new] if isinstance(each, Member) for topic in each.topics}
    wanted = sorted(set(arguments.texts("topics", topics)) if topics is not None else read | {each.topic for each in known})
    if not wanted:
        reason = f"group {group} has no positions that would tell its topics; name them"
        raise SparklogError("OPTION_VALUE", option="topics", value=topics, reason=reason)
    states = {topic: logs.log(arguments.topic(topic)).newest() for topic in wanted}
    lags = weights.lags(states, known)
    weighed = None if weight == "count" else weights.measured(weight, states, lags, logs)

    def shared(members: Iterable[str | Member], owners: Mapping[Partition, str]) -> Assignment:
        whole = [each if isinstance(each, Member) else Member(each, wanted) for each in members]
        return assign(assignor, {topic: state.partitions for topic, state in states.items()}, whole, owners=owners, weights=weighed)

    gone = set(arguments.texts("leaving", leaving))
    if unknown := sorted(gone - {_id(each) for each in crew}):
        reason = f"{unknown[0]!r} is not one of the members {', '.join(map(_id, crew))}"
        raise SparklogError("OPTION_VALUE", option="leaving", value=", ".join(sorted(gone)), reason=reason)
    before = shared(crew, {}) if owners is None and (gone or new) else {}
    if owners is not None:
        before = {_id(each): [at for at, owner in sorted(owners.items()) if owner == _id(each)] for each in crew}
    after = shared([each for each in [*crew, *new] if _id(each) not in gone], owners_of(before))
    return GroupPlan(group, assignor, weight, before, after, lags)


def _members(given: int | Iterable[str | Member]) -> list[str | Member]:
    if isinstance(given, Iterable):
        each_one = [given] if isinstance(given, str) else given
        return [each if isinstance(each, Member) else arguments.text("members", each) for each in each_one]
    return [f"consumer-{number}" for number in range(1, 1 + arguments.positive("members", given))]


def _id(member: str | Member) -> str:
    return member.id if isinstance(member, Member) else member
