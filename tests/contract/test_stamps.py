"""Base offset fields that are half written, because a writer is at work or after a power loss. FORMAT.md section 4."""

import struct
import time
from pathlib import Path

import pytest
from handmade import Topic, batch, records, seeded, split
from logtool import TIMEOUT_S, LogTool

from sparklog import DataError, Log

BASE = 0x0102030405060708
"""In a topic that begins here, relative and absolute offsets differ in each of their eight bytes."""
OWN_FILE = "p0-t0-0-0.log"
MASKS = 256


def topic_with_batches(root: Path, count: int) -> tuple[Topic, Path, list[bytes]]:
    """A topic with one segment, its data file, and its batches of two records each."""
    topic = Topic(root, starts=[BASE])
    batches = [batch(records(2, f"b{number}"), 2 * number) for number in range(count)]
    segment = topic.data(b"".join(batches), name=OWN_FILE)
    topic.commit(segment)
    return topic, topic.folder / segment["file"], batches


def mixed(relative: int, mask: int) -> bytes:
    """The base offset field of a batch, stamped only in the bytes whose bit in `mask` is set."""
    old, new = struct.pack(">q", relative), struct.pack(">q", BASE + relative)
    return bytes(new[byte] if mask >> byte & 1 else old[byte] for byte in range(8))


def test_every_half_written_field_is_read_and_publish_completes_it(tool: LogTool) -> None:
    """I7, I10: one file with a batch for each way in which a field of eight bytes can be half written."""
    topic, file, batches = topic_with_batches(tool.root, MASKS)
    values = [value for number in range(MASKS) for value in (f"b{number}-0", f"b{number}-1")]
    file.write_bytes(b"".join(mixed(2 * number, number) + octets[8:] for number, octets in enumerate(batches)))

    def read() -> None:
        table = Log(tool.root).topic(topic.name).read()
        assert table["offset"].to_pylist() == list(range(BASE, BASE + 2 * MASKS))
        assert table["value"].to_pylist() == [value.encode() for value in values]
        lines = tool.run("read", topic=topic.name)[:-1]
        assert lines == [f"0 {BASE + number} {value}" for number, value in enumerate(values)]

    read()
    tool.run("publish", topic=topic.name)
    stamped = b"".join(struct.pack(">q", BASE + 2 * number) + octets[8:] for number, octets in enumerate(batches))
    assert file.read_bytes() == stamped
    assert (tool.root / f"t-0/{BASE:020d}.log").samefile(file)
    read()


def test_a_byte_of_neither_offset_is_refused(tool: LogTool) -> None:
    """I7: a wrong value of each byte of the field, in Java and in Python."""
    topic, file, batches = topic_with_batches(tool.root, 1)
    random = seeded()
    for byte in range(8):
        field = bytearray(mixed(0, random.randrange(256)))
        field[byte] = random.choice([value for value in range(256) if value not in (0, BASE.to_bytes(8, "big")[byte])])
        file.write_bytes(bytes(field) + batches[0][8:])
        with pytest.raises(DataError, match="PARTLOG_BATCH_CORRUPT"):
            Log(tool.root).topic(topic.name).read()
        assert "PARTLOG_BATCH_CORRUPT" in tool.failure("read", topic=topic.name), f"byte {byte}"


def read_beside_a_publishing_writer(tool: LogTool, seconds: int) -> str:
    """Java and Python read the newest segment while a writer stamps it. Its batches are so small that many fields cross a page boundary."""
    writer = tool.start("append", tag="A", partitions=1, tasks=1, records=40_000, batch=100, commits=1_000_000)
    try:
        while not list(tool.root.glob("_partlog/t/*.json")):
            time.sleep(0.01)
        reads, before_their_stamp = 0, 0
        limit = time.monotonic() + TIMEOUT_S
        while not before_their_stamp:
            assert time.monotonic() < limit, "no batch was read before its stamp: nothing was tested"
            walker = tool.start("walk", seconds=seconds)
            until = time.monotonic() + seconds
            topic = Log(tool.root).topic("t")
            while time.monotonic() < until:
                end = topic.end_offsets()[0]
                start = end - 40_000
                assert topic.read(start={0: start}, end={0: end})["offset"].to_pylist() == list(range(start, end))
                reads += 1
            out, err = walker.communicate(timeout=TIMEOUT_S)
            assert walker.returncode == 0, err
            assert writer.poll() is None, "the writer ended"
            before_their_stamp = int(out.split()[5])
    finally:
        writer.kill()
        writer.communicate()
    return f"{out.strip()}, commits {len(list(tool.root.glob('_partlog/t/*.json')))}, reads in Python {reads}"


@pytest.mark.slow
def test_reading_beside_a_publishing_writer(tool: LogTool) -> None:
    """I7"""
    print(read_beside_a_publishing_writer(tool, 4))


@pytest.mark.soak
def test_reading_beside_a_publishing_writer_for_long(tool: LogTool) -> None:
    """I7: ten minutes."""
    print(read_beside_a_publishing_writer(tool, 600))


def test_the_fields_of_a_whole_file_are_what_was_written(tool: LogTool) -> None:
    """The tests above would prove nothing if Java stamped another field."""
    tool.run("append", tag="A", partitions=1, tasks=1, records=400, batch=100, big=5000)
    tool.run("append", tag="B", partitions=1, tasks=1, records=400, batch=100, big=5000)
    (newest,) = tool.root.glob(f"t-0/{400:020d}.log")
    assert [struct.unpack_from(">q", octets)[0] for octets in split(newest.read_bytes())] == list(range(400, 800))
