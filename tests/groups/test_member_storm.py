"""Many members that are killed, frozen and started at random: no record is lost, and only those that died leave some to be read twice."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from groups.member_world import REPOSITORY
from handmade import Topic, batch, records

from sparklog import Consumer
from sparklog.groups import OffsetTable
from sparklog.groups.member.state import GroupState
from sparklog.groups.rows import is_note, positions


class Storm:
    """Processes with members of one group, which reads a topic that grows."""

    beats = 10
    """The heartbeats in a session."""
    slack_s = 10.0
    """For how long a partition may have no owner beyond a session for each dead member that it waited for."""

    def __init__(self, folder: Path, seed: int, partitions: int, threads: int, session_s: float) -> None:
        self.folder, self.partitions, self.threads, self.session_s = folder, partitions, threads, session_s
        self.random = random.Random(seed)
        self.topic = Topic(folder / "root", "t", partitions=partitions)
        self.written = 0
        self.write(10)
        self.table = self.opened()
        self.live: dict[int, subprocess.Popen[bytes]] = {}
        self.frozen: dict[int, float] = {}
        self.started = 0
        self.troubled: set[int] = set()
        """The processes that were killed or frozen."""
        self.looked = time.time()
        self.owned: dict[tuple[str, int], tuple[str, int, float]] = {}
        """The owner of each partition, the epoch, and the last look before which the partition was not the owner's in this epoch."""
        self.without: dict[tuple[str, int], tuple[float, set[str]]] = {}
        """The partitions that no living program was told to have: since when, and the dead members that each has waited for."""
        self.longest = 0.0
        """The longest time for which no living program was told to have a partition."""
        self.beyond = -session_s
        """How much longer a partition had none than a session for each dead member that it waited for, at most."""
        self.worst: object = None
        """That partition: for how long it had none, the dead members, and its share then."""

    def opened(self) -> OffsetTable:
        """The table of the group, with the root that members read."""
        return OffsetTable(self.folder / "root", self.folder / "offsets")

    def environment(self) -> dict[str, str]:
        """That of the processes."""
        return {**os.environ, "PYTHONPATH": str(REPOSITORY)}

    def write(self, count: int) -> None:
        self.topic.commit(*(self.topic.data(batch(records(count)), number) for number in range(self.partitions)))
        self.written += count

    def start(self) -> None:
        self.started += 1
        command = [sys.executable, str(Path(__file__).parent / "storm_driver.py"), str(self.table.root), self.table.path]
        command += [str(self.folder / f"p{self.started}"), str(self.threads), str(round(1000 * self.session_s)), str(self.beats)]
        self.live[self.started] = subprocess.Popen(command, env=self.environment())

    def kill(self) -> None:
        number = self.random.choice([each for each in self.live if each not in self.frozen])
        process = self.live.pop(number)
        process.kill()
        process.wait()
        self.troubled.add(number)

    def freeze(self) -> None:
        number = self.random.choice([each for each in self.live if each not in self.frozen])
        self.live[number].send_signal(signal.SIGSTOP)
        self.frozen[number] = time.monotonic() + 1.5 * self.session_s
        self.troubled.add(number)

    def look(self) -> GroupState | None:
        """Wakes what was frozen for long enough, and notes which partitions have no living owner."""
        for number in [each for each, until in self.frozen.items() if time.monotonic() > until]:
            del self.frozen[number]
            self.live[number].send_signal(signal.SIGCONT)
        now = time.time()
        state, told = self.table.generations.group("g").state, self.told()
        lives = {f"p{each}" for each in self.live.keys() - self.frozen.keys()}
        gone = {each for each in state.members if each.partition("-")[0] not in lives} if state else set()
        for each, share in state.shares.items() if state else ():
            if share.owner is None or share.owner in gone or not self.is_told(each, share.owner, share.epoch, told):
                since, dead = self.without.setdefault(each, (now, set()))
                # A member that is dead and not known to be dead is given partitions, too.
                dead |= gone & {share.owner, share.wanted_by}
                self.longest = max(self.longest, now - since)
                beyond = now - since - max(1, len(dead)) * self.session_s
                if beyond > self.beyond:
                    self.beyond, self.worst = beyond, (each, now - since, dead, share)
            else:
                self.without.pop(each, None)
        self.looked = now
        return state

    def told(self) -> dict[tuple[str, int], float]:
        """By process and partition, when the program was last told of the partition."""
        its = ((path.name.partition("-")[0], path.read_text(encoding="utf-8")) for path in self.folder.glob("*.assigned"))
        words = ((process, *line.split()) for process, text in its for line in text.splitlines())
        return dict(sorted(((process, int(number)), float(at)) for process, number, at in (each for each in words if len(each) == 3)))

    def is_told(self, partition: tuple[str, int], owner: str, epoch: int, told: dict[tuple[str, int], float]) -> bool:
        """Whether the program of an owner was told of a partition in this epoch. One that was frozen, and not expired, goes on with it."""
        if self.owned.get(partition, ("", 0, 0.0))[:2] != (owner, epoch):
            self.owned[partition] = (owner, epoch, self.looked)
        return told.get((owner.partition("-")[0], partition[1]), 0.0) >= self.owned[partition][2]

    def is_stable(self) -> bool:
        state = self.look()
        if state is None or len(state.members) != self.threads * len(self.live):
            return False
        return all(share.owner == share.wanted_by is not None for share in state.shares.values())

    def until_stable(self, seconds: float) -> float:
        began = time.monotonic()
        while not self.is_stable():
            assert time.monotonic() - began < seconds, self.table.changes("g")
            time.sleep(0.3)
        return time.monotonic() - began

    def end(self) -> None:
        for process in self.live.values():
            process.kill()
            process.wait()

    def processed(self) -> dict[tuple[int, int], list[tuple[float, int]]]:
        """By partition and offset, when and by which process it was processed."""
        found = defaultdict(list)
        for path in self.folder.glob("p*-*.txt"):
            for line in path.read_text(encoding="utf-8").splitlines():
                if len(words := line.split()) == 3:
                    found[int(words[0]), int(words[1])].append((float(words[2]), int(path.name[1:].split("-")[0])))
        return found


def storm(
    folder: Path, seed: int, *, processes: int, threads: int, partitions: int, kills: int, freezes: int, pause_s: float, session_s: float,
    kind: Callable[..., Storm] = Storm,
) -> Storm:  # fmt: skip
    run = kind(folder, seed, partitions, threads, session_s)
    try:
        for _ in range(processes):
            run.start()
        first = run.until_stable(300)
        rounds = [["kill", "start"]] * kills + [["freeze"]] * freezes
        run.random.shuffle(rounds)
        for act in (act for acts in rounds for act in acts):
            if act == "start" or len(run.live) - len(run.frozen) > 1:
                getattr(run, act)()
            run.write(2)
            until = time.monotonic() + run.random.uniform(0.2, 2) * pause_s
            while time.monotonic() < until:
                run.look()
                time.sleep(0.3)
        while run.frozen:
            run.look()
            time.sleep(0.3)
        last = run.until_stable(session_s + 120)
        until = time.monotonic() + 60
        while any(each.offset < run.written for each in run.table.positions("g")) or len(run.table.positions("g")) < partitions:
            assert time.monotonic() < until, "records are left"
            time.sleep(0.5)
    finally:
        run.end()
    found = run.processed()
    twice = {place: sorted(by) for place, by in found.items() if len(by) > 1}
    notes = [row for row in positions(run.table.lake.rows("g", current=False)) if is_note(row)]
    least, made = bound(notes)
    # A machine that has no time for a process freezes it, too: others expire its members.
    starved = expired(notes) - run.troubled
    seconds = (notes[-1].committed_at - notes[0].committed_at).total_seconds()
    print(f"\nseed {seed}: {processes * threads} members, {partitions} partitions, {len(found):,} records")
    print(f"{kills} kills and as many joins, {freezes} freezes, {len(starved)} starved: {len(twice):,} records read twice")
    print(f"{made} moves, where {least} have to be")
    print(
        f"session {session_s:g} s; longest without an owner {run.longest:.1f} s, {run.beyond:.1f} s beyond a session for each dead member"
    )
    print(f"load {os.getloadavg()[0]:.1f}; stable after {first:.1f} s at first, {last:.1f} s at last")
    print(f"{len(notes)} changes of the state in {seconds:.0f} s, {len(notes) / seconds:.1f} a second")
    print(", ".join(f"{why} {count}" for why, count in Counter(json.loads(row.metadata)["why"].split()[0] for row in notes).most_common()))
    assert found.keys() == {(number, offset) for number in range(partitions) for offset in range(run.written)}, seed
    for place, by in twice.items():
        # One that was frozen ends with the batch in hand when it wakes, after others have read it.
        assert sum(process not in run.troubled | starved for _, process in by) <= 1, (seed, place, by)
    assert made == least
    assert run.beyond < run.slack_s, (seed, run.beyond, run.worst)
    return run


def expired(notes: list) -> set[int]:
    """The processes of which members were expired."""
    said = [json.loads(row.metadata)["why"] for row in notes]
    gone = [each for why in said if why.startswith("expires ") for each in why.removeprefix("expires ").split(", ")]
    return {int(each.partition("-")[0][1:]) for each in gone}


def bound(notes: list) -> tuple[int, int]:
    """How many partitions must go from a member that stays to another one, by the sizes of shares alone; and how many did."""
    least = made = 0
    before: GroupState | None = None
    for row in notes:
        state = GroupState.of(json.loads(row.metadata))
        if state and before and state.members.keys() != before.members.keys():
            owners = {each: owner for each, share in before.shares.items() if (owner := share.owner or share.wanted_by) in state.members}
            now = {each: share.wanted_by for each, share in state.shares.items()}
            made += sum(now[each] != owner for each, owner in owners.items())
            sizes = Counter(owners.values())
            low, extra = divmod(len(now), len(state.members))
            kept = sum(min(size, low) for size in sizes.values()) + min(extra, sum(size > low for size in sizes.values()))
            least += len(owners) - kept
        before = state
    return least, made


def test_a_storm_counts_a_partition_until_the_program_of_its_owner_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was frozen, and woke before it was expired, goes on with its partitions."""

    def told(process: str) -> None:
        (tmp_path / f"{process}-0.assigned").write_text(f"0 {time.time()}\n")

    def join(process: str) -> Consumer:
        monkeypatch.setattr(socket, "gethostname", lambda: process)
        group = {"group_id": "g", "table": run.table, "partition_assignment_strategy": "sticky", "auto_offset_reset": "earliest"}
        consumer = Consumer(tmp_path / "root", "t", **group)
        consumer.poll(0)
        return consumer

    run = Storm(tmp_path, 0, partitions=1, threads=1, session_s=45)
    process: Any = None
    run.live = {1: process, 2: process}
    first = join("p1")
    run.look()
    assert list(run.without) == [("t", 0)], "it is not told yet"
    told("p1")
    run.look()
    assert not run.without
    run.frozen = {1: float("inf")}
    run.look()
    assert list(run.without) == [("t", 0)]
    run.frozen = {}
    run.look()
    assert not run.without
    first.close()
    second = join("p2")
    run.look()
    assert list(run.without) == [("t", 0)]
    told("p2")
    run.look()
    assert not run.without
    second.close()


@pytest.mark.soak
def test_a_small_storm(tmp_path: Path) -> None:
    storm(tmp_path, 1, processes=3, threads=2, partitions=12, kills=2, freezes=1, pause_s=2, session_s=4)


@pytest.mark.soak
def test_fifty_members(tmp_path: Path) -> None:
    storm(tmp_path, random.randrange(10**6), processes=10, threads=5, partitions=200, kills=20, freezes=5, pause_s=6, session_s=45)
