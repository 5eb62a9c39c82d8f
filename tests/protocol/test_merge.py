"""Merging: few segments are left of many commits, and readers find the same records. FORMAT.md sections 4 and 7."""

from pathlib import Path

from audits import audit_view, read_by_python
from logtool import LogTool, commits

from sparklog.ondisk.commitlog import CommitLog
from sparklog.ondisk.version import Segment

BUDGET = 32 << 20


def live(root: Path) -> list[list[Segment]]:
    """The live segments of each partition."""
    log = CommitLog(str(root), "t")
    state = log.newest()
    return [list(log.segments(state, partition)) for partition in range(4)]


def test_many_commits_leave_few_segments(tool: LogTool) -> None:
    """I4: each record stays where it is, for readers in both languages and in the Kafka view."""
    written = {f"A-{commit}": 30 for commit in range(200)}
    tool.run("append", tag="A", commits=len(written), tasks=1, records=30, keys=30, merge=BUDGET)
    found = tool.read()
    assert commits(found) == written
    assert read_by_python(tool.root) == found
    assert max(map(len, live(tool.root))) <= 16
    audit_view(tool)

    tool.run("merge")
    assert [len(segments) for segments in live(tool.root)] == [1, 1, 1, 1]
    assert [segments[0].batches for segments in live(tool.root)] == [len(written)] * 4
    tool.run("merge", rebatch=1 << 18)
    assert [segments[0].batches for segments in live(tool.root)] == [1] * 4
    assert tool.read() == found
    assert read_by_python(tool.root) == found
