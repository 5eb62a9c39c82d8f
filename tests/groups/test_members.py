"""Members of a group: each row of the table of failures in docs/reference/members.md, with a real table.

`make test` runs them with members in this process, `make soak` with processes that are killed and frozen.
"""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from typing import Any

import deltalake
import pytest
from groups.member_world import Group, Thread, each_of, events, got, partitions, until_error

import sparklog
from sparklog.groups import OffsetTable
from sparklog.groups.member import requests as ask
from sparklog.groups.member.heartbeats import Watch


def test_members_share_and_hand_over_without_reading_twice(four: Group):
    one = four.member()
    answers = four.until_read(80, one)
    assert partitions(answers[0]) == [0, 1, 2, 3]
    assert answers[0]["events"] == [["assign", [["t", 0], ["t", 1], ["t", 2], ["t", 3]]]]
    two = four.member()
    answers += (handed := four.until_even(one, two))
    assert [event for answer in handed for event in answer["events"]] == [
        ["revoke", [["t", 2], ["t", 3]]],
        ["assign", [["t", 2], ["t", 3]]],
    ]
    four.append(5)
    answers += four.until_read(20, one, two)
    assert one.close() == {}
    answers += four.until_even(two)
    assert two.close() == {}
    assert got(answers) == each_of(range(25))
    assert four.positions() == dict.fromkeys(range(4), 25)
    assert not four.table.summaries()[0].running
    assert list((four.folder / "offsets.members").rglob("*.json")) == []


def test_partitions_go_to_their_next_owners_in_the_change_that_frees_them(four: Group):
    """A join is followed by releases alone, and an expiry by nothing: no member takes a partition."""
    *dying, one, two = four.members(4, mortal=2)
    whys = [change.why for change in four.table.changes("g")]
    assert set(whys) <= {"joins", "releases"}, whys
    gone = sorted(id for id, member in four.state().members.items() if member.session_ms == four.kind.mortal_ms)
    for each in dying:
        each.kill()
    four.until_even(one, two)
    later = [(change.why or "").removeprefix("expires ") for change in four.table.changes("g")[len(whys) :]]
    assert sorted(", ".join(later).split(", ")) == gone


@pytest.mark.soak
def test_a_member_that_is_killed(processes: Group):
    one, two = processes.members(2, mortal=1)
    one.kill()
    processes.until_even(two)
    assert partitions(two.poll(ms=100)) == [0, 1, 2, 3]


def test_a_member_that_is_frozen_commits_nothing_when_it_wakes(four: Group):
    """And delivers at most the batch in hand: nothing, as it has returned it."""
    one, two = four.members(2, mortal=1, enable_auto_commit=False)
    four.append(5)
    four.until(lambda: four.is_even(2), [one, two])
    mine = partitions(held := one.poll(ms=200))
    before = four.positions()
    one.freeze()
    answers = four.until_even(two)
    answers += [two.poll(ms=50, times=5)]
    assert {name for name, _ in got(answers)} >= {f"t-{number}" for number in mine}
    one.wake()
    if mine:
        assert one.commit(offsets=[["t", mine[0], 25]])["error"] == "MEMBER_FENCED"
    assert four.positions() == before
    assert two.commit() == {}
    first = one.poll()
    assert events([first], "lost") == [("t", each) for each in mine]
    assert got([first]) == Counter()
    assert held["got"].keys() <= {f"t-{number}" for number in mine}
    four.append(5)
    four.until_even(one, two)
    assert min(four.positions().values()) >= 25


@pytest.mark.soak
def test_a_frozen_member_that_only_polls_returns_nothing_of_what_it_lost(processes: Group):
    one, two = processes.members(2, mortal=1)
    mine = partitions(one.poll())
    one.freeze()
    processes.until_even(two)
    processes.append(5)
    assert sum(got(processes.until_read(20, two)).values()) >= 20
    one.wake()
    answer = one.poll()
    assert answer["events"][0] == ["lost", [["t", each] for each in mine]]
    assert answer["got"] == {}


@pytest.mark.soak
def test_a_member_stops_between_a_take_and_the_first_look_at_its_positions(processes: Group):
    one = processes.member()
    processes.until_read(80, one)
    dying = processes.member(mortal=True)
    dying.die_when_assigned()
    dying.ask("poll", ms=60_000)
    processes.until(lambda: dying.popen.poll() is not None, [one])
    assert dying.popen.wait() == 9
    processes.until_even(one)
    processes.append(3)
    assert got(processes.until_read(12, one)) == each_of(range(20, 23))


@pytest.mark.parametrize("error", [deltalake.exceptions.CommitFailedError, pytest.param(OSError, marks=pytest.mark.soak)])
def test_the_answer_to_a_commit_is_lost(threads: Group, monkeypatch: pytest.MonkeyPatch, error: type[Exception]):
    """Each third one: what it did is found in the table, and done once."""
    written, count = deltalake.write_deltalake, 0

    def loses(*given: object, **more: object) -> None:
        nonlocal count
        written(*given, **more)
        count += 1
        if count % 3 == 0:
            raise error("the answer is lost")

    monkeypatch.setattr(deltalake, "write_deltalake", loses)
    one, two = (threads.member(mortal=True, auto_commit_interval_ms=50) for _ in range(2))
    answers = threads.until_even(one, two)
    threads.append(5)
    answers += threads.until(lambda: set(threads.positions().values()) == {25}, [one, two])
    assert set(got(answers)) == set(each_of(range(25)))
    assert {answer.get("error") for answer in answers} <= {None, "OFFSETS_TABLE"}


def test_a_member_that_was_expired_goes_on_while_the_group_ends_and_begins(threads: Group, monkeypatch: pytest.MonkeyPatch):
    """Its look finds no state, since all others left; another member joins before its second look, which says why there was none."""
    one, two = threads.members(2, mortal=1)
    one.freeze()
    threads.until_even(two)
    two.close()
    (three,) = threads.start()
    one.wake()
    reply = one.membership.reply

    def joined_before(request: Any) -> object:
        if isinstance(request, ask.ReadGroup):
            monkeypatch.undo()
            threads.open(three).poll(ms=20)
        return reply(request)

    monkeypatch.setattr(one.membership, "reply", joined_before)
    assert "error" not in one.poll(ms=20)
    threads.until_even(one, three)


@pytest.mark.soak
def test_all_members_die(four: Group):
    dead = four.members(2, mortal=2)
    for each in dead:
        each.kill()
    alive = four.member()
    four.until_even(alive)
    assert len(four.state().members) == 1


@pytest.mark.soak
def test_clocks_are_wrong_by_hours(processes: Group):
    one, two = processes.start(2)
    one.set_clock(hours=-5)
    two.set_clock(hours=7)
    for each in (one, two):
        processes.open(each)
    answers = processes.until_even(one, two)
    answers += processes.until_read(80 - sum(got(answers).values()), one, two)
    assert one.close() == {}
    answers += processes.until_even(two)
    processes.append(1)
    answers += processes.until_read(4, two)
    assert got(answers) == each_of(range(21))


@pytest.mark.soak
def test_all_members_are_frozen_for_longer_than_a_session(processes: Group):
    """The ones that wake were not live themselves, so they expire none; as if the store had hung for all."""
    one, two = processes.members(2, mortal=2)
    before = processes.state().members.keys()
    for each in (one, two):
        each.freeze()
    processes.pass_session()
    processes.pass_session()
    for each in (one, two):
        each.wake()
    processes.append(3)
    processes.until_read(12, one, two)
    assert processes.state().members.keys() == before
    assert not [each for each in processes.table.changes("g") if "expires" in (each.why or "")]


def test_a_listing_that_hangs_expires_none():
    """Its marks are of when it began, or of any moment since; a member counts as silent from what was seen before."""
    watch, live = Watch(), (1, 1)
    assert watch.silent({"a": live}, {"a": 10}, 0, 0) == []
    assert watch.silent({"a": live}, {"a": 10}, 5, 185) == []
    assert watch.silent({"a": (2, 1)}, {"a": 10}, 190, 370) == []
    assert watch.silent({"a": (2, 1)}, {"a": 10}, 379, 379) == []
    assert watch.silent({"a": (2, 1)}, {"a": 10}, 380, 380) == ["a"]
    assert watch.silent({"b": live}, {"b": 10}, 381, 381) == []
    assert watch.silent({"b": live}, {"b": 10}, 391, 391) == ["b"]
    watch.restart()
    assert watch.silent({"b": live}, {"b": 10}, 392, 392) == []


def test_members_that_died_together_are_found_together():
    """A member that is nearly silent is waited for, for an eighth of a session."""
    watch, sessions, live = Watch(), {"a": 10, "b": 10, "c": 10}, (1, 1)
    later = {"a": live, "b": (2, 1), "c": live}
    assert watch.silent({"a": live, "b": live, "c": live}, sessions, 0, 0) == []
    assert watch.silent(later, sessions, 1.1, 1.1) == [], "heartbeats are a tenth of a session apart, and writing one takes time"
    assert watch.silent(later, sessions, 10, 10) == []
    assert watch.silent(later, sessions, 11.1, 11.1) == ["a", "b", "c"]
    assert watch.silent({**later, "b": (3, 1)}, sessions, 20, 20) == ["a", "c"]
    watch.restart()
    assert watch.silent({"a": live, "b": live, "c": live}, sessions, 30, 30) == []
    assert watch.silent({"a": live, "b": (2, 1), "c": live}, sessions, 31.5, 31.5) == []
    assert watch.silent({"a": live, "b": (2, 1), "c": live}, sessions, 41.1, 41.1) == []
    assert watch.silent({"a": live, "b": (2, 1), "c": live}, sessions, 41.2, 41.2) == ["a", "c"], "it waits no longer"


def test_many_members_join_at_once(four: Group):
    joining = four.start(5 if four.kind is Thread else 3)
    for each in joining:
        four.open(each)
    answers = four.until_even(*joining)
    answers += four.until_read(80 - sum(got(answers).values()), *joining)
    assert got(answers) == each_of(range(20))
    owners = Counter(four.owners().values())
    assert set(owners.values()) == ({1} if len(joining) >= 4 else {1, 2})


def test_an_operators_reset_holds_against_running_members(four: Group):
    one, two = four.members(2)
    with pytest.raises(sparklog.CallError, match="is running"):
        four.table.reset("g", "earliest", dry_run=False)
    [each.poll(ms=50, times=2) for each in (one, two)]
    assert [each.commit() for each in (one, two)] == [{}, {}]
    assert four.positions() == dict.fromkeys(range(4), 20)
    four.table.reset("g", {"t": {1: 5, 2: 6}}, dry_run=False, force=True)
    assert one.commit().get("error", "MEMBER_FENCED") == two.commit().get("error", "MEMBER_FENCED") == "MEMBER_FENCED"
    assert four.positions() == {0: 20, 1: 5, 2: 6, 3: 20}
    answers = four.until_even(one, two)
    answers += four.until_read(29 - sum(got(answers).values()), one, two)
    [each.commit() for each in (one, two)]
    assert sorted(got(answers)) == sorted([("t-1", n) for n in range(5, 20)] + [("t-2", n) for n in range(6, 20)])
    assert events(answers, "lost") == [("t", 1), ("t", 2)]
    assert four.positions() == dict.fromkeys(range(4), 20)


def test_a_reset_to_the_committed_offset_takes_back_what_was_read_since(four: Group):
    (one,) = four.members(1)
    one.poll(ms=50, times=2)
    assert one.commit() == {}
    four.append(1)
    answers = four.until_read(4, one)
    four.table.reset("g", {"t": {1: 20}}, dry_run=False, force=True)
    answers += four.until_read(1, one)
    assert sorted(got(answers)) == [("t-0", 20), ("t-1", 20), ("t-2", 20), ("t-3", 20)]
    assert got(answers)["t-1", 20] == 2
    assert events(answers, "lost") == [("t", 1)]


def test_a_member_goes_back(four: Group):
    """It commits a lower offset than before: a reset of its partition, in which no other member loses anything."""
    one, two = four.members(2)
    [each.poll(ms=50, times=2, commits=True) for each in (one, two)]
    (first, *_) = partitions(one.poll())
    assert one.commit(offsets=[["t", first, 3]]) == {}
    assert four.positions() == dict.fromkeys(range(4), 20) | {first: 3}
    four.append(1)
    answers = [each.poll(ms=50, times=3, commits=True) for each in (one, two)]
    assert got(answers) == each_of(range(20, 21))
    assert four.positions() == dict.fromkeys(range(4), 21)


def test_two_processes_of_one_instance(four: Group):
    """The later one has the place of the earlier one, with all that it had; the other member keeps its own."""
    one, static = four.member(), four.member(group_instance_id="i")
    four.until_even(one, static)
    kept = partitions(static.poll())
    again = four.member(group_instance_id="i")
    answers = [again.poll(ms=100)]
    assert partitions(answers[0]) == kept
    until_error(static, "INSTANCE_FENCED")
    assert static.poll()["error"] == "INSTANCE_FENCED"
    assert one.poll()["events"] == []


def test_the_table_is_compacted_and_cleaned_in_between(four: Group):
    one, two = four.members(2)
    for _ in range(3):
        four.append(2)
        four.until_read(8, one, two, commits=True)
        OffsetTable(None, four.folder / "offsets").maintain()
    assert four.positions() == dict.fromkeys(range(4), 26)
    assert four.is_even(2)


def test_the_folder_of_heartbeats_cannot_be_written(four: Group):
    """Members stop after 0.8 of a session, and expire none; when it is back, they go on."""
    one, two = four.members(2, mortal=2)
    four.until(lambda: four.is_even(2), [one, two])
    folder = four.folder / "offsets.members"
    while not folder.is_file():
        with suppress(IsADirectoryError):  # a member made it again just now
            shutil.rmtree(folder, ignore_errors=True)
            folder.write_text("")
    members = four.state().members.keys()
    four.pass_session()
    four.append(3)
    answers = [each.poll(ms=10) for each in (one, two)]
    assert [each.get("error") for each in answers] == ["HEARTBEAT", "HEARTBEAT"]
    assert {each.heartbeat for each in four.table.members("g")} == {None}
    assert four.state().members.keys() == members
    folder.unlink()
    answers = four.until_read(12, one, two)
    assert set(got(answers)) >= set(each_of(range(20, 23)))


def test_a_consumer_that_reads_alone_takes_the_group_from_members(four: Group):
    one, two = four.members(2)
    alone = four.open(*four.start(), partition_assignment_strategy="exclusive")
    assert len(alone.poll(ms=100)["has"]) == 4
    for each in (one, two):
        until_error(each, "GENERATION_FENCED")
    assert alone.commit() == {}
    again = four.member()
    again.poll(ms=100)
    assert alone.commit(offsets=[["t", 0, 3]])["error"] == "GENERATION_FENCED"
    assert len(four.state().members) == 1


@pytest.mark.soak
def test_a_program_that_polls_no_more_loses_its_partitions(processes: Group):
    one, two = processes.members(2, mortal=2, max_poll_interval_ms=500)
    processes.until_even(two)
    assert one.poll()["events"][0][0] == "lost"


def test_members_of_another_assignor_are_refused(four: Group):
    four.members(1)
    other = four.member(partition_assignment_strategy="range")
    answer = other.poll()
    assert answer["error"] == "GROUP_ASSIGNOR"
    assert "sticky" in answer["text"]
    assert len(list((four.folder / "offsets.members").rglob("*.json"))) == 1
