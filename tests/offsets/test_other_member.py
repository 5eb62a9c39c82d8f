"""A second implementation of the protocol, from the document alone, in one group with ours."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from handmade import records
from offsets.member_world import REPOSITORY, SESSION_MS, Group, Process, group


class Elsewhere:
    """A process of the other implementation, and the records that it read so far."""

    def __init__(self, of: Group) -> None:
        self.file = of.folder / f"other-{time.monotonic_ns()}.txt"
        command = [
            sys.executable,
            str(Path(__file__).parent / "other_member.py"),
            str(of.folder / "root"),
            str(of.folder / "offsets"),
            "g",
            "t",
        ]
        with self.file.open("w") as out:
            self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, env={**os.environ, "PYTHONPATH": str(REPOSITORY)})

    def lines(self) -> list[str]:
        return self.file.read_text().splitlines()

    def leave(self) -> None:
        assert self.popen.stdin
        self.popen.stdin.close()
        assert self.popen.wait(20) == 0

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()
        assert self.popen.stdin
        self.popen.stdin.close()


@pytest.fixture
def four(tmp_path):
    yield from group(tmp_path)


@pytest.fixture
def elsewhere(four):
    started: list[Elsewhere] = []

    def start() -> Elsewhere:
        started.append(Elsewhere(four))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def of_ours(four: Group, ours: Process, members: int) -> bool:
    state = four.state()
    return len(state.members) == members and all(share.owner == share.wanted_by is not None for share in state.shares.values())


def test_both_share_a_group_and_hand_over(four, elsewhere):
    ours = four.open(*four.start(), assignor="range")
    answers = [ours.poll(ms=500, commits=True)]
    other = elsewhere()
    answers += four.until(lambda: of_ours(four, ours, 2), [ours], 30)
    assert set(four.owners().values()) == set(four.state().members)
    for number in range(4):
        four.topic.append(records(5), number)
    answers += four.until(lambda: len(other.lines()) == 10, [ours], 30)
    answers += four.until(lambda: set(four.positions().values()) == {25}, [ours], 30)
    other.leave()
    answers += four.until(lambda: of_ours(four, ours, 1), [ours], 30)
    assert ours.close() == {}
    read = [(name, offset) for answer in answers for name, offsets in answer["got"].items() for offset in offsets]
    read += [(f"t-{line.split()[0]}", int(line.split()[1])) for line in other.lines()]
    assert sorted(read) == sorted((f"t-{number}", offset) for number in range(4) for offset in range(25))


def test_each_expires_the_other(four, elsewhere):
    four.table.end("another", four.table.begin("another"))  # creates the table
    other = elsewhere()
    until = time.monotonic() + 30
    while len(other.lines()) < 80:
        assert time.monotonic() < until
        time.sleep(0.1)
    ours = four.open(*four.start(), assignor="range")
    four.until(lambda: of_ours(four, ours, 2), [ours], 30)
    other.kill()
    began = time.monotonic()
    four.until(lambda: of_ours(four, ours, 1), [ours], 30)
    assert time.monotonic() - began > 0.8 * SESSION_MS / 1000
    again = elsewhere()
    four.until(lambda: of_ours(four, ours, 2), [ours], 30)
    ours.kill()
    until = time.monotonic() + 30
    while not of_ours(four, ours, 1):
        assert time.monotonic() < until
        time.sleep(0.1)
    for number in range(4):
        four.topic.append(records(1), number)
    until = time.monotonic() + 20
    while len(again.lines()) < 4:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_the_other_one_is_fenced_as_ours_is(four, elsewhere):
    """Frozen for longer than its session, it commits nothing, and joins again under a new id."""
    ours = four.open(*four.start(), assignor="range")
    ours.poll(ms=100)
    other = elsewhere()
    four.until(lambda: of_ours(four, ours, 2), [ours], 30)
    other.popen.send_signal(19)
    four.until(lambda: of_ours(four, ours, 1), [ours], 30)
    before = four.positions()
    other.popen.send_signal(18)
    four.until(lambda: "fenced" in other.lines() and of_ours(four, ours, 2), [ours], 30)
    assert four.positions() == before
