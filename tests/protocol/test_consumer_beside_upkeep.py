"""A consumer without Spark follows a topic while its files are merged, expire and go, and while it is deleted and created again."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from logtool import MERGE_BYTES, LogTool

from sparklog import CallError, Consumer, Log

pytestmark = pytest.mark.slow

TIDY = {"pace": 5, "merge": MERGE_BYTES, "file.delete.delay.ms": 0}
TOPIC = [("t", partition) for partition in range(4)]


@contextmanager
def beside(tool: LogTool, commits: int, tag: str) -> Iterator[threading.Event]:
    """A writer in a JVM of its own, which tidies after each commit. The event is set when it is done."""
    writer = tool.start("append", tag=tag, commits=commits, **TIDY)
    done = threading.Event()
    said: list[str] = []

    def wait() -> None:
        said.extend(writer.communicate())
        done.set()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield done
    finally:
        if not done.is_set():
            writer.kill()
        thread.join()
    assert writer.returncode == 0, said[1]
    assert len(said[0].splitlines()) == commits


def values(consumer: Consumer, done: threading.Event) -> Iterator[tuple[int, list[int], list[str]]]:
    """Partition, offsets and values of what comes until the writer is done and all is read."""
    while True:
        last = done.is_set()
        found = consumer.poll_batches(1000 if last else 50, max_records=37)  # on a slow machine, the last read may take long
        for (_, partition), batch in found.items():
            yield partition, batch["offset"].to_pylist(), [value.decode() for value in batch["value"].to_pylist()]
        if last and not found:
            return


@pytest.mark.parametrize("commits", [80, pytest.param(20_000, marks=pytest.mark.soak)])
def test_each_record_once_and_in_order_while_files_are_replaced(tool: LogTool, commits: int) -> None:
    tool.run("append", tag="A", commits=3, **TIDY)
    got: dict[int, list[str]] = {}
    with (
        Consumer(tool.root, "t", auto_offset_reset="earliest", max_partition_fetch_bytes=2000, poll_interval_ms=1) as consumer,
        beside(tool, commits, "B") as done,
    ):
        for partition, offsets, new in values(consumer, done):
            its = got.setdefault(partition, [])
            assert offsets == list(range(len(its), len(its) + len(offsets)))
            its += new
    assert got == tool.read()
    assert sum(map(len, got.values())) == 20 * (commits + 3)
    assert sum(each["segments"] for each in Log(tool.root)["t"].describe()["partitions"]) < commits


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.soak
def test_memory_over_many_commits(tool: LogTool) -> None:
    commits = 20_000
    tool.run("append", tag="A", **TIDY)
    count, kept = 0, []
    with Consumer(tool.root, "t", auto_offset_reset="earliest", poll_interval_ms=10) as consumer, beside(tool, commits, "B") as done:
        for _, offsets, _ in values(consumer, done):
            count += len(offsets)
            if count >= (len(kept) + 1) * commits:
                kept.append(resident())
    print(f"resident after each {commits // 20} commits: {kept} bytes")
    assert count == 20 * (commits + 1)
    assert max(kept[10:]) - kept[4] < 20_000_000


def test_records_that_expire_are_left_out_and_no_others(tool: LogTool) -> None:
    tool.run("append", tag="A", commits=40, **TIDY)
    read: dict[int, set[int]] = {partition: set() for partition in range(4)}
    skipped: dict[int, set[int]] = {partition: set() for partition in range(4)}
    position = [0] * 4
    with (
        Consumer(tool.root, "t", auto_offset_reset="earliest", max_partition_fetch_bytes=1, poll_interval_ms=1) as consumer,
        beside(tool, 60, "B") as done,
    ):
        expired = False
        for partition, offsets, _ in values(consumer, done):
            assert offsets[0] >= position[partition]
            assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
            skipped[partition] |= set(range(position[partition], offsets[0]))
            read[partition] |= set(offsets)
            position[partition] = offsets[-1] + 1
            if not expired and position[0] > 20:
                tool.run("change", what="records", offsets=f"0:{position[0] + 50},1:{position[1] + 30}")
                expired = True
        starts = consumer.beginning_offsets(TOPIC)
        assert {each: consumer.position(each) for each in TOPIC} == consumer.end_offsets(TOPIC)
    assert starts["t", 0] > 70
    assert starts["t", 2] == 0
    for partition in range(4):
        assert all(offset < starts["t", partition] for offset in skipped[partition])
        assert read[partition] | skipped[partition] == set(range(position[partition]))
    assert skipped[0]


def test_a_topic_that_java_deletes_and_creates_again(tool: LogTool) -> None:
    tool.run("append", tag="A", commits=5, **TIDY)
    consumer = Consumer(tool.root, "t", auto_offset_reset="earliest", max_partition_fetch_bytes=1, poll_interval_ms=1)
    assert consumer.poll()
    tool.run("change", what="delete")
    time.sleep(0.01)
    with pytest.raises(CallError, match="TOPIC_NOT_FOUND"):
        consumer.poll()
    with beside(tool, 20, "B") as done:
        got: dict[int, list[str]] = {}
        while not done.is_set() or sum(map(len, got.values())) < 400:
            try:
                for (_, partition), records in consumer.poll(50).items():
                    its = got.setdefault(partition, [])
                    assert [record.offset for record in records] == list(range(len(its), len(its) + len(records)))
                    its += [record.value.decode() for record in records]
            except CallError as error:
                if error.id != "TOPIC_NOT_FOUND":  # until the first commit
                    raise
    assert got == tool.read()
