"""Programs share servers as `sparklog.serve.use` says, in every order of acts that `serve.use_world` tries."""

from collections import Counter

import pytest
from handmade import draw_seed
from model.scheduler import first_violation
from serve.use_world import World

RUNS = 25
MUTANTS = ["no lock", "keeps its connection", "does not see the end"]
ACCIDENTS = {
    "starts at the same address",
    "refused starts",
    "servers that ended with a new client",
    "answers that were lost",
    "clients that were replaced",
    "programs that were killed with the lock",
}


def violation(seeds: range, mutant: str = "") -> tuple[int, str] | None:
    return first_violation(lambda seed: World(seed, mutant).run(), seeds)


def test_no_record_is_lost_and_no_server_is_left() -> None:
    counts: Counter[str] = Counter()

    def run(seed: int) -> None:
        world = World(seed)
        world.run()
        counts.update(world.counts)

    first = draw_seed()
    assert first_violation(run, range(first, first + RUNS)) is None
    assert set(counts) >= ACCIDENTS, counts


@pytest.mark.soak
def test_nothing_is_lost_for_new_seeds() -> None:
    first = draw_seed()
    assert violation(range(first, first + 5_000)) is None


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_rule_that_is_left_out_is_missed(mutant: str) -> None:
    assert violation(range(RUNS), mutant) is not None
