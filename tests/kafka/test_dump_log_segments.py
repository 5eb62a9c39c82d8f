"""Kafka's own DumpLogSegments, with deep iteration and index checks, finds no fault in published segments."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from handmade import TIME, Record, Topic, batch, records
from logtool import SHORT_LIVED, LogTool

from bench.dump_log import check_segments
from sparklog.__main__ import main

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


def test_an_export(tool: LogTool, kafka_classpath: str, tmp_path: Path) -> None:
    """Segments of many batches and of few, from files of their own and from shared ones; and a partition that has lost all of its own."""
    for tag, arguments in (("A", {"records": 2_000, "big": 1_500}), ("B", {"records": 70, "tasks": 5})):
        tool.run("append", tag=tag, **arguments)
    tool.run("change", what="config", **{"kafka.view": "none"})
    tool.run("change", what="records", offsets="0:-1")
    rows = tool.run("export", to=tmp_path / "to")
    logs = sorted((tmp_path / "to").glob("t-*/*.log"))
    assert len({log.parent.name for log in logs}) == len(rows) == 4
    assert [log.stat().st_size for log in logs if log.parent.name == "t-0"] == [0]
    checked = check_segments(kafka_classpath, logs)
    assert checked.complaints == []
    assert checked.records > 3_000
    assert not list(tool.root.glob("t-*"))


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


KINDS = ("baseOffset: ", "| offset: ", "Log starting offset: ")


def dumped(kafka_classpath: str, *logs: Path) -> list[str]:
    """The lines about batches and records that Kafka's tool prints."""
    tool = ["org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--print-data-log"]
    command = ["java", *SHORT_LIVED, "-cp", kafka_classpath, *tool]
    lines = subprocess.run([*command, "--files", ",".join(map(str, logs))], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if line.startswith(KINDS)]


def test_the_commands_of_the_page(java_classpath: str, kafka_classpath: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Pasted, they print what `sparklog dump` does; and the same once `_partlog/` is deleted."""
    page = (Path(__file__).parents[2] / "docs" / "guide" / "command-line.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    tool = LogTool(java_classpath, tmp_path / "my-log")
    for tag in "AB":
        tool.run("append", tag=tag, topic="orders", records=20)
    capfd.readouterr()
    assert main(["dump", str(tool.root), "orders", "-p", "0", "--print-data-log"]) == 0
    ours = [line for line in capfd.readouterr().out.splitlines() if line.startswith(KINDS)]
    (tmp_path / ".tools").mkdir()
    (tmp_path / ".tools" / "kafka").symlink_to(Path(kafka_classpath).parent)
    shutil.rmtree(tmp_path / "my-log" / "_partlog")
    ran = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300)
    assert [line for line in ran.stdout.splitlines() if line.startswith(KINDS)] == ours != []


def test_the_command_dump_prints_the_same(tool: LogTool, kafka_classpath: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Line by line, for batches of several codecs and segments that share a data file."""
    for tag, codec in (("A", "none"), ("B", "zstd")):
        tool.run("append", tag=tag, compression_type=codec, records=30, merge=0)
    logs = segments(tool.root)
    theirs = dumped(kafka_classpath, *logs)
    capfd.readouterr()
    assert main(["dump", str(tool.root), "t", "--print-data-log"]) == 0
    ours = capfd.readouterr().out.splitlines()
    assert len(ours) == 2 * len(logs) + 12 + 120
    assert [line for line in ours if line.startswith(KINDS)] == theirs


def test_the_command_dump_prints_the_same_of_rare_batches(tmp_path: Path, kafka_classpath: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Nulls, headers, sequences that begin again at 0, times of the log, a batch without records."""
    topic = Topic(tmp_path)
    some = [Record(None, b"k"), Record(b"v", None, TIME + 5, ((b"a", b"1"), (b"b", None))), Record(b"", b"")]
    producer = {"producer_id": 7, "producer_epoch": 3}
    octets = (
        batch(some, 0)
        + batch(records(5), 3, base_sequence=2**31 - 3, **producer)
        + batch(records(2), 8, attributes=0x08, max_timestamp=TIME + 99)
        + batch([], 10, last_offset_delta=3, base_sequence=5, **producer)
        + batch(records(2), 14, deltas=[1, 3], last_offset_delta=5, base_sequence=0, **producer)
    )
    topic.commit(topic.data(octets, offsets="tiled", maxTimestamp=TIME + 99))
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(octets)
    theirs = dumped(kafka_classpath, log)
    assert len(theirs) == 1 + 5 + 3 + 5 + 2 + 2
    assert main(["dump", str(tmp_path), "t", "--print-data-log"]) == 0
    ours = [line for line in capfd.readouterr().out.splitlines() if line.startswith(KINDS)]
    assert ours == theirs
