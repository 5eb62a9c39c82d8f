"""Groups whose members even out lag or rate, at many loads: they become even and stay so, and move little; and without one of the rules."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from fractions import Fraction

import pytest

from sparklog.groups.assignors import Partition
from sparklog.groups.member import state as members
from sparklog.groups.member.state import GroupState, Registered, SharedTopic

ROUNDS = 60
"""An hour."""
SEEDS = range(20)
RULES = {"whether members are out of balance": ("_UNEVEN", Fraction(0)), "whether the plan helps": ("_BETTER", Fraction(2))}
"""The limits that a member asks, and values with which it asks nothing."""


def settled(state: GroupState) -> GroupState:
    """After all members gave up what others want, and took what they want."""
    for member in state.members:
        state = state.released(member, state.to_release(member))
    for member in state.members:
        state = state.taken(member)
    return state


def begun(seed: int) -> tuple[random.Random, GroupState]:
    """A group of some members, which shared the partitions by their number."""
    chance = random.Random(seed)
    state = GroupState("sticky-rate").with_topics({"t": SharedTopic("id", chance.randrange(8, 40))})
    for number in range(chance.randrange(2, 6)):
        state = settled(state.joined(Registered(f"m{number}", ("t",), capacity=chance.choice((1, 1, 2)))))
    return chance, state


def loads(chance: random.Random, state: GroupState) -> dict[Partition, int]:
    """A load for each partition: a few are much busier than the others."""
    return {each: int(chance.paretovariate(1.0) * 10) for each in state.shares}


def greatest(state: GroupState, of: Mapping[Partition, int]) -> Fraction:
    """The greatest load of a member, by the mean."""
    total = {id: sum(1 + of[each] for each in state.owned(id)) for id in state.members}
    mean = Fraction(sum(total.values()), sum(each.capacity for each in state.members.values()))
    return max(Fraction(total[id], each.capacity) for id, each in state.members.items()) / mean


def run(seed: int, vary: float = 0.1) -> tuple[int, int, Fraction]:
    """An hour with loads that vary by such a part: how many partitions moved in its first ten minutes, and later; and the last load."""
    chance, state = begun(seed)
    base = loads(chance, state)
    moves = [0, 0]
    now = base
    for number in range(ROUNDS):
        now = {each: max(0, round(load * chance.uniform(1 - vary, 1 + vary))) for each, load in base.items()}
        before = {each: share.owner for each, share in state.shares.items()}
        state = settled(state.weighed(now))
        moves[number >= 10] += sum(share.owner != before[each] for each, share in state.shares.items())
    return *moves, greatest(state, now)


@pytest.mark.parametrize("seed", SEEDS)
def test_members_become_even_once(seed: int) -> None:
    """And nothing moves any more. Or they are as even as the one busy partition, or a tenth, allows."""
    chance, state = begun(seed)
    base = loads(chance, state)
    first, later, last = run(seed)
    assert later <= 2
    total = sum(base.values()) + len(base)
    mean = Fraction(total, sum(each.capacity for each in state.members.values()))
    busiest = max(base.values()) * Fraction(11, 10) / mean
    before = greatest(state, base)
    assert last <= max(Fraction(5, 4), busiest) * Fraction(12, 10)
    assert last <= before * Fraction(11, 10)
    assert first <= len(state.shares)


def moved_later() -> int:
    return sum(run(seed, vary=0.3)[1] for seed in range(60))


@pytest.mark.slow
def test_without_a_rule_partitions_go_to_and_fro(monkeypatch: pytest.MonkeyPatch) -> None:
    """With loads that vary by 30 %: half as often again without one of the rules, and twenty times as often without both."""
    with_rules = moved_later()
    for name, mutant in RULES.values():
        with monkeypatch.context() as without:
            without.setattr(members, name, mutant)
            assert moved_later() > 1.5 * with_rules
    for name, mutant in RULES.values():
        monkeypatch.setattr(members, name, mutant)
    assert moved_later() > 20 * with_rules


def test_while_shares_are_on_their_way_weights_stay() -> None:
    _, state = begun(1)
    joined = state.joined(Registered("late", ("t",)))
    assert joined.to_release("m0")
    busy = {each: 1000 if share.owner == "m0" else 0 for each, share in joined.shares.items()}
    assert joined.weighed(busy) is joined
    assert settled(joined).weighed(busy) is not settled(joined)
    assert dataclasses.replace(joined, shares=settled(joined).shares).weighed(busy).weights


def test_a_change_of_weights_takes_no_share_from_its_owner() -> None:
    _, state = begun(2)
    busy = {each: 1000 if share.owner == "m0" else 0 for each, share in state.shares.items()}
    after = state.weighed(busy)
    assert after.to_release("m0")
    assert [(share.owner, share.epoch) for share in after.shares.values()] == [
        (share.owner, share.epoch) for share in state.shares.values()
    ]
    assert set(after.weights.values()) == {0, 512}


def test_a_group_by_count_is_not_weighed_when_it_plans() -> None:
    _, state = begun(3)
    again = dataclasses.replace(state, assignor="sticky", weights=dict.fromkeys(state.shares, 8) | {("t", 0): 1024})
    assert again.with_topics(state.topics).shares == again.shares
