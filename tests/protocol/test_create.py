"""A write that must create its topic, as CREATE TABLE … AS SELECT makes it: stopped at every step, and beside others."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commit_steps import DONE, LARGE, NOT_DONE, WHOLE
from logtool import HALTED, TIMEOUT_S, LogTool


@pytest.mark.parametrize("step", [step for step in NOT_DONE + DONE if step != "publish.stamp"])
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
