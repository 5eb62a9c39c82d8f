"""The tests of the guide, run by pytest as a reader would run them. They share a JVM with other programs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from spark.running_jvm import command_in

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "testing.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.slow


def test_page(tmp_path: Path, jvm_for_programs: dict[str, str]) -> None:
    for name, block in re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(block)
    [produce] = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    folder = Path(sys.executable).parent
    (commands := tmp_path / "bin").mkdir()
    command_in(commands)
    environment = {**os.environ, **jvm_for_programs, "PATH": f"{commands}:{folder}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-euo", "pipefail", "-c", produce], cwd=tmp_path, env=environment, check=True, capture_output=True)
    # Without the JVM in the path, the second part still works.
    assert passed(tmp_path, {**os.environ, "PATH": str(folder), "JAVA_HOME": ""}, "test_billing.py") == 1
    assert passed(tmp_path, environment) == 2


def passed(folder: Path, environment: dict[str, str], *files: str) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=500, check=False)
    found = re.search(r"^(\d+) passed in", ran.stdout, re.MULTILINE)
    assert ran.returncode == 0 and found, f"{ran.stdout}\n{ran.stderr}"
    return int(found[1])
