"""Writes that fail in a task, in one attempt, with an executor or with the driver. Nothing uncommitted is ever visible.

The drivers that live share a JVM, and each has a Spark context of its own there.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from spark import failing_writer, running_jvm
from spark.failing_writer import RECORDS

from sparklog import Log

pytestmark = pytest.mark.slow

Write = Callable[..., None]
PROGRAM = Path(failing_writer.__file__)


def write(root: Path, master: str, how: str, *settings: str, jvm: dict[str, str] | None = None, dies_with: str | None = None) -> None:
    """Runs the writing program, which must succeed, or fail with `dies_with` in its output. Without a `jvm` it starts one."""
    runner = [] if jvm is None else [running_jvm.__file__]
    command = [sys.executable, *runner, str(PROGRAM), str(root), master, how, *settings]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=os.environ | (jvm or {}))
    print(ran.stderr[-3_000:])
    if dies_with is None:
        assert ran.returncode == 0
    else:
        assert ran.returncode != 0
        assert dies_with in ran.stderr


@pytest.fixture
def write_in_jvm(jvm_for_programs: dict[str, str]) -> Write:
    """Runs the program in the JVM that lives on, as the driver does that comes after one that died."""

    def run(root: Path, master: str = "local[2]", how: str = "never", *settings: str, dies_with: str | None = None) -> None:
        write(root, master, how, *settings, jvm=jvm_for_programs, dies_with=dies_with)

    return run


def records(root: Path) -> tuple[int, int]:
    """The number of records, and of different ones."""
    if not list(root.glob("_partlog/t/*.json")):
        return 0, 0
    values = Log(root)["t"].read(columns=["value"])["value"]
    return len(values), len(values.unique())


def test_a_task_that_fails_for_good(write_in_jvm: Write, tmp_path: Path) -> None:
    write_in_jvm(tmp_path, "local[2]", "always", dies_with="made to fail")
    assert records(tmp_path) == (0, 0)
    write_in_jvm(tmp_path)
    assert records(tmp_path) == (RECORDS, RECORDS)


def test_a_second_attempt_of_a_task(write_in_jvm: Write, tmp_path: Path) -> None:
    write_in_jvm(tmp_path, "local[2,4]", "once")
    assert records(tmp_path) == (RECORDS, RECORDS)


def test_an_executor_that_is_killed(write_in_jvm: Write, tmp_path: Path) -> None:
    write_in_jvm(tmp_path, "local-cluster[2,1,1024]", "executor")
    assert records(tmp_path) == (RECORDS, RECORDS)


def test_two_attempts_of_a_task_at_once(write_in_jvm: Write, tmp_path: Path) -> None:
    speculation = [
        "spark.speculation=true",
        "spark.speculation.interval=100ms",
        "spark.speculation.multiplier=1.1",
        "spark.speculation.quantile=0.3",
    ]
    write_in_jvm(tmp_path, "local-cluster[2,1,1024]", "slow", *speculation)
    assert records(tmp_path) == (RECORDS, RECORDS)


@pytest.mark.parametrize(
    ("step", "done"), [("commit.link", False), ("commit.linked", True), pytest.param("publish.log", True, marks=pytest.mark.soak)]
)
def test_a_driver_that_dies_in_the_commit(write_in_jvm: Write, tmp_path: Path, step: str, done: bool) -> None:
    stop = f"spark.driver.extraJavaOptions=-Dpartlog.stop={step}:halt"
    write(tmp_path, "local[2]", "never", stop, dies_with=f"partlog: halt at {step}")
    assert records(tmp_path) == ((RECORDS, RECORDS) if done else (0, 0))
    write_in_jvm(tmp_path)
    assert records(tmp_path) == ((2 * RECORDS, RECORDS) if done else (RECORDS, RECORDS))


def test_a_commit_whose_answer_is_lost_is_done_once(tmp_path: Path) -> None:
    """Spark would call abort() if commit() threw; in this case commit() must not throw."""
    write(tmp_path, "local[2]", "never", "spark.driver.extraJavaOptions=-Dpartlog.stop=commit.linked:throw")
    assert records(tmp_path) == (RECORDS, RECORDS)
