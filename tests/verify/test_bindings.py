"""Records in slots that are bound when they are first used, where they belong and where not. FORMAT.md annex A."""

from pathlib import Path

from broken_bindings import FEATURES, SLOTS, Bound
from handmade import Record, Topic, batch, featured
from mmh3 import hash as murmur3
from planting import found, only

from sparklog import Log

KEYS = [f"key-{number}".encode() for number in range(300)]


def slot(key: bytes) -> int:
    return (murmur3(key) & 0x7FFFFFFF) % SLOTS


def written(root: Path, binds: bool = True, wrong: int | None = None) -> Bound:
    """A topic with a record of each key in partition 0 or 1; of key `wrong` in the other one."""
    topic = Topic(root, partitions=2)
    bound = Bound(topic)
    homes = {key: slot(key) % 2 for key in KEYS}
    placed = {key: home if at != wrong else 1 - home for at, (key, home) in enumerate(homes.items())}
    added = [topic.data(batch([Record(key=key) for key in KEYS if placed[key] == partition]), partition) for partition in (0, 1)]
    taken = KEYS if binds else KEYS[:-1]
    bound.begin({partition: sorted({slot(key) for key in taken if homes[key] == partition}) for partition in (0, 1)}, *added)
    return bound


def test_a_topic_that_is_right(tmp_path: Path) -> None:
    bound = written(tmp_path)
    bound.topic.checkpoint(features=FEATURES, routing=bound.routing())
    assert found(tmp_path) == []
    assert {slot.partition for slot in Log(tmp_path)["t"].hot_slots()} == {0, 1}


def test_a_record_in_another_partition_than_its_slot(tmp_path: Path) -> None:
    written(tmp_path, wrong=7)
    finding = only(tmp_path)
    assert finding.condition == "ROUTE_WRONG"
    assert "in the routing epoch of the segment" in finding.problem


def test_a_record_whose_slot_is_unbound(tmp_path: Path) -> None:
    written(tmp_path, binds=False)
    finding = only(tmp_path)
    assert finding.condition == "ROUTE_WRONG"
    assert "its key belongs to no partition yet" in finding.problem


def test_only_a_write_binds(tmp_path: Path) -> None:
    bound = written(tmp_path)
    free = next(each for each in range(SLOTS) if bound.table[each] > 1)
    bound.take(bound.bind({0: [free]}) | {"operation": "merge"})
    assert "`bindings`" in only(tmp_path).problem


def test_a_topic_keeps_its_placement(tmp_path: Path) -> None:
    bound = written(tmp_path)
    bound.topic.commit(operation="alter", config={"placement": "modulo"}, features=featured("routing.slots"))
    assert "it lacks a feature that the topic has" in only(tmp_path).problem
