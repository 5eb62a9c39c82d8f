"""The command `sparklog ui`, as the guide shows it."""

import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from handmade import Record, Topic, batch, records, sample
from owners import Own

from sparklog.groups import OffsetTable
from sparklog.ui.tail import TAILS_MAX


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a root and an offset table, as the guide names them."""
    sample(tmp_path / "my-log")
    table = OffsetTable(tmp_path / "my-log", tmp_path / "my-offsets")
    Own(table, "mail", {"t": {0: 5}})
    return tmp_path


@contextmanager
def running(folder: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The command, and the address that it prints."""
    command = [sys.executable, "-m", "sparklog", "ui", *words]
    environment = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "", "HOME": str(folder)}
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        found = re.match(r"(http://\S+/) shows ", process.stdout.readline())
        assert found, process.communicate()
        yield found[1], process
    finally:
        process.kill()
        process.communicate()


def commands(repository: Path) -> list[list[str]]:
    """The commands that the guide shows."""
    page = (repository / "docs" / "guide" / "web-page.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```bash\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    found = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert found[0] == ["pip", "install", "sparklog[ui]"]
    return found[1:]


def test_the_commands_of_the_guide(folder, repository):
    found = commands(repository)
    assert len(found) == 3
    for program, command, *words in found:
        assert (program, command) == ("sparklog", "ui")
        with running(folder, *words, "--port", "0") as (url, process):
            port = url.rstrip("/").rpartition(":")[2]
            about = httpx.get(f"http://127.0.0.1:{port}/api/about", timeout=600).json()
            assert about["root"] == str(folder / "my-log")
            if "--table" in words:
                assert httpx.get(f"{url}api/groups", timeout=600).json()["groups"][0]["group"] == "mail"
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=600)
            assert process.returncode == 130
            warned = "Everybody who reaches 0.0.0.0 can now read every record of my-log: without a password, unencrypted.\n"
            assert err == (warned if "--public" in words else "")


def test_a_wrong_call(folder, repository):
    def refused(*words: str) -> str:
        command = [sys.executable, "-m", "sparklog", "ui", *words]
        done = subprocess.run(command, cwd=folder, env={"PYTHONPATH": str(repository)}, capture_output=True, text=True, timeout=600)
        assert (done.returncode, done.stdout) == (2, "")
        return done.stderr

    assert "PARTLOG_ROOT_NOT_FOUND" in refused("no-log", "--port", "0")
    assert "read every record, without a password" in refused("my-log", "--port", "0", "--host", "0.0.0.0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "Address already in use" in refused("my-log", "--port", str(taken.getsockname()[1]))


def follow(url: str, path: str = "tail?from=0:0") -> socket.socket:
    """Asks, and does not read."""
    address = urlsplit(url)
    asking = socket.socket(socket.AF_INET6 if address.netloc.startswith("[") else socket.AF_INET)
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    asking.connect((address.hostname, address.port))
    asking.sendall(f"GET /api/topics/t/{path} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
    return asking


def resident(process: subprocess.Popen[str]) -> int:
    """The megabytes of a process."""
    (found,) = re.findall(r"VmRSS:\s*(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    return int(found) // 1_000


def test_it_ends_at_once_and_quietly_while_pages_follow_a_topic(folder):
    with running(folder, "my-log", "--port", "0", "--host", "::1") as (url, process):
        assert url.startswith("http://[::1]:")
        with httpx.stream("GET", f"{url}api/topics/t/tail", timeout=600) as tail, follow(url), follow(url, "records"):
            assert next(tail.iter_lines()) == "event: begin"
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=600) == ("", "")
        assert process.returncode == 130


@pytest.mark.slow
def test_pages_that_do_not_read_what_they_follow(folder):
    topic = Topic(folder / "slow", config={"max.message.bytes": "100000000"})
    topic.append(records(3))
    headers = tuple((b"%d" % number, b"\1" * 600) for number in range(20))
    with running(folder, "slow", "--port", "0") as (url, process):
        asleep = [follow(url) for _ in range(TAILS_MAX - 1)]
        assert all(each.recv(12) == b"HTTP/1.1 200" for each in asleep)
        with httpx.stream("GET", f"{url}api/topics/t/tail", timeout=600) as awake:
            lines = awake.iter_lines()
            assert next(lines) == "event: begin"
            before = resident(process)
            for _ in range(3):
                topic.commit(topic.data(batch([Record(b"\1" * 1_024, b"\1" * 512, headers=headers)] * 1_000)))
                version = len(topic.versions) - 1
                assert any(f'"version":{version},' in line.replace(" ", "") for line in lines)
            assert resident(process) - before < 600
        asleep.append(follow(url))
        # They are at the limit, until they are closed.
        assert httpx.get(f"{url}api/topics/t/tail", timeout=600).json()["error"]["condition"] == "BUSY"
        for each in asleep:
            each.close()
        again: list[socket.socket] = []
        until = time.monotonic() + 120
        while len(again) < TAILS_MAX:
            each = follow(url)
            if each.recv(12) == b"HTTP/1.1 200":
                again.append(each)
            else:
                each.close()
                assert time.monotonic() < until
                time.sleep(0.1)
        for each in again:
            each.close()
