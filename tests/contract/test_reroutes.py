"""The readers in Java and in Python on topics that were re-routed: both see the same, or both refuse."""

import json
from pathlib import Path

import broken_reroutes
import pytest
from handmade import Topic, given
from logtool import LogTool
from verdicts import told, verdict

from sparklog.ondisk import fields
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog


def test_version_files(tool: LogTool) -> None:
    """Each in a topic of its own. The checksums of the files are right."""
    cases = {
        **{("first", rule): (broken_reroutes.rerouted, change, "VERSION_CORRUPT") for rule, change in broken_reroutes.FIRST.items()},
        **{("third", rule): (broken_reroutes.rerouted_again, change, "VERSION_CORRUPT") for rule, change in broken_reroutes.SECOND.items()},
        **{("first", rule): (broken_reroutes.rerouted, change, "ok") for rule, change in broken_reroutes.RIGHT.items()},
        **{("note", rule): (broken_reroutes.noted, change, "VERSION_CORRUPT") for rule, change in broken_reroutes.NOTES.items()},
        ("note", "as it should be"): (broken_reroutes.noted, lambda content: None, "ok"),
        ("third", "as it should be"): (broken_reroutes.rerouted_again, lambda content: None, "ok"),
        ("first", "more features"): (broken_reroutes.rerouted, given("features", ["slots", "more"]), "FORMAT_TOO_NEW"),
    }
    names = {f"t{number}": f"{kind}: {rule}" for number, (kind, rule) in enumerate(cases)}
    for name, (write, change, _) in zip(names, cases.values(), strict=True):
        write(Topic(tool.root, name, partitions=2), change)
    expected = {f"{kind}: {rule}": found for (kind, rule), (_, _, found) in cases.items()}
    here, there = told(tool, names)
    assert here == expected
    assert there == expected


def test_without_the_feature_the_field_has_no_meaning(tool: LogTool) -> None:
    topic = Topic(tool.root, partitions=2)
    routed = broken_reroutes.begun(topic)
    content = routed.reroute([1, 1, 1], {2: [0]})
    topic.put(content | {"features": [], "config": {}, "starts": [0, 0], "ends": [5, 5], "routing": "anything"})
    assert verdict(tool.root, "t") == "ok"
    assert tool.run("states") == ["t ok"]
    assert TopicLog(Root.at(str(tool.root)), "t").newest().routing is None


def test_checkpoints(tool: LogTool) -> None:
    """The versions before the checkpoint's are deleted: either the checkpoint is valid, or these versions are missing."""
    changes = {**broken_reroutes.HEADS, "as it should be": lambda head: None}
    names = {f"t{number}": rule for number, rule in enumerate(changes)}
    for name, rule in names.items():
        topic = Topic(tool.root, name, partitions=2)
        routed = broken_reroutes.grown(topic)
        lines = [
            json.loads(line.split(b"\t")[0])
            for line in topic.checkpoint(features=["slots"], routing=routed.routing()).read_bytes().splitlines()
        ]
        for file in topic.folder.glob("0*"):
            if file != topic.version_file(4):
                file.unlink()
        changes[rule](lines[0])
        topic.put_checkpoint(4, lines)
    expected = dict.fromkeys(broken_reroutes.HEADS, "VERSION_MISSING") | {"as it should be": "ok"}
    here, there = told(tool, names)
    assert here == expected
    assert there == expected


def test_a_checkpoint_says_what_replay_says(tool: LogTool) -> None:
    topic = Topic(tool.root, partitions=2)
    routed = broken_reroutes.grown(topic)
    replayed = TopicLog(Root.at(str(tool.root)), "t").newest()
    topic.checkpoint(features=["slots"], routing=routed.routing())
    for version in range(4):
        topic.version_file(version).unlink()
    loaded = TopicLog(Root.at(str(tool.root)), "t").newest()
    assert loaded.routing == replayed.routing
    assert list(loaded.routing.table) == routed.table
    assert [each.cut for each in loaded.routing.past] == [(5, 5, 0), (7, 7, 2)]
    assert loaded.routing.donors(len) == [{2: {0, 1}}, {0: {1}}]
    for slot in range(broken_reroutes.SLOTS):
        assert [loaded.routing.partition(slot, after) for after in range(3)] == [
            loaded.routing.table_after(after)[slot] for after in range(3)
        ]
    assert tool.run("states") == ["t ok"]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_program_that_does_not_know_slots_refuses_the_topic_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: bool
) -> None:
    """From the first re-route on, whatever versions and checkpoints it finds; and neither before, nor after the topic was deleted."""
    topic = Topic(tmp_path, partitions=2)
    routed = broken_reroutes.grown(topic)
    if checkpoint:
        topic.checkpoint(features=["slots"], routing=routed.routing())
        for version in range(4):
            topic.version_file(version).unlink()
    broken_reroutes.begun(Topic(tmp_path, "other", partitions=2))
    assert [verdict(tmp_path, name) for name in ("t", "other")] == ["ok", "ok"]
    monkeypatch.setattr(fields, "SLOTS", "not known")
    assert [verdict(tmp_path, name) for name in ("t", "other")] == ["FORMAT_TOO_NEW", "ok"]
