"""A member of a group: it joins, owns shares of the topics, commits for them, and expires members that went silent."""

from __future__ import annotations

import dataclasses
import logging
import random
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping

from sparklog.assignors import Partition, canonical
from sparklog.errors import SparklogError
from sparklog.offsets import rows
from sparklog.offsets.heartbeats import clock
from sparklog.offsets.members import MemberSettings, Registered, State
from sparklog.offsets.pulse import Pulse
from sparklog.offsets.rows import Group, Position
from sparklog.offsets.table import OffsetTable
from sparklog.offsets.topics import Ids, Offsets

_log = logging.getLogger(__name__)
_PAUSE_S = 0.2
"""The longest pause before a change of the state is tried again."""
_ROW_EVERY_S = 60
"""A group without a new row for three minutes does not count as running."""


class Membership:
    """The place of one consumer in a group, which it takes again under a new id if others expired it.

    One thread calls it; a thread of its own writes heartbeats, which others look for. Methods raise GenerationFenced if one owner took
    the group alone, or another process the place of its instance; MEMBER_FENCED if it commits for a share that it lost.
    """

    def __init__(self, table: OffsetTable, group: str, settings: MemberSettings) -> None:
        self.group = rows.require_group(group)
        self._table = table
        self._generations, self._topics = table.generations, table.topics
        self._settings = dataclasses.replace(settings, assignor=canonical(settings.assignor))
        self._pulse = Pulse(table.path, self.group, settings.session_s)
        self._lock = threading.RLock()
        """Held while the state is read or changed; not while a heartbeat is written."""
        self._reads: tuple[tuple[str, ...], str | None] = ((), None)
        self.id: str | None = None
        self._number = self._generation = self._version = 0
        self._group = Group(self.group, [])
        self._state = State(self._settings.assignor)
        self._mine: dict[Partition, int] = {}
        """The shares that the caller knows of, each with its epoch."""
        self._lost: list[Partition] = []
        self._committed: dict[Partition, Position] = {}
        self._changed = False
        self._polled = self._refreshed = clock()
        self._wrote = time.monotonic()
        self._known_topics: set[Partition] = set()
        self._ended: SparklogError | None = None
        """Why it cannot be a member any more."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    # ---- what the caller does in turns

    def subscribe(self, topics: Iterable[str], pattern: str | None = None) -> None:
        """Names the topics that it reads, from the next `look` on."""
        self._reads = (tuple(sorted(topics)), pattern)
        if self.id is not None:
            with self._lock:
                self._change("subscribes", lambda state: self._with_me(state, self.id or ""))

    def look(self) -> None:
        """Joins if it is not a member, and learns what others changed. To be called before records are returned."""
        self._polled = clock()
        with self._lock:
            if self._ended is not None:
                raise self._ended
            if self.id is None:
                self._join()
            elif self._changed or not self._pulse.is_live:
                self._revive()
                if self.id is None:
                    self._join()
            if clock() - self._refreshed >= self._settings.heartbeat_s:
                self._refresh()

    def lost(self) -> list[Partition]:
        """The shares that were taken away since the last call."""
        with self._lock:
            lost, self._lost = self._lost, []
        return lost

    def to_release(self) -> list[Partition]:
        """The shares that another member waits for."""
        return [each for each in self._state.to_release(self.id or "") if each in self._mine]

    def release(self, shares: Iterable[Partition], offsets: Offsets, ids: Ids) -> None:
        """Gives up shares, and commits these offsets of them, in one commit."""
        with self._lock:
            given = [each for each in shares if each in self._mine]
            placed = self._moved(offsets, ids, {})
            if any(map(self._is_back, placed)):
                self._go_back(placed)
                placed = []
            for each in given:
                self._mine.pop(each, None)
            self._change("releases", lambda state: state.released(self.id or "", given), placed)

    def take(self) -> list[Partition]:
        """Takes what it wants and no member has; the shares that it has and the caller does not know."""
        with self._lock:
            if self._state.to_take(self.id or ""):
                self._change("takes", lambda state: state.taken(self.id or ""))
            owned = self._state.owned(self.id or "")
            new = [each for each in owned if each not in self._mine]
            self._mine |= {each: owned[each] for each in new}
            if new:
                at = self._generations.group(self.group).at
                self._committed |= {each: at[each] for each in new if each in at}
            return new

    def owned(self, topic: str) -> list[int]:
        """The partitions of a topic that the caller may read."""
        return sorted(number for name, number in self._mine if name == topic)

    def topics(self) -> set[str]:
        """The topics in which the caller may read partitions."""
        return {topic for topic, _ in self._mine}

    def is_late(self, share: Partition) -> bool:
        """Whether the partition came to be after this member joined."""
        return share not in self._known_topics

    # ---- as the owner of a group does

    def positions(self) -> list[Position]:
        """The positions of the group, as the table has them now."""
        return self._generations.group(self.group).positions

    def is_committed(self, topic: str, id: str, partition: int, offset: int) -> bool:
        """Whether the group is at this offset of a topic with this id, as far as this member knows."""
        known = self._committed.get((topic, partition))
        return known is not None and (known.topic_id, known.offset) == (id, offset)

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
                if any(map(self._is_back, placed)):
                    self._go_back(placed)
                    return
                if self._generations.commit_of_member(self.group, self._number, self._generation, placed, self.id or "", self._version):
                    self._version += 1
                    self._remember(placed)
                    return
                self._adopt()

    def beat(self) -> None:
        """Writes a row of its own again if it wrote none for a minute, so that the group counts as running."""
        with self._lock:
            if time.monotonic() - self._wrote < _ROW_EVERY_S or self.id is None:
                return
            self._wrote = time.monotonic()
            again = [dataclasses.replace(each, committed_at=rows.now()) for at, each in self._committed.items() if at in self._mine][:1]
            if again and self._generations.commit_of_member(self.group, self._number, self._generation, again, self.id, self._version):
                self._version += 1

    def end(self) -> None:
        """Leaves the group."""
        self._stop.set()
        with self._lock:
            if self.id is not None:
                self._change("leaves", lambda state: state.without(self.id or ""), own=True)
                self._pulse.end(self.id)
                self.id = None
        if self._thread is not None:
            self._thread.join(timeout=self._settings.heartbeat_s)

    # ---- changes of the state

    def _join(self) -> None:
        me = f"{socket.gethostname()}-{uuid.uuid4().hex}"
        began = self._pulse.write(me, 0)
        while True:
            number, group, versions = self._generations.fenceable(self.group)
            before = group.state or State(self._settings.assignor)
            if before.assignor != self._settings.assignor:
                raise SparklogError(
                    "GROUP_ASSIGNOR", group=self.group, table=self._table.path, found=before.assignor, asked=self._settings.assignor
                )
            replaced = before.of_instance(self._settings.instance, but=me)
            after = self._with_me(before, me).taken(me)
            carried = [] if group.state or not group.exists else group.positions
            generation = group.generation if group.state else (group.generation or number) + 1
            note = self._note(generation, "joins", me, after)
            fenced = {replaced: versions[replaced]} if replaced else {}
            changed = self._generations.commit(group, number + 1, generation, [note, *carried], fenced)
            if changed is not None:
                break
            time.sleep(random.random() * _PAUSE_S)
        self.id, self._number, self._generation, self._version = me, number + 1, generation, 0
        self._group, self._state = changed, after
        self._known_topics = set(after.shares)
        self._mine, self._committed = {}, {}
        self._refreshed, self._changed = clock(), False
        self._pulse.live(began)
        self._pulse.restart()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"member of {self.group}", daemon=True)
            self._thread.start()

    def _with_me(self, state: State, me: str) -> State:
        """The state with this member as it is subscribed now, and with all topics that members read."""
        settings, (topics, pattern) = self._settings, self._reads
        mine = Registered(
            me, topics, pattern, settings.capacity, round(settings.session_s * 1000), settings.instance, settings.rack, socket.gethostname()
        )
        joined = state.joined(mine)
        return joined.with_topics(self._topics.shared(joined.members.values()))

    def _refresh(self) -> None:
        self._refreshed = clock()
        if self._topics.shared(self._state.members.values()) != self._state.topics:
            self._change("topics changed", lambda state: state.with_topics(self._topics.shared(state.members.values())))

    def _change(
        self, why: str, step: Callable[[State], State], moved: Iterable[Position] = (), *, own: bool = False, fenced: Iterable[str] = ()
    ) -> bool:
        """Changes the state by a step, which is tried again if another change was first. False if nothing is to be changed any more.

        own: the commit counts as one of this member, as one with rows does. fenced: members that it fences.
        """
        placed = list(moved)
        while self.id is not None:
            after = step(self._state)
            if after == self._state and not placed:
                return False
            versions = {each: self._generations.version(each) for each in fenced}
            if own or placed:
                versions[self.id] = self._version
            note = self._note(self._generation, why, self.id, after)
            changed = self._generations.commit(self._group, self._number + 1, self._generation, [note, *placed], versions)
            if changed is not None:
                self._number, self._group, self._state = self._number + 1, changed, after
                self._drop_strayed()
                self._version += self.id in versions
                self._remember(placed)
                return True
            time.sleep(random.random() * _PAUSE_S)
            self._adopt()
            placed = [each for each in placed if (each.topic, each.partition) in self._state.owned(self.id or "")]
        return False

    def _is_back(self, to: Position) -> bool:
        """Whether a position is lower than the committed one, or in a topic that was created again: rows of the generation hide it."""
        now = self._committed.get((to.topic, to.partition))
        return now is not None and (now.topic_id != to.topic_id or now.offset > to.offset)

    def _go_back(self, placed: list[Position]) -> None:
        """Commits offsets that are lower than before: a reset of these shares, which this member keeps."""
        ids = {each.topic: each.topic_id for each in placed}
        while self.id is not None:
            number, group, versions = self._generations.fenceable(self.group)
            if group.state is None or any(each not in group.state.owned(self.id) for each in {(p.topic, p.partition) for p in placed}):
                self._adopt()
                raise self._fenced(placed[0].topic, placed[0].partition)
            moved = {(each.topic, each.partition) for each in placed}
            stays = [each for at, each in group.at.items() if at not in moved and ids.get(each.topic, each.topic_id) == each.topic_id]
            kept = [dataclasses.replace(each, committed_at=rows.now()) for each in stays]
            note = self._note(group.generation + 1, "goes back", self.id, group.state)
            if self._generations.commit(group, number + 1, group.generation + 1, [note, *kept, *placed], versions) is not None:
                self._remember(placed)
                self._adopt()
                return
            time.sleep(random.random() * _PAUSE_S)

    def _adopt(self) -> None:
        """Reads the state, and gives up what was lost. Without an id afterwards: it was expired. GenerationFenced if it cannot go on."""
        me = self.id or ""
        version = self._generations.version(me)  # before the state: fencing changes both in one commit
        self._changed = False
        number, group = self._generations.last(self.group), self._generations.group(self.group)
        state = group.state
        if state is None:
            self._drop(self._mine)
            raise self._end_by(
                SparklogError(
                    "GENERATION_FENCED", group=self.group, generation=self._generation, newest=group.generation, table=self._table.path
                )
            )
        self._number, self._generation, self._version = max(number, group.note_seq), group.generation, version
        self._group, self._state = group, state
        self._drop_strayed()
        if me not in state.members:
            self.id = None
            if other := state.of_instance(self._settings.instance, but=me):
                instance = self._settings.instance
                raise self._end_by(
                    SparklogError("INSTANCE_FENCED", group=self.group, table=self._table.path, member=other, instance=instance)
                )

    def _end_by(self, error: SparklogError) -> SparklogError:
        self.id, self._ended = None, error
        self._stop.set()
        return error

    def _revive(self) -> None:
        """Reads the state, and is live again if it was not and the state has it."""
        began = None if self._pulse.is_live or self.id is None else self._pulse.write(self.id, self._number)
        self._adopt()
        if began is not None and self.id is not None:
            self._pulse.live(began)

    def _drop_strayed(self) -> None:
        owned = self._state.owned(self.id or "")
        self._drop([each for each, epoch in self._mine.items() if owned.get(each) != epoch])

    def _drop(self, shares: Iterable[Partition]) -> None:
        for each in list(shares):
            del self._mine[each]
            self._committed.pop(each, None)
            self._lost.append(each)

    def _note(self, generation: int, why: str, by: str, state: State) -> Position:
        return rows.note(self.group, generation, rows.RUNNING if state.members else "end", {"by": by, "why": why, **state.stored()})

    # ---- commits

    def _require_mine(self, offsets: Offsets, ids: Ids) -> None:
        for topic, by_partition in offsets.items():
            for number in by_partition:
                known = self._state.topics.get(topic)
                if (topic, number) not in self._mine or known is None or ids.get(topic, known.id) != known.id:
                    raise self._fenced(topic, number)

    def _moved(self, offsets: Offsets, ids: Ids, metadata: Mapping[Partition, str | None]) -> list[Position]:
        """The rows of these offsets, without those that are committed already."""
        new = {
            topic: {
                number: offset
                for number, offset in of.items()
                if not self.is_committed(topic, ids.get(topic, ""), number, offset) or metadata.get((topic, number)) is not None
            }
            for topic, of in offsets.items()
        }
        placed = self._topics.placed(self.group, {topic: of for topic, of in new.items() if of}, ids) if any(new.values()) else []
        return [dataclasses.replace(each, metadata=metadata.get((each.topic, each.partition))) for each in placed]

    def _remember(self, placed: Iterable[Position]) -> None:
        for each in placed:
            self._committed[each.topic, each.partition] = each
            self._wrote = time.monotonic()

    def _fenced(self, topic: str, partition: int) -> SparklogError:
        return SparklogError("MEMBER_FENCED", group=self.group, table=self._table.path, topic=topic, partition=partition)

    # ---- heartbeats

    def _run(self) -> None:
        while not self._stop.wait(self._settings.heartbeat_s):
            me = self.id
            if me is None or clock() - self._polled > self._settings.max_poll_s:
                continue  # the program hangs, or polls no more: others go on with its shares
            try:
                self._beat()
                self._expire(me)
            except (OSError, SparklogError) as error:
                _log.warning("Member %s of group %s: %s", me, self.group, error)

    def _beat(self) -> None:
        """Writes a heartbeat, and looks for a newer state: a member is live by the two."""
        if self.id is not None:
            began = self._pulse.write(self.id, self._number)
            if self._generations.last(self.group) != self._number:
                self._changed = True
            self._pulse.live(began)

    def _expire(self, me: str) -> None:
        silent = self._pulse.silent({each.id: each.session_ms / 1000 for each in self._state.members.values() if each.id != me})
        if not silent or not self._lock.acquire(timeout=self._settings.heartbeat_s):
            return
        try:
            gone = [each for each in silent if each in self._state.members]
            if gone and self.id == me and self._change(f"expires {', '.join(gone)}", lambda state: state.without(*gone), fenced=gone):
                self._changed = True
                self._pulse.end(*gone)
        finally:
            self._lock.release()
