"""The programs of docs/guide/server.md, as a reader would paste them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sparklog.serve.process import Server

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "server.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_programs(tmp_path: Path) -> None:
    """In an empty folder, beside a server whose port is free. The last program is a test."""
    *programs, test = blocks("python")
    with Server(str(tmp_path / "my-log")) as server:
        for number, program in enumerate(programs):
            file = tmp_path / f"program{number}.py"
            file.write_text(program.replace("127.0.0.1:9092", server.address), encoding="utf-8")
            ran = subprocess.run([sys.executable, file], cwd=tmp_path, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, ran.stderr
    (tmp_path / "test_orders.py").write_text(test, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_orders.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
