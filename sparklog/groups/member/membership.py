"""Runs a member of a group: its lock, its clock, its thread of heartbeats, and the replies to the requests of its `Standing`."""

from __future__ import annotations

import logging
import random
import socket
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Collection, Iterable
from typing import Any

from sparklog.errors import SparklogError
from sparklog.groups import rows
from sparklog.groups.assignors import Partition
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.member import heartbeats
from sparklog.groups.member import requests as ask
from sparklog.groups.member.heartbeater import Heartbeater
from sparklog.groups.member.heartbeats import pause
from sparklog.groups.member.standing import Begin, Standing
from sparklog.groups.member.state import Hold, MemberSettings
from sparklog.groups.member.weights import Weigher
from sparklog.groups.rows import Position
from sparklog.groups.table.offset_table import OffsetTable
from sparklog.steps import Request, Steps, T, run

_log = logging.getLogger(__name__)
_PATIENCE_S = 5
_PAUSE_S = 0.2
_LONGEST_S = 3.2


def back_off(attempt: int) -> None:
    """Waits before an attempt at a change but the first, for a random time: up to 0.2 s, then up to twice as long each time, at most 3.2 s.

    All members of a large group change its state when a member comes or goes. With the pauses they do not overtake one another for long.
    """
    if attempt:
        time.sleep(random.random() * min(_PAUSE_S * 2 ** (attempt - 1), _LONGEST_S))


class Membership:
    """The place of one consumer in a group, which it takes again under a new id if others expired it. `sparklog.Consumer` makes it.

    One thread calls it; a thread of its own writes heartbeats, which others look for. `Standing` decides. Methods raise
    GenerationFencedError if one owner took the group alone, or another process the place of its instance; MEMBER_FENCED if it commits for a
    share that it lost.
    """

    def __init__(
        self, table: OffsetTable, group: str, settings: MemberSettings, begin: Begin, clock: Callable[[], float] = heartbeats.clock
    ) -> None:
        """`begin` gives the first offset of a share without a position, as `Standing` asks for it. `clock` gives seconds, by which sessions
        and the times between polls are measured.
        """
        self.group = rows.require_group(group)
        self.standing = Standing(self.group, table.path, table.root, settings, begin, clock())
        """The state of the member, and its next steps."""
        self._generations, self._topics = table.generations, table.topics
        self._settings, self._clock = settings, clock
        self.heartbeater = Heartbeater(table.generations.heartbeats(self.group), settings.session_s, table.generations.versions, clock)
        """Its heartbeats, and how long others have been silent."""
        self._weigher = Weigher(table.topics, self.positions)
        self.lock = threading.RLock()
        """Held while the steps of `standing` run; not while a heartbeat is written, and others are looked for."""
        self._told_of: frozenset[str] = frozenset()
        """The members that the log names as members without heartbeats."""
        self._holder: Callable[[], object] = object
        """Gives the object that the member belongs to; None once that was collected."""

    def belongs_to(self, holder: object) -> None:
        """Ends once an object was collected: the member leaves the group with its next heartbeat, and commits nothing.

        Args:
            holder: The object, such as the consumer.
        """
        self._holder = weakref.ref(holder)

    @property
    def id(self) -> str | None:
        """The id of the member; None while it is not a member."""
        return self.standing.id

    # ---- the turns of the caller

    def subscribe(
        self, topics: Iterable[str], pattern: str | None = None, given: Iterable[Partition] = (), commits: Collection[OffsetCommit] = ()
    ) -> None:
        """Names the topics that it reads, and gives up shares of others, in one commit. A later `poll` joins.

        Args:
            topics: The names of the topics.
            pattern: A regular expression for more topics.
            given: The shares to give up.
            commits: The offsets of the next records of these shares.

        Raises:
            GenerationFencedError: If one owner took the group alone.
        """
        with self.lock:
            self._run(self.standing.subscribe(topics, pattern, given, commits))

    def poll(self) -> bool:
        """Joins if it is not a member, and learns what others changed.

        Returns:
            False, without a wait for other threads, if nothing changed.

        Raises:
            GenerationFencedError: If one owner took the group alone, or another process the place of its instance.
        """
        now, its = self._clock(), self.heartbeater
        is_called = (me := self.id) is not None and its.is_called(me)
        # In this order: the thread that makes it live again says first that the state is another one.
        if not self.standing.has_news(now, is_live=its.is_live, is_called=is_called):
            return False
        with self.lock:
            self._run(self.standing.poll(now))
        return True

    def to_release(self) -> list[Partition]:
        """Returns the shares that another member waits for.

        Returns:
            The partitions.
        """
        with self.lock:
            return self.standing.to_release()

    def release(self, shares: Iterable[Partition], commits: Collection[OffsetCommit]) -> None:
        """Gives up shares, and commits offsets of the shares that it still has, in one commit.

        Args:
            shares: The partitions to give up.
            commits: The offsets of the next records.

        Raises:
            GenerationFencedError: If one owner took the group alone.
        """
        with self.lock:
            self._run(self.standing.release(shares, commits))

    def take(self) -> None:
        """Takes free shares that it wants, takes up shares that others gave to it, and commits the beginnings of shares without a position.

        A share that was given to it, and that another member wants now, is given on before it is taken up.

        Raises:
            GenerationFencedError: If one owner took the group alone.
        """
        with self.lock:
            self._run(self.standing.take())

    def held(self) -> dict[Partition, Hold]:
        """Returns the shares that the caller may read. It waits for no other thread.

        Returns:
            The shares, by partition.
        """
        return self.standing.held()

    def topics(self) -> dict[str, str]:
        """Returns the topics that the group reads.

        Returns:
            The ids of the topics, by name.
        """
        return self.standing.topics()

    @property
    def generation(self) -> int:
        """The generation of the group in the newest state that is known."""
        return self.standing.generation

    @property
    def is_live(self) -> bool:
        """Whether no other member may have taken the shares of this one."""
        return self.heartbeater.is_live and not self.standing.is_expired

    def liveness(self) -> Callable[[], bool]:
        """Returns a function that answers `is_live`.

        Returns:
            The function.
        """
        is_live, standing = self.heartbeater.liveness(), self.standing
        return lambda: is_live() and not standing.is_expired

    # ---- as the owner of a group does

    def positions(self) -> list[Position]:
        """Returns the positions of the group, as the table has them now.

        Returns:
            The positions.
        """
        return self._generations.group(self.group).positions

    def known(self) -> list[Position]:
        """Returns the positions of its shares, which no other member can change: they were read when the shares were taken.

        Returns:
            The positions.
        """
        return self.standing.known()

    def is_committed(self, commit: OffsetCommit) -> bool:
        """Returns whether the group is at an offset, as far as this member knows.

        Args:
            commit: The offset.

        Returns:
            True if the group is there.
        """
        return self.standing.holdings.is_committed(commit)

    def commit(self, commits: Collection[OffsetCommit]) -> dict[Partition, SparklogError]:
        """Commits offsets of its shares, as the consumer held them. Only fencing conflicts.

        Args:
            commits: The offsets of the next records.

        Returns:
            The partitions that it no longer owns so, each with its error. They were not committed.

        Raises:
            GenerationFencedError: If one owner took the group alone.
        """
        with self.lock:
            return self._run(self.standing.commit(commits))

    def beat(self) -> None:
        """As the owner of the first share, writes a row of its own again if it wrote no row for a minute. So the group counts as running.

        A member whose heartbeats others do not see does so after a third of its session, without rows if it has no position. No row is
        written while an operator asks members to hold their commits.

        Raises:
            GenerationFencedError: If one owner took the group alone.
            RetryError: OFFSETS_TABLE if the table cannot be written.
        """
        with self.lock:
            self._run(self.standing.beat())

    def end(self) -> None:
        """Ends for good, and leaves the group. A static member stays: a member that joins under its name in time takes its place.

        Raises:
            RetryError: OFFSETS_TABLE if the table cannot be written.
        """
        try:
            self.heartbeater.stop(self._settings.heartbeat_s)
        finally:  # also after an interrupt
            self.leave()

    def leave(self) -> None:
        """Leaves the group; the next `poll` joins it again, under another id.

        A static member falls silent, and stays: the next `poll` takes its place and its shares, if it comes within the session.

        Raises:
            RetryError: OFFSETS_TABLE if the table cannot be written.
        """
        with self.lock:
            self._run(self.standing.leave())

    # ---- heartbeats

    def heartbeat(self) -> None:
        """Writes a heartbeat, looks for a newer state, and expires members that are silent. It is called in a thread of its own."""
        if self._holder() is None:
            self._leave_alone()
            return
        me = self.id
        try:
            found = self._run(self.standing.heartbeat())
            if found is not None:
                if found.silent:
                    self._run_soon(self.standing.expire(found))
                self._run_soon(self.standing.beat())
        except (OSError, SparklogError) as error:
            _log.warning("Member %s of group %s: %s", me, self.group, error)
            if isinstance(error, SparklogError) and error.id == "OFFSETS_TABLE_REPLACED":
                with self.lock:
                    self._run(self.standing.end_by(error))

    def _run_soon(self, steps: Steps[None]) -> None:
        """Runs steps, unless a call of the program takes too long: the next heartbeat must not be late."""
        if self.lock.acquire(timeout=min(self._settings.heartbeat_s, _PATIENCE_S)):
            try:
                self._run(steps)
            finally:
                self.lock.release()

    def _leave_alone(self) -> None:
        after = "its instance stays until its session ends" if self._settings.instance else "it leaves the group"
        _log.warning("A consumer of group %s was collected without a close: %s", self.group, after)
        try:
            self.end()
        except SparklogError as error:  # it falls silent, and others expire it
            _log.warning("It could not leave group %s: %s", self.group, error)

    # ---- requests

    def _run(self, steps: Steps[T]) -> T:
        return run(steps, self.reply)

    def reply(self, request: Request[Any]) -> object:
        """Carries out a request. `made` makes the type checker compare the type of the reply."""
        table, topics, heartbeater, group = self._generations, self._topics, self.heartbeater, self.group
        match request:
            case ask.Clock():
                return request.made(self._clock())
            case ask.Date():
                return request.made(rows.now())
            case ask.Pause():
                pause(request.seconds)
            case ask.BackOff():
                back_off(request.attempt)
            case ask.NewId():
                return request.made(f"{socket.gethostname()}-{uuid.uuid4().hex}")
            case ask.ReadNumber():
                return request.made(table.last(group))
            case ask.ReadState():
                return request.made(table.state(group))
            case ask.ReadGroup():
                return request.made(table.group(group))
            case ask.ReadFenceable():
                return request.made(table.fenceable(group))
            case ask.ReadVersions():
                return request.made(table.versions(request.members))
            case ask.CommitChange(number, generation):
                note = rows.note_of_members(group, generation, request.by, request.why, request.state)
                return request.made(table.commit(group, number, generation, [note, *request.rows], request.versions) is not None)
            case ask.CommitRows(number, generation):
                its = (request.rows, request.member, request.version)
                return request.made(table.commit_of_member(group, number, generation, *its))
            case ask.FindTopic():
                return request.made(topics.find_state(request.name))
            case ask.ReadTopic():
                return request.made(topics.state(request.name))
            case ask.ShareTopics():
                return request.made(topics.shared(request.members))
            case ask.MakeRows():
                return request.made(topics.rows(group, request.commits))
            case ask.Weigh():
                return request.made(self._weigher.weigh(request.state, request.member))
            case ask.WriteHeartbeat():
                return request.made(heartbeater.write(request.member, request.number))
            case ask.BeginHeartbeats():
                heartbeater.live(request.since)
                heartbeater.restart()
                heartbeater.start(self.heartbeat, self._settings.heartbeat_s)
            case ask.EndHeartbeats():
                heartbeater.stop()
            case ask.GoLive():
                heartbeater.live(request.since)
            case ask.IsBeating():
                return request.made(heartbeater.is_live)
            case ask.IsSteady():
                return request.made(heartbeater.is_steady)
            case ask.FindSilent():
                return request.made(self._silent(request))
            case ask.FindDead():
                return request.made(heartbeater.dead(request.sessions, self._settings.heartbeat_s))
            case ask.CallMembers():
                heartbeater.call(request.members)
            case ask.DeleteHeartbeats():
                heartbeater.end(*request.members)
            case ask.WarnOfUnseen():
                where = (request.member, group, heartbeater.folder)
                _log.warning("Member %s of group %s was expired while it was live: others do not see the heartbeats in %s", *where)
            case _:
                raise AssertionError(request)
        return None

    def _silent(self, request: ask.FindSilent) -> list[str]:
        silent = self.heartbeater.silent(request.sessions)
        if unseen := self.heartbeater.unseen - self._told_of:
            self._told_of |= unseen
            where = (", ".join(sorted(unseen)), self.group, self.heartbeater.folder, self.heartbeater.remedy)
            _log.warning("The heartbeats of %s of group %s are not in %s. %s", *where)
        return silent
