"""All records of a key are found, in whichever partition they are, and what cannot hold it is not read."""

import random

import pytest
from handmade import TIME, Record, Topic

from sparklog import Log, partition_for

KEYS = [f"k{number}".encode() for number in range(8)]


def history(root, rng: random.Random) -> Topic:
    """Records that were routed, records of a chosen partition and without a key, checkpoints in between."""
    topic = Topic(root, "t", partitions=rng.randint(1, 4))
    for number in range(rng.randint(2, 12)):
        act = rng.random()
        partition = rng.randrange(topic.partitions)
        own = [key for key in KEYS if partition_for(key, topic.partitions) == partition]
        routed = bool(own) and act < 0.7
        keys = [rng.choice(own if routed else [*KEYS, None]) for _ in range(rng.randint(1, 6))]
        topic.append([Record(b"v", key, TIME + number) for key in keys], partition, routed=routed)
        if rng.random() < 0.2:
            topic.checkpoint()
    return topic


@pytest.mark.parametrize("seed", range(40))
def test_a_read_by_key_finds_what_a_full_read_holds(tmp_path, seed):
    made = history(tmp_path, random.Random(seed))
    topic = Log(tmp_path)["t"]
    everything = topic.read(columns=["partition", "offset", "key"]).to_pylist()
    for key in KEYS:
        its = [(row["partition"], row["offset"]) for row in everything if row["key"] == key]
        may = topic.partitions_holding(key)
        assert {partition for partition, _ in its} <= set(may), made.versions
        assert topic.partition_for(key) in may
        for table in (topic.read(key=key), topic.head(1000, key=key)):
            assert list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)) == its
        tail = topic.tail(1000, key=key)
        assert sorted(zip(tail["partition"].to_pylist(), tail["offset"].to_pylist(), strict=True)) == its
        for partition in range(topic.partitions):
            assert topic.read(partition, key=key)["offset"].to_pylist() == [offset for where, offset in its if where == partition]


def test_segments_that_cannot_hold_the_key_are_not_read(tmp_path):
    """Their data files may even be gone."""
    topic = Topic(tmp_path, "t", partitions=2)
    home = partition_for(b"k", 2)
    assert home is not None
    topic.append([Record(b"here", b"k", TIME)], home)
    topic.append([Record(b"elsewhere", b"k", TIME)], 1 - home, routed=False)
    gone = topic.append([Record(b"another", b"x", TIME)], 1 - home)
    (topic.folder / gone["file"]).unlink()
    assert sorted(Log(tmp_path)["t"].read(key="k")["value"].to_pylist()) == [b"elsewhere", b"here"]


@pytest.mark.parametrize("seed", range(10))
def test_the_key_table_has_each_key_of_the_newest_records_once(tmp_path, seed):
    history(tmp_path, random.Random(seed))
    topic = Log(tmp_path)["t"]
    for n in (1, 3, 1000):
        newest = [row for each in range(topic.partitions) for row in topic.tail(n, each, columns=["key", "timestamp"]).to_pylist()]
        expected = {}
        for row in newest:
            if row["key"] is not None:
                times = [*expected.get(row["key"], (0, 0, []))[2], row["timestamp"]]
                expected[row["key"]] = topic.partition_for(row["key"]), len(times), times
        found = topic.recent_keys(n).to_pylist()
        assert {row["key"]: (row["partition"], row["records"], row["timestamp"]) for row in found} == {
            key: (partition, count, max(times)) for key, (partition, count, times) in expected.items()
        }
        assert [(row["partition"], row["key"]) for row in found] == sorted((row["partition"], row["key"]) for row in found)


def test_the_key_table_of_an_empty_topic(tmp_path):
    Topic(tmp_path, "t", partitions=2).commit()
    assert Log(tmp_path)["t"].recent_keys().num_rows == 0
