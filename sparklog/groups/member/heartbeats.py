"""Heartbeats of members: a small file of each, in a place beside the table; and who was silent for too long."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterable, Mapping

from sparklog.groups.member.heartbeat_places import HeartbeatPlace, Mark, place_of

__all__ = ["Heartbeats", "Mark", "Watch", "clock", "pause"]

_BOOT = getattr(time, "CLOCK_BOOTTIME", None)
clock: Callable[[], float] = time.monotonic if _BOOT is None else functools.partial(time.clock_gettime, _BOOT)
"""Seconds of a clock that only rises, also while the machine sleeps."""


def pause(seconds: float) -> None:
    """Waits."""
    time.sleep(seconds)


class Heartbeats:
    """The heartbeats of a group's members. OSError if their place cannot be read or written.

    CallError OPTION_VALUE where it is first used if the store of the table has no place for heartbeats; MEMBERS_EXTRA.
    """

    def __init__(
        self, table: str, group: str, storage_options: Mapping[str, str] | None = None, place: HeartbeatPlace | None = None
    ) -> None:
        """By `storage_options`, deltalake reaches the table. Another `place` is for tests."""
        self.table, self.group = table, group
        self._place, self._options = place, dict(storage_options or {})
        self._read: dict[str, tuple[Mark, int]] = {}

    @functools.cached_property
    def place(self) -> HeartbeatPlace:
        """Where they are."""
        return self._place or place_of(self.table, self.group, self._options)

    @property
    def folder(self) -> str:
        """Where they are, for messages."""
        return self.place.name

    def write(self, member: str, counter: int, state: int) -> None:
        """Says that a member is there. The file appears when it is complete. The counter makes its bytes differ from those before."""
        self.place.put(f"{member}.json", json.dumps({"group": self.group, "member": member, "counter": counter, "state": state}))

    def call(self, member: str) -> None:
        """Says to a member that it was given a share. A member without a heartbeat is not called: it may have left.

        It is looked for afterwards: a member that leaves deletes its heartbeat first, and then the call.
        """
        self.place.touch(f"{member}.given")
        if self.place.mark(f"{member}.json") is None:
            self.place.remove([f"{member}.given"])

    def called(self, member: str) -> Mark | None:
        """A mark that is another one after each call of a member; None before the first call."""
        try:
            return self.place.mark(f"{member}.given")
        except OSError:
            return None

    def marks(self) -> dict[str, Mark]:
        """The marks of all heartbeats, by the id of the member: one listing."""
        return self.place.marks(".json")

    def read(self) -> dict[str, tuple[Mark, int]]:
        """The marks of all heartbeats, by the id of the member, with the number of the state that each member knows.

        It is 0 if the file has no number. Files that did not change since the last call are not read again.
        """
        before = self._read
        self._read = {
            member: known if (known := before.get(member)) is not None and known[0] == mark else (mark, self._state_in(member))
            for member, mark in self.marks().items()
        }
        return self._read

    def _state_in(self, member: str) -> int:
        try:
            said = json.loads(self.place.read(f"{member}.json") or "")["state"]
        except (OSError, ValueError, KeyError, TypeError):  # it was removed, or is not the file of a member
            return 0
        return said if isinstance(said, int) else 0

    def remove(self, members: Iterable[str]) -> None:
        """Removes the files of members that are gone."""
        self.place.remove([f"{member}.{kind}" for member in members for kind in ("json", "given")])


_NEARLY = 0.88
"""Members of one process die together, but their last heartbeats lie up to a tenth of a session apart, plus the time of one heartbeat.
So a member that is silent for this part of its session may be dead too."""
_LATE = 2 - _NEARLY
"""The observer waits for such members until another member was silent for this part of its session."""


class Watch:
    """How long an observer has seen the heartbeats of others as they are."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Mark, float]] = {}
        self.due_s = float("inf")
        """How many seconds after the last look the next session of a member ends, if the member stays silent."""

    def restart(self) -> None:
        """Counts from the next look: the observer was not live itself."""
        self._seen.clear()
        self.due_s = float("inf")

    def silent(self, marks: Mapping[str, Mark], sessions: Mapping[str, float], asked: float, now: float) -> list[str]:
        """The members whose heartbeats are as they were a session ago, by the seconds of their sessions.

        The marks are of some moment between `asked` and `now`: a listing may take minutes, and is then old when it comes. Where another
        member is nearly silent too, none is returned for up to an eighth of a session, and then all of them at once.
        """
        found: dict[str, float] = {}
        waits, self.due_s = False, float("inf")
        seen: dict[str, tuple[Mark, float]] = {}
        for member, session in sessions.items():
            mark = marks[member]
            before, since = self._seen.get(member, (mark, now))
            seen[member] = (mark, since) if before == mark else (mark, now)
            silent = (asked - seen[member][1]) / session
            if silent >= 1:
                found[member] = silent
            else:
                self.due_s = min(self.due_s, (1 - silent) * session)
            waits |= _NEARLY <= silent < 1
        self._seen = seen
        return [] if waits and max(found.values(), default=0) < _LATE else list(found)
