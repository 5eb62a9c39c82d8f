"""`sparklog serve`, and the processes that Python starts."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from handmade import Record, Topic
from kafka.admin import KafkaAdminClient
from serve.serving import server_pid

from sparklog import CallError, SparklogError
from sparklog.serve.process import Server

PROGRAM = """
import os, sys, time
from sparklog.serve.process import Server
server = Server(sys.argv[1])
if forked := os.fork():
    print(server.pid, forked, flush=True)
time.sleep(600)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Topic(tmp_path / "my-log", "visits", partitions=2).append([Record(b"1", b"ann")], 0)
    return tmp_path / "my-log"


def topics(address: str) -> list[str]:
    admin = KafkaAdminClient(bootstrap_servers=address)
    try:
        return admin.list_topics()
    finally:
        admin.close()


@pytest.mark.slow
def test_the_command_serves_a_root_until_it_is_ended(root: Path) -> None:
    command = [sys.executable, "-m", "sparklog", "serve", str(root), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        serving = re.fullmatch(rf"Serving {root} at (127\.0\.0\.1:[0-9]+)\n", first)
        assert serving, first
        assert topics(serving[1]) == ["visits"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, 143)  # the JVM ends with 143 after SIGTERM


def test_a_server_of_python_ends_with_its_block(root: Path) -> None:
    with Server(str(root)) as server:
        assert topics(server.address) == ["visits"]
    with pytest.raises(ProcessLookupError):
        os.kill(server.pid, 0)


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_server_of_python_ends_with_its_program(root: Path, how: signal.Signals) -> None:
    """As the server of `partlog_broker` does when pytest is killed. A process that the program has forked lives on."""
    command = [sys.executable, "-c", PROGRAM, str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        server, forked = map(int, process.stdout.readline().split())
        try:
            process.send_signal(how)
            process.wait(60)
            until = time.monotonic() + 120
            while server_pid(root):
                assert time.monotonic() < until
                time.sleep(0.05)
            assert list((root / "_servers").glob("*-*.json")) == []
        finally:
            os.kill(forked, signal.SIGKILL)
            if server_pid(root):
                os.kill(server, signal.SIGKILL)


def test_a_server_that_cannot_start_tells_why(tmp_path: Path) -> None:
    with pytest.raises(SparklogError, match=r"PARTLOG_SERVE_START.*PARTLOG_ROOT_NOT_FOUND.*absent"):
        Server(str(tmp_path / "absent"), ("--listen", "127.0.0.1:0", "--read-only"))


@pytest.mark.parametrize(
    ("java", "told"),
    [
        ({"PATH": "/nowhere", "JAVA_HOME": ""}, "there is none on the PATH"),
        ({"JAVA_TOOL_OPTIONS": "-Xmx1k"}, "java does not start; it says: .*Too small"),
    ],
)
def test_a_missing_java_is_what_a_server_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, java: dict[str, str], told: str) -> None:
    for name, value in java.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CallError, match=rf"\[PARTLOG_JAVA_NEEDED\] A server for Kafka's clients needs a JDK 17 or later, but .*{told}"):
        Server(str(tmp_path / "log"))


def test_the_command_lists_the_settings() -> None:
    """Without a root. They are a file that `--config` takes."""
    command = [sys.executable, "-m", "sparklog", "serve", "--settings"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "num.partitions=8" in listed
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "server-settings.md").read_text(encoding="utf-8")
    keys = [each.partition("=")[0] for each in listed]
    assert [each for each in keys if f"| `{each}` |" not in page] == []
    assert len(keys) == page.count("\n| `") - page.count("\n| `listener.name.NAME.")


@pytest.mark.slow
def test_servers_start_with_the_classes_of_their_archive(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache of mine"))
    command = [sys.executable, "-m", "sparklog", "class-archive", "--serve"]
    subprocess.run(command, check=True)
    (archive,) = (tmp_path / "cache of mine" / "sparklog").iterdir()
    assert archive.name.startswith("serve-")

    def uses_it() -> bool:
        with Server(str(root)) as server:
            assert topics(server.address) == ["visits"]
            assert "archive" not in server.output()
            return str(archive) in Path(f"/proc/{server.pid}/maps").read_text()

    assert uses_it()
    monkeypatch.setenv("SPARKLOG_CLASS_ARCHIVE", "off")
    assert not uses_it()
    subprocess.run([*command, "--delete"], check=True)
    assert not archive.exists()
