"""Consumers that write to one table, under deterministic simulation beside a model; and mutants of the rules of `DeltaOutput`."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest
from groups.core_world import patched
from groups.output_world import Output, output_fault
from handmade import draw_seed

SEEDS = 100


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    patched(monkeypatch)


def found(seeds: Iterable[int]) -> str | None:
    return next(filter(None, map(output_fault, seeds)), None)


def test_each_record_is_written_once_in_order() -> None:
    assert found(range(SEEDS)) is None


def _poll_that_moves_on(self: Output, *given: Any) -> Any:
    """Positions move when the records are polled."""
    answer = _POLL(self, *given)
    for part in self._read.values():
        part.share.position = part.end
    return answer


def _poll_that_gives_up(self: Output, *given: Any) -> Any:
    """The records in hand are given up before partitions are handed over."""
    self._read = {}
    return _POLL(self, *given)


def _append_to_the_newest(self: Output, table: Any, rows: Any, versions: Any) -> None:
    """The rows are appended to the table as it is by then."""
    _APPEND(self, self._table(), rows, versions)


_POLL, _APPEND = Output.poll, Output._append
MUTANTS: dict[str, tuple[str, Any]] = {
    "a write is not of the snapshot that was checked": ("_append", _append_to_the_newest),
    "positions move when records are polled": ("poll", _poll_that_moves_on),
    "records in hand are given up before a partition goes": ("poll", _poll_that_gives_up),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_each_rule_has_a_mutant_that_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Output, *MUTANTS[mutant])
    assert found(range(200)) is not None


@pytest.mark.soak
def test_each_record_is_written_once_in_order_for_new_seeds() -> None:
    first = draw_seed()
    assert found(range(first, first + 20_000)) is None
