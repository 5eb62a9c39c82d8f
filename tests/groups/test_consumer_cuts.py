"""A consumer at re-routes: the order of its records, its waiting, and its beginning. FORMAT.md section A.9."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from handmade import Record, Topic, batch
from numbered import Written

from sparklog import Consumer, TopicPartition
from sparklog.consumer.topic_reads import TopicReads
from sparklog.groups import OffsetTable

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))


def key_of(written: Written, partition: int) -> bytes:
    return next(key for key in (b"k%d" % number for number in range(99)) if written.home(key) == partition)


def read(consumer: Consumer) -> list[tuple[int, int]]:
    found = []
    while polled := consumer.poll(100):
        found += [(each.partition, record.offset) for each, its in polled.items() for record in its]
    return found


@pytest.mark.parametrize("strategy", ["exclusive", "sticky"])
def test_a_group_that_was_down_reads_new_partitions_from_their_start(tmp_path: Path, strategy: str) -> None:
    written = Written(tmp_path / "root", 1)
    options: Any = {"group_id": "g", "table": tmp_path / "offsets", "partition_assignment_strategy": strategy}
    with Consumer(tmp_path / "root", "t", **options) as consumer:
        assert read(consumer) == []
    written.change([1, 1, 1])
    written.write(60)
    with Consumer(tmp_path / "root", "t", **options) as consumer:
        found = read(consumer)
    ends = written.topic.versions[-1]["ends"]
    cut = written.past[0]["cut"]
    assert ends[2] > 0
    assert sorted(found) == [(number, offset) for number in range(3) for offset in range([*cut, 0][number], ends[number])]


def test_a_key_that_moved_twice_comes_in_order_where_the_records_between_have_expired(tmp_path: Path) -> None:
    written = Written(tmp_path / "root", 1)
    key = key_of(written, 0)
    written.change([1, 1, 1])
    topic = written.topic

    def put(partition: int, *values: bytes) -> None:
        topic.commit(topic.data(batch([Record(value, key) for value in values]), partition), features=written.features)

    home = written.home(key)
    second, third = [number for number in range(3) if number != home]
    for _ in range(10):
        put(home, b"x" * 1_000)
    put(home, b"first")
    written.put(written.move({key: second}))
    put(second, b"y")
    written.put(written.move({key: third}))
    put(third, b"second")
    gone = topic.live[second]
    starts = list(topic.versions[-1]["starts"])
    starts[second] = topic.versions[-1]["ends"][second]
    topic.commit(removed=gone, starts=starts, operation="delete-records", features=written.features)
    small: Any = {"max_partition_fetch_bytes": 500, "max_poll_records": 2, "auto_offset_reset": "earliest"}
    with Consumer(tmp_path / "root", "t", **small) as consumer:
        values = []
        while polled := consumer.poll(100):
            values += [record.value for its in polled.values() for record in its if record.key == key]
    assert [value for value in values if value in (b"first", b"second")] == [b"first", b"second"]


def test_each_record_is_decoded_once_beside_36_partitions_and_a_re_route(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written(tmp_path / "root", 1)
    written.change([1] * 36)
    keys = [b"k%d" % number for number in range(400)]
    written.write(1_000, keys=keys)
    written.change([3, 1] * 18)
    written.write(1_000, keys=keys)
    part, decoded = TopicReads.part, 0

    def counting(self: TopicReads, *given: Any) -> Any:
        nonlocal decoded
        found = part(self, *given)
        decoded += sum(each.num_rows for each in found.batches)
        return found

    monkeypatch.setattr(TopicReads, "part", counting)
    with Consumer(tmp_path / "root", "t", auto_offset_reset="earliest") as consumer:
        count = sum(written.topic.versions[-1]["ends"])
        assert len(read(consumer)) == count
        assert consumer.metrics()["consumer-fetch-manager-metrics"]["records-consumed-total"] == count
    assert decoded == count


@pytest.fixture
def moved(tmp_path: Path) -> Topic:
    """A key with 20 records in partition 0, and then 50 in partition 1."""
    written = Written(tmp_path / "root", 1, keys=[b"none"])
    key = key_of(written, 0)
    topic = written.topic
    topic.commit(topic.data(batch([Record(b"%d" % number, key) for number in range(20)]), 0))
    written.put(written.move({key: 1}))
    topic.commit(topic.data(batch([Record(b"%d" % number, key) for number in range(20, 70)]), 1), features=written.features)
    return topic


def test_a_position_beyond_a_cut_stays_where_the_donor_goes_back(moved: Topic, tmp_path: Path) -> None:
    table = OffsetTable(moved.root, tmp_path / "offsets")
    cut = moved.versions[-1]["ends"][1] - 50
    options: Any = {"group_id": "g", "table": table, "enable_auto_commit": False, "max_poll_records": 10}
    options["partition_assignment_strategy"] = "exclusive"
    with Consumer(moved.root, "t", auto_offset_reset="earliest", **options) as consumer:
        while consumer.position(P1) < cut + 20:
            assert consumer.poll(100)
        at = consumer.position(P1)
        consumer.commit()
        consumer.seek(P0, 5)
        consumer.poll(0)
        assert consumer.position(P1) == at
        consumer.commit()
        assert consumer.committed(P1) == at
        read(consumer)
        assert consumer.position(P1) == cut + 50
