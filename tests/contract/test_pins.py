"""The readers in Java and in Python on topics with pinned keys: both see the same, or both refuse."""

from pathlib import Path

import broken_pins
import pytest
from handmade import Topic, given
from logtool import LogTool
from verdicts import agree_on_checkpoints, agree_on_versions, verdict

from sparklog import Log
from sparklog.ondisk import fields
from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog


def newest(root: Path, topic: str = "t") -> State:
    return TopicLog(Root.at(str(root)), topic).newest()


def test_version_files(tool: LogTool) -> None:
    """Each in a topic of its own. The checksums of the files are right."""
    kinds = {
        "first": (broken_pins.put_pin, broken_pins.CHANGES, broken_pins.RIGHT),
        "later": (broken_pins.put_later, broken_pins.LATER, broken_pins.LATER_RIGHT),
        "unbound": (broken_pins.put_unbound, broken_pins.UNBOUND, broken_pins.UNBOUND_RIGHT),
        "begins": (broken_pins.put_begins, broken_pins.BEGINS, broken_pins.BEGINS_RIGHT),
    }
    cases = {
        **{(kind, rule): (put, change, "VERSION_CORRUPT") for kind, (put, wrong, _) in kinds.items() for rule, change in wrong.items()},
        **{(kind, rule): (put, change, "ok") for kind, (put, _, right) in kinds.items() for rule, change in right.items()},
        ("first", "more features"): (broken_pins.put_pin, given("features", ["slots", "pins", "more"]), "FORMAT_TOO_NEW"),
    }
    agree_on_versions(tool, cases)


def test_checkpoints(tool: LogTool) -> None:
    features = ["slots", "pins"]
    agree_on_checkpoints(tool, broken_pins.pinned, broken_pins.HEADS, broken_pins.HEADS_RIGHT, features)


@pytest.mark.parametrize(("features", "found"), [(["slots", "pins"], "VERSION_MISSING"), (["pins"], "ok")])
def test_a_checkpoint_of_a_write_that_has_the_feature_and_no_routing(tool: LogTool, features: list[str], found: str) -> None:
    """The version of a write says nothing of routing that a checkpoint could contradict."""
    topic = Topic(tool.root, partitions=2)
    if "slots" in features:
        broken_pins.pinned(topic)
    topic.commit(features=features)
    topic.checkpoint(features=features)
    for version in range(len(topic.versions) - 1):
        topic.version_file(version).unlink()
    assert verdict(tool.root, "t") == found
    assert tool.run("states") == [f"t {found}"]


@pytest.mark.parametrize("pins", [True, False])
def test_a_topic_that_was_deleted_has_no_pins(tool: LogTool, pins: bool) -> None:
    """Its deletion may have the feature, and need not; it begins again without."""
    topic = Topic(tool.root, partitions=2)
    broken_pins.pinned(topic)
    topic.put(topic.deletion(features=["slots", "pins"] if pins else []))
    topic.commit()
    assert newest(tool.root).routing is None
    assert tool.run("states") == ["t ok"]


def test_a_checkpoint_says_what_replay_says(tool: LogTool) -> None:
    topic = Topic(tool.root, partitions=2)
    pinned = broken_pins.pinned(topic)
    replayed = newest(tool.root)
    topic.checkpoint(features=pinned.features, routing=pinned.routing())
    for version in range(5):
        topic.version_file(version).unlink()
    loaded = newest(tool.root)
    assert loaded.routing == replayed.routing
    assert loaded.routing.pins == pinned.pins == {b"": 0, b"a": 0, b"ab": 0, b"z": 1, b"\xff": 2}
    before = {b"": 0, b"\0": 1, b"a": 1, b"ab": 0}
    assert [loaded.routing.pins_after(reroutes) for reroutes in range(4)] == [{}, before, before, pinned.pins]
    assert tool.run("states") == ["t ok"]


def test_pins_before_the_oldest_reroute(tool: LogTool) -> None:
    """Records of before the first re-route are deleted: what it pinned counts as having been there."""
    topic = Topic(tool.root, partitions=2)
    pinned = broken_pins.pinned(topic)
    topic.commit(features=pinned.features, operation="delete-records", starts=[5, 6, 0])
    replayed = newest(tool.root).routing
    assert len(replayed.past) == 2
    before = {b"": 0, b"\0": 1, b"a": 1, b"ab": 0}
    assert [replayed.pins_after(reroutes) for reroutes in range(3)] == [before, before, pinned.pins]
    keys = [[key.hex(), partition] for key, partition in before.items()]
    topic.checkpoint(features=pinned.features, routing=pinned.routing() | {"reroutes": pinned.past[1:], "pins": keys})
    for version in range(6):
        topic.version_file(version).unlink()
    assert newest(tool.root).routing == replayed
    assert tool.run("states") == ["t ok"]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_program_that_does_not_know_pins_refuses_the_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: bool) -> None:
    topic = Topic(tmp_path, partitions=2)
    pinned = broken_pins.pinned(topic)
    if checkpoint:
        topic.checkpoint(features=pinned.features, routing=pinned.routing())
        for version in range(5):
            topic.version_file(version).unlink()
    assert Log(tmp_path)["t"].partition_for("z") == 1
    monkeypatch.setattr(fields, "PINS", "of another version")
    assert verdict(tmp_path, "t") == "FORMAT_TOO_NEW"
