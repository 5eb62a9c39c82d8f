"""The promises of tests/limits.py, in a pytest of its own that is started as a script's background job is: with SIGINT ignored."""

import os
import signal
import subprocess
import sys
from pathlib import Path

TESTS = """
import signal, subprocess

def test_that_hangs():
    with subprocess.Popen(["sleep", "600"]) as process:
        process.wait()
        assert process.returncode == 0

def test_that_interrupts():
    with subprocess.Popen(["sleep", "600"]) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait() == -signal.SIGINT
"""


def test_a_test_that_hangs_fails_and_processes_can_be_interrupted(tmp_path):
    file = tmp_path / "test_waits.py"
    file.write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "limits", "-p", "no:cacheprovider", "--timeout", "8", "-rA", str(file)]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert "PASSED test_waits.py::test_that_interrupts" in done.stdout, done.stdout
    assert "FAILED test_waits.py::test_that_hangs - AssertionError: assert -9 == 0" in done.stdout, done.stdout
