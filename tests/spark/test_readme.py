"""The front page, pasted by a reader who has a Python shell and a terminal in one folder: every block, in order, twice."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sparklog

HERE = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"^```(python|bash)\n(.*?)^```$", (HERE / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_front_page_pasted_twice(tmp_path: Path) -> None:
    install, *blocks = BLOCKS
    assert install[0] == "bash" and "make wheel\npip install" in install[1]  # tests/test_wheel.py installs the wheel
    assert {language for language, _ in blocks} == {"python", "bash"}
    program = tmp_path / "program.py"
    pasted = (block if language == "python" else f"paste({block!r})" for language, block in blocks * 2)
    program.write_text("\n".join(["from terminal import paste", *pasted]), encoding="utf-8")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "sparklog"
    # Another page may have the usual port of the web page.
    command.write_text(f'#!/bin/sh\n[ "$1" != ui ] || set -- "$@" --port 0\nexec "{sys.executable}" -m sparklog "$@"\n')
    command.chmod(0o755)
    (tmp_path / "folder").mkdir()
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": f"{HERE}:{Path(__file__).parent}",
    }
    ran = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path / "folder", env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-4_000:]
    log = sparklog.Log(tmp_path / "folder" / "my-log")
    assert {topic: log[topic].read().num_rows for topic in log.topics()} == {"copy": 2_003, "events": 2_006}
