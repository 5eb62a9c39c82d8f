"""Damaged, replaced and missing data files: a reader returns the right records or raises an error."""

import os
import shutil
import socket

import pyarrow as pa
import pytest
from handmade import VALUES, Record, Topic, batch, batches, flipped, records, seeded, split, stamped
from unit.answers import failure, values

from sparklog import DataError, Log, RetryError, SparklogError

READS = {
    "read": lambda log: log.read(),
    "scan": lambda log: list(log.scan()),
    "tail": lambda log: log.tail(1000),
    "batches": lambda log: [list(log.batches(partition)) for partition in range(log.partitions)],
}


@pytest.mark.parametrize("name", READS)
def test_a_flipped_bit_in_a_data_file_is_found(topic, log, name):
    """Every bit except those of base offsets, which may be right with either value; for `batches`, every such bit of a header."""
    random = seeded()
    right = log.read()
    for version, number in ((0, 0), (1, 0)):
        file = topic.data_file(version, number)
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
    """If any bits flip, all records returned before the error are those that were committed."""
    random = seeded()
    right = log.read(0).to_pylist()
    file = topic.data_file(0)
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


def test_a_data_file_that_is_cut_or_missing(topic, log):
    file = topic.data_file(1)
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
    file = topic.data_file(0)
    first, second, third = split(file.read_bytes())
    for wrong in (first + third + second, second + first + third, first + second + second, third + third):
        file.write_bytes(wrong[: len(first + second + third)].ljust(len(first + second + third), b"\0"))
        assert isinstance(failure(log.read), DataError)


def test_a_batch_of_the_same_size_from_elsewhere_is_found(tmp_path):
    """Offsets, length and checksum are right. Only the checksum over all headers shows that another batch was committed."""
    topic = Topic(tmp_path)
    topic.append([Record(b"right"), Record(b"right")])
    log = Log(tmp_path).topic("t")
    topic.data_file(0).write_bytes(batch([Record(b"wrong"), Record(b"wrong")]))
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
    file = topic.data_file(1)
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
    file = topic.data_file(1)
    file.unlink()
    os.mkfifo(file)
    assert failure(log.read).id == "SEGMENT_CORRUPT"


def test_a_file_that_cannot_be_opened(topic, log, monkeypatch):
    """A file that the system cannot open is not damaged. A socket cannot be opened even by root."""
    file = topic.data_file(1)
    file.unlink()
    monkeypatch.chdir(file.parent)  # a socket's name must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(file.name)
        assert isinstance(failure(log.read), RetryError)


def test_a_read_continues_after_its_segments_were_merged(topic, log):
    topic.append(records(5, "f"))
    scan = log.scan(0)
    assert values(pa.Table.from_batches([next(scan)])) == VALUES[:15]
    parts = topic.live[0][:3]
    contents = b"".join(stamped(topic.data_file(version).read_bytes()[: part["bytes"]]) for version, part in enumerate(parts))
    merged = stamped(contents, 0, 5, 9, 15, 22, 25)
    topic.commit(topic.data(merged, base=0, end=30, name="p0-t0-0-0.log"), removed=parts)
    for part in parts:
        if not any(part["file"] == other["file"] for other in topic.live[1]):
            (topic.folder / part["file"]).unlink()
    shutil.rmtree((topic.folder / parts[2]["file"]).parent)
    rest = [value for batch in scan for value in batch["value"].to_pylist()]
    assert rest == [*VALUES[15:], *(f"f-{number}".encode() for number in range(5))]


def test_a_read_of_offsets_that_expired_meanwhile_reports_it(topic, log):
    scan = log.scan(0)
    topic.commit(removed=topic.live[0][:2], starts=[25, 0])
    topic.data_file(0).unlink()
    error = failure(lambda: list(scan))
    assert (error.id, error.parameters["offset"], error.parameters["start"]) == ("OFFSETS_EXPIRED", "0", "25")
