"""The alerts of the guide: silent while all is well, and each fires for what it means."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from handmade import Record, Topic, batch
from owners import Own

from sparklog.groups import OffsetTable
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.table.owner import Owner
from sparklog.prometheus import _GAUGES, Exporter

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "monitoring.md").read_text(encoding="utf-8")
(CRONTAB,) = re.findall(r"^```cron\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
JOBS = [line.split(None, 5)[5] for line in CRONTAB.splitlines() if line[0] in "*0123456789"]
BEHIND, STANDS_STILL, NOT_WRITTEN, UPKEEP, UNREADABLE = JOBS
OLD_MS = 1_700_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the log and the offset table of the page, in which all is well, and the command."""
    topic = Topic(tmp_path / "my-log", "orders", config={"retention.ms": "604800000"})
    write(topic, 20_000)
    table = OffsetTable(topic.root, tmp_path / "my-offsets")
    Own(table, "billing", {"orders": {0: 20_000}})
    command = tmp_path / "bin" / "sparklog"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sparklog "$@"\n')
    command.chmod(0o755)
    (command.parent / "python3").symlink_to(sys.executable)
    return tmp_path


def write(topic: Topic, count: int, at_ms: int | None = None) -> None:
    now = int(time.time() * 1000) if at_ms is None else at_ms
    topic.commit(topic.data(batch([Record(b"{}", b"k", now)] * count)), time=now)


def mailed(folder: Path, job: str) -> str:
    """The lines that cron would send."""
    table = CRONTAB.replace("/srv/sparklog/venv", str(folder))
    variables = dict(line.split("=") for line in table.splitlines() if re.match("[A-Z]", line))
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT), **variables}  # the PATH of cron
    ran = subprocess.run(["sh", "-c", job], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    return ran.stdout + ran.stderr


@pytest.mark.slow
def test_they_are_silent_while_all_is_well(folder):
    assert {job: mailed(folder, job) for job in JOBS} == dict.fromkeys(JOBS, "")


def test_a_group_is_behind_and_stands_still(folder):
    topic = Topic(folder / "my-log", "clicks")
    write(topic, 10_001)
    table = OffsetTable(topic.root, folder / "my-offsets")
    Own(table, "billing", {"clicks": {0: 0}}).end()
    assert mailed(folder, BEHIND) == "Group billing is behind: partition 0 of clicks (10,001)\n"
    assert "No program runs the group" in mailed(folder, STANDS_STILL)


def test_a_heartbeat_does_not_hide_that_a_group_stands_still(folder, monkeypatch):
    """The rule asks for changes of one metric: a heartbeat leaves each of its lines, and a commit changes one."""
    [metric] = re.findall(r"alert: GroupStandsStill\n +expr: .*changes\((\w+)\[", PAGE)
    root = folder / "my-log"
    table = OffsetTable(root, folder / "my-offsets")

    def now() -> list[str]:
        lines = Exporter(root, table.path).text().decode().splitlines()
        return [line for line in lines if line.startswith(f"{metric}{{")]

    monkeypatch.setattr("sparklog.groups.table.owner._HEARTBEAT_S", 0)
    owner, ids = Owner(table, "stuck"), {"orders": table.positions("billing")[0].topic_id}
    owner.commit([OffsetCommit("orders", 0, ids["orders"], 5)])
    before, written = now(), table.group("stuck").summary.committed_at
    assert before
    owner.beat()
    assert table.group("stuck").summary.committed_at > written
    assert now() == before
    owner.commit([OffsetCommit("orders", 0, ids["orders"], 6)])
    assert now() != before


def test_a_look_shows_the_lines_of_the_page(folder):
    command = re.search("^sparklog metrics .*--table my-offsets  ", PAGE, re.MULTILINE)
    shown, lines = mailed(folder, command[0]), re.findall(r"^(partlog_\w+\{.*\}) ", PAGE, re.MULTILINE)
    assert len(lines) == 2
    assert all(line in shown for line in lines)


def test_nothing_is_written(folder):
    topic = Topic(folder / "old", "orders")
    write(topic, 1, at_ms=OLD_MS)
    assert mailed(folder, NOT_WRITTEN.replace("my-log", "old")) == "No commit to orders for an hour\n"


def test_upkeep_is_behind(folder):
    topic = Topic(folder / "old", "orders", config={"retention.ms": "604800000"})
    write(topic, 1_000, at_ms=OLD_MS)
    expired = mailed(folder, UPKEEP.replace("my-log", "old").replace("1e9", "1e2"))
    assert re.fullmatch(r'partlog_topic_expired_bytes\{topic="orders"\} \d+\.0\n', expired), expired


def test_a_topic_cannot_be_read(folder):
    broken = Topic(folder / "my-log", "broken")
    write(broken, 1)
    broken.version_file(0).write_text("{")
    assert "_partlog/broken" in mailed(folder, UNREADABLE)


def test_the_page_names_metrics_and_labels_that_there_are():
    """In rules, tables and examples; and its rules are five, each explained. `tests/serve/test_metrics.py` has those of a server."""
    named = {name for name in re.findall(r"\bpartlog_\w+", PAGE) if not name.startswith("partlog_server_")} - {"partlog_topic_"}
    assert named <= set(_GAUGES)
    for name, labels in re.findall(r"(partlog_\w+)\{([^}]*)\}", PAGE):
        assert name.startswith("partlog_server_") or set(re.findall(r"(\w+)=", labels)) <= set(_GAUGES[name][0]), name
    of_root = PAGE.partition("\n## Metrics of a server")[0]
    rules = re.findall(r"alert: (\w+)$", of_root, re.MULTILINE)
    assert len(rules) == len(JOBS) == 5
    assert re.findall(r"^\| (\w+) \| [A-Z]", PAGE, re.MULTILINE) == rules
