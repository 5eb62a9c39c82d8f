"""Records that cannot be deserialized."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from handmade import Record, Topic

from sparklog import Consumer, TopicPartition
from sparklog.consumer import RecordDeserializationError


@pytest.fixture
def poisoned(tmp_path: Path) -> Path:
    """Partition 0 has ten records, of which offset 5 is not JSON; partition 1 has ten good ones."""
    topic = Topic(tmp_path / "root", partitions=2)
    topic.append([Record(b"{oops" if number == 5 else b"%d" % number, b"key") for number in range(10)], 0)
    topic.append([Record(b"%d" % (100 + number)) for number in range(10)], 1)
    return tmp_path / "root"


def opened(root: Path, **more: Any) -> Consumer:
    return Consumer(root, "t", auto_offset_reset="earliest", value_deserializer=json.loads, consumer_timeout_ms=100, **more)


def each_of(consumer: Consumer, iterating: bool) -> list[int]:
    if iterating:
        return [found.value for found in itertools.islice(consumer, 1)]
    return [record.value for its in consumer.poll(100).values() for record in its]


@pytest.mark.parametrize("iterating", [False, True])
@pytest.mark.parametrize("most", [1, 500])
def test_a_record_that_fails_is_skipped_alone(poisoned: Path, iterating: bool, most: int) -> None:
    found, failed, positions, bad = list[int](), list[RecordDeserializationError](), list[int](), TopicPartition("t", 0)
    with opened(poisoned, max_poll_records=most) as consumer:
        for _ in range(40):
            try:
                found += each_of(consumer, iterating)
            except RecordDeserializationError as error:
                failed.append(error)
                positions.append(consumer.position(bad))
                consumer.seek(error.partition, error.offset + 1)
    assert sorted(found) == [0, 1, 2, 3, 4, 6, 7, 8, 9, *range(100, 110)]
    ((error),) = failed
    assert (positions, error.partition, error.offset, error.key, error.value) == ([5], bad, 5, b"key", b"{oops")
    assert "offset 5 of topic t under" in str(error)
    assert isinstance(error.__cause__, json.JSONDecodeError)


@pytest.mark.parametrize("iterating", [False, True])
def test_other_partitions_go_on_while_nothing_is_done_about_it(poisoned: Path, iterating: bool) -> None:
    found, failed = list[int](), 0
    with opened(poisoned, max_poll_records=3) as consumer:
        for _ in range(30):
            try:
                found += each_of(consumer, iterating)
            except RecordDeserializationError:
                failed += 1
    assert sorted(found) == [0, 1, 2, 3, 4, *range(100, 110)]
    assert failed >= 3
