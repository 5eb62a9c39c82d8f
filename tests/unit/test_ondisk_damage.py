"""What `sparklog.Log` says to damage: records are right or there is an error, whatever the bytes, the names and the files are."""

import os
import shutil
import socket
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from handmade import TIME, VALUES, Record, Topic, batch, batches, flipped, records, sample, seeded, split

import sparklog
from sparklog import DataError, Log, RetryError, SparklogError
from sparklog.ondisk import segment as ondisk_segment


def values(table: pa.Table) -> list[bytes]:
    return table["value"].to_pylist()


def offsets(table: pa.Table) -> list[int]:
    return table["offset"].to_pylist()


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    return sample(tmp_path)


@pytest.fixture
def log(topic: Topic) -> sparklog.Topic:
    return Log(topic.root).topic("t")


def failure(ask) -> SparklogError:
    with pytest.raises(SparklogError) as raised:
        ask()
    return raised.value


# --- offsets of batches


def data_file(topic: Topic, version: int, number: int = 0) -> Path:
    return topic.folder / topic.versions[version]["added"][number]["file"]


def stamp(octets: bytes, *bases: int) -> bytes:
    """The base offsets of the first batches replaced."""
    found = split(octets)
    return b"".join(struct.pack(">q", base) + one[8:] for base, one in zip(bases, found, strict=False)) + b"".join(found[len(bases) :])


@pytest.mark.parametrize("stamped", [(), (15,), (15, 22), (0, 22)])
def test_a_stamp_may_be_half_done(topic, log, stamped):
    file = data_file(topic, 1)
    octets = file.read_bytes()
    size = topic.versions[1]["added"][0]["bytes"]
    file.write_bytes(stamp(octets[:size], *stamped) + octets[size:])
    assert values(log.read(0)) == VALUES
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
    assert offsets(log.read()) == found
    assert values(log.read()) == [b"a-0", b"a-1", b"a-2", b"b-0", b"b-1"]
    for start in range(61):
        for end in range(start, 61):
            assert offsets(log.read(0, start, end)) == [each for each in found if start <= each < end]
        assert offsets(log.read(0, start, limit=2)) == [each for each in found if each >= start][:2]
    for n in range(7):
        assert offsets(log.tail(n)) == (found[-n:] if n else [])
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
    assert offsets(log.read(0, start=20)) == [30, 40]
    (topic.folder / segment["file"]).write_bytes(stamp(b"".join(right), 0, 10, 40))
    for ask in (log.read, lambda: log.read(0, start=20), lambda: log.tail(2), lambda: list(log.batches(0))):
        assert failure(ask).id == "SEGMENT_CORRUPT"


def test_a_stored_offset_is_checked_where_a_part_is_read(tmp_path):
    """Another offset that fits between its neighbours: no batch by itself is wrong, and not all of them are read."""
    topic = Topic(tmp_path)
    right = [batch(records(4), base) for base in (0, 10, 20, 100)]
    segment = topic.data(b"".join(right), dense=False)
    topic.commit(segment)
    log = Log(tmp_path).topic("t")
    assert offsets(log.read(0, end=30)) == [*range(4), *range(10, 14), *range(20, 24)]
    (topic.folder / segment["file"]).write_bytes(stamp(b"".join(right), 0, 12))
    for ask in (lambda: log.read(0, end=30), lambda: log.read(0, 12, 24), lambda: log.read(0, 0, 4), lambda: log.head(1), log.read):
        assert failure(ask).id == "SEGMENT_CORRUPT"


def test_a_batch_that_is_too_large_is_not_read(tmp_path):
    """A length is believed only as far as a batch of the topic can go. The file is sparse: nothing of it need be there."""
    limit = 61 + (64 << 20) // 8 * 9
    for name, size in (("right", limit), ("wrong", limit + 1)):
        topic = Topic(tmp_path, name)
        segment = topic.data(batch([], records=1, length=size - 12), bytes=size)
        topic.commit(segment)
        os.truncate(topic.folder / segment["file"], size)
        expected = "its checksum" if name == "right" else f"it has {size} bytes, and {limit} is the limit"
        assert expected in str(failure(Log(tmp_path).topic(name).read))


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


def test_a_file_that_cannot_be_opened(topic, log, monkeypatch):
    """Whatever the system refuses is no damage; a socket is refused to root, too."""
    file = data_file(topic, 1)
    file.unlink()
    monkeypatch.chdir(file.parent)  # a socket's name must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(file.name)
        assert isinstance(failure(log.read), RetryError)


# --- files that go while they are read


def test_a_read_goes_on_where_merged_segments_went(topic, log):
    topic.append(records(5, "f"))
    scan = log.scan(0)
    assert values(pa.Table.from_batches([next(scan)])) == VALUES[:15]
    parts = topic.live[0][:3]
    contents = b"".join(stamp(data_file(topic, version).read_bytes()[: part["bytes"]]) for version, part in enumerate(parts))
    merged = stamp(contents, 0, 5, 9, 15, 22, 25)
    topic.commit(topic.data(merged, base=0, end=30, name="p0-t0-0-0.log"), removed=parts)
    for part in parts:
        if not any(part["file"] == other["file"] for other in topic.live[1]):
            (topic.folder / part["file"]).unlink()
    shutil.rmtree((topic.folder / parts[2]["file"]).parent)
    rest = [value for batch in scan for value in batch["value"].to_pylist()]
    assert rest == [*VALUES[15:], *(f"f-{number}".encode() for number in range(5))]


def test_a_read_of_what_has_expired_meanwhile_says_so(topic, log):
    scan = log.scan(0)
    topic.commit(removed=topic.live[0][:2], starts=[25, 0])
    data_file(topic, 0).unlink()
    error = failure(lambda: list(scan))
    assert (error.id, error.parameters["offset"], error.parameters["start"]) == ("OFFSETS_EXPIRED", "0", "25")
