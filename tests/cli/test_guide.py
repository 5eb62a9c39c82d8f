"""Every command of the guide, as a reader would paste it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from handmade import TIME, Record, Topic

from sparklog.offsets import OffsetTable

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "command-line.md").read_text(encoding="utf-8")
WITHOUT_SPARK = re.sub(r"^## (Writing|Upkeep)\n.*?(?=^## )", "", PAGE, flags=re.MULTILINE | re.DOTALL)
"""Blocks of the two other sections are run by tests/spark/test_shell_guide.py."""
BLOCKS = re.findall(r"^```bash\n(.*?)^```$", WITHOUT_SPARK, re.MULTILINE | re.DOTALL)
SAID = {
    "topics my-log": "orders",
    "sparklog lag my-log": "behind by 13 records",
    "--execute": "moved",
    "tail my-log": "customer-19",
    "groups plan": "would go to another member",
}
"""The output that a block with this in it must print."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the log and the offset table of the page, and the command."""
    folder = tmp_path_factory.mktemp("guide")
    topic = Topic(folder / "my-log", "orders", partitions=2)
    for partition in range(2):
        topic.append([Record(b"{}", b"customer-%d" % number, TIME + 100 * number) for number in range(20)], partition)
    table = OffsetTable(folder / "my-offsets", topic.root)
    table.end("billing", table.begin("billing", {"orders": {0: 20, 1: 7}}))
    command = folder / "bin" / "sparklog"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sparklog "$@"\n')
    command.chmod(0o755)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
def test_block(folder: Path, block: str) -> None:
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    for command, expected in SAID.items():
        if command in block:
            assert expected in ran.stdout
