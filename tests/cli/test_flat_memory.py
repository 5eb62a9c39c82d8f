"""`sparklog cat` in memory that does not grow with the topic."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from handmade import TIME, Record, Topic, batches

MEGABYTES = 16
"""The size of a segment."""
GROWTH_MAX = 48 << 20


def filled(root: Path, segments: int) -> Topic:
    """A topic of the given number of segments, whose data files are one file under many names."""
    topic = Topic(root)
    octets = batches(*([[Record(b"x" * 1000, b"key", TIME)] * 512] * (2 * MEGABYTES)))
    first = None
    for _ in range(segments):
        topic.commit(topic.data(octets))
        path = topic.data_file(len(topic.versions) - 1)
        if first is None:
            first = path
        else:
            path.unlink()
            os.link(first, path)
    return topic


def cat(topic: Topic, *words: str) -> tuple[int, int, float]:
    """The bytes that it printed, its most memory, and the seconds."""
    began = time.monotonic()
    command = [sys.executable, "-m", "sparklog", "cat", str(topic.root), "t", *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    assert process.stdout
    printed = 0
    while piece := process.stdout.read(1 << 20):
        printed += len(piece)
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return printed, usage.ru_maxrss * 1024, time.monotonic() - began


def check(tmp_path: Path, small: int, large: int) -> None:
    few, many = filled(tmp_path / "few", small), filled(tmp_path / "many", large)
    for words in ([], ["--json"], ["-f", "%p %o %k %s\\n"], ["-f", "csv"]):
        _, before, _ = cat(few, *words)
        printed, after, seconds = cat(many, *words)
        assert printed > large * MEGABYTES * 1000 * 1000
        print(f"{words}: {printed:,} bytes in {seconds:.1f} s, {after >> 20} MB of memory, of a small topic {before >> 20} MB")
        assert after - before < GROWTH_MAX


@pytest.mark.slow
def test_memory_does_not_grow(tmp_path: Path) -> None:
    check(tmp_path, 1, 6)


@pytest.mark.soak
def test_ten_gigabytes(tmp_path: Path) -> None:
    check(tmp_path, 12, 640)
