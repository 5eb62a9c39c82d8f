"""A member of a group: it owns shares of the topics, commits for them, and expires members that went silent."""

from __future__ import annotations

import dataclasses
import logging
import weakref
from collections.abc import Callable, Collection, Iterable

from sparklog.errors import SparklogError
from sparklog.groups import rows
from sparklog.groups.assignors import Partition
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.member.standing import Standing
from sparklog.groups.member.state import GroupState, Held
from sparklog.groups.rows import Position

_log = logging.getLogger(__name__)
_PATIENCE_S = 5
_ROW_EVERY_S = 60  # a group without a new row for three minutes does not count as running


class Membership(Standing):
    """The place of one consumer in a group, which it takes again under a new id if others expired it. `sparklog.Consumer` makes it.

    One thread calls it; a thread of its own writes heartbeats, which others look for. Methods raise GenerationFencedError if one owner took
    the group alone, or another process the place of its instance; MEMBER_FENCED if it commits for a share that it lost.
    """

    def belongs_to(self, holder: object) -> None:
        """Ends once an object was collected: the member leaves the group with its next heartbeat, and commits nothing.

        Args:
            holder: The object, such as the consumer.
        """
        self._holder = weakref.ref(holder)

    # ---- the turns of the caller

    def subscribe(
        self, topics: Iterable[str], pattern: str | None = None, given: Iterable[Partition] = (), commits: Collection[OffsetCommit] = ()
    ) -> None:
        """Names the topics that it reads, and gives up shares of others, in one commit. A later `look` joins.

        Args:
            topics: The names of the topics.
            pattern: A regular expression for more topics.
            given: The shares to give up.
            commits: The offsets of the next records of these shares.

        Raises:
            GenerationFencedError: If one owner took the group alone.
        """
        with self._lock:
            self._reads = (tuple(sorted(topics)), pattern)
            if self.id is not None:

                def step(state: GroupState) -> GroupState:
                    me = self.id or ""
                    return self._with_me(state.released(me, given), me).taken(me)

                self._change("subscribes", step, self._placed(commits))

    def look(self) -> bool:
        """Joins if it is not a member, and learns what others changed.

        Returns:
            False, without a wait for other threads, if nothing changed.

        Raises:
            GenerationFencedError: If one owner took the group alone, or another process the place of its instance.
        """
        self._polled = now = self._clock()
        is_due = now - self._refreshed >= self._settings.heartbeat_s
        if (me := self.id) is not None and self._heartbeater.is_called(me):
            self._changed = True
        # In this order: the thread that makes it live again says first that the state is another one.
        if self._heartbeater.is_live and not self._changed and self._state is self._turned and not is_due:
            return False
        with self._lock:
            if self._ended is not None:
                raise self._ended
            if self.id is not None and (not self._heartbeater.is_live or self._changed):
                self._revive()
            if self.id is None:
                self._join()
            if is_due:
                self._refresh()
        return True

    def to_release(self) -> list[Partition]:
        """Returns the shares that another member waits for.

        Returns:
            The partitions.
        """
        with self._lock:
            return [each for each in self._state.to_release(self.id or "") if each in self._mine]

    def release(self, shares: Iterable[Partition], commits: Collection[OffsetCommit]) -> None:
        """Gives up shares, and commits offsets of the shares that it still has, in one commit.

        Args:
            shares: The partitions to give up.
            commits: The offsets of the next records.

        Raises:
            GenerationFencedError: If one owner took the group alone.
        """
        with self._lock:
            self._waits_for_operator()
            given = [each for each in shares if each in self._mine]
            placed = self._placed(commits)
            self._change("releases", lambda state: state.released(self.id or "", given).taken(self.id or ""), placed)

    def take(self) -> None:
        """Takes free shares that it wants, takes up shares that others gave to it, and commits the beginnings of shares without a position.

        A share that was given to it, and that another member wants now, is given on before it is taken up.

        Raises:
            GenerationFencedError: If one owner took the group alone.
        """
        with self._lock:
            self._waits_for_operator()

            def step(state: GroupState) -> GroupState:
                me = self.id or ""
                return state.released(me, [each for each in state.to_release(me) if each not in self._mine]).taken(me)

            if self.id is not None and step(self._state) != self._state:
                self._change("takes", step)
            self._take_up()
            self._turned = self._state

    def held(self) -> dict[Partition, Held]:
        """Returns the shares that the caller may read. It waits for no other thread: a dict is copied in one step.

        Returns:
            The shares, by partition.
        """
        return dict(self._mine)

    def topics(self) -> dict[str, str]:
        """Returns the topics that the group reads.

        Returns:
            The ids of the topics, by name.
        """
        return {name: topic.id for name, topic in self._state.topics.items()}

    @property
    def generation(self) -> int:
        """The generation of the group in the newest state that is known."""
        return self._generation

    @property
    def is_live(self) -> bool:
        """Whether no other member may have taken the shares of this one."""
        return self._heartbeater.is_live

    def liveness(self) -> Callable[[], bool]:
        """Returns a function that answers `is_live`.

        Returns:
            The function.
        """
        return self._heartbeater.liveness()

    # ---- as the owner of a group does

    def known(self) -> list[Position]:
        """Returns the positions of its shares, which no other member can change: they were read when the shares were taken.

        Returns:
            The positions.
        """
        return list(self._at.values())

    def commit(self, commits: Collection[OffsetCommit]) -> dict[Partition, SparklogError]:
        """Commits offsets of its shares, as the consumer held them. Only fencing conflicts.

        Args:
            commits: The offsets of the next records.

        Returns:
            The partitions that it no longer owns so, each with its error. They were not committed.

        Raises:
            GenerationFencedError: If one owner took the group alone.
        """
        with self._lock:
            if self._ended is not None:
                raise self._ended
            while True:
                mine, refused = self._of_mine(commits)
                if not mine:
                    return refused
                if not self._heartbeater.is_live:
                    self._revive()
                    continue
                if self._waits_for_operator():
                    continue
                placed = self._moved(mine)
                if not placed:
                    return refused
                if any(map(self._is_back, placed)):
                    if self._go_back(placed):
                        return refused
                elif self._has_committed(placed):
                    self._remember(placed)
                    return refused
                else:
                    self._adopt()

    def beat(self) -> None:
        """As the owner of the first share, writes a row of its own again if it wrote no row for a minute. So the group counts as running.

        A member whose heartbeats others do not see does so after a third of its session, without rows if it has no position. No row is
        written while an operator asks members to hold their commits.

        Raises:
            GenerationFencedError: If one owner took the group alone.
            RetryError: OFFSETS_TABLE if the table cannot be written.
        """
        with self._lock:
            every = min(_ROW_EVERY_S, self._settings.session_s / 3) if self._is_unseen else _ROW_EVERY_S
            if self._clock() - self._wrote < every or self.id is None or self._state.announced not in (None, self._waited_for):
                return
            self._wrote = self._clock()
            known = next((at for share, at in self._at.items() if share in self._mine), None)
            if self._is_unseen or (known is not None and self._state.first_owner() == self.id):
                again = [dataclasses.replace(known, committed_at=rows.now())] if known else []
                self._changed |= not self._has_committed(again)

    def end(self) -> None:
        """Ends for good, and leaves the group. A static member stays: a member that joins under its name in time takes its place.

        Raises:
            RetryError: OFFSETS_TABLE if the table cannot be written.
        """
        try:
            self._heartbeater.stop(self._settings.heartbeat_s)
        finally:  # also after an interrupt
            self.leave()

    def leave(self) -> None:
        """Leaves the group; the next `look` joins it again, under another id.

        A static member falls silent, and stays: the next `look` takes its place and its shares, if it comes within the session.

        Raises:
            RetryError: OFFSETS_TABLE if the table cannot be written.
        """
        with self._lock:
            self._mine = {}
            if self._settings.instance is None:
                if self.id is not None:
                    self._change("leaves", lambda state: state.without(self.id or "").given(), own=True)
                if self.id is not None:
                    self._heartbeater.end(self.id)
            self.id = self._turned = None

    # ---- heartbeats

    @property
    def _patience_s(self) -> float:
        """So long the thread of heartbeats waits for a call of the program, at most twice: the next heartbeat must not be late."""
        return min(self._settings.heartbeat_s, _PATIENCE_S)

    def _beat(self) -> None:
        """Writes a heartbeat, looks for a newer state, and expires members that are silent. It is called in a thread of its own."""
        me = self.id
        if self._holder() is None:
            self._leave_alone()
            return
        if me is None or self._clock() - self._polled > self._settings.max_poll_s:
            return  # the program hangs, or polls no more: others go on with its shares
        try:
            began = self._heartbeater.write(me, self._number)
            number = self._generations.last(self.group)
            if number == self._number:
                self._watched = number, self._state
            elif number != self._watched[0] and (state := self._generations.state(self.group)[2]) is not None:
                self._watched = number, state  # a program in a long batch watches those too that came since its last poll
            self._changed |= number != self._number  # after the state was read, which its program then finds in memory
            self._heartbeater.live(began)
            self._expire(me, self._newest_known())
            if self._lock.acquire(timeout=self._patience_s):
                try:
                    self.beat()
                finally:
                    self._lock.release()
        except (OSError, SparklogError) as error:
            _log.warning("Member %s of group %s: %s", me, self.group, error)
            if isinstance(error, SparklogError) and error.id == "OFFSETS_TABLE_REPLACED":
                with self._lock:
                    self._end_by(error)

    def _newest_known(self) -> GroupState:
        """The newest state that the thread of heartbeats knows."""
        return self._watched[1]

    def _leave_alone(self) -> None:
        after = "its instance stays until its session ends" if self._settings.instance else "it leaves the group"
        _log.warning("A consumer of group %s was collected without a close: %s", self.group, after)
        try:
            self.end()
        except SparklogError as error:  # it falls silent, and others expire it
            _log.warning("It could not leave group %s: %s", self.group, error)

    def _expire(self, me: str, state: GroupState) -> None:
        silent = self._heartbeater.silent(state.sessions(but=me))
        if unseen := self._heartbeater.unseen - self._told_of:
            self._told_of |= unseen
            where = (", ".join(sorted(unseen)), self.group, self._heartbeater.folder, self._heartbeater.remedy)
            _log.warning("The heartbeats of %s of group %s are not in %s. %s", *where)
        if not silent or not self._lock.acquire(timeout=self._patience_s):
            return
        try:
            if self.id == me and self._state is not state:
                self._adopt()
            gone = [each for each in silent if each in self._state.members]
            if (
                gone
                and self.id == me
                and self._change(f"expires {', '.join(gone)}", lambda state: state.without(*gone).given(), fenced=gone)
            ):
                self._changed = True
                self._heartbeater.end(*gone)
        finally:
            self._lock.release()
