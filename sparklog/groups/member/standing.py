"""The standing of a member in its group: it joins, changes the state, goes back, and reads what others changed."""

from __future__ import annotations

import dataclasses
import logging
import socket
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from sparklog.errors import SparklogError
from sparklog.groups import rows
from sparklog.groups.assignors import Partition
from sparklog.groups.member import heartbeats
from sparklog.groups.member.attempts import attempts
from sparklog.groups.member.committed import Committed
from sparklog.groups.member.heartbeater import Heartbeater
from sparklog.groups.member.heartbeats import clock, pause
from sparklog.groups.member.state import GroupState, Held, MemberSettings, Registered, Share, SharedTopic
from sparklog.groups.member.weights import Weigher
from sparklog.groups.rows import Position
from sparklog.groups.table.generations import HOLD_S, OF_OPERATORS
from sparklog.groups.table.offset_table import OffsetTable
from sparklog.groups.topics import Ids, Offsets

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
        self._committed = Committed()
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
                dead = self._heartbeater.dead(before.sessions(but=me), self._settings.heartbeat_s)
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
        self._state, self._committed = after, Committed()
        self._committed.remember([*known, *begun])
        self._mine = first
        self._heartbeater.call(_given(before, after, me))
        self._go_back(back)

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
                placed = [each for each in placed if (each.topic, each.partition) in self._mine]
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
                self._committed.remember(known)
                self._remember([*placed, *begun])
                self._mine |= first
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
            self._committed.remember(known)
            self._remember(begun)
            self._mine |= came
            self._go_back(back)
            break

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
            if group.state is None or any(each not in owned or owned[each] != self._mine.get(each) for each in moved):
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
            self._committed.forget(each)

    def _of_mine(
        self, offsets: Offsets, ids: Ids, held: Mapping[Partition, Held]
    ) -> tuple[dict[str, dict[int, int]], dict[Partition, SparklogError]]:
        """The offsets of shares that it owns as it held them, and the error of each other one."""
        mine: dict[str, dict[int, int]] = {}
        refused: dict[Partition, SparklogError] = {}
        for topic, by_partition in offsets.items():
            for number, offset in by_partition.items():
                now = self._mine.get((topic, number))
                if now is None or now.topic_id != ids.get(topic, now.topic_id) or now != held.get((topic, number), now):
                    refused[topic, number] = self._lost(topic, number, ids.get(topic))
                else:
                    mine.setdefault(topic, {})[number] = offset
        return mine, refused

    def _lost(self, topic: str, number: int, id: str | None) -> SparklogError:
        """The error of a commit in a share that it does not hold: its topic of this id is gone, or the share is another member's."""
        try:
            found = self._topics.state(topic).topic_id
        except SparklogError as error:
            if error.id == "TOPIC_NOT_FOUND":
                return error  # otherwise it cannot be seen now, and the share is not this member's
        else:
            if id not in (None, found):
                return SparklogError("TOPIC_RECREATED", topic=topic, root=self.root, expected=id, found=found)
        return SparklogError("MEMBER_FENCED", group=self.group, table=self.table, root=self.root, topic=topic, partition=number)

    def _placed(self, offsets: Offsets, ids: Ids, held: Mapping[Partition, Held]) -> list[Position]:
        """The rows of offsets that a change commits with it, of topics that are still there.

        Where one is lower than before, it goes back first, in a commit of its own.
        """
        offsets, _ = self._of_mine(offsets, ids, held)
        found = {topic: self._topics.find_state(topic) for topic in offsets}
        there = {topic: its for topic, its in offsets.items() if (state := found[topic]) is not None and state.topic_id == ids[topic]}
        placed = self._moved(there, ids, {})
        if any(map(self._committed.is_back, placed)):
            self._go_back(placed)
            return []
        return placed

    def _has_committed(self, placed: list[Position]) -> bool:
        """Commits rows, if nothing fenced this member."""
        made = self._generations.commit_of_member(self.group, self._number, self._generation, placed, self.id or "", self._version)
        self._version += made
        return made

    def _moved(self, offsets: Offsets, ids: Ids, metadata: Mapping[Partition, str | None]) -> list[Position]:
        """The rows of these offsets, without offsets that are committed already."""
        placed = self._topics.placed(self.group, new, ids) if (new := self._committed.new(offsets, ids, metadata)) else []
        return [dataclasses.replace(each, metadata=metadata.get((each.topic, each.partition))) for each in placed]

    def _remember(self, placed: list[Position]) -> None:
        self._committed.remember(placed)
        self._wrote = self._clock() if placed else self._wrote


def _first_taken(before: GroupState, after: GroupState, member: str) -> dict[Partition, Held]:
    """The shares that a member takes in a change, and that no member had before it in this topic: the change says where they begin."""
    return {each: held for each, held in after.owned(member).items() if before.owned(member).get(each) != held and held.epoch == 1}


def _given(before: GroupState, after: GroupState, member: str) -> set[str]:
    """The members to which a change of this member gives shares."""
    owners = {share.owner for each, share in after.shares.items() if share.owner != before.shares.get(each, Share()).owner}
    return {each for each in owners if each not in (None, member)}
