"""A second implementation of the protocol, from the document alone, in one group with ours."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from groups.member_world import LASTING_MS, REPOSITORY, WAIT_S, Group, Process
from owners import Own


class Elsewhere:
    """A process of the other implementation, and the records that it read so far."""

    def __init__(self, of: Group, session_ms: int) -> None:
        self.file = of.folder / f"other-{time.monotonic_ns()}.txt"
        command = [sys.executable, str(Path(__file__).parent / "other_member.py")]
        command += [str(of.folder / "root"), str(of.folder / "offsets"), "g", "t", str(session_ms)]
        with self.file.open("w") as out:
            self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, env={**os.environ, "PYTHONPATH": str(REPOSITORY)})

    def lines(self) -> list[str]:
        return self.file.read_text().splitlines()

    def leave(self) -> None:
        assert self.popen.stdin
        self.popen.stdin.close()
        assert self.popen.wait(WAIT_S) == 0

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()
        assert self.popen.stdin
        self.popen.stdin.close()


@pytest.fixture
def elsewhere():
    started: list[Elsewhere] = []

    def start(of: Group, session_ms: int = LASTING_MS) -> Elsewhere:
        started.append(Elsewhere(of, session_ms))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def wait(reached: Callable[[], object]) -> None:
    until = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_both_share_a_group_and_hand_over(threads, elsewhere):
    ours = threads.member(partition_assignment_strategy="range")
    answers = threads.until_read(80, ours, commits=True)
    other = elsewhere(threads)
    answers += threads.until(lambda: threads.is_even(2), [ours])
    assert set(threads.owners().values()) == set(threads.state().members)
    threads.append(5)
    answers += threads.until(lambda: len(other.lines()) == 10, [ours])
    answers += threads.until_read(90 - sum(len(offsets) for each in answers for offsets in each["got"].values()), ours)
    other.leave()
    answers += threads.until_even(ours)
    assert ours.close() == {}
    read = [(name, offset) for answer in answers for name, offsets in answer["got"].items() for offset in offsets]
    read += [(f"t-{line.split()[0]}", int(line.split()[1])) for line in other.lines()]
    assert sorted(read) == sorted((f"t-{number}", offset) for number in range(4) for offset in range(25))
    assert set(threads.positions().values()) == {25}


@pytest.mark.soak
def test_each_expires_the_other(processes, elsewhere):
    Own(processes.table, "another").end()  # creates the table
    other = elsewhere(processes, Process.mortal_ms)
    wait(lambda: len(other.lines()) >= 80)
    ours = processes.member(partition_assignment_strategy="range", mortal=True)
    processes.until(lambda: processes.is_even(2), [ours])
    other.kill()
    processes.until_even(ours)
    again = elsewhere(processes)
    processes.until(lambda: processes.is_even(2), [ours])
    ours.kill()
    wait(lambda: processes.is_even(1))
    processes.append(1)
    wait(lambda: len(again.lines()) >= 4)


@pytest.mark.soak
def test_the_other_one_is_fenced_as_ours_is(processes, elsewhere):
    """Frozen for longer than its session, it commits nothing, and joins again under a new id."""
    ours = processes.member(partition_assignment_strategy="range")
    ours.poll(ms=100)
    other = elsewhere(processes, Process.mortal_ms)
    processes.until(lambda: processes.is_even(2), [ours])
    other.popen.send_signal(19)
    processes.until_even(ours)
    before = processes.positions()
    other.popen.send_signal(18)
    processes.until(lambda: "fenced" in other.lines() and processes.is_even(2), [ours])
    assert processes.positions() == before
