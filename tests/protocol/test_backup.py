"""Backing up a root while a writer commits, with the code of the guide."""

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from audits import SPILLS, Load, Writer
from logtool import LogTool
from protocol.backing_up import back_up
from verifying import faults

from sparklog import DataError, Log


def held(root: Path, load: Load) -> set[str]:
    """The commits that a root holds, all of each."""
    values = [value.decode() for value in Log(root)["t"].read(columns=["value"])["value"].to_pylist()]
    commits = Counter(value.split(":")[0] for value in values)
    assert set(commits.values()) == {load.tasks * load.records}
    return set(commits)


def test_a_backup_beside_a_writer(tmp_path: Path, java_classpath: str) -> None:
    load, root = SPILLS, tmp_path / "root"
    tool = LogTool(java_classpath, root)
    writer = Writer(tool, "a", load)
    copies: list[tuple[Path, set[str]]] = []
    try:
        for number in range(3):
            writer.wait_for(10 * (number + 1))
            copies.append((tmp_path / f"copy{number}", set(writer.acknowledged)))
            back_up(root, copies[-1][0])
        wrong = tmp_path / "wrong"
        for pattern in ("data/*/*.log", "*.json*"):  # on a busy machine, there is a checkpoint, and the first versions are gone
            writer.wait_for(len(writer.acknowledged) + 3)
            for file in sorted((root / "_partlog" / "t").glob(pattern)):
                (wrong / file.relative_to(root)).parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileNotFoundError):
                    os.link(file, wrong / file.relative_to(root))
    finally:
        writer.kill()
    for copy, acknowledged in copies:
        assert acknowledged <= held(copy, load)
        assert faults(copy) == []
    # The copy is a root of its own, and what is done to it does not reach the root.
    copy = copies[0][0]
    there, everything = held(copy, load), held(root, load)
    again = LogTool(java_classpath, copy)
    again.run("append", tag="b", tasks=load.tasks, records=load.records, **load.options)
    assert held(copy, load) == there | {"b-0"}
    assert sum(len(values) for values in again.read().values()) == len(there | {"b-0"}) * load.tasks * load.records
    assert held(root, load) == everything
    with pytest.raises(DataError, match="SEGMENT_MISSING"):
        held(wrong, load)
