"""Groups of consumers under deterministic simulation, beside a model; and mutants of the rules of decision 14."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest
from core_consumer import Consumer
from core_world import fault, patched
from handmade import draw_seed

from sparklog.barrier import Barrier
from sparklog.consumer import requests as ask
from sparklog.consumer.core import Core
from sparklog.consumer.groups import Shared
from sparklog.offsets import Membership
from sparklog.offsets.members import Held, Registered, State

SEEDS = 2_000


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    patched(monkeypatch)


def found(seeds: Iterable[int]) -> str | None:
    return next(filter(None, map(fault, seeds)), None)


def test_groups_keep_the_rules() -> None:
    assert found(range(SEEDS)) is None


def _holding_of_names(self: Held, other: object) -> bool:
    return isinstance(other, Held)


def _adopt_assigned_first(self: Core, view: Any) -> Any:
    """The assigned partitions are told before the lost ones."""
    tell, later = self._tell, []

    def told(event: str, partitions: list[Any]) -> Any:
        if event == "lost":
            later.append((event, partitions))
            return
            yield
        yield from tell(event, partitions)

    self._tell = told  # type: ignore[method-assign]
    try:
        gone = yield from _ADOPT(self, view)
    finally:
        self._tell = tell  # type: ignore[method-assign]
    for event, partitions in later:
        yield from tell(event, partitions)
    return gone


def _hand_in_without_commit(self: Core, going: list[Any]) -> Any:
    yield from self._tell_revoked(going)


def _tell_and_raise(self: Core, event: str, partitions: list[Any]) -> Any:
    if partitions and (raised := (yield ask.Tell(event, sorted(partitions)))) is not None:
        raise raised


def _tell_twice(self: Core, going: list[Any]) -> Any:
    """A partition that was told to go is told so again, where the hand-over failed before."""
    for each in going:
        self.shares[each].asked = False
    yield from _HAND_IN(self, going)


def _all_or_nothing(self: Membership, *given: Any) -> Any:
    mine, refused = _OF_MINE(self, *given)
    return ({}, refused) if refused else (mine, refused)


def _only_the_same_cut(self: Barrier, state: Any, consumed: Any) -> Any:
    """The waits of a donor count only if its cuts are equal."""
    found: dict[int, list[Any]] = {}
    for past, taken in zip(state.routing.past if state.routing else (), state.routing.donors() if state.routing else (), strict=True):
        for partition, donors in taken.items():
            its = {each: past.cut_of(each) for each in donors if _passed(consumed(each), state.starts[each]) < past.cut_of(each)}
            if its:
                found.setdefault(partition, []).append((past.cut_of(partition), its))
    return found


def _passed(consumed: int | None, start: int) -> int:
    return max(start, 1 << 40 if consumed is None else consumed)


def _decode_all_or_nothing(self: Consumer, partition: Any, batch: Any) -> Any:
    records, error = _DECODE(self, partition, batch)
    return ([] if error else records), error


_ADOPT, _HAND_IN, _OF_MINE, _DECODE = Core._adopt, Core._hand_in, Membership._of_mine, Consumer.decode
MUTANTS: dict[str, list[tuple[object, str, Any]]] = {
    "1: a position stays when the epoch goes": [(Held, "__eq__", _holding_of_names)],
    "2: assigned is told before lost": [(Core, "_adopt", _adopt_assigned_first)],
    "2: revoked is told before the commit": [(Core, "_hand_in", _hand_in_without_commit)],
    "2: a callback that raises keeps the hand-over from being done": [(Core, "_tell", _tell_and_raise)],
    "2: revoked is told twice": [(Core, "_hand_in", _tell_twice)],
    "3: nothing asks whether the member is live": [(Shared, "is_live", lambda self: True)],
    "4: what comes to be is not new to a group": [(State, "has_read", lambda *_: False), (Registered, "has_read", lambda *_: False)],
    "5: one lost partition keeps the others from being committed": [(Membership, "_of_mine", _all_or_nothing)],
    "6: only cuts that are equal count for what a donor waits for": [(Barrier, "open", _only_the_same_cut)],
    "6: no barrier": [(Barrier, "open", lambda *_: {})],
    "8: what comes before a record that fails is dropped": [(Consumer, "decode", _decode_all_or_nothing)],
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_rule_has_a_mutant_that_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for of, name, broken in MUTANTS[mutant]:
        monkeypatch.setattr(of, name, broken)
    assert found(range(200)) is not None


@pytest.mark.soak
def test_groups_keep_the_rules_for_new_seeds() -> None:
    first = draw_seed()
    assert found(range(first, first + 1_000_000)) is None
