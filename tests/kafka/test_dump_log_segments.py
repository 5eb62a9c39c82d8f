"""Kafka's own DumpLogSegments, with deep iteration and index checks, finds no fault in published segments."""

import shutil
from pathlib import Path

import pytest
from logtool import LogTool

from sparklog.kafka import check_segments

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def segments(root: Path) -> list[Path]:
    return sorted(root.glob("t-*/*.log"))


@pytest.fixture
def tool(java_classpath: str, tmp_path: Path) -> LogTool:
    return LogTool(java_classpath, tmp_path / "root")


@pytest.mark.parametrize("codec", CODECS)
def test_published_segments(tool: LogTool, kafka_classpath: str, codec: str) -> None:
    """Segments with data files of their own, linked and stamped, with many batches; and small segments, copied from a shared file."""
    written = 0
    for tag, arguments in (("A", {"records": 50}), ("B", {"records": 2_000, "big": 1_500}), ("C", {"records": 70, "tasks": 5})):
        tool.run("append", tag=tag, compression_type=codec, **arguments)
        written += arguments["records"] * arguments.get("tasks", 2)
    checked = check_segments(kafka_classpath, segments(tool.root), written)
    assert checked.complaints == []
    assert checked.batches > len(segments(tool.root)) >= 9
    assert any(index.stat().st_size > 8 for index in tool.root.glob("t-*/*.index"))


def test_a_view_that_is_rebuilt(tool: LogTool, kafka_classpath: str) -> None:
    tool.run("append", tag="A", stop="publish.log:halt", status=42, records=2_000, big=1_500)
    tool.run("append", tag="B", records=2_000, big=1_500)
    shutil.rmtree(tool.root / "t-0")
    tool.run("publish")
    assert check_segments(kafka_classpath, segments(tool.root), 8_000).complaints == []


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_the_check_can_fail(tool: LogTool, kafka_classpath: str, suffix: str) -> None:
    """The tool exits with status 0 whatever it finds. Damage must be reported as a complaint."""
    tool.run("append", tag="A", records=2_000, big=1_500)
    (segment, *_) = segments(tool.root)
    damaged = segment.with_suffix(suffix)
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.unlink()
    damaged.write_bytes(content)
    assert check_segments(kafka_classpath, segments(tool.root), 4_000).complaints
