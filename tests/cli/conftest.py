"""A root that is written by hand, and the command line, run in this process or as one of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from handmade import Record, Topic, batch, sample

from sparklog.__main__ import main

Run = Callable[..., str]


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """Topic `t` of two partitions, with offsets 0 to 24 and 0 to 9."""
    return sample(tmp_path / "root")


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Runs a command that must end with a status, and gives what it printed: on standard error if that is not 0."""

    def command(*words: object, status: int = 0) -> str:
        capfdbinary.readouterr()
        ended = main(list(map(str, words)))
        out, err = (each.decode() for each in capfdbinary.readouterr())
        assert ended == status, out + err
        return out if status == 0 else err

    return command


@pytest.fixture
def start() -> Callable[..., "subprocess.Popen[bytes]"]:
    """Starts a command as a process of its own."""

    def command(*words: object) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        arguments = [sys.executable, "-m", "sparklog", *map(str, words)]
        return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)

    return command


HOSTILE = [
    Record(b"\x1b]0;title\x07", b"\x1b[31mred\x1b[0m\r\n\x00\xc2\x9b2J"),
    Record(b"\xff\xfe", b"\x80\x81"),
    Record(None, None),
    Record("schlüssel".encode(), "wert \u202e <script>".encode(), headers=((b"\x1b]0;h\x07", b"\x1b[31m"),)),
]


@pytest.fixture
def hostile(tmp_path: Path) -> Topic:
    """Topic `h` with escape codes in all that a file may say, bytes that are not UTF-8, nulls and a change of direction."""
    topic = Topic(tmp_path / "root", "h", config={"\x1b]0;c\x07": "\x1b[31m"})
    query = {"id": "\x1b]0;q\x07", "epoch": 0, "input": "0" * 16}
    topic.commit(topic.data(batch(HOSTILE)), query=query, writer="\x1b]0;w\x07")
    return topic
