"""The busiest slots of a topic, beside those counted from the records by hand, and how little of it is read for them."""

import json
from collections import Counter

import pytest
from broken_reroutes import begun
from handmade import Record, Topic, batch, batches, featured, seeded
from in_notebook import html
from mmh3 import hash as murmur3

from sparklog import Log


def slot_of(key: bytes, slots: int = 4096) -> int:
    return (murmur3(key) & 0x7FFFFFFF) % slots


def test_a_sample_has_the_newest_records_of_each_partition_since_the_last_reroute(tmp_path):
    """Not the records from before it, nor those without a key, nor those in another partition than their slot's."""
    random = seeded()
    keys = [b"key-%d" % number for number in range(300)]
    routed = begun(Topic(tmp_path, partitions=2))
    for partition in (0, 1):
        routed.topic.append([Record(key=keys[0])] * 500, partition)
    routed.put(routed.reroute([1, 1, 1], {2: [*range(2731, 4096)]}))
    expected: dict[int, Counter[bytes]] = {}
    for partition in range(3):
        own = [key for key in keys if routed.table[slot_of(key)] == partition]
        written = random.choices(own, weights=[1 / (rank + 1) for rank in range(len(own))], k=400)
        expected[partition] = Counter(written[100:])
        elsewhere = next(key for key in keys if routed.table[slot_of(key)] != partition)
        others = [Record(key=None), Record(key=elsewhere)] * 50
        content = [*others, *(Record(key=key) for key in written)]
        routed.topic.commit(routed.topic.data(batch(content), partition, routed=False), features=featured("routing.slots"))
    found = Log(tmp_path)["t"].hot_slots(4096, records=300)
    assert found.sampled == dict.fromkeys(range(3), 300)
    slots: dict[tuple[int, int], Counter[bytes]] = {}
    for partition, counted in expected.items():
        for key, count in counted.items():
            slots.setdefault((partition, slot_of(key)), Counter())[key] += count
    assert {(each.partition, each.slot): (each.records, each.keys) for each in found} == {
        place: (sum(counted.values()), len(counted)) for place, counted in slots.items()
    }
    for each in found:
        counted = slots[each.partition, each.slot]
        assert dict(each.busiest).items() <= counted.items()
        assert [count for _, count in each.busiest] == sorted(counted.values(), reverse=True)[:3]
        assert each.share == each.records / 300
    order = [(each.partition, -each.records) for each in found]
    assert order == sorted(order)
    whole = Log(tmp_path)["t"].hot_slots(1, records=10_000)
    assert [each.partition for each in whole] == [0, 1, 2]
    assert whole.sampled == dict.fromkeys(range(3), 400)


def test_without_slots_they_are_those_that_the_topic_would_get(tmp_path):
    topic = Topic(tmp_path, "t", partitions=3)
    key = next(b"k%d" % number for number in range(100) if murmur3(b"k%d" % number) % 3 == 1 and murmur3(b"k%d" % number) > 0)
    topic.append([Record(key=key)] * 5, 1)
    found = Log(tmp_path)["t"].hot_slots()
    assert [(each.partition, each.slot, each.records) for each in found] == [(1, slot_of(key, 3 * 1366), 5)]
    assert found.sampled == {0: 0, 1: 5, 2: 0}


@pytest.mark.parametrize("size", [10, 20_000])
def test_older_segments_are_not_read(tmp_path, size):
    """Those before the newest 1,000 records, or before the newest mebibyte: their files may even be gone."""
    topic = Topic(tmp_path, "t", partitions=1)
    for number in range(3):
        topic.append([Record(bytes(size), b"old")] * 100)
        topic.data_file(number).unlink()
    content = [Record(bytes(size), b"new")] * 10
    topic.commit(topic.data(batches(*[content] * (100 if size == 10 else 8))))
    found = Log(tmp_path)["t"].hot_slots()
    assert [key for each in found for key, _ in each.busiest] == [b"new"]
    assert sum(found.sampled.values()) == (1_000 if size == 10 else 52), "1,048,576 bytes, of which a record takes a little over 20,000"


def test_a_topic_of_many_partitions_has_a_sample_of_some(tmp_path):
    topic = Topic(tmp_path, "t", partitions=40)
    for partition in range(5, 40):
        topic.append([Record(key=b"k")] * (partition + 1), partition)
    found = Log(tmp_path)["t"].hot_slots()
    assert list(found.sampled) == list(range(8, 40))
    assert found.partitions == 40
    assert "of the 32 partitions with the most of these; 40 have slots" in repr(found)


def test_how_they_are_shown(tmp_path):
    topic = Topic(tmp_path, "t", partitions=1)
    topic.append([Record(key=b"\x1b[31m")] * 2 + [Record(key=b"\xff")])
    found = Log(tmp_path)["t"].hot_slots()
    assert "\\x1b[31m (2)" in repr(found)
    assert "66.7%" in html(found)
    about = json.loads(json.dumps(found.as_dict()))
    assert [each["busiest"] for each in about["slots"]] == [[{"key": "\x1b[31m", "records": 2}], [{"key_base64": "/w==", "records": 1}]]
    assert (about["partitions"], about["sampled"]) == (1, [{"partition": 0, "records": 3}])
    topic.append([Record()])
    assert not Log(tmp_path)["t"].hot_slots(0)
