import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

import sparklog
from sparklog import partition_for
from sparklog.router import Router

MANY = 10_000


def murmur3(octets: bytes) -> int:
    """MurmurHash3 x86 32-bit with seed 0, written from its description, to check mmh3 against."""

    def rotated(word: int, bits: int) -> int:
        return (word << bits | word >> 32 - bits) & 0xFFFFFFFF

    def mixed(word: int) -> int:
        return rotated(word * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF

    state = 0
    whole = len(octets) // 4 * 4
    for at in range(0, whole, 4):
        state = rotated(state ^ mixed(int.from_bytes(octets[at : at + 4], "little")), 13) * 5 + 0xE6546B64 & 0xFFFFFFFF
    state ^= mixed(int.from_bytes(octets[whole:], "little"))
    state ^= len(octets)
    state = (state ^ state >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    state = (state ^ state >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return state ^ state >> 16


# Kafka's own published cases; the hashes are signed.
@pytest.mark.parametrize(
    ("key", "signed"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_murmur2_routes_as_kafka_does(key, signed):
    assert partition_for(key, MANY, "murmur2") == (signed & 0x7FFFFFFF) % MANY


@pytest.mark.parametrize("key", [5, 1.5, True, [107], ("k",)])
def test_a_key_of_another_type_has_no_partition(key):
    with pytest.raises(TypeError, match=f"not {type(key).__name__}"):
        partition_for(key, 8)


@pytest.mark.parametrize("key", [b"k", bytearray(b"k"), memoryview(b"xk")[1:], "k"])
def test_all_kinds_of_bytes_lie_where_the_string_does(key):
    assert partition_for(key, 8) == partition_for("k", 8)


@pytest.mark.parametrize("partitions", ["8", 8.0, None])
def test_a_number_of_partitions_is_a_whole_one(partitions):
    with pytest.raises(TypeError):
        partition_for("k", partitions)


@given(st.binary(max_size=70), st.integers(1, MANY))
def test_murmur2_agrees_with_an_outside_client(key, partitions):
    assert partition_for(key, partitions, "murmur2") == (murmur2(key) & 0x7FFFFFFF) % partitions


@given(st.binary(max_size=70), st.integers(1, MANY))
def test_murmur3_agrees_with_its_description(key, partitions):
    assert partition_for(key, partitions) == (murmur3(key) & 0x7FFFFFFF) % partitions


@pytest.mark.parametrize("partitioner", ["murmur3", "murmur2"])
def test_the_vectors_that_both_halves_share(repository: Path, partitioner):
    vectors = json.loads((repository / "tests" / "vectors" / "hashes.json").read_text(encoding="utf-8"))[partitioner]
    assert vectors
    for vector in vectors:
        for partitions, partition in vector["partitions"].items():
            assert partition_for(bytes.fromhex(vector["key"]), int(partitions), partitioner) == partition, vector["name"]


@pytest.mark.parametrize("partitioner", ["murmur3", "murmur2"])
@given(
    st.one_of(st.lists(st.binary(max_size=20), max_size=30), st.lists(st.binary(min_size=5, max_size=5), max_size=5)), st.integers(1, MANY)
)
def test_many_keys_at_once_go_where_each_goes(partitioner, keys, partitions):
    sizes = np.array([len(key) for key in keys], dtype=np.int64)
    at = np.cumsum(sizes) - sizes
    found = Router(partitions, partitioner).of_keys(b"".join(keys) + b"end", at, sizes)
    assert found.tolist() == [partition_for(key, partitions, partitioner) for key in keys]
    assert found.dtype == np.int64


def test_a_string_counts_as_its_utf8_bytes():
    for partitioner in ("murmur3", "murmur2"):
        assert partition_for("Zürich →", MANY, partitioner) == partition_for("Zürich →".encode(), MANY, partitioner)


def test_other_bytes_like_keys_count_as_their_bytes():
    assert partition_for(bytearray(b"key"), MANY) == partition_for(memoryview(b"key"), MANY) == partition_for(b"key", MANY)


def test_an_empty_key_is_a_key_and_no_key_has_no_partition():
    assert partition_for(b"", MANY) == 0
    assert partition_for(None, MANY) is None


@pytest.mark.parametrize(("partitions", "partitioner"), [(0, "murmur3"), (-1, "murmur3"), (10_001, "murmur3"), (8, "crc32")])
@pytest.mark.parametrize("key", [b"key", None])
def test_what_no_topic_can_have_is_refused(key, partitions, partitioner):
    with pytest.raises(sparklog.CallError) as raised:
        partition_for(key, partitions, partitioner)
    assert raised.value.condition == "PARTLOG_OPTION_VALUE"
