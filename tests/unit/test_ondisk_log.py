"""`sparklog.Log` over roots made by hand: what it answers, and that it answers nothing else."""

import datetime
import json
import os
import shutil
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path

import google_crc32c
import pyarrow as pa
import pytest
from handmade import TIME, Record, Topic, batch, flipped, identity, records, seeded, split

import sparklog
from sparklog import CallError, DataError, Log, RetryError, SparklogError
from sparklog.ondisk import segment as ondisk_segment

UTC = datetime.timezone.utc


def values(table: pa.Table) -> list[bytes]:
    return table["value"].to_pylist()


def offsets(table: pa.Table) -> list[tuple[int, int]]:
    return list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


def batches(*contents: list[Record]) -> bytes:
    """Batches with relative offsets."""
    octets, offset = b"", 0
    for content in contents:
        octets += batch(content, offset)
        offset += len(content)
    return octets


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """Two partitions, with segments of several batches: offsets 0 to 25 and 0 to 10."""
    topic = Topic(tmp_path, partitions=2)
    topic.commit(topic.data(batches(records(5, "a"), records(4, "b"), records(6, "c"))))
    topic.commit(topic.data(batches(records(7, "d", TIME + 1000), records(3, "e", TIME + 2000))), topic.data(batches(records(10, "p")), 1))
    return topic


@pytest.fixture
def log(topic: Topic) -> sparklog.Topic:
    return Log(topic.root).topic("t")


@pytest.fixture
def wanted() -> list[bytes]:
    """The values of partition 0 by offset."""
    parts = (("a", 5), ("b", 4), ("c", 6), ("d", 7), ("e", 3))
    return [f"{tag}-{number}".encode() for tag, count in parts for number in range(count)]


def failure(ask) -> SparklogError:
    with pytest.raises(SparklogError) as raised:
        ask()
    return raised.value


# --- questions and answers


def test_roots_and_topics(tmp_path, topic):
    Topic(tmp_path, "other.topic").append(records(1))
    (tmp_path / "_partlog" / "no topic").mkdir()
    (tmp_path / "_partlog" / "empty").mkdir()
    (tmp_path / "_partlog" / "file").write_text("")
    for root in (tmp_path, str(tmp_path), f"file:{tmp_path}", f"file://{tmp_path}", f"file://localhost{tmp_path}"):
        assert Log(root).topics() == ["other.topic", "t"]
        assert Log(root).topic("t").partitions == 2
    assert Log(tmp_path / "_partlog").topics() == []


def test_what_is_not_there(tmp_path, topic):
    (tmp_path / "file").write_text("")
    log = Log(tmp_path)
    for ask, condition in (
        (lambda: Log(tmp_path / "nowhere"), "ROOT_NOT_FOUND"),
        (lambda: Log(tmp_path / "file"), "ROOT_NOT_A_DIRECTORY"),
        (lambda: Log("s3a://bucket/root"), "STORE_UNSUPPORTED"),
        (lambda: Log("file://host/root"), "STORE_UNSUPPORTED"),
        (lambda: log.topic("other"), "TOPIC_NOT_FOUND"),
        (lambda: log.topic("no topic"), "TOPIC_NAME_ILLEGAL"),
        (lambda: log.topic(".."), "TOPIC_NAME_ILLEGAL"),
        (lambda: log.topic("x/../t"), "TOPIC_NAME_ILLEGAL"),
        (lambda: log.topic("t").read(2), "PARTITION_NOT_FOUND"),
        (lambda: log.topic("t").batches(-1), "PARTITION_NOT_FOUND"),
        (lambda: log.topic("t").read(0, start=26), "OFFSETS_OUT_OF_RANGE"),
        (lambda: log.topic("t").read(0, start=-1), "OFFSETS_OUT_OF_RANGE"),
        (lambda: log.topic("t").read(0, end=26), "OFFSETS_OUT_OF_RANGE"),
        (lambda: log.topic("t").read(end=20), "OFFSETS_OUT_OF_RANGE"),
        (lambda: log.topic("t").head(-1), "OPTION_VALUE"),
        (lambda: log.topic("t").tail(-1), "OPTION_VALUE"),
        (lambda: log.topic("t").commits(-1), "OPTION_VALUE"),
        (lambda: log.topic("t").offsets_for_time(datetime.datetime(2024, 1, 1)), "OPTION_VALUE"),  # noqa: DTZ001
    ):
        error = failure(ask)
        assert error.id == condition
        assert isinstance(error, CallError)
    assert "Topics there: t." in str(failure(lambda: log.topic("other")))


def test_offsets_and_configuration(log):
    assert (log.name, log.partitions) == ("t", 2)
    assert log.config["partitioner"] == "murmur3"
    assert (log.start_offsets(), log.end_offsets()) == ({0: 0, 1: 0}, {0: 25, 1: 10})


def test_read_gives_sparks_columns(log, wanted):
    table = log.read()
    assert table.schema.names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    types = [pa.binary(), pa.binary(), pa.string(), pa.int32(), pa.int64(), pa.timestamp("us", "UTC"), pa.int32()]
    assert table.schema.types == [*types, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))]
    assert offsets(table) == [(0, offset) for offset in range(25)] + [(1, offset) for offset in range(10)]
    assert values(table)[:25] == wanted
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


def test_every_range_gives_what_it_names(log, wanted):
    for start in range(26):
        for end in range(start, 26):
            table = log.read(0, start, end)
            assert offsets(table) == [(0, offset) for offset in range(start, end)]
            assert values(table) == wanted[start:end]
    assert log.read(0, 7, 3).num_rows == 0


def test_ranges_and_limits_by_partition(log, wanted):
    assert offsets(log.read(start={0: 23, 1: 8})) == [(0, 23), (0, 24), (1, 8), (1, 9)]
    assert offsets(log.read(end={0: 1}, limit=3)) == [(0, 0), (1, 0), (1, 1)]
    for limit in range(40):
        assert offsets(log.read(limit=limit)) == offsets(log.read())[:limit]
        assert values(log.read(0, 6, limit=limit)) == wanted[6 : 6 + limit]


def test_head_and_tail(log):
    everything = offsets(log.read())
    for n in range(40):
        assert offsets(log.head(n)) == everything[:n]
        assert offsets(log.head(n, partition=1)) == [(1, offset) for offset in range(min(n, 10))]
        assert offsets(log.tail(n, partition=1)) == [(1, offset) for offset in range(max(0, 10 - n), 10)]
        assert log.tail(n).num_rows == min(n, 35)
    assert offsets(log.tail(4)) == [(0, 21), (0, 22), (0, 23), (0, 24)]


def test_tail_merges_partitions_by_time_and_keeps_their_order(tmp_path):
    topic = Topic(tmp_path, partitions=2)
    topic.commit(
        topic.data(batch([Record(timestamp=TIME + at) for at in (1, 9, 3, 10)])),
        topic.data(batch([Record(timestamp=TIME + at) for at in (2, 4, 8, 9)]), 1),
    )
    log = Log(tmp_path).topic("t")
    # 0:1 has time 9, but 0:2 with time 3 comes after it.
    assert offsets(log.tail(8)) == [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 3), (0, 3)]
    assert offsets(log.tail(3)) == [(1, 2), (1, 3), (0, 3)]


def test_offsets_for_time(log):
    def at(time):
        return log.offsets_for_time(time)

    assert at(0) == {0: 0, 1: 0}
    assert at(TIME + 3) == {0: 3, 1: 3}
    # Each batch of the first segment begins at TIME again: the first record as late as that counts, in order of offsets.
    assert at(TIME + 5) == {0: 14, 1: 5}
    assert at(TIME + 6) == {0: 15, 1: 6}
    assert at(TIME + 1003) == {0: 18, 1: 10}
    assert at(TIME + 2002) == {0: 24, 1: 10}
    assert at(TIME + 2003) == {0: 25, 1: 10}
    moment = datetime.datetime.fromtimestamp(TIME / 1000, UTC)
    assert at(moment + datetime.timedelta(milliseconds=3)) == {0: 3, 1: 3}
    assert at(moment + datetime.timedelta(milliseconds=2, microseconds=1)) == {0: 3, 1: 3}


def test_offsets_for_time_looks_at_what_is_still_there(topic, log):
    topic.commit(starts=[16, 4])
    assert log.offsets_for_time(TIME) == {0: 16, 1: 4}
    assert log.offsets_for_time(TIME + 2) == {0: 16, 1: 4}
    assert offsets(log.read())[0] == (0, 16)
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
    topic.commit(query={"id": "q", "epoch": 4})
    first, second, third = log.commits()
    assert (first.version, first.operation, first.records, first.segments, first.end_offsets) == (0, "create", 15, 1, {0: 15, 1: 0})
    assert (second.version, second.writer, second.records, second.bytes) == (1, "by hand", 20, data_file(topic, 1).stat().st_size)
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


def test_a_topic_without_records(tmp_path):
    Topic(tmp_path, partitions=3).commit()
    log = Log(tmp_path).topic("t")
    for table in (log.head(), log.tail(), log.read()):
        assert table.num_rows == 0 and table.schema.names[0] == "key"
    assert log.offsets_for_time(0) == {0: 0, 1: 0, 2: 0}
    assert list(log.batches(1)) == []
    assert log.describe()["partitions"][0]["max_timestamp"] is None


def test_what_is_seen_in_a_terminal_and_in_a_notebook(topic, log, tmp_path):
    assert repr(log).splitlines()[0] == "Topic t"
    assert repr(log).splitlines()[-3:] == [
        "partition  start  end  offsets",
        "        0      0   25       25",
        "        1      0   10       10",
    ]
    assert '<td style="text-align: right">25</td>' in log._repr_html_()
    Topic(tmp_path, "x").append(records(1))
    shutil.copytree(topic.folder, tmp_path / "_partlog" / "copied")
    lines = repr(Log(tmp_path)).splitlines()
    assert lines[1] == "3 topics"
    assert lines[3].split() == ["topic", "partitions", "offsets", "version", "committed", "at"]
    assert lines[4].split() == ["copied", "PARTLOG_VERSION_CORRUPT"]
    assert lines[5].split()[:4] == ["t", "2", "35", "1"]
    content = topic.versions[0] | {"config": topic.versions[0]["config"] | {"k": "<script>"}}
    topic.versions.clear()
    topic.hash = None
    topic.put(content)
    topic.version_file(1).unlink()
    assert "<script>" not in log._repr_html_() and "&lt;script&gt;" in log._repr_html_()
    shutil.rmtree(topic.folder)
    assert "PARTLOG_TOPIC_NOT_FOUND" in repr(log)
    assert "PARTLOG_TOPIC_NOT_FOUND" in log._repr_html_()


def test_many_topics_and_partitions_are_cut_short(tmp_path):
    Topic(tmp_path, partitions=200).commit()
    for number in range(60):
        Topic(tmp_path, f"n{number}").commit()
    assert repr(Log(tmp_path)).endswith("\n… and 11 more")
    assert repr(Log(tmp_path).topic("t")).endswith("\n… and 150 more")


# --- offsets of batches


def data_file(topic: Topic, version: int, number: int = 0) -> Path:
    return topic.folder / topic.versions[version]["added"][number]["file"]


def stamp(octets: bytes, *bases: int) -> bytes:
    """The base offsets of the first batches replaced."""
    found = split(octets)
    return b"".join(struct.pack(">q", base) + one[8:] for base, one in zip(bases, found, strict=False)) + b"".join(found[len(bases) :])


@pytest.mark.parametrize("stamped", [(), (15,), (15, 22), (0, 22)])
def test_a_stamp_may_be_half_done(topic, log, wanted, stamped):
    file = data_file(topic, 1)
    octets = file.read_bytes()
    size = topic.versions[1]["added"][0]["bytes"]
    file.write_bytes(stamp(octets[:size], *stamped) + octets[size:])
    assert values(log.read(0)) == wanted
    assert [each.base_offset for each in log.batches(0)] == [0, 5, 9, 15, 22]


@pytest.mark.parametrize("bases", [(16,), (15, 7 + 1), (0, 6), (0, 0), (-1,), (15, 22 + 15)])
def test_an_offset_that_is_neither_relative_nor_absolute(topic, log, bases):
    file = data_file(topic, 1)
    octets = file.read_bytes()
    size = topic.versions[1]["added"][0]["bytes"]
    file.write_bytes(stamp(octets[:size], *bases) + octets[size:])
    assert values(log.read(0, end=15))
    for ask in (lambda: log.read(0), lambda: list(log.batches(0)), lambda: log.offsets_for_time(TIME + 1500), lambda: log.tail(1)):
        error = failure(ask)
        assert error.id == "BATCH_CORRUPT" and error.parameters["partition"] == "0"


def test_stored_offsets_may_have_gaps(tmp_path):
    topic = Topic(tmp_path)
    octets = batch(records(3, "a"), 10, deltas=[0, 4, 7], last_offset_delta=9)
    octets += batch([], 20, last_offset_delta=4) + batch(records(2, "b"), 40)
    marker = batch([Record(b"\0\0\0\0\0\0", b"\0\0\0\1")], 42, attributes=0x30)
    topic.commit(topic.data(octets + marker, dense=False, base=0, end=60))
    log = Log(tmp_path).topic("t")
    found = [10, 14, 17, 40, 41]
    assert [offset for _, offset in offsets(log.read())] == found
    assert values(log.read()) == [b"a-0", b"a-1", b"a-2", b"b-0", b"b-1"]
    for start in range(61):
        for end in range(start, 61):
            assert [offset for _, offset in offsets(log.read(0, start, end))] == [each for each in found if start <= each < end]
        assert [offset for _, offset in offsets(log.read(0, start, limit=2))] == [each for each in found if each >= start][:2]
    for n in range(7):
        assert [offset for _, offset in offsets(log.tail(n))] == (found[-n:] if n else [])
    assert [each.control for each in log.batches(0)] == [False, False, False, True]
    assert log.offsets_for_time(TIME + 2) == {0: 17}
    assert log.describe()["records"] == 6


@pytest.mark.parametrize(("at", "base"), [(0, -1), (1, 19), (1, 60), (2, 24), (2, 59)])
def test_stored_offsets_must_rise_inside_their_segment(tmp_path, at, base):
    topic = Topic(tmp_path)
    bases = [10, 20, 40]
    right = [batch(records(3, "a"), 10, deltas=[0, 4, 7], last_offset_delta=9), batch([], 20, last_offset_delta=4), batch(records(2), 40)]
    segment = topic.data(b"".join(right), dense=False, base=0, end=60)
    topic.commit(segment)
    log = Log(tmp_path).topic("t")
    assert log.read().num_rows == 5
    bases[at] = base
    (topic.folder / segment["file"]).write_bytes(stamp(b"".join(right), *bases))
    for ask in (log.read, lambda: log.read(0, start=41), lambda: list(log.batches(0))):
        assert failure(ask).id == "BATCH_CORRUPT"


def test_a_stored_offset_that_hides_records_is_found(tmp_path):
    """The second batch says that it lies before the offset that is asked for; no batch by itself is wrong."""
    topic = Topic(tmp_path)
    right = [batch(records(1), 0), batch(records(1), 30), batch(records(1), 40)]
    segment = topic.data(b"".join(right), dense=False, base=0, end=60)
    topic.commit(segment)
    log = Log(tmp_path).topic("t")
    assert [offset for _, offset in offsets(log.read(0, start=20))] == [30, 40]
    (topic.folder / segment["file"]).write_bytes(stamp(b"".join(right), 0, 10, 40))
    for ask in (log.read, lambda: log.read(0, start=20), lambda: log.tail(2), lambda: list(log.batches(0))):
        assert failure(ask).id == "SEGMENT_CORRUPT"


def test_what_a_dense_batch_must_hold(tmp_path):
    for number, wrong in enumerate(
        (
            batch(records(2), deltas=[0, 2]),
            batch(records(2), last_offset_delta=2),
            batch(records(2), deltas=[1, 2]),
            batch([], last_offset_delta=0),
        )
    ):
        topic = Topic(tmp_path, f"t{number}")
        topic.commit(topic.data(wrong + batch(records(5), 3), end=8, records=8))
        assert failure(Log(tmp_path).topic(f"t{number}").read).id == "BATCH_CORRUPT"


# --- indexes are hints


@pytest.fixture
def large(tmp_path, monkeypatch):
    """One segment of 200 batches with 10 records each, and its index with an entry for each batch."""
    monkeypatch.setattr(ondisk_segment, "_INDEX_WORTHWHILE_BYTES", 0)
    topic = Topic(tmp_path)
    topic.append(records(7))
    octets = [batch(records(10, f"v{number}"), 10 * number) for number in range(200)]
    topic.commit(topic.data(b"".join(octets)))
    entries, position = [], 0
    for number, one in enumerate(octets):
        entries.append((10 * number + 9, position))
        position += len(one)
    index = tmp_path / "t-0" / f"{7:020d}.index"
    index.parent.mkdir()
    write_index(index, entries[1:])
    return topic, index, entries


def write_index(index: Path, entries: list[tuple[int, int]]) -> None:
    index.write_bytes(b"".join(struct.pack(">ii", *entry) for entry in entries))


def test_an_index_saves_reading(large, tmp_path, monkeypatch):
    topic, index, _ = large
    log = Log(tmp_path).topic("t")
    positions = []
    read = ondisk_segment.File.read
    monkeypatch.setattr(ondisk_segment.File, "read", lambda file, position, size: positions.append(position) or read(file, position, size))
    assert values(log.read(0, 1500, 1502)) == [b"v149-3", b"v149-4"]
    begun = min(position for position in positions if position)
    index.unlink()
    positions.clear()
    assert values(log.read(0, 1500, 1502)) == [b"v149-3", b"v149-4"]
    size = topic.versions[1]["added"][0]["bytes"]
    assert begun > size * 0.7
    assert topic.versions[1]["added"][0]["position"] in positions


def test_a_wrong_index_costs_nothing_but_time(large, tmp_path):
    _, index, entries = large
    log = Log(tmp_path).topic("t")
    wanted = values(log.read(0, 7))
    random = seeded()
    whole = index.read_bytes()

    def check() -> None:
        start = random.randrange(7, 2007)
        end = random.randrange(start, 2008)
        assert values(log.read(0, start, end)) == wanted[start - 7 : end - 7]

    for _ in range(100):
        index.write_bytes(flipped(whole, random.randrange(len(whole) * 8)))
        check()
    for size in (0, 1, 7, 8, 9, len(whole) - 1):
        index.write_bytes(whole[:size])
        check()
    for wrong in (
        [(offset, position + 1) for offset, position in entries],
        [(offset + 1, position) for offset, position in entries],
        [(offset + 10, position) for offset, position in entries],
        [(offset, entries[-1][1]) for offset, _ in entries],
        [(offset, 0) for offset, _ in entries],
        [(offset, -1) for offset, _ in entries],
        [(offset, 2**31 - 1) for offset, _ in entries],
        [(0, entries[-1][1])],
        [(-5, 0)],
        list(reversed(entries)),
    ):
        write_index(index, wrong)
        for _ in range(5):
            check()
    index.unlink()
    index.mkdir()
    check()


# --- damage


READS = {
    "read": lambda log: log.read(),
    "scan": lambda log: list(log.scan()),
    "tail": lambda log: log.tail(1000),
    "batches": lambda log: [list(log.batches(partition)) for partition in range(log.partitions)],
}


@pytest.mark.parametrize("name", READS)
def test_a_flipped_bit_in_a_data_file_is_found(topic, log, name):
    """Every bit but those of the offsets, of which the other value may be right, and for `batches`, which looks at headers only."""
    random = seeded()
    right = log.read()
    for version, number in ((0, 0), (1, 0)):
        file = data_file(topic, version, number)
        whole = file.read_bytes()
        at, bits = 0, []
        for one in split(whole):
            covered = range(8, 61) if name == "batches" else range(8, len(one))
            bits += [(at + octet) * 8 + bit for octet in covered for bit in range(8)]
            at += len(one)
        for bit in random.sample(bits, 150):
            file.write_bytes(flipped(whole, bit))
            error = failure(lambda: READS[name](log))
            assert isinstance(error, DataError) and error.id in ("BATCH_CORRUPT", "SEGMENT_CORRUPT"), bit
        for octet in random.sample(range(8), 8):
            file.write_bytes(flipped(whole, octet * 8 + 1))
            assert isinstance(failure(lambda: READS[name](log)), DataError)
        file.write_bytes(whole)
    assert log.read() == right


def test_records_that_are_handed_out_are_right_whatever_is_damaged(topic, log):
    """Whatever bits flip, what is read before the error comes is what was committed."""
    random = seeded()
    right = log.read(0).to_pylist()
    file = data_file(topic, 0)
    whole = file.read_bytes()
    noticed = 0
    for _ in range(300):
        damaged = whole
        for _ in range(random.randint(1, 3)):
            damaged = flipped(damaged, random.randrange(len(whole) * 8))
        file.write_bytes(damaged)
        start = random.randrange(25)
        end = random.randint(start, 25)
        found = []
        try:
            for part in log.scan(0, start, end):
                found += part.to_pylist()
            assert found == right[start:end]
        except SparklogError:
            noticed += 1
            assert found == right[start : start + len(found)]
    assert noticed > 100


def test_a_data_file_that_is_cut_or_gone(topic, log):
    file = data_file(topic, 1)
    whole = file.read_bytes()
    for size in (0, 1, 100, len(whole) - 1):
        file.write_bytes(whole[:size])
        assert failure(log.read).id == "SEGMENT_CORRUPT"
    file.write_bytes(whole + b"more")
    assert log.read().num_rows == 35
    file.unlink()
    error = failure(log.read)
    assert error.id == "SEGMENT_MISSING"
    assert (error.parameters["base"], error.parameters["end"], error.parameters["file"]) == ("15", "25", str(file))
    assert log.read(0, end=15).num_rows == 15
    shutil.rmtree(file.parent)
    assert failure(log.read).id == "SEGMENT_MISSING"


def test_batches_in_another_order_are_found(topic, log):
    file = data_file(topic, 0)
    first, second, third = split(file.read_bytes())
    for wrong in (first + third + second, second + first + third, first + second + second, third + third):
        file.write_bytes(wrong[: len(first + second + third)].ljust(len(first + second + third), b"\0"))
        assert isinstance(failure(log.read), DataError)


def test_a_batch_of_the_same_size_from_elsewhere_is_found(tmp_path):
    """Offsets, length and checksum are right; only the checksum over all headers knows that another batch was committed."""
    topic = Topic(tmp_path)
    topic.append([Record(b"right"), Record(b"right")])
    log = Log(tmp_path).topic("t")
    data_file(topic, 0).write_bytes(batch([Record(b"wrong"), Record(b"wrong")]))
    for ask in (log.read, lambda: list(log.batches(0))):
        error = failure(ask)
        assert error.id == "SEGMENT_CORRUPT" and "checksum of its headers" in str(error)


def test_metadata_that_does_not_fit_is_found(tmp_path):
    octets = batches(records(2), records(3))
    changes = (
        *({"headerCrc": 1}, {"batches": 1}, {"bytes": len(octets) - 1}, {"bytes": len(octets) - 61}),
        *({"position": 1}, {"records": 6, "end": 6}, {"records": 4, "end": 4}),
    )
    for number, change in enumerate(changes):
        topic = Topic(tmp_path, f"t{number}")
        topic.commit(topic.data(octets, **change))
        assert isinstance(failure(lambda name=topic.name: Log(tmp_path).topic(name).read()), DataError), change


def test_a_link_in_place_of_a_data_file_is_not_followed(topic, log, tmp_path):
    file = data_file(topic, 1)
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert "symbolic link" in str(failure(log.read))
    file.unlink()
    elsewhere.rename(file)
    assert log.read().num_rows == 35
    file.parent.rename(elsewhere)
    file.parent.symlink_to(elsewhere)
    assert "symbolic link" in str(failure(log.read))


def test_a_pipe_in_place_of_a_data_file_is_not_waited_for(topic, log):
    file = data_file(topic, 1)
    file.unlink()
    os.mkfifo(file)
    assert failure(log.read).id == "SEGMENT_CORRUPT"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(topic, log):
    data_file(topic, 1).chmod(0)
    assert isinstance(failure(log.read), RetryError)


# --- files that go while they are read


def test_a_read_goes_on_where_merged_segments_went(topic, log, wanted):
    topic.append(records(5, "f"))
    scan = log.scan(0)
    assert values(pa.Table.from_batches([next(scan)])) == wanted[:15]
    parts = topic.live[0][:3]
    contents = b"".join(stamp(data_file(topic, version).read_bytes()[: part["bytes"]]) for version, part in enumerate(parts))
    merged = stamp(contents, 0, 5, 9, 15, 22, 25)
    topic.commit(topic.data(merged, base=0, end=30, name="p0-t0-0-0.log"), removed=parts)
    for part in parts:
        if not any(part["file"] == other["file"] for other in topic.live[1]):
            (topic.folder / part["file"]).unlink()
    shutil.rmtree((topic.folder / parts[2]["file"]).parent)
    rest = [value for batch in scan for value in batch["value"].to_pylist()]
    assert rest == [*wanted[15:], *(f"f-{number}".encode() for number in range(5))]


def test_a_read_of_what_has_expired_meanwhile_says_so(topic, log):
    scan = log.scan(0)
    topic.commit(removed=topic.live[0][:2], starts=[25, 0])
    data_file(topic, 0).unlink()
    error = failure(lambda: list(scan))
    assert (error.id, error.parameters["offset"], error.parameters["start"]) == ("OFFSETS_EXPIRED", "0", "25")


# --- what it costs


def test_memory_does_not_grow_with_the_topic(tmp_path):
    topic = Topic(tmp_path)
    octets = b"".join(batch([Record(bytes(1000)) for _ in range(100)], 100 * number) for number in range(10))
    for _ in range(60):
        topic.commit(topic.data(octets))
    log = Log(tmp_path).topic("t")
    peaks = []
    for limit in (2_000, 60_000):
        tracemalloc.start()
        before = pa.total_allocated_bytes()
        arrow = rows = 0
        for part in log.scan(limit=limit):
            rows += part.num_rows
            arrow = max(arrow, pa.total_allocated_bytes() - before)
        peaks.append(tracemalloc.get_traced_memory()[1] + arrow)
        tracemalloc.stop()
        assert rows == limit
    assert peaks[1] < peaks[0] * 1.5 + 8_000_000, peaks


def test_a_process_without_java_and_without_spark_can_do_all_of_it(topic):
    script = """
import sys
class Never:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j", "pandas", "delta"):
            raise ImportError(name)
sys.meta_path.insert(0, Never())
import sparklog
log = sparklog.Log(sys.argv[1])
topic = log.topic(log.topics()[0])
print(topic.head(1).num_rows, topic.tail(1).num_rows, topic.read().num_rows, len(list(topic.batches(0))), len(topic.commits()))
topic.describe(), topic.offsets_for_time(0), repr(log), repr(topic), log._repr_html_(), topic._repr_html_()
"""
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"} | {"PATH": "/nowhere"}
    ended = subprocess.run([sys.executable, "-c", script, str(topic.root)], env=environment, capture_output=True, text=True, check=False)
    assert ended.stdout.split() == ["1", "1", "35", "5", "2"], ended.stderr


@pytest.mark.slow
def test_head_of_a_large_topic_takes_less_than_half_a_second(tmp_path):
    """10 GB in 10,000 commits to 8 partitions, most of it holes that no answer may need."""
    topic = Topic(tmp_path, partitions=8)
    octets = batch(records(100))
    for version in range(10_000):
        if version < 20:
            segments = [topic.data(octets, partition) for partition in range(8)]
        else:
            file = f"data/{version:020d}-{identity(version)}/pool.log"
            ends = topic.versions[-1]["ends"]
            segments = [old | {"base": end, "end": end + 100, "file": file} for old, end in zip(segments, ends, strict=True)]
            if version % 100 == 99:
                (topic.folder / file).parent.mkdir()
                (topic.folder / file).touch()
                os.truncate(topic.folder / file, 100_000_000)
        topic.commit(*segments)
        if version == 9_949:
            topic.checkpoint()
    script = """
import sys, time
begun = time.perf_counter()
import sparklog
table = sparklog.Log(sys.argv[1]).topic("t").head(10)
print(time.perf_counter() - begun, table.num_rows, "pandas" in sys.modules)
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    times = []
    for _ in range(5):
        seconds, *rest = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert rest == ["10", "False"]
        times.append(float(seconds))
    print(f"import and head(10): {min(times):.3f} s")
    assert min(times) < 0.5, times
