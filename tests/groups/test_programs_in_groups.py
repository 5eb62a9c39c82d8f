"""Programs beside a group: operators, callbacks that raise or close, patterns, forks; each was once a fault."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from groups.programs import WAIT_S, World, read, share_out, until
from handmade import records

import sparklog
from sparklog import Consumer, TopicPartition
from sparklog.groups import rows
from sparklog.groups.member.heartbeats import clock
from sparklog.groups.member.state import Registered


def test_a_reset_between_a_look_at_the_group_and_a_take_holds(world: World) -> None:
    world.create("u")
    one = world.consumer("t", auto_commit_interval_ms=0, heartbeat_interval_ms=30_000, **world.told)
    read(one)
    world.events.clear()
    one.subscribe(["t", "u"])
    world.reset(5)
    assert read(one, 70) == {"t-0": list(range(5, 20)), "t-1": list(range(5, 20)), "u-0": list(range(20)), "u-1": list(range(20))}
    about_t = [event for event, partitions in world.events if "t-0" in partitions]
    assert about_t == ["on_lost", "on_assign"]
    one.close()
    assert world.positions() == {0: 20, 1: 20}


def test_a_topic_that_comes_while_the_group_reads_is_read_from_its_start_by_one_that_joins_first(world: World) -> None:
    late: Any = {"auto_offset_reset": "latest", "heartbeat_interval_ms": 30_000}
    one = world.consumer(**late)
    one.subscribe(pattern="t")
    one.poll(0)
    world.create("tb", 10)
    two = world.consumer(**late)
    two.subscribe(pattern="t")
    world.members[one].heartbeat()
    found = read(two)
    for name, its in read(one).items():
        found.setdefault(name, []).extend(its)
    assert {name: its for name, its in found.items() if name.startswith("tb")} == {"tb-0": list(range(10)), "tb-1": list(range(10))}


def test_a_topic_that_its_pattern_meets_is_read_from_its_start_by_the_next_process(world: World) -> None:
    for _ in range(2):
        one = world.consumer(auto_offset_reset="latest")
        one.subscribe(pattern="t")
        found = read(one)
        one.close()
        if not _:
            assert found == {}
            world.create("tb", 10)
    assert found == {"tb-0": list(range(10)), "tb-1": list(range(10))}


@pytest.mark.parametrize("strategy", ["exclusive", "sticky"])
def test_latest_begins_with_what_is_committed_after_the_call(world: World, strategy: str) -> None:
    one = world.consumer("t", partition_assignment_strategy=strategy, auto_offset_reset="latest")
    for number in (0, 1):
        world.topics["t"].append(records(10), number)
    assert read(one, 20) == {"t-0": list(range(20, 30)), "t-1": list(range(20, 30))}


def test_close_commits_what_is_still_held_where_one_partition_was_reset(world: World) -> None:
    one = world.consumer("t")
    read(one)
    world.table.reset("g", {"t": {0: 5}}, dry_run=False, force=True)
    one.close()
    assert world.positions() == {0: 5, 1: 20}


def test_a_commit_names_what_is_lost_and_commits_the_rest(world: World) -> None:
    one = world.consumer("t", enable_auto_commit=False)
    read(one)
    world.table.reset("g", {"t": {0: 5}}, dry_run=False, force=True)
    with pytest.raises(sparklog.GenerationFencedError, match=r"PARTLOG_MEMBER_FENCED.*partition 0 ") as raised:
        one.commit()
    assert world.positions() == {0: 5, 1: 20}
    assert "The position in this partition was not committed" in str(raised.value)  # not: nothing was
    assert "or by this consumer after a reset" in str(raised.value)  # not: another member reads it


def test_a_commit_in_a_topic_that_is_gone_for_the_whole_group_names_the_topic(world: World) -> None:
    """It said that another member reads the partition."""
    world.create("u")
    one = world.consumer("t", "u", enable_auto_commit=False, heartbeat_interval_ms=30_000)
    read(one)
    two = world.consumer("t", heartbeat_interval_ms=30_000)
    world.topics["u"].delete()
    two.poll(0)  # the group learns it
    with pytest.raises(sparklog.CallError, match="PARTLOG_TOPIC_NOT_FOUND"):
        one.commit()


def test_a_change_of_subscription_revokes_with_positions_and_without_an_error(world: World) -> None:
    world.create("u")
    seen = []

    def on_revoke(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        seen.extend(consumer.position(each) for each in partitions)
        consumer.commit()

    one = world.consumer("t", enable_auto_commit=False, on_revoke=on_revoke, on_lost=lambda *_: seen.append(-1))
    read(one)
    one.subscribe(["u"])
    assert (seen, world.positions()) == ([20, 20], {0: 20, 1: 20})
    assert read(one, 40).keys() == {"u-0", "u-1"}


def test_a_pattern_keeps_its_flags(world: World) -> None:
    one = world.consumer()
    one.subscribe(pattern=re.compile("T # of orders", re.IGNORECASE | re.VERBOSE))
    assert read(one, 40).keys() == {"t-0", "t-1"}


def test_a_pattern_of_another_language_is_left_out(world: World, caplog: pytest.LogCaptureFixture) -> None:
    one = world.consumer("t")
    one.poll(0)
    number, generation, state = world.table.generations.state("g")
    assert state is not None
    joined = dataclasses.replace(state, members={**state.members, "other-1": Registered("other-1", (), r"\p{Lower}+")})
    world.table.generations.commit("g", number + 1, generation, [rows.note_of_members("g", generation, "other-1", "joins", joined)])
    world.members[one].heartbeat()
    read(one)
    assert len(one.assignment()) == 2
    assert r"\\p{Lower}+" in caplog.text


def test_a_callback_that_raises_reaches_the_caller_and_the_partition_goes(world: World) -> None:
    def on_revoke(*_: object) -> None:
        told.append(1)
        raise KeyError("the program's own fault")

    told: list[int] = []
    one = world.consumer("t", on_revoke=on_revoke)
    read(one)
    two = world.consumer("t")
    two.poll(0)
    with pytest.raises(KeyError, match="own fault"):
        until(lambda: False, one)
    until(lambda: len(two.assignment()) == 1, one, two)
    assert (len(told), len(one.assignment())) == (1, 1)
    with pytest.raises(KeyError, match="own fault"):
        one.close()
    assert world.positions() == {0: 20, 1: 20}


def poll_nothing(consumer: Consumer) -> None:
    """Polls until it raises, or returns records."""
    end = time.monotonic() + WAIT_S
    while consumer.poll(20) == {}:
        assert time.monotonic() < end


@pytest.mark.parametrize("event", ["on_assign", "on_revoke"])
def test_a_consumer_that_a_callback_closes_leaves_and_returns_nothing(world: World, event: str) -> None:
    told: Any = {event: lambda consumer, _: consumer.close()}
    one = world.consumer("t", **told)
    if event == "on_revoke":
        read(one)
        two = world.consumer("t")
        two.poll(0)
        with pytest.raises(sparklog.CallError, match="CONSUMER_CLOSED"):
            poll_nothing(one)
        until(lambda: len(two.assignment()) == 2, two)
    else:
        assert one.poll(100) == {}
    with pytest.raises(sparklog.CallError, match="CONSUMER_CLOSED"):
        one.poll(0)
    assert len(world.table.members("g")) == (event == "on_revoke")


def test_a_callback_cannot_poll(world: World) -> None:
    one = world.consumer("t", on_assign=lambda consumer, _: consumer.poll(0))
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_CONSUMER_IN_CALLBACK.*were assigned"):
        one.poll(0)


def test_a_callback_cannot_iterate(world: World) -> None:
    one = world.consumer("t", consumer_timeout_ms=100, on_assign=lambda consumer, _: next(consumer))
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_CONSUMER_IN_CALLBACK.*were assigned"):
        next(one)
    assert sum(1 for _ in one) == 40


def test_members_that_died_under_another_assignor_make_room(world: World) -> None:
    one = world.consumer("t", partition_assignment_strategy="range", session_timeout_ms=600)
    one.poll(0)
    world.members[one].heartbeater.stop(5)  # as if it were killed
    two = world.consumer("t")
    assert read(two, 40).keys() == {"t-0", "t-1"}
    three = world.consumer("t", partition_assignment_strategy="range")
    with pytest.raises(sparklog.CallError, match="PARTLOG_GROUP_ASSIGNOR"):
        three.poll(0)


def test_members_that_name_one_table_by_different_links_see_each_other(world: World, tmp_path: Path) -> None:
    one = world.consumer("t")
    one.poll(0)
    (tmp_path / "link").symlink_to(world.path)
    two = world.consumer("t", table=tmp_path / "link")
    share_out(one, two)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "offsets", "offsets.members", "root"]


def test_a_forked_process_is_refused(world: World) -> None:
    one = world.consumer("t", max_poll_records=5)
    one.poll(0)
    into, out = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            said = str(one.poll(0))
        except BaseException as error:
            said = getattr(error, "id", repr(error))
        os.write(out, said.encode())
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(into, 1_000) == b"CONSUMER_FORKED"
    assert one.poll(300)


def test_a_loop_returns_nothing_of_what_was_lost(world: World) -> None:
    now = 0.0
    one = world.consumer("t", clock=lambda: now, consumer_timeout_ms=300)
    first = list(itertools.islice(one, 3))
    assert [each.offset for each in first] == [0, 1, 2]
    two = world.consumer("t", clock=lambda: now, enable_auto_commit=False, session_timeout_ms=86_400_000)
    two.poll(0)
    world.members[one].heartbeater.stop(5)  # as where it is between two polls for too long

    def is_expired() -> bool:
        nonlocal now
        now += 10
        return len(two.assignment()) == 2

    until(is_expired, two)
    assert list(itertools.islice(one, 20)) == []


def test_a_static_member_that_restarts_spares_a_rebalance(world: World) -> None:
    one, two = (world.consumer("t", group_instance_id=name) for name in ("a", "b"))
    share_out(one, two)
    before, mine = len(world.table.changes("g")), one.assignment()
    one.close()
    two.poll(300)
    again = world.consumer("t", group_instance_id="a")
    until(lambda: again.assignment(), again, two)
    assert again.assignment() == mine
    assert [each.why for each in world.table.changes("g")][before:] == ["joins"]


def test_a_static_member_that_unsubscribes_stays_as_in_kafka(world: World) -> None:
    """It left, and its partitions moved twice."""
    one, two = (world.consumer("t", group_instance_id=name) for name in ("a", "b"))
    share_out(one, two)
    before, mine = len(world.table.changes("g")), one.assignment()
    one.unsubscribe()
    two.poll(300)
    assert (one.assignment(), len(two.assignment()), len(world.table.members("g"))) == (set(), 1, 2)
    one.subscribe(["t"])
    until(lambda: one.assignment(), one, two)
    assert one.assignment() == mine
    assert [each.why for each in world.table.changes("g")][before:] == ["joins"]


def test_a_group_in_a_long_batch_is_running(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = 0.0
    one = world.consumer("t", clock=lambda: clock() + passed)
    read(one)
    one.commit()
    now = rows.now
    monkeypatch.setattr(rows, "now", lambda: now() + datetime.timedelta(seconds=200))
    passed = 61  # and the program does not poll
    end = time.monotonic() + WAIT_S
    while not world.table.summaries()[0].running:
        assert time.monotonic() < end
        time.sleep(0.05)
    with pytest.raises(sparklog.CallError, match="PARTLOG_GROUP_RUNNING"):
        world.table.delete("g")


def test_a_reset_goes_before_members_that_commit_without_end(world: World) -> None:
    """Their commits come between its look and its commit each time, until it announces itself."""
    one = world.consumer("t", enable_auto_commit=False)
    read(one)
    versions = world.table.lake.versions
    commits = 0

    def looked(members: Any) -> dict[str, int]:
        nonlocal commits
        found = versions(members)
        state = world.table.generations.state("g")[2]
        if state is not None and state.announced is None:
            commits += 1
            one.commit({TopicPartition("t", 1): sparklog.consumer.OffsetAndMetadata(20, str(commits))})
        return found

    world.table.lake.versions = looked  # type: ignore[method-assign]
    world.reset(5)
    assert commits >= 1
    assert "asks members to wait" in [each.why for each in world.table.changes("g")]
    assert read(one, 30) == {"t-0": list(range(5, 20)), "t-1": list(range(5, 20))}


def test_a_consumer_that_is_collected_leaves_its_group(world: World) -> None:
    """As where the cell of a notebook is run twice."""
    world.consumer("t")
    forgotten, one = world.opened.pop(), world.consumer("t")
    share_out(forgotten, one)
    del forgotten
    until(lambda: len(one.assignment()) == 2, one)
    assert sum(change.why == "leaves" for change in world.table.changes("g")) == 1


def test_a_member_ends_where_its_table_was_deleted_and_made_again(world: World) -> None:
    """Before, it kept its partitions beside the members in the table that was made again."""
    one = world.consumer("t")
    until(lambda: len(one.assignment()) == 2, one)
    shutil.rmtree(world.path)
    two = world.consumer("t")
    until(lambda: len(two.assignment()) == 2, two)
    with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_TABLE_REPLACED"):
        until(lambda: False, one)
    one.close()
    two.commit()
    assert (len(two.assignment()), world.positions()) == (2, {0: 20, 1: 20})
