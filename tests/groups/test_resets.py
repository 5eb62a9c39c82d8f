"""Changes of groups by operators: reset, delete, and the files of Kafka's tools."""

import datetime
import json
import time

import pytest
from handmade import TIME, Topic, identity, records
from owners import Own

import sparklog
from sparklog.groups import OffsetTable, rows

FORMATS = ("json", "csv")


def places(table: OffsetTable, group: str = "g") -> dict[tuple[str, int], int]:
    return {(each.topic, each.partition): each.offset for each in table.positions(group)}


def at(millis: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(millis / 1000, datetime.timezone.utc)


@pytest.fixture
def group(table) -> Own:
    """Group `g` at 5 and 2, which was ended; its owner."""
    own = Own(table, "g", {"t": {0: 5, 1: 2}})
    own.end()
    return own


@pytest.mark.parametrize(
    ("to", "now", "note"),
    [
        ("earliest", {0: 0, 1: 0}, None),
        ("latest", {0: 25, 1: 10}, None),
        ({"t": {0: 7}}, {0: 7}, None),
        ({"t": {0: 0, 1: 10}}, {0: 0, 1: 10}, None),
        (-1, {0: 4, 1: 1}, None),
        (8, {0: 13, 1: 10}, None),
        (-9, {0: 0, 1: 0}, "before the log start offset"),
        (99, {0: 25, 1: 10}, "after the end offset"),
        (at(TIME + 1000), {0: 15, 1: 10}, None),
        (at(TIME + 1000).isoformat(), {0: 15, 1: 10}, None),
        (at(TIME - 1), {0: 0, 1: 0}, None),
        (datetime.timedelta(0), {0: 25, 1: 10}, "the end offset"),
    ],
)
def test_a_group_is_reset(table, group, to, now, note):
    planned = table.reset("g", to)
    assert {each.partition: each.now for each in planned} == now
    assert {each.partition: each.was for each in planned} == {partition: {0: 5, 1: 2}[partition] for partition in now}
    assert note is None or all(note in each.note for each in planned)
    assert places(table) == {("t", 0): 5, ("t", 1): 2}, "a dry run moves nothing"
    assert table.reset("g", to, dry_run=False) == planned
    assert places(table) == {("t", 0): 5, ("t", 1): 2} | {("t", partition): offset for partition, offset in now.items()}
    with pytest.raises(sparklog.GenerationFencedError):
        group.to({"t": {0: 20}})


def test_a_reset_by_time_reads_exactly_the_records_from_then_on(table, group, topic):
    """The rows of the first partition are written at TIME, TIME + 1000 and TIME + 2000, a millisecond apart."""
    log = sparklog.Log(topic.root)["t"]
    for millis in (0, 3, 1000, 1006, 1007, 2002):
        table.reset("g", at(TIME + millis), dry_run=False)
        read = log.read(start={partition: offset for (_, partition), offset in places(table).items()}, columns=["partition", "offset"])
        everything = log.read(columns=["partition", "offset", "timestamp"]).to_pylist()
        first = {
            partition: min(
                (row["offset"] for row in everything if row["partition"] == partition and row["timestamp"] >= at(TIME + millis)), default=99
            )
            for partition in (0, 1)
        }
        wanted = [{**row} for row in everything if row["offset"] >= first[row["partition"]]]
        assert read.to_pylist() == [{"partition": row["partition"], "offset": row["offset"]} for row in wanted]


def test_a_reset_by_a_duration_counts_back_from_now(table, group, topic):
    now = int(time.time() * 1000)
    for age_s in (7200, 3500):
        topic.append(records(5, timestamp=now - 1000 * age_s))
    for duration, offsets in (
        (datetime.timedelta(hours=1), {0: 30, 1: 10}),
        (datetime.timedelta(hours=3), {0: 25, 1: 10}),
        (datetime.timedelta.max, {0: 0, 1: 0}),
    ):
        assert {each.partition: each.now for each in table.reset("g", duration)} == offsets


def test_a_reset_of_one_topic_leaves_the_others(table, topic, group):
    Topic(topic.root, "u").append(records(4))
    Own(table, "g", {"u": {0: 3}}).end()
    assert [each.topic for each in table.reset("g", "earliest", ["u"], dry_run=False)] == ["u"]
    assert places(table) == {("t", 0): 5, ("t", 1): 2, ("u", 0): 0}
    table.reset("g", "latest", dry_run=False)
    assert places(table) == {("t", 0): 25, ("t", 1): 10, ("u", 0): 4}


def test_a_running_group_is_not_reset(table, topic):
    own = Own(table, "g")
    own.to({"t": {0: 5}})
    for call in (
        lambda: table.reset("g", "earliest", dry_run=False),
        lambda: table.reset("g", "earliest"),
        lambda: table.load("g", "t,0,1", "csv", dry_run=True),
        lambda: table.delete("g"),
        lambda: table.load("g", "t,0,1", "csv"),
    ):
        with pytest.raises(sparklog.CallError, match=r"PARTLOG_GROUP_RUNNING.* g .*Nothing was changed"):
            call()
    assert places(table) == {("t", 0): 5}
    own.to({"t": {0: 6}})
    assert [each.now for each in table.reset("g", "earliest", force=True)] == [0, 0]
    table.reset("g", "earliest", dry_run=False, force=True)
    assert places(table) == {("t", 0): 0, ("t", 1): 0}
    table.reset("g", "latest", dry_run=False)  # nothing runs the group after a reset


def test_a_group_whose_owner_died_counts_as_stopped_after_three_minutes(table, monkeypatch):
    Own(table, "g", {"t": {0: 5}})
    now = rows.now()
    monkeypatch.setattr(rows, "now", lambda: now + datetime.timedelta(minutes=2, seconds=59))
    with pytest.raises(sparklog.CallError, match="PARTLOG_GROUP_RUNNING"):
        table.reset("g", "latest", dry_run=False)
    monkeypatch.setattr(rows, "now", lambda: now + datetime.timedelta(minutes=3, seconds=1))
    table.reset("g", "latest", dry_run=False)
    assert places(table) == {("t", 0): 25, ("t", 1): 10}


def test_a_reset_moves_a_group_to_the_topic_that_was_created_again(table, topic, group):
    topic.delete()
    topic.append(records(3))
    with pytest.raises(sparklog.CallError, match="PARTLOG_GROUP_OF_OTHER_TOPIC"):
        table.reset("g", -1, dry_run=False)
    moved = table.reset("g", {"t": {0: 2}}, dry_run=False)
    assert [(each.was, each.now, each.note) for each in moved] == [(5, 2, "the topic was created again since")]
    (position,) = table.positions("g")
    assert (position.offset, position.note, position.topic_id) == (2, None, topic.versions[-1]["topicId"])
    assert json.loads(table.starting_offsets("g")) == {"t": {"0": 2, "1": -2}}


@pytest.mark.parametrize(
    ("to", "error", "said"),
    [
        ({"t": {0: -1}}, sparklog.CallError, "offset -1 of topic t, partition 0 under .*root, which holds offsets 0 to 25"),
        ({"t": {0: 26}}, sparklog.CallError, "offset 26 of topic t, partition 0 under .*root, which holds offsets 0 to 25"),
        ({"t": {2: 0}}, sparklog.CallError, "partition 2 of topic t .* partitions 0 to 1"),
        ({"u": {0: 0}}, sparklog.CallError, "Topic u does not exist"),
        ("begin", sparklog.CallError, "it is not a time; a time is milliseconds"),
        (datetime.datetime(2024, 5, 1), sparklog.CallError, "must have a time zone"),  # noqa: DTZ001
        ({"t": 0}, TypeError, "'t'"),
        ({"t": {0: "1"}}, TypeError, "offset"),
        (1.5, TypeError, "`to` is 1.5"),
        (None, TypeError, "`to` is None"),
        (datetime.timedelta(seconds=-1), sparklog.CallError, "must not be negative"),
        (at(TIME + 2003), sparklog.CallError, "after the last record of t; give an earlier time, or 'latest'"),
        ("2999-01-01T00:00:00Z", sparklog.CallError, "after the last record of t; give an earlier time, or 'latest'"),
    ],
)
def test_a_target_that_does_not_exist(table, group, to, error, said):
    with pytest.raises(error, match=said):
        table.reset("g", to, dry_run=False, force=True)
    assert (places(table), table.positions("g")[0].generation) == ({("t", 0): 5, ("t", 1): 2}, group.generation)


def test_a_dict_and_topics_exclude_each_other(table, group):
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_OPTION_VALUE.*`topics`"):
        table.reset("g", {"t": {0: 1}}, ["t"])


def test_expired_offsets_are_no_target(table, topic, group):
    topic.commit(starts=[8, 0])
    with pytest.raises(sparklog.CallError, match=r"offset 7 of topic t, partition 0 under .*, which holds offsets 8 to 25"):
        table.reset("g", {"t": {0: 7}})
    assert [each.now for each in table.reset("g", -1)] == [8, 1]


def test_a_group_is_deleted_and_begins_again(table, group):
    table.delete("g")
    assert table.groups() == []
    for call in (
        table.positions,
        table.delete,
        table.lag,
        table.export,
        lambda name: table.reset(name, 0),
    ):
        with pytest.raises(sparklog.CallError, match="PARTLOG_GROUP_NOT_FOUND"):
            call("g")
    with pytest.raises(sparklog.GenerationFencedError):
        group.to({"t": {0: 9}})
    assert Own(table, "g").generation == group.generation + 2
    assert places(table) == {}


@pytest.mark.parametrize("format", FORMATS)
def test_a_group_goes_out_and_in(table, group, format):
    text = table.export("g", format)
    moved = table.load("new", text, format)
    assert [(each.partition, each.was, each.now) for each in moved] == [(0, None, 5), (1, None, 2)]
    assert places(table, "new") == places(table)
    table.reset("new", "latest", dry_run=False)
    assert [each.was for each in table.load("new", text, format, dry_run=True)] == [25, 10]
    assert places(table, "new") == {("t", 0): 25, ("t", 1): 10}


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_with_offsets_of_expired_records_moves_the_group_to_the_log_start_offset(table, topic, group, format):
    text = table.export("g", format)
    topic.commit(starts=[7, 0])
    planned = table.load("new", text, format, dry_run=True)
    assert [(each.partition, each.now, each.note) for each in planned] == [
        (0, 7, "5 is before the log start offset"),
        (1, 2, None),
    ]
    assert table.load("new", text, format) == planned
    assert places(table, "new") == {("t", 0): 7, ("t", 1): 2}
    with pytest.raises(sparklog.CallError, match="OFFSETS_OUT_OF_RANGE"):
        table.reset("new", {"t": {0: 5}})


def test_what_is_exported_is_what_kafkas_tools_take(table, group):
    assert json.loads(table.export("g")) == {
        "partitions": [{"topic": "t", "partition": 0, "offset": 5}, {"topic": "t", "partition": 1, "offset": 2}],
        "version": 1,
    }
    assert table.export("g", "csv") == "t,0,5\nt,1,2\n"


def test_lines_of_other_groups_do_not_count(table, group):
    assert len(table.load("g", 'h,t,0,1\n"g",t,1,7\n\n', "csv")) == 1
    assert places(table) == {("t", 0): 5, ("t", 1): 7}


@pytest.mark.parametrize(
    ("text", "format", "said"),
    [
        ("t,0", "csv", "line 1 has 2 fields"),
        ("t,0,1\nt,zero,1", "csv", "line 2 has partition 'zero'"),
        ("t,0,1\nt,0,2", "csv", "line 2 names partition 0 of topic t a second time"),
        ("", "csv", "it has no offset of group g"),
        ("h,t,0,1", "csv", "it has no offset of group g"),
        ('"t,0,1', "csv", "line 1"),
        ("{", "json", "it is not JSON"),
        ("[" * 100_000, "json", "it is not JSON"),
        ("[]", "json", "partitions"),
        ('{"partitions": [{"topic": "t", "partition": 0}], "version": 1}', "json", "entry 1"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": true}]}', "json", "entry 1"),
        ('{"partitions": [], "version": 1}', "json", "no offset"),
        ("t,5,1", "csv", "partition 5 of topic t"),
        ("t,0,26", "csv", "offset 26 of topic t, partition 0"),
        ("t,0,-1", "csv", "offset -1 of topic t, partition 0"),
        ("u,0,1", "csv", "Topic u does not exist"),
        ("t,0,1", "xml", "it must be one of json, csv"),
    ],
)
def test_a_file_that_is_wrong_moves_nothing(table, group, text, format, said):
    with pytest.raises(sparklog.CallError, match=said):
        table.load("g", text, format)
    assert (places(table), table.positions("g")[0].generation) == ({("t", 0): 5, ("t", 1): 2}, group.generation)


def test_the_topic_id_goes_with_the_position(table, group):
    assert {each.topic_id for each in table.positions("g")} == {identity("t")}
