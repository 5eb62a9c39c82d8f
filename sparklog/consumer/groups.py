"""The group of a consumer: no group, a group that it owns, or a group that it is a member of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Protocol

from sparklog import arguments
from sparklog.consumer.records import OffsetAndMetadata, TopicPartition
from sparklog.consumer.requests import Known, Refused, View
from sparklog.consumer.shares import ALONE
from sparklog.errors import SparklogError
from sparklog.groups.commits import OffsetCommit

if TYPE_CHECKING:
    from sparklog.groups.member.membership import Membership
    from sparklog.groups.member.state import MemberSettings
    from sparklog.groups.rows import Position
    from sparklog.groups.table.assigned import Assigned
    from sparklog.groups.table.owner import Owner


class ConsumerGroup(Protocol):
    """The group, as the core asks it (`requests.py`)."""

    name: str | None

    def poll(self) -> View | None: ...

    def take(self) -> View: ...

    def release(self, shares: list[TopicPartition], commits: list[OffsetCommit]) -> View: ...

    def join(self, topics: Collection[str], pattern: str | None, shares: list[TopicPartition], commits: list[OffsetCommit]) -> None: ...

    def leave(self, *, for_good: bool) -> None: ...

    def is_live(self) -> bool: ...

    def positions(self) -> Known: ...

    def commit(self, commits: list[OffsetCommit]) -> Refused: ...

    def is_committed(self, commit: OffsetCommit) -> bool: ...

    def beat(self) -> None: ...


class Alone:
    """A consumer without a group, and the base of a group that one consumer owns: nothing is shared."""

    name: str | None = None

    def poll(self) -> View | None:
        return None

    def take(self) -> View:
        return View({}, [], {}, {})

    def release(self, shares: list[TopicPartition], commits: list[OffsetCommit]) -> View:
        return self.take()

    def join(self, topics: Collection[str], pattern: str | None, shares: list[TopicPartition], commits: list[OffsetCommit]) -> None:
        pass

    def leave(self, *, for_good: bool) -> None:
        pass

    def is_live(self) -> bool:
        return True

    def positions(self) -> Known:
        return {}

    def commit(self, commits: list[OffsetCommit]) -> Refused:
        return {}

    def is_committed(self, commit: OffsetCommit) -> bool:
        return False

    def beat(self) -> None:
        pass


class Owned(Alone):
    """A group that this consumer alone reads for."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self.name = owner.group

    def leave(self, *, for_good: bool) -> None:
        if for_good:
            self._owner.end()

    def positions(self) -> Known:
        return _known(self._owner.positions())

    def commit(self, commits: list[OffsetCommit]) -> Refused:
        def made(left: list[OffsetCommit]) -> Refused:
            self._owner.commit(left)
            return {}

        return _by_itself(commits, made)

    def is_committed(self, commit: OffsetCommit) -> bool:
        return self._owner.is_committed(commit)

    def beat(self) -> None:
        self._owner.beat()


class ByHand(Alone):
    """A group to which this consumer commits the positions of partitions that the program assigned. It does not share the group now."""

    def __init__(self, assigned: Assigned, member: ConsumerGroup) -> None:
        self._assigned, self._member = assigned, member
        self.name = assigned.group

    def leave(self, *, for_good: bool) -> None:
        self._member.leave(for_good=for_good)

    def positions(self) -> Known:
        return _known(self._assigned.positions())

    def commit(self, commits: list[OffsetCommit]) -> Refused:
        def made(left: list[OffsetCommit]) -> Refused:
            self._assigned.commit(left)
            return {}

        # A commit that it began as a member may end after that: then the partition is another's.
        of_member = [each for each in commits if each.holding not in (None, ALONE)]
        refused = self._member.commit(of_member) if of_member else {}
        return refused | _by_itself([each for each in commits if each not in of_member], made)

    def is_committed(self, commit: OffsetCommit) -> bool:
        return self._assigned.is_committed(commit)


class Shared:
    """A group whose members share its topics: this consumer is a member."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self.name: str | None = membership.group

    def poll(self) -> View | None:
        return self._view() if self._membership.poll() else None

    def take(self) -> View:
        self._membership.take()
        return self._view()

    def release(self, shares: list[TopicPartition], commits: list[OffsetCommit]) -> View:
        self._membership.release(shares, commits)
        return self._view()

    def join(self, topics: Collection[str], pattern: str | None, shares: list[TopicPartition], commits: list[OffsetCommit]) -> None:
        self._membership.subscribe(topics, pattern, shares, commits)

    def leave(self, *, for_good: bool) -> None:
        if for_good:
            self._membership.end()
        else:
            self._membership.leave()

    def is_live(self) -> bool:
        return self._membership.is_live

    def positions(self) -> Known:
        return _known(self._membership.positions())

    def commit(self, commits: list[OffsetCommit]) -> Refused:
        return _by_itself(commits, self._membership.commit)

    def is_committed(self, commit: OffsetCommit) -> bool:
        return self._membership.is_committed(commit)

    def beat(self) -> None:
        self._membership.beat()

    def _view(self) -> View:
        its = self._membership
        held = {TopicPartition(*each): share for each, share in sorted(its.held().items(), key=lambda each: each[0])}
        positions = {TopicPartition(each.topic, each.partition): each for each in its.known()}
        return View(held, sorted(TopicPartition(*each) for each in its.to_release()), its.topics(), positions, its.generation)


def _by_itself(commits: list[OffsetCommit], made: Callable[[list[OffsetCommit]], Refused]) -> Refused:
    """Commits, and again without the topics that were deleted or created again: each partition is taken by itself."""
    refused = Refused()
    while commits:
        try:
            return refused | made(commits)
        except SparklogError as error:
            strayed = [each.place for each in commits if each.topic == error.parameters.get("topic")]
            if error.id not in ("TOPIC_RECREATED", "TOPIC_NOT_FOUND", "GROUP_OF_OTHER_TOPIC") or not strayed:
                raise
            refused |= dict.fromkeys(strayed, error)
            commits = [each for each in commits if each.place not in refused]
    return refused


def _known(positions: Iterable[Position]) -> Known:
    return {
        (TopicPartition(each.topic, each.partition), each.topic_id): OffsetAndMetadata(each.offset, each.metadata) for each in positions
    }


def member_settings(
    table: str,
    assignor: str,
    weight: str,
    times: tuple[int, int | None, int],
    instance: str | None,
    capacity: int,
    rack: str | None,
) -> MemberSettings:
    """The member that a consumer is, by its arguments; `times` are the times of session, heartbeat and poll in milliseconds."""
    from sparklog.groups.member.heartbeat_places import default_interval_ms
    from sparklog.groups.member.state import MemberSettings

    session = arguments.positive("session_timeout_ms", times[0])
    heartbeat = default_interval_ms(table, session) if times[1] is None else arguments.positive("heartbeat_interval_ms", times[1])
    max_poll = arguments.positive("max_poll_interval_ms", times[2])
    if 3 * heartbeat > session:
        reason = f"it must be at least three times `heartbeat_interval_ms`, which is {heartbeat}"
        raise SparklogError("OPTION_VALUE", option="session_timeout_ms", value=session, reason=reason)
    instance = None if instance is None else arguments.text("group_instance_id", instance)
    if instance == "":
        raise SparklogError("OPTION_VALUE", option="group_instance_id", value=repr(instance), reason="it must not be empty; leave it out")
    rack = None if rack is None else arguments.text("client_rack", rack)
    return MemberSettings(
        assignor, session / 1000, heartbeat / 1000, max_poll / 1000, instance, arguments.positive("capacity", capacity), rack, weight
    )
