"""Runs README and guides as a reader would paste them: every Python block of a page, in order, in an empty folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from handmade import either

HERE = Path(__file__).resolve().parents[2]
# These pages have commands, which test_starting_spark.py, tests/ui/test_command.py and tests/cli/test_guide.py run, or need servers, which
# tests/stores/ has.
ELSEWHERE = {"starting-spark.md", "web-page.md", "command-line.md", "stores.md", "cluster.md"}
PAGES = [HERE / "README.md", *(page for page in sorted((HERE / "docs" / "guide").glob("*.md")) if page.name not in ELSEWHERE)]


# These pages ask for Delta, whose jars are given, so that nothing is downloaded.
NEED_DELTA = {"streaming.md", "consumers.md"}
DELTA = HERE / ".tools" / "delta"


def run(blocks: list[str], folder: Path, **environment: str) -> None:
    assert blocks, "there is nothing to run"
    program = folder / "page.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    given = os.environ | environment
    ran = subprocess.run([sys.executable, str(program)], cwd=folder, env=given, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-4_000:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(tmp_path: Path, page: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    given = {"PYSPARK_SUBMIT_ARGS": with_delta()} if page.name in NEED_DELTA else {}
    # A page can be pasted a second time into the same folder. With Delta that takes long.
    run(blocks * (either(1, 2) if given else 2), tmp_path, **given)


def with_delta() -> str:
    jars = sorted(map(str, DELTA.glob("*.jar")))
    assert jars, f"{DELTA} is empty: run make test once, which fetches Delta"
    settings = {
        "spark.databricks.delta.snapshotPartitions": "2",
        # The default starts a process for each file of a checkpoint; the queries of test_stream_kills.py have it.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
    }
    given = (word for key, value in settings.items() for word in ("--conf", f"{key}={value}"))
    return shlex.join(["--jars", ",".join(jars), *given, "pyspark-shell"])
