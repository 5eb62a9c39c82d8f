"""Writers of a topic whose slots are bound when they are first written, killed at each step and raced. FORMAT.md section 7 and annex A."""

import json
from collections import defaultdict
from pathlib import Path

import mmh3
import pytest
from audits import Load, Writer, audit
from commit_steps import DONE, LARGE, NOT_DONE, WHOLE
from handmade import either, seeded
from logtool import HALTED, TIMEOUT_S, LogTool, commits
from verifying import faults

from sparklog import Log

BINDS = {"placement": "on_first_write", **LARGE}
SLOTS = 65_536
KEPT = {"pace": 1_000_000}
"""All version files stay, as no checkpoint is ever due."""


def slots(keys: int) -> set[int]:
    return {(mmh3.hash(f"k{key}") & 0x7FFFFFFF) % SLOTS for key in range(keys)}


def homes(tool: LogTool) -> dict[int, int]:
    """The partition of each slot, by the version files alone: each was bound once, and has the records of its keys."""
    bound: dict[int, list[int]] = defaultdict(list)
    for file in sorted(tool.root.glob("_partlog/t/*.json")):
        for partition, *moved in json.loads(file.read_text().splitlines()[0]).get("routing", {}).get("moved", []):
            for slot in moved:
                bound[slot].append(partition)
    assert {slot: its for slot, its in bound.items() if len(its) > 1} == {}
    found: dict[int, set[int]] = defaultdict(set)
    if bound:
        table = Log(tool.root)["t"].read(columns=["partition", "key"])
        for partition, key in zip(*(column.to_pylist() for column in table.columns), strict=True):
            found[(mmh3.hash(key) & 0x7FFFFFFF) % SLOTS].add(partition)
    assert found == {slot: set(its) for slot, its in bound.items()}
    assert faults(tool.root, unfinished=True) == []
    return {slot: its for slot, (its,) in bound.items()}


def steps(*, creates: bool) -> list[str]:
    """All in `make soak`, otherwise the last one before the version file is there, and the first one after that."""
    its = [step for step in NOT_DONE + DONE if not (creates and step == "publish.stamp")]
    last = its.index("commit.link")
    return its[last : last + either(2, 0)] or its


def shared(shares: str) -> dict[str, str]:
    """The configuration by which new slots are shared in this way, as long as the topic is not re-routed."""
    return {"placement.shares": f"0:{10**17}:{shares}"}


def share(tool: LogTool, shares: str) -> None:
    tool.run("change", what="config", **shared(shares))


@pytest.mark.parametrize(
    ("first", "step"),
    [(first, step) for first in (True, False) for step in steps(creates=first)],
    ids=lambda value: {True: "creates", False: "appends"}.get(value, value),
)
def test_a_writer_killed_at_a_step_binds_all_its_slots_or_none(tool: LogTool, first: bool, step: str) -> None:
    """The next writer would place them elsewhere, if they were unbound."""
    before: dict[int, int] = {}
    if not first:
        tool.run("append", tag="A", keys=20, **BINDS)
        before = homes(tool)
        assert before.keys() == slots(20)
        share(tool, "0,3,1,0")
    tool.run("append", tag="B", keys=60, stop=f"{step}:halt", status=HALTED, **BINDS)
    killed = homes(tool)
    if step in DONE:
        assert killed.keys() == slots(60)
        assert killed.items() >= before.items()
        assert {killed[slot] for slot in killed.keys() - before.keys()} == ({0, 1, 2, 3} if first else {1, 2})
    else:
        assert killed == before
    if killed:
        share(tool, "1,0,0,2")
    tool.run("append", tag="C", keys=100, **BINDS)
    after = homes(tool)
    assert after.keys() == slots(100)
    assert after.items() >= killed.items()
    assert {after[slot] for slot in after.keys() - killed.keys()} == ({0, 3} if killed else {0, 1, 2, 3})
    assert commits(tool.read()).keys() == {"C-0"} | ({"A-0"} if before else set()) | ({"B-0"} if step in DONE else set())
    assert set(commits(tool.read()).values()) == {WHOLE}


@pytest.mark.parametrize("step", steps(creates=False)[-either(1, 99) :])
def test_of_two_writers_with_other_shares_one_is_killed(tool: LogTool, tmp_path: Path, step: str) -> None:
    """The slower one is planned before the shares change, and has placed the same keys. It goes on when the other one is dead."""
    tool.run("append", tag="A", keys=20, **BINDS)
    share(tool, "0,1,1,0")
    release = tmp_path / "release"
    slow = tool.start("append", tag="S", keys=60, stop="commit.link:pause", release=release, **BINDS)
    assert slow.stderr is not None
    assert "pause at" in slow.stderr.readline()
    share(tool, "1,0,0,1")
    tool.run("append", tag="K", keys=60, stop=f"{step}:halt", status=HALTED, **BINDS)
    killed = homes(tool)
    assert len(killed) == len(slots(60 if step in DONE else 20))
    release.touch()
    _, err = slow.communicate(timeout=TIMEOUT_S)
    assert ("PARTLOG_ROUTING_CHANGED" in err) == (step in DONE) == (slow.returncode != 0), err
    tool.run("append", tag="C", keys=60, **BINDS)
    after = homes(tool)
    assert after.keys() == slots(60)
    assert after.items() >= killed.items()
    assert {after[slot] for slot in slots(60) - slots(20)} == ({0, 3} if step in DONE else {1, 2})
    assert commits(tool.read()) == {"A-0": WHOLE, "K-0" if step in DONE else "S-0": WHOLE, "C-0": WHOLE}


@pytest.mark.parametrize("round_", range(either(1, 10)))
def test_writers_race_for_the_same_slots_while_they_are_killed(tool: LogTool, round_: int) -> None:
    """Each life of a writer has new keys with each commit, the same as the other one's; shares change all the time."""
    draw = seeded()
    load = Load(2, 120, {"keys": 10, "moreKeys": 10})
    bound: dict[int, int] = {}
    acknowledged: dict[str, Load] = {}
    loads: dict[str, Load] = {}
    for life in range(either(1, 6)):
        writers = []
        for tag in (f"A{life}", f"B{life}"):
            step = draw.choice([step for step in NOT_DONE + DONE if step != "task.write"])
            stop = f"{step}:halt:{draw.randint(2, 12)}"
            how = {"placement": "on_first_write", "goesOn": "true", "pause": draw.randint(0, 20), **KEPT}
            writers.append(Writer(tool, tag, load, 12, stop=stop, **how))
            loads[tag] = load
        while any(writer.process.poll() is None for writer in writers):
            shares = ",".join(str(draw.randint(0, 5)) for _ in range(3))
            assert tool.outcome("change", what="config", **shared(f"{shares},1")) in ([], ["TOPIC_NOT_FOUND"])
        for writer in writers:
            assert writer.join() in (0, HALTED), writer.errors
            assert set(writer.outcomes.values()) <= {"ROUTING_CHANGED"}
            acknowledged |= dict.fromkeys(writer.acknowledged, load)
        now = homes(tool)
        assert now.items() >= bound.items()
        bound = now
    audit(tool, acknowledged, loads)
    print(f"{len(bound)} slots, {len(acknowledged)} commits of {len(loads)} writers")
