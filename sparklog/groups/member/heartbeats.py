"""Heartbeats of members: a file of each, in a folder beside the table; and who was silent for too long."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from sparklog.errors import SparklogError

Mark = tuple[int, int]
"""A mark of a member that is alive. It changes with each heartbeat, or with each commit if its heartbeats are not in the folder.

It is compared, and never read as a time.
"""

_BOOT = getattr(time, "CLOCK_BOOTTIME", None)
clock: Callable[[], float] = time.monotonic if _BOOT is None else functools.partial(time.clock_gettime, _BOOT)
"""Seconds of a clock that only rises, also while the machine sleeps."""


def pause(seconds: float) -> None:
    """Waits."""
    time.sleep(seconds)


class Heartbeats:
    """The folder of a group's heartbeats. OSError if it cannot be read or written."""

    def __init__(self, table: str, group: str) -> None:
        if "://" in table:
            reason = "members need a table on a disk, where their heartbeats are beside it; leave `assignor` out to read the group alone"
            raise SparklogError("OPTION_VALUE", option="table", value=table, reason=reason)
        self._group = group
        # Beside the table itself, also where members name it by different links.
        self.folder = Path(f"{os.path.realpath(table)}.members") / hashlib.sha256(group.encode()).hexdigest()

    def write(self, member: str, counter: int, state: int) -> None:
        """Says that a member is there. The file appears when it is complete."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f".{member}.part"
        part.write_text(json.dumps({"group": self._group, "member": member, "counter": counter, "state": state}), encoding="utf-8")
        part.replace(self.folder / f"{member}.json")

    def call(self, member: str) -> None:
        """Says to a member that it was given a share. A member without a heartbeat in the folder is not called: it may have left."""
        if (self.folder / f"{member}.json").exists():
            (self.folder / f"{member}.given").touch()

    def called(self, member: str) -> int:
        """A number that is another one after each call of a member; 0 before the first call."""
        try:
            return (self.folder / f"{member}.given").stat().st_mtime_ns
        except OSError:
            return 0

    def look(self) -> dict[str, Mark]:
        """The marks of all heartbeats, by the id of the member: one listing."""
        try:
            with os.scandir(self.folder) as found:
                return {each.name[:-5]: _mark(each.stat()) for each in found if each.name.endswith(".json")}
        except FileNotFoundError:
            return {}

    def read(self) -> dict[str, tuple[Mark, int]]:
        """The marks of all heartbeats, by the id of the member, with the number of the state that each member knows.

        It is 0 if the file has no number.
        """
        return {member: (mark, self._state_in(member)) for member, mark in self.look().items()}

    def _state_in(self, member: str) -> int:
        try:
            said = json.loads((self.folder / f"{member}.json").read_text(encoding="utf-8"))["state"]
        except (OSError, ValueError, KeyError, TypeError):  # it was removed, or is not the file of a member
            return 0
        return said if isinstance(said, int) else 0

    def remove(self, members: Iterable[str]) -> None:
        """Removes the files of members that are gone."""
        for member in members:
            (self.folder / f"{member}.json").unlink(missing_ok=True)
            (self.folder / f".{member}.part").unlink(missing_ok=True)
            (self.folder / f"{member}.given").unlink(missing_ok=True)


def _mark(found: os.stat_result) -> Mark:
    return found.st_mtime_ns, found.st_ino


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
