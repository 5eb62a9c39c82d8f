"""Replaced data files: deleted by whichever process commits next, and not before `file.delete.delay.ms` has passed, by a vacuum neither."""

import os
import re
from pathlib import Path

import pytest
from logtool import TIMEOUT_S, LogTool, commits
from protocol.backing_up import back_up
from verifying import faults

from sparklog import Log

DELAY = {"file.delete.delay.ms": 3_600_000}
DELETE = ("change", "what=records", "offsets=0:-1,1:-1,2:-1,3:-1")
DAYS = 3
"""How far the clocks of later processes are ahead."""


def data(tool: LogTool) -> set[Path]:
    return set((tool.root / "_partlog/t/data").glob("*/*.log"))


def aged(tool: LogTool) -> None:
    """Every data file was last written to long ago."""
    for file in data(tool):
        os.utime(file, (0, 0))


@pytest.mark.parametrize("replace", [("merge",), DELETE], ids=["merge", "delete"])
def test_the_next_commit_of_any_process_deletes_what_was_replaced(tool: LogTool, replace: tuple[str, ...]) -> None:
    """Each job is a process of its own, as with cron; none lives to delete what it replaced itself."""
    tool.run("append", tag="A", commits=12, **DELAY)
    before = data(tool)
    tool.run(*replace)
    for job in range(3):
        tool.run("append", tag=f"B{job}")
        assert data(tool) >= before, "the delay has not passed"
    tool.run("append", tag="C", clock=DAYS)
    assert not data(tool) & before
    assert faults(tool.root) == []


def test_a_vacuum_waits_too_and_refuses_no_writer(tool: LogTool, tmp_path: Path) -> None:
    """A write that was planned before the vacuum commits; a read that was planned before finds records that were deleted since."""
    tool.run("append", tag="A", commits=6, **DELAY)
    go = tmp_path / "go"
    writer = tool.start("append", tag="W", stop="commit.pool:pause", release=go)
    assert writer.stderr and writer.stderr.readline() == "partlog: pause at commit.pool\n"
    tool.run("append", tag="B", commits=6)
    reader = tool.start("read", planned=go)
    assert reader.stdout and reader.stdout.readline() == "planned\n"
    tool.run(*DELETE)
    aged(tool)
    before = data(tool)
    assert tool.run("vacuum") == ["vacuumed 0 bytes 0 horizon 0"]
    assert data(tool) == before
    go.touch()
    out, err = writer.communicate(timeout=TIMEOUT_S)
    assert out.startswith("done W-0 "), err
    out, err = reader.communicate(timeout=TIMEOUT_S)
    assert reader.returncode == 0, err
    assert len(out.splitlines()) == 12 * 20 + 1
    [line] = tool.run("vacuum", clock=DAYS)
    assert re.fullmatch(r"vacuumed 12 bytes \d+ horizon 0", line), line
    assert len(data(tool)) == 1
    assert faults(tool.root) == []


def test_a_backup_beside_a_vacuum(tool: LogTool, tmp_path: Path) -> None:
    """With the commands of the guide: the data files of the copied versions are there when it comes to them."""
    tool.run("append", tag="A", commits=12, **DELAY)

    def vacuum() -> None:
        tool.run("merge")
        aged(tool)
        tool.run("vacuum")

    back_up(tool.root, tmp_path / "copy", between=vacuum)
    assert Log(tmp_path / "copy")["t"].read().num_rows == 12 * 20
    assert commits(tool.read()) == {f"A-{n}": 20 for n in range(12)}
