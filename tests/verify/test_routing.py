"""Topics that were re-routed, right ones and wrong ones. FORMAT.md annex A."""

from pathlib import Path

import pytest
from broken_reroutes import Routed, crc_of
from handmade import Record, Topic, batch, featured
from mmh3 import hash as murmur3
from planting import found, only

KEYS = [f"key-{number}".encode() for number in range(300)]


def home(routed: Routed, key: bytes) -> int:
    return routed.table[(murmur3(key) & 0x7FFFFFFF) % len(routed.table)]


def write(routed: Routed, wrong: int | None = None, **fields: object) -> None:
    """Commits a record of each key in its place; with `wrong`, that partition has one more, which belongs elsewhere."""
    topic = routed.topic
    added = []
    for partition in range(len(routed.weights)):
        keys = [key for key in KEYS if home(routed, key) == partition]
        if partition == wrong:
            keys.append(next(key for key in KEYS if home(routed, key) != partition))
        if keys:
            added.append(topic.data(batch([Record(key=key) for key in keys]), partition))
    topic.commit(*added, features=featured("routing.slots") if routed.epoch else [], **fields)


def grown(root: Path) -> Routed:
    """A topic with two re-routes and records in each routing epoch."""
    routed = Routed(Topic(root, partitions=2))
    write(routed)
    routed.put(routed.reroute([1, 1, 1], {2: [*range(2731, 4096)]}))
    write(routed)
    routed.put(routed.reroute([1, 0, 1], {0: [slot for slot in range(4096) if routed.table[slot] == 1]}))
    return routed


def test_a_topic_that_is_right(tmp_path: Path) -> None:
    routed = grown(tmp_path)
    write(routed)
    routed.topic.checkpoint(features=featured("routing.slots"), routing=routed.routing())
    assert found(tmp_path) == []


@pytest.mark.parametrize("partition", [0, 2])
def test_a_record_where_its_routing_epoch_does_not_put_it(tmp_path: Path, partition: int) -> None:
    routed = grown(tmp_path)
    write(routed, wrong=partition)
    finding = only(tmp_path)
    assert (finding.condition, finding.partition) == ("ROUTE_WRONG", partition)
    assert finding.offset == routed.topic.versions[-1]["ends"][partition] - 1
    assert "in the routing epoch of the segment" in finding.problem


def test_records_that_were_routed_by_the_table_before(tmp_path: Path) -> None:
    """A write that was planned before a re-route, and committed after it: the closed partition and others have keys of another one."""
    routed = grown(tmp_path)
    stale = list(routed.table)
    routed.put(routed.reroute([1, 0, 1, 1], {3: list(range(0, 2731, 2))}))
    routed.table = stale
    write(routed)
    assert {condition for _, condition in found(tmp_path)} == {"ROUTE_WRONG"}


def test_a_checkpoint_that_says_something_else(tmp_path: Path) -> None:
    routed = grown(tmp_path)
    write(routed)
    wrong = routed.routing()
    wrong["reroutes"] = [{**wrong["reroutes"][0], "cut": [0, 0, 0]}, wrong["reroutes"][1]]
    routed.topic.checkpoint(features=featured("routing.slots"), routing=wrong)
    finding = only(tmp_path)
    assert finding.condition == "CHECKPOINT_WRONG"
    assert "routing" in finding.problem


def test_what_a_reroute_may_change(tmp_path: Path) -> None:
    routed = grown(tmp_path)
    content = routed.reroute([2, 0, 1], {0: [4095]})
    routed.put(content | {"operation": "alter"})
    assert found(tmp_path) == [("damage", "VERSION_ODD")]


def test_the_number_of_slots(tmp_path: Path) -> None:
    """Readers take any multiple of the partitions; a writer takes one."""
    routed = Routed(Topic(tmp_path, partitions=2))
    write(routed)
    routed.table = [slot % 2 for slot in range(64)]
    content = routed.reroute([1, 3], {1: [0, 2]})
    content["routing"]["slots"] = 64
    table = list(routed.table)
    table[0] = table[2] = 1
    content["routing"]["table"] = crc_of(table)
    routed.put(content)
    assert found(tmp_path) == [("damage", "VERSION_ODD")]


def test_a_merge_over_a_cut(tmp_path: Path) -> None:
    routed = grown(tmp_path)
    topic = routed.topic
    before = list(topic.live[0])
    joined = topic.data(batch([Record(key=b"key-1")] * before[1]["end"]), name="p0-t0-0-0.log")
    topic.commit(
        joined | {"base": 0, "end": before[1]["end"], "routed": False},
        removed=before,
        operation="merge",
        features=featured("routing.slots"),
    )
    assert found(tmp_path) == [("damage", "VERSION_ODD")]
