"""An operator's change of a group whose members commit after each record: it is made although they never pause by themselves."""

from __future__ import annotations

import concurrent.futures
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import deltalake
import numpy as np
import pyarrow as pa
import pytest
from groups.member_world import REPOSITORY, Group
from groups.programs import count_refreshes
from handmade import Topic, batch, records
from owners import Own

import sparklog
from sparklog import Consumer
from sparklog.groups import OffsetTable, rows
from sparklog.groups.member import standing
from sparklog.groups.table import lake

WAIT_S = 600
PARTITIONS = 12


def with_history(table: OffsetTable, topic: Topic, count: int) -> None:
    """Gives group `g` so many rows in one file, as if it had run for long: all are of the first offset."""
    own = Own(table, "g")
    place = np.arange(count)
    null, same = pa.nulls(count), {"group": "g", "topic": "t", "topic_id": topic.versions[-1]["topicId"]}
    columns = {
        **{name: pa.array([value] * count) for name, value in same.items()},
        **{name: pa.array(np.zeros(count, "int64") + value) for name, value in (("generation", 1), ("offset", 0), ("seq", 1))},
        "partition": pa.array(place % PARTITIONS),
        "committed_at": pa.array(1_790_000_000_000_000 + place * 200_000, pa.timestamp("us", "UTC")),
    }
    found = pa.table({name: columns.get(name, null) for name in rows.SCHEMA.names}).cast(rows.SCHEMA)
    deltalake.write_deltalake(table.path, found, mode="append")
    own.end()


@contextmanager
def committing(table: OffsetTable, folder: Path, processes: int, threads: int) -> Iterator[None]:
    """Members that share topics `t` and `u`, once each partition has an owner."""
    driver, stop = Path(__file__).parent / "committing_driver.py", folder / "stop"
    command = [sys.executable, str(driver), str(table.root), table.path, str(stop), str(threads)]
    started = [subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}) for _ in range(processes)]
    try:
        end = time.monotonic() + WAIT_S
        while not is_even(table, processes * threads):
            assert time.monotonic() < end, table.members("g")
            time.sleep(0.5)
        yield
        stop.touch()
        assert [each.wait(WAIT_S) for each in started] == [0] * processes
    finally:
        for each in started:
            each.kill()
            each.wait()


def is_even(table: OffsetTable, members: int) -> bool:
    state = table.generations.group("g").state
    return state is not None and len(state.members) == members and all(share.owner for share in state.shares.values())


def operate(folder: Path, *, processes: int, threads: int, history: int) -> dict[str, float]:
    """Resets the group, drops a topic of it and deletes it beside its members; the seconds that each took."""
    topics = {name: Topic(folder / "root", name, partitions=PARTITIONS) for name in ("t", "u")}
    for each in topics.values():
        each.commit(*(each.data(batch(records(3000)), number) for number in range(PARTITIONS)))
    table = OffsetTable(folder / "root", folder / "offsets")
    with_history(table, topics["t"], history)
    took: dict[str, float] = {}
    refreshes: Counter[bool] = Counter()
    # However many versions the members commit between two refreshes, the second reads on.
    with committing(table, folder, processes, threads), mock.patch.object(lake, "_READ_ON", 10**9):
        table = OffsetTable(folder / "root", folder / "offsets")
        count_refreshes(table, refreshes)

        def timed(name: str, act: Callable[[], object]) -> None:
            began, used, before = time.monotonic(), time.process_time(), deltalake.DeltaTable(table.path).version()
            act()
            seconds, cpu = time.monotonic() - began, time.process_time() - used
            versions = deltalake.DeltaTable(table.path).version() - before
            print(f"{name}: {seconds:.1f} s, CPU {cpu:.1f} s, {versions} versions, load {os.getloadavg()[0]:.1f}")
            took[name] = seconds

        timed("reset", lambda: table.reset("g", {"t": {0: 1}}, dry_run=False, force=True))
        timed("drop", lambda: table.delete("g", topics="u", force=True))
        timed("delete", lambda: table.delete("g", force=True))
    assert not table.generations.group("g").exists
    assert refreshes[True] == 1, f"all {history:,} rows are read once: {refreshes}"
    return took


def test_an_operator_goes_first_beside_members_that_commit_all_the_time(tmp_path: Path) -> None:
    operate(tmp_path, processes=1, threads=3, history=20_000)


def test_members_hold_their_commits_until_the_operator_is_done_although_another_one_joins(
    table: OffsetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "HOLD_S", WAIT_S)
    given = {"group_id": "g", "table": table.path, "partition_assignment_strategy": "sticky", "auto_offset_reset": "earliest"}
    one, two = (Consumer(table.root, "t", enable_auto_commit=False, heartbeat_interval_ms=100, **given) for _ in range(2))
    while sum(map(one.position, one.assignment())) < 35:
        one.poll(100)
    assert table.generations.announce("g")
    with ThreadPoolExecutor(2) as threads:
        commit, join = threads.submit(one.commit), threads.submit(two.poll, 0)
        end = time.monotonic() + WAIT_S
        while len(table.members("g")) < 2:
            assert time.monotonic() < end
            time.sleep(0.05)
        with pytest.raises(concurrent.futures.TimeoutError):  # in Python 3.10 it is not the built-in one
            commit.result(3)
        table.reset("g", {"t": {0: 5, 1: 5}}, dry_run=False, force=True)
        with pytest.raises(sparklog.SparklogError, match="MEMBER_FENCED"):
            commit.result(WAIT_S)
        join.result(WAIT_S)
    assert [each.offset for each in table.positions("g")] == [5, 5]
    for each in (one, two):
        each.close()


def test_a_heartbeat_commits_nothing_while_an_operator_asks_members_to_wait(threads: Group) -> None:
    """It commits once the operator is done."""
    member = threads.member(heartbeat_interval_ms=30_000, max_poll_interval_ms=600_000)
    threads.until_read(80, member)
    member.poll(commits=True)
    membership, versions = member.membership, threads.table.generations.versions

    def commits_with_a_heartbeat() -> bool:
        before = versions([membership.id])
        membership.heartbeat()
        return bool(versions([membership.id]) != before)

    assert not commits_with_a_heartbeat()
    assert threads.table.generations.announce("g")
    assert not commits_with_a_heartbeat()
    membership.poll()  # it knows that the operator asks
    threads.clock.now += 61
    assert not commits_with_a_heartbeat()
    threads.table.reset("g", {"t": {3: 5}}, dry_run=False, force=True)
    assert not commits_with_a_heartbeat()
    membership.poll()
    assert commits_with_a_heartbeat()


@pytest.mark.soak
def test_an_operator_takes_seconds_beside_twenty_members_and_a_long_history(tmp_path: Path) -> None:
    """For an idle machine of two cores, which the members keep busy."""
    took = operate(tmp_path, processes=2, threads=10, history=300_000)
    assert max(took.values()) < 5, took
