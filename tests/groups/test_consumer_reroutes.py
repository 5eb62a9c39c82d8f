"""A consumer over re-routes: each key comes in order, however the partitions change meanwhile. FORMAT.md section A.9."""

import random
import time
from collections import Counter
from pathlib import Path

import pytest
from broken_reroutes import Routed
from handmade import Record, Topic, batch, featured
from numbered import Reader, Written, WrittenUnbound, out_of_order, read_in_order

from sparklog import Consumer, TopicPartition
from sparklog.groups import OffsetTable


@pytest.mark.parametrize("kind", [Written, WrittenUnbound])
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 40))])
def test_keys_come_in_order(tmp_path: Path, seed: int, kind: type[Written]) -> None:
    read_in_order(kind(tmp_path / "root", seed))


def test_a_consumer_says_what_it_waits_for(tmp_path: Path) -> None:
    written = Written(tmp_path / "root", 1)
    written.write(200)
    written.change([1, 1, 1])
    written.write(200)
    ends = written.past[0]["cut"]
    with Consumer(tmp_path / "root", "t", auto_offset_reset="earliest") as consumer:
        one, other, new = (TopicPartition("t", number) for number in range(3))
        consumer.pause(one)
        waits = {new: {one: ends[0], other: ends[1]}}
        assert consumer.waiting() == waits
        while found := consumer.poll():
            assert found.keys() == {other}
        assert consumer.position(other) == written.topic.versions[-1]["ends"][1]
        assert consumer.waiting() == {new: {one: ends[0]}}
        consumer.seek(other, ends[1] - 1)
        assert consumer.waiting() == waits
        consumer.resume(one)
        reader: set[int] = set()
        while found := consumer.poll(max_records=50):
            reader |= {each.partition for each in found}
            if new in found:
                assert consumer.position(one) >= ends[0]
        assert reader == {0, 1, 2}
        assert consumer.waiting() == {}


def test_partitions_that_nobody_reads_are_not_waited_for(tmp_path: Path) -> None:
    written = Written(tmp_path / "root", 1)
    written.change([1, 1, 1])
    written.write(100)
    new = TopicPartition("t", 2)
    with Consumer(tmp_path / "root", auto_offset_reset="earliest") as consumer:
        consumer.assign([new])
        assert consumer.poll().keys() == {new}


def test_what_the_group_has_not_consumed_is_waited_for(tmp_path: Path) -> None:
    written = Written(tmp_path / "root", 1)
    written.write(100)
    written.change([1, 1, 1])
    written.write(100)
    table = OffsetTable(tmp_path / "root", tmp_path / "offsets")
    cut = written.past[0]["cut"]
    one, other, new = (TopicPartition("t", number) for number in range(3))
    options = {"enable_auto_commit": False, "auto_offset_reset": "earliest", "poll_interval_ms": 1}
    with Consumer(tmp_path / "root", group_id="g", table=table, **options) as consumer:
        consumer.assign([one, other])
        consumer.poll(max_records=1)
        consumer.commit({one: cut[0] - 1, other: cut[1]})
        consumer.assign([new])
        assert consumer.poll() == {}
        assert consumer.waiting() == {new: {one: cut[0]}}
        consumer.commit({one: cut[0]})
        assert consumer.poll(timeout_ms=2_000).keys() == {new}


def test_a_consumer_that_begins_again_keeps_the_order(tmp_path: Path) -> None:
    """It dies at any moment: what it had committed is where the next one begins, and the barrier looks at that."""
    written = Written(tmp_path / "root", 3)
    table = OffsetTable(tmp_path / "root", tmp_path / "offsets")
    committed, chance = Reader(), random.Random(3)
    for _ in range(8):
        written.write()
        written.change_somehow()
        written.write()
        reader = Reader()
        reader.read = Counter(committed.read)
        consumer = Consumer(
            tmp_path / "root", "t", group_id="g", table=table, auto_offset_reset="earliest", enable_auto_commit=False, poll_interval_ms=1
        )
        for _ in range(chance.randint(1, 6)):
            reader.take(consumer, chance.randint(1, 40))
            if chance.random() < 0.5:
                consumer.commit()
                committed.read = Counter(reader.read)


def test_without_the_barrier_keys_come_out_of_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would find it."""
    monkeypatch.setattr("sparklog.consumer.reroutes.until", lambda open, partition: 2**63 - 1)
    assert out_of_order(Written, tmp_path)


def test_offsets_without_records_before_a_cut_keep_nobody_waiting(tmp_path: Path) -> None:
    """An empty batch is all that is left before the cut: once it is passed, the partition that waits goes on, without a new commit."""
    topic = Topic(tmp_path, partitions=2)
    marked = batch([Record(b"value")]) + batch([], 1)
    topic.commit(*(topic.data(marked, partition, offsets="tiled") for partition in range(2)))
    routed = Routed(topic)
    routed.put(routed.reroute([1, 1, 1], {2: [*range(2731, 4096)]}))
    topic.commit(topic.data(batch([Record(b"after")]), 2), features=featured("routing.slots"))
    options = {"auto_offset_reset": "earliest", "poll_interval_ms": 60_000, "max_partition_fetch_bytes": 1}
    with Consumer(tmp_path, "t", **options) as consumer:
        # The turn of the partition that waits is before those of the others.
        assert [{each.partition for each in consumer.poll(max_records=1)} for _ in range(3)] == [{0}, {1}, {2}]


def test_members_of_a_group_keep_the_order_among_them(tmp_path: Path) -> None:
    """A member returns nothing of a new partition before others have committed what is ahead of it, also if they have not begun to."""
    written = Written(tmp_path / "root", 5)
    for weights in ([1, 1, 1], [2, 1, 1, 1], [1, 0, 1, 1]):
        written.write(80)
        written.change(weights)
    written.write(80)
    reader = Reader()
    options = {
        "group_id": "g",
        "table": tmp_path / "offsets",
        "partition_assignment_strategy": "range",
        "auto_offset_reset": "earliest",
        "poll_interval_ms": 1,
    }
    members = [Consumer(tmp_path / "root", "t", auto_commit_interval_ms=1, **options) for _ in range(2)]
    try:
        until, both = time.monotonic() + 120, False
        while reader.read != written.written:
            assert time.monotonic() < until, [member.waiting() for member in members]
            both = both or all(member.assignment() for member in members)
            if not both and written.written.total() - reader.read.total() < 40:
                written.write(80)  # on a busy machine, one member has read all before the other one has a partition
            for member in reversed(members):
                reader.take(member, 60 if both else 1)
        assert both
    finally:
        for member in members:
            member.close()


def test_a_partition_waits_again_where_an_operator_moves_another_one_back(tmp_path: Path) -> None:
    """As where the consumer itself seeks back; a member of the other partition went on, and newer records of a key came first."""
    written = Written(tmp_path / "root", 1)
    written.write(200)
    written.change([1, 1, 1])
    written.write(200)
    one, other, new = (TopicPartition("t", number) for number in range(3))
    table = OffsetTable(tmp_path / "root", tmp_path / "offsets")
    options = {"group_id": "g", "partition_assignment_strategy": "range", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    members = [Consumer(tmp_path / "root", "t", table=table, heartbeat_interval_ms=100, poll_interval_ms=1, **options) for _ in range(2)]
    until = time.monotonic() + 120
    while {one, other} not in (has := [member.assignment() for member in members]) or {new} not in has:
        assert time.monotonic() < until
        for member in members:
            member.poll(0, 1)
    for member in members:
        member.seek_to_beginning()  # the member that came first may have read all records before the other one had a partition
    first, last = sorted(members, key=lambda member: len(member.assignment()), reverse=True)

    def read_on() -> None:
        assert time.monotonic() < until
        first.poll(20)
        first.commit()

    while not last.poll(0, 1):
        read_on()
    last.commit()
    last.pause(new)
    table.reset("g", {"t": {0: 1}}, dry_run=False, force=True)
    while last.waiting() != {new: {one: written.past[0]["cut"][0]}}:
        assert time.monotonic() < until
        last.poll(0)
    last.resume(new)
    assert last.poll(100) == {}
    while not last.poll(0):
        read_on()
    for member in members:
        member.close()
