"""`verify` beside writers that commit, merge, publish, delete and clean up all the time: it reports nothing, since nothing is wrong."""

import time

import pytest
from audits import POOLS, SPILLS, Load, Writer
from logtool import MERGE_BYTES, LogTool

from sparklog import Log

TIDY = {"pace": 5, "merge": MERGE_BYTES, "file.delete.delay.ms": 0, "retention.bytes": 20_000}


def beside(tool: LogTool, loads: dict[str, Load], least: int, seconds: float = 0) -> int:
    """How often it ran, at least so often and so long, while each of these writers committed."""
    writers: list[Writer] = []
    runs = 0
    try:
        for tag, load in loads.items():
            writers.append(Writer(tool, tag, load, **TIDY))
            writers[-1].wait_for(1)
        log = Log(tool.root)
        begun = [len(writer.acknowledged) for writer in writers]
        until = time.monotonic() + seconds
        while runs < least or time.monotonic() < until:
            report = log.verify(quick=runs % 5 == 4)
            assert report.findings == [], str(report)
            assert report.checked.segments > 0
            runs += 1
        for writer, before in zip(writers, begun, strict=True):
            writer.wait_for(before + 1)
    finally:
        for writer in writers:
            writer.kill()
    return runs


@pytest.mark.parametrize("load", [SPILLS, POOLS], ids=["spills", "pools"])
def test_beside_a_writer_that_tidies(tool: LogTool, load: Load) -> None:
    assert beside(tool, {"A": load}, 5) >= 5


@pytest.mark.soak
def test_long_beside_two_writers(tool: LogTool) -> None:
    print(f"{beside(tool, {'A': SPILLS, 'B': POOLS}, 5, 120)} runs beside two writers")
