"""Topics with pinned keys, right ones and wrong ones. FORMAT.md sections 5, 9 and 13."""

from pathlib import Path

import pytest
from broken_reroutes import Routed, crc_of
from handmade import Record, Topic, batch
from planting import found, only

KEYS = [f"key-{number}".encode() for number in range(100)]
KEY = KEYS[7]


def write(routed: Routed, wrong: bytes | None = None) -> None:
    """Commits a record of each key in its place; with `wrong`, that of this key in another one."""
    homes = {key: routed.home(key) if key != wrong else 1 - routed.home(key) for key in KEYS}
    added = [
        routed.topic.data(batch([Record(key=key) for key in KEYS if homes[key] == partition]), partition)
        for partition in sorted(set(homes.values()))
    ]
    routed.topic.commit(*added, features=routed.features if routed.epoch else [])


def pinned(root: Path) -> Routed:
    """A topic with a key that is pinned elsewhere than its slot is, and records of before and after that."""
    routed = Routed(Topic(root, partitions=2))
    write(routed)
    routed.put(routed.pin({KEY: 1 - routed.home(KEY), b"another": 0}))
    write(routed)
    return routed


def test_a_topic_that_is_right(tmp_path: Path) -> None:
    routed = pinned(tmp_path)
    routed.put(routed.reroute([1, 1, 1], {2: [*range(2731, 4096)]}))
    write(routed)
    routed.put(routed.pin({KEY: None, KEYS[8]: 2, KEYS[9]: routed.home(KEYS[9])}))
    write(routed)
    routed.topic.checkpoint(features=routed.features, routing=routed.routing())
    assert found(tmp_path) == []


def test_a_record_where_its_slot_is_and_not_its_pin(tmp_path: Path) -> None:
    routed = pinned(tmp_path)
    write(routed, wrong=KEY)
    finding = only(tmp_path)
    assert (finding.condition, finding.partition) == ("ROUTE_WRONG", 1 - routed.pins[KEY])
    assert f"its key is pinned to partition {routed.pins[KEY]} in the routing epoch of the segment" in finding.problem
    (at,) = (at for at, each in enumerate(key for key in KEYS if routed.home(key) != routed.pins[KEY] or key == KEY) if each == KEY)
    assert finding.offset == routed.topic.versions[2]["ends"][finding.partition] + at


def test_a_record_where_its_pin_was_that_has_ended(tmp_path: Path) -> None:
    routed = pinned(tmp_path)
    routed.put(routed.pin({KEY: None}))
    write(routed, wrong=KEY)
    finding = only(tmp_path)
    assert finding.condition == "ROUTE_WRONG"
    assert f"its key belongs to partition {routed.home(KEY)} in the routing epoch of the segment" in finding.problem


def test_a_reroute_that_pins_and_moves_slots(tmp_path: Path) -> None:
    routed = pinned(tmp_path)
    content = routed.pin({b"third": 1})
    table = [1, *routed.table[1:]]
    content["routing"] |= {"moved": [[1, 0]], "table": crc_of(table)}
    routed.put(content)
    finding = only(tmp_path)
    assert finding.condition == "VERSION_ODD"
    assert "it changes pins and moves slots" in finding.problem


@pytest.mark.parametrize("operation", ["alter", "write", "fill"])
def test_only_a_reroute_pins(tmp_path: Path, operation: str) -> None:
    routed = pinned(tmp_path)
    routed.put(routed.pin({b"third": 1}) | {"operation": operation})
    assert "`routing`" in only(tmp_path).problem


@pytest.mark.parametrize("pins", [[[b"another".hex(), 0]], [[b"another".hex(), 0], [KEY.hex(), 0]], [[b"more".hex(), 0]]])
def test_a_checkpoint_with_other_pins(tmp_path: Path, pins: list[list[object]]) -> None:
    routed = Routed(Topic(tmp_path, partitions=2))
    write(routed)
    routed.put(routed.pin({KEY: 1, b"another": 0}))
    wrong = routed.routing()
    wrong["reroutes"] = [{**wrong["reroutes"][0], "pins": pins}]
    routed.topic.checkpoint(features=routed.features, routing=wrong)
    finding = only(tmp_path)
    assert finding.condition == "CHECKPOINT_WRONG"
    assert "routing" in finding.problem
