"""The requests of a member of a group: all that `Standing` has done outside. Each request names the type of its reply."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sparklog.groups.assignors import Partition
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.member.state import GroupState, Registered, SharedTopic
from sparklog.groups.rows import Group, Position
from sparklog.ondisk.state import State
from sparklog.steps import Request

# ---- time, and chance


@dataclass(slots=True)
class Clock(Request[float]):
    """The seconds of the clock that measures sessions. It only rises."""


@dataclass(slots=True)
class Date(Request[datetime.datetime]):
    """The time of the day, for the rows of positions."""


@dataclass(slots=True)
class Pause(Request[None]):
    """Some seconds pass."""

    seconds: float


@dataclass(slots=True)
class BackOff(Request[None]):
    """A random time passes before this attempt at a change. The first attempt is 0, and begins at once."""

    attempt: int


@dataclass(slots=True)
class NewId(Request[str]):
    """An id that no member ever had."""


# ---- the table


@dataclass(slots=True)
class ReadNumber(Request[int]):
    """The number of the newest change of the group. Cheap if nothing was committed to the table."""


@dataclass(slots=True)
class ReadState(Request[tuple[int, int, GroupState | None]]):
    """The number of the newest change of the group, the generation, and the state of its members, if they share it."""


@dataclass(slots=True)
class ReadGroup(Request[Group]):
    """The group with its positions."""


@dataclass(slots=True)
class ReadFenceable(Request[tuple[int, Group, dict[str, int]]]):
    """The number of the newest change of the group, the group after it, and the versions of its members.

    A commit that gives these versions conflicts with each commit of a member that the group does not have.
    """


@dataclass(slots=True)
class ReadVersions(Request[Mapping[str, int]]):
    """How often each of these members committed or was fenced."""

    members: Iterable[str]


@dataclass(slots=True)
class CommitChange(Request[bool]):
    """Commits the state after a change of this number, with rows. False if another change has the number.

    False too if a member in `versions` has another version. Each of these members has its next version after the commit.
    """

    number: int
    generation: int
    by: str
    why: str
    state: GroupState
    rows: list[Position]
    versions: Mapping[str, int]


@dataclass(slots=True)
class CommitRows(Request[bool]):
    """Commits rows of a member, which knows the state of this number. False if the state is another one, or the version of the member."""

    number: int
    generation: int
    rows: list[Position]
    member: str
    version: int


# ---- the topics


@dataclass(slots=True)
class FindTopic(Request[State | None]):
    """The newest state of a topic; None if the topic does not exist."""

    name: str


@dataclass(slots=True)
class ReadTopic(Request[State]):
    """The newest state of a topic. CallError TOPIC_NOT_FOUND."""

    name: str


@dataclass(slots=True)
class ShareTopics(Request[dict[str, SharedTopic]]):
    """The topics that members read, as they are now."""

    members: Collection[Registered]


@dataclass(slots=True)
class MakeRows(Request[list[Position]]):
    """The rows of commits, which are checked against their topics. SparklogError if a topic is gone, or another topic now."""

    commits: list[OffsetCommit]


@dataclass(slots=True)
class Weigh(Request[dict[Partition, int] | None]):
    """The load of each partition, if it is this member that is to measure loads, and the time to do so. It is None otherwise."""

    state: GroupState
    member: str | None


# ---- heartbeats


@dataclass(slots=True)
class WriteHeartbeat(Request[float]):
    """Writes a heartbeat of a member, which knows the state of this number. The reply is when the write began. RetryError HEARTBEAT."""

    member: str
    number: int


@dataclass(slots=True)
class BeginHeartbeats(Request[None]):
    """From now on the thread of heartbeats runs. The member joined with a heartbeat of this time, and watches the others from now on."""

    since: float


@dataclass(slots=True)
class EndHeartbeats(Request[None]):
    """Ends the thread of heartbeats."""


@dataclass(slots=True)
class GoLive(Request[None]):
    """The member was live when it began to write its last heartbeat: the state still had it afterwards."""

    since: float


@dataclass(slots=True)
class IsBeating(Request[bool]):
    """Whether its last heartbeat is so young that no other member may have expired it."""


@dataclass(slots=True)
class IsSteady(Request[bool]):
    """Whether it was live for all of its session."""


@dataclass(slots=True)
class FindSilent(Request[list[str]]):
    """The members without a heartbeat for their sessions, which are in seconds."""

    sessions: Mapping[str, float]


@dataclass(slots=True)
class FindDead(Request[list[str]]):
    """These members, if all of them are silent for their sessions: they are watched for so long, or until one is live."""

    sessions: Mapping[str, float]


@dataclass(slots=True)
class CallMembers(Request[None]):
    """Says to other members that they were given shares."""

    members: Collection[str]


@dataclass(slots=True)
class DeleteHeartbeats(Request[None]):
    """Deletes the heartbeats of members that are gone."""

    members: Collection[str]


@dataclass(slots=True)
class WarnOfUnseen(Request[None]):
    """The log says that others do not see the heartbeats of this member."""

    member: str
