"""Runs README, guides and notebooks as a reader would paste them: every Python block of a page, in order, in an empty folder."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2]
# The page on starting Spark has commands, which test_starting_spark.py runs.
PAGES = [HERE / "README.md", *(page for page in sorted((HERE / "docs" / "guide").glob("*.md")) if page.name != "starting-spark.md")]
NOTEBOOKS = sorted((HERE / "notebooks").glob("*.ipynb"))


# These pages ask for Delta, whose jars are given, so that nothing is downloaded.
NEED_DELTA = {"streaming.md", "consumers.md"}
DELTA = HERE / ".tools" / "delta"


def run(blocks: list[str], folder: Path, **environment: str) -> None:
    assert blocks, "there is nothing to run"
    program = folder / "page.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    given = os.environ | environment
    ran = subprocess.run([sys.executable, str(program)], cwd=folder, env=given, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-4_000:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(tmp_path: Path, page: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    given = {"PYSPARK_SUBMIT_ARGS": with_delta()} if page.name in NEED_DELTA else {}
    run(2 * blocks, tmp_path, **given)  # a page can be pasted a second time into the same folder


def with_delta() -> str:
    jars = sorted(map(str, DELTA.glob("*.jar")))
    assert jars, f"{DELTA} is empty: run make test once, which fetches Delta"
    return shlex.join(["--jars", ",".join(jars), "--conf", "spark.databricks.delta.snapshotPartitions=2", "pyspark-shell"])


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_notebook(tmp_path: Path, notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells), "a notebook is kept without outputs"
    run(["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"], tmp_path)
