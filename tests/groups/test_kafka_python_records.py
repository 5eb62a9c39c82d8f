"""Records and groups as kafka-python's tests of its consumer expect them from a broker: the same answer, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from groups.kafka_python import Case, Cases, World, error, offsets, refused
from handmade import TIME, Record, batch, records

from sparklog.consumer import OffsetAndMetadata

case = Cases()


@case([{"t", "u"}, {0, 1}])
def topics_and_their_partitions(w: World) -> Any:
    consumer = w.make()
    return [consumer.topics(), consumer.partitions_for_topic("t")]


@case([True], there=[False])
def partitions_of_a_topic_that_does_not_exist(w: World) -> Any:
    return refused(lambda: w.make().partitions_for_topic("x"))


@case([list(range(25)), list(range(10))])
def iteration_returns_each_record_once(w: World) -> Any:
    found: dict[int, list[int]] = {0: [], 1: []}
    for record in islice(w.make("t"), 35):
        found[record.partition].append(record.offset)
    return list(found.values())


@case([[], [0, 1, 2, 3, 4], [5, 6, 7, 8, 9]])
def iteration_ends_after_its_timeout_and_goes_on_later(w: World) -> Any:
    consumer = w.make("t", consumer_timeout_ms=100, auto_offset_reset="latest")
    consumer.unsubscribe()
    w.t.delete()
    w.t.commit()
    consumer.assign([w.p0])
    found = [[record.offset for record in consumer]]
    w.t.append(records(10), 0)
    return [*found, [next(consumer).offset for _ in range(5)], [record.offset for record in consumer]]


@case([30, 5])
def a_second_consumer_goes_on_where_the_first_one_closed(w: World) -> Any:
    found = []
    for count in (30, 5):
        with w.make("t", group_id="g", auto_commit_interval_ms=100, consumer_timeout_ms=2_000) as consumer:
            found += [(record.partition, record.offset) for record in islice(consumer, count)]
    return [30, len(set(found)) - 30]


@case({0, 1})
def few_bytes_at_a_time_come_from_all_partitions(w: World) -> Any:
    consumer, found = w.make("t", fetch_max_bytes=300), set()
    for _ in range(90):
        found |= {partition.partition for partition in consumer.poll(100)}
        if len(found) == 2:
            break
    return found


@case(10)
def a_record_comes_that_is_larger_than_a_fetch(w: World) -> Any:
    return len(list(islice(w.make("t", group_id="g", fetch_max_bytes=1), 10)))


@case([(0, 5000), (1, 7000), (1, 7000), (0, 5000), None])
def the_first_record_at_or_after_a_time(w: World) -> Any:
    w.t.delete()
    w.t.append([Record(b"first", timestamp=TIME + 5000), Record(b"last", timestamp=TIME + 7000)], 0)
    consumer = w.make()
    asked = [TIME + 5000, TIME + 6000, TIME + 7000, 0, 9_999_999_999_999]
    found = [consumer.offsets_for_times({w.p0: each})[w.p0] for each in asked]
    return [each and (each.offset, each.timestamp - TIME) for each in found]


@case(("offset", "timestamp"), there=("offset", "timestamp", "leader_epoch"))
def the_fields_of_an_offset_and_its_time(w: World) -> Any:
    return w.make().offsets_for_times({w.p0: TIME})[w.p0]._fields


@case([{0: 0, 1: 0}, {0: 25, 1: 10}])
def both_ends_of_several_partitions(w: World) -> Any:
    consumer = w.make()
    both = (consumer.beginning_offsets([w.p0, w.p1]), consumer.end_offsets([w.p0, w.p1]))
    return [{partition.partition: offset for partition, offset in found.items()} for found in both]


@case(["PARTITION_NOT_FOUND"] * 3, there=["KafkaTimeoutError"] * 3)
def questions_about_a_partition_that_does_not_exist(w: World) -> Any:
    consumer, gone = w.make(), w.partition("t", 100)
    asked = (
        lambda: consumer.offsets_for_times({gone: 0}),
        lambda: consumer.beginning_offsets([gone]),
        lambda: consumer.end_offsets([gone]),
    )
    return list(map(error, asked))


@case([True] * 4, there=[False] * 4)
def a_limit_for_waiting(w: World) -> Any:
    consumer = w.assigned(group_id="g")
    limited = (lambda: consumer.position(w.p0, timeout_ms=1_000), lambda: consumer.committed(w.p0, timeout_ms=1_000))
    return refused(*limited, lambda: consumer.commit(timeout_ms=1_000), lambda: consumer.close(timeout_ms=1_000))


@case([25, 0, {}])
def positions_after_seeks_to_both_ends(w: World) -> Any:
    consumer = w.assigned()
    consumer.seek_to_end(w.p0)
    found = [consumer.position(w.p0)]
    consumer.seek_to_beginning()
    found.append(consumer.position(w.p0))
    consumer.seek_to_end()
    return [*found, consumer.poll(0)]


@case("NOT_SUBSCRIBED", there={})
def a_poll_of_a_consumer_that_reads_nothing(w: World) -> Any:
    return error(w.make().poll)


# ---- fetched records


@case([1, True, {}, 25])
def a_partition_that_is_paused_returns_nothing_that_was_fetched(w: World) -> Any:
    consumer = w.assigned(max_poll_records=1)
    found = [len(consumer.poll(100)[w.p0])]
    consumer.pause(w.p0)
    found += [consumer.paused() == {w.p0}, consumer.poll(100)]
    consumer.resume(w.p0)
    return [*found, 1 + sum(len(consumer.poll(100)[w.p0]) for _ in range(24))]


@case([[0], [20]])
def a_seek_drops_what_was_fetched(w: World) -> Any:
    consumer = w.assigned(max_poll_records=1)
    found = [offsets(consumer.poll(100))[0]]
    consumer.seek(w.p0, 20)
    return [*found, offsets(consumer.poll(100))[0]]


@case([[3], [4, 5], 6, 25])
def a_position_within_a_batch(w: World) -> Any:
    consumer = w.assigned()
    consumer.seek(w.p0, 3)
    found = [offsets(consumer.poll(100, max_records=1))[0], offsets(consumer.poll(100, max_records=2))[0], consumer.position(w.p0)]
    consumer.poll(100)
    return [*found, consumer.position(w.p0)]


@case([{0: [43, 44]}, {}])
def an_offset_without_a_record(w: World) -> Any:
    w.t.commit(w.t.data(batch([Record(), Record()], 25, deltas=[18, 19]), 0, offsets="tiled"))
    consumer = w.assigned()
    consumer.seek(w.p0, 42)
    return [offsets(consumer.poll(100)), consumer.poll(0)]


@case([0, {0: list(range(25))}])
def an_offset_that_is_not_in_the_log_is_reset(w: World) -> Any:
    consumer = w.assigned()
    consumer.seek(w.p0, 99)
    return [consumer.position(w.p0), offsets(consumer.poll(100))]


@case([0, 25, 10, {}])
def positions_of_a_partition_that_is_paused(w: World) -> Any:
    consumer = w.assigned()
    consumer.pause(w.p0)
    found = [consumer.position(w.p0)]
    consumer.seek_to_end(w.p0)
    found.append(consumer.position(w.p0))
    consumer.seek(w.p0, 10)
    return [*found, consumer.position(w.p0), consumer.poll(0)]


@case([10, True, False, True])
def positions_and_pauses_of_partitions_that_stay(w: World) -> Any:
    consumer = w.assigned(w.p0, auto_offset_reset="latest")
    consumer.seek(w.p0, 10)
    consumer.pause(w.p0)
    consumer.assign([w.p0, w.p1])
    paused = consumer.paused()
    found = [consumer.position(w.p0), w.p0 in paused, w.p1 in paused]
    return [*found, refused(lambda: consumer.assign([w.p0, w.partition("x", 0)])) == [True] and consumer.assignment() == {w.p0, w.p1}]


@case(["OFFSETS_OUT_OF_RANGE", 7, {1: [7, 8, 9]}], there=[{1: [7, 8, 9]}, 10, "OffsetOutOfRangeError"])
def a_position_out_of_range_beside_records(w: World) -> Any:
    consumer = w.assigned(w.p0, w.p1, auto_offset_reset="none")
    consumer.seek(w.p0, 99)
    consumer.seek(w.p1, 7)
    found = [error(lambda: consumer.poll(100)), consumer.position(w.p1) if refused(lambda: consumer.position(w.p1)) == [False] else 7]
    consumer.assign([w.p1])
    return [*found, offsets(consumer.poll(100))]


@case({0: [1, 2]})
def a_seek_comes_before_the_error(w: World) -> Any:
    consumer = w.assigned(w.p0, w.p1, auto_offset_reset="none", max_poll_records=2)
    consumer.seek(w.p0, 1)
    consumer.seek(w.p1, 99)
    consumer.seek(w.p1, 10)
    return offsets(consumer.poll(100))


@case(["BATCH_CORRUPT", 0, {0: list(range(25))}], there=[{0: list(range(25))}, 25, "CorruptRecordError"])
def a_damaged_batch_after_records(w: World) -> Any:
    added = w.t.append(records(3), 0)
    path = w.t.folder / added["file"]
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    consumer, small = w.assigned(), w.assigned(max_partition_fetch_bytes=1)
    return [error(lambda: consumer.poll(100)), consumer.position(w.p0), offsets(small.poll(100))]


# ---- groups


@case([None, 7, "seen", None])
def committed_offsets_with_their_texts(w: World) -> Any:
    consumer = w.assigned(w.p0, w.p1, group_id="g", enable_auto_commit=False)
    found = [consumer.committed(w.p0)]
    consumer.commit({w.p0: OffsetAndMetadata(7, "seen")})
    return [*found, consumer.committed(w.p0), consumer.committed(w.p0, metadata=True).metadata, consumer.committed(w.p1, metadata=True)]


@case([[1, 1, 1, 1], {0, 1, 2, 3}])
def four_members_share_four_partitions(w: World) -> Any:
    given = {"partition_assignment_strategy": "sticky", "heartbeat_interval_ms": 100, "session_timeout_ms": 120_000}
    members = [w.make("u", group_id="g", **given) for _ in range(4)]
    assert [each.assignment() for each in members] == [set()] * 4
    while any(len(each.assignment()) != 1 for each in members):
        for each in members:
            each.poll(10)
    return [[len(each.assignment()) for each in members], {number for each in members for _, number in each.assignment()}]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for each in made.opened:
        each.close(autocommit=False)


@case.parametrized()
def test_an_answer(world: World, case: Case) -> None:
    assert case.calls(world) == case.answer
