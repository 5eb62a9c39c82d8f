"""A driver is killed between its output in Delta and the offsets: each record is in the output once."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from handmade import records, sample, seeded
from spark import offset_driver

from sparklog.groups import OffsetTable


def run(folder: Path, master: str, kills_at: int) -> int:
    command = [sys.executable, offset_driver.__file__, str(folder), master, str(kills_at)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, start_new_session=True, check=False)
    assert ran.returncode == (0 if kills_at < 0 else -9), ran.stdout + ran.stderr[-4_000:]
    return ran.returncode


def output(folder: Path) -> list[tuple[int, int]]:
    if not (folder / "out").exists():
        return []
    query = 'SELECT "partition", "offset" FROM out'
    found = QueryBuilder().register("out", DeltaTable(folder / "out")).execute(query).read_all()
    return sorted((row["partition"], row["offset"]) for row in pa.table(found).to_pylist())


def killed(folder: Path, kills: int) -> None:
    """The last life is one over Connect, and also tracks a query."""
    random, begun = seeded(), time.monotonic()
    topic = sample(folder / "in")  # with 25 and 10 offsets
    table = OffsetTable(topic.root, folder / "table")
    counts = [25, 10]
    for _ in range(kills):
        run(folder, "spark.master", random.randrange(2))
        there = output(folder)
        assert len(there) == len(set(there)), "each record is in the output once"
        done = {each.partition: each.offset for each in table.positions("out")} if "out" in table.groups() else {}
        behind = len(there) - sum(done.values())
        assert 0 < behind <= offset_driver.TRIGGER, "the offsets are one micro-batch behind the output"
        assert all((partition, offset) in there for partition, end in done.items() for offset in range(end))
        topic.append(records(7))
        counts[0] += 7
    run(folder, "spark.remote", -1)
    assert output(folder) == [(partition, offset) for partition, count in enumerate(counts) for offset in range(count)]
    for group in ("out", "tracked"):
        assert [each.offset for each in table.positions(group)] == counts
    print(f"{kills} kills, {time.monotonic() - begun:.0f} s")


@pytest.mark.slow
def test_a_kill_between_output_and_offsets(tmp_path: Path) -> None:
    killed(tmp_path, 1)


@pytest.mark.soak
def test_twenty_kills_between_output_and_offsets(tmp_path: Path) -> None:
    killed(tmp_path, 20)
