"""The readers in Java and in Python on versions that do more than add records: merges, deletions, and what an operator changes."""

from pathlib import Path
from typing import Any

import pytest
from broken_rules import Change, changed
from handmade import Topic, records
from kinds_of_versions import KINDS
from logtool import LogTool

from sparklog import Log, SparklogError
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog


def python(root: Path, topic: str) -> list[str]:
    """The state of a topic, or the error, as `LogTool state` prints it."""
    log = TopicLog(Root.at(str(root)), topic)
    try:
        state = log.newest()
    except SparklogError as error:
        return [error.id]
    head = f"{state.version} {state.topic_id} {state.hash} horizon {state.horizon} boundary {state.boundary}"
    lines = [head, " ".join(f"{key}={value}" for key, value in sorted(state.config.items()))]
    for partition in range(state.partitions):
        lines.append(f"partition {partition} from {state.starts[partition]} to {state.ends[partition]}")
        live = (state.live[partition][number] for number in range(len(state.live[partition])))
        lines += [
            f"{each.file} {each.position} {each.bytes} {each.base} {each.end} {str(each.routed).lower()} {str(each.ordered).lower()}"
            for each in live
        ]
    return lines


def java(tool: LogTool) -> dict[str, list[str]]:
    """The same of all topics, by name."""
    found: dict[str, list[str]] = {}
    for line in tool.run("state"):
        if line.startswith("topic "):
            state = found[line.removeprefix("topic ")] = []
        else:
            state.append(line)
    return found


@pytest.mark.slow
def test_both_readers_take_the_right_ones_and_refuse_the_others(tool: LogTool) -> None:
    """Each in a topic of its own; of the right ones also with a checkpoint, and with a further version."""
    expected: dict[str, str] = {}
    names: dict[str, str] = {}

    def write(kind: str, rule: str, change: Change, found: str) -> Topic:
        topic = Topic(tool.root, f"t{len(names)}", partitions=2)
        content = changed(KINDS[kind].prepare(topic), change)
        names[topic.name] = f"{kind}: {rule}"
        expected[names[topic.name]] = found
        if found == "VERSION_CORRUPT":
            topic.version_file(content["version"]).write_bytes(topic.octets(content))
        else:
            topic.put(content)
        return topic

    for kind, (_, wrong, right) in KINDS.items():
        last = "TOPIC_NOT_FOUND" if kind == "a deletion" else "ok"
        for rule, change in {"as it should be": dict, **right}.items():
            write(kind, rule, change, last)
            topic = write(kind, f"{rule}, and a checkpoint", change, last)
            checkpoint: dict[str, Any] = {"deleted": True} if kind == "a deletion" else {"config": topic_config(topic)}
            topic.checkpoint(**checkpoint)
            for before in range(len(topic.versions) - 1):
                topic.version_file(before).unlink()
        for rule, change in wrong.items():
            write(kind, rule, change, "VERSION_CORRUPT")
    assert len(names) == sum(2 + 2 * len(kind.right) + len(kind.wrong) for kind in KINDS.values())

    found = {name: python(tool.root, name) for name in names}
    assert {names[name]: lines[0] if len(lines) == 1 else "ok" for name, lines in found.items()} == expected
    in_java = java(tool)
    assert {names[name]: lines for name, lines in in_java.items()} == {names[name]: lines for name, lines in found.items()}


def topic_config(topic: Topic) -> dict[str, str]:
    """The configuration after all versions of a topic."""
    config: dict[str, str] = {}
    for version in topic.versions:
        config |= version["config"]
    return config


def test_what_java_does_python_sees_at_once(tool: LogTool) -> None:
    """In one `Log`, which stays open: deleted records, more partitions, deletion, and the topic that begins again."""
    tool.run("append", tag="A", records=40, commits=2, query="q", epoch=4, input="0123456789abcdef")
    root = Log(tool.root)
    topic = root.topic("t")
    first = topic.describe()["id"]
    ends = topic.end_offsets()
    commits = topic.commits()
    assert [(each.operation, each.query, each.epoch, each.input) for each in commits] == [
        ("write", "q", 4, "0123456789abcdef"),
        ("write", "q", 5, "0123456789abcdef"),
    ]
    assert "0123456789abcdef" in repr(commits)

    used = [partition for partition in ends if ends[partition]]
    one = used[0]
    tool.run("change", what="records", offsets=f"{one}:{ends[one] - 3}")
    assert topic.start_offsets() == {**dict.fromkeys(ends, 0), one: ends[one] - 3}
    assert topic.read(one)["offset"].to_pylist() == list(range(ends[one] - 3, ends[one]))
    tool.run("change", what="records", offsets=",".join(f"{partition}:-1" for partition in ends))
    assert topic.start_offsets() == topic.end_offsets() == ends
    assert topic.read().num_rows == 0
    assert topic.commits()[-1].removed > 0

    tool.run("change", what="partitions", to=6)
    assert topic.partitions == 6
    assert topic.end_offsets() == {**ends, 4: 0, 5: 0}
    tool.run("append", tag="B", records=40, partitions=6)
    assert topic.read().num_rows == 80
    tool.run("change", what="config", segment_bytes=4096)
    assert topic.config["segment.bytes"] == "4096"
    assert [each.operation for each in topic.commits()] == [*["write"] * 2, *["delete-records"] * 2, "reroute", "write", "alter"]

    tool.run("change", what="delete")
    assert (root.topics(), "t" in root, len(root)) == ([], False, 0)
    for question in (topic.end_offsets, topic.read, topic.commits, lambda: root["t"]):
        with pytest.raises(SparklogError) as raised:
            question()
        assert raised.value.id == "TOPIC_NOT_FOUND"
    assert not list(tool.root.rglob("*.log"))

    tool.run("append", tag="C", records=10)
    assert root.topics() == ["t"]
    assert topic.describe()["id"] != first
    assert (topic.partitions, topic.read().num_rows, sum(topic.end_offsets().values())) == (4, 20, 20)
    assert [(each.version, each.operation) for each in topic.commits()] == [(8, "write")]
    assert java(tool)["t"] == python(tool.root, "t")


def test_a_deleted_topic_is_not_listed(tool: LogTool) -> None:
    """By names alone: where the marker is not there yet, a reader finds that the topic does not exist."""
    topic = Topic(tool.root)
    topic.append(records(3))
    topic.put(topic.deletion())
    assert Log(tool.root).topics() == ["t"]
    assert java(tool) == {"t": ["TOPIC_NOT_FOUND"]}
    marker = topic.folder / f"{1:020d}.deleted"
    marker.touch()
    assert Log(tool.root).topics() == []
    assert java(tool) == {}
    topic.append(records(2))
    assert Log(tool.root).topics() == list(java(tool)) == ["t"]
    (topic.folder / f"{2**63:020d}.deleted").touch()
    assert Log(tool.root).topics() == list(java(tool)) == ["t"], "that is not the number of a version"
    (topic.folder / f"{2:020d}.deleted").touch()
    assert Log(tool.root).topics() == list(java(tool)) == []


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "deleted and begun again"])
def test_what_was_planned_before_a_deletion(tool: LogTool, tmp_path: Path, again: bool) -> None:
    """Neither reader returns records of another topic."""
    tool.run("append", tag="A", records=100)
    scan = Log(tool.root)["t"].scan()
    reader = tool.start("read", held=tmp_path / "release")
    assert reader.stdout and reader.stdout.readline() == "held\n"
    tool.run("change", what="delete")
    if again:
        tool.run("append", tag="B", records=100)
    (tmp_path / "release").touch()
    out, err = reader.communicate(timeout=300)
    assert reader.returncode == 1
    assert ("PARTLOG_TOPIC_REPLACED" if again else "PARTLOG_TOPIC_NOT_FOUND") in err
    assert "A-0" not in out and "B-0" not in out
    with pytest.raises(SparklogError) as raised:
        scan.read_all()
    assert raised.value.id == ("TOPIC_REPLACED" if again else "TOPIC_NOT_FOUND")
