"""The answers of `sparklog.Log` about roots made by hand."""

import datetime
import json
from pathlib import Path

import google_crc32c
import pyarrow as pa
import pytest
from handmade import TIME, VALUES, Record, Topic, batch, records, split
from unit.answers import failure, places, values

from sparklog import Log

UTC = datetime.timezone.utc


def test_a_log_is_like_a_dict_of_topics(tmp_path, topic):
    Topic(tmp_path, "other").append(records(1))
    log = Log(tmp_path)
    assert (list(log), len(log)) == (["other", "t"], 2)
    assert "t" in log and "u" not in log and 3 not in log
    assert places(log["t"].read(1)) == [(1, offset) for offset in range(10)]
    assert log


def test_offsets_and_configuration(log):
    assert (log.name, log.partitions) == ("t", 2)
    assert log.config["partitioner"] == "murmur3"
    assert (log.start_offsets(), log.end_offsets()) == ({0: 0, 1: 0}, {0: 25, 1: 10})


def test_read_gives_sparks_columns(log):
    table = log.read()
    assert table.schema.names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    types = [pa.binary(), pa.binary(), pa.string(), pa.int32(), pa.int64(), pa.timestamp("us", "UTC"), pa.int32()]
    assert table.schema.types == [*types, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))]
    assert places(table) == [(0, offset) for offset in range(25)] + [(1, offset) for offset in range(10)]
    assert values(table)[:25] == VALUES
    assert table.slice(16, 1).to_pylist() == [
        {
            "key": b"k1",
            "value": b"d-1",
            "topic": "t",
            "partition": 0,
            "offset": 16,
            "timestamp": datetime.datetime.fromtimestamp((TIME + 1001) / 1000, UTC),
            "timestampType": 0,
            "headers": None,
        }
    ]


def test_every_range_gives_what_it_names(log):
    for start in range(26):
        for end in range(start, 26):
            table = log.read(0, start, end)
            assert places(table) == [(0, offset) for offset in range(start, end)]
            assert values(table) == VALUES[start:end]
    assert failure(lambda: log.read(0, 7, 3)).id == "OFFSETS_BACKWARDS"


def test_ranges_and_limits_by_partition(log):
    assert places(log.read(start={0: 23, 1: 8})) == [(0, 23), (0, 24), (1, 8), (1, 9)]
    assert places(log.read(end={0: 1}, limit=3)) == [(0, 0), (1, 0), (1, 1)]
    for limit in range(40):
        assert places(log.read(limit=limit)) == places(log.read())[:limit]
        assert values(log.read(0, 6, limit=limit)) == VALUES[6 : 6 + limit]


def test_head_and_tail(log):
    everything = places(log.read())
    for n in range(40):
        assert places(log.head(n)) == everything[:n]
        assert places(log.head(n, partition=1)) == [(1, offset) for offset in range(min(n, 10))]
        assert places(log.tail(n, partition=1)) == [(1, offset) for offset in range(max(0, 10 - n), 10)]
        assert log.tail(n).num_rows == min(n, 35)
    assert places(log.tail(4)) == [(0, 21), (0, 22), (0, 23), (0, 24)]


def test_tail_merges_partitions_by_time_and_keeps_their_order(tmp_path):
    topic = Topic(tmp_path, partitions=2)
    topic.commit(
        topic.data(batch([Record(timestamp=TIME + at) for at in (1, 9, 3, 10)])),
        topic.data(batch([Record(timestamp=TIME + at) for at in (2, 4, 8, 9)]), 1),
    )
    log = Log(tmp_path).topic("t")
    # 0:1 has time 9, but 0:2 with time 3 comes after it.
    assert places(log.tail(8)) == [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 3), (0, 3)]
    assert places(log.tail(3)) == [(1, 2), (1, 3), (0, 3)]
    assert (log.tail(0).num_rows, log.tail(partition=[]).num_rows) == (0, 0)


@pytest.mark.parametrize(("most", "least"), [(0, 30), (700, 2), (1 << 30, 1)])
def test_last_records_that_an_arrow_array_cannot_hold_come_in_several(tmp_path, monkeypatch, most, least):
    monkeypatch.setattr("sparklog.log.by_time.PART_BYTES_MAX", most)
    topic = Topic(tmp_path, partitions=3)
    for at in range(30):
        topic.append([Record(b"v%d" % at * (at % 5), None if at % 4 else b"k", TIME + at, ((b"h", b"x"),) * (at % 3))], (at * at) % 3)
    log = Log(tmp_path).topic("t")
    expected = sorted(log.read().to_pylist(), key=lambda row: row["timestamp"])
    for n in (1, 2, 7, 30, 99):
        assert log.tail(n).to_pylist() == expected[-n:]
    assert (log.tail(30)["value"].num_chunks > 1) == (least > 1)
    assert log.tail(30)["value"].num_chunks >= least


def test_offsets_for_time(log):
    def at(time):
        return log.offsets_for_time(time)

    assert at(0) == at(-1) == at(-(2**80)) == {0: 0, 1: 0}
    assert at(2**80) == {0: 25, 1: 10}
    assert at(TIME + 3) == {0: 3, 1: 3}
    # Each batch of the first segment begins at TIME again. The first record at or after the time counts, in order of offsets.
    assert at(TIME + 5) == {0: 14, 1: 5}
    assert at(TIME + 6) == {0: 15, 1: 6}
    assert at(TIME + 1003) == {0: 18, 1: 10}
    assert at(TIME + 2002) == {0: 24, 1: 10}
    assert at(TIME + 2003) == {0: 25, 1: 10}
    moment = datetime.datetime.fromtimestamp(TIME / 1000, UTC)
    assert at(moment + datetime.timedelta(milliseconds=3)) == {0: 3, 1: 3}
    assert at("2023-11-14T22:13:20.003Z") == at("2023-11-14T23:13:20.003+01:00") == {0: 3, 1: 3}
    assert at(moment + datetime.timedelta(milliseconds=2, microseconds=1)) == {0: 3, 1: 3}


def test_offsets_for_time_looks_at_what_is_still_there(topic, log):
    topic.commit(starts=[16, 4])
    assert log.offsets_for_time(TIME) == {0: 16, 1: 4}
    assert log.offsets_for_time(TIME + 2) == {0: 16, 1: 4}
    assert places(log.read())[0] == (0, 16)
    assert failure(lambda: log.read(0, start=15)).id == "OFFSETS_OUT_OF_RANGE"


def test_scan_is_of_the_moment_it_was_called(topic, log):
    scan = log.scan()
    topic.append(records(1, "later"))
    assert sum(part.num_rows for part in scan) == 35
    assert log.read().num_rows == 36


def test_batches(log, topic):
    found = list(log.batches(0))
    assert [(each.base_offset, each.last_offset, each.records) for each in found] == [
        (0, 4, 5),
        (5, 8, 4),
        (9, 14, 6),
        (15, 21, 7),
        (22, 24, 3),
    ]
    for each in found:
        octets = Path(each.file).read_bytes()[each.position :][: each.bytes]
        assert split(octets) == [octets]
        assert each.crc == google_crc32c.value(octets[21:])
    assert (found[3].codec, found[3].base_timestamp, found[3].max_timestamp) == ("none", TIME + 1000, TIME + 1006)
    assert (found[3].producer_id, found[3].producer_epoch, found[3].base_sequence) == (-1, -1, -1)


def test_commits(log, topic):
    topic.commit(query={"id": "q", "epoch": 4, "input": None})
    first, second, third = log.commits()
    assert (first.version, first.operation, first.records, first.segments, first.end_offsets) == (0, "create", 15, 1, {0: 15})
    assert (second.version, second.writer, second.records, second.bytes) == (
        1,
        "by hand",
        20,
        sum(segment["bytes"] for segment in topic.versions[1]["added"]),
    )
    assert (third.query, third.epoch, third.records) == ("q", 4, 0)
    assert second.time == datetime.datetime.fromtimestamp(TIME / 1000 + 1, UTC)
    assert log.commits(1) == [third]


def test_describe(log, topic):
    about = json.loads(json.dumps(log.describe()))
    assert (about["topic"], about["version"], about["records"], about["segments"]) == ("t", 1, 35, 3)
    assert about["bytes"] == sum(segment["bytes"] for version in topic.versions for segment in version["added"])
    assert about["partitions"][1] | {"bytes": 0} == {
        "partition": 1,
        "start": 0,
        "end": 10,
        "records": 10,
        "batches": 1,
        "bytes": 0,
        "segments": 1,
        "min_timestamp": TIME,
        "max_timestamp": TIME + 9,
    }


def test_describe_says_what_waits_for_its_deletion(tmp_path):
    """Files that a version removed and that are still there, once each; not one of which a segment is live."""
    topic = Topic(tmp_path, partitions=2)
    topic.commit(topic.data(batch(records(10)), 0), topic.data(batch(records(4)), 1))  # They share a file.
    topic.append(records(5))
    log = Log(tmp_path).topic("t")
    shared, other = topic.live[0]
    assert log.describe()["waiting"] == {"files": 0, "bytes": 0}
    topic.commit(removed=[shared], starts=[10, 0])
    assert log.describe()["waiting"] == {"files": 0, "bytes": 0}
    topic.commit(removed=[other, *topic.live[1]], starts=[15, 4])
    files = [topic.folder / each["file"] for each in (shared, other)]
    assert log.describe()["waiting"] == {"files": 2, "bytes": sum(file.stat().st_size for file in files)}
    files[0].unlink()
    assert log.describe()["waiting"] == {"files": 1, "bytes": files[1].stat().st_size}
    topic.checkpoint()
    topic.version_file(2).write_bytes(b"{}")
    assert Log(tmp_path).topic("t").describe()["waiting"] is None


def test_a_topic_without_records(tmp_path):
    Topic(tmp_path, partitions=3).commit()
    log = Log(tmp_path).topic("t")
    for table in (log.head(), log.tail(), log.read()):
        assert table.num_rows == 0 and table.schema.names[0] == "key"
    assert log.offsets_for_time(0) == {0: 0, 1: 0, 2: 0}
    assert list(log.batches(1)) == []
    assert log.describe()["partitions"][0]["max_timestamp"] is None
