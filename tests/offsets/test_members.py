"""Members of a group as processes: each row of the table of failures in docs/proposals/members.md."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter

import deltalake
import pyarrow as pa
import pytest
from handmade import records
from offsets.member_world import REPOSITORY, SESSION_MS, Group, group

import sparklog
from sparklog.offsets import OffsetTable
from sparklog.offsets.heartbeats import Heartbeats


@pytest.fixture
def four(tmp_path):
    """A topic of four partitions with 20 records each."""
    yield from group(tmp_path)


def partitions(answer: dict) -> list[int]:
    return [number for _, number in answer["has"]]


def got(answers: list[dict]) -> Counter:
    """How often each record was returned, by partition and offset."""
    return Counter((name, offset) for answer in answers for name, offsets in answer.get("got", {}).items() for offset in offsets)


def test_members_share_and_hand_over_without_reading_twice(four: Group):
    one = four.open(*four.start())
    answers = [one.poll(ms=500)]
    assert partitions(answers[0]) == [0, 1, 2, 3]
    assert answers[0]["events"] == [["assign", [["t", 0], ["t", 1], ["t", 2], ["t", 3]]]]
    two = four.open(*four.start())
    answers += four.until(lambda: four.is_even([one, two]), [one, two])
    assert [event for answer in answers[1:] for event in answer["events"]][:2] == [
        ["revoke", [["t", 2], ["t", 3]]],
        ["assign", [["t", 2], ["t", 3]]],
    ]
    for number in range(4):
        four.topic.append(records(5), number)
    answers += [each.poll(ms=200, times=3) for each in (one, two)]
    assert one.close() == {}
    answers += four.until(lambda: len(set(four.owners().values())) == 1 and four.is_even([two]), [two])
    assert two.close() == {}
    assert set(got(answers).values()) == {1}
    assert len(got(answers)) == 100
    assert four.positions() == dict.fromkeys(range(4), 25)
    assert not four.table.summaries()[0].running
    assert list((four.folder / "offsets.members").rglob("*.json")) == []


def test_a_member_that_is_killed(four: Group):
    one, two = four.members(2)
    one.kill()
    began = time.monotonic()
    answers = four.until(lambda: four.is_even([two]), [two])
    assert SESSION_MS / 1000 * 0.8 < time.monotonic() - began < SESSION_MS / 1000 + 10
    answers += [two.poll(ms=100)]
    assert sorted(partitions(answers[-1])) == [0, 1, 2, 3]


def test_a_member_that_is_frozen_commits_nothing_when_it_wakes(four: Group):
    """And delivers at most the batch in hand: nothing, as it has returned it."""
    one, two = four.members(2, enable_auto_commit=False)
    frozen = [number for number, owner in four.owners().items() if owner and number in partitions(one.poll())]
    one.commit()
    before = four.positions()
    for number in range(4):
        four.topic.append(records(5), number)
    assert one.poll(ms=200)["got"]
    one.freeze()
    answers = four.until(lambda: four.is_even([two]), [two])
    answers.append(two.poll(ms=300))
    assert {int(name[2:]) for name, _ in got(answers)} >= set(frozen)
    one.wake()
    assert one.commit()["error"] == "MEMBER_FENCED"
    assert four.positions() == before
    assert two.commit() == {}
    for number in range(4):
        four.topic.append(records(5), number)
    first = one.poll()
    assert first["events"][0] == ["lost", [["t", each] for each in frozen]]
    answers = four.until(lambda: four.is_even([one, two]), [one, two])
    assert four.positions()[frozen[0]] >= 25


def test_a_frozen_member_that_only_polls_returns_nothing_of_what_it_lost(four: Group):
    one, two = four.members(2)
    mine = partitions(one.poll())
    one.freeze()
    four.until(lambda: four.is_even([two]), [two])
    for number in range(4):
        four.topic.append(records(5), number)
    answers = [two.poll(ms=300)]
    assert len(got(answers)) == 20
    one.wake()
    answer = one.poll()
    assert answer["events"][0] == ["lost", [["t", each] for each in mine]]
    assert answer["got"] == {}


def test_all_members_die(four: Group):
    for each in four.members(2):
        each.kill()
    three = four.open(*four.start())
    began = time.monotonic()
    four.until(lambda: four.is_even([three]), [three])
    assert time.monotonic() - began > SESSION_MS / 1000 * 0.8
    assert len(four.state().members) == 1


def test_an_operators_reset_holds_against_running_members(four: Group):
    one, two = four.members(2)
    with pytest.raises(sparklog.CallError, match="is running"):
        four.table.reset("g", "earliest", dry_run=False)
    assert [each.commit() for each in (one, two)] == [{}, {}]
    four.table.reset("g", {"t": {1: 5, 2: 6}}, dry_run=False, force=True)
    assert one.commit().get("error", "MEMBER_FENCED") == two.commit().get("error", "MEMBER_FENCED") == "MEMBER_FENCED"
    assert four.positions() == {0: 20, 1: 5, 2: 6, 3: 20}
    answers = four.until(lambda: four.is_even([one, two]), [one, two])
    answers += [each.poll(ms=100, times=2, commits=True) for each in (one, two)]
    assert sorted(got(answers)) == sorted([("t-1", n) for n in range(5, 20)] + [("t-2", n) for n in range(6, 20)])
    assert sorted(number for answer in answers for event, which in answer["events"] if event == "lost" for _, number in which) == [1, 2]
    assert four.positions() == dict.fromkeys(range(4), 20)


def test_two_processes_of_one_instance(four: Group):
    """The later one has the place of the earlier one, with all that it had; the other member keeps its own."""
    one, two = four.members(2, group_instance_id=None)
    two.close()
    static = four.open(*four.start(), group_instance_id="i")
    four.until(lambda: four.is_even([one, static]), [one, static])
    kept = partitions(static.poll())
    again = four.open(*four.start(), group_instance_id="i")
    answers = [again.poll(ms=100)]
    assert partitions(answers[0]) == kept
    until = time.monotonic() + 10
    while "error" not in (answer := static.poll(ms=50)):
        assert time.monotonic() < until
    assert answer["error"] == "INSTANCE_FENCED"
    assert static.poll()["error"] == "INSTANCE_FENCED"
    assert all(["lost", [["t", number]]] not in answer["events"] for answer in answers for number in range(4))


def test_a_topic_that_is_deleted_and_created_again(four: Group):
    other = type(four.topic)(four.folder / "root", "u", partitions=2)
    other.append(records(10), 0)
    one, two = four.members(2, names=["t", "u"])
    four.topic.delete()
    answers = four.until(lambda: {name for name, _ in four.state().shares} == {"u"} and four.is_even([one, two]), [one, two])
    assert {tuple(each) for answer in answers for event, which in answer["events"] if event == "lost" for each in which} <= {
        ("t", number) for number in range(4)
    }
    assert all("error" not in each for each in answers)
    lag = four.table.lag("g").to_pylist()
    assert [(row["topic"], row["end"]) for row in lag] == [("u", 10), ("u", 0)] + [("t", None)] * 4
    other.append(records(5), 0)
    answers = [each.poll(ms=200) for each in (one, two)]
    assert len(got(answers)) == 5
    four.topic.append(records(7), 1)
    answers = four.until(lambda: len(four.state().shares) == 6 and four.is_even([one, two]), [one, two])
    answers += [each.poll(ms=200, times=2) for each in (one, two)]
    assert got(answers) == Counter({("t-1", offset): 1 for offset in range(7)})
    for each in (one, two):
        each.close()
    positions = four.table.positions("g", "t")
    assert {each.note for each in positions} == {None}
    assert {each.partition: each.offset for each in positions} == {0: 0, 1: 7, 2: 0, 3: 0}


def test_partitions_that_are_added_are_read_from_their_start(four: Group):
    one, two = four.members(2)
    four.topic.commit(operation="alter", config={"partitions": "6"}, starts=[0] * 6, ends=[20] * 4 + [0] * 2)
    four.topic.partitions = 6
    four.topic.append(records(4), 5)
    answers = four.until(lambda: len(four.state().shares) == 6 and four.is_even([one, two]), [one, two])
    answers += [each.poll(ms=200) for each in (one, two)]
    assert got(answers) == Counter({("t-5", offset): 1 for offset in range(4)})


def test_the_table_is_compacted_and_cleaned_in_between(four: Group):
    one, two = four.members(2)
    for _ in range(3):
        for number in range(4):
            four.topic.append(records(2), number)
        answers = [each.poll(ms=100, times=2, commits=True) for each in (one, two)]
        assert all("error" not in each for each in answers)
        OffsetTable(four.folder / "offsets").maintain()
    assert four.positions() == dict.fromkeys(range(4), 26)
    assert four.is_even([one, two])


def test_the_folder_of_heartbeats_cannot_be_written(four: Group):
    """Members stop after 0.8 of a session, and expire none; when it is back, they go on."""
    one, two = four.members(2)
    folder = four.folder / "offsets.members"
    shutil.move(folder, four.folder / "away")
    folder.write_text("")  # no folder can be made there
    time.sleep(SESSION_MS / 1000)
    for number in range(4):
        four.topic.append(records(3), number)
    answers = [each.poll(ms=10) for each in (one, two)]
    assert [each.get("error") for each in answers] == ["HEARTBEAT", "HEARTBEAT"]
    assert len(four.state().members) == 2
    folder.unlink()
    shutil.move(four.folder / "away", folder)
    answers = four.until(lambda: four.is_even([one, two]), [one, two])
    answers += [each.poll(ms=200, times=2) for each in (one, two)]
    assert got(answers) == Counter({(f"t-{number}", offset): 1 for number in range(4) for offset in range(20, 23)})


def test_a_consumer_that_reads_alone_takes_the_group_from_members(four: Group):
    one, two = four.members(2)
    alone = four.open(*four.start(), assignor=None)
    assert len(alone.poll(ms=100)["has"]) == 4
    for each in (one, two):
        until = time.monotonic() + 10
        while "error" not in (answer := each.poll(ms=50)):
            assert time.monotonic() < until
        assert answer["error"] == "GENERATION_FENCED"
    assert alone.commit() == {}
    again = four.open(*four.start())
    again.poll(ms=100)
    assert alone.commit(offsets=[["t", 0, 3]])["error"] == "GENERATION_FENCED"
    assert len(four.state().members) == 1


def test_a_program_that_polls_no_more_loses_its_partitions(four: Group):
    one, two = four.members(2, max_poll_interval_ms=500)
    began = time.monotonic()
    four.until(lambda: four.is_even([two]), [two])
    assert time.monotonic() - began < SESSION_MS / 1000 + 10
    assert one.poll()["events"][0][0] == "lost"


def test_members_of_another_assignor_are_refused(four: Group):
    four.members(1)
    other = four.open(*four.start(), assignor="range")
    answer = other.poll()
    assert answer["error"] == "GROUP_ASSIGNOR"
    assert "sticky" in answer["text"]


def test_other_engines_read_positions_by_the_documented_sql(four: Group):
    members = four.members(2)
    four.table.reset("g", {"t": {3: 2}}, dry_run=False, force=True)
    four.until(lambda: four.is_even(members), members)
    [each.poll(ms=100, times=2, commits=True) for each in members]
    page = (REPOSITORY / "docs" / "reference" / "offset-tables.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    found = deltalake.QueryBuilder().register("offsets", deltalake.DeltaTable(str(four.folder / "offsets"))).execute(query)
    rows = pa.table(found.read_all()).to_pylist()
    assert [(row["group"], row["topic"], row["partition"], row["offset"]) for row in rows] == [
        ("g", "t", number, 20) for number in range(4)
    ]


def test_old_tables_go_on(four: Group):
    """A group that one consumer ran alone, and that a version of before wrote: members begin where it was."""
    with sparklog.Consumer(four.folder / "root", "t", group="g", table=four.table, auto_offset_reset="earliest") as alone:
        assert sum(map(len, alone.poll(500).values())) == 80
    for number in range(4):
        four.topic.append(records(2), number)
    one, two = four.members(2)
    answers = [each.poll(ms=200, times=2, commits=True) for each in (one, two)]
    assert four.positions() == dict.fromkeys(range(4), 22)
    assert len(json.loads(four.table.starting_offsets("g"))["t"]) == 4
    assert len(answers) == 2


def test_a_table_in_a_store_has_no_members(four: Group):
    with pytest.raises(sparklog.CallError, match="on a disk"):
        Heartbeats("s3://bucket/offsets", "g")
