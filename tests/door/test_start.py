"""How a door begins and ends."""

import subprocess
from pathlib import Path

import pytest
from door.serving import Door
from logtool import small_jvm


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "ROOT_REQUIRED"),
        (("absent",), "ROOT_NOT_FOUND"),
        (("{root}", "--listen", "9092"), "OPTION_VALUE"),
        (("{root}", "num.io.thread=3"), "OPTION_UNKNOWN"),
        (("{root}", "--listen", "{address}"), "SERVE_ADDRESS"),
    ],
)
def test_a_door_that_cannot_begin_says_why(
    door: Door, serve_classpath: str, tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    words = [argument.format(root=door.root, address=door.address) for argument in arguments]
    command = [*small_jvm(serve_classpath), "io.sparklog.door.Serve", *words]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"PARTLOG_{error}: "), done.stderr
    assert "\tat " not in done.stderr
