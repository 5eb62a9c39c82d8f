"""How a door begins and ends."""

import subprocess
from pathlib import Path

import pytest
from door.serving import Door
from kafka.admin import KafkaAdminClient
from logtool import small_jvm


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "ROOT_REQUIRED"),
        (("absent", "--read-only"), "ROOT_NOT_FOUND"),
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


def test_a_root_begins_with_the_door_that_serves_it(serve_classpath: str, tmp_path: Path) -> None:
    with Door(serve_classpath, tmp_path / "root") as door:
        admin = KafkaAdminClient(bootstrap_servers=door.address)
        try:
            assert admin.list_topics() == []
        finally:
            admin.close()
    assert (tmp_path / "root" / "_partlog").is_dir()
