"""The commands of the guide that start Spark, as a reader would paste them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from handmade import TIME, Record, Topic
from verifying import faults

import sparklog
from sparklog.offsets import OffsetTable

GUIDES = Path(__file__).parents[2] / "docs" / "guide"
PAGE = (GUIDES / "command-line.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (Writing|Upkeep)\n.*?^```bash\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))

pytestmark = pytest.mark.slow


def run(block: str, folder: Path) -> str:
    """Runs a block of a page in a shell. Returns its output."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["bash", "-euo", "pipefail", "-c", block]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0 and "PARTLOG_" not in ran.stderr, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("title", ["Writing", pytest.param("Upkeep", marks=pytest.mark.soak)])
def test_section(title: str, tmp_path: Path) -> None:
    topic = Topic(tmp_path / "my-log", "orders", partitions=2)
    records = [Record(b"{}", b"customer-%d" % number, TIME + 100 * number) for number in range(40)]
    for partition in range(2):
        topic.append([each for each in records if sparklog.partition_for(each.key, 2) == partition], partition)
    run(SECTIONS[title], tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["my-log"]
    log = sparklog.Log(tmp_path / "my-log")
    if title == "Writing":
        assert (log.topic("clicks").partitions, log.topic("clicks").end_offsets()) == (4, dict.fromkeys(range(4), 0))
        assert sorted(log.topic("payments").read()["key"].to_pylist()) == [b"customer-1", b"customer-2"]
        copied, given = (log.topic(name).read().drop_columns(["topic"]) for name in ("copy", "orders"))
        assert copied.equals(given)
    else:
        assert log.topic("orders").start_offsets() == {0: 10, 1: log.topic("orders").end_offsets()[1]}
        assert log.topic("orders").describe()["config"]["retention.ms"] == str(30 * 86_400_000)
    assert faults(tmp_path / "my-log", unfinished=True) == []


def test_backup_and_restore(tmp_path: Path) -> None:
    topic = Topic(tmp_path / "my-log", "orders")
    topic.append([Record(b"{}", b"customer-1", TIME + number) for number in range(20)])
    table = OffsetTable(tmp_path / "my-offsets", topic.root)
    table.end("billing", table.begin("billing", {"orders": {0: 7}}))
    *save, restore, replace = re.findall(
        r"^```bash\n(.*?)^```$", (GUIDES / "backup.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    for block in save:
        run(block, tmp_path)
    topic.append([Record(b"{}", b"customer-1", TIME + 20)])
    table.end("billing", table.begin("billing", {"orders": {0: 21}}))
    assert "orders" in run(restore, tmp_path)
    run(replace, tmp_path)
    root = tmp_path / "my-log"
    assert sparklog.Log(root)["orders"].end_offsets() == {0: 20} and faults(root) == []
    assert [row["records"] for row in OffsetTable(tmp_path / "my-offsets", root).lag("billing").to_pylist()] == [13]
