"""The readers in Java and in Python on topics that were re-routed: both see the same, or both refuse."""

import broken_reroutes
from contract.verdicts import agree_on_checkpoints, agree_on_versions, verdict
from handmade import Topic, featured, given
from logtool import LogTool

from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog


def test_version_files(tool: LogTool) -> None:
    """Each in a topic of its own. The checksums of the files are right."""
    cases = {
        **{("first", rule): (broken_reroutes.rerouted, change, "VERSION_CORRUPT") for rule, change in broken_reroutes.FIRST.items()},
        **{("third", rule): (broken_reroutes.rerouted_again, change, "VERSION_CORRUPT") for rule, change in broken_reroutes.SECOND.items()},
        **{("first", rule): (broken_reroutes.rerouted, change, "ok") for rule, change in broken_reroutes.RIGHT.items()},
        **{("config", rule): (broken_reroutes.altered, change, "ok") for rule, change in broken_reroutes.CONFIGS.items()},
        **{
            ("config", f"{key} {number}"): (broken_reroutes.altered, given("config", {key: value}), "ok")
            for number, (value, key) in enumerate(broken_reroutes.WISHES.items())
        },
        ("third", "as it should be"): (broken_reroutes.rerouted_again, lambda content: None, "ok"),
        ("first", "more features"): (broken_reroutes.rerouted, given("features", featured("more", binds="readers")), "FORMAT_TOO_NEW"),
    }
    agree_on_versions(tool, cases)


def test_without_the_feature_the_field_has_no_meaning(tool: LogTool) -> None:
    topic = Topic(tool.root, partitions=2)
    routed = broken_reroutes.begun(topic)
    content = routed.reroute([1, 1, 1], {2: [0]})
    topic.put(content | {"features": [], "config": {}, "starts": [0, 0], "ends": [5, 5], "routing": "anything"})
    assert verdict(tool.root, "t") == "ok"
    assert tool.run("states") == ["t ok"]
    assert TopicLog(Root.at(str(tool.root)), "t").newest().routing is None


def test_checkpoints(tool: LogTool) -> None:
    right = {"as it should be": lambda head: None}
    agree_on_checkpoints(tool, broken_reroutes.grown, broken_reroutes.HEADS, right, featured("routing.slots"))


def test_a_checkpoint_says_what_replay_says(tool: LogTool) -> None:
    topic = Topic(tool.root, partitions=2)
    routed = broken_reroutes.grown(topic)
    replayed = TopicLog(Root.at(str(tool.root)), "t").newest()
    topic.checkpoint(features=featured("routing.slots"), routing=routed.routing())
    for version in range(4):
        topic.version_file(version).unlink()
    loaded = TopicLog(Root.at(str(tool.root)), "t").newest()
    assert loaded.routing == replayed.routing
    assert list(loaded.routing.table) == routed.table
    assert [each.cut for each in loaded.routing.past] == [(5, 5, 0), (7, 7, 0)]
    assert loaded.routing.donors() == [{2: {0, 1}}, {0: {1}}]
    for slot in range(broken_reroutes.SLOTS):
        assert [loaded.routing.partition(slot, after) for after in range(3)] == [
            loaded.routing.table_after(after)[slot] for after in range(3)
        ]
    assert tool.run("states") == ["t ok"]
