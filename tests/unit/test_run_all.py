"""`tests/run_all.py`: the last lines of `make test`, and its status, with tests of Python and Java that pass, fail, and do not run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TESTS = """
import pytest

def test_passes():
    pass

def test_other():
    assert {passes}, "seen of Python"

@pytest.mark.parametrize("which", [1, 2])
def test_skipped(which):
    pytest.skip("no browser (apt-get install chromium)")
"""
PASSING_JAVA = """echo "much of Java"; echo "17 Java tests passed in 3 s" """
FAILING_JAVA = """echo "much of Java"; echo '<testsuite><testcase name="held" classname="io.sparklog.log.RootTest"><failure
  message="seen of Java&#10;its second line">a trace</failure></testcase><testcase name="fine" classname="io.sparklog.log.RootTest"/>
  </testsuite>' > reports/TEST-RootTest.xml; exit 1"""
NO_JAVA = """echo "much of Java"; echo "it does not compile"; exit 1"""
PROGRAM = """
import sys
from pathlib import Path
from run_all import run
pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-ra", "--junitxml", "python.xml", "test_it.py"]
sys.exit(run(["bash", "-c", sys.argv[1]], Path("tools/java.log"), Path("reports"), pytest, Path("python.xml")))
"""


def started(folder: Path, tests: str, java: str) -> "subprocess.Popen[str]":
    (folder / "reports").mkdir()
    (folder / "test_it.py").write_text(tests)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    environment.pop("CI", None)  # with it, pytest tells a failure in many lines
    command = [sys.executable, "-c", PROGRAM, java]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)


def ended(folder: Path, tests: str, java: str) -> tuple[int, list[str]]:
    with started(folder, tests, java) as process:
        out, _ = process.communicate()
    assert "much of Java" not in out or "did not end" in out, "its log hides what failed"
    return process.returncode, out.splitlines()


@pytest.mark.parametrize("passes", [True, False], ids=["python", "no python"])
@pytest.mark.parametrize("java", [PASSING_JAVA, FAILING_JAVA], ids=["java", "no java"])
def test_what_failed_is_told_last(tmp_path, passes, java):
    status, lines = ended(tmp_path, TESTS.format(passes=passes), java)
    assert status == (0 if passes and java == PASSING_JAVA else 1)
    *before, last = lines
    failed = [] if passes else ["1 in Python"]
    if java == PASSING_JAVA:
        assert before.pop() == "17 Java tests passed in 3 s"
    else:
        failed.append("1 in Java")
        assert before.pop() == "  FAILED RootTest.held: seen of Java"
        assert before.pop() == "Java tests that failed; all that they said is in tools/java.log:"
    assert last == f"{'FAILED: ' + ', '.join(failed) if failed else 'All tests passed'}; 2 skipped: no browser (apt-get install chromium)"
    counts = before.pop()
    if passes:
        assert "2 passed, 2 skipped in " in counts
    else:
        assert "1 failed, 1 passed, 2 skipped in " in counts
        assert before.pop().startswith("FAILED test_it.py::test_other - AssertionError: seen of Python")


def test_all_passed(tmp_path):
    status, lines = ended(tmp_path, "def test_passes(): pass", PASSING_JAVA)
    assert (status, lines[-1]) == (0, "All tests passed")


def test_tests_that_did_not_run(tmp_path):
    status, lines = ended(tmp_path, "import nothing_like_that", NO_JAVA)
    assert status == 1
    assert lines[-3:] == ["  much of Java", "  it does not compile", "FAILED: 1 in Python, Java ended with status 1"]


@pytest.mark.parametrize("python", ["waits", "has ended"])
def test_ctrl_c_ends_both(tmp_path, python):
    """As a terminal does, which sends it to all of its foreground group; pytest ends in order."""
    waits = "import pathlib, threading\n\ndef test_waits():\n    pathlib.Path('begun').touch()\n    threading.Event().wait()\n"
    tests = waits if python == "waits" else "def test_passes(): pass"
    begun = tmp_path / ("begun" if python == "waits" else "python.xml")
    with started(tmp_path, tests, "echo $$ > java.pid; mv java.pid java; sleep 600") as process:
        until = time.monotonic() + 120
        while not (begun.exists() and (tmp_path / "java").exists()):
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = process.communicate()
    assert process.returncode == 130
    assert python != "waits" or "KeyboardInterrupt" in out
    assert not Path(f"/proc/{(tmp_path / 'java').read_text().strip()}").exists()


def test_pytest_takes_the_folder(tmp_path, monkeypatch):
    """Its variable is for those who work on pytest, so it could go."""
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(tmp_path))
    test = f"def test_place(tmp_path):\n    assert str(tmp_path).startswith({str(tmp_path)!r} + '/pytest-of-')"
    (tmp_path / "run").mkdir()
    assert ended(tmp_path / "run", test, PASSING_JAVA)[0] == 0
