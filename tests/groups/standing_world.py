"""Members of one group without consumers: the steps of each `Standing` in any order, for a table, heartbeats and a clock in memory.

Between two requests of a call, the scheduler lets the calls and heartbeats of other members act, in any order, and as many as it likes. So
a call goes on in the middle of another one, which `core_world.py` never does: there the calls that interrupt a call end before it.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from groups.core_parts import Beats, Fault, Table, Topic, membership_in
from model.scheduler import Process, Scheduler

from sparklog import SparklogError
from sparklog.groups import rows
from sparklog.groups.assignors import Partition
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.member import requests as ask
from sparklog.groups.member.state import Held, Hold
from sparklog.groups.rows import Group, Position
from sparklog.steps import Steps

T = TypeVar("T")
RECORDS = 6
"""In each partition."""
STEP_S = 0.05
BACK = "goes back"
"""The metadata of the rows of programs that go back. They read on from where they are."""


class World:
    """One random history of a group, and the promises to its programs."""

    lossy = 0.0

    def __init__(self, seed: int) -> None:
        self.scheduler = Scheduler(seed, deaths=0)
        self.random = self.scheduler.random
        self.lossy = self.random.choice((0.0, 0.0, 0.05))
        self.fickle = self.random.choice((0.03, 0.3))
        """How often a program changes its subscription."""
        self.topics: dict[str, Topic | None] = {name: full(name) for name in ("t", "u")}
        self.beats = Beats()
        self.table = Table(self)  # type: ignore[arg-type]
        self.members: list[Member] = []
        self.ids = itertools.count()
        self.done: dict[Partition, set[int]] = {("t", 0): set(), ("t", 1): set(), ("u", 0): set(), ("u", 1): set()}
        """The records that were processed since the last reset."""
        self.marks: set[str | None] = set()
        """The metadata of the rows of operators."""
        self.lost: dict[tuple[Partition, Held], float] = {}
        """When a member lost a share. A member that wakes may go on until it writes a heartbeat."""
        self.reset: set[Partition] = set()
        """The shares that operators took from their owners, who may process on before they learn that."""
        self.again = bool(self.lossy)
        """Whether a record may be processed twice: a member was expired, an operator or a program moved a position."""
        self.is_ending = False

    # ---- as the parts ask for it

    @property
    def now(self) -> float:
        return self.scheduler.step * STEP_S

    def interrupt(self) -> None:
        """Others act between requests only."""

    def chance(self, probability: float) -> bool:
        return not self.is_ending and self.random.random() < probability

    def state_of(self, name: str) -> Any:
        topic = self.topics[name]
        assert topic is not None
        return topic.state

    def committed(self, added: list[Position], before: Group, after: Group) -> None:
        """Rows were committed: each record below them was processed, since the last reset."""
        owned, still = owned_in(before), owned_in(after)
        self.lost |= dict.fromkeys(owned - still, self.now)
        for each in still - owned:
            self.lost.pop(each, None)
        whys = [json.loads(row.metadata or "{}").get("why") or "" for row in added if row.partition < 0]
        for why in (each for each in whys if each.startswith("expires")):
            self.again = True
            if not set(why.removeprefix("expires ").split(", ")) <= set(before.state.members if before.state else ()):
                raise Fault(f"{why}, of {before.state}")
        for row in added:
            place = row.topic, row.partition
            was = before.at.get(place)
            if row.partition < 0 or (was and (was.offset, was.metadata) == (row.offset, row.metadata)):
                continue
            if row.metadata in self.marks:
                self.again = True
                self.done[place] = {each for each in self.done[place] if each < row.offset}
            elif was and row.offset < was.offset and row.metadata != BACK:
                raise Fault(f"{place} went back from {was.offset} to {row.offset}")
            if missed := set(range(row.offset)) - self.done[place]:
                raise Fault(f"{place} was committed at {row.offset}, and {missed} were not processed since the last reset")

    # ---- the run

    def run(self, steps: int) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.start_member()
        self.scheduler.start("operator", self.operator())
        self.scheduler.run(steps, self.between)
        self.is_ending = True
        while not any(each.is_alive for each in self.members):
            self.start_member()
        for _ in range(5_000):
            self.scheduler.step += 1
            for each in self.members:
                for process in each.processes if each.is_alive else ():
                    next(process)  # in turn, and without sleep
            if all((row := self.table.newest.at.get(each)) and row.offset == RECORDS for each in self.done):
                return
        raise Fault(f"not all is processed: {self.table.newest.positions}, {self.table.newest.state}")

    def start_member(self) -> None:
        self.members.append(Member(self, f"m{len(self.members)}"))

    def between(self) -> None:
        if len(self.members) < 7 and self.scheduler.chance(500):
            self.start_member()
        if self.scheduler.chance(600):
            self.random.choice(self.members).is_alive = False

    def operator(self) -> Process:
        """Moves a partition back now and then, while the others act. After some attempts it asks them to wait."""
        for number in range(self.random.choice((0, 3))):
            yield 400
            place = self.random.choice(list(self.done))
            mark = f"operator {number}"
            self.marks.add(mark)
            for attempt in itertools.count():
                if attempt % 8 == 3:
                    self.committing(self.table.announce, "g")
                    yield
                last, group, versions = self.table.fenceable("g")
                yield
                if group.state is None or (row := group.at.get(place)) is None or self.is_ending:
                    break
                moved = dataclasses.replace(row, offset=self.random.randint(0, row.offset), metadata=mark)
                kept = [each for at, each in group.at.items() if at != place]
                note = rows.note_of_members("g", 0, "operator", "reset", group.state.reset([place]), "reset")
                its = "g", last + 1, group.generation + 1, [note, *kept, moved], versions
                made = self.committing(self.table.commit, *its)
                self.reset.add(place)  # perhaps, if the answer is lost
                if made:
                    break
                yield

    def committing(self, commit: Callable[..., Any], *given: Any) -> Any:
        try:
            return commit(*given)
        except SparklogError as error:
            if error.id != "OFFSETS_TABLE":
                raise


def owned_in(group: Group) -> set[tuple[Partition, Held]]:
    """The shares that have owners, each as its owner holds it."""
    state = group.state
    return {(each, held) for member in state.members for each, held in state.owned(member).items()} if state else set()


def full(name: str) -> Topic:
    topic = Topic(name, 0, 2, False, set())
    topic.records = [[("key", number) for number in range(RECORDS)] for _ in topic.records]
    topic.changed()
    return topic


class Member:
    """A member whose program polls, processes and commits, beside the thread of its heartbeats."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.is_alive = world, name, True
        self.member = membership_in(world, lambda share, id, start, end, was_read: start)
        self.standing = self.member.standing
        self.is_locked = False
        self.at: dict[Partition, tuple[Hold, int]] = {}
        """The shares of the program: how they are held, and the offset of the next record."""
        self.later: list[OffsetCommit] = []
        """A commit that was begun, and is made later."""
        self.processes = self.program(), self.heartbeats()
        for each in self.processes:
            world.scheduler.start(f"{name} {each.__name__}", each)

    def call(self, steps: Steps[T]) -> Iterator[Any]:
        """Makes a call under the lock; others act between its requests."""
        while self.is_locked:
            yield 1
        self.is_locked = True
        try:
            return (yield from self.carried_out(steps))
        finally:
            self.is_locked = False

    def carried_out(self, steps: Steps[T]) -> Iterator[Any]:
        reply: Any = None
        error: SparklogError | None = None
        try:
            while True:
                request = steps.throw(error) if error else steps.send(reply)
                yield
                while not self.is_alive:
                    yield 10**9
                error, reply = None, None
                try:
                    match request:
                        case ask.Pause():
                            yield int(request.seconds / STEP_S)
                        case ask.BackOff():
                            yield self.world.random.randrange(4 * request.attempt + 1)
                        case ask.NewId():
                            reply = f"{self.name}-{next(self.world.ids)}"
                        case _:
                            reply = self.member.reply(request)
                except SparklogError as caught:
                    error = caught
        except StopIteration as done:
            return done.value

    def heartbeats(self) -> Process:
        """As `Membership.heartbeat`."""
        while True:
            found = yield from self.carried_out(self.standing.heartbeat())
            for steps in [self.standing.expire(found)] * bool(found and found.silent) + [self.standing.beat()] * bool(found):
                if not self.is_locked:
                    yield from self.tried(steps)
            yield int(1 / STEP_S)

    def tried(self, steps: Steps[Any]) -> Iterator[Any]:
        try:
            return (yield from self.call(steps))
        except SparklogError as error:
            if error.id != "OFFSETS_TABLE":
                raise

    def program(self) -> Process:
        world, standing = self.world, self.standing
        yield from self.tried(standing.subscribe(["t", "u"], None, [], []))
        while True:
            yield from self.turn()
            act = world.random.random()
            if not world.is_ending and act < world.fickle:
                names = world.random.choice((["t"], ["u"], ["t", "u"]))
                going = [each for each in self.at if each[0] not in names]
                commits = yield from self.handed_over(going)
                yield from self.tried(standing.subscribe(names, None, going, commits))
                self.hold()
            elif world.is_ending and act < 0.3:
                yield from self.tried(standing.subscribe(["t", "u"], None, [], []))
            elif not world.is_ending and act < 0.35:
                yield from self.go_back()
            elif not world.is_ending and act < 0.38:
                yield from self.commit()
                yield from self.tried(standing.leave())
                self.hold()
            elif act < 0.6:
                yield from self.commit()
            elif not self.later:
                self.later = self.commits(self.at)
            elif act > 0.9:
                yield from self.made()
            yield world.scheduler.nap()

    def turn(self) -> Process:
        """A poll round, and some records."""
        standing, beats = self.standing, self.member.heartbeater
        is_called = standing.id is not None and beats.is_called(standing.id)
        if standing.has_news(self.world.now, is_live=beats.is_live, is_called=is_called):
            yield from self.tried(standing.poll(self.world.now))
            self.hold()
            if going := standing.to_release():
                commits = yield from self.handed_over(going)
                yield from self.tried(standing.release(going, commits))
                self.hold()
            yield from self.tried(standing.take())
        self.hold()
        for each in list(self.at):
            for _ in range(self.world.random.randrange(4)):
                if not self.member.is_live:
                    return
                self.process(each)
                yield

    def hold(self) -> None:
        """The program has the shares of the member: those that it held so go on, others begin at their committed positions."""
        held, known = self.standing.held(), {(each.topic, each.partition): each.offset for each in self.standing.known()}
        before = self.at
        self.at = {
            each: before[each] if each in before and before[each][0] == holding else (holding, known[each])
            for each, holding in held.items()
        }

    def process(self, share: Partition) -> None:
        held = self.at.get(share)
        if held is None or held[1] >= RECORDS:
            return
        lost = self.world.lost.get((share, held[0].held))
        if lost is not None and lost < self.member.heartbeater.since and share not in self.world.reset:
            raise Fault(f"{self.name} wrote a heartbeat after it had lost {share} at {lost}, and processes {held[1]}")
        if held[1] in self.world.done[share] and not self.world.again:
            raise Fault(f"{self.name} processes {held[1]} of {share} again")
        self.world.done[share].add(held[1])
        self.at[share] = held[0], held[1] + 1

    def made(self) -> Process:
        """Makes the commit that was begun before."""
        later, self.later = self.later, []
        yield from self.tried(self.standing.commit(later))

    def commit(self) -> Process:
        """Commits what the program processed. Commits are made in order."""
        yield from self.made()
        yield from self.tried(self.standing.commit(self.commits(self.at)))

    def handed_over(self, going: list[Partition]) -> Iterator[Any]:
        """The commits of shares that go. Some programs commit nothing then, and a commit on its way is made later."""
        if self.world.random.random() < 0.3:
            self.world.again = True
            return []
        yield from self.made()
        return self.commits(going)

    def commits(self, shares: Any) -> list[OffsetCommit]:
        return [OffsetCommit(*each, f"{each[0]}0", self.at[each][1], None, self.at[each][0]) for each in shares if each in self.at]

    def go_back(self) -> Process:
        """The program commits the offset before the committed one. It reads on from where it is."""
        yield from self.made()
        at = self.world.table.newest.at
        if lower := [each for each in self.commits(self.at) if (row := at.get(each.place)) and row.offset > 0]:
            self.world.again = True
            one = self.world.random.choice(lower)
            yield from self.tried(self.standing.commit([one._replace(offset=at[one.place].offset - 1, metadata=BACK)]))


def fault(seed: int, steps: int = 2_500) -> str | None:
    """The fault that a seed finds; None if there is none."""
    try:
        World(seed).run(steps)
    except (Fault, SparklogError, AssertionError, KeyError) as error:
        return f"seed {seed}: {type(error).__name__} {error}"
    return None
