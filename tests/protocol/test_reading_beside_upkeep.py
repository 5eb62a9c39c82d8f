"""Reads that were planned before merges, deletions and clean-ups, and go on after them: FORMAT.md section 9."""

from pathlib import Path

import pytest
from audits import POOLS, Writer, audit
from logtool import MERGE_BYTES, TIMEOUT_S, LogTool, commits

from sparklog import Log

EARLIER = 7
"""Commits whose files the first merge replaces."""


def in_lines(lines: list[str]) -> list[tuple[int, int, str]]:
    """The records that `LogTool` printed."""
    records = [line.split(" ") for line in lines if line.count(" ") == 2]
    return [(int(partition), int(offset), value) for partition, offset, value in records]


@pytest.mark.slow
@pytest.mark.parametrize("delay_ms", [0, 60_000])
def test_a_read_that_was_planned_before_gives_the_same(tool: LogTool, tmp_path: Path, delay_ms: int) -> None:
    """In Java before and after planning, in Python before and after the first records; the files are gone with a delay of 0."""
    tidy = {"pace": 5, "merge": MERGE_BYTES, "file.delete.delay.ms": delay_ms}
    tool.run("append", tag="A", commits=EARLIER, **tidy)
    expected = in_lines(tool.run("read"))
    assert len(expected) == EARLIER * 20
    release = tmp_path / "release"
    readers = {point: tool.start("read", **{point: release}) for point in ("held", "planned")}
    for point, reader in readers.items():
        assert reader.stdout is not None
        assert reader.stdout.readline() == f"{point}\n"
    topic = Log(tool.root).topic("t")
    columns = ["partition", "offset", "value"]
    scans = [topic.scan(columns=columns), topic.scan(columns=columns)]
    first = scans[1].read_next_batch()
    files = set(tool.root.glob("_partlog/t/data/*/*"))

    tool.run("append", tag="B", commits=40, **tidy)
    assert any(file.exists() for file in files) == (delay_ms > 0)
    assert not (tool.root / "_partlog/t/00000000000000000000.json").exists() or delay_ms > 0
    release.touch()
    for reader in readers.values():
        out, err = reader.communicate(timeout=TIMEOUT_S)
        assert reader.returncode == 0, err
        assert in_lines(out.splitlines()) == expected
    for batches in (list(scans[0]), [first, *scans[1]]):
        rows = [row for batch in batches for row in zip(*(batch.column(name).to_pylist() for name in columns), strict=True)]
        assert [(partition, offset, value.decode()) for partition, offset, value in rows] == expected


def test_reads_beside_a_writer_that_tidies(tool: LogTool) -> None:
    """Each read gives all that was there when it began, and nothing twice, while the files of nearly every read are replaced."""
    writer = Writer(tool, "A", POOLS, pace=5, merge=MERGE_BYTES, **{"file.delete.delay.ms": 0})
    try:
        writer.wait_for(1)
        log = Log(tool.root)
        for _ in range(8):
            writer.wait_for(len(writer.acknowledged) + 1)
            least = sum(log.topic("t").end_offsets().values())
            records = log.topic("t").read(columns=["partition", "offset"])
            assert records.num_rows >= least
            assert len(set(zip(*records.to_pydict().values(), strict=True))) == records.num_rows
            assert set(commits(tool.read()).values()) == {20}
    finally:
        writer.kill()
    audit(tool, {}, {"A": POOLS})
