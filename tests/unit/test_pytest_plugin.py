"""The output of pytest in a project of a user, with the fixture `partlog_broker`."""

import subprocess
import sys
from pathlib import Path

CLIENT = """
from kafka.protocol.schemas.load_json import load_json

def test_it():
    assert load_json("FetchRequest")
"""


def test_warnings_of_kafka_python_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(CLIENT)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert "warning" not in done.stdout
