"""The members of a group, the partitions of each, the reasons why partitions wait, and every change that led there."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparklog.groups import rows
from sparklog.groups.member.heartbeats import Mark
from sparklog.groups.member.state import GroupState, Share
from sparklog.groups.plans import named
from sparklog.groups.rows import Position
from sparklog.groups.topic.records import Client
from sparklog.show.display import SHOWN, Display, Displayed, counted, readable, when

_SHOWN_OF_TEXTS = 100


@dataclass(frozen=True)
class GroupMember:
    """A member of a group.

    * assignment: by topic, the partitions that it owns. to_release, to_take: how many others wait for, and how many it waits for.
    * heartbeat: when it last wrote a heartbeat, by the clock of the store; None without a heartbeat. No rule looks at this time.
    * client_id: the name that a client of a server gave itself; None for a member of an offset table.
    """

    consumer_id: str
    host: str | None
    instance: str | None
    capacity: int
    topics: list[str]
    pattern: str | None
    assignment: dict[str, list[int]]
    to_release: int
    to_take: int
    lag: int
    heartbeat: datetime.datetime | None
    client_id: str | None = None

    @property
    def partitions(self) -> int:
        """How many partitions it owns."""
        return sum(map(len, self.assignment.values()))


@dataclass(frozen=True)
class GroupShare:
    """A partition of a group: its owner, the member for which it is planned, and the reason why it waits; None if it does not wait.

    `weight` is its weight for the assignor, in thousands of records, by lag or rate; None if members do not look at these.
    """

    topic: str
    partition: int
    consumer_id: str | None
    wanted_by: str | None
    epoch: int
    waits_for: str | None
    weight: int | None = None


@dataclass(frozen=True)
class GroupChange:
    """A change of a group: which number it has, when and why it was made, and by which member or operator.

    * members: how many there were after it. moved: how many partitions are planned for another member than before, which is still there.
    * owned: how many partitions had an owner after it, of how many.
    """

    number: int
    generation: int
    at: datetime.datetime
    event: str
    by: str | None
    why: str | None
    members: int
    moved: int
    owned: int
    partitions: int


class GroupMembers(Displayed, list[GroupMember]):
    """The members of a group. In a terminal and in a notebook the list shows itself as a table."""

    def __init__(self, group: str, members: Iterable[GroupMember]) -> None:
        super().__init__(members)
        self._group = group

    def _display(self) -> Display:
        return self.display()

    def display(self, most: int | None = SHOWN) -> Display:
        """The table of the first ones, at most that many."""
        columns = ["consumer-id", "host", "#partitions", "lag", "gives up", "waits for", "heartbeat (UTC)", "assignment"]
        cells: list[list[object]] = [
            [
                *(readable(each.consumer_id, _SHOWN_OF_TEXTS), each.host or "", each.partitions, each.lag),
                *(each.to_release, each.to_take, when(each.heartbeat)),
                named((topic, number) for topic, of in each.assignment.items() for number in of),
            ]
            for each in self[:most]
        ]
        return Display(
            f"Group {readable(self._group, 100)}: {counted(len(self), 'member')}", [], columns, cells, more=len(self) - len(cells)
        )


class GroupChanges(Displayed, list[GroupChange]):
    """The changes of a group, the oldest first. In a terminal and in a notebook the list shows the newest as a table."""

    def __init__(self, group: str, changes: Iterable[GroupChange]) -> None:
        super().__init__(changes)
        self._group = group

    def _display(self) -> Display:
        return self.display()

    def display(self, most: int | None = SHOWN) -> Display:
        """The table of the newest ones, at most that many."""
        columns = ["number", "at (UTC)", "why", "by", "members", "moved", "owned"]
        shown = self if most is None else self[-most:]
        cells: list[list[object]] = [
            [
                *(each.number, when(each.at), readable(each.why or each.event, _SHOWN_OF_TEXTS), readable(each.by or "", _SHOWN_OF_TEXTS)),
                *(each.members, each.moved, f"{each.owned} of {each.partitions}" if each.members else ""),
            ]
            for each in shown
        ]
        return Display(
            f"Group {readable(self._group, 100)}: {counted(len(self), 'change')}", [], columns, cells, more=len(self) - len(cells)
        )


def members(state: GroupState, marks: Mapping[str, Mark], lags: Mapping[tuple[str, int], int]) -> list[GroupMember]:
    """The members of a state, with what their heartbeats and the lag of partitions say."""
    found = []
    for id, member in sorted(state.members.items()):
        owned = state.owned(id)
        assignment: dict[str, list[int]] = {}
        for topic, number in sorted(owned):
            assignment.setdefault(topic, []).append(number)
        mark = marks.get(id)
        found.append(
            GroupMember(
                id,
                member.host,
                member.instance,
                member.capacity,
                list(member.topics),
                member.pattern,
                assignment,
                len(state.to_release(id)),
                sum(share.wanted_by == id != share.owner for share in state.shares.values()),
                sum(lags.get(each, 0) for each in owned),
                None if mark is None else datetime.datetime.fromtimestamp(mark[0] / 1e9, datetime.timezone.utc),
            )
        )
    return found


def clients(found: Iterable[Client], lags: Mapping[tuple[str, int], int]) -> list[GroupMember]:
    """The members of a group in a topic. The server has their heartbeats, and writes none."""
    return [
        GroupMember(
            each.id,
            each.host,
            each.instance,
            1,
            list(each.topics),
            each.pattern,
            {topic: sorted(numbers) for topic, numbers in sorted(each.assignment.items())},
            0,
            0,
            sum(lags.get((topic, number), 0) for topic, numbers in each.assignment.items() for number in numbers),
            None,
            each.client_id,
        )
        for each in found
    ]


def shares_of_clients(found: Iterable[Client], generation: int) -> list[GroupShare]:
    """The partitions of the members of a group in a topic, sorted by topic and partition."""
    return sorted(
        (
            GroupShare(topic, number, each.id, each.id, generation, None)
            for each in found
            for topic, numbers in each.assignment.items()
            for number in numbers
        ),
        key=lambda share: (share.topic, share.partition, share.consumer_id or ""),
    )


def shares(state: GroupState) -> list[GroupShare]:
    """The shares of a state, sorted by topic and partition."""
    weighs = state.measure != "count"
    return [
        GroupShare(*each, share.owner, share.wanted_by, share.epoch, _waits_for(share), state.weights.get(each, 0) if weighs else None)
        for each, share in sorted(state.shares.items())
    ]


def _waits_for(share: Share) -> str | None:
    if share.owner == share.wanted_by:
        return None if share.owner else "a member that reads its topic"
    if share.owner is None:
        return f"{share.wanted_by} to take it"
    return f"{share.owner} to give it up" + (f" to {share.wanted_by}" if share.wanted_by else "")


def changes(history: Iterable[Position]) -> list[GroupChange]:
    """The changes that the notes among these rows tell, which are sorted by their number."""
    found, before = [], GroupState("sticky")
    for row in history:
        if not rows.is_note(row):
            continue
        said = json.loads(row.metadata or "{}")
        state = GroupState.of(said) or GroupState(before.assignor)
        moved = sum(
            share.wanted_by not in (None, was.wanted_by) and was.wanted_by in state.members
            for each, share in state.shares.items()
            if (was := before.shares.get(each)) and was.wanted_by
        )
        owned = sum(share.owner is not None for share in state.shares.values())
        event, by, why = said.get("event", ""), said.get("by"), said.get("why")
        of = (len(state.members), moved, owned, len(state.shares))
        found.append(GroupChange(row.seq or 0, row.generation, row.committed_at, event, by, why, *of))
        before = state
    return found
