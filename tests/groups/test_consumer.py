"""The records that a consumer returns and where it is, over a log made by hand."""

import re
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from handmade import TIME, Record, Topic, batch, batches, records

import sparklog
from sparklog import Consumer, TopicPartition
from sparklog.consumer import ConsumerRecord, OffsetAndTimestamp, RecordDeserializationError

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def read(topic: Topic, *names: str, **options: object) -> Consumer:
    return Consumer(topic.root, *(names or ["t"]), **({"auto_offset_reset": "earliest"} | options))


def offsets(found: dict[TopicPartition, list[ConsumerRecord]]) -> dict[TopicPartition, list[int]]:
    return {partition: [record.offset for record in its] for partition, its in found.items()}


def expire(topic: Topic, start: int) -> None:
    """The log of partition 0 starts later, and the data files below are gone."""
    below = [segment for segment in topic.live[0] if segment["end"] <= start]
    topic.commit(removed=below, starts=[start, *topic.versions[-1]["starts"][1:]], operation="delete-records")
    for segment in below:
        (topic.folder / segment["file"]).unlink()


def test_poll_returns_what_is_there_and_then_what_is_committed(topic):
    consumer = read(topic)
    assert offsets(consumer.poll()) == {T0: list(range(25)), T1: list(range(10))}
    assert (consumer.position(T0), consumer.position(("t", 1)), consumer.poll()) == (25, 10, {})
    topic.append([Record(b"v", b"k", TIME + 7, ((b"h", b"x"), (b"h", None)))], 1)
    assert consumer.poll() == {T1: [ConsumerRecord("t", 1, 10, TIME + 7, 0, b"k", b"v", [("h", b"x"), ("h", None)])]}
    topic.append([Record(None, None, -1)])
    assert consumer.poll()[T0] == [("t", 0, 25, -1, 0, None, None, [])]
    assert consumer.highwater(T0) == 26


def fetched(consumer: Consumer, max_bytes: int) -> Iterator[tuple[list[int], int]]:
    """The offsets that each fetch of partition 0 returns, and the offset to go on from."""
    at = 0
    while (found := consumer.fetch(T0, at, max_bytes)).batch.num_rows:
        at = found.next_offset
        yield found.batch["offset"].to_pylist(), at


def polled(consumer: Consumer) -> Iterator[tuple[list[int], int]]:
    while found := consumer.poll_batches():
        yield found[T0]["offset"].to_pylist(), consumer.position(T0)


@pytest.mark.parametrize("size", [2**31 - 1, 1 << 32])
def test_more_than_an_arrow_array_can_hold_comes_in_several_answers(tmp_path, monkeypatch, size):
    monkeypatch.setattr("sparklog.ondisk.reader._CHUNK_RECORDS", 1)
    monkeypatch.setattr("sparklog.ondisk.reader.PART_BYTES_MAX", 3 << 10)
    topic = Topic(tmp_path)
    for _ in range(2):
        topic.commit(topic.data(batches(*[records(1, "x" * 1024)] * 7)))
    several = [([0, 1, 2], 3), ([3, 4, 5], 6), ([6, 7, 8], 9), ([9, 10, 11], 12), ([12, 13], 14)]
    with read(topic, fetch_max_bytes=1 << 33, max_partition_fetch_bytes=size) as consumer:
        assert list(polled(consumer)) == several
        assert list(fetched(consumer, size)) == several


@pytest.mark.soak
def test_more_than_two_gibibytes_at_once_lack_no_record(tmp_path):
    """It takes some 8 GB of memory."""
    codec, count, size = pa.Codec("zstd"), 2_304, 1 << 20

    def one(number: int) -> bytes:
        record = Record(b"%08d" % number + b"x" * (size - 8), b"k").encoded(0, TIME)
        return batch([Record(b"", b"k")], number, payload=codec.compress(record, asbytes=True), attributes=4)

    topic = Topic(tmp_path, config={"compression.type": "zstd", "max.message.bytes": str(2 * size)})
    topic.commit(topic.data(b"".join(map(one, range(count)))))
    for most in (2**31 - 1, 1 << 32):
        with read(topic, fetch_max_bytes=1 << 33, max_partition_fetch_bytes=most) as consumer:
            for answers in (polled(consumer), fetched(consumer, most)):
                at = 0
                for got, after in answers:
                    assert got == list(range(at, after)), f"offsets from {at} on"
                    at = after
                assert at == count


@pytest.mark.parametrize("topics", ["t", ["t"], ("t",), {"t"}])
def test_topics_by_name(topic, topics):
    with Consumer(topic.root, topics=topics, auto_offset_reset="earliest") as consumer:
        assert consumer.subscription() == {"t"}
        assert sum(map(len, consumer.poll().values())) > 0


def test_batches_are_those_of_a_read(topic):
    consumer, log = read(topic), sparklog.Log(topic.root)["t"]
    for _ in range(2):
        found = consumer.poll_batches()
        assert {partition: pa.Table.from_batches([batch]) for partition, batch in found.items()} == {
            partition: log.read(partition.partition, start=25 if consumer.position(T0) > 25 else 0) for partition in found
        }
        topic.append(records(3, "z"))
    assert consumer.poll_batches(max_records=2)[T0]["offset"].to_pylist() == [28, 29]
    assert consumer.poll_batches(max_records=2)[T0]["offset"].to_pylist() == [30]


def test_latest_is_what_is_committed_from_now_on(topic):
    consumer, other = Consumer(topic.root, "t"), Consumer(topic.root)
    assert consumer.poll() == {}
    assert (consumer.position(T0), consumer.position(T1)) == (25, 10)
    other.subscribe(["t"])
    topic.append(records(2))
    # It counts when the consumer subscribed, not when it polls.
    assert offsets(other.poll()) == {T0: [25, 26]}
    # A partition that is new has nothing that was there before.
    topic.append(records(3), 1)
    topic.grow(3)
    topic.commit(topic.data(batch(records(4)), 2))
    assert offsets(consumer.poll()) == {T0: [25, 26], T1: [10, 11, 12], ("t", 2): [0, 1, 2, 3]}
    assert consumer.assignment() == {T0, T1, ("t", 2)}


def test_poll_returns_at_most_max_poll_records_and_gives_each_partition_its_turn(topic):
    consumer = read(topic, max_poll_records=20, max_partition_fetch_bytes=1)
    polled = [offsets(consumer.poll()) for _ in range(5)]
    # A turn is a whole batch, however few bytes are asked for.
    assert polled == [
        {T0: [0, 1, 2, 3, 4], T1: list(range(10))},
        {T0: [5, 6, 7, 8]},
        {T0: list(range(9, 15))},
        {T0: list(range(15, 22))},
        {T0: [22, 23, 24]},
    ]
    assert offsets(read(topic).poll(max_records=7)) == {T0: list(range(7))}
    several = read(topic, max_poll_records=8)
    assert [offsets(several.poll()) for _ in range(5)] == [
        {T0: list(range(8))},
        {T0: list(range(8, 16))},
        {T0: list(range(16, 24))},
        {T0: [24], T1: list(range(7))},
        {T1: [7, 8, 9]},
    ]


def test_iteration_moves_the_position_record_by_record(topic):
    consumer = read(topic, consumer_timeout_ms=50)
    seen = []
    for record in consumer:
        assert consumer.position((record.topic, record.partition)) == record.offset + 1
        seen.append((record.partition, record.offset))
        if len(seen) == 4:
            consumer.seek(T0, 20)
        if record.offset == 22:
            consumer.pause(T0)
    assert seen == [*((0, n) for n in range(4)), *((1, n) for n in range(10)), *((0, n) for n in (20, 21, 22))]
    assert consumer.paused() == {T0}
    consumer.resume(T0)
    assert next(consumer).offset == 23
    # A poll returns the records that iteration did not return yet.
    assert offsets(consumer.poll()) == {T0: [24]}
    with pytest.raises(StopIteration):
        next(consumer)


def test_seeks_and_questions(topic):
    consumer = read(topic)
    consumer.seek_to_end()
    assert consumer.poll() == {}
    consumer.seek(T0, 24)
    consumer.seek_to_beginning(T1)
    assert offsets(consumer.poll()) == {T0: [24], T1: list(range(10))}
    assert consumer.beginning_offsets([T0, T1]) == {T0: 0, T1: 0}
    assert consumer.end_offsets([T0, T1]) == {T0: 25, T1: 10}
    assert consumer.offsets_for_times({T0: TIME + 1000, T1: TIME + 3000}) == {T0: OffsetAndTimestamp(15, TIME + 1000), T1: None}
    topic.append(records(2))
    assert consumer.end_offsets([T0]) == {T0: 27}
    # The question did not hide the commit from the poll.
    assert offsets(consumer.poll()) == {T0: [25, 26]}
    assert consumer.topics() == {"t"}
    assert consumer.partitions_for_topic("t") == {0, 1}
    assert (consumer.subscription(), consumer.assignment()) == ({"t"}, {T0, T1})


def test_fetch_returns_whole_batches_of_so_many_bytes(topic):
    consumer = Consumer(topic.root)
    sizes = {each.base_offset: each.bytes for each in sparklog.Log(topic.root)["t"].batches(0)}
    for start, octets, end in [
        (0, 1, 5),
        (0, sizes[0] + sizes[5] - 1, 5),
        (0, sizes[0] + sizes[5], 9),
        (5, sizes[5], 9),
        (7, sizes[5] + sizes[9] + sizes[15], 22),
        (9, 1 << 20, 25),
        (22, 1, 25),
        (25, 1, 25),
    ]:
        found = consumer.fetch(T0, start, octets)
        assert found.batch["offset"].to_pylist() == list(range(start, end)), (start, octets)
        assert found[1:] == (end, 0, 25)
    assert consumer.fetch(T1, 0).batch.num_rows == 10
    assert consumer.assignment() == set()


def test_gaps_and_empty_batches_are_passed_over(tmp_path):
    topic = Topic(tmp_path)
    content = [batch(records(2), 0, deltas=[3, 7]), batch([], 8, last_offset_delta=11), batch(records(1), 20, last_offset_delta=9)]
    topic.commit(topic.data(b"".join(content), offsets="tiled"))
    topic.commit(topic.data(batch([], 30), offsets="tiled"))
    consumer = read(topic, max_partition_fetch_bytes=1)
    assert offsets(consumer.poll()) == {T0: [3, 7]}
    assert consumer.position(T0) == 8
    assert offsets(consumer.poll()) == {T0: [20]}
    assert consumer.position(T0) == 30
    # Offsets without records are read too, or the consumer would always be behind.
    assert (consumer.poll(), consumer.position(T0)) == ({}, 31)
    assert [record.offset for record in read(topic, consumer_timeout_ms=1)] == [3, 7, 20]


@pytest.mark.parametrize("reset", ["earliest", "latest", "none"])
def test_a_position_that_expired(topic, reset, caplog):
    consumer = read(topic, auto_offset_reset=reset, poll_interval_ms=1)
    consumer.seek(T0, 3)
    consumer.seek(T1, 10)
    assert offsets(consumer.poll(max_records=2)) == {T0: [3, 4]}
    expire(topic, 15)
    time.sleep(0.01)
    if reset == "none":
        for _ in range(2):
            with pytest.raises(sparklog.CallError, match=r"OFFSETS_OUT_OF_RANGE.*`position` asks for offset 5 .* 15 to 25"):
                consumer.poll()
        consumer.seek(T0, 15)
    elif reset == "latest":
        assert consumer.poll() == {}
        assert consumer.position(T0) == 25
        topic.append(records(1))
    assert offsets(consumer.poll()) == {T0: [25] if reset == "latest" else list(range(15, 25))}
    to = {"earliest": 15, "latest": 25, "none": None}[reset]
    warned = f"Offset 5 of topic t, partition 0 is not in the log; going on at {to} ({reset})"
    assert [each.getMessage() for each in caplog.records] == ([warned] if to else [])


def test_files_that_expire_before_the_consumer_knows(topic):
    consumer = read(topic, max_partition_fetch_bytes=1)
    assert offsets(consumer.poll())[T0] == [0, 1, 2, 3, 4]
    expire(topic, 15)
    assert offsets(consumer.poll()) == {T0: list(range(15, 22))}


def test_files_that_were_replaced(topic):
    consumer = read(topic, max_partition_fetch_bytes=1)
    assert offsets(consumer.poll(max_records=5)) == {T0: [0, 1, 2, 3, 4]}
    old = topic.live[0][:]
    whole = batches(*(records(size, "new") for size in (5, 4, 6, 7, 3)))
    topic.commit(topic.data(whole, base=0, end=25, name="p0-t0-0-0.log"), removed=old)
    consumer.pause(T1)  # its records are in one of these files
    for segment in old:
        (topic.folder / segment["file"]).unlink()
    # It still has the state before, and finds the file gone.
    got = []
    while found := consumer.poll():
        got += offsets(found).get(T0, [])
    assert got == list(range(5, 25))
    (topic.folder / topic.live[0][0]["file"]).unlink()
    consumer.seek(T0, 0)
    with pytest.raises(sparklog.DataError, match="SEGMENT_MISSING"):
        consumer.poll()


@pytest.mark.parametrize("reset", ["earliest", "latest", "none"])
def test_a_topic_that_is_deleted_and_created_again(topic, reset):
    consumer = read(topic, auto_offset_reset=reset)
    consumer.seek(T0, 0)
    consumer.seek(T1, 0)
    consumer.poll()
    topic.delete()
    for _ in range(3):
        with pytest.raises(sparklog.CallError, match="TOPIC_NOT_FOUND"):
            consumer.poll()
    topic.append(records(30, "new"))
    if reset == "none":
        for _ in range(2):
            with pytest.raises(sparklog.CallError, match="OFFSET_NOT_COMMITTED"):
                consumer.poll()
        consumer.seek_to_beginning()
    # All of it was written after the consumer began, so it is not skipped with "latest" either.
    assert offsets(consumer.poll()) == {T0: list(range(30))}


def test_a_topic_that_is_replaced_between_two_polls(topic):
    consumer = read(topic, auto_offset_reset="latest")
    consumer.seek_to_beginning()
    consumer.poll(max_records=3)
    topic.delete()
    topic.partitions = 1
    topic.append(records(30, "new"))
    time.sleep(0.15)
    assert [record.value for record in consumer.poll()[T0]] == [b"new-%d" % number for number in range(30)]
    assert consumer.assignment() == {T0}


def test_a_pattern_follows_topics(tmp_path):
    one, other = Topic(tmp_path, "orders.eu"), Topic(tmp_path, "users")
    one.append(records(2))
    other.append(records(2))
    consumer = Consumer(tmp_path, metadata_max_age_ms=0)
    consumer.subscribe(pattern="orders")
    assert (consumer.poll(), consumer.subscription()) == ({}, {"orders.eu"})
    late = Topic(tmp_path, "orders.us")
    late.append(records(3))
    one.append(records(1))
    assert offsets(consumer.poll()) == {("orders.eu", 0): [2], ("orders.us", 0): [0, 1, 2]}
    one.delete()
    assert (consumer.poll(), consumer.assignment()) == ({}, {("orders.us", 0)})
    one.append(records(1))
    assert offsets(consumer.poll()) == {("orders.eu", 0): [0]}
    consumer.subscribe(pattern=re.compile("nothing"))
    assert (consumer.poll(), consumer.assignment()) == ({}, set())


def test_a_subscription_takes_the_place_of_the_one_before(topic):
    other = Topic(topic.root, "u")
    other.append(records(2))
    consumer = read(topic)
    consumer.poll(max_records=5)
    consumer.subscribe(["t", "u"])
    assert offsets(consumer.poll()) == {T0: list(range(5, 25)), T1: list(range(10)), ("u", 0): [0, 1]}
    consumer.subscribe(pattern="[tu]$")
    assert consumer.poll() == {}
    consumer.subscribe(["u", "t"])
    assert consumer.poll() == {}
    consumer.unsubscribe()
    assert consumer.subscription() is None
    consumer.assign([T1])
    assert consumer.assignment() == {T1}
    assert offsets(consumer.poll()) == {T1: list(range(10))}
    consumer.assign([T1, ("u", 0)])
    assert offsets(consumer.poll()) == {("u", 0): [0, 1]}


def test_deserializers(topic):
    consumer = read(topic, key_deserializer=bytes.decode, value_deserializer=len)
    topic.append([Record(None)])
    first, *_, last = consumer.poll()[T0]
    assert (first.key, first.value, last.key, last.value) == ("k0", 3, None, None)


def test_the_error_of_a_record_names_its_key_before_its_value(tmp_path):
    topic = Topic(tmp_path)
    topic.append([Record(b"1", b"1"), Record(b"x", b"1"), Record(b"1", b"x"), Record(b"x", b"x"), Record(None, None), Record(b"1", b"x")])
    consumer = read(topic, key_deserializer=int, value_deserializer=int)
    found, failed = list[int](), list[tuple[int, str]]()
    for _ in range(8):
        try:
            found += [record.offset for record in consumer.poll().get(("t", 0), [])]
        except RecordDeserializationError as error:
            failed.append((error.offset, error.parameters["which"]))
            consumer.seek(T0, error.offset + 1)
    assert (found, failed) == ([0, 4], [(1, "value"), (2, "key"), (3, "key"), (5, "key")])


def test_a_wait_ends_with_a_commit_with_wakeup_and_with_close(topic):
    consumer = read(topic, poll_interval_ms=5)
    consumer.seek_to_end()
    began = time.monotonic()
    assert consumer.poll(60) == {}
    assert 0.06 <= time.monotonic() - began < 50
    consumer.wakeup()
    assert consumer.poll(60_000) == {}
    consumer.wakeup()
    assert list(consumer) == []
    topic.append(records(1))
    assert offsets(consumer.poll(60_000)) == {T0: [25]}
    consumer.close()
    consumer.close()
    assert list(consumer) == []
