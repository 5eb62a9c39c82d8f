"""The groups of a table, and the generations of their owners."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups import rows
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.member.heartbeats import Heartbeats
from sparklog.groups.member.state import GroupState
from sparklog.groups.rows import Group, Position
from sparklog.groups.table.lake import Lake

_log = logging.getLogger(__name__)
_LISTED = 20
"""An error lists this many groups."""
OF_OPERATORS = ("reset", "load", "forget")
"""Events after which the members of a group go on."""
HOLD_S = 5.0
"""So long members hold their commits for a change that an operator announced."""
_MAINTAINED_AFTER = 50
"""The table is maintained after this many of its versions, by the program that made the last one: a look-up opens each file of them."""


class Generations:
    """The groups that the rows of a table tell of. It alone commits rows.

    Each commit of a group has the next number, so it is made only if nothing was committed to the group since its writer looked. By that
    a claim begins with every commit that was acknowledged, and a writer whose generation is over adds nothing.
    """

    def __init__(self, path: str, lake: Lake) -> None:
        self._path = path
        self._lake = lake
        self._known: dict[str, tuple[int, Group]] = {}
        """By name, the groups that this object committed to, each as it was after its commit of the number."""
        self._refreshed: dict[str, tuple[int, Group]] = {}
        """By name, the groups that this object read, each as it was at the version of the table."""
        self._states: dict[str, tuple[int, int, GroupState | None]] = {}
        """By name, the last answer of `state`: the thread of heartbeats and its program ask for the same change."""

    # ---- reading

    def all(self) -> dict[str, Group]:
        """The groups that exist, by name, sorted. CallError OFFSETS_TABLE_NOT_FOUND: a table that is not there may be a wrong path."""
        found = {name: group for name, group in rows.current(self._lake.rows(current=True)).items() if group.exists}
        if not found:
            self._require_table()
        return found

    def some(self, names: Sequence[str] | str | None) -> list[Group]:
        """The groups of these names, one or several, or all that exist. CallError if one does not exist."""
        if names is None:
            return list(self.all().values())
        return [self.existing(name) for name in arguments.texts("groups", names)]

    def group(self, name: str) -> Group:
        """The group of this name, which need not exist. Each call reads only the rows that came since the last one."""
        version, before = self._refreshed.get(rows.require_group(name), (None, Group(name, [])))
        found = self._lake.refresh(name, version)
        read = rows.positions(found.rows)
        group = Group(name, read) if found.is_whole else before.after(read)
        self._refreshed[name] = found.version, group
        return group

    def state(self, name: str) -> tuple[int, int, GroupState | None]:
        """The number of the newest change of a group, the generation, and the state of its members, if they share it. Cheap."""
        number = self._lake.last(rows.require_group(name))
        known = self._states.get(name)
        if known is None or known[0] != number or known[2] is None:
            notes = rows.positions(self._lake.note(name, number))
            group = Group(name, notes) if notes else self.group(name)
            known = self._states[name] = max(number, group.note_seq), group.generation, group.state
        return known

    def state_after(self, name: str, number: int) -> GroupState | None:
        """The state of the members of a group after its change of this number; None if the table no longer has that change."""
        return Group(name, rows.positions(self._lake.note(name, number))).state

    def existing(self, name: str) -> Group:
        """The group of this name. CallError if it does not exist."""
        group = self.group(name)
        if not group.exists:
            self._require_table()
            found = self.all()
            if name in found:  # it began between the two reads
                return found[name]
            names = list(found)
            listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
            raise SparklogError("GROUP_NOT_FOUND", group=name, table=self._path, groups=listed or "none")
        return group

    def heartbeats(self, name: str) -> Heartbeats:
        """The heartbeats of a group's members, which are reached as the table is."""
        return Heartbeats(self._path, name, self._lake.storage_options)

    def _require_table(self) -> None:
        if not self._lake.exists():
            raise SparklogError("OFFSETS_TABLE_NOT_FOUND", table=self._path)

    def require_still(self, group: Group, *, force: bool) -> None:
        """CallError if the group is running, unless `force`."""
        if not force and group.is_running(rows.now()):
            raise SparklogError("GROUP_RUNNING", group=group.name, table=self._path, last=group.last)

    def require_newest(self, name: str, generation: int) -> None:
        """GenerationFencedError if the newest generation of a group is another one."""
        self._newest(name, generation)

    def remembered(self, name: str, generation: int) -> Mapping[tuple[str, int], Position]:
        """The positions of a generation by topic and partition, as they were when this object last committed to it; it asks for nothing.

        None of them if another generation has begun by then.
        """
        known = self._known.get(name)
        return known[1].at if known and known[1].generation == generation else {}

    def is_committed(self, name: str, generation: int, commit: OffsetCommit) -> bool:
        """Whether a generation is at this offset, as far as this object knows; it asks for nothing."""
        known = self.remembered(name, generation).get(commit.place)
        return known is not None and (known.topic_id, known.offset) == (commit.topic_id, commit.offset)

    # ---- commits

    def claim(
        self,
        name: str,
        event: str,
        moved: Callable[[Group], list[Position]],
        *,
        carry: bool = True,
        after: int | None = None,
        dropped: Collection[str] = (),
        more: Mapping[str, int] | None = None,
    ) -> int:
        """Takes the next generation of a group in one commit with its first positions, and returns it.

        These are the positions that `moved` makes from the group just before. With `carry`, the group's other positions stay, without
        positions in the topics `dropped`. With `after`, only if that is still the newest generation: GenerationFencedError otherwise.
        `more` are fields of its note.
        """
        announced = float("-inf")
        for attempt in itertools.count():
            if attempt and time.monotonic() - announced >= HOLD_S and self.announce(name):
                announced = time.monotonic()
            last, group, versions = self.fenceable(name)
            if after is not None and after != group.generation:
                raise self.fenced(name, after, group.generation)
            # Rows that were deleted by hand leave the number of their commit, and no generation of theirs was above it.
            generation = (group.generation or last) + 1
            first = moved(group)
            keys = {(each.topic, each.partition) for each in first}
            ids = {each.topic: each.topic_id for each in first}
            old = [each for each in group.positions if carry and group.exists and each.topic not in dropped]
            # Members begin at the first records of a topic that was created again, by the rows of the topic before.
            kept = [each for each in old if _stays(each, keys, ids if group.state is None else {})]
            at = rows.now()
            begun = [dataclasses.replace(each, committed_at=at) for each in kept + first]
            # A position that is where it was before is moved, too: its owner has read on, and not committed that.
            left = keys | {each for each in group.state.shares if each[0] in dropped} if group.state else keys
            stays = group.state.reset(left) if group.state and event in OF_OPERATORS else None
            note = rows.note(name, generation, event, more)
            noted = rows.note_of_members(name, generation, "operator", event, stays, event) if stays else note
            if (numbered := self.commit(name, last + 1, generation, [noted, *begun], versions)) is not None:
                self._known[name] = last + 1, group.after(numbered)
                return generation
        raise AssertionError

    def announce(self, name: str) -> bool:
        """Asks the members of a group to hold their commits for `HOLD_S`, since a change of it found no moment without one."""
        last, generation, state = self.state(name)
        if state is None:
            return False
        asked = dataclasses.replace(state, announced=uuid.uuid4().hex)
        note = rows.note_of_members(name, generation, "operator", "asks members to wait", asked)
        return self.commit(name, last + 1, generation, [note]) is not None

    def fenceable(self, name: str) -> tuple[int, Group, dict[str, int]]:
        """The number of the newest commit of a group, the group after it, and the versions of its members.

        The group has every commit that these count: a commit that gives them too conflicts with each that came later.
        """
        last, _, state = self.state(name)
        versions = {} if state is None else self.versions(state.members)
        return last, self.group(name), versions

    def add(self, name: str, generation: int, made: Callable[[Group], list[Position]]) -> int:
        """Adds to the newest generation of a group, in one commit, the rows that `made` makes of it, and returns how many are positions.

        GenerationFencedError if it is another generation now. Without rows, nothing is committed.
        """
        while True:
            last, group = self._newest(name, generation)
            added = made(group)
            if not added:
                return 0
            if (numbered := self.commit(name, last + 1, generation, added)) is not None:
                self._known[name] = last + 1, group.after(numbered)
                return sum(not rows.is_note(each) for each in added)

    def follow(self, name: str, moved: Sequence[Position]) -> None:
        """Moves a group to positions that it has committed elsewhere. It adds the rows that changed, if no other program moved the group.

        Where another one did, or a position goes back, it takes the next generation.
        """
        while True:
            last, group = self._current(name)
            at = [group.at.get((each.topic, each.partition)) for each in moved]
            goes_back = any(
                was and (was.topic_id != each.topic_id or was.offset > each.offset) for was, each in zip(at, moved, strict=True)
            )
            if group.event != "load" or group.state is not None or goes_back:
                self.claim(name, "load", lambda _: list(moved))
                return
            new = [each for was, each in zip(at, moved, strict=True) if was is None or was.offset != each.offset]
            if not new:
                return
            if (numbered := self.commit(name, last + 1, group.generation, new)) is not None:
                self._known[name] = last + 1, group.after(numbered)
                return

    def end(self, name: str, generation: int) -> None:
        """Says that the owner of a generation ends. GenerationFencedError as in `add`."""
        self.add(name, generation, lambda _: [rows.note(name, generation, "end")])

    # ---- within

    def _newest(self, name: str, generation: int) -> tuple[int, Group]:
        """As `_current`. GenerationFencedError if this is not the newest generation of the group."""
        known = self._current(name)
        if generation != known[1].generation or generation < 1:
            raise self.fenced(name, generation, known[1].generation)
        return known

    def _current(self, name: str) -> tuple[int, Group]:
        """The number of the newest commit of a group, and the group after it."""
        last = self._lake.last(name)
        known = self._known.get(name)
        if known is None or known[0] != last:
            known = self._known[name] = last, self.group(name)
        return known

    def commit(
        self, name: str, number: int, generation: int, added: list[Position], versions: Mapping[str, int] | None = None
    ) -> list[Position] | None:
        """Commits rows to a group that was read after its number before this one; the rows. None if another commit has the number.

        None too if any of these members has another version now. Each member has its next version after the commit.
        """
        numbered = _numbered(added, number, generation)
        return numbered if self._append(numbered, name, number, versions or {}) else None

    def commit_of_member(self, name: str, number: int, generation: int, added: list[Position], member: str, version: int) -> bool:
        """Commits rows of a member, which knows the state of this number. False if its version is another one, or the state."""
        return self._append(_numbered(added, number, generation), name, None, {member: version}, seen=number)

    def last(self, name: str) -> int:
        """The number of the newest change of a group. Cheap if nothing was committed to the table."""
        return self._lake.last(name)

    def version(self, member: str) -> int:
        """How often a member committed or was fenced."""
        return self.versions([member])[member]

    def versions(self, members: Iterable[str]) -> dict[str, int]:
        """How often each of these members committed or was fenced."""
        return self._lake.versions(members)

    def _append(self, added: list[Position], name: str, number: int | None, versions: Mapping[str, int], seen: int | None = None) -> bool:
        """Commits rows as `Lake.append` does, and maintains the table if it is due."""
        version = self._lake.append(rows.table_of(added), name, number, versions, seen)
        if version is None:
            return False
        if version % _MAINTAINED_AFTER == 0:
            try:
                self._lake.maintain()
            except SparklogError as error:
                _log.warning("the offset table was not maintained: %s", error)
        return True

    def fenced(self, name: str, generation: int, newest: int) -> SparklogError:
        """The error of a program whose generation is over."""
        return SparklogError("GENERATION_FENCED", group=name, generation=generation, newest=newest, table=self._path)


def _numbered(added: list[Position], number: int, generation: int) -> list[Position]:
    return [dataclasses.replace(each, generation=generation, seq=number) for each in added]


def _stays(position: Position, moved: set[tuple[str, int]], ids: Mapping[str, str]) -> bool:
    """Whether a position goes over to the next generation: it was not moved, nor is it in a topic that was created again."""
    return (position.topic, position.partition) not in moved and ids.get(position.topic, position.topic_id) == position.topic_id
