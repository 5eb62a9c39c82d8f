"""Creations of a topic: a write that must create it, as CREATE TABLE … AS SELECT makes it, stopped at every step; and CREATE TABLE, which
makes it empty. Both beside others."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commit_steps import DONE, LARGE, NOT_DONE, WHOLE, step
from logtool import HALTED, TIMEOUT_S, LogTool, commits
from verifying import faults

from sparklog import Log


@pytest.mark.parametrize("step", [step(each) for each in NOT_DONE + DONE if each != "publish.stamp"])
def test_a_creation_halted_at_a_step_leaves_the_topic_whole_or_none(
    tool: LogTool, committed: Callable[[], dict[str, int]], step: str
) -> None:
    tool.run("append", tag="A", create=1, stop=f"{step}:halt", status=HALTED, **LARGE)
    there = step in DONE
    assert committed() == ({"A-0": WHOLE} if there else {})
    again = tool.outcome("append", tag="B", create=1)
    assert (again == ["TOPIC_EXISTS"]) == there
    assert committed() == ({"A-0": WHOLE} if there else {"B-0": 20})


@pytest.mark.parametrize("second", [{"create": 1}, {}], ids=["creates", "writes"])
def test_one_of_two_first_writes_creates_the_topic(
    tool: LogTool, committed: Callable[[], dict[str, int]], tmp_path: Path, second: dict[str, int]
) -> None:
    """The one that must create waits with its version file made, while the other commits."""
    release = tmp_path / "release"
    slow = tool.start("append", tag="A", create=1, stop="commit.link:pause", release=release)
    assert slow.stderr is not None
    assert "pause at" in slow.stderr.readline()
    tool.run("append", tag="B", **second)
    release.touch()
    out, err = slow.communicate(timeout=TIMEOUT_S)
    assert slow.returncode != 0, out
    assert "PARTLOG_TOPIC_EXISTS" in err
    assert committed() == {"B-0": 20}


def test_a_topic_that_is_created_beside_a_first_write_has_its_records_or_refuses_it(
    tool: LogTool, committed: Callable[[], dict[str, int]], tmp_path: Path
) -> None:
    """The write was planned when there was no topic; it commits after the creation."""
    for name, config, wanted in [("same", {}, {"A-0": 20}), ("other", {"partitions": 2}, {}), ("codec", {"compression.type": "zstd"}, {})]:
        release = tmp_path / name
        slow = tool.start("append", topic=name, tag="A", stop="commit.link:pause", release=release)
        assert slow.stderr is not None
        assert "pause at" in slow.stderr.readline()
        tool.run("change", topic=name, what="create", **config)
        release.touch()
        _, err = slow.communicate(timeout=TIMEOUT_S)
        assert (slow.returncode == 0) == bool(wanted), err
        assert bool(wanted) or "PARTLOG_ROUTING_CHANGED" in err
        assert commits(tool.read(name)) == wanted


def test_a_creation_beside_a_first_write_refuses_the_topic_that_it_finds(tool: LogTool, tmp_path: Path) -> None:
    for number, other in enumerate(({"words": ["append"], "tag": "B"}, {"words": ["change"], "what": "create", "partitions": 2})):
        release, topic = tmp_path / str(number), f"t{number}"
        slow = tool.start("change", topic=topic, what="create", stop="admin.put:pause", release=release)
        assert slow.stderr is not None
        assert "pause at" in slow.stderr.readline()
        tool.run(*other.pop("words"), topic=topic, **other)
        before = {file: file.read_bytes() for file in (tmp_path / "root" / "_partlog" / topic).glob("*.json")}
        release.touch()
        _, err = slow.communicate(timeout=TIMEOUT_S)
        assert slow.returncode != 0
        assert "PARTLOG_TOPIC_EXISTS" in err
        assert {file: file.read_bytes() for file in (tmp_path / "root" / "_partlog" / topic).glob("*.json")} == before


@pytest.mark.parametrize(("step", "there"), [("admin.put", False), ("admin.linked", True)])
def test_a_creation_without_records_halted_at_a_step_leaves_the_topic_or_none(tool: LogTool, step: str, there: bool) -> None:
    tool.run("change", what="create", stop=f"{step}:halt", status=HALTED)
    assert Log(tool.root).topics() == (["t"] if there else [])
    assert (tool.outcome("change", what="create") == ["TOPIC_EXISTS"]) == there
    tool.run("append", tag="A")
    assert commits(tool.read()) == {"A-0": 20}


@pytest.mark.parametrize("begin", [["append", "tag=B"], ["change", "what=create"]], ids=["writes", "creates"])
def test_what_a_killed_deletion_leaves_is_not_foreign_to_the_next_topic(tool: LogTool, begin: list[str]) -> None:
    """It was killed before it emptied the Kafka view; the next topic of the name has fewer partitions, until the others are added."""
    tool.run("append", tag="A", keys=40, records=40)
    tool.run("change", what="delete", stop="admin.linked:halt", status=HALTED)
    assert {file.parent.name for file in tool.root.glob("t-*/*")} == {"t-0", "t-1", "t-2", "t-3"}
    tool.run(*begin, partitions=2)
    assert {file.parent.name for file in tool.root.glob("t-*/*")} <= {"t-0", "t-1"}
    tool.run("change", what="partitions", to=4)
    tool.run("append", tag="C", keys=40, records=40)
    assert faults(tool.root, unfinished=True) == []
    assert tool.run("publish") == ["published 0"]
