"""The readers in Java and in Python on topics whose slots are bound when they are first used: both see the same, or both refuse."""

from pathlib import Path

import broken_bindings
from contract.verdicts import agree_on_checkpoints, agree_on_versions
from handmade import Topic, featured, given
from logtool import LogTool

from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog


def newest(root: Path, topic: str = "t") -> State:
    return TopicLog(Root.at(str(root)), topic).newest()


def test_version_files(tool: LogTool) -> None:
    """Each in a topic of its own. The checksums of the files are right."""
    wrong = {"first": broken_bindings.BEGINS, "binding": broken_bindings.BINDINGS}
    right = {"first": broken_bindings.RIGHT, "binding": broken_bindings.RIGHT}
    put = {"first": broken_bindings.put_begun, "binding": broken_bindings.put_binding}
    cases = {
        **{(kind, rule): (put[kind], change, "VERSION_CORRUPT") for kind, changes in wrong.items() for rule, change in changes.items()},
        **{(kind, rule): (put[kind], change, "ok") for kind, changes in right.items() for rule, change in changes.items()},
        ("first", "more features"): (put["first"], given("features", featured("more", binds="readers")), "FORMAT_TOO_NEW"),
    }
    agree_on_versions(tool, cases)


def test_checkpoints(tool: LogTool) -> None:
    right = {"as it should be": lambda head: None}
    agree_on_checkpoints(tool, broken_bindings.rerouted, broken_bindings.HEADS, right, broken_bindings.FEATURES)


def test_a_checkpoint_says_what_replay_says(tool: LogTool) -> None:
    topic = Topic(tool.root, partitions=2)
    bound = broken_bindings.rerouted(topic)
    replayed = newest(tool.root)
    topic.checkpoint(features=broken_bindings.FEATURES, routing=bound.routing())
    for version in range(2):
        topic.version_file(version).unlink()
    loaded = newest(tool.root)
    assert loaded.routing == replayed.routing
    assert list(loaded.routing.table) == bound.table
    assert [loaded.routing.partition(9, after) for after in (0, 1)] == [2, 2], "a binding cuts nothing"
    assert [loaded.routing.partition(4, after) for after in (0, 1)] == [1, 2]
    assert tool.run("states") == ["t ok"]
