"""The program, the commands and the settings of docs/guide/cluster.md and stores.md, as tests carry them out."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PRINTED = "orders: 10000\ncopied: 10000\n"


def _blocks(repository: Path, kind: str, page: str = "cluster.md") -> list[str]:
    text = (repository / "docs" / "guide" / page).read_text()
    return re.findall(rf"^ *```{kind}\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)


def guide_job(repository: Path) -> str:
    """The guide's program."""
    (block,) = (block for block in _blocks(repository, "python") if block.startswith("# job.py\n"))
    assert PRINTED in _blocks(repository, "text")
    return block


def redacted(repository: Path) -> str:
    """The guide's pattern of what Spark is to replace in the texts of plans."""
    (block,) = (block for block in _blocks(repository, "text") if "spark.redaction.string.regex" in block)
    return block.partition("=")[2].strip().removesuffix("'")


def quiet_s3a(repository: Path) -> str:
    """The guide's lines of log4j2.properties."""
    (block,) = (block for block in _blocks(repository, "text", "stores.md") if block.lstrip().startswith("logger."))
    return block


def submit(repository: Path, begins: str, folder: Path, instead: Mapping[str, str], settings: Mapping[str, str]) -> str:
    """Runs the guide's line that begins so, in a folder that gets the program, with names of its own in place of some of the guide.

    `settings` are those that an administrator has made in spark-defaults.conf. Returns what Spark has logged.
    """
    (line,) = (line for block in _blocks(repository, "bash") for line in block.splitlines() if line.startswith(begins))
    for name, own in instead.items():
        assert name in line, line
        line = line.replace(name, own)
    (folder / "job.py").write_text(guide_job(repository))
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "SPARK_CONF_DIR": str(folder / "conf")}
    done = subprocess.run(line, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
    assert done.stdout.endswith(PRINTED), done.stdout
    return done.stderr
