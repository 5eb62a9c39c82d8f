"""Members whose calls go on in the middle of one another's, in any order, and mutants of the rules of `Standing`."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Iterable
from typing import Any

import pytest
from groups.standing_world import RECORDS, Member, World, fault
from handmade import draw_seed
from model.scheduler import alone

from sparklog.groups.commits import OffsetCommit
from sparklog.groups.member import requests as ask
from sparklog.groups.member.holdings import Holdings
from sparklog.groups.member.standing import Standing, Watched
from sparklog.steps import run

SEEDS = 60


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


def found(seeds: Iterable[int]) -> str | None:
    return next(filter(None, map(fault, seeds)), None)


def test_members_keep_the_rules() -> None:
    assert found(range(SEEDS)) is None


def test_a_commit_on_its_way_does_not_undo_a_reset_after_its_topic_left_the_group() -> None:
    """The share comes back in epoch 1, to the same member."""
    world = World(0)
    world.done = {each: set(range(RECORDS)) for each in world.done}
    one = Member(world, "one")

    def does(*calls: Any) -> Any:
        return [alone(one.call(each)) for each in calls]

    standing, share = one.standing, ("t", 0)
    does(standing.subscribe(["t", "u"], None, [], []), standing.poll(0), standing.take())
    first = standing.held()[share]
    does(standing.commit([OffsetCommit(*share, "t0", 4, None, first)]))
    on_its_way = OffsetCommit(*share, "t0", 5, None, first)
    moved = dataclasses.replace(world.table.newest.at[share], offset=1, metadata="operator")
    world.marks.add("operator")
    world.table.claim("g", "reset", lambda _: [moved])
    does(standing.subscribe(["u"], None, [share, ("t", 1)], []), standing.subscribe(["t", "u"], None, [], []), standing.take())
    assert share in standing.held()
    [refused] = does(standing.commit([on_its_way]))
    assert (refused.keys(), world.table.newest.at[share].offset) == ({share}, 1)


def test_a_member_whose_program_was_interrupted_after_its_join_has_heartbeats() -> None:
    member, asked = Member(World(0), "one").member, list[type]()

    def reply(request: Any) -> object:
        asked.append(type(request))
        if isinstance(request, ask.CallMembers):
            raise KeyboardInterrupt
        return None if isinstance(request, ask.BeginHeartbeats) else member.reply(request)

    run(member.standing.subscribe(["t"], None, [], []), reply)
    with pytest.raises(KeyboardInterrupt):
        run(member.standing.poll(0), reply)
    assert member.id is not None
    assert (ask.BeginHeartbeats in asked, ask.DeleteHeartbeats in asked) == (True, False)


def test_a_change_names_no_member_that_another_one_expired() -> None:
    """One member expires a silent one while another member is about to expire two."""
    world, whys = World(0), list[str]()
    replies = {each.standing: each.member.reply for each in (Member(world, name) for name in ("one", "two", "gone", "lost"))}
    one, two, *silent = replies
    for each in (one, two, *silent):
        run(each.subscribe(["t"], None, [], []), replies[each])
        run(each.poll(0), replies[each])
    state, (gone, lost) = world.table.newest.state, (each.id for each in silent)
    assert state

    def expires(by: Standing, *found: str | None, meanwhile: Any = lambda: None) -> None:
        def reply(request: Any) -> object:
            if not isinstance(request, ask.CommitChange):
                return replies[by](request)
            meanwhile()
            if made := replies[by](request):
                whys.append(request.why)
            return made

        run(by.expire(Watched(by.id or "", state, [each for each in found if each])), reply)

    expires(two, gone, lost, meanwhile=lambda: whys or expires(one, gone))
    assert whys == [f"expires {gone}", f"expires {lost}"]


def live_at_once(self: Standing) -> Any:
    if self.id is not None and not (yield from ask.IsBeating()):
        yield from ask.GoLive((yield from ask.WriteHeartbeat(self.id, self._number)))
    else:
        yield from adopt(self)


def taken_up_without_positions(self: Any) -> Any:
    self._hold = lambda came, known, begun: hold(self, came, [], begun)
    try:
        yield from take_up(self)
    finally:
        del self._hold


def as_if_nothing_was_lost(self: Standing, placed: Any) -> Any:
    self._version = (yield from ask.ReadVersions([self.id or ""]))[self.id or ""]
    self._number = yield from ask.ReadNumber()
    return (yield from has_committed(self, placed))


adopt, hold, take_up, has_committed = Standing._adopt, Standing._hold, Standing._take_up, Standing._has_committed

MUTANTS: dict[str, tuple[type, str, Any]] = {
    "a member that was expired goes on with its heartbeat": (Standing, "is_expired", False),
    "a member that was silent is live before it has read the state": (Standing, "_revive", live_at_once),
    "a fenced member commits by the newest version and state": (Standing, "_has_committed", as_if_nothing_was_lost),
    "a commit on its way counts for a later share": (Holdings, "owns", lambda self, commit: commit.place in self.mine),
    "a member keeps shares that others took": (Holdings, "drop_strayed", lambda self, owned: None),
    "a member does not learn the positions of shares that others gave to it": (Standing, "_take_up", taken_up_without_positions),
    "a release commits a share that was lost since": (Holdings, "still_mine", lambda self, placed: placed),
    "a commit that goes back does not ask in which epoch the member has the share": (
        Holdings,
        "has_as_before",
        lambda self, share, owned: share in owned,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_rule_has_a_mutant_that_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS[mutant])
    assert found(range(300)) is not None


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_members_keep_the_rules_for_new_seeds() -> None:
    first = draw_seed()
    assert found(range(first, first + int(os.environ.get("SPARKLOG_SEEDS", "50000")) // 5)) is None
