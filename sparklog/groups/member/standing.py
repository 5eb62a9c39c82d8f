"""The standing of a member in its group: a state machine without a table, a heartbeat, a clock, a lock or a thread.

A call is a generator of requests (`requests.py`), which `Membership` replies to. docs/reference/members.md has the rules.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from sparklog.errors import SparklogError
from sparklog.groups.assignors import Partition
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.member import requests as ask
from sparklog.groups.member.holdings import Holdings
from sparklog.groups.member.state import GroupState, Held, Hold, MemberSettings, Registered, SharedTopic
from sparklog.groups.rows import Position
from sparklog.groups.table.generations import HOLD_S, OF_OPERATORS
from sparklog.ondisk.state import State
from sparklog.steps import Steps

Begin = Callable[[Partition, str, int, int, bool], int | None]
_LOOK_S = 0.1
"""A member that holds its commits looks so often whether the operator is done."""
_ROW_EVERY_S = 60  # a group without a new row for three minutes does not count as running


class Watched(NamedTuple):
    """The newest state that is known to a member as it writes a heartbeat, and the members of the state that are silent."""

    member: str
    state: GroupState
    silent: list[str]


class Standing:
    """The standing of a consumer in a group. The consumer joins again under a new id if others expired it.

    `Membership` runs the methods that return `Steps`, each after another. Only `heartbeat` runs beside one: it changes `_watched`, and sets
    `_changed`. Between two calls:

    * `_state`, `_number` and `_generation` are of one change of the group. `_version` was read before them, or counted since: a commit
      that gives it conflicts with each later change that took a share from this member.
    * `holdings` has shares of this member in `_state` alone, each in that epoch. A position in `holdings` goes back only by another
      generation: rows of the same generation would hide it.
    * Without an `id` the consumer is not a member, and it holds no share. After `_ended` it never joins again.
    * If the answer to a change or to a commit is lost, the next refresh of the state shows the outcome.
    """

    def __init__(self, group: str, table: str, root: str | None, settings: MemberSettings, begin: Begin, now: float) -> None:
        """`begin` gives the first offset of a share without a position. It is called with the share, the id of its topic, its log start and
        end offset, and whether the group has read its topic before; None if that is not known. `table` and `root` are for errors and
        for others to compare. `now` is the time by the clock of `Clock`.
        """
        self.group, self.table, self.root = group, table, root
        self._settings = settings
        self._begin = begin
        self._reads: tuple[tuple[str, ...], str | None] = ((), None)
        self.id: str | None = None
        self._number = self._generation = self._version = 0
        self._state = GroupState(settings.shared_by)
        self.holdings = Holdings()
        self._changed = False
        """Whether the group has another state than `_state`, as far as heartbeats and calls show."""
        self._turned: GroupState | None = None
        """The state after the caller's last turn."""
        self._polled = self._refreshed = self._wrote = now
        self._is_unseen = False
        """Whether others expired it although it was live: they do not see its heartbeats."""
        self._waited_for: str | None = None
        """The change of an operator for which it held its commits last."""
        self._watched: tuple[int, GroupState] = (0, self._state)
        """The newest state that the thread of heartbeats knows, and its number."""
        self._ended: SparklogError | None = None
        """Why it can no longer be a member."""

    # ---- the turns of the caller

    def subscribe(
        self, topics: Iterable[str], pattern: str | None, given: Iterable[Partition], commits: Collection[OffsetCommit]
    ) -> Steps[None]:
        """Names the topics that it reads, and gives up shares of others, in one commit. A later `poll` joins."""
        self._reads = (tuple(sorted(topics)), pattern)
        if self.id is not None:

            def step(state: GroupState) -> GroupState:
                return state.released(self.id or "", given).joined(self._registered(self.id or ""))

            yield from self._change("subscribes", step, (yield from self._placed(commits)), refreshes=True)

    def has_news(self, now: float, *, is_live: bool, is_called: bool) -> bool:
        """Notes that the program polls. Whether `poll` has anything to do."""
        self._polled = now
        if is_called:
            self._changed = True
        return not is_live or self._changed or self._state is not self._turned or self._is_refresh_due(now)

    def _is_refresh_due(self, now: float) -> bool:
        return now - self._refreshed >= self._settings.heartbeat_s

    def poll(self, now: float) -> Steps[None]:
        """Joins if it is not a member, and learns what others changed. GenerationFencedError if it cannot be a member."""
        is_due = self._is_refresh_due(now)
        self._require_not_ended()
        if self.id is not None and (self._changed or not (yield from ask.IsBeating())):
            yield from self._revive()
        if self.id is None:
            yield from self._join()
        if is_due:
            yield from self._refresh()

    def _require_not_ended(self) -> None:
        if self._ended is not None:
            raise self._ended

    def to_release(self) -> list[Partition]:
        """The shares that another member waits for."""
        return [each for each in self._state.to_release(self.id or "") if each in self.holdings.mine]

    def release(self, shares: Iterable[Partition], commits: Collection[OffsetCommit]) -> Steps[None]:
        """Gives up shares, and commits offsets of the shares that it still has, in one commit."""
        yield from self._waits_for_operator()
        given = [each for each in shares if each in self.holdings.mine]
        placed = yield from self._placed(commits)
        yield from self._change("releases", lambda state: state.released(self.id or "", given).taken(self.id or ""), placed)

    def take(self) -> Steps[None]:
        """Takes free shares that it wants, takes up shares that others gave to it, and commits the beginnings of shares without a position.

        A share that was given to it, and that another member wants now, is given on before it is taken up.
        """
        yield from self._waits_for_operator()

        def step(state: GroupState) -> GroupState:
            me = self.id or ""
            return state.released(me, [each for each in state.to_release(me) if each not in self.holdings.mine]).taken(me)

        if self.id is not None and step(self._state) != self._state:
            yield from self._change("takes", step)
        yield from self._take_up()
        self._turned = self._state

    def leave(self) -> Steps[None]:
        """Leaves the group; the next `poll` joins it again, under another id. A static member only falls silent."""
        self.holdings.drop()
        if self._settings.instance is None:
            if self.id is not None:
                yield from self._change("leaves", lambda state: state.without(self.id or "").given(), own=True)
            if self.id is not None:
                yield from ask.DeleteHeartbeats([self.id])
        self.id = self._turned = None

    # ---- answers without a request

    def held(self) -> dict[Partition, Hold]:
        """The shares that the caller may read. A dict is copied in one step."""
        return dict(self.holdings.mine)

    def topics(self) -> dict[str, str]:
        """The ids of the topics that the group reads, by name."""
        return {name: topic.id for name, topic in self._state.topics.items()}

    @property
    def generation(self) -> int:
        """The generation of the group in the newest state that is known."""
        return self._generation

    @property
    def is_expired(self) -> bool:
        """Whether a heartbeat found that the group no longer has this member, and its program has not learned that yet."""
        number, state = self._watched
        return number > self._number and self.id not in state.members

    def known(self) -> list[Position]:
        """The positions of its shares."""
        return list(self.holdings.at.values())

    # ---- commits

    def commit(self, commits: Collection[OffsetCommit]) -> Steps[dict[Partition, SparklogError]]:
        """Commits offsets of its shares, as the consumer held them. Only fencing conflicts. The shares that it no longer owns so, each with
        its error, were not committed.
        """
        self._require_not_ended()
        while True:
            mine, refused = yield from self._of_mine(commits)
            if not mine:
                return refused
            if not (yield from ask.IsBeating()):
                yield from self._revive()
                continue
            if (yield from self._waits_for_operator()):
                continue
            placed = yield from self._moved(mine)
            if not placed:
                return refused
            if any(map(self.holdings.is_back, placed)):
                if (yield from self._go_back(placed)):
                    return refused
            elif (yield from self._has_committed(placed)):
                yield from self._remember(placed)
                return refused
            else:
                yield from self._adopt()

    def beat(self) -> Steps[None]:
        """As the owner of the first share, writes a row of its own again if it wrote no row for a minute. So the group counts as running.

        A member whose heartbeats others do not see does so after a third of its session, without rows if it has no position. No row is
        written while an operator asks members to hold their commits.
        """
        every = min(_ROW_EVERY_S, self._settings.session_s / 3) if self._is_unseen else _ROW_EVERY_S
        now = yield from ask.Clock()
        if now - self._wrote < every or self.id is None or self._state.announced not in (None, self._waited_for):
            return
        self._wrote = now
        known = next((at for share, at in self.holdings.at.items() if share in self.holdings.mine), None)
        if self._is_unseen or (known is not None and self._state.first_owner() == self.id):
            again = [dataclasses.replace(known, committed_at=(yield from ask.Date()))] if known else []
            if not (yield from self._has_committed(again)):
                self._changed = True

    # ---- heartbeats

    def heartbeat(self) -> Steps[Watched | None]:
        """Writes a heartbeat, looks for a newer state, and finds the members that are silent. None if it is to fall silent itself.

        It may run beside another call.
        """
        me = self.id
        if me is None or (yield from ask.Clock()) - self._polled > self._settings.max_poll_s:
            return None  # the program hangs, or polls no more: others go on with its shares
        began = yield from ask.WriteHeartbeat(me, self._number)
        number = yield from ask.ReadNumber()
        if number == self._number:
            self._watched = number, self._state
        elif number != self._watched[0]:  # a program in a long batch watches those too that came since its last poll
            self._watched = number, (yield from ask.ReadState())[2] or GroupState(self._settings.shared_by)
        if number != self._number:
            self._changed = True  # after the state was read, which its program then finds in memory
        yield from ask.GoLive(began)
        state = self._newest_known()
        return Watched(me, state, (yield from ask.FindSilent(state.sessions(but=me))))

    def _newest_known(self) -> GroupState:
        """The newest state that the thread of heartbeats knows."""
        return self._watched[1]

    def expire(self, found: Watched) -> Steps[None]:
        """Expires the members that a heartbeat found silent."""
        if self.id == found.member and self._state is not found.state:
            yield from self._adopt()
        gone = [each for each in found.silent if each in self._state.members]

        def without_them(state: GroupState) -> GroupState:
            return state if state.members.keys().isdisjoint(gone) else state.without(*gone).given()

        if gone and self.id == found.member and (yield from self._change("expires", without_them, expired=gone)):
            self._changed = True
            yield from ask.DeleteHeartbeats(gone)

    # ---- changes of the state

    def _join(self) -> Steps[None]:
        me = yield from ask.NewId()
        began = yield from ask.WriteHeartbeat(me, 0)
        try:
            yield from self._enter(me, began)
        except GeneratorExit:  # nothing answers now
            raise
        except BaseException:
            if self.id is None:
                yield from ask.DeleteHeartbeats([me])
            raise
        self._refreshed, self._changed = (yield from ask.Clock()), False

    def _enter(self, me: str, began: float) -> Steps[None]:
        """Adds this member to the state, under this id. It is a member once the change is made, also if a later step fails."""
        asked = self._settings.shared_by
        for attempt in itertools.count():
            yield from ask.BackOff(attempt)
            carried: list[Position] = []
            number, generation, found = yield from ask.ReadState()
            if found is None:
                number, group, _ = yield from ask.ReadFenceable()
                if group.state is not None:
                    continue  # another one joined just now
                carried = group.positions if group.exists else []
                generation = (group.generation or number) + 1
            before = found or GroupState(asked)
            dead: list[str] = []
            try:
                joined = yield from self._admitted(before, me)
            except SparklogError as error:
                if error.id not in ("GROUP_ASSIGNOR", "GROUP_ROOT"):
                    raise
                dead = yield from self._dead_of_other_assignor(before, me)
                if not dead:
                    raise
                before = dataclasses.replace(before.without(*dead), assignor=asked, weights={})
                joined = yield from self._with_me(before, me)
            replaced = before.of_instance(self._settings.instance, but=me)
            after = joined.taken(me)
            first = after.first_taken(before, me)
            known, begun, back = yield from self._beginnings(before, first, after.members[me], carried if found is None else None)
            fenced = yield from ask.ReadVersions([*dead, *([replaced] if replaced else [])])
            if (yield from ask.CommitChange(number + 1, generation, me, "joins", after, [*carried, *begun], fenced)):
                break
        self.id, self._number, self._generation, self._version = me, number + 1, generation, 0
        self._state, self.holdings = after, Holdings()
        yield from self._hold(first, [*known, *begun])
        yield from ask.BeginHeartbeats(began)
        yield from ask.CallMembers(after.new_owners(before, but=me))
        yield from self._go_back(back)

    def _dead_of_other_assignor(self, state: GroupState, me: str) -> Steps[list[str]]:
        """The members of a state that died, so that they do not keep members of another assignor out."""
        return (yield from ask.FindDead(state.sessions(but=me)))

    def _admitted(self, state: GroupState, me: str) -> Steps[GroupState]:
        """The state with this member. CallError GROUP_ASSIGNOR or GROUP_ROOT if it cannot join the members of the state while they live."""
        asked = self._settings.shared_by
        if state.assignor != asked:
            raise SparklogError("GROUP_ASSIGNOR", group=self.group, table=self.table, found=state.assignor, asked=asked)
        return (yield from self._with_me(state, me))

    def _beginnings(
        self, before: GroupState, came: Mapping[Partition, Held], member: Registered, positions: Iterable[Position] | None = None
    ) -> Steps[tuple[list[Position], list[Position], list[Position]]]:
        """The positions of the shares that come to this member, by the positions of the group; and the beginnings of shares without a
        position.

        The third are beginnings in topics that were created again, where rows of the topic before would hide them in this generation.
        No other member can change them before the change is made, since each that does so changes the number of the group.
        """
        if not came:
            return [], [], []
        at = {(each.topic, each.partition): each for each in ((yield from ask.ReadGroup()).positions if positions is None else positions)}
        read = {topic for topic, _ in at}
        known, begun, back = list[Position](), list[Position](), list[Position]()
        for (name, number), held in sorted(came.items(), key=lambda each: each[0]):
            row, state = at.get((name, number)), (yield from ask.FindTopic(name))
            known += [row] if row else []
            if (row and row.topic_id == held.topic_id) or state is None or state.topic_id != held.topic_id or number >= state.partitions:
                continue
            late = row is not None or before.has_read((name, number), held.topic_id)
            late = member.has_read(name, read) if late is None else late
            offset = self._begin((name, number), held.topic_id, state.starts[number], state.ends[number], late)
            if offset is not None:
                date = yield from ask.Date()
                (back if row else begun).append(Position(self.group, 0, name, held.topic_id, number, offset, date))
        return known, begun, back

    def _registered(self, me: str) -> Registered:
        """This member as it is subscribed now."""
        return self._settings.registered(me, *self._reads, self.root)

    def _with_me(self, state: GroupState, me: str) -> Steps[GroupState]:
        """The state with this member as it is subscribed now, and with all topics that members read."""
        joined = state.joined(self._registered(me))
        return joined.with_topics((yield from self._shared(joined, me)))

    def _shared(self, state: GroupState, me: str) -> Steps[dict[str, SharedTopic]]:
        """The topics that members read, as they are now. CallError GROUP_ROOT if the topics of this member are in another root."""
        found = yield from ask.ShareTopics(state.members.values())
        if replaced := [name for name, topic in found.items() if name in state.topics and state.topics[name].id != topic.id]:
            for each in state.members.values():
                if me in state.members and state.members[me].has_another_root(each):
                    table, root, topic = self.table, self.root, replaced[0]
                    raise SparklogError(
                        "GROUP_ROOT", group=self.group, table=table, root=root, topic=topic, member=each.id, found=each.root
                    )
        return found

    def _refresh(self) -> Steps[None]:
        self._refreshed = yield from ask.Clock()
        if (yield from self._shared(self._state, self.id or "")) != self._state.topics:
            yield from self._change("topics changed", lambda state: state, refreshes=True)
        if loads := (yield from ask.Weigh(self._state, self.id)):
            yield from self._change(f"weighs by {self._state.measure}", lambda state: state.weighed(loads))

    def _change(
        self,
        why: str,
        step: Callable[[GroupState], GroupState],
        moved: Iterable[Position] = (),
        *,
        refreshes: bool = False,
        own: bool = False,
        expired: Sequence[str] = (),
    ) -> Steps[bool]:
        """Changes the state by a step, which is tried again if another change was first. False if nothing is left to change.

        refreshes: the state gets the topics that its members read after the step, and the member takes its free shares. own: the commit
        counts as a commit of this member, like a commit with rows. expired: members that it fences, and names if
        no other change removed them.
        """
        placed = list(moved)
        for attempt in itertools.count():
            yield from ask.BackOff(attempt)
            # A step from an older state is refused for certain, and costs more than a look.
            if attempt or (yield from ask.ReadNumber()) != self._number:
                yield from self._adopt()
                placed = self.holdings.still_mine(placed)
            if self.id is None:
                break
            before, after = self._state, step(self._state)
            if refreshes:
                after = after.with_topics((yield from self._shared(after, self.id))).taken(self.id)
            if after == before and not placed:
                return False
            first = after.first_taken(before, self.id)
            known, begun, back = (yield from self._beginnings(before, first, after.members[self.id])) if first else ([], [], [])
            gone = [each for each in expired if each in before.members]
            versions = dict((yield from ask.ReadVersions(gone)))
            versions |= {self.id: self._version} if own or placed or begun else {}
            rows, number = [*placed, *begun], self._number + 1
            said = f"{why} {', '.join(gone)}" if gone else why
            if (yield from ask.CommitChange(number, self._generation, self.id, said, after, rows, versions)):
                self._number, self._state = number, after
                self.holdings.drop_strayed(self._state.owned(self.id or ""))
                self._version += self.id in versions
                yield from self._remember(placed)
                yield from self._hold(first, known, begun)
                yield from ask.CallMembers(after.new_owners(before, but=self.id))
                yield from self._go_back(back)
                return True
        return False

    def _take_up(self) -> Steps[None]:
        """Learns the positions of the shares that others gave to this member, or that it took in a change whose answer was lost."""
        for attempt in itertools.count():
            yield from ask.BackOff(attempt)
            came = self.holdings.came(self._state.owned(self.id or ""))
            if self.id is None or not came:
                break
            known, begun, back = yield from self._beginnings(self._state, came, self._state.members[self.id])
            if begun and not (yield from self._has_committed(begun)):
                yield from self._adopt()
                continue
            yield from self._hold(came, known, begun)
            yield from self._go_back(back)
            break

    def _hold(self, came: Mapping[Partition, Held], known: Iterable[Position], begun: Iterable[Position] = ()) -> Steps[None]:
        """Owns shares from now on. `known` are the positions of the group in them, and `begun` the positions that this member committed."""
        placed = list(begun)
        if placed:
            self._wrote = yield from ask.Clock()
        self.holdings.take(came, [*known, *placed])

    def _go_back(self, placed: list[Position]) -> Steps[bool]:
        """Commits offsets that are lower than before: a reset of these shares, which this member keeps. False if it lost any of them."""
        if not placed:
            return True
        moved = {(each.topic, each.partition) for each in placed}
        for attempt in itertools.count():
            yield from ask.BackOff(attempt)
            if self.id is None:
                break
            number, group, versions = yield from ask.ReadFenceable()
            owned = {} if group.state is None else group.state.owned(self.id)
            if group.state is None or not all(self.holdings.has_as_before(each, owned) for each in moved):
                yield from self._adopt()
                return False
            # Rows of a topic before stay: by them, its other partitions begin at their first records.
            stays = [each for at, each in group.at.items() if at not in moved]
            rows = [*(dataclasses.replace(each, committed_at=placed[0].committed_at) for each in stays), *placed]
            if (yield from ask.CommitChange(number + 1, group.generation + 1, self.id, "goes back", group.state, rows, versions)):
                yield from self._remember(placed)
                yield from self._adopt()
                return True
        return False

    def _waits_for_operator(self) -> Steps[bool]:
        """Waits until a change that an operator announced was made, or for `HOLD_S`, once. Whether it waited."""
        announced = self._state.announced
        if announced in (None, self._waited_for):
            return False
        self._waited_for = announced
        number, until = self._number, (yield from ask.Clock()) + HOLD_S
        while (yield from ask.Clock()) < until:
            if (yield from ask.ReadNumber()) != number:
                number, _, state = yield from ask.ReadState()
                if state is None or state.announced != announced:
                    break  # a join is another change, and no reason to go on
            yield from ask.Pause(_LOOK_S)  # as many members look at the table, and the operator needs the machine
        yield from self._adopt()
        return True

    def _adopt(self) -> Steps[None]:
        """Reads the state, and gives up the lost shares. Without an id afterwards: it was expired.

        GenerationFencedError if it cannot go on.
        """
        me = self.id or ""
        for attempt in itertools.count():
            yield from ask.BackOff(attempt)
            version = (yield from ask.ReadVersions([me]))[me]  # before the state: fencing changes both in one commit
            self._changed = False
            number, generation, state = yield from ask.ReadState()
            ended = None if state else (yield from ask.ReadGroup())
            if ended is None or ended.state is None:
                break  # otherwise another member began the group just now
        if state is None:
            self.holdings.drop()
            if ended and ended.event in ("end", *OF_OPERATORS):
                # It was expired, and the others left: it joins again.
                self.id = self._turned = None
                yield from ask.DeleteHeartbeats([me])
                return
            own = self._generation
            error = SparklogError("GENERATION_FENCED", group=self.group, generation=own, newest=generation, table=self.table)
            yield from self.end_by(error)
            raise error
        self._number, self._generation, self._version, self._state = number, generation, version, state
        self.holdings.drop_strayed(self._state.owned(self.id or ""))
        if me not in state.members:
            self.id = self._turned = None
            yield from ask.DeleteHeartbeats([me])
            if other := state.of_instance(self._settings.instance, but=me):
                instance = self._settings.instance
                error = SparklogError("INSTANCE_FENCED", group=self.group, table=self.table, member=other, instance=instance)
                yield from self.end_by(error)
                raise error
            if (yield from ask.IsSteady()):
                self._is_unseen = True
                yield from ask.WarnOfUnseen(me)

    def end_by(self, error: SparklogError) -> Steps[None]:
        """Ends its membership for good by an error, which later calls raise."""
        self.id, self._ended, self._turned = None, error, None
        self.holdings.drop()
        yield from ask.EndHeartbeats()

    def _revive(self) -> Steps[None]:
        """Reads the state, and is live again if it was not and the state has it."""
        began = None if self.id is None or (yield from ask.IsBeating()) else (yield from ask.WriteHeartbeat(self.id, self._number))
        yield from self._adopt()
        if began is not None and self.id is not None:
            yield from ask.GoLive(began)

    def _of_mine(self, commits: Collection[OffsetCommit]) -> Steps[tuple[list[OffsetCommit], dict[Partition, SparklogError]]]:
        """The commits of shares that it owns as the consumer held them, and the error of each other one."""
        mine: list[OffsetCommit] = []
        refused: dict[Partition, SparklogError] = {}
        for each in commits:
            if self.holdings.owns(each):
                mine.append(each)
            else:
                refused[each.place] = yield from self._lost(each)
        return mine, refused

    def _lost(self, commit: OffsetCommit) -> Steps[SparklogError]:
        """The error of a commit in a share that it does not hold: its topic of this id is gone, or the share is another member's."""
        topic, number = commit.place
        try:
            found = (yield from ask.ReadTopic(topic)).topic_id
        except SparklogError as error:
            if error.id == "TOPIC_NOT_FOUND":
                return error  # otherwise it cannot be seen now, and the share is not this member's
        else:
            if commit.topic_id != found:
                return SparklogError("TOPIC_RECREATED", topic=topic, root=self.root, expected=commit.topic_id, found=found)
        return SparklogError("MEMBER_FENCED", group=self.group, table=self.table, root=self.root, topic=topic, partition=number)

    def _placed(self, commits: Collection[OffsetCommit]) -> Steps[list[Position]]:
        """The rows of offsets that a change commits with it, of topics that are still there.

        Where one is lower than before, it goes back first, in a commit of its own.
        """
        mine, _ = yield from self._of_mine(commits)
        found: dict[str, State | None] = {}
        for topic in dict.fromkeys(each.topic for each in mine):
            found[topic] = yield from ask.FindTopic(topic)
        there = [each for each in mine if (state := found[each.topic]) is not None and state.topic_id == each.topic_id]
        placed = yield from self._moved(there)
        if any(map(self.holdings.is_back, placed)):
            yield from self._go_back(placed)
            return []
        return placed

    def _has_committed(self, placed: list[Position]) -> Steps[bool]:
        """Commits rows, if nothing fenced this member."""
        made = yield from ask.CommitRows(self._number, self._generation, placed, self.id or "", self._version)
        self._version += made
        return made

    def _moved(self, commits: Collection[OffsetCommit]) -> Steps[list[Position]]:
        """The rows of these commits, without offsets that are committed already."""
        new = [each for each in commits if each.metadata is not None or not self.holdings.is_committed(each)]
        return (yield from ask.MakeRows(new)) if new else []

    def _remember(self, placed: list[Position]) -> Steps[None]:
        self.holdings.committed(placed)
        if placed:
            self._wrote = yield from ask.Clock()
