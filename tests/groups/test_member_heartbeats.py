"""Heartbeats that others do not see, and members that die while others work."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from groups.bucket_model import BucketModel
from groups.member_world import Group, Process, Thread
from groups.programs import WAIT_S, World, apart, share_out, until
from handmade import Topic, records
from heartbeat_contract import HeartbeatContract, Make
from owners import Own

import sparklog
from sparklog.groups.member import heartbeat_places
from sparklog.groups.member.heartbeat_places import default_interval_ms
from sparklog.groups.member.heartbeater import Heartbeater
from sparklog.groups.member.heartbeats import Heartbeats

SESSION_S = Thread.mortal_ms // 1000


def beat(group: Group, members: list[Any], seconds: int, *, append: bool = False) -> None:
    """Lets so many seconds pass, in which members write heartbeats, poll and commit."""
    for _ in range(0, seconds, 5):
        group.clock.now += 5
        if append:
            group.append(1)
        for each in members:
            each.membership.heartbeat()
            each.poll(commits=True)


def unseen(threads: Group, count: int, **more: Any) -> list[Any]:
    """Members of which each has a folder of heartbeats of its own, as in containers that share the table alone."""
    found = []
    for number in range(count):
        (member,) = threads.start()
        table = apart(threads.table, threads.folder / f"container-{number}.members")
        threads.open(member, table=table, mortal=True, heartbeat_interval_ms=20_000, **more)
        found.append(member)
    threads.until(lambda: (state := threads.state()) is not None and len(state.members) == count, found)
    return found


def expiries(group: Group) -> list[str]:
    return [each.why or "" for each in group.table.changes("g") if "expires" in (each.why or "")]


@pytest.mark.slow
def test_members_that_commit_are_not_expired_where_their_heartbeats_are_not_seen(threads: Group, caplog: pytest.LogCaptureFixture):
    members = unseen(threads, 2)
    threads.until_even(*members)
    beat(threads, members, 5 * SESSION_S, append=True)
    assert expiries(threads) == []
    for number in (0, 1):
        told = [each.getMessage() for each in caplog.records if f"container-{number}.members" in each.getMessage()]
        assert len(told) == 1 and "Mount one folder beside the table" in told[0]


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 6])
def test_members_that_commit_nothing_are_expired_once_where_their_heartbeats_are_not_seen(
    threads: Group, caplog: pytest.LogCaptureFixture, count: int
):
    """Also those that own nothing, since there are four partitions."""
    members = unseen(threads, count)
    beat(threads, members, 3 * SESSION_S)
    assert expiries(threads)
    assert "others do not see the heartbeats" in caplog.text
    beat(threads, members, 5 * SESSION_S)
    # The member that expired the others may have its turn later.
    assert len(", ".join(expiries(threads)).split(", ")) <= count
    assert threads.is_even(2) if count == 2 else len(threads.state().members) == count


@pytest.mark.slow
def test_a_member_that_died_is_expired_where_its_heartbeats_were_not_seen(threads: Group):
    one, two = unseen(threads, 2)
    threads.until_even(one, two)
    beat(threads, [one, two], 2 * SESSION_S, append=True)
    beat(threads, [one], SESSION_S + 10, append=True)
    (why,) = expiries(threads)
    assert why.startswith("expires ")
    assert len(threads.state().members) == 1


@pytest.mark.soak
def test_containers_that_mount_the_table_alone_share_it(processes: Group):
    """Each has the table mounted beside a folder of heartbeats of its own."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("the system does not let this user mount folders: unshare -rm is refused")
    Own(processes.table, "other")
    members = []
    for number in range(2):
        place = processes.folder / f"container-{number}" / "offsets"
        place.mkdir(parents=True)
        bind = f'mount --bind "{processes.folder / "offsets"}" "{place}" && exec "$@"'
        within = type("Within", (Process,), {"within": ("unshare", "-rm", "sh", "-c", bind, "sh")})(processes.clock)
        processes.started.append(within)
        members.append(processes.open(within.ready(), table=str(place), session_timeout_ms=6_000, heartbeat_interval_ms=500))
    processes.until_even(*members)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for each in members:
            each.poll(ms=200)
    assert {each.name for each in processes.folder.glob("*/offsets.members")} == {"offsets.members"}
    assert len(list(processes.folder.glob("container-*/offsets.members/*/*.json"))) == 2
    assert len(expiries(processes)) <= 2
    members[0].kill()
    processes.until_even(members[1])


def test_a_member_that_woke_up_is_no_one_whose_heartbeats_are_not_seen(threads: Group, caplog: pytest.LogCaptureFixture):
    one, two = threads.members(2, mortal=1)
    one.freeze()
    threads.until_even(two)
    one.wake()
    threads.until_even(one, two)
    assert "others do not see the heartbeats" not in caplog.text


def test_a_member_that_dies_while_others_work_is_expired_without_a_poll(threads: Group) -> None:
    """It joins after the last poll of the others, and takes partitions of a topic that they do not read."""
    Topic(threads.folder / "root", "u", partitions=2).append(records(3), 1)
    given = {"heartbeat_interval_ms": 20_000}
    one = threads.member(max_poll_interval_ms=10 * Thread.mortal_ms, **given)
    one.poll()
    two = threads.member(mortal=True, names=["t", "u"], **given)
    two.poll()
    dead = two.membership.id
    assert {share.owner for (topic, _), share in threads.state().shares.items() if topic == "u"} == {dead}
    two.end()  # as if it were killed
    for _ in range(0, SESSION_S + 10, 5):
        threads.clock.now += 5
        one.membership.heartbeat()
    assert expiries(threads) == [f"expires {dead}"]
    assert len(threads.state().members) == 1


def test_a_member_that_joins_expires_those_that_died_under_the_same_assignor(world: World) -> None:
    one = world.consumer("t", session_timeout_ms=1_500)
    one.poll(0)
    world.members[one].heartbeater.stop(5)  # as if it were killed
    two = world.consumer("t")
    end = time.monotonic() + WAIT_S
    while len(two.assignment()) < 2:
        assert time.monotonic() < end
        two.poll(20)


ENDS_WITHOUT_CLOSE = """
import sys
from sparklog import Consumer
given = {"group_id": "g", "table": sys.argv[2], "partition_assignment_strategy": "sticky", "heartbeat_interval_ms": 5}
members = [Consumer(sys.argv[1], "t", auto_offset_reset="earliest", enable_auto_commit=False, **given) for _ in range(4)]
for _ in range(3):
    for member in members:
        member.poll(10)
        member.commit()
"""


def test_a_program_that_ends_without_a_close_ends_in_order(threads: Group) -> None:
    """A heartbeat that is on its way is waited for: deltalake ends the process by a signal where Python ends beneath it."""
    command = [sys.executable, "-c", ENDS_WITHOUT_CLOSE, str(threads.folder / "root")]
    ended = [subprocess.run([*command, str(threads.folder / f"offsets-{each}")], capture_output=True) for each in range(3)]
    assert [(each.returncode, each.stderr) for each in ended] == [(0, b"")] * 3


def test_a_member_takes_a_share_up_with_its_next_poll_and_does_not_wait_for_its_heartbeat(world: World):
    """The heartbeats of the second member come after the test has ended."""
    one, two = world.consumer("t"), world.consumer("t", heartbeat_interval_ms=1_000 * WAIT_S, session_timeout_ms=3_000 * WAIT_S)
    share_out(one, two)
    one.close()
    until(lambda: len(two.assignment()) == 2, two)


def test_an_observer_looks_again_when_the_session_of_a_silent_member_ends(tmp_path: Path):
    """Else it would look with its next heartbeat, which may come a tenth of a session later."""
    clock, folder = iter([0, 0, 0, 2, 2, 7.5, 7.5, 10, 10]), str(tmp_path / "offsets")
    heartbeats = Heartbeats(folder, "g")
    heartbeater = Heartbeater(heartbeats, 10, lambda members: dict.fromkeys(members, 0), lambda: next(clock))
    for member in ("a", "b"):
        heartbeats.write(member, 1, 1)
    assert heartbeater.pause_s(3) == 3
    pauses = []
    for silent in ([], [], [], ["a"]):
        assert heartbeater.silent({"a": 10, "b": 30}) == silent
        pauses.append(heartbeater.pause_s(3))
    assert pauses == [3, 3, 2.5, 3]


def test_a_member_looks_each_tenth_of_a_second_whether_it_was_called(tmp_path: Path):
    """Else each poll that returns few records would look at a file."""
    now = 0.0
    heartbeats = Heartbeats(str(tmp_path / "offsets"), "g")
    heartbeater = Heartbeater(heartbeats, 10, lambda members: dict.fromkeys(members, 0), lambda: now)
    heartbeats.write("a", 1, 1)
    assert not heartbeater.is_called("a")
    heartbeater.call(["a", "gone"])
    assert not heartbeater.is_called("a")
    now = 0.25
    assert heartbeater.is_called("a")
    now = 0.5
    assert not heartbeater.is_called("a")


def test_a_member_looks_once_a_second_in_a_bucket_whether_it_was_called() -> None:
    """Each look is a request."""
    now = 0.0
    bucket = BucketModel(now=lambda: now, step=lambda: None)
    heartbeater = Heartbeater(Heartbeats("table", "g", place=bucket), 10, lambda members: dict.fromkeys(members, 0), lambda: now)
    for _ in range(100):
        heartbeater.is_called("a")
        now += 0.05
    assert bucket.requests == {"HEAD": 5}


class TestInFolder(HeartbeatContract):
    @pytest.fixture
    def make(self, tmp_path: Path) -> Make:
        return lambda group: Heartbeats(str(tmp_path / "offsets"), group)


class TestInBucketModel(HeartbeatContract):
    """The model of a bucket, by which the simulation of members runs, keeps the promises of a bucket."""

    @pytest.fixture
    def make(self) -> Make:
        buckets = defaultdict[str, BucketModel](lambda: BucketModel(now=lambda: 0.0, step=lambda: None))
        return lambda group: Heartbeats("table", group, place=buckets[group])


def test_the_default_interval_depends_on_the_place() -> None:
    assert default_interval_ms("/data/offsets", 45_000) == 5_000
    assert default_interval_ms("s3://bucket/offsets", 45_000) == 15_000
    assert default_interval_ms("s3a://bucket/offsets", 10_000) == 3_333


def test_members_in_a_bucket_need_obstore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat_places, "find_spec", lambda _: None)
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_MEMBERS_EXTRA.*obstore"):
        Heartbeats("s3://bucket/offsets", "g").marks()


def test_a_table_in_a_store_where_members_were_never_tried_has_none() -> None:
    for table in ("gs://bucket/offsets", "abfss://container@account/offsets", "hdfs://host/offsets"):
        with pytest.raises(sparklog.CallError, match="on a disk or in a bucket of S3"):
            Heartbeats(table, "g").marks()
