"""The protocol of members of a group (docs/reference/members.md), in every order that the scheduler finds; and without one of its rules.

The steps are those of the code. The table is a model of one: a commit is atomic, and conflicts as Delta makes it conflict.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping

import pytest
from model.scheduler import Process, Scheduler, Violation, first_violation

from sparklog.groups.assignors import Partition
from sparklog.groups.member.state import GroupState, Registered, SharedTopic

TOPIC = {"t": SharedTopic("id", 3)}
RECORDS = 6
"""In each partition."""
RUNS = range(40)


class Table:
    """The rows of one group, the number of its state, and how often each member committed."""

    def __init__(self) -> None:
        self.number = 0
        self.generation = 1
        self.state = GroupState("sticky").with_topics(TOPIC)
        self.greatest: dict[tuple[int, Partition], int] = {}
        """By generation and partition, the greatest offset among the rows."""
        self.versions: dict[str, int] = {}

    def position(self, partition: Partition) -> int:
        """The greatest offset in the newest generation; 0 if there is none."""
        return self.greatest.get((self.generation, partition), 0)

    def add(self, generation: int, moved: Mapping[Partition, int]) -> None:
        for each, offset in moved.items():
            self.greatest[generation, each] = max(offset, self.greatest.get((generation, each), 0))

    def change(
        self,
        number: int,
        state: GroupState,
        moved: Mapping[Partition, int] | None = None,
        versions: Mapping[str, int] | None = None,
        generation: int | None = None,
    ) -> bool:
        """Changes the state, if its number and the versions of these members are what the caller saw. With rows, and fences."""
        if number != self.number or any(self.versions.get(each, 0) != seen for each, seen in (versions or {}).items()):
            return False
        self.number, self.state = number + 1, state
        self.versions |= {each: seen + 1 for each, seen in (versions or {}).items()}
        self.generation = generation or self.generation
        self.add(self.generation, moved or {})
        return True

    def commit(self, member: str, version: int, generation: int, moved: Mapping[Partition, int], *, blind: bool) -> bool:
        if not blind and self.versions.get(member, 0) != version:
            return False
        self.versions[member] = version + 1
        self.add(generation, moved)
        if strange := [each for each in moved if self.state.shares[each].owner != member]:
            raise Violation(f"{member} commits {strange}, which it does not own")
        return True


class World:
    """Members that come, go, freeze and die, an operator, and what must hold after each step."""

    def __init__(self, seed: int, mutant: str = "") -> None:
        self.mutant = mutant
        self.scheduler = Scheduler(seed, deaths=2)
        self.table = Table()
        self.done: dict[Partition, list[int]] = {("t", number): [] for number in range(3)}
        """The records that were processed since the last reset, in order."""
        self.positions = dict.fromkeys(self.done, 0)
        self.owners: dict[tuple[Partition, int], str] = {}
        self.expiries = self.resets = self.joins = self.weighed = 0
        self.reset_to: dict[Partition, int] = {}

    def run(self, steps: int = 2_500) -> None:
        for _ in range(2):
            self.start_member()
        self.scheduler.start("operator", self.operator())
        self.scheduler.run(steps, self.check)

    def start_member(self) -> None:
        self.joins += 1
        name = f"m{self.joins}"
        self.scheduler.start(name, member(self, name))

    def check(self) -> None:
        if self.joins < 8 and self.scheduler.chance(200):
            self.start_member()
        for each, before in self.positions.items():
            now = self.table.position(each)
            if now < before and self.reset_to.get(each) != now:
                raise Violation(f"the position of {each} went back from {before} to {now}")
            low = self.reset_to.get(each, 0)
            if missed := [offset for offset in range(low, now) if offset not in self.done[each]]:
                raise Violation(f"records {missed} of {each} are below the position {now}, and not processed since {low}")
            self.positions[each] = now
        for each, share in self.table.state.shares.items():
            if share.owner and self.owners.setdefault((each, share.epoch), share.owner) != share.owner:
                raise Violation(f"{each} has two owners in epoch {share.epoch}")

    def process(self, partition: Partition, offset: int) -> None:
        is_again = offset in self.done[partition]
        self.done[partition].append(offset)
        if is_again and not self.expiries and not self.resets and self.scheduler.deaths == 2:
            raise Violation(f"record {offset} of {partition} is processed twice without an expiry")

    def operator(self) -> Process:
        for _ in range(2):
            yield 300
            while True:
                number, state, generation = self.table.number, self.table.state, self.table.generation + 1
                versions = {id: self.table.versions.get(id, 0) for id in state.members}
                kept = {each: self.table.position(each) for each in self.done}
                yield
                moved = {("t", 1): 0}
                if self.mutant == "a generation does not carry the positions":
                    kept = {}
                fence = {} if self.mutant == "a reset does not fence" else versions
                if self.table.change(number, state.reset(moved), {**kept, **moved}, fence, generation):
                    self.resets += 1
                    for each, offset in moved.items():
                        self.reset_to[each] = offset
                        self.done[each] = [done for done in self.done[each] if done < offset]
                    break
                yield


def member(world: World, name: str) -> Process:
    """A consumer: it joins again under a new id whenever it finds that it was removed."""
    table, scheduler = world.table, world.scheduler
    lives = 0
    while lives < 4:
        lives += 1
        me = f"{name}-{lives}"
        while True:
            number, state = table.number, table.state
            yield
            if table.change(number, state.joined(Registered(me, ("t",)))):
                break
            yield scheduler.random.randrange(5)
        yield from life(world, me)


def life(world: World, me: str) -> Process:
    """From a join until the state has the member no more, or it leaves."""
    table, scheduler, mutant = world.table, world.scheduler, world.mutant
    version, number, generation, state = 0, table.number, table.generation, table.state
    mine: dict[Partition, int] = {}
    at: dict[Partition, int] = {}
    committed: dict[Partition, int] = {}
    first = {each: table.position(each) for each in world.done}

    def adopt() -> bool:
        """Reads the state, and gives up what was lost. Whether the member is still in it."""
        nonlocal version, number, generation, state
        number, state, generation, version = table.number, table.state, table.generation, table.versions.get(me, 0)
        owned = state.owned(me)
        for each in list(mine):
            if owned.get(each) != mine[each]:
                del mine[each], at[each]
        return me in state.members

    def taken_up() -> Process:
        """Reads the positions of shares that came to the member."""
        came = {each: held for each, held in state.owned(me).items() if each not in mine}
        yield
        for each, held in came.items():
            mine[each] = held
            at[each] = first[each] if mutant == "a position is remembered, and not read" else table.position(each)

    while True:
        # A member may learn of a new state late, or never before it acts.
        if table.number != number and not scheduler.chance(6):
            if not adopt():
                return
            yield
        act = scheduler.random.randrange(10)
        if act == 0 and state.to_release(me):
            freed = [each for each in state.to_release(me) if each in mine]
            moved = {} if mutant == "a release does not commit" else {each: at[each] for each in freed}
            if table.change(number, state.released(me, freed).given(), moved, {me: version}):
                version += 1
                for each in freed:
                    del mine[each], at[each]
                number, state = table.number, table.state
            elif not adopt():
                return
        elif act == 1:
            after = state.taken(me)
            if mutant == "a share is taken while another owns it":
                wanted = {each: share for each, share in state.shares.items() if share.wanted_by == me != share.owner}
                after = dataclasses.replace(
                    state,
                    shares={
                        **state.shares,
                        **{each: dataclasses.replace(share, owner=me, epoch=share.epoch + 1) for each, share in wanted.items()},
                    },
                )
            if after != state and table.change(number, after):
                number, state = table.number, after
            yield from taken_up()
        elif act == 2 and world.expiries < 3 and scheduler.chance(8):
            others = [each for each in state.members if each != me]
            if others:
                victim = scheduler.random.choice(others)
                fence = {} if mutant == "an expiry does not fence" else {victim: table.versions.get(victim, 0)}
                yield
                if table.change(number, state.without(victim).given(), {}, fence):
                    world.expiries += 1
                    number, state = table.number, table.state
        elif act == 3 and scheduler.chance(40) and table.change(number, state.without(me).given(), dict(at), {me: version}):
            return
        elif act in (4, 5) and at:
            moved = {each: offset for each, offset in at.items() if committed.get(each) != offset}
            if mutant == "a commit is before processing":
                moved = {each: min(RECORDS, offset + 1) for each, offset in moved.items()}
            if not moved:
                yield
                continue
            if table.commit(me, version, generation, moved, blind=mutant == "commits do not conflict with fencing"):
                version += 1
                committed |= moved
            elif mutant == "a fenced member does not read the state":
                version = table.versions.get(me, 0)
                version += table.commit(me, version, generation, moved, blind=False)
            elif not adopt():
                return
        elif act == 6 and state.first_owner() == me and world.weighed < 3 and scheduler.chance(4):
            # Weights may lead to any plan.
            plan = {each: scheduler.random.choice(sorted(state.members)) for each in state.shares}
            names = ("wanted_by", "owner") if mutant == "weighing takes shares from their owners" else ("wanted_by",)
            shares = {each: dataclasses.replace(share, **dict.fromkeys(names, plan[each])) for each, share in state.shares.items()}
            if table.change(number, dataclasses.replace(state, shares=shares)):
                world.weighed += 1
                number, state = table.number, table.state
        elif at:
            each = scheduler.random.choice(sorted(at))
            if at[each] < RECORDS:
                world.process(each, at[each])
                at[each] += 1
        yield scheduler.nap()


MUTANTS = [
    "commits do not conflict with fencing",
    "a position is remembered, and not read",
    "a share is taken while another owns it",
    "a commit is before processing",
    "an expiry does not fence",
    "a reset does not fence",
    "a release does not commit",
    "a fenced member does not read the state",
    "a generation does not carry the positions",
    "weighing takes shares from their owners",
]


def violation(mutant: str, seeds: Iterable[int]) -> tuple[int, str] | None:
    run: Callable[[int], object] = lambda seed: World(seed, mutant).run()  # noqa: E731
    return first_violation(run, seeds)


def test_the_protocol_holds() -> None:
    assert violation("", RUNS) is None


@pytest.mark.soak
def test_the_protocol_holds_in_many_orders() -> None:
    assert violation("", range(40, 2_000)) is None


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_rule_that_is_left_out_is_missed(mutant: str) -> None:
    assert violation(mutant, range(600)) is not None


def test_members_finish_what_others_left() -> None:
    """Everything is processed and committed at the end, also if members died, froze or were expired; and each of it happens in some run."""
    expiries = resets = weighed = read = 0
    for seed in range(12):
        world = World(seed)
        world.run(6_000)
        expiries, resets, weighed = expiries + world.expiries, resets + world.resets, weighed + world.weighed
        read += all(world.table.position(each) == RECORDS for each in world.done)
    assert min(expiries, resets, weighed) > 6
    assert read > 6
