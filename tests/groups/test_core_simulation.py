"""Groups of consumers under deterministic simulation, beside a model; and mutants of the rules of decision 14."""

from __future__ import annotations

import inspect
import logging
import os
import re
import textwrap
from collections.abc import Iterable
from types import FunctionType
from typing import Any

import pytest
from groups.core_world import fault, patched
from handmade import draw_seed

from sparklog.barrier import Barrier
from sparklog.consumer import core
from sparklog.consumer.beliefs import Beliefs
from sparklog.consumer.core import Core
from sparklog.consumer.groups import Shared
from sparklog.consumer.reading import Reading
from sparklog.groups.member.membership import Membership
from sparklog.groups.member.standing import Standing
from sparklog.groups.member.state import GroupState, Held, Registered
from sparklog.groups.table.generations import Generations

SEEDS = 150
"""As many as `make test` has time for. Most mutants are found within them."""


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    patched(monkeypatch)


def found(seeds: Iterable[int]) -> str | None:
    return next(filter(None, map(fault, seeds)), None)


def test_groups_keep_the_rules() -> None:
    assert found(range(SEEDS)) is None


def changed(owner: type, name: str, *changes: tuple[str, str]) -> tuple[object, str, Any]:
    """A method in which some texts are replaced by others. Each text occurs once in the method, in any format."""
    method: FunctionType | None = vars(owner).get(name)
    assert method is not None, f"{owner.__name__} has no method {name}"
    text = textwrap.dedent(inspect.getsource(method))
    for was, becomes in changes:
        text, count = re.subn(in_any_format(was), lambda _, becomes=becomes: becomes, text)
        assert count == 1, f"{was!r} occurs {count} times in {owner.__name__}.{name}"
    made: dict[str, Any] = {}
    exec(compile(text, f"<{owner.__name__}.{name}>", "exec"), method.__globals__, made)
    return owner, name, made[name]


def in_any_format(text: str) -> str:
    """A pattern of the tokens of a text, however lines are wrapped."""
    tokens = re.findall(r'"[^"]*"|\w+|\S', text)
    return r"\s*".join((r"(?:,\s*)?" if token in ")]}" else "") + re.escape(token) for token in tokens)


def test_a_mutant_names_a_method_and_its_code_in_any_format() -> None:
    class Wrapped:
        def kept(self) -> list[int]:
            return [
                1,
                2,
            ]

    _, _, mutant = changed(Wrapped, "kept", ("[1, 2]", "[3]"))
    assert mutant(Wrapped()) == [3]
    with pytest.raises(AssertionError, match="Wrapped has no method renamed"):
        changed(Wrapped, "renamed", ("[1, 2]", "[3]"))
    with pytest.raises(AssertionError, match=re.escape("'[1, 3]' occurs 0 times in Wrapped.kept")):
        changed(Wrapped, "kept", ("[1, 3]", "[3]"))


MUTANTS: dict[str, tuple[object, str, Any]] = {
    "1: a position stays when the epoch goes": (Held, "__eq__", lambda self, other: isinstance(other, Held)),
    "1: a release commits a share that was reset since": changed(
        Standing, "_change", ("placed = [each for each in placed if (each.topic, each.partition) in self._mine]", "pass")
    ),
    "1: a commit on its way counts for a later share": changed(Standing, "_of_mine", (" or now != held.get((topic, number), now)", "")),
    "1: a member does not learn the positions of shares that others gave to it": changed(
        Standing, "_take_up", ("self._committed.remember(known)", "pass")
    ),
    "1: a commit that goes back does not ask in which epoch the member has the share": changed(
        Standing, "_go_back", (" or owned[each] != self._mine.get(each)", "")
    ),
    "2: assigned is told before lost": changed(
        Core,
        "_adopt",
        ('yield from self._tell("lost", untold)', "pass"),
        ("return for name", 'yield from self._tell("lost", untold)\n        return\n    for name'),
        (
            'yield from self._tell("assigned", list(came))',
            'yield from self._tell("assigned", list(came))\n    yield from self._tell("lost", untold)',
        ),
    ),
    "2: revoked is told before the commit": changed(Core, "_hand_in", ("yield from self._commit(self._not_committed(going))", "pass")),
    "2: a callback that raises keeps the hand-over from being done": changed(
        Core, "_tell", ("self._raised.append(raised)", "raise raised")
    ),
    "2: revoked is told twice": changed(Core, "_tell_of", (" and not share.asked]", "]")),
    "2: a topic that is gone is not told as lost where the subscription changes": changed(
        Core, "_tell_of", ('(("lost", False), ("revoked", True))', '(("revoked", True),)')
    ),
    "2: a change of subscription is not told": changed(Core, "subscribe", ("yield from self._hand_in(going)", "pass")),
    "2: a consumer that a callback closed takes shares": changed(Core, "_adopt", ("if self.closed or not new:", "if not new:")),
    "2: a callback may poll": changed(Reading, "take", ("if self._within:", "if False:")),
    "2: a share that the program never saw is not given up": changed(
        Core, "_follow", ("going = list(view.asked_for)", "going = [each for each in view.asked_for if each in self.shares]")
    ),
    "2: a callback of a commit that raises ends the call": changed(
        Reading, "_settle", ("self._raised += raised", "for error in raised:\n        raise error")
    ),
    "2: a member that was ended does not tell it": changed(Core, "_lose", ("if self._is_fenced and", "if False and")),
    "2: an interrupt as it closes keeps it from telling that its shares go": changed(Core, "close", ("range(3)", "range(1)")),
    "2: an interrupt as it closes keeps it from leaving": changed(Core, "_try", ("failed.append(error)", "raise")),
    "2: the group keeps a subscription that was interrupted": changed(Core, "_follow", ("if not self._is_joined:", "if False:")),
    "3: a position moves before all records are decoded": changed(
        Reading,
        "poll",
        (
            "decoded = [decode(each.share.partition, each.batch) for each in taken]",
            "decoded = []\n    for each in taken: decoded.append(decode(each.share.partition, each.batch)); each[0].position = each[2]",
        ),
    ),
    "3: an interrupt before poll has returned keeps the positions": changed(Beliefs, "take_back", ("share.position = position", "pass")),
    "3: an interrupt before iteration has returned keeps the position": changed(
        Reading, "give", ("self.last = [(share, record.offset)]", "pass")
    ),
    "3: nothing asks whether the member is live": (Shared, "is_live", lambda self: True),
    "3: a loop does not ask whether the member is live": changed(Reading, "give", (" or not is_live()", "")),
    "3: a position beyond a cut goes back to it": changed(Reading, "_take_of", ("min(self._end(share), end)", "self._end(share)")),
    "4: a joiner takes a topic that it finds first for an old one": (GroupState, "has_read", lambda *_: None),
    "4: the next process does not know what the group read": (Registered, "has_read", lambda *_: False),
    "4: what is new is counted from the join, not from the call": changed(
        Beliefs, "beginning", ("max(start, self._ends.get((partition, topic_id), start))", "end")
    ),
    "4: what comes between the call and the join is old": changed(Beliefs, "beginning", ("topic_id), start)", "topic_id), end)")),
    "4: a pattern loses its flags": (core, "text_of", lambda pattern: pattern.pattern),
    "5: one lost partition keeps the others from being committed": changed(
        Standing, "_of_mine", ("return mine, refused", "return ({} if refused else mine), refused")
    ),
    "6: no barrier": (Barrier, "open", lambda *_: {}),
    "6: what a donor waits for does not count": changed(Barrier, "open", ("in waits.get(donor, {}).items()", "in ()")),
    "6: a second look at the group decides whether all is read": changed(
        Reading,
        "_look_and_take",
        (
            "self._idle = not any(",
            'self._asked = float("-inf")\n            yield from self._look_at_barriers()\n            self._idle = not any(',
        ),
    ),
    "6: what waits at a cut is read again": changed(
        Reading, "_take_of", ("rest, batch = batch.slice(rows),", "rest, batch = batch.slice(rows) if rows == records_max else None,")
    ),
    "7: members do not hold their commits": (Standing, "_waits_for_operator", lambda self: False),
    "7: an operator does not announce itself": (Generations, "_announce", lambda *_: False),
    "8: what comes before a record that fails is dropped": changed(Reading, "poll", ("if records:", "if records and error is None:")),
    "a fetch is not requested before": changed(Reading, "_take", ("yield from ask.Expect(self._fetches({}))", "pass")),
    "a closed consumer keeps the bytes that it requested": changed(Core, "close", ("yield from self._try(ask.Expect([]), failed)", "pass")),
    "a group of another assignor that died keeps others out": changed(
        Standing, "_enter", ("dead = self._heartbeater.dead(before.sessions(but=me), self._settings.heartbeat_s)", "pass")
    ),
    "a program that polls without a wait has no turns": changed(Reading, "finds_nothing", (" or now - self._looked >= self._turn_s", "")),
    "a program in a long batch does not see who came and died": changed(Membership, "_beat", ("self._watched[1]", "self._state")),
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
    "a program that polls without a wait has no turns": 11,
}
"""The first seed that found a mutant, where that took more than ten. The test begins there, to save time."""


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_rule_has_a_mutant_that_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS[mutant])
    assert found([LATE.get(mutant, 0), *range(200)]) is not None


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_groups_keep_the_rules_for_new_seeds() -> None:
    """As many seeds as `make soak SEEDS=…` asks for. A million take some seven hours."""
    first = draw_seed()
    assert found(range(first, first + int(os.environ.get("SPARKLOG_SEEDS", "50000")))) is None
