"""The doctor of a group: the reasons why it is stuck or slow, each with its place and its remedy."""

from __future__ import annotations

import functools
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sparklog.barrier import Barrier
from sparklog.errors import SparklogError
from sparklog.groups.assignors import Partition
from sparklog.groups.member.heartbeats import Heartbeats, Mark, clock, pause
from sparklog.groups.member.state import ASSIGNORS, GroupState, Registered, Share, is_pattern
from sparklog.groups.plans import named
from sparklog.groups.rows import Group, now
from sparklog.groups.table.generations import HOLD_S, Generations
from sparklog.groups.table.lake import Upkeep
from sparklog.groups.topics import Topics
from sparklog.ondisk.config import has_retention
from sparklog.ondisk.state import State
from sparklog.show.display import Display, Displayed, counted, readable

Severity = Literal["error", "warning", "note"]
"""`error`: the group or a part of it stands still. `warning`: it is slow, or will stand still. `note`: it may be meant so."""
WATCH_S = 30.0
"""The longest time for which a group is watched by default."""
_LOOKS_EVERY_S = 0.5
_UPKEEP_BEHIND = 200
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


class _Cut(NamedTuple):
    """Records of a partition that wait at a re-route until the partition `donor` is read and committed up to the offset `until`."""

    topic: str
    partition: int
    waiting: int
    donor: int
    until: int
    left: int
    """The offsets of the donor that the group did not read yet."""


@dataclass(frozen=True)
class _GroupLook:
    """A group at one moment, and how its members showed that they are alive. Topics are read when they are first asked for, and once."""

    group: Group
    beats: dict[str, tuple[Mark, int]] | None
    """By member the mark of its heartbeat, and the number of the state that it knows. None: the folder cannot be read."""
    given: dict[str, int]
    """By member that does not know the newest state, the partitions that it got since the state that it knows."""
    commits: dict[str, int]
    topics: Topics

    @property
    def state(self) -> GroupState:
        return self.group.state or GroupState("sticky")

    @property
    def is_running(self) -> bool:
        return self.group.state is not None or self.group.is_running(now())

    def beat(self, id: str) -> Mark | None:
        """The mark of a member's heartbeat; None if no heartbeat is seen."""
        return (self.beats or {}).get(id, (None, 0))[0]

    @functools.cached_property
    def _found(self) -> dict[str, State | SparklogError | None]:
        names = {topic for topic, _ in self.group.at} | self.state.topics.keys()
        names |= {topic for each in self.state.members.values() for topic in each.topics}
        return self.topics.find_states(names)

    @property
    def states(self) -> dict[str, State]:
        """The newest states of the topics that the group reads."""
        return {name: found for name, found in self._found.items() if isinstance(found, State)}

    @property
    def unreadable(self) -> dict[str, SparklogError]:
        """The topics that cannot be read, with the error of each."""
        return {name: found for name, found in self._found.items() if isinstance(found, SparklogError)}

    @functools.cached_property
    def cuts(self) -> list[_Cut]:
        """The partitions that wait at a re-route."""
        return [each for state in self.states.values() for each in self._cuts(state)]

    def _cuts(self, state: State) -> Iterator[_Cut]:
        rows = [self.group.at.get((state.topic, number)) for number in range(state.partitions)]
        offsets = [
            max(start, row.offset if row and row.topic_id == state.topic_id else 0) for start, row in zip(state.starts, rows, strict=True)
        ]
        for number, cuts in Barrier().open(state, offsets.__getitem__).items():
            cut, donors = cuts[0]
            if offsets[number] >= cut and state.ends[number] > cut:
                for donor, until in sorted(donors.items()):
                    yield _Cut(state.topic, number, state.ends[number] - cut, donor, until, until - offsets[donor])


def diagnose(name: str, generations: Generations, topics: Topics, path: str, upkeep: Upkeep | None, watch_s: float) -> GroupDiagnosis:
    """Watches a group for so many seconds, or until it is clear that all goes on, and gives the findings.

    It only reads. CallError if the group does not exist, or the table was opened without a root.
    """
    generations.existing(name)
    of = _Group(name, path, str(topics.logs.root), generations.heartbeats(name))
    group = _watched(of, generations, topics, watch_s)
    return GroupDiagnosis(name, [*group.members(), *group.shares(), *group.positions(), *group.cuts(), *_upkeep(path, upkeep)])


class _Group(NamedTuple):
    """The name of a group, its table and its root, and the heartbeats of its members."""

    name: str
    table: str
    root: str
    heartbeats: Heartbeats

    def command(self, what: str, *options: str) -> str:
        """A command of `sparklog groups` for the group."""
        return shlex.join(["sparklog", "groups", what, self.root, self.name, *options, "--table", self.table, "--execute"])


def _watched(of: _Group, generations: Generations, topics: Topics, watch_s: float) -> _Case:
    """The case of a group after it was watched for so many seconds, or until it is clear that all goes on."""
    first = _look(of, generations, topics)
    case = _Case(of, first, first, {}, 0.0)
    began = clock()
    while case.watched_s < watch_s and not case.is_clear():
        pause(min(_LOOKS_EVERY_S, max(0.0, watch_s - (clock() - began))))
        watched_s = min(clock() - began, watch_s)  # no more if the machine slept meanwhile
        case = case.after(_look(of, generations, topics), watched_s)
    return case


def _look(of: _Group, generations: Generations, topics: Topics) -> _GroupLook:
    group = generations.group(of.name)
    if group.state is None:
        return _GroupLook(group, {}, {}, {}, topics)
    try:
        beats = of.heartbeats.read()
    except OSError:
        beats = None
    late = {id: beat[1] for id, beat in (beats or {}).items() if id in group.state.members and 0 < beat[1] < group.note_seq}
    before = {id: generations.state_after(of.name, number) for id, number in late.items()}
    given = {id: len({*group.state.owned(id)} - {*state.owned(id)}) for id, state in before.items() if state}
    return _GroupLook(group, beats, given, generations.versions(group.state.members), topics)


@dataclass(frozen=True)
class _Case:
    """A group that was watched, and the findings about it.

    marks: by member, how it showed that it is alive: `heartbeat` or `commit`. watched_s: the seconds from the first look to the last.
    """

    of: _Group
    first: _GroupLook
    last: _GroupLook
    marks: Mapping[str, str]
    watched_s: float

    def after(self, look: _GroupLook, watched_s: float) -> _Case:
        """The case after one look more."""
        marks = dict(self.marks)
        for id in look.state.members:
            if look.beat(id) not in (None, self.first.beat(id)):
                marks[id] = "heartbeat"
            elif look.commits[id] != self.first.commits.get(id, 0):
                marks.setdefault(id, "commit")
        return _Case(self.of, self.first, look, marks, watched_s)

    def is_clear(self) -> bool:
        """Whether all members are known to be alive, nothing is on its way, and commits came where others wait for them at a re-route."""
        state = self.last.state
        moves = any(share.owner != share.wanted_by for share in state.shares.values())
        if state.members.keys() - self.marks.keys() or moves or state.announced or self._behind():
            return False
        return not self.last.is_running or all(map(self._commits, self.first.cuts))

    def _commits(self, cut: _Cut) -> bool:
        """Whether the position in the donor of a cut rose while the group was watched."""
        before, after = (look.group.at.get((cut.topic, cut.donor)) for look in (self.first, self.last))
        return after is not None and (before is None or before.offset < after.offset)

    def _behind(self) -> list[str]:
        """The members that live and know a state from before the first look, so they did not poll since, and for which partitions wait."""
        state, beats, changed = self.last.state, self.last.beats or {}, self.first.group.note_seq
        late = [each for each in state.members if each in self.marks and each in beats and 0 < beats[each][1] < changed]
        return [each for each in late if state.to_release(each) or state.to_take(each) or self.last.given.get(each)]

    def _severity(self, member: str) -> Severity:
        """The severity of a group that waits for a member: an error if the member is silent for a third of its session or more."""
        silent = member not in self.marks and self.watched_s >= self.last.state.members[member].session_ms / 3000
        return "error" if silent else "warning"

    # ---- findings

    def members(self) -> Iterator[GroupFinding]:
        """Members that do not live, that are not seen, that do not poll, and that read nothing."""
        state = self.last.state
        if state.assignor not in ASSIGNORS:
            text = f"Members share the topics by {state.assignor}, which this version does not know."
            yield GroupFinding(
                "error", "assignor-unknown", f"group {self.of.name}", text, "Run the version of the members here, or upgrade."
            )
        if self.last.beats is None:
            fix = f"Let this command read it. {self.of.heartbeats.place.remedy}"
            yield GroupFinding("error", "heartbeats-unreadable", self.of.heartbeats.folder, "It cannot be read.", fix)
            return
        for id, member in sorted(state.members.items()):
            yield from self._of_member(id, member)
        for id in self._behind():
            where, waits = f"member {id}", len(state.to_release(id)) + len(state.to_take(id)) + self.last.given.get(id, 0)
            text = f"It did not poll since change {self.first.group.note_seq} of the group. Partitions that wait for it: {waits:,}."
            fix = "Poll more often, or return fewer records with max_poll_records. After max_poll_interval_ms it loses its partitions."
            yield GroupFinding("warning", "member-does-not-poll", where, text, fix)
        strangers = (self.first.beats or {}).keys() - self.first.state.members.keys() - state.members.keys()
        for id in sorted(strangers):
            if self.last.beat(id) not in (None, self.first.beat(id)):
                text = f"It writes heartbeats and is not in the group, whose assignor is {state.assignor}."
                fix = f"Start it with the assignor and the weight of {state.assignor}, or close the other members first."
                yield GroupFinding("warning", "member-not-joined", f"member {id}", text, fix)
        if state.announced:
            text = f"An operator announced a reset, delete or load: members hold their commits, for {HOLD_S:g} s at most."
            fix = "Wait for the command. If it was ended, members go on by themselves; run it again."
            yield GroupFinding("warning", "operator-announced", f"group {self.of.name}", text, fix)

    def _of_member(self, id: str, member: Registered) -> Iterator[GroupFinding]:
        state, where, session = self.last.state, f"member {id}", member.session_ms / 1000
        live = [each for each in state.members if each != id and self.marks.get(each) == "heartbeat"]
        ends = f"{counted(len(live), 'live member')} will expire it" if live else "The next consumer that joins will expire it"
        if self.last.beat(id) is None:
            folder, commits = self.of.heartbeats.folder, self.marks.get(id) == "commit"
            text = f"Its heartbeats are not in {folder}. " + ("It commits, so it lives." if commits else "It did not commit either.")
            fix = f"Let all members, and this command, see one folder {folder}. {self.of.heartbeats.place.remedy}"
            if not commits:
                fix += f" If it is dead: {ends}, after its session of {session:g} s."
            yield GroupFinding(self._severity(id), "heartbeats-not-seen", where, text, fix)
        elif id not in self.marks and self.watched_s > 0:
            text = f"It wrote no heartbeat in {self.watched_s:.1f} s. It was killed or stopped, or did not poll for max_poll_interval_ms."
            text += f" It has {counted(len(state.owned(id)), 'partition')}."
            fix = f"{ends}, after its session of {session:g} s without a heartbeat. If its program hangs, end and restart it."
            yield GroupFinding(self._severity(id), "member-silent", where, text, fix)
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
            elif share.owner is None and share.wanted_by is None:
                waits.setdefault((None, None), []).append(each)
        for (owner, wanted), partitions in waits.items():
            where = named(partitions)
            which = owner or wanted
            if which is None:
                text, fix = "No member reads these partitions.", "Start a consumer that reads the topic."
                yield GroupFinding("error", "partition-without-owner", where, text, fix)
                continue
            does = f"{owner} to give it up" + (f" to {wanted}" if wanted else "") if owner else f"{wanted} to take it"
            text = f"It waits for {does}, and did so for all of the {self.watched_s:.1f} s that the group was watched."
            fix = f"Let {which} poll; a member hands over in poll. If it is dead, see member-silent."
            yield GroupFinding(self._severity(which), "partition-waits", where, text, fix)

    def positions(self) -> Iterator[GroupFinding]:
        """Positions that are no longer in the log, or never were, and topics that are gone."""
        states, unreadable = self.last.states, self.last.unreadable
        for topic, error in unreadable.items():
            fix = shlex.join(["sparklog", "verify", self.of.root, topic])
            yield GroupFinding("error", "topic-unreadable", f"topic {topic}", str(error), fix)
        named_by: dict[str, list[str]] = {}
        for id, member in sorted(self.last.state.members.items()):
            for topic in member.topics:
                named_by.setdefault(topic, []).append(id)
        for topic in sorted(named_by.keys() - states.keys() - unreadable.keys()):
            text, fix = f"Members that read it: {len(named_by[topic]):,}. The topic does not exist.", "Create it, or mend its name."
            yield GroupFinding("warning", "topic-missing", f"topic {topic}", text, fix)
        gone: dict[tuple[str, str], int] = Counter()
        for (topic, number), row in self.last.group.at.items():
            state = states.get(topic)
            if topic in unreadable:
                continue
            if state is None or state.topic_id != row.topic_id:
                gone[topic, "does not exist" if state is None else "was created again"] += 1
                continue
            where, position = f"topic {topic} partition {number}", f"The position is {row.offset}"
            if number >= state.partitions or row.offset > state.ends[number]:
                end = state.ends[number] if number < state.partitions else 0
                text = f"{position}, beyond the end offset {end}: the topic was restored from an older copy."
                fix = self.of.command("reset", "--topic", f"{topic}:{number}", "--to-latest")
                yield GroupFinding("error", "position-beyond-end", where, text, fix)
            elif row.offset < state.starts[number]:
                text = f"{position}, and the log start offset is {state.starts[number]}. Offsets that expired before the group read them: "
                text += f"{state.starts[number] - row.offset:,}."
                fix = "Members go on at the log start offset, or where auto_offset_reset says."
                if has_retention(state.config):
                    fix += " Set a longer retention.ms for the topic."
                yield GroupFinding("warning", "position-expired", where, text, fix)
        for (topic, why), count in gone.items():
            text = f"The topic {why}, and the group has {counted(count, 'position')} in it."
            fix = self.of.command("delete", "--topic", topic)
            yield GroupFinding("warning", "position-of-topic-gone", f"topic {topic}", text, fix)
        group = self.last.group
        unread = sum(self.last.topics.unread(each for each in group.positions if each.topic in states).values())
        if unread and not self.last.is_running:
            text = f"No program runs the group. Records that wait: {unread:,}."
            fix = "Start a consumer, or the query with its tracker."
            yield GroupFinding("error", "group-not-running", f"group {self.of.name}", text, fix)

    def cuts(self) -> Iterator[GroupFinding]:
        """Partitions that may not pass a re-route before others are read up to it."""
        for cut in self.last.cuts:
            text = f"Records that wait at a re-route: {cut.waiting:,}. They follow when partition {cut.donor} is read and committed up to"
            text += f" offset {cut.until}; offsets left to read: {cut.left:,}. "
            share = self.last.state.shares.get((cut.topic, cut.donor), Share())
            awaited = share.owner or share.wanted_by
            severity = self._severity(awaited) if awaited else "error" if self.last.group.state else "warning"
            if self.last.group.state and share.owner is None:
                text += f"No member owns partition {cut.donor}."
                fix = f"Partition {cut.donor} has a finding of its own: partition-waits or partition-without-owner. Follow its remedy."
            elif not self.last.is_running:
                text, fix = f"{text}No program runs the group.", "Start a consumer, or the query with its tracker."
            else:
                text += f"Member {share.owner} owns it" if share.owner else "One program reads the group"
                if self._commits(cut):
                    text, fix = f"{text}, and commits.", "Wait."
                else:
                    text += f", and committed nothing in {self.watched_s:.1f} s." if self.watched_s else "."
                    fix = f"Let the owner of partition {cut.donor} read on and commit: it may be slow, paused or without auto-commit."
            yield GroupFinding(severity, "partition-at-cut", f"topic {cut.topic} partition {cut.partition}", text, fix)


def _upkeep(path: str, upkeep: Upkeep | None) -> Iterator[GroupFinding]:
    if upkeep and max(upkeep.files, upkeep.commits or 0) > _UPKEEP_BEHIND:
        since = "" if upkeep.commits is None else f" and {counted(upkeep.commits, 'commit')} since the last checkpoint"
        text = f"It has {counted(upkeep.files, 'file')}{since}: each look at a group opens them."
        fix = "OffsetTable(TABLE).maintain(). Programs do so after each 50 commits; their log says why they could not."
        yield GroupFinding("warning", "upkeep-behind", f"table {path}", text, fix)
