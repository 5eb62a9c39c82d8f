"""A later version puts other data files in place of those that a reader is about to open: every question still gets its answer.

FORMAT.md section 9.
"""

from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from handmade import TIME, Topic, batches, records
from logtool import TIMEOUT_S, LogTool

from sparklog.ondisk.reader import PartitionReader, Wanted
from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog

SEGMENTS = 3
BATCHES = 50
EACH = 40
SIZE = BATCHES * EACH
END = SEGMENTS * SIZE
"""Times rise by 1 ms with offsets, and segments are large enough to be looked into."""

FROM, TO = 1234, SIZE + 777
QUESTIONS: dict[str, tuple[dict[str, Any], range]] = {
    "everything": ({}, range(END)),
    "startingTimestamp and endingTimestamp": ({"startingTimestamp": TIME + FROM, "endingTimestamp": TIME + TO}, range(FROM, TO)),
    "a filter of times": ({"fromMs": TIME + FROM, "toMs": TIME + TO - 1}, range(FROM, TO)),
    "minPartitions": ({"minPartitions": 9}, range(END)),
    "maxRecordsPerPartition": ({"maxRecordsPerPartition": 101}, range(END)),
}


@pytest.fixture
def topic(tool: LogTool) -> Topic:
    topic = Topic(tool.root)
    for number in range(SEGMENTS):
        topic.commit(topic.data(segment(number)))
    assert min(part["bytes"] for part in topic.live[0]) > 256 * 1024
    return topic


def content(number: int) -> list[list[Any]]:
    begin = number * SIZE
    return [records(EACH, f"{begin + at:>150}", TIME + begin + at) for at in range(0, SIZE, EACH)]


def segment(*numbers: int) -> bytes:
    return batches(*(batch for number in numbers for batch in content(number)))


def replace(topic: Topic) -> None:
    """The first two segments become one."""
    old = topic.live[0][:2]
    topic.commit(topic.data(segment(0, 1), base=0, end=2 * SIZE, name="p0-t0-0-0.log"), removed=old)
    for part in old:
        (topic.folder / part["file"]).unlink()


def test_java(tool: LogTool, topic: Topic, tmp_path: Path) -> None:
    release = tmp_path / "release"
    readers: dict[str, Popen[str]] = {}
    for question, (arguments, _) in QUESTIONS.items():
        readers[question] = tool.start("read", held=release, **arguments)
    for reader in readers.values():
        assert reader.stdout and reader.stdout.readline() == "held\n"
    replace(topic)
    release.touch()
    for question, reader in readers.items():
        out, err = reader.communicate(timeout=TIMEOUT_S)
        assert reader.returncode == 0, (question, err)
        *lines, last = out.splitlines()
        assert last.startswith(f"version {SEGMENTS - 1} "), question
        assert [int(line.split()[1]) for line in lines] == list(QUESTIONS[question][1]), question


def planned(topic: Topic) -> tuple[TopicLog, State]:
    log = TopicLog(Root.at(str(topic.root)), "t")
    state = log.newest()
    replace(topic)
    return log, state


def test_python(topic: Topic) -> None:
    log, state = planned(topic)

    def reader() -> PartitionReader:
        return PartitionReader(log, state, 0)

    def offsets(start: int, end: int, **more: Any) -> list[int]:
        return [offset for batch in reader().records(start, end, **more) for offset in batch["offset"].to_pylist()]

    assert offsets(0, END) == list(range(END))
    assert offsets(FROM, TO) == list(range(FROM, TO))
    assert offsets(FROM, END, limit=5) == list(range(FROM, FROM + 5))
    assert offsets(0, END, wanted=Wanted(b"k0")) == [offset for offset in range(END) if offset % EACH % 7 == 0]
    assert [reader().offset_at(TIME + at) for at in (0, FROM, TO, END - 1, END)] == [0, FROM, TO, END - 1, END]
    assert sum(len(found) for _, found in reader().headers()) == SEGMENTS * BATCHES
    assert [batch.base_offset for _, batch, _ in reader().contents() if batch] == list(range(0, END, EACH))
