"""The model keeps the invariants, and finds each broken rule. Any seed of a failure is replayed by `--trace`: see commit_model.py."""

import secrets

import pytest
from model.commit_model import MUTANTS, as_designed, run
from model.world import Violation


def test_the_protocol_keeps_the_invariants():
    first = secrets.randbelow(2**40)
    print(f"seeds {first} to {first + 299}")
    print(as_designed(range(first, first + 300), float("inf")))


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_rule_is_found(mutant):
    with pytest.raises(Violation):
        run(MUTANTS[mutant], mutant)


@pytest.mark.soak
def test_the_protocol_keeps_the_invariants_for_long():
    first = secrets.randbelow(2**40)
    print(f"seeds from {first}")
    print(as_designed(range(first, first + 10**9), 600))
