"""`verify` beside writers that commit, merge, publish, delete and clean up all the time: it reports nothing, since nothing is wrong."""

import time

import pytest
from audits import POOLS, SPILLS, Load
from logtool import MERGE_BYTES, TIMEOUT_S, LogTool

from sparklog import Log

TIDY = {"pace": 5, "merge": MERGE_BYTES, "file.delete.delay.ms": 0, "retention.bytes": 20_000}


def beside(tool: LogTool, loads: dict[str, Load], seconds: float) -> int:
    """How often it ran while these writers did."""
    writers = []
    for tag, load in loads.items():
        sizes = {"tasks": load.tasks, "records": load.records, **load.options}
        writers.append(tool.start("append", tag=tag, commits=1_000_000, **sizes, **TIDY))
        assert writers[0].stdout is not None
        writers[0].stdout.readline()
    runs = 0
    try:
        log = Log(tool.root)
        first = log["t"].commits(1)[-1].version
        until = time.monotonic() + seconds
        while time.monotonic() < until or log["t"].commits(1)[-1].version == first:
            report = log.verify(quick=runs % 5 == 4)
            assert report.findings == [], str(report)
            assert report.checked.segments > 0
            runs += 1
            assert time.monotonic() < until + TIMEOUT_S, "the writers stood still"
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    return runs


@pytest.mark.parametrize("load", [SPILLS, POOLS], ids=["spills", "pools"])
def test_beside_a_writer_that_tidies(tool: LogTool, load: Load) -> None:
    assert beside(tool, {"A": load}, 4) > 0


@pytest.mark.soak
def test_long_beside_two_writers(tool: LogTool) -> None:
    print(f"{beside(tool, {'A': SPILLS, 'B': POOLS}, 120)} runs beside two writers")
