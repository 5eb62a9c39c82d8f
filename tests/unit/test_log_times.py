"""Reading by time: the same records as a filter of everything, and only the segments that can hold them."""

import datetime

import pytest
from handmade import TIME, Record, Topic, batch, batches, records, seeded
from unit.answers import failure

from sparklog import Log

UTC = datetime.timezone.utc


@pytest.fixture
def random_times(tmp_path):
    """A topic of two partitions and ten segments, whose times overlap, and some of which are below 0."""
    some = seeded()
    topic = Topic(tmp_path, partitions=2)
    for number in range(10):
        base = some.randrange(-20, 60)
        content = [
            Record(f"{number}-{each}".encode(), b"k%d" % (each % 3), base + some.randrange(20)) for each in range(some.randrange(1, 9))
        ]
        times = [each.timestamp for each in content]
        low, high = max(-1, min(times)), max(-1, *times)
        topic.append(content, number % 2, minTimestamp=low, maxTimestamp=high)
    return topic


def test_the_records_between_two_times(random_times):
    topic = Log(random_times.root)["t"]
    everything = [(row["partition"], row["offset"], row["key"], row["timestamp"]) for row in topic.read().to_pylist()]
    epoch = datetime.datetime(1970, 1, 1, tzinfo=UTC)
    everything = [
        (partition, offset, key, (time - epoch) // datetime.timedelta(milliseconds=1)) for partition, offset, key, time in everything
    ]
    for since in (None, *range(-1, 85, 4)):
        for until in (None, *range(-1 if since is None else since, 85, 4)):
            wanted = [each for each in everything if (since is None or each[3] >= since) and (until is None or each[3] < until)]
            for limit in (None, 0, 3):
                found = topic.read(limit=limit, since=since, until=until, columns=["partition", "offset"]).to_pylist()
                assert [(row["partition"], row["offset"]) for row in found] == [each[:2] for each in wanted][:limit]
    of_key = topic.read(1, 2, key="k1", since=10, until=50, columns=["offset"])["offset"].to_pylist()
    assert of_key == [offset for part, offset, key, time in everything if part == 1 and offset >= 2 and key == b"k1" and 10 <= time < 50]


def test_segments_of_other_times_are_not_read(tmp_path):
    topic = Topic(tmp_path)
    for number in range(3):
        topic.commit(topic.data(batches(records(5, f"{number}", TIME + 1000 * number))))
    for number in (0, 2):
        topic.data_file(number).unlink()
    log = Log(tmp_path)["t"]
    assert log.read(since=TIME + 1000, until=TIME + 2000)["value"].to_pylist() == [f"1-{each}".encode() for each in range(5)]
    assert log.read(since="2023-11-14T22:13:21Z", until=datetime.datetime.fromtimestamp(TIME // 1000 + 2, UTC)).num_rows == 5
    assert failure(lambda: log.read(since=TIME + 1000)).id == "SEGMENT_MISSING"
    assert failure(lambda: log.read(until=TIME + 2000)).id == "SEGMENT_MISSING"
    assert failure(lambda: log.read(since="yesterday")).id == "OPTION_VALUE"


def test_times_that_the_log_sets(tmp_path):
    """The records of such a batch have its greatest time."""
    topic = Topic(tmp_path)
    octets = batch([Record(b"a", None, 5), Record(b"b", None, 9)], attributes=8, max_timestamp=70)
    topic.commit(topic.data(octets, maxTimestamp=70))
    log = Log(tmp_path)["t"]
    assert [log.read(since=since, until=until).num_rows for since, until in ((70, 71), (0, 70), (71, None))] == [2, 0, 0]
