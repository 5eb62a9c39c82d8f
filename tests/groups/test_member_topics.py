"""The topics of a group with members, as they come, go and grow; and its table, as others see it."""

from __future__ import annotations

import json
import re
from collections import Counter

import deltalake
import duckdb
import pyarrow as pa
import pytest
from groups.member_world import REPOSITORY, Group, each_of, events, got, partitions
from handmade import Topic, records
from owners import Own

import sparklog
from sparklog.groups import rows
from sparklog.groups.member.state import GroupState, Registered, SharedTopic


def test_a_topic_that_is_deleted_and_created_again(four: Group):
    other = Topic(four.folder / "root", "u", partitions=2)
    other.append(records(10), 0)
    one, two = four.members(2, names=["t", "u"])
    four.topic.delete()
    answers = four.until(lambda: {name for name, _ in four.state().shares} == {"u"} and four.is_even(2), [one, two])
    answers += [each.poll(ms=20) for each in (one, two)]
    assert events(answers, "lost") == [("t", number) for number in range(4)]
    errors = [answer["text"] for answer in answers if "error" in answer]
    assert len(errors) == 2
    assert all("MEMBER_TOPIC_GONE" in each and "Topic t under" in each for each in errors)
    lag = four.table.lag("g").to_pylist()
    assert [(row["topic"], row["end"]) for row in lag][:2] == [("u", 10), ("u", 0)]
    assert {(row["topic"], row["end"]) for row in lag[2:]} == {("t", None)}
    other.append(records(5), 0)
    assert sum(got(four.until_read(5, one, two)).values()) == 5
    four.topic.append(records(7), 1)
    answers = four.until(lambda: len(four.state().shares) == 6 and four.is_even(2), [one, two])
    answers += four.until_read(7 - sum(got(answers).values()), one, two)
    assert got(answers) == each_of(range(7), range(1, 2))
    for each in (one, two):
        each.close()
    positions = four.table.positions("g", "t")
    assert {each.note for each in positions} == {None}
    assert {each.partition: each.offset for each in positions} == {0: 0, 1: 7, 2: 0, 3: 0}


def test_a_second_root_is_refused_and_disturbs_nobody(threads: Group):
    other = Topic(threads.folder / "other" / "root", "t", partitions=4)
    other.append(records(3), 0)
    other.delete()  # so that it has another id
    other.append(records(3), 0)
    one, (second,) = threads.member(), threads.start()
    answers = threads.until_read(80, one)
    changes = len(threads.table.changes("g"))
    given = {"root": str(other.root), "names": ["t"], "group_id": "g", "table": str(threads.folder / "offsets")}
    second.open(heartbeat_interval_ms=100, session_timeout_ms=86_400_000, **given)
    refused = []
    for _ in range(3):
        refused.append(second.poll(ms=20))
        answers.append(one.poll(ms=20))
    assert (got(answers), [each for each in answers if "error" in each]) == (each_of(range(20)), [])
    assert len(threads.table.changes("g")) == changes
    assert all("GROUP_ROOT" in each["text"] for each in refused)
    one.close()
    assert "error" not in second.poll(ms=20)


def test_a_root_by_another_path_is_the_same_root(threads: Group):
    (threads.folder / "link").symlink_to(threads.folder / "root")
    one = threads.member()
    two = threads.member(root=str(threads.folder / "link"))
    threads.until_even(one, two)
    threads.topic.delete()
    threads.topic.append(records(6), 2)
    assert got(threads.until_read(6, one, two)) == each_of(range(6), range(2, 3))


def test_a_topic_that_is_created_again_between_two_looks_is_read_once(four: Group):
    """From its start, although the consumer reads what is new only: none of its records were there before."""
    one, two = four.members(2, auto_offset_reset="latest")
    four.topic.delete()
    four.topic.append(records(6), 2)
    answers = four.until_read(6, one, two)
    answers += four.until_even(one, two)
    answers += [each.poll(ms=50, times=3) for each in (one, two)]
    assert got(answers) == each_of(range(6), range(2, 3))
    assert events(answers, "lost") == [("t", number) for number in range(4)]


def test_partitions_that_are_added_are_read_from_their_start(four: Group):
    """By members that read what is new only; also by one that joins after them."""
    one, two = four.members(2, auto_offset_reset="latest")
    four.topic.grow(6)
    for number in (4, 5):
        four.topic.append(records(4), number)
    three = four.member(auto_offset_reset="latest")
    answers = [three.poll(ms=50)]
    answers += four.until(lambda: len(four.state().shares) == 6 and four.is_even(3), [one, two, three])
    answers += four.until_read(8 - sum(got(answers).values()), one, two, three)
    assert got(answers) == each_of(range(4), range(4, 6))


def test_a_pattern_finds_topics_that_come_later(four: Group):
    one, two = (four.member(names=[]) for _ in range(2))
    for each in (one, two):
        each.subscribe(pattern="[tu]")
    answers = four.until_even(one, two)
    other = Topic(four.folder / "root", "u", partitions=2)
    other.append(records(3), 1)
    answers += four.until_read(83 - sum(got(answers).values()), one, two)
    assert got(answers) == each_of(range(20)) + Counter({("u-1", offset): 1 for offset in range(3)})


def test_a_member_that_subscribes_to_other_topics(four: Group):
    Topic(four.folder / "root", "u", partitions=2).append(records(3), 1)
    one, two = four.members(2)
    [each.poll(ms=50, times=2) for each in (one, two)]
    one.subscribe(topics=["u"])
    answers = four.until(lambda: len(four.state().shares) == 6 and four.is_even(2), [one, two])
    answers += four.until_read(3 - got(answers).total(), one, two)
    assert set(got(answers)) == {("u-1", offset) for offset in range(3)}
    assert [name for name, _ in one.poll()["has"]] == ["u", "u"]
    two.unsubscribe()
    assert len(four.state().members) == 1
    two.subscribe(topics=["t"])
    assert got(four.until_even(one, two)) == Counter()
    assert partitions(two.poll()) == [0, 1, 2, 3]


def test_other_engines_read_positions_by_the_documented_sql(four: Group):
    one, two = four.members(2)
    four.table.reset("g", {"t": {3: 2}}, dry_run=False, force=True)
    four.until_even(one, two)
    [each.poll(ms=50, times=3, commits=True) for each in (one, two)]
    page = (REPOSITORY / "docs" / "reference" / "offset-tables.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    table = deltalake.DeltaTable(str(four.folder / "offsets"))
    found = pa.table(deltalake.QueryBuilder().register("offsets", table).execute(query).read_all())
    expected = [("g", "t", number, 20) for number in range(4)]
    assert [tuple(row.values()) for row in found.to_pylist()] == expected
    offsets = table.to_pyarrow_table()
    assert duckdb.sql(query).fetchall() == expected
    assert offsets.num_rows > len(expected)


def test_old_tables_go_on(four: Group):
    """A group that one consumer ran alone, in a table that a version of before wrote: members begin where it was."""
    given = {"group_id": "g", "table": four.table, "partition_assignment_strategy": "exclusive", "auto_offset_reset": "earliest"}
    with sparklog.Consumer(four.folder / "root", "t", **given) as alone:
        assert sum(map(len, alone.poll(500).values())) == 80
    notes = [row for row in deltalake.DeltaTable(four.table.path).to_pyarrow_table().to_pylist() if row["partition"] == -1]
    assert all(sorted(json.loads(note["metadata"])) == ["event", "id"] for note in notes)
    assert four.table.members("g") == four.table.assignments("g") == []
    four.append(2)
    one, two = four.members(2)
    [each.poll(ms=50, times=3, commits=True) for each in (one, two)]
    assert four.positions() == dict.fromkeys(range(4), 22)
    assert len(json.loads(four.table.starting_offsets("g"))["t"]) == 4


def test_a_group_of_members_counts_as_running_until_they_leave(four: Group):
    one, two = four.members(2)
    assert four.table.summaries()[0].running
    one.close()
    assert four.table.summaries()[0].running
    two.close()
    assert not four.table.summaries()[0].running


def test_a_state_that_cannot_be_read_says_where(threads: Group):
    wrong = {
        "event": "begin",
        "id": "x",
        "members": [{"id": "m", "new": 1}],
        "assignor": "sticky",
        "topics": {},
        "shares": {"t": [[7, 7, 1]]},
    }
    table, generation = threads.table, Own(threads.table, "g").generation
    table.generations.add("g", generation, lambda _: [rows.note("g", generation, "begin", wrong)])
    with pytest.raises(sparklog.DataError, match=r"state of group g .* written by commit 2"):
        table.members("g")


def test_starting_offsets_of_a_share(threads: Group):
    table = threads.table
    Own(table, "g", {"t": {1: 5, 3: 7}})
    assert json.loads(table.starting_offsets("g", share="2/2")) == {"t": {"1": 5, "3": 7}}
    assert json.loads(table.starting_offsets("g", share="1/3")) == {"t": {"0": -2, "3": 7}}
    for wrong in ("0/2", "3/2", "2", "a/b"):
        with pytest.raises(sparklog.CallError, match="k from 1 to n"):
            table.starting_offsets("g", share=wrong)


def test_a_share_of_a_topic_that_is_gone_meanwhile_is_not_released():
    state = GroupState("sticky").joined(Registered("m", ("t",))).with_topics({"t": SharedTopic("id", 3)}).taken("m")
    gone = state.with_topics({})
    assert gone.released("m", [("t", 0)]) == gone
