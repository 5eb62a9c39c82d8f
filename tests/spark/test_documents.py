"""Runs README and guides as a reader would paste them: every Python block of a page, in order, in an empty folder.

The pages share a session, as a notebook does. In the soak, each page has a Python of its own, and is pasted twice.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import docstrings
import pytest

HERE = Path(__file__).resolve().parents[2]
# The tests that run the commands of a page, or its program beside a server.
ELSEWHERE = {
    "backup.md": "tests/spark/test_shell_guide.py",
    "choose.md": "",  # it has no program
    "cluster.md": "tests/stores",
    "command-line.md": "tests/spark/test_shell_guide.py",
    "server.md": "tests/serve/test_guide.py",
    "installing.md": "tests/test_wheel.py",
    "kafka-data.md": "tests/spark/test_kafka_data.py",
    "monitoring.md": "tests/cli/test_monitoring.py",
    "permissions.md": "tests/protocol/test_permissions.py",
    "starting-spark.md": "tests/spark/test_starting_spark.py",
    "stores.md": "tests/stores",
    "testing.md": "tests/spark/test_testing_guide.py",
    "troubleshooting.md": "",
    "upgrades.md": "",
    "web-page.md": "tests/ui/test_command.py",
}
PAGES = [HERE / "README.md", *(page for page in sorted((HERE / "docs" / "guide").glob("*.md")) if page.name not in ELSEWHERE)]


# These pages ask for Delta, whose jars are given, so that nothing is downloaded.
NEED_DELTA = {"queries.md", "groups.md"}
QUICK = {"README.md", "reading-and-writing.md"}
"""The pages that `make test` runs. `make full` runs all."""
DELTA = HERE / ".tools" / "delta"


class Session:
    """A process with a Spark session of its own, in a folder. It runs pages one after another."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        program = [sys.executable, str(Path(__file__).with_name("one_session.py"))]
        self._errors = folder / "errors.txt"
        (folder / "here").mkdir()
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                program,
                cwd=folder / "here",
                env=os.environ | environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def run(self, program: Path) -> None:
        assert self._process.stdin
        assert self._process.stdout
        print(program, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, f"the process ended: {self._errors.read_text()[-4_000:]}"
        assert not json.loads(answer), f"{json.loads(answer)}\n{self._errors.read_text()[-4_000:]}"

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], Session]]:
    """The session for a page: one for the pages with Delta, one for the others. Delta changes the catalog of its session."""
    begun: dict[bool, Session] = {}

    def session(page: Path) -> Session:
        delta = page.name in NEED_DELTA
        if delta not in begun:
            begun[delta] = Session(tmp_path_factory.mktemp("pages"), environment(page) | {"PYTHONPATH": str(HERE / "tests")})
        return begun[delta]

    yield session
    for each in begun.values():
        each.close()


def environment(page: Path) -> dict[str, str]:
    return {"PYSPARK_SUBMIT_ARGS": with_delta()} if page.name in NEED_DELTA else {}


@pytest.mark.parametrize(
    "page", [pytest.param(each, id=each.name, marks=[] if each.name in QUICK else [pytest.mark.slow]) for each in PAGES]
)
def test_page(tmp_path: Path, page: Path, sessions: Callable[[Path], Session]) -> None:
    sessions(page).run(program(page, tmp_path))


@pytest.mark.slow
def test_examples_of_docstrings(tmp_path: Path, sessions: Callable[[Path], Session]) -> None:
    """Those that use Spark, each in an empty folder. tests/test_docstrings.py runs the others."""
    names = [name for name, given in docstrings.documented().items() if docstrings.needs_spark(given)]
    assert len(names) > 15
    session = sessions(HERE / "docs" / "guide" / "queries.md")  # some examples need Delta, which the first session of a process brings
    for name in names:
        lines = [
            "import docstrings, sparklog",
            "sparklog.session(delta=True)",
            f"assert not (found := docstrings.failures({name!r})), found",
        ]
        (tmp_path / "example.py").write_text("\n".join(lines), encoding="utf-8")
        session.run(tmp_path / "example.py")


@pytest.mark.slow
def test_a_command_calls_a_procedure_in_a_session_with_delta(tmp_path: Path, sessions: Callable[[Path], Session]) -> None:
    """Delta's extension parses each CALL, also in sessions that get it from spark-defaults.conf, as those of commands may."""
    program = """
from pathlib import Path

import sparklog
from sparklog.cli.spark import call, create

spark, root = sparklog.session(delta=True), str(Path("it's").resolve())
create(spark, root, "orders", {"partitions": "2"}, if_not_exists=False)
call(spark, "set_config", {"root": root, "topic": "orders", "config": {"retention.ms": "60000"}})
assert sparklog.Log(root)["orders"].config["retention.ms"] == "60000"
"""
    (tmp_path / "command.py").write_text(program, encoding="utf-8")
    sessions(HERE / "docs" / "guide" / "queries.md").run(tmp_path / "command.py")


@pytest.mark.soak
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_pasted_twice_into_a_python_of_its_own(tmp_path: Path, page: Path) -> None:
    given = os.environ | environment(page)
    command = [sys.executable, str(program(page, tmp_path, times=2))]
    ran = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-4_000:]


def program(page: Path, folder: Path, times: int = 1) -> Path:
    """The Python blocks of a page as one program."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks, "there is nothing to run"
    file = folder / "page.py"
    file.write_text("\n".join(blocks * times), encoding="utf-8")
    return file


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
