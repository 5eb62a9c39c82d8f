"""A partition that is read in parts: whole batches up to a number of bytes, and each part begins where the one before ended."""

import pytest
from handmade import Topic, batch, batches, records, stamped

from sparklog import DataError
from sparklog.ondisk import reader as readers
from sparklog.ondisk.reader import Part, PartitionReader
from sparklog.ondisk.root import Root
from sparklog.ondisk.segment import SegmentReader
from sparklog.ondisk.topic_log import TopicLog

SIZE = len(batch(records(10)))


def reader(topic: Topic) -> PartitionReader:
    log = TopicLog(Root.at(str(topic.root)), topic.name)
    return PartitionReader(log, log.newest(), 0)


def parts(topic: Topic, bytes_max: int) -> list[Part]:
    found = [reader(topic).part(0, bytes_max)]
    while found[-1].offset < topic.versions[-1]["ends"][0]:
        found.append(reader(topic).part(found[-1].offset, bytes_max, found[-1].stop))
    return found


def offsets(part: Part) -> list[int]:
    return [offset for batch in part.batches for offset in batch["offset"].to_pylist()]


@pytest.fixture
def topic(tmp_path):
    topic = Topic(tmp_path)
    for _ in range(3):
        topic.commit(topic.data(batches(*[records(10)] * 4)))
    return topic


@pytest.mark.parametrize(
    ("bytes_max", "each"), [(1, 10), (2 * SIZE - 1, 10), (2 * SIZE, 20), (3 * SIZE, 30), (5 * SIZE, 50), (99 * SIZE, 120)]
)
def test_parts_are_of_whole_batches(topic, bytes_max, each):
    assert [offsets(part) for part in parts(topic, bytes_max)] == [
        list(range(begin, min(begin + each, 120))) for begin in range(0, 120, each)
    ]


def test_a_part_can_begin_within_a_batch(topic):
    part = reader(topic).part(37, 1)
    assert (offsets(part), part.offset, part.stop) == ([37, 38, 39], 40, None)


def test_a_part_begins_at_the_byte_where_the_last_one_ended(topic, monkeypatch):
    read: list[int] = []
    method = SegmentReader._some

    def watched(self: SegmentReader, position: int, least: int, most: int) -> bytes:
        read.append(position)
        return method(self, position, least, most)

    monkeypatch.setattr(SegmentReader, "_some", watched)
    parts(topic, SIZE)
    assert read == [number * SIZE for number in range(4)] * 3


def test_a_stop_in_another_segment_is_not_used(topic):
    stop = reader(topic).part(0, 2 * SIZE).stop
    assert stop and stop.place.offset == 20
    assert offsets(reader(topic).part(60, 1, stop)) == list(range(60, 70))
    old = topic.live[0][:2]
    whole = batches(*[records(10, "whole")] * 8)
    topic.commit(topic.data(whole, base=0, end=80, name="p0-t0-0-0.log"), removed=old)
    part = reader(topic).part(20, 1, stop)
    assert [value.as_py() for value in part.batches[0]["value"]] == [b"whole-%d" % number for number in range(10)]


def test_a_segment_that_is_read_in_parts_is_checked_as_a_whole(tmp_path):
    topic = Topic(tmp_path)
    octets = batches(*[records(10)] * 4)
    topic.commit(topic.data(octets, headerCrc=1))
    with pytest.raises(DataError, match="the checksum of its headers"):
        parts(topic, 1)
    # Each header is read once, and its checksum is carried on from part to part.
    topic.commit(topic.data(octets))
    assert offsets(reader(topic).part(40, 1)) == list(range(40, 50))


def test_what_decompresses_to_much_more_ends_a_part(tmp_path):
    import gzip

    topic = Topic(tmp_path)
    plain = b"".join(record.encoded(0, record.timestamp) for record in [records(1, "x" * (40 << 20))[0]])
    one = batch(records(1), payload=gzip.compress(plain, 1), attributes=1)
    topic.commit(topic.data(stamped(one * 4, 0, 1, 2, 3)))
    assert len(one) < 1 << 19
    assert [len(offsets(part)) for part in parts(topic, 8 << 20)] == [2, 2]
    # A segment is checked as a whole after such a part too.
    topic.commit(topic.data(stamped(one * 2, 4, 5), headerCrc=1))
    with pytest.raises(DataError, match="the checksum of its headers"):
        reader(topic).part(4, 8 << 20)


def test_a_part_ends_before_an_arrow_array_is_full(tmp_path, monkeypatch):
    """The values may fill it, and so may the name of the topic, which each record repeats."""
    named = Topic(tmp_path / "named", "n" * 249)
    named.commit(named.data(batches(*[records(10)] * 6)))
    monkeypatch.setattr(readers, "_CHUNK_RECORDS", 10)
    monkeypatch.setattr(readers, "PART_BYTES_MAX", 2 * 10 * 249)
    found = parts(named, 1 << 40)
    assert [offsets(part) for part in found] == [list(range(begin, begin + 20)) for begin in range(0, 60, 20)]
    assert [(part.offset, part.stop is None) for part in found] == [(20, False), (40, False), (60, True)]

    valued = Topic(tmp_path / "valued")
    for _ in range(2):
        valued.commit(valued.data(batches(*[records(10, "x" * 500)] * 2)))
    assert [offsets(part) for part in parts(valued, 1 << 40)] == [list(range(begin, begin + 10)) for begin in range(0, 40, 10)]
