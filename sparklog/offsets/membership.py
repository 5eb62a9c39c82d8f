"""A member of a group: it joins, owns shares of the topics, commits for them, and expires members that went silent."""

from __future__ import annotations

import dataclasses
import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping

from sparklog.assignors import Partition
from sparklog.errors import SparklogError
from sparklog.offsets import heartbeats, rows
from sparklog.offsets.attempts import attempts
from sparklog.offsets.committed import Committed
from sparklog.offsets.members import Held, MemberSettings, State
from sparklog.offsets.pulse import Pulse
from sparklog.offsets.rows import Position
from sparklog.offsets.table import OffsetTable
from sparklog.offsets.topics import Ids, Offsets
from sparklog.offsets.weights import Weigher

_log = logging.getLogger(__name__)
_ROW_EVERY_S = 60  # a group without a new row for three minutes does not count as running


class Membership:
    """The place of one consumer in a group, which it takes again under a new id if others expired it.

    One thread calls it; a thread of its own writes heartbeats, which others look for. Methods raise GenerationFenced if one owner took
    the group alone, or another process the place of its instance; MEMBER_FENCED if it commits for a share that it lost.
    """

    def __init__(self, table: OffsetTable, group: str, settings: MemberSettings, clock: Callable[[], float] = heartbeats.clock) -> None:
        """`clock` gives seconds, by which sessions and the times between polls are measured."""
        self.group = rows.require_group(group)
        self.table, self.root = table.path, table.root
        self._generations, self._topics = table.generations, table.topics
        self._settings = settings
        self._clock = clock
        self._pulse = Pulse(table.path, self.group, settings.session_s, clock)
        self._weigher = Weigher(table.topics, self.positions)
        self._lock = threading.RLock()
        """Held while the state is read or changed; not while a heartbeat is written."""
        self._reads: tuple[tuple[str, ...], str | None] = ((), None)
        self.id: str | None = None
        self._number = self._generation = self._version = 0
        self._state = State(settings.shared_by)
        self._mine: dict[Partition, Held] = {}
        """The shares that the caller knows of."""
        self._lost: list[Partition] = []
        self._gone: dict[str, list[int]] = {}
        self._committed = Committed()
        self._changed = False
        self._turned: State | None = None
        """The state after the caller's last turn."""
        self._polled = self._refreshed = clock()
        self._wrote = time.monotonic()
        self._known: set[tuple[str, int]] = set()
        """The partitions, by the id of their topic, that were there before this member read it."""
        self._ended: SparklogError | None = None
        """Why it cannot be a member any more."""

    # ---- what the caller does in turns

    def subscribe(self, topics: Iterable[str], pattern: str | None = None) -> None:
        """Names the topics that it reads, from the next `look` on."""
        with self._lock:
            self._reads = (tuple(sorted(topics)), pattern)
            if self.id is not None:
                before = self._state
                self._change("subscribes", lambda state: self._with_me(state, self.id or ""))
                self._known |= self._state.known(before)

    def look(self) -> bool:
        """Joins if it is not a member, and learns what others changed. False, without a wait for other threads, if nothing did."""
        self._polled = now = self._clock()
        is_due = now - self._refreshed >= self._settings.heartbeat_s
        # In this order: the thread that makes it live again says first that the state is another one.
        if self._pulse.is_live and not self._changed and self._state is self._turned and not is_due:
            return False
        with self._lock:
            if self._ended is not None:
                raise self._ended
            if self.id is not None and (not self._pulse.is_live or self._changed):
                self._revive()
            if self.id is None:
                self._join()
            if is_due:
                self._refresh()
        return True

    def lost(self) -> list[Partition]:
        """The shares that were taken away since the last call."""
        if not self._lost:
            return []
        with self._lock:
            lost, self._lost = self._lost, []
            return lost

    def gone(self) -> tuple[str, list[int]] | None:
        """A topic that was deleted or created again while this member had these partitions of it, told once; None if there is none."""
        with self._lock:
            return self._gone.popitem() if self._gone else None

    def to_release(self) -> list[Partition]:
        """The shares that another member waits for."""
        with self._lock:
            return [each for each in self._state.to_release(self.id or "") if each in self._mine]

    def release(self, shares: Iterable[Partition], offsets: Offsets, ids: Ids) -> None:
        """Gives up shares, and commits these offsets of them, in one commit."""
        with self._lock:
            given = [each for each in shares if each in self._mine]
            placed = self._moved(offsets, ids, {})
            if any(map(self._committed.is_back, placed)):
                self._go_back(placed)
                placed = []
            before = {each: self._mine.pop(each) for each in given if each in self._mine}
            try:
                self._change("releases", lambda state: state.released(self.id or "", given), placed)
            except BaseException:
                self._mine |= before
                raise

    def take(self) -> list[Partition]:
        """Takes what it wants and no member has; the shares that it has and the caller does not know."""
        with self._lock:
            if self._state.to_take(self.id or ""):
                self._change("takes", lambda state: state.taken(self.id or ""))
            owned = self._state.owned(self.id or "")
            new = [each for each in owned if each not in self._mine]
            self._mine |= {each: owned[each] for each in new}
            at = self._generations.group(self.group).at if new else {}
            self._committed.remember(at[each] for each in new if each in at)
            self._turned = self._state
            return new

    def held(self) -> dict[Partition, Held]:
        """The shares that the caller may read. It waits for no other thread: a dict is copied in one step."""
        return dict(self._mine)

    def is_late(self, share: Partition) -> bool:
        """Whether a partition came to be while the group read its topic, so that all of it is new."""
        topic = self._state.topics.get(share[0])
        return topic is not None and (topic.id, share[1]) not in self._known

    # ---- as the owner of a group does

    def positions(self) -> list[Position]:
        """The positions of the group, as the table has them now."""
        return self._generations.group(self.group).positions

    def known(self) -> list[Position]:
        """The positions of its shares, which no other member can change: they were read when the shares were taken."""
        return self._committed.all()

    def is_committed(self, topic: str, id: str, partition: int, offset: int) -> bool:
        """Whether the group is at this offset of a topic with this id, as far as this member knows."""
        return self._committed.is_at(topic, id, partition, offset)

    def commit(self, offsets: Offsets, ids: Ids, *, metadata: Mapping[Partition, str | None] | None = None) -> None:
        """Commits offsets of its shares, by topic and partition, in topics of these ids. It conflicts only with being fenced."""
        with self._lock:
            while True:
                self._require_mine(offsets, ids)
                if not self._pulse.is_live:
                    self._revive()
                    continue
                placed = self._moved(offsets, ids, metadata or {})
                if not placed:
                    return
                if any(map(self._committed.is_back, placed)):
                    if self._go_back(placed):
                        return
                elif self._has_committed(placed):
                    self._remember(placed)
                    return
                else:
                    self._adopt()

    def beat(self) -> None:
        """Writes a row of its own again if it wrote none for a minute, as the owner of the first share: so the group counts as running."""
        with self._lock:
            if time.monotonic() - self._wrote < _ROW_EVERY_S or self.id is None:
                return
            self._wrote = time.monotonic()
            known = self._committed.first(self._mine)
            if known is None or self._state.first_owner() != self.id:
                return
            self._changed |= not self._has_committed([dataclasses.replace(known, committed_at=rows.now())])

    def end(self) -> None:
        """Leaves the group for good."""
        self._pulse.stop(self._settings.heartbeat_s)
        self.leave()

    def leave(self) -> None:
        """Leaves the group; the next `look` joins it again, under another id."""
        with self._lock:
            self._mine = {}
            if self.id is not None:
                self._change("leaves", lambda state: state.without(self.id or ""), own=True)
            if self.id is not None:
                self._pulse.end(self.id)
                self.id = self._turned = None

    # ---- changes of the state

    def _join(self) -> None:
        me = f"{socket.gethostname()}-{uuid.uuid4().hex}"
        began = self._pulse.write(me, 0)
        try:
            self._enter(me)
        except BaseException:
            self._pulse.end(me)
            raise
        self._refreshed, self._changed = self._clock(), False
        self._pulse.live(began)
        self._pulse.restart()
        self._pulse.start(self._beat, self._settings.heartbeat_s)

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
            before = found or State(asked)
            if (its := before.assignor) != asked:
                raise SparklogError("GROUP_ASSIGNOR", group=self.group, table=self.table, found=its, asked=asked)
            replaced = before.of_instance(self._settings.instance, but=me)
            after = self._with_me(before, me).taken(me)
            note = rows.note_of_members(self.group, generation, me, "joins", after)
            fenced = {replaced: self._generations.version(replaced)} if replaced else {}
            if self._generations.commit(self.group, number + 1, generation, [note, *carried], fenced) is not None:
                break
        self.id, self._number, self._generation, self._version = me, number + 1, generation, 0
        self._state, self._mine, self._committed = after, {}, Committed()
        self._known |= after.known(before)

    def _with_me(self, state: State, me: str) -> State:
        """The state with this member as it is subscribed now, and with all topics that members read."""
        joined = state.joined(self._settings.registered(me, *self._reads))
        return joined.with_topics(self._topics.shared(joined.members.values()))

    def _refresh(self) -> None:
        self._refreshed = self._clock()
        if self._topics.shared(self._state.members.values()) != self._state.topics:
            self._change("topics changed", lambda state: state.with_topics(self._topics.shared(state.members.values())))
        if loads := self._weigher.look(self._state, self.id):
            self._change(f"weighs by {self._state.measure}", lambda state: state.weighed(loads))

    def _change(
        self, why: str, step: Callable[[State], State], moved: Iterable[Position] = (), *, own: bool = False, fenced: Iterable[str] = ()
    ) -> bool:
        """Changes the state by a step, which is tried again if another change was first. False if nothing is to be changed any more.

        own: the commit counts as one of this member, as one with rows does. fenced: members that it fences.
        """
        placed = list(moved)
        for number in attempts():
            if number:
                self._adopt()
                placed = [each for each in placed if (each.topic, each.partition) in self._state.owned(self.id or "")]
            if self.id is None:
                break
            after = step(self._state)
            if after == self._state and not placed:
                return False
            versions = {each: self._generations.version(each) for each in fenced}
            versions |= {self.id: self._version} if own or placed else {}
            note = rows.note_of_members(self.group, self._generation, self.id, why, after)
            if self._generations.commit(self.group, self._number + 1, self._generation, [note, *placed], versions) is not None:
                self._number, self._state = self._number + 1, after
                self._drop_strayed()
                self._version += self.id in versions
                self._remember(placed)
                return True
        return False

    def _go_back(self, placed: list[Position]) -> bool:
        """Commits offsets that are lower than before: a reset of these shares, which this member keeps. False if it lost one of them."""
        ids, moved = {each.topic: each.topic_id for each in placed}, {(each.topic, each.partition) for each in placed}
        for _ in attempts():
            if self.id is None:
                break
            number, group, versions = self._generations.fenceable(self.group)
            if group.state is None or moved - group.state.owned(self.id).keys():
                self._adopt()
                return False
            stays = [each for at, each in group.at.items() if at not in moved and ids.get(each.topic, each.topic_id) == each.topic_id]
            kept = [dataclasses.replace(each, committed_at=placed[0].committed_at) for each in stays]
            note = rows.note_of_members(self.group, group.generation + 1, self.id, "goes back", group.state)
            if self._generations.commit(self.group, number + 1, group.generation + 1, [note, *kept, *placed], versions) is not None:
                self._remember(placed)
                self._adopt()
                return True
        return False

    def _adopt(self) -> None:
        """Reads the state, and gives up what was lost. Without an id afterwards: it was expired. GenerationFenced if it cannot go on."""
        me = self.id or ""
        version = self._generations.version(me)  # before the state: fencing changes both in one commit
        self._changed = False
        number, generation, state = self._generations.state(self.group)
        if state is None:
            self._drop(self._mine)
            own = self._generation
            raise self._end_by(SparklogError("GENERATION_FENCED", group=self.group, generation=own, newest=generation, table=self.table))
        self._number, self._generation, self._version, self._state = number, generation, version, state
        self._drop_strayed()
        if me not in state.members:
            self.id = self._turned = None
            self._pulse.end(me)
            if other := state.of_instance(self._settings.instance, but=me):
                instance = self._settings.instance
                raise self._end_by(SparklogError("INSTANCE_FENCED", group=self.group, table=self.table, member=other, instance=instance))

    def _end_by(self, error: SparklogError) -> SparklogError:
        self.id, self._ended, self._turned = None, error, None
        self._pulse.stop()
        return error

    def _revive(self) -> None:
        """Reads the state, and is live again if it was not and the state has it."""
        began = None if self._pulse.is_live or self.id is None else self._pulse.write(self.id, self._number)
        self._adopt()
        if began is not None and self.id is not None:
            self._pulse.live(began)

    def _drop_strayed(self) -> None:
        owned = self._state.owned(self.id or "")
        self._drop([each for each, held in self._mine.items() if owned.get(each) != held])

    def _drop(self, shares: Iterable[Partition]) -> None:
        for each in list(shares):
            held, topic = self._mine.pop(each), self._state.topics.get(each[0])
            self._committed.forget(each)
            self._lost.append(each)
            if topic is None or topic.id != held.topic_id:
                self._gone.setdefault(each[0], []).append(each[1])

    def _require_mine(self, offsets: Offsets, ids: Ids) -> None:
        for topic, by_partition in offsets.items():
            for number in by_partition:
                known = self._state.topics.get(topic)
                if (topic, number) not in self._mine or known is None or ids.get(topic, known.id) != known.id:
                    raise SparklogError("MEMBER_FENCED", group=self.group, table=self.table, root=self.root, topic=topic, partition=number)

    def _has_committed(self, placed: list[Position]) -> bool:
        """Commits rows, if nothing fenced this member."""
        made = self._generations.commit_of_member(self.group, self._number, self._generation, placed, self.id or "", self._version)
        self._version += made
        return made

    def _moved(self, offsets: Offsets, ids: Ids, metadata: Mapping[Partition, str | None]) -> list[Position]:
        """The rows of these offsets, without those that are committed already."""
        placed = self._topics.placed(self.group, new, ids) if (new := self._committed.new(offsets, ids, metadata)) else []
        return [dataclasses.replace(each, metadata=metadata.get((each.topic, each.partition))) for each in placed]

    def _remember(self, placed: list[Position]) -> None:
        self._committed.remember(placed)
        self._wrote = time.monotonic() if placed else self._wrote

    # ---- heartbeats

    def _beat(self) -> None:
        """Writes a heartbeat, looks for a newer state, and expires members that are silent. It is called in a thread of its own."""
        me = self.id
        if me is None or self._clock() - self._polled > self._settings.max_poll_s:
            return  # the program hangs, or polls no more: others go on with its shares
        try:
            began = self._pulse.write(me, self._number)
            if self._generations.last(self.group) != self._number:
                self._changed = True
            self._pulse.live(began)
            self._expire(me)
        except (OSError, SparklogError) as error:
            _log.warning("Member %s of group %s: %s", me, self.group, error)

    def _expire(self, me: str) -> None:
        silent = self._pulse.silent(self._state.sessions(but=me))
        if not silent or not self._lock.acquire(timeout=self._settings.heartbeat_s):
            return
        try:
            gone = [each for each in silent if each in self._state.members]
            if gone and self.id == me and self._change(f"expires {', '.join(gone)}", lambda state: state.without(*gone), fenced=gone):
                self._changed = True
                self._pulse.end(*gone)
        finally:
            self._lock.release()
