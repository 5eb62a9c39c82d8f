"""Merging: few segments are left of many commits, and readers find the same records. FORMAT.md sections 4 and 7."""

from pathlib import Path

import pytest
from audits import audit_view, read_by_python
from logtool import LogTool, commits

from sparklog import Log
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.version import Segment

BUDGET = 32 << 20


def live(root: Path) -> list[list[Segment]]:
    """The live segments of each partition."""
    log = TopicLog(Root.at(str(root)), "t")
    state = log.newest()
    return [list(log.segments(state, partition)) for partition in range(4)]


@pytest.mark.slow
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


def test_batches_go_on_with_those_of_a_rebatch(tool: LogTool) -> None:
    """The next batch begins below where the iteration stands, because it holds records of batches that were returned."""
    tool.run("append", tag="A", commits=6, tasks=1, records=40, **{"file.delete.delay.ms": 0})
    topic = Log(tool.root).topic("t")
    before = list(topic.batches(0))
    assert len(before) > 1
    going_on = topic.batches(0)
    assert next(going_on) == before[0]

    tool.run("merge", rebatch=1 << 18)
    tool.run("append", tag="B", commits=1, tasks=1, records=40, merge=BUDGET)
    assert not Path(before[1].file).exists()
    rest = list(going_on)
    assert rest == list(topic.batches(0))[: len(rest)]
    assert rest[0].base_offset == before[0].base_offset < before[0].last_offset
    assert rest[0].last_offset >= before[-1].last_offset
