"""The standing of a member in its group: it joins, changes the state, goes back, and reads what others changed."""

from __future__ import annotations

import dataclasses
import logging
import socket
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping

from sparklog.errors import SparklogError
from sparklog.groups import rows
from sparklog.groups.assignors import Partition
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.member import heartbeats
from sparklog.groups.member.attempts import attempts
from sparklog.groups.member.heartbeater import Heartbeater
from sparklog.groups.member.heartbeats import clock, pause
from sparklog.groups.member.state import GroupState, Held, MemberSettings, Registered, Share, SharedTopic
from sparklog.groups.member.weights import Weigher
from sparklog.groups.rows import Position
from sparklog.groups.table.generations import HOLD_S, OF_OPERATORS
from sparklog.groups.table.offset_table import OffsetTable

_log = logging.getLogger(__name__)
Begin = Callable[[Partition, str, int, int, bool], int | None]


class Standing(ABC):
    """The standing of one consumer in a group. `Membership` has the calls of the consumer, and the thread of heartbeats."""

    def __init__(
        self, table: OffsetTable, group: str, settings: MemberSettings, begin: Begin, clock: Callable[[], float] = heartbeats.clock
    ) -> None:
        """`begin` gives the first offset of a share without a position. It is called with the share, the id of its topic, its log start and
        end offset, and whether the group has read its topic before; None if that is not known. `clock` gives seconds, by which sessions and
        the times between polls are measured.
        """
        self.group = rows.require_group(group)
        self.table, self.root = table.path, table.root
        self._generations, self._topics = table.generations, table.topics
        self._settings = settings
        self._begin = begin
        self._clock = clock
        self._heartbeater = Heartbeater(table.generations.heartbeats(self.group), settings.session_s, table.generations.versions, clock)
        self._weigher = Weigher(table.topics, self.positions)
        self._lock = threading.RLock()
        """Held while the state is read or changed; not while a heartbeat is written."""
        self._reads: tuple[tuple[str, ...], str | None] = ((), None)
        self.id: str | None = None
        self._number = self._generation = self._version = 0
        self._state = GroupState(settings.shared_by)
        self._mine: dict[Partition, Held] = {}
        """The shares whose positions are known."""
        self._at: dict[Partition, Position] = {}
        """The positions of shares, as the table had them when they were taken, or as they were committed since. Shares that were lost
        keep theirs until they are taken again.
        """
        self._changed = False
        self._turned: GroupState | None = None
        """The state after the caller's last turn."""
        self._polled = self._refreshed = clock()
        self._wrote = clock()
        self._is_unseen = False
        """Whether others expired it although it was live: they do not see its heartbeats."""
        self._told_of: frozenset[str] = frozenset()
        """The members that the log names as members without heartbeats."""
        self._waited_for: str | None = None
        """The change of an operator for which it held its commits last."""
        self._watched: tuple[int, GroupState] = (0, self._state)
        """The newest state that the thread of heartbeats knows, and its number."""
        self._ended: SparklogError | None = None
        """Why it can no longer be a member."""
        self._holder: Callable[[], object] = object
        """Gives the object that the member belongs to; None once that was collected."""

    def positions(self) -> list[Position]:
        """The positions of the group, as the table has them now."""
        return self._generations.group(self.group).positions

    @abstractmethod
    def _beat(self) -> None:
        """Writes a heartbeat. The thread of `Heartbeater` calls it."""

    # ---- changes of the state

    def _join(self) -> None:
        me = f"{socket.gethostname()}-{uuid.uuid4().hex}"
        began = self._heartbeater.write(me, 0)
        try:
            self._enter(me)
        except BaseException:
            self._heartbeater.end(me)
            raise
        self._refreshed, self._changed = self._clock(), False
        self._heartbeater.live(began)
        self._heartbeater.restart()
        self._heartbeater.start(self._beat, self._settings.heartbeat_s)

    def _enter(self, me: str) -> None:
        """Adds this member to the state, under this id."""
        asked = self._settings.shared_by
        for _ in attempts():
            carried: list[Position] = []
            number, generation, found = self._generations.state(self.group)
            if found is None:
                number, group, _ = self._generations.fenceable(self.group)
                if group.state is not None:
                    continue  # another one joined just now
                carried = group.positions if group.exists else []
                generation = (group.generation or number) + 1
            before = found or GroupState(asked)
            dead: list[str] = []
            try:
                joined = self._admitted(before, me)
            except SparklogError as error:
                if error.id not in ("GROUP_ASSIGNOR", "GROUP_ROOT"):
                    raise
                dead = self._dead_of_other_assignor(before, me)
                if not dead:
                    raise
                before = dataclasses.replace(before.without(*dead), assignor=asked, weights={})
                joined = self._with_me(before, me)
            replaced = before.of_instance(self._settings.instance, but=me)
            after = joined.taken(me)
            first = _first_taken(before, after, me)
            known, begun, back = self._beginnings(before, first, after.members[me], carried if found is None else None)
            note = rows.note_of_members(self.group, generation, me, "joins", after)
            fenced = {each: self._generations.version(each) for each in (*dead, *([replaced] if replaced else []))}
            if self._generations.commit(self.group, number + 1, generation, [note, *carried, *begun], fenced) is not None:
                break
        self.id, self._number, self._generation, self._version = me, number + 1, generation, 0
        self._state, self._mine, self._at = after, {}, {}
        self._hold(first, [*known, *begun])
        self._heartbeater.call(_given(before, after, me))
        self._go_back(back)

    def _dead_of_other_assignor(self, state: GroupState, me: str) -> list[str]:
        """The members of a state that died, so that they do not keep members of another assignor out."""
        return self._heartbeater.dead(state.sessions(but=me), self._settings.heartbeat_s)

    def _admitted(self, state: GroupState, me: str) -> GroupState:
        """The state with this member. CallError GROUP_ASSIGNOR or GROUP_ROOT if it cannot join the members of the state while they live."""
        asked = self._settings.shared_by
        if state.assignor != asked:
            raise SparklogError("GROUP_ASSIGNOR", group=self.group, table=self.table, found=state.assignor, asked=asked)
        return self._with_me(state, me)

    def _beginnings(
        self, before: GroupState, came: Mapping[Partition, Held], member: Registered, positions: Iterable[Position] | None = None
    ) -> tuple[list[Position], list[Position], list[Position]]:
        """The positions of the shares that come to this member, by the positions of the group; and the beginnings of shares without a
        position.

        The third are beginnings in topics that were created again, where rows of the topic before would hide them in this generation.
        No other member can change them before the change is made, since each that does so changes the number of the group.
        """
        if not came:
            return [], [], []
        at = {(each.topic, each.partition): each for each in (self.positions() if positions is None else positions)}
        read = {topic for topic, _ in at}
        known, begun, back = list[Position](), list[Position](), list[Position]()
        for (name, number), held in sorted(came.items(), key=lambda each: each[0]):
            row, state = at.get((name, number)), self._topics.find_state(name)
            known += [row] if row else []
            if (row and row.topic_id == held.topic_id) or state is None or state.topic_id != held.topic_id or number >= state.partitions:
                continue
            late = row is not None or before.has_read((name, number), held.topic_id)
            late = member.has_read(name, read) if late is None else late
            offset = self._begin((name, number), held.topic_id, state.starts[number], state.ends[number], late)
            if offset is not None:
                (back if row else begun).append(Position(self.group, 0, name, held.topic_id, number, offset, rows.now()))
        return known, begun, back

    def _with_me(self, state: GroupState, me: str) -> GroupState:
        """The state with this member as it is subscribed now, and with all topics that members read."""
        joined = state.joined(self._settings.registered(me, *self._reads, self.root))
        return joined.with_topics(self._shared(joined, me))

    def _shared(self, state: GroupState, me: str) -> dict[str, SharedTopic]:
        """The topics that members read, as they are now. CallError GROUP_ROOT if the topics of this member are in another root."""
        found = self._topics.shared(state.members.values())
        if replaced := [name for name, topic in found.items() if name in state.topics and state.topics[name].id != topic.id]:
            for each in state.members.values():
                if me in state.members and state.members[me].has_another_root(each):
                    table, root, topic = self.table, self.root, replaced[0]
                    raise SparklogError(
                        "GROUP_ROOT", group=self.group, table=table, root=root, topic=topic, member=each.id, found=each.root
                    )
        return found

    def _refresh(self) -> None:
        self._refreshed, me = self._clock(), self.id or ""
        if self._shared(self._state, me) != self._state.topics:
            self._change("topics changed", lambda state: state.with_topics(self._shared(state, me)).taken(me))
        if loads := self._weigher.look(self._state, self.id):
            self._change(f"weighs by {self._state.measure}", lambda state: state.weighed(loads))

    def _change(
        self,
        why: str,
        step: Callable[[GroupState], GroupState],
        moved: Iterable[Position] = (),
        *,
        own: bool = False,
        fenced: Iterable[str] = (),
    ) -> bool:
        """Changes the state by a step, which is tried again if another change was first. False if nothing is left to change.

        own: the commit counts as a commit of this member, like a commit with rows. fenced: members that it fences.
        """
        placed = list(moved)
        for number in attempts():
            # A step from an older state is refused for certain, and costs more than a look.
            if number or self._generations.last(self.group) != self._number:
                self._adopt()
                placed = self._still_mine(placed)
            if self.id is None:
                break
            before, after = self._state, step(self._state)
            if after == before and not placed:
                return False
            first = _first_taken(before, after, self.id)
            known, begun, back = self._beginnings(before, first, after.members[self.id]) if first else ([], [], [])
            versions = {each: self._generations.version(each) for each in fenced}
            versions |= {self.id: self._version} if own or placed or begun else {}
            note = rows.note_of_members(self.group, self._generation, self.id, why, after)
            if self._generations.commit(self.group, self._number + 1, self._generation, [note, *placed, *begun], versions) is not None:
                self._number, self._state = self._number + 1, after
                self._drop_strayed()
                self._version += self.id in versions
                self._remember(placed)
                self._hold(first, known, begun)
                self._heartbeater.call(_given(before, after, self.id))
                self._go_back(back)
                return True
        return False

    def _take_up(self) -> None:
        """Learns the positions of the shares that others gave to this member, or that it took in a change whose answer was lost."""
        for _ in attempts():
            came = {each: held for each, held in self._state.owned(self.id or "").items() if each not in self._mine}
            if self.id is None or not came:
                break
            known, begun, back = self._beginnings(self._state, came, self._state.members[self.id])
            if begun and not self._has_committed(begun):
                self._adopt()
                continue
            self._hold(came, known, begun)
            self._go_back(back)
            break

    def _hold(self, came: Mapping[Partition, Held], known: Iterable[Position], begun: Iterable[Position] = ()) -> None:
        """Owns shares from now on. `known` are the positions of the group in them, and `begun` the positions that this member committed."""
        for each in came:
            self._at.pop(each, None)
        self._at |= {(each.topic, each.partition): each for each in known}
        self._remember(list(begun))
        self._mine |= came

    def _still_mine(self, placed: list[Position]) -> list[Position]:
        """The positions of these in shares that this member has not lost."""
        return [each for each in placed if (each.topic, each.partition) in self._mine]

    def _go_back(self, placed: list[Position]) -> bool:
        """Commits offsets that are lower than before: a reset of these shares, which this member keeps. False if it lost any of them."""
        if not placed:
            return True
        moved = {(each.topic, each.partition) for each in placed}
        for _ in attempts():
            if self.id is None:
                break
            number, group, versions = self._generations.fenceable(self.group)
            owned = {} if group.state is None else group.state.owned(self.id)
            if group.state is None or not all(self._has_as_before(each, owned) for each in moved):
                self._adopt()
                return False
            # Rows of a topic before stay: by them, its other partitions begin at their first records.
            stays = [each for at, each in group.at.items() if at not in moved]
            kept = [dataclasses.replace(each, committed_at=placed[0].committed_at) for each in stays]
            note = rows.note_of_members(self.group, group.generation + 1, self.id, "goes back", group.state)
            if self._generations.commit(self.group, number + 1, group.generation + 1, [note, *kept, *placed], versions) is not None:
                self._remember(placed)
                self._adopt()
                return True
        return False

    def _has_as_before(self, share: Partition, owned: Mapping[Partition, Held]) -> bool:
        """Whether this member has a share in the same epoch in a newer state of the group."""
        return share in owned and owned[share] == self._mine.get(share)

    def _waits_for_operator(self) -> bool:
        """Waits until a change that an operator announced was made, or for `HOLD_S`, once. Whether it waited."""
        announced = self._state.announced
        if announced in (None, self._waited_for):
            return False
        self._waited_for = announced
        number, until = self._number, clock() + HOLD_S
        while clock() < until:
            if self._generations.last(self.group) != number:
                number, _, state = self._generations.state(self.group)
                if state is None or state.announced != announced:
                    break  # a join is another change, and no reason to go on
            pause(0.1)  # as many members look at the table, and the operator needs the machine
        self._adopt()
        return True

    def _adopt(self) -> None:
        """Reads the state, and gives up the lost shares. Without an id afterwards: it was expired.

        GenerationFencedError if it cannot go on.
        """
        me = self.id or ""
        for _ in attempts():
            version = self._generations.version(me)  # before the state: fencing changes both in one commit
            self._changed = False
            number, generation, state = self._generations.state(self.group)
            ended = None if state else self._generations.group(self.group)
            if ended is None or ended.state is None:
                break  # otherwise another member began the group just now
        if state is None:
            self._drop(self._mine)
            if ended and ended.event in ("end", *OF_OPERATORS):
                # It was expired, and the others left: it joins again.
                self.id = self._turned = None
                self._heartbeater.end(me)
                return
            own = self._generation
            raise self._end_by(SparklogError("GENERATION_FENCED", group=self.group, generation=own, newest=generation, table=self.table))
        self._number, self._generation, self._version, self._state = number, generation, version, state
        self._drop_strayed()
        if me not in state.members:
            self.id = self._turned = None
            self._heartbeater.end(me)
            if other := state.of_instance(self._settings.instance, but=me):
                instance = self._settings.instance
                raise self._end_by(SparklogError("INSTANCE_FENCED", group=self.group, table=self.table, member=other, instance=instance))
            if self._heartbeater.is_steady:
                self._is_unseen = True
                where = (me, self.group, self._heartbeater.folder)
                _log.warning("Member %s of group %s was expired while it was live: others do not see the heartbeats in %s", *where)

    def _end_by(self, error: SparklogError) -> SparklogError:
        self.id, self._ended, self._turned = None, error, None
        self._drop(self._mine)
        self._heartbeater.stop()
        return error

    def _revive(self) -> None:
        """Reads the state, and is live again if it was not and the state has it."""
        began = None if self._heartbeater.is_live or self.id is None else self._heartbeater.write(self.id, self._number)
        self._adopt()
        if began is not None and self.id is not None:
            self._heartbeater.live(began)

    def _drop_strayed(self) -> None:
        owned = self._state.owned(self.id or "")
        self._drop([each for each, held in self._mine.items() if owned.get(each) != held])

    def _drop(self, shares: Iterable[Partition]) -> None:
        for each in list(shares):
            del self._mine[each]

    def _of_mine(self, commits: Collection[OffsetCommit]) -> tuple[list[OffsetCommit], dict[Partition, SparklogError]]:
        """The commits of shares that it owns as the consumer held them, and the error of each other one."""
        mine: list[OffsetCommit] = []
        refused: dict[Partition, SparklogError] = {}
        for each in commits:
            if self._owns(each):
                mine.append(each)
            else:
                refused[each.place] = self._lost(each)
        return mine, refused

    def _owns(self, commit: OffsetCommit) -> bool:
        """Whether it has the share of a commit in the same topic, and in the epoch in which the consumer held it."""
        now = self._mine.get(commit.place)
        return now is not None and now.topic_id == commit.topic_id and commit.holding in (None, now)

    def _lost(self, commit: OffsetCommit) -> SparklogError:
        """The error of a commit in a share that it does not hold: its topic of this id is gone, or the share is another member's."""
        topic, number = commit.place
        try:
            found = self._topics.state(topic).topic_id
        except SparklogError as error:
            if error.id == "TOPIC_NOT_FOUND":
                return error  # otherwise it cannot be seen now, and the share is not this member's
        else:
            if commit.topic_id != found:
                return SparklogError("TOPIC_RECREATED", topic=topic, root=self.root, expected=commit.topic_id, found=found)
        return SparklogError("MEMBER_FENCED", group=self.group, table=self.table, root=self.root, topic=topic, partition=number)

    def _placed(self, commits: Collection[OffsetCommit]) -> list[Position]:
        """The rows of offsets that a change commits with it, of topics that are still there.

        Where one is lower than before, it goes back first, in a commit of its own.
        """
        mine, _ = self._of_mine(commits)
        found = {topic: self._topics.find_state(topic) for topic in dict.fromkeys(each.topic for each in mine)}
        placed = self._moved([each for each in mine if (state := found[each.topic]) is not None and state.topic_id == each.topic_id])
        if any(map(self._is_back, placed)):
            self._go_back(placed)
            return []
        return placed

    def is_committed(self, commit: OffsetCommit) -> bool:
        """Returns whether the group is at an offset, as far as this member knows.

        Args:
            commit: The offset.

        Returns:
            True if the group is there.
        """
        known = self._at.get(commit.place)
        return known is not None and (known.topic_id, known.offset) == (commit.topic_id, commit.offset)

    def _is_back(self, to: Position) -> bool:
        """Whether a position is lower than the known one, or in a topic that was created again: rows of the generation hide it."""
        known = self._at.get((to.topic, to.partition))
        return known is not None and (known.topic_id != to.topic_id or known.offset > to.offset)

    def _has_committed(self, placed: list[Position]) -> bool:
        """Commits rows, if nothing fenced this member."""
        made = self._generations.commit_of_member(self.group, self._number, self._generation, placed, self.id or "", self._version)
        self._version += made
        return made

    def _moved(self, commits: Collection[OffsetCommit]) -> list[Position]:
        """The rows of these commits, without offsets that are committed already."""
        new = [each for each in commits if each.metadata is not None or not self.is_committed(each)]
        return self._topics.rows(self.group, new) if new else []

    def _remember(self, placed: list[Position]) -> None:
        self._at |= {(each.topic, each.partition): each for each in placed}
        self._wrote = self._clock() if placed else self._wrote


def _first_taken(before: GroupState, after: GroupState, member: str) -> dict[Partition, Held]:
    """The shares that a member takes in a change, and that no member had before it in this topic: the change says where they begin."""
    return {each: held for each, held in after.owned(member).items() if before.owned(member).get(each) != held and held.epoch == 1}


def _given(before: GroupState, after: GroupState, member: str) -> set[str]:
    """The members to which a change of this member gives shares."""
    owners = {share.owner for each, share in after.shares.items() if share.owner != before.shares.get(each, Share()).owner}
    return {each for each in owners if each not in (None, member)}
