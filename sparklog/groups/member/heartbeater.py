"""The heartbeats of a member: writes them, and knows whether the member is live, and which other members are silent."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from sparklog.errors import SparklogError
from sparklog.groups.member.heartbeats import Heartbeats, Mark, Watch, clock, pause

_LIVE = 0.8
"""A member stops by itself after this part of its session, before others may expire it."""

_STRAY = 2
"""A file of no member is deleted after so many sessions in which it did not change."""

_EXIT_S = 10
"""A process that ends waits so long for the heartbeats that are on their way: deltalake crashes where Python ends beneath it."""

_BEATING: weakref.WeakSet[Heartbeater] = weakref.WeakSet()


def _stop_all() -> None:
    found, until = list(_BEATING), time.monotonic() + _EXIT_S
    for each in found:
        each.stop()
    for each in found:
        each.stop(max(0, until - time.monotonic()))


atexit.register(_stop_all)


class Heartbeater:
    """Heartbeats of one member after another, as a consumer joins again. Times are in seconds. Threads may share it."""

    def __init__(
        self,
        heartbeats: Heartbeats,
        session_s: float,
        commits: Callable[[Iterable[str]], Mapping[str, int]],
        clock: Callable[[], float] = clock,
    ) -> None:
        """`commits` gives how often each of these members committed."""
        self._heartbeats, self._session_s, self._commits = heartbeats, session_s, commits
        self._watch, self._strays = Watch(), Watch()
        self._own = ""
        """The member whose heartbeats these are."""
        self._lock = threading.Lock()
        self._clock = clock
        self._counter = 0
        self._beaten = self._live_until = self._live_since = clock()
        self.unseen: frozenset[str] = frozenset()
        """The members without a heartbeat in the folder at the last two looks: a member that is there now may have left since."""
        self._missing: frozenset[str] = frozenset()
        self._called: Mark | None = None
        self._asked = float("-inf")
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    # ---- its own

    @property
    def is_live(self) -> bool:
        """Whether no other member may have expired this one yet."""
        return self._clock() < self._live_until

    @property
    def is_steady(self) -> bool:
        """Whether it was live for all of its session: so others that see its heartbeats did not expire it."""
        return self.is_live and self._clock() - self._live_since > self._session_s

    def liveness(self) -> Callable[[], bool]:
        """A function that answers `is_live`, for a program that asks with each record."""
        clock = self._clock
        return lambda: clock() < self._live_until

    def start(self, beat: Callable[[], None], every_s: float) -> None:
        """Starts a thread that calls `beat` every `every_s` seconds until `stop`, and also when the session of a silent member ends.

        Does nothing if the thread was started before.
        """

        def run() -> None:
            pause = self.pause_s(every_s)
            while not self._stop.wait(pause):
                began = time.monotonic()
                beat()
                pause = self.pause_s(every_s, time.monotonic() - began)

        if self._thread is None:
            self._thread = threading.Thread(target=run, name=f"member of {self._heartbeats.group}", daemon=True)
            self._thread.start()
            _BEATING.add(self)

    def pause_s(self, every_s: float, took_s: float = 0) -> float:
        """The seconds until the next heartbeat, after a heartbeat that took so long: a slow one must not make the next one late."""
        return max(min(every_s - took_s, self._watch.due_s), every_s / 10)

    def stop(self, wait_s: float = 0) -> None:
        """Ends the thread, and waits for it so long."""
        self._stop.set()
        if self._thread not in (None, threading.current_thread()):
            self._thread.join(wait_s)

    def write(self, member: str, number: int) -> float:
        """Writes a heartbeat, and returns when it began to. `live` is to be called with that once the state still has the member.

        RetryError HEARTBEAT if it cannot be written.
        """
        began = self._clock()
        with self._lock:
            self._counter += 1
            self._own = member
            try:
                self._heartbeats.write(member, self._counter, number)
            except OSError as error:
                raise self._error(error) from error
        return began

    def live(self, since: float) -> None:
        """Says that the member was live when it began to write its last heartbeat."""
        if since - self._beaten > self._session_s / 2:
            self.restart()  # it was not live itself, so others may have been all the time
            self._live_since = since
        self._beaten, self._live_until = since, since + _LIVE * self._session_s

    # ---- heartbeats of others

    def restart(self) -> None:
        """Forgets how long others have been silent."""
        self._watch.restart()
        self._strays.restart()

    def silent(self, sessions: Mapping[str, float]) -> list[str]:
        """The members without a heartbeat for their sessions, which are given in seconds; without a commit, where none is in the folder."""
        asked = self._clock()
        found = self._heartbeats.marks()
        marks, now = self._marks(sessions, found), self._clock()
        strays = {each: mark for each, mark in found.items() if each not in sessions and each != self._own}
        if left := self._strays.silent(strays, dict.fromkeys(strays, _STRAY * self._session_s), asked, now):
            self.end(*left)
        return self._watch.silent(marks, sessions, asked, now)

    def dead(self, sessions: Mapping[str, float], every_s: float) -> list[str]:
        """The members, if all of them are silent for their sessions: it watches them for so long, or until one is live.

        RetryError HEARTBEAT if the heartbeats cannot be read.
        """
        try:
            first = self._marks(sessions, self._heartbeats.marks())
            while len(found := self.silent(sessions)) < len(sessions):
                if self._marks(sessions, self._heartbeats.marks()) != first:
                    return []
                pause(min(every_s, *sessions.values()) / 4)
        except OSError as error:
            raise self._error(error) from error
        return found

    def _error(self, cause: OSError) -> SparklogError:
        its = self._heartbeats
        return SparklogError("HEARTBEAT", group=its.group, table=its.table, folder=its.folder, cause=cause)

    def _marks(self, members: Iterable[str], found: Mapping[str, Mark]) -> dict[str, Mark]:
        """The marks of members, by the marks of all heartbeats; of their commits, where none is found."""
        missing = frozenset(members) - found.keys()
        self.unseen, self._missing = missing & self._missing, missing
        commits = self._commits(missing) if missing else {}
        return {each: found[each] if each in found else (0, commits[each]) for each in members}

    def call(self, members: Iterable[str]) -> None:
        """Says to other members that they were given shares. One that is not called learns of them with its heartbeat."""
        for each in members:
            with suppress(OSError):
                self._heartbeats.call(each)

    def is_called(self, member: str) -> bool:
        """Whether another member called this member since the last check.

        Soon after a check the answer is False: on a disk, a check takes as long as some records, and in a bucket it is a request.
        """
        now = self._clock()
        if now - self._asked < self._heartbeats.place.calls_every_s:
            return False
        self._asked = now
        before, self._called = self._called, self._heartbeats.called(member)
        return before != self._called

    @property
    def folder(self) -> str:
        """Where the heartbeats are."""
        return self._heartbeats.folder

    @property
    def remedy(self) -> str:
        """The remedy if members do not see one another's heartbeats."""
        return self._heartbeats.place.remedy

    def end(self, *members: str) -> None:
        """Removes the files of members that are gone, if they can be removed: a file that stays has no meaning."""
        with suppress(OSError):
            self._heartbeats.remove(members)
