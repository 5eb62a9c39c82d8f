"""The commands of guides that need Spark, as a reader would paste them.

The commands share a JVM. tests/spark/test_shell.py has commands that start a JVM.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from handmade import TIME, Record, Topic
from owners import Own
from spark.running_jvm import command_in
from verifying import faults

import sparklog
from sparklog.groups import OffsetTable

GUIDES = Path(__file__).parents[2] / "docs" / "guide"
PAGE = (GUIDES / "command-line.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(bash\n.*?|\nsparklog groups consume .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SAID = {
    "sparklog topics my-log": "orders",
    "sparklog lag my-log": "behind by 18 records",
    "reset my-log billing": "moved",
    "sparklog tail my-log": "customer-19",
    "groups lag my-log": "Group billing is behind",
    "groups history": "joins",
    "groups members": "consumer-",
    "groups plan": "would go to another member",
    "sparklog create": "Topic clicks with 4 partitions was created",
    "groups carry": "moved",
}
"""The output that the block with this command must print."""
START_SPARK = ("produce", "create", "--add")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(jvm_for_programs: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a reader's shell."""
    commands = tmp_path_factory.mktemp("bin")
    command_in(commands)
    path = f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {name: value for name, value in os.environ.items() if name != "SPARKLOG_OFFSETS"} | jvm_for_programs | {"PATH": path}


def run(block: str, folder: Path, environment: dict[str, str], timeout_s: int = 500) -> tuple[str, str]:
    """Runs a block of a page in a shell. Returns its output, and the lines on standard error."""
    command = ["bash", "-euo", "pipefail", "-c", block]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert ran.returncode == 0 and "PARTLOG_" not in ran.stderr and "Traceback" not in ran.stderr, ran.stdout[-2_000:] + ran.stderr
    return ran.stdout, ran.stderr


def pasted() -> str:
    """The page of the command line in one script. Each block begins with a line of its number, in both streams."""
    parts = []
    for number, block in enumerate(BLOCKS):
        kind, _, commands = block.partition("\n")
        if kind != "bash":  # a consumer in a terminal of its own
            command = re.sub(" *#.*", "", commands.strip())
            commands = f'{command} > consumed.txt 2>&1 & consumer=$!\nuntil grep -qs "^reads orders" consumed.txt; do sleep 0.2; done'
        elif "groups export" in commands:
            commands = f"kill $consumer; wait $consumer || test $? = 143\n{commands}"
        parts.append(f"echo '=== {number}' | tee /dev/stderr\n{commands}")
    return "\n".join(parts)


@pytest.mark.timeout(1_800)
def test_the_page_of_the_command_line_from_top_to_bottom(tmp_path: Path, environment: dict[str, str]) -> None:
    """In one shell and an empty folder."""
    streams = run(pasted(), tmp_path, environment, timeout_s=1_700)
    out, err = (re.split(r"^=== \d+\n", stream, flags=re.MULTILINE)[1:] for stream in streams)
    assert len(out) == len(err) == len(BLOCKS)
    for block, complaints in zip(BLOCKS, err, strict=True):
        assert complaints == "" or any(word in block for word in START_SPARK), (block, complaints)
    for command, expected in SAID.items():
        (number, *_) = [number for number, block in enumerate(BLOCKS) if command in block]
        assert expected in out[number], (BLOCKS[number], out[number])
    assert " customer-19 {}\n" in (tmp_path / "consumed.txt").read_text()
    log = sparklog.Log(tmp_path / "my-log")
    assert log.topics() == ["clicks", "copy", "orders", "orders16", "payments"]
    assert (log["clicks"].partitions, log["clicks"].end_offsets()) == (4, dict.fromkeys(range(4), 0))
    assert sorted(log["payments"].read()["key"].to_pylist()) == [b"customer-1", b"customer-2"]
    assert (log["copy"].read().num_rows, log["orders16"].partitions) == (40, 16)
    assert log["orders16"].read().num_rows == log["orders"].read().num_rows > 0, "the copy loses no record"
    assert log["orders"].start_offsets() == {0: 10, 1: log["orders"].end_offsets()[1]}
    assert (log["orders"].config.get("retention.ms", "-1"), log["orders"].config["retention.bytes"]) == ("-1", str(10 << 30))
    assert OffsetTable(None, tmp_path / "my-offsets").groups() == ["billing", "shop"]
    assert faults(tmp_path / "my-log", unfinished=True) == []


def test_backup_and_restore(tmp_path: Path, environment: dict[str, str]) -> None:
    topic = Topic(tmp_path / "my-log", "orders")
    topic.append([Record(b"{}", b"customer-1", TIME + number) for number in range(20)])
    Topic(topic.root, "without-records").commit()
    table = OffsetTable(topic.root, tmp_path / "my-offsets")
    Own(table, "billing", {"orders": {0: 7}}).end()
    *save, restore, replace = re.findall(
        r"^```bash\n(.*?)^```$", (GUIDES / "backup.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    for block in save:
        run(block, tmp_path, environment)
    topic.append([Record(b"{}", b"customer-1", TIME + 20)])
    Own(table, "billing", {"orders": {0: 21}}).end()
    said, _ = run(restore, tmp_path, environment)
    assert "orders" in said and "without-records" in said and "Group billing: 1 partition would be moved" in said
    run(replace, tmp_path, environment)
    root = tmp_path / "my-log"
    assert sparklog.Log(root)["orders"].end_offsets() == {0: 20} and faults(root) == []
    assert [row["records"] for row in OffsetTable(root, tmp_path / "my-offsets").lag("billing").to_pylist()] == [13]
