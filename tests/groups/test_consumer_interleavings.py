"""Random calls of a consumer, beside everything that may happen to its topics: it returns each record in its turn."""

import logging
import tempfile
from collections.abc import Iterable
from pathlib import Path
from weakref import WeakKeyDictionary

import pytest
from groups.consumer_world import fault
from handmade import draw_seed

from sparklog.consumer import requests as ask
from sparklog.consumer.consumer import Consumer
from sparklog.consumer.fetching import Fetching
from sparklog.consumer.shell import Shell

SEEDS = 200


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """It warns of each position that is not in the log."""
    caplog.set_level(logging.ERROR, "sparklog.consumer.shares")


def found(seeds: Iterable[int], *, with_group: bool = False, far: bool = False) -> str | None:
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            if fault(seed, Path(folder), with_group=with_group, far=far):
                return fault_again(seed, with_group=with_group, far=far)
    return None


def fault_again(seed: int, *, with_group: bool, far: bool) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return fault(seed, Path(folder), with_group=with_group, far=far) or f"seed {seed} finds a fault at times"


@pytest.mark.slow
def test_each_record_comes_in_its_turn() -> None:
    assert found(range(SEEDS)) is None


@pytest.mark.slow
def test_a_consumer_of_a_store_over_a_network() -> None:
    """The bytes of its next fetches are requested before it is sought, paused, assigned other partitions or closed, and before merges."""
    assert found(range(60), far=True) is None


def test_a_group_goes_on_where_it_committed() -> None:
    assert found(range(12), with_group=True) is None


@pytest.mark.parametrize("seed", [493081868078, 923231121805, 853097056667, 853097056747])
def test_a_group_goes_on_in_histories_that_long_runs_found(seed: int) -> None:
    """An assignment commits, and is refused; positions are committed while a topic of the pattern is gone, or another one by now."""
    assert found([seed], with_group=True) is None


def test_each_public_call_is_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that the consumer gets later must be driven too."""
    public = {name for name in dir(Consumer) if not name.startswith("_")}
    driven = set()

    def noting(name, call):
        def noted(self, *values, **named):
            driven.add(name)
            return call(self, *values, **named)

        return noted

    for name in public:
        monkeypatch.setattr(Consumer, name, noting(name, getattr(Consumer, name)))
    assert found(range(40)) is None
    assert found(range(6), with_group=True) is None
    assert driven == public


def test_records_that_were_fetched_before_a_seek_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault put back: a partition's turn takes the position that it then has for the one it was fetched at."""

    def one_by_one(self, taken, decode, is_live):
        for share, batch, after, _ in taken:
            position = share.position
            for record in decode(share.partition, batch)[0]:
                if share.position != position or share.paused or not share.alive:
                    break
                share.position = position = record.offset + 1
                yield record
            else:
                if share.position == position:
                    share.position = after

    monkeypatch.setattr(Fetching, "one_by_one", one_by_one)
    assert found(range(400)) is not None


def test_positions_that_are_judged_by_an_old_state_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault put back: the consumer does not ask for the newest state before a position is moved."""
    reply, states = Shell.reply, WeakKeyDictionary()

    def old(self, request):
        known = states.setdefault(self, {})
        if isinstance(request, ask.RefreshTopics) and request.surely and all(name in known for name in request.topics):
            return {name: known[name] for name in request.topics}
        found = reply(self, request)
        if isinstance(request, ask.RefreshTopics | ask.News):
            known |= found
        return found

    monkeypatch.setattr(Shell, "reply", old)
    assert found(range(400)) is not None


@pytest.mark.soak
def test_each_record_comes_in_its_turn_for_new_seeds() -> None:
    first = draw_seed()
    assert found(range(first, first + 20_000)) is None
    assert found(range(first, first + 300), with_group=True) is None
    assert found(range(first, first + 5_000), far=True) is None
