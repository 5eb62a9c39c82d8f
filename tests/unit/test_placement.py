"""The partition that an unbound slot gets, and the shares of partitions in such slots. FORMAT.md annex A."""

import json
import math
from collections import Counter
from pathlib import Path

import mmh3
import pytest

from sparklog.router import Router, place, race

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "placement.json").read_text())
UNBOUND = 65_535


def test_numbers_are_those_of_the_vectors():
    assert [race(slot, partition) for slot, partition, _ in VECTORS["races"]] == [number for _, _, number in VECTORS["races"]]


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: f"{len(case['shares'])} partitions")
def test_places_are_those_of_the_vectors(case):
    assert [place(slot, case["shares"]) for slot in case["slots"]] == case["partitions"]


def test_the_number_is_a_logarithm():
    for slot in range(2000):
        octets = slot.to_bytes(4, "little") + (7).to_bytes(4, "little")
        exact = -math.log2((mmh3.hash(octets, signed=False) + 1) / 2**32) * 2**24
        assert abs(race(slot, 7) - exact) < 4


def test_slots_are_shared_in_proportion():
    """Within five standard deviations, of 20,000 slots."""
    shares = [5, 1, 0, 10]
    counts = Counter(place(slot, shares) for slot in range(20_000))
    for partition, share in enumerate(shares):
        expected = 20_000 * share / 16
        assert abs(counts[partition] - expected) <= 5 * math.sqrt(expected)


def test_a_greater_share_takes_slots_and_gives_none():
    before = [place(slot, [3, 3, 3]) for slot in range(3000)]
    after = [place(slot, [3, 6, 3]) for slot in range(3000)]
    assert {now for was, now in zip(before, after, strict=True) if was != now} == {1}


def test_a_key_of_an_unbound_slot():
    table = [UNBOUND] * 8
    router = Router(3, "murmur3", table, [1, 1, 1])
    slot = router.slot(b"key")
    assert router.of_key(b"key") == place(slot, [1, 1, 1])
    table[slot] = (place(slot, [1, 1, 1]) + 1) % 3
    assert router.of_key(b"key") == table[slot], "it stays where it is bound"


@pytest.mark.parametrize("each", VECTORS["keys"], ids=lambda each: f"{each['partitioner']} {each['key']}")
def test_keys_go_where_the_vectors_say(each):
    router = Router(len(each["shares"]), each["partitioner"], [UNBOUND] * each["slots"], each["shares"])
    key = bytes.fromhex(each["key"])
    assert (router.slot(key), router.of_key(key)) == (each["slot"], each["partition"])
