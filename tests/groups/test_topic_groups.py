"""Groups of Kafka's clients in the topic `__consumer_offsets`, as sparklog shows them without a server."""

import coordinated
import pytest
from coordinated import classic, id_of, member, position, topic_of_groups
from handmade import Record, records, seeded

import sparklog
from sparklog.groups import TopicGroups
from sparklog.groups.topic import topic_groups


def places(of):
    return {(each.topic, each.partition): each.offset for each in of.positions()}


def test_a_root_without_the_topic_has_no_groups(topic):
    groups = TopicGroups(topic.root)
    assert (groups.exists(), groups.groups(), groups.snapshots()) == (False, [], [])
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_TOPIC_GROUP_NOT_FOUND.*Existing groups: none"):
        groups.group("g")


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_each_version_of_a_position(topic, version):
    topic_of_groups(topic.root, position("g", "t", 1, 7, id_of(topic.root, "t"), version), position("g", "t", 0, 20, version=version))
    found = TopicGroups(topic.root).group("g")
    assert places(found) == {("t", 0): 20, ("t", 1): 7}
    assert [each.metadata for each in found.positions()] == ["m", "m"]
    assert [row["records"] for row in found.lag().to_pylist()] == [5, 3]
    assert (found.home, found.summary.home, found.summary.lag, found.summary.running) == ("topic", "topic", 8, False)


def test_the_newest_record_of_a_key_counts_also_as_records_come(topic):
    log = topic_of_groups(
        topic.root, position("g", "t", 0, 1), position("g", "t", 0, 2), position("g", "t", 1, 3), position("h", "t", 0, 9)
    )
    groups = TopicGroups(topic.root)
    assert places(groups.group("g")) == {("t", 0): 2, ("t", 1): 3}
    log.append([position("g", "t", 0, 5), position("g", "t", 1, None), position("h", "t", 0, None)])
    assert (groups.groups(), places(groups.group("g"))) == (["g"], {("t", 0): 5})
    log.append([position("i", "t", 0, 1)], 1)
    assert groups.groups() == ["g", "i"] == TopicGroups(topic.root).groups()


def test_records_that_a_compaction_took_away_are_forgotten(topic):
    """Their tombstones are gone too."""
    log = topic_of_groups(topic.root, position("g", "t", 0, 1), position("h", "t", 0, 2))
    groups = TopicGroups(topic.root)
    assert groups.groups() == ["g", "h"]
    log.append([position("g", "t", 0, None), position("h", "t", 0, 4)])
    log.next(starts=[3, 0])
    assert (groups.groups(), places(groups.group("h"))) == (["h"], {("t", 0): 4})
    log.delete()
    assert groups.groups() == []
    log.append([position("new", "t", 0, 1)])
    assert groups.groups() == ["new"]


def test_members_of_both_protocols(topic):
    id = id_of(topic.root, "t")
    topic_of_groups(
        topic.root,
        *(classic("old", 4, {"a": {"t": [1]}, "b": {"t": [0]}}), position("old", "t", 0, 20)),
        *(*member("new", "c", ["t"], {id: [0, 1]}), position("new", "t", 1, 3)),
        classic("empty", 2, {}),
    )
    groups = TopicGroups(topic.root)
    assert [(each.group, each.generation, each.running) for each in groups.summaries()] == [
        ("empty", 2, False),
        ("new", 7, True),
        ("old", 4, True),
    ]
    old, new = groups.group("old"), groups.group("new")
    assert [(each.consumer_id, each.host, each.assignment, each.lag) for each in old.members()] == [
        ("a", "/127.0.0.1", {"t": [1]}, 0),
        ("b", "/127.0.0.1", {"t": [0]}, 5),
    ]
    assert [(each.consumer_id, each.topics, each.assignment, each.lag) for each in new.members()] == [("c", ["t"], {"t": [0, 1]}, 7)]
    assert {each.client_id for each in [*old.members(), *new.members()]} == {"client"}
    assert [(each.topic, each.partition, each.consumer_id) for each in old.assignments()] == [("t", 0, "b"), ("t", 1, "a")]


def test_positions_of_a_topic_that_was_created_again_are_told(topic):
    topic_of_groups(topic.root, position("g", "t", 0, 7, id_of(topic.root, "t")))
    topic.delete()
    topic.append(records(3))
    found = TopicGroups(topic.root).group("g")
    assert "created again" in found.positions()[0].note
    assert found.summary.error.id == "GROUP_OF_OTHER_TOPIC"


def test_records_that_no_coordinator_wrote_are_left_out(topic):
    """Everybody who can write files of the root can write them."""
    draw = seeded()
    good = [position("g", "t", 0, 7), *member("n", "c", ["t"], {id_of(topic.root, "t"): [0]}), classic("old", 4, {"a": {"t": [1]}})]
    hostile = [
        Record(b"", b""),
        Record(b"\1", None),
        Record(b"\0\4", good[0].key),
        Record(b"\x7f\x7f", good[0].key),
        position("g", "t", 0, -5),
        position("g", "../../t", 0, 5),
        position("g", "t", -1, 5),
    ]
    for each in good:
        for _ in range(200):
            value = bytearray(each.value)
            value[draw.randrange(len(value))] ^= 1 << draw.randrange(8)
            hostile.append(Record(bytes(value[: draw.randrange(len(value) + 1)]), each.key))
            key = bytearray(each.key)
            key[draw.randrange(2, len(key))] ^= 1 << draw.randrange(8)
            hostile.append(Record(each.value, bytes(key)))
    log = topic_of_groups(topic.root, *good, *hostile, partitions=1)
    groups = TopicGroups(topic.root)
    for each in groups.snapshots():
        each.summary, each.positions(), each.members(), each.assignments()
    assert groups.unreadable > 7
    log.append(good)
    assert places(groups.group("g"))["t", 0] == 7
    assert groups.group("old").summary.generation == 4


def test_a_partition_of_too_many_bytes_is_an_error(topic, monkeypatch):
    monkeypatch.setattr(topic_groups, "_BYTES_MAX", 1000)
    log = topic_of_groups(topic.root, *(position("g", "t", 0, n) for n in range(100)))
    groups = TopicGroups(topic.root)
    assert groups.groups() == ["g"]
    log.append([position(f"group {n}", "t", 0, 1) for n in range(100)])
    with pytest.raises(sparklog.DataError, match=r"PARTLOG_GROUPS_TOO_LARGE.*more than 1000 bytes"):
        groups.groups()


def test_a_compact_text_that_is_null_is_refused():
    key = coordinated.position("g", "t", 0, 1).key
    of = topic_groups.group_records.key(key)
    with pytest.raises(ValueError, match="null"):
        topic_groups.group_records.value(of, b"\0\4" + b"\0" * 8 + b"\0" * 4 + b"\0" + b"\0" * 8 + b"\0")
