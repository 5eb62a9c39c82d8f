"""Writers are killed at every step of what follows a commit: merging, publishing, deleting, checkpoints, clean-up."""

import pytest
from audits import POOLS, SPILLS, audit, audit_view
from logtool import HALTED, MERGE_BYTES, LogTool

STEPS = [
    "merge.write",
    "merge.put",
    "merge.linked",
    "publish.stamp",
    "publish.index",
    "publish.log",
    "publish.done",
    "delete.file",
    "checkpoint.put",
    "checkpoint.done",
    "clean.checkpoint",
    "clean.version",
]
TIDY = {"pace": 10, "merge": MERGE_BYTES, "file.delete.delay.ms": 0, "partitions": 2}
"""So that all of it happens within a few commits."""


@pytest.mark.slow
def test_a_writer_halted_at_each_step_in_turn(tool: LogTool) -> None:
    """The next writer finds the files of the one before: nothing is lost or doubled, no writer is stuck, and at the end all is tidy."""
    acknowledged = {}
    loads = {}
    for turn, step in enumerate(STEPS):
        load = SPILLS if step.startswith("publish") else POOLS
        tag = step.replace(".", "_")
        sizes = {"tasks": load.tasks, "records": load.records, **load.options}
        lines = tool.run("append", tag=tag, commits=60, stop=f"{step}:halt:{1 + turn % 3}", status=HALTED, **sizes, **TIDY)
        loads[tag] = load
        acknowledged |= {line.split()[1]: load for line in lines}
    for step in ("admin.put", "admin.linked"):
        tool.run("change", what="config", stop=f"{step}:halt", status=HALTED, **{"segment.bytes": 1 << 29})
    lines = tool.run("append", tag="end", commits=40, **TIDY)
    audit_view(tool)
    acknowledged |= {line.split()[1]: POOLS for line in lines}
    found = audit(tool, acknowledged, {**loads, "end": POOLS})
    assert len(found - acknowledged.keys()) <= len(STEPS), "more than was begun"
    assert len(list(tool.root.glob("_partlog/t/*.json"))) <= 40
    assert len(list(tool.root.glob("_partlog/t/*.checkpoint-*"))) <= 3


@pytest.mark.soak
@pytest.mark.parametrize("step", STEPS)
def test_a_writer_halted_often_at_a_step(tool: LogTool, step: str) -> None:
    """The same step twenty times, at its first to its twentieth time."""
    acknowledged = {}
    loads = {}
    for turn in range(20):
        load = SPILLS if step.startswith("publish") or turn % 2 else POOLS
        sizes = {"tasks": load.tasks, "records": load.records, **load.options}
        lines = tool.run("append", tag=f"T{turn}", commits=400, stop=f"{step}:halt:{turn + 1}", status=HALTED, **sizes, **TIDY)
        loads[f"T{turn}"] = load
        acknowledged |= {line.split()[1]: load for line in lines}
        audit(tool, acknowledged, loads)
        tool.run("append", tag=f"N{turn}", **TIDY)
        loads[f"N{turn}"] = POOLS
        acknowledged[f"N{turn}-0"] = POOLS
        audit_view(tool)
    audit(tool, acknowledged, loads)
    print(f"{step}: halted 20 times, {len(acknowledged)} acknowledged commits")
