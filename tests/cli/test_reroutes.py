"""Topics that were re-routed, as the command line shows them."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from broken_reroutes import Routed, grown
from handmade import Record, Topic, batch, featured
from mmh3 import hash as murmur3


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_describe(tmp_path: Path, run: Callable[..., str]) -> None:
    grown(Topic(tmp_path, partitions=2))
    shown = run("describe", tmp_path, "t")
    assert "routing epoch 2, 4,096 slots; closed: 1" in shown
    assert re.findall(r"^\W*[012]\W+0\W+[27]\W+([\d,]+|closed)\b", shown, re.MULTILINE) == ["2,731", "closed", "1,365"]
    about = json.loads(run("describe", tmp_path, "t", "--json"))
    assert about["routing"] == {
        "epoch": 2,
        "slots": 4096,
        "closed": [1],
        "unbound": 0,
        "shares": None,
        "shares_until": None,
        "reroutes": [{"version": 2, "cut": [5, 5, 0]}, {"version": 4, "cut": [7, 7, 0]}],
    }
    assert about["pending_weights"] is None
    assert [(each["slots"], each["weight"]) for each in about["partitions"]] == [(2731, 2), (0, 0), (1365, 1)]


def test_describe_with_the_busiest_slots(tmp_path: Path, run: Callable[..., str]) -> None:
    routed = grown(Topic(tmp_path, partitions=2))
    assert "busiest slots" not in run("describe", tmp_path, "t")
    key = next(b"key-%d" % n for n in range(100) if routed.table[(murmur3(b"key-%d" % n) & 0x7FFFFFFF) % 4096] == 2)
    other = next(b"k%d" % n for n in range(100) if routed.table[(murmur3(b"k%d" % n) & 0x7FFFFFFF) % 4096] == 2)
    content = [Record(key=key)] * 6 + [Record(key=other)] * 2 + [Record(key=None)]
    routed.topic.commit(routed.topic.data(batch(content), 2), features=featured("routing.slots"))
    shown = run("describe", tmp_path, "t", "--slots")
    assert "A sample: 9 records with keys, the newest of each partition since its last cut" in shown
    slot = (murmur3(key) & 0x7FFFFFFF) % 4096
    assert re.search(rf"^ *2 +{slot:,} +6 +66\.7% +1 +{key.decode()} \(6\)$", shown, re.MULTILINE)
    about = json.loads(run("describe", tmp_path, "t", "--slots", "--json"))
    assert about["hot_slots"]["sampled"] == [{"partition": 0, "records": 0}, {"partition": 2, "records": 9}]
    assert about["hot_slots"]["slots"][0] == {
        "partition": 2,
        "slot": slot,
        "records": 6,
        "share": 0.6667,
        "keys": 1,
        "busiest": [{"key": key.decode(), "records": 6}],
    }


@pytest.mark.parametrize(
    ("value", "weights"),
    [
        ("2:2,0,1,1", [2, 0, 1, 1]),
        ("2:2,0,1", [2, 0, 1]),
        ("1:2,0,1", None),
        ("3:2,0,1", None),
        ("2:2,0", None),
        ("2:2,1,1", None),
        ("2:0,0,0", None),
        ("none", None),
    ],
)
def test_a_reroute_that_waits(tmp_path: Path, run: Callable[..., str], value: str, weights: list[int] | None) -> None:
    """A value of another routing epoch, or one that fits no partitions, has no effect."""
    routed = grown(Topic(tmp_path, partitions=2))
    routed.topic.put(routed.topic.next(features=featured("routing.slots"), operation="alter", config={"routing.pending.weights": value}))
    shown = run("describe", tmp_path, "t")
    assert ("before the next write to be re-routed to the weights" in shown) == bool(weights)
    assert json.loads(run("describe", tmp_path, "t", "--json"))["pending_weights"] == weights


def test_a_key_is_read_where_it_was_in_each_routing_epoch(tmp_path: Path, run: Callable[..., str]) -> None:
    """In two partitions, and in none of the segments of these partitions that are of another routing epoch."""
    routed = Routed(Topic(tmp_path, partitions=2))
    key = next(b"key-%d" % n for n in range(100) if (murmur3(b"key-%d" % n) & 0x7FFFFFFF) % 4096 > 2731)
    slot = (murmur3(key) & 0x7FFFFFFF) % 4096
    home = slot % 2
    for partition in range(2):
        routed.topic.append([Record(key=key if partition == home else b"other")], partition)
    routed.put(routed.reroute([1, 1, 1], {2: [*range(2731, 4096)]}))
    routed.topic.commit(
        *(routed.topic.data(batch([Record(key=key if partition == 2 else b"other")]), partition) for partition in range(3)),
        features=featured("routing.slots"),
    )
    found = json.loads(run("keys", tmp_path, "t", key.decode(), "--json"))
    assert [(each["partition"], each["records"], each["first"]) for each in found] == [(2, 1, 0), (home, 1, 0)]
