"""A group at one moment: answers that agree with each other, from one query."""

from contextlib import suppress

import pytest
from handmade import records
from owners import Own

from sparklog import Consumer, SparklogError
from sparklog.cli import groups as commands
from sparklog.groups import OffsetTable


@pytest.fixture
def shared(topic, table):
    """A group of one member, which has read a part of its topic."""
    options = {"auto_offset_reset": "earliest", "max_poll_records": 7, "enable_auto_commit": False}
    with Consumer(topic.root, "t", group_id="shared", table=table, partition_assignment_strategy="sticky", **options) as consumer:
        consumer.poll(1000)
        consumer.commit()
        yield consumer


def answers(group) -> tuple[object, ...]:
    return group.summary, list(group.positions()), group.assignments(), group.lag()


def test_a_snapshot_stays_as_it_was(topic, table, shared):
    group = table.group("shared")
    before = answers(group)
    assert before == answers(table.group("shared"))
    topic.append(records(9))
    shared.poll(1000)
    shared.commit()
    assert answers(group) == before != answers(table.group("shared"))
    behind = sum(group.lag()["records"].to_pylist())
    assert behind == group.summary.lag == sum(each.lag for each in group.members()) > 0


def expire(topic):
    """Retention deletes the first segment of partition 0, with its data file."""
    first = topic.live[0][0]
    topic.commit(removed=[first], starts=[first["end"], 0])
    (topic.folder / first["file"]).unlink()


def test_the_lag_of_a_snapshot_stays_although_records_expire(topic, table):
    Own(table, "g", {"t": {0: 5, 1: 10}})
    read, late = table.group("g"), table.group("g")
    assert late.summary.lag == 20
    before = read.lag()
    assert before["seconds"].to_pylist()[0] > 0
    expire(topic)
    assert read.lag() == before
    assert "behind by 20 records" in str(read)
    # A time that can no longer be read is not known.
    assert late.lag().drop_columns("seconds") == before.drop_columns("seconds")
    assert late.lag()["seconds"].to_pylist() == [None, 0.0]


def test_a_topic_of_members_that_was_created_again_and_is_read_in_part(topic, table, shared):
    """The second member has not polled since. So the position of its partition is in the deleted topic."""
    options = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "partition_assignment_strategy": "sticky"}
    with Consumer(topic.root, "t", group_id="shared", table=table, **options) as other:
        while not (shared.assignment() and other.assignment()):
            shared.poll(100)
            other.poll(100)
        shared.commit()
        other.commit()
        old = {each.partition: each.offset for each in table.positions("shared")}
        topic.delete()
        topic.append(records(9), 0)
        topic.append(records(9), 1)
        while all(each.note for each in table.group("shared").positions()):
            with suppress(SparklogError):  # it gives up the deleted topic first, and a partition may be on its way
                shared.poll(100)
                shared.commit()
        group = table.group("shared")
        assert len(old) == len(group.positions()) == 2
        (left,) = (each.partition for each in group.positions() if each.note)
        offset = group.positions()[1 - left].offset
        expected = {left: (old[left], None), 1 - left: (offset, 9 - offset)}
        assert [(each.topic, each.partition) for each in group.unread()] == [("t", 0), ("t", 1)]
        assert {each.partition: (each.offset, each.records) for each in group.unread()} == expected
        assert {row["partition"]: (row["offset"], row["records"]) for row in group.lag().to_pylist()} == expected
        assert group.lag().num_rows == 2


def test_a_snapshot_shows_its_lag(table, shared, capsys):
    group = table.group("shared")
    group.show()
    assert capsys.readouterr().out == f"{group}\n"
    table.show("shared")
    assert capsys.readouterr().out == f"{group}\n"


def test_snapshots_are_those_of_the_groups(topic, table, shared):
    own = Own(table, "alone")
    own.to({"t": {0: 5}})
    assert [each.name for each in table.snapshots()] == table.groups() == ["alone", "shared"]
    assert [each.name for each in table.snapshots("alone")] == ["alone"]
    assert list(table.snapshots()[0].members()) == table.snapshots()[0].assignments() == []
    with pytest.raises(SparklogError, match="GROUP_NOT_FOUND"):
        table.group("absent")
    with pytest.raises(SparklogError, match="GROUP_NOT_FOUND"):
        table.history("absent")


@pytest.mark.parametrize(
    "ask",
    [
        lambda table, root: commands.describe(root, "shared", table.path, True),
        lambda table, root: commands.describe(root, "alone", table.path, True),
        lambda table, root: commands.lag(root, "alone", table.path, True),
        lambda table, root: commands.groups(root, table.path, True),
        lambda table, root: answers(table.group("shared")),
        lambda table, root: table.snapshots(),
        lambda table, root: table.history("shared"),
        lambda table, root: table.changes("shared"),
        lambda table, root: table.lag_history("alone"),
    ],
)
def test_an_answer_is_one_query(topic, table, shared, queries, ask):
    own = Own(table, "alone")
    own.to({"t": {0: 5}})
    queries.clear()
    ask(OffsetTable(topic.root, table.path), str(topic.root))
    assert len(queries) == 1


def test_each_row_has_the_newest_number_of_its_group(topic, table, shared):
    """A commit of an owner takes the next number; a commit of positions by a member takes none."""
    own = Own(table, "alone")
    for offset in (1, 2):
        own.to({"t": {0: offset}})
        assert {each.seq for each in table.positions("alone")} == {1 + offset} == {table.generations.state("alone")[0]}
    number, commits = table.generations.state("shared")[0], len({each.committed_at for each in table.history("shared")})
    shared.poll(1000)
    shared.commit()
    history = table.history("shared")
    assert len({each.committed_at for each in history}) == commits + 1
    assert history[-1].seq == number == table.generations.state("shared")[0]
