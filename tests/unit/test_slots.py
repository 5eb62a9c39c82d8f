import hashlib
import json
import random
import tracemalloc
import zlib
from array import array
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from slot_tables import modulo, replan

from sparklog import partition_for
from sparklog.errors import SparklogError
from sparklog.ondisk.routing import Past, Routing
from sparklog.router import Router

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "slots.json").read_text())
PLANS = 2_000


def cases():
    """Each vector with the table that it begins with. Long tables that are no fresh ones go on from the vector before."""
    last = None
    for vector in VECTORS:
        if vector["before"]:
            before = vector["before"]
        elif vector["before_is"]:
            before = modulo(int(vector["before_is"].split()[2]), vector["slots"])
        else:
            before = last
        last, _ = replan(before, weights(vector))
        yield pytest.param(vector, before, id=vector["note"])


def weights(vector):
    return {int(partition): weight for partition, weight in vector["weights"].items()}


@pytest.mark.parametrize(("vector", "before"), list(cases()))
def test_a_table_is_that_of_the_vectors(vector, before):
    after, moves = replan(before, weights(vector))
    assert vector["after"] is None or after == vector["after"]
    assert hashlib.blake2b(",".join(map(str, after)).encode(), digest_size=8).hexdigest() == vector["after_digest"]
    assert Counter(after) == {int(partition): count for partition, count in vector["counts"].items()}
    assert len(moves) == vector["moved"]
    assert sorted({(move.before, move.after) for move in moves}) == [tuple(pair) for pair in vector["pairs"]]
    assert [list(move) for move in moves[:6]] == vector["first_moves"]


def test_all_vectors_are_there():
    assert len(VECTORS) == 26


def random_weights(chance, partitions):
    equal = chance.random() < 0.5
    weighed = {partition: 1 if equal else chance.randint(1, 1000) for partition in range(partitions) if chance.random() < 0.8}
    return weighed or {chance.randrange(partitions): 1}


def test_plans_move_the_fewest_slots_that_meet_the_targets():
    for seed in range(PLANS):
        chance = random.Random(seed)
        partitions = chance.randint(1, 12)
        table = modulo(partitions, partitions * chance.randint(1, 40))
        for _ in range(chance.randint(1, 4)):
            partitions += chance.randint(0, 4)
            weighed = random_weights(chance, partitions)
            after, moves = replan(table, weighed)
            owned, counts, total = Counter(table), Counter(after), sum(weighed.values())
            assert set(after) <= weighed.keys(), seed
            for partition, weight in weighed.items():
                assert counts[partition] - len(table) * weight // total in (0, 1), seed
            if len(set(weighed.values())) == 1:
                assert max(counts[each] for each in weighed) - min(counts[each] for each in weighed) <= 1, seed
            assert len(moves) == sum(max(0, owned[each] - counts[each]) for each in owned), seed
            assert len(moves) == sum(one != other for one, other in zip(table, after, strict=True)), seed
            assert all(table[slot] == before and after[slot] == to for slot, before, to in moves), seed
            assert replan(tuple(table), dict(sorted(weighed.items(), reverse=True))) == (after, moves), seed
            if len(set(weighed.values())) == 1:
                assert replan(after, weighed) == (after, []), seed
            table = after


def test_growing_moves_slots_to_new_partitions_only():
    table = modulo(4)
    for partitions in range(5, 40):
        table, moves = replan(table, dict.fromkeys(range(partitions), 1))
        assert {move.after for move in moves} == {partitions - 1}


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 8, 100, 4095, 4096, 4097, 10_000])
@pytest.mark.parametrize("partitioner", ["murmur3", "murmur2"])
def test_a_first_table_routes_as_modulo_does(partitions, partitioner):
    table = modulo(partitions)
    assert len(table) % partitions == 0
    assert 4096 <= len(table) < 4096 + partitions
    router = Router(partitions, partitioner, table)
    keys = [zlib.crc32(b"%d" % n).to_bytes(4, "big") * (n % 5) for n in range(200)]
    expected = [partition_for(key, partitions, partitioner) for key in keys]
    assert [router.of_key(key) for key in keys] == expected
    assert [table[router.slot(key)] for key in keys] == expected
    sizes = np.array([len(key) for key in keys])
    assert router.of_keys(b"".join(keys) + b"...", np.cumsum([0, *sizes[:-1]]), sizes).tolist() == expected


def test_a_call_for_a_few_keys_does_not_copy_the_slot_table():
    """`verify` makes one for each part of a segment, and the table may have two megabytes."""
    router = Router(100, "murmur3", array("H", (slot % 100 for slot in range(2**20))))
    at, sizes = np.array([0]), np.array([4])
    router.of_keys(b"1234...", at, sizes)
    tracemalloc.start()
    placed = router.of_keys(b"1234...", at, sizes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert placed.tolist() == [router.of_key(b"1234")]
    assert placed.dtype == np.int64
    assert peak < 2**16


@pytest.mark.parametrize("weighed", [{}, {0: 0}, {0: -1}, {0: 1, 1: 1_000_001}, {-1: 1}])
def test_weights_that_no_topic_has_are_refused(weighed):
    with pytest.raises(SparklogError, match="OPTION_VALUE") as refused:
        replan(modulo(2), weighed)
    assert "weight" in str(refused.value)


def test_the_table_after_many_reroutes_is_copied_once():
    """`verify` asks for that of each routing epoch that has segments."""

    class Table(array):
        copies = 0

        def __getitem__(self, at):
            if not isinstance(at, slice):
                return super().__getitem__(at)
            Table.copies += 1
            return Table("H", super().__getitem__(at))

    first = Table("H", [0] * 4096)
    past = [Past(number, (0,), [(1 + number % 2, [7])]) for number in range(1000)]
    routing = Routing(1000, (1, 1, 1), first, first, past)
    Table.copies = 0
    table = routing.table_after(999)
    assert Table.copies == 1
    assert (table[7], sum(table), first[7]) == (1, 1, 0)
