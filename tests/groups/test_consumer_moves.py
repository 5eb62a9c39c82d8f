"""Calls that move a consumer, or change what it reads, while records of several partitions wait to be returned."""

from collections.abc import Callable
from pathlib import Path

import pytest
from handmade import Topic, batch, records

from sparklog import Consumer
from sparklog.consumer import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """Topic `t` of two partitions with 100 and 1,000 records, beside topic `u` with 10."""
    topic = Topic(tmp_path / "root", partitions=2)
    topic.commit(topic.data(batch(records(100)), 0), topic.data(batch(records(1000)), 1))
    Topic(tmp_path / "root", "u").append(records(10))
    return topic


def begun(topic: Topic) -> Consumer:
    """A consumer that has returned one record of partition 0."""
    consumer = Consumer(topic.root, "t", auto_offset_reset="earliest", consumer_timeout_ms=0)
    assert next(consumer).partition == 0
    return consumer


def test_a_seek_in_a_partition_that_waits_counts(topic: Topic) -> None:
    consumer = begun(topic)
    consumer.seek(T1, 50)
    assert next(each.offset for each in consumer if each.partition == 1) == 50


def test_a_seek_back_in_the_loop_replays(topic: Topic) -> None:
    seen = []
    with Consumer(topic.root, "t", auto_offset_reset="earliest", consumer_timeout_ms=0) as consumer:
        for record in consumer:
            seen.append((record.partition, record.offset))
            if seen[-1] in ((0, 99), (1, 999)) and seen.count(seen[-1]) == 1:
                consumer.seek(TopicPartition("t", record.partition), 10)
    for partition, end in ((0, 100), (1, 1000)):
        assert [offset for each, offset in seen if each == partition] == [*range(end), *range(10, end)]


def test_a_poll_between_takes_what_waits_and_no_position_goes_back(topic: Topic) -> None:
    consumer = begun(topic)
    found = consumer.poll(max_records=100_000)
    before = consumer.position(T0), consumer.position(T1)
    assert before == (100, 1000)
    assert list(consumer) == []
    assert sum(map(len, found.values())) == 1099
    assert (consumer.position(T0), consumer.position(T1)) == before


@pytest.mark.parametrize(
    ("move", "left"),
    [
        (lambda consumer: consumer.seek_to_end(), 0),
        (lambda consumer: consumer.seek_to_end(T1), 99),
        (lambda consumer: consumer.pause(T1), 99),
        (lambda consumer: consumer.pause(T0, T1), 0),
        (lambda consumer: (consumer.unsubscribe(), consumer.assign([T0])), 100),
        (lambda consumer: consumer.subscribe(["u"]), 10),
        (lambda consumer: consumer.seek_to_beginning(), 1100),
    ],
)
def test_what_waits_is_not_returned_after_it(topic: Topic, move: Callable[[Consumer], object], left: int) -> None:
    consumer = begun(topic)
    move(consumer)
    assert len(list(consumer)) == left


def test_assigning_other_partitions_of_a_topic_replaces_those_before(topic: Topic) -> None:
    consumer = Consumer(topic.root, auto_offset_reset="earliest", consumer_timeout_ms=0)
    consumer.assign([T1])
    consumer.assign([T0])
    assert consumer.assignment() == {T0}
    assert set(consumer.poll(max_records=10_000)) == {T0}


def test_subscribing_to_fewer_topics_drops_the_others(topic: Topic) -> None:
    consumer = Consumer(topic.root, "t", "u", auto_offset_reset="earliest", consumer_timeout_ms=0)
    consumer.subscribe(["u"])
    assert {each.topic for each in consumer.poll(max_records=10_000)} == {"u"}
    assert list(consumer) == []


@pytest.mark.parametrize("reset", ["earliest", "latest", "none"])
def test_an_offset_that_was_committed_since_the_last_look_is_in_the_log(topic: Topic, reset: str) -> None:
    consumer = Consumer(topic.root, auto_offset_reset=reset, poll_interval_ms=60_000)
    consumer.assign([T0])
    consumer.seek(T0, 90)
    consumer.poll()
    topic.append(records(50))
    topic.append(records(50))
    # The versions in between are gone, so that the one after the newest known one does not tell.
    topic.checkpoint()
    topic.commit(boundary=2)
    topic.version_file(0).unlink()
    topic.version_file(1).unlink()
    consumer.seek(T0, 150)
    assert consumer.position(T0) == 150
    assert [record.offset for record in consumer.poll()[T0]] == list(range(150, 200))
