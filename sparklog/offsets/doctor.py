"""The doctor of a group: the reasons why it is stuck or slow, each with its place and its remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from sparklog.assignors import Partition
from sparklog.barrier import Barrier
from sparklog.errors import SparklogError
from sparklog.offsets.generations import HOLD_S, Generations
from sparklog.offsets.heartbeats import Heartbeats, Mark, clock, pause
from sparklog.offsets.lake import Upkeep
from sparklog.offsets.members import ASSIGNORS, Registered, Share, State, is_pattern
from sparklog.offsets.plans import named
from sparklog.offsets.rows import Group, now
from sparklog.offsets.topics import Topics
from sparklog.ondisk.state import State as TopicState
from sparklog.show.display import Display, Displayed, counted, readable

Severity = Literal["error", "warning", "note"]
"""`error`: the group or a part of it stands still. `warning`: it is slow, or will stand still. `note`: it may be meant so."""
WATCH_S = 30.0
"""The longest time for which a group is watched by default."""
_LOOKS_EVERY_S = 0.5
_BEHIND = 200
"""Upkeep is behind if a table has more commits since its checkpoint, or more files: it is due after every 50 commits."""


@dataclass(frozen=True)
class GroupFinding:
    """A reason why a group waits or is slow.

    * severity: `error`, `warning` or `note`. rule: a name of the kind of finding that stays the same, such as `member-silent`.
    * where: the member, the partition, the topic or the folder. text: the reason. fix: the remedy.
    """

    severity: Severity
    rule: str
    where: str
    text: str
    fix: str


class GroupDiagnosis(Displayed, list[GroupFinding]):
    """The findings about a group, errors first. In a terminal and in a notebook the list shows itself as a table."""

    def __init__(self, group: str, found: Iterable[GroupFinding]) -> None:
        order = ("error", "warning", "note")
        super().__init__(sorted(found, key=lambda each: (order.index(each.severity), each.rule, each.where)))
        self.group = group

    @property
    def is_stuck(self) -> bool:
        """Whether the group, or a part of it, stands still: there is an error among the findings."""
        return any(each.severity == "error" for each in self)

    def _display(self) -> Display:
        return self.display()

    def display(self) -> Display:
        """The table of all findings; a line alone for a group that is well."""
        name = readable(self.group, 100)
        if not self:
            return Display(f"Group {name} is well: nothing keeps it from going on.", [], [], [])
        counts = Counter(each.severity for each in self)
        about = ", ".join(counted(count, severity) for severity, count in counts.items())
        cells: list[list[object]] = [[each.severity, each.rule, each.where, each.text, each.fix] for each in self]
        return Display(f"Group {name}: {about}", [], ["severity", "rule", "where", "finding", "remedy"], cells)


@dataclass(frozen=True)
class _Look:
    """A group at one moment, with the signs of life of its members."""

    group: Group
    number: int
    beats: dict[str, tuple[Mark, int]] | None
    """By member the mark of its heartbeat, and the number of the state that it knows. None: the folder cannot be read."""
    commits: dict[str, int]

    @property
    def state(self) -> State:
        return self.group.state or State("sticky")


def diagnose(name: str, generations: Generations, topics: Topics, path: str, upkeep: Upkeep | None, watch_s: float) -> GroupDiagnosis:
    """Watches a group for so many seconds, or until all members gave a sign of life and nothing is on its way, and gives the findings.

    It only reads. CallError if the group does not exist, or the table was opened without a root.
    """
    generations.existing(name)
    _ = topics.logs
    group = _Case(name, generations, topics, path, watch_s)
    return GroupDiagnosis(name, [*group.members(), *group.shares(), *group.positions(), *group.cuts(), *_upkeep(path, upkeep)])


class _Case:
    """A group that was watched, and the findings about it."""

    def __init__(self, name: str, generations: Generations, topics: Topics, path: str, watch_s: float) -> None:
        self._name, self._generations, self._topics, self._path = name, generations, topics, path
        self._heartbeats: Heartbeats | None = None
        self.first = self.last = self._look()
        self._signs: dict[str, str] = {}
        """By member, how it showed that it is alive: `heartbeat` or `commit`."""
        began = clock()
        while not self._is_clear() and clock() - began < watch_s:
            pause(min(_LOOKS_EVERY_S, watch_s))
            self.last = self._look()
            for id in self.last.state.members:
                if self._beat(self.last, id) not in (None, self._beat(self.first, id)):
                    self._signs[id] = "heartbeat"
                elif self.last.commits[id] != self.first.commits.get(id, 0):
                    self._signs.setdefault(id, "commit")
        self._watched_s = min(clock() - began, watch_s)
        self._unreadable: dict[str, SparklogError] = {}
        names = {topic for topic, _ in self.last.group.at} | self.last.state.topics.keys()
        names |= {topic for each in self.last.state.members.values() for topic in each.topics}
        self._states = {each: state for each in sorted(names) if (state := self._find(each)) is not None}

    def _look(self) -> _Look:
        number = self._generations.last(self._name)
        group = self._generations.group(self._name)
        if group.state is None:
            return _Look(group, number, {}, {})
        self._heartbeats = self._heartbeats or Heartbeats(self._path, self._name)
        try:
            beats = self._heartbeats.read()
        except OSError:
            beats = None
        return _Look(group, number, beats, self._generations.versions(group.state.members))

    @staticmethod
    def _beat(look: _Look, id: str) -> Mark | None:
        return (look.beats or {}).get(id, (None, 0))[0]

    def _find(self, topic: str) -> TopicState | None:
        try:
            return self._topics.find_state(topic)
        except SparklogError as error:
            self._unreadable[topic] = error
            return None

    def _is_clear(self) -> bool:
        """Whether all members gave a sign of life, and nothing is on its way."""
        state = self.last.state
        moves = any(share.owner != share.wanted_by for share in state.shares.values())
        return not (state.members.keys() - self._signs.keys() or moves or state.announced or self._behind())

    def _behind(self) -> list[str]:
        """The members that live and know a state from before the first look, so they did not poll since, and for which partitions wait."""
        state, beats, changed = self.last.state, self.last.beats or {}, self.first.group.note_seq
        late = [each for each in state.members if each in self._signs and each in beats and 0 < beats[each][1] < changed]
        return [each for each in late if state.to_release(each) or state.to_take(each)]

    # ---- findings

    def members(self) -> Iterator[GroupFinding]:
        """Members that do not live, that are not seen, that do not poll, and that read nothing."""
        state = self.last.state
        if state.assignor not in ASSIGNORS:
            text = f"Members share the topics by {state.assignor}, which this version does not know."
            yield GroupFinding("error", "assignor-unknown", f"group {self._name}", text, "Run the version of the members here, or upgrade.")
        if self.last.beats is None and self._heartbeats is not None:
            fix = "Mount the folder beside the table, with the right to read it, on this machine."
            yield GroupFinding("error", "heartbeats-unreadable", str(self._heartbeats.folder), "The folder cannot be read.", fix)
            return
        for id, member in sorted(state.members.items()):
            yield from self._of_member(id, member)
        for id in self._behind():
            where, waits = f"member {id}", counted(len(state.to_release(id)) + len(state.to_take(id)), "partition")
            text = f"It did not poll since change {self.first.group.note_seq} of the group; {waits} wait for that."
            fix = "Poll more often, or return fewer records with max_poll_records. After max_poll_interval_ms it loses its partitions."
            yield GroupFinding("warning", "member-does-not-poll", where, text, fix)
        strangers = (self.first.beats or {}).keys() - self.first.state.members.keys() - state.members.keys()
        for id in sorted(strangers):
            if self._beat(self.last, id) not in (None, self._beat(self.first, id)):
                text = f"It writes heartbeats and is not in the group, whose assignor is {state.assignor}."
                fix = f"Start it with the assignor and the weight of {state.assignor}, or close the other members first."
                yield GroupFinding("warning", "member-not-joined", f"member {id}", text, fix)
        if state.announced:
            text = f"An operator announced a reset, delete or load: members hold their commits, for {HOLD_S:g} s at most."
            fix = "Wait for the command. If it was ended, members go on by themselves; run it again."
            yield GroupFinding("warning", "operator-announced", f"group {self._name}", text, fix)

    def _of_member(self, id: str, member: Registered) -> Iterator[GroupFinding]:
        state, where, session = self.last.state, f"member {id}", member.session_ms / 1000
        silent: Severity = "error" if self._watched_s >= session / 3 else "warning"
        its = counted(len(state.owned(id)), "partition")
        live = [each for each in self._signs if each != id and self._signs[each] == "heartbeat"]
        ends = f"{counted(len(live), 'live member')} will expire it" if live else "The next consumer that joins will expire it"
        if self._heartbeats is not None and self._beat(self.last, id) is None:
            folder, commits = self._heartbeats.folder, self._signs.get(id) == "commit"
            text = f"Its heartbeats are not in {folder}. " + ("It commits, so it lives." if commits else "It did not commit either.")
            fix = f"Let all members, and this command, see one folder {folder.parent}: mount the folder that has it and the table."
            if not commits:
                fix += f" If it is dead: {ends}, after its session of {session:g} s."
            yield GroupFinding("warning" if commits else silent, "heartbeats-not-seen", where, text, fix)
        elif id not in self._signs and self._watched_s > 0:
            text = f"It wrote no heartbeat in {self._watched_s:.0f} s. It was killed or stopped, or did not poll for max_poll_interval_ms."
            text += f" It has {its}."
            fix = f"{ends}, after its session of {session:g} s without a heartbeat. If its program hangs, end and restart it."
            yield GroupFinding(silent, "member-silent", where, text, fix)
        if member.pattern is not None and not is_pattern(member.pattern):
            fix = "Subscribe with a regular expression of Python."
            yield GroupFinding("error", "pattern-unreadable", where, f"Its pattern {member.pattern!r} is not one of Python.", fix)
        elif member.pattern is not None and not any(map(member.reads, state.topics)):
            text, fix = f"Its pattern {member.pattern!r} meets no topic of the root.", "Create the topic, or mend the pattern."
            yield GroupFinding("warning", "pattern-without-topic", where, text, fix)
        elif not any(id in (share.owner, share.wanted_by) for share in state.shares.values()):
            partitions = sum(topic.partitions for name, topic in state.topics.items() if member.reads(name))
            text = f"It has no partition and waits for none: its topics have {counted(partitions, 'partition')}."
            yield GroupFinding("note", "member-idle", where, text, "Add partitions, or start fewer members.")

    def shares(self) -> Iterator[GroupFinding]:
        """Partitions that no member reads, or that did not reach their next owner while the group was watched."""
        waits: dict[tuple[Any, ...], list[Partition]] = {}
        for each, share in self.last.state.shares.items():
            if share.owner != share.wanted_by and self.first.state.shares.get(each) == share:
                waits.setdefault((share.owner, share.wanted_by), []).append(each)
            elif share.owner is None is share.wanted_by:
                waits.setdefault((None, None), []).append(each)
        for (owner, wanted), its in waits.items():
            where = named(its)
            if owner is None and wanted is None:
                text, fix = "No member reads these partitions.", "Start a consumer that reads the topic."
                yield GroupFinding("error", "partition-without-owner", where, text, fix)
                continue
            which = owner or wanted
            does = f"{owner} to give it up" + (f" to {wanted}" if wanted else "") if owner else f"{wanted} to take it"
            text = f"It waited for {does}, all of {self._watched_s:.0f} s."
            fix = f"Let {which} poll; a member hands over in poll. If it is dead, see member-silent."
            yield GroupFinding("warning" if which in self._signs else "error", "partition-waits", where, text, fix)

    def positions(self) -> Iterator[GroupFinding]:
        """Positions that are not in the log any more, or never were, and topics that are gone."""
        for topic, error in self._unreadable.items():
            yield GroupFinding("error", "topic-unreadable", f"topic {topic}", str(error), f"sparklog verify ROOT {topic}")
        named_by: dict[str, list[str]] = {}
        for id, member in sorted(self.last.state.members.items()):
            for topic in member.topics:
                named_by.setdefault(topic, []).append(id)
        for topic in sorted(named_by.keys() - self._states.keys() - self._unreadable.keys()):
            text, fix = f"{counted(len(named_by[topic]), 'member')} read it, and it does not exist.", "Create it, or mend its name."
            yield GroupFinding("warning", "topic-missing", f"topic {topic}", text, fix)
        gone: dict[tuple[str, str], int] = Counter()
        for (topic, number), row in self.last.group.at.items():
            state = self._states.get(topic)
            if topic in self._unreadable:
                continue
            if state is None or state.topic_id != row.topic_id:
                gone[topic, "does not exist" if state is None else "was created again"] += 1
                continue
            where, its = f"topic {topic} partition {number}", f"The position is {row.offset}"
            if number >= state.partitions or row.offset > state.ends[number]:
                end = state.ends[number] if number < state.partitions else 0
                text, fix = f"{its}, beyond the end offset {end}.", "Reset the partition: the topic was restored from an older copy."
                yield GroupFinding("error", "position-beyond-end", where, text, fix)
            elif row.offset < state.starts[number]:
                left = counted(state.starts[number] - row.offset, "offset")
                text = f"{its}, and the log start offset is {state.starts[number]}: {left} expired before the group read them."
                fix = "Members go on at the log start offset or as auto_offset_reset says. Keep records for longer, or expire with keep."
                yield GroupFinding("warning", "position-expired", where, text, fix)
        for (topic, why), count in gone.items():
            text = f"The topic {why}, and the group has {counted(count, 'position')} in it."
            fix = f"sparklog groups delete ROOT {self._name} --topic {topic} --table TABLE --execute"
            yield GroupFinding("warning", "position-of-topic-gone", f"topic {topic}", text, fix)
        group = self.last.group
        unread = sum(self._topics.unread(each for each in group.positions if each.topic in self._states).values())
        if not group.is_running(now()) and not group.state and unread:
            text = f"No program runs the group, and {counted(unread, 'record')} wait."
            fix = "Start a consumer, or the query with its tracker."
            yield GroupFinding("error", "group-not-running", f"group {self._name}", text, fix)

    def cuts(self) -> Iterator[GroupFinding]:
        """Partitions that may not pass a re-route before others are read up to it."""
        at = self.last.group.at
        for topic, state in self._states.items():
            offsets = [
                max(state.starts[number], row.offset if row and row.topic_id == state.topic_id else 0)
                for number, row in ((number, at.get((topic, number))) for number in range(state.partitions))
            ]
            for number, cuts in Barrier().open(state, offsets.__getitem__).items():
                cut, donors = cuts[0]
                if offsets[number] >= cut and state.ends[number] > cut:
                    for donor, until in sorted(donors.items()):
                        yield self._at_cut(topic, number, state.ends[number] - cut, donor, until - offsets[donor])

    def _at_cut(self, topic: str, number: int, held: int, donor: int, left: int) -> GroupFinding:
        owner = self.last.state.shares.get((topic, donor), Share()).owner
        before, after = (look.group.at.get((topic, donor)) for look in (self.first, self.last))
        moves = after is not None and (before is None or before.offset < after.offset)
        text = f"{counted(held, 'record')} wait at a re-route until {counted(left, 'record')} of partition {donor} are read and committed. "
        alone = "It has no owner" if self.last.group.state else "One program reads the group"
        text += f"Member {owner} owns it" if owner else alone
        text += ", and commits." if moves else f", and committed nothing in {self._watched_s:.0f} s."
        fix = "Wait." if moves else f"Let the owner of partition {donor} read on and commit: it may be slow, paused or without auto-commit."
        dead = self.last.group.state is not None and owner not in self._signs
        return GroupFinding("error" if dead else "warning", "partition-at-cut", f"topic {topic} partition {number}", text, fix)


def _upkeep(path: str, upkeep: Upkeep | None) -> Iterator[GroupFinding]:
    if upkeep and max(upkeep.files, upkeep.commits or 0) > _BEHIND:
        since = "" if upkeep.commits is None else f" and {counted(upkeep.commits, 'commit')} since the last checkpoint"
        text = f"It has {counted(upkeep.files, 'file')}{since}: each look at a group opens them."
        fix = "OffsetTable(TABLE).maintain(). Programs do so after each 50 commits; their log says why they could not."
        yield GroupFinding("warning", "upkeep-behind", f"table {path}", text, fix)
