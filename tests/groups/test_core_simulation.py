"""Groups of consumers under deterministic simulation, beside a model; and mutants of the rules of decision 14."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pytest
from groups.core_world import fault, patched
from handmade import draw_seed

from sparklog.barrier import Barrier
from sparklog.consumer import core
from sparklog.consumer import requests as ask
from sparklog.consumer.callbacks import Callbacks
from sparklog.consumer.committing import Committing
from sparklog.consumer.core import Core
from sparklog.consumer.fetching import Fetching
from sparklog.consumer.groups import Shared
from sparklog.consumer.shares import AssignedPartition, Shares
from sparklog.consumer.subscription import Subscription
from sparklog.groups.member.holdings import Holdings
from sparklog.groups.member.standing import Standing
from sparklog.groups.member.state import GroupState, Held, Registered
from sparklog.groups.table.generations import Generations

SEEDS = 150
"""As many as `make test` has time for. Most mutants are found within them."""


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    patched(monkeypatch)


def found(seeds: Iterable[int], *, in_bucket: bool = False) -> str | None:
    return next(filter(None, map(partial(fault, in_bucket=in_bucket), seeds)), None)


def test_groups_keep_the_rules() -> None:
    assert found(range(SEEDS)) is None


def test_groups_keep_the_rules_where_heartbeats_are_in_a_bucket() -> None:
    assert found(range(SEEDS), in_bucket=True) is None


def nothing(*_: object, **__: object) -> Iterator[Any]:
    """In place of steps: they ask for nothing."""
    return iter(())


def without(owner: type, name: str, left_out: str) -> Any:
    """A method that leaves out what its object does by another method."""
    method = vars(owner)[name]

    def mutant(self: Any, *given: Any, **named: Any) -> Any:
        setattr(self, left_out, nothing)
        try:
            return (yield from method(self, *given, **named))
        finally:
            delattr(self, left_out)

    return mutant


def assigned_before_lost(self: Core, view: Any) -> Any:
    lost = yield from self._drop_lost(view)
    yield from adopt(self, view)  # which finds no other lost shares
    yield from self.callbacks.notify("lost", lost)


def raised_as_it_waits(self: Committing, *, end: bool = False) -> Any:
    for error in (yield from ask.AwaitCommits(end)):
        raise error
    self.in_flight = 0


def raised_as_it_notifies(self: Callbacks, event: str, partitions: Any) -> Any:
    yield from notify(self, event, partitions)
    if self._errors:
        raise self._errors.pop()


def moved_as_it_decodes(self: Fetching, taken: Any, decode: Any) -> Any:
    decoded = []
    for each in taken:
        decoded.append(decode(each.share.partition, each.batch))
        each.share.position = each.after
    return decoded


def one_by_one_without_last(self: Fetching, *given: Any) -> Any:
    for record in one_by_one(self, *given):
        self._shares.last = []
        yield record


def refreshed_twice(self: Fetching, records_max: int, bytes_max: int) -> Any:
    found = yield from take(self, records_max, bytes_max)
    if not found:
        self._reroutes.forget_group()
        yield from self._reroutes.refresh()
    return found


def rest_dropped(self: Fetching, share: AssignedPartition, records_max: int, bytes_max: int) -> Any:
    taken = yield from take_of(self, share, records_max, bytes_max)
    if taken and taken.batch.num_rows < records_max:
        share.batch = None
    return taken


def tried_once(self: Core, steps: Any, failed: Any) -> Any:
    yield from steps


def taken_up_without_positions(self: Any) -> Any:
    self._hold = lambda came, known, begun: hold(self, came, [], begun)
    try:
        yield from take_up(self)
    finally:
        del self._hold


def without_beginnings(self: Standing, *given: Any) -> Any:
    known, _, _ = yield from beginnings(self, *given)
    return known, [], []


def none_of_mine(self: Standing, commits: Any) -> Any:
    mine, refused = yield from of_mine(self, commits)
    return [] if refused else mine, refused


hold, take_up, of_mine, beginnings = Standing._hold, Standing._take_up, Standing._of_mine, Standing._beginnings
adopt, notify, take, take_of, one_by_one = Core._adopt, Callbacks.notify, Fetching._take, Fetching._take_of, Fetching.one_by_one

MUTANTS: dict[str, tuple[object, str, Any]] = {
    "1: a position stays when the epoch goes": (Held, "__eq__", lambda self, other: isinstance(other, Held)),
    "1: a release commits a share that was reset since": (Holdings, "still_mine", lambda self, placed: placed),
    "1: a commit on its way counts for a later share": (
        Holdings,
        "owns",
        lambda self, commit: commit.place in self.mine and self.mine[commit.place].topic_id == commit.topic_id,
    ),
    "1: a member does not learn the positions of shares that others gave to it": (Standing, "_take_up", taken_up_without_positions),
    "1: a commit that goes back does not ask in which epoch the member has the share": (
        Holdings,
        "has_as_before",
        lambda self, share, owned: share in owned,
    ),
    "1: a member keeps shares that others took": (Holdings, "drop_strayed", lambda self, owned: None),
    "2: assigned is told before lost": (Core, "_adopt", assigned_before_lost),
    "2: revoked is told before the commit": (Core, "_commit_going", nothing),
    "2: a callback that raises keeps the hand-over from being done": (Callbacks, "notify", raised_as_it_notifies),
    "2: revoked is told twice": (
        Core,
        "_unknown",
        lambda self, going, alive: [each for each in going if each in self.shares.held and self.shares.held[each].alive is alive],
    ),
    "2: a topic that is gone is not told as lost where the subscription changes": (Core, "GOING", (("revoked", True),)),
    "2: a change of subscription is not told": (Core, "subscribe", without(Core, "subscribe", "_hand_over")),
    "2: a consumer that a callback closed takes shares": (
        Core,
        "_new",
        lambda self, view: [each for each in view.held if each not in self.shares.held],
    ),
    "2: a callback may poll": (Callbacks, "require_outside", lambda self: None),
    "2: a share that the program never saw is not given up": (
        Core,
        "_to_release",
        lambda self, view: [each for each in view.asked_for if each in self.shares.held],
    ),
    "2: a callback of a commit that raises ends the call": (Committing, "wait", raised_as_it_waits),
    "2: a member that was ended does not tell it": (Core, "_lose_all", nothing),
    "2: an interrupt as it closes keeps it from telling that its shares go": (Core, "CLOSE_ATTEMPTS", 1),
    "2: an interrupt as it closes keeps it from leaving": (Core, "_try", tried_once),
    "2: the group keeps a subscription that was interrupted": (Core, "_join_again", nothing),
    "3: a position moves before all records are decoded": (Fetching, "_decoded", moved_as_it_decodes),
    "3: an interrupt before poll has returned keeps the positions": (Shares, "take_back", lambda self: None),
    "3: an interrupt before iteration has returned keeps the position": (Fetching, "one_by_one", one_by_one_without_last),
    "3: nothing asks whether the member is live": (Shared, "is_live", lambda self: True),
    "3: a loop does not ask whether the member is live": (
        Fetching,
        "one_by_one",
        lambda self, taken, decode, is_live: one_by_one(self, taken, decode, lambda: True),
    ),
    "3: a position beyond a cut goes back to it": (
        Fetching,
        "_is_at_end",
        lambda self, share, cut: share.position >= self._shares.end(share),
    ),
    "4: a joiner takes a topic that it finds first for an old one": (GroupState, "has_read", lambda *_: None),
    "4: the next process does not know what the group read": (Registered, "has_read", lambda *_: False),
    "4: what is new is counted from the join, not from the call": (Subscription, "_first_new", lambda self, partition, start, end: end),
    "4: what comes between the call and the join is old": (
        Subscription,
        "_first_new",
        lambda self, partition, start, end: max(start, self._ends.get(partition, end)),
    ),
    "3: a position that goes back is hidden by the position before it": (Holdings, "is_back", lambda self, to: False),
    "4: a member does not commit the beginnings of its shares": (Standing, "_beginnings", without_beginnings),
    "4: a pattern loses its flags": (core, "text_of", lambda pattern: pattern.pattern),
    "5: one lost partition keeps the others from being committed": (Standing, "_of_mine", none_of_mine),
    "6: no barrier": (Barrier, "open", lambda *_: {}),
    "6: what a donor waits for does not count": (Barrier, "_waits_of", lambda self, donor, waits: {}),
    "6: a second look at the group decides whether all is read": (Fetching, "_take", refreshed_twice),
    "6: what waits at a cut is read again": (Fetching, "_take_of", rest_dropped),
    "7: members do not hold their commits": (Standing, "_waits_for_operator", nothing),
    "7: an operator does not announce itself": (Generations, "announce", lambda *_: False),
    "8: what comes before a record that fails is dropped": (
        Fetching,
        "_given",
        lambda self, taken, decoded: {
            each.share.partition: records for each, (records, error) in zip(taken, decoded, strict=True) if records and error is None
        },
    ),
    "a fetch is not requested before": (Fetching, "_expect", nothing),
    "a closed consumer keeps the bytes that it requested": (Core, "_drop_fetches", nothing),
    "a group of another assignor that died keeps others out": (Standing, "_dead_of_other_assignor", nothing),
    "a program that polls without a wait has no poll rounds": (Core, "_is_round_due", lambda self, now: False),
    "a program in a long batch does not see who came and died": (Standing, "_newest_known", lambda self: self._state),
}

LATE = {
    "1: a release commits a share that was reset since": 107,
    "1: a commit on its way counts for a later share": 17,
    "2: a callback that raises keeps the hand-over from being done": 43,
    "2: a topic that is gone is not told as lost where the subscription changes": 20,
    "2: a change of subscription is not told": 17,
    "2: a consumer that a callback closed takes shares": 143,
    "2: a callback of a commit that raises ends the call": 296,
    "2: an interrupt as it closes keeps it from telling that its shares go": 142,
    "2: an interrupt as it closes keeps it from leaving": 64,
    "2: the group keeps a subscription that was interrupted": 337,
    "3: an interrupt before poll has returned keeps the positions": 35,
    "3: an interrupt before iteration has returned keeps the position": 39,
    "3: a loop does not ask whether the member is live": 15,
    "4: a joiner takes a topic that it finds first for an old one": 50,
    "4: what is new is counted from the join, not from the call": 12,
    "4: what comes between the call and the join is old": 23,
    "5: one lost partition keeps the others from being committed": 17,
    "6: what a donor waits for does not count": 28,
    "7: members do not hold their commits": 49,
    "7: an operator does not announce itself": 50,
    "8: what comes before a record that fails is dropped": 18,
    "a program that polls without a wait has no poll rounds": 11,
}
"""The first seed that found a mutant, where that took more than ten. The test begins there, to save time."""


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_rule_has_a_mutant_that_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS[mutant])
    assert found([LATE.get(mutant, 0), *range(200)]) is not None


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("in_bucket", [False, True])
def test_groups_keep_the_rules_for_new_seeds(in_bucket: bool) -> None:
    """As many seeds as `make soak SEEDS=…` asks for. A million take some seven hours."""
    first = draw_seed()
    assert found(range(first, first + int(os.environ.get("SPARKLOG_SEEDS", "50000"))), in_bucket=in_bucket) is None
