"""An index of the Kafka view is a hint: a wrong one costs time, and the answers stay the same. FORMAT.md sections 8 and K.2."""

import struct
from pathlib import Path

import pytest
from handmade import Topic, batch, flipped, records, seeded
from unit.answers import values

from sparklog import Log
from sparklog.ondisk import segment as ondisk_segment
from sparklog.store.local import LocalFile


@pytest.fixture(params=["dense", "tiled"])
def large(request, tmp_path, monkeypatch):
    """One segment of 200 batches with 10 offsets each, and its index with an entry for each batch."""
    monkeypatch.setattr(ondisk_segment, "_INDEX_WORTHWHILE_BYTES", 0)
    topic = Topic(tmp_path)
    topic.append(records(7))
    count = 10 if request.param == "dense" else 9
    octets = [batch(records(count, f"v{number}"), 10 * number, last_offset_delta=9) for number in range(200)]
    topic.commit(topic.data(b"".join(octets), offsets=request.param))
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
    read = LocalFile.read
    monkeypatch.setattr(LocalFile, "read", lambda file, position, size: positions.append(position) or read(file, position, size))
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
    table = log.read(0, 7)
    wanted = dict(zip(table["offset"].to_pylist(), values(table), strict=True))
    random = seeded()
    whole = index.read_bytes()

    def check() -> None:
        start = random.randrange(7, 2007)
        end = random.randrange(start, 2008)
        assert values(log.read(0, start, end)) == [wanted[offset] for offset in range(start, end) if offset in wanted]

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
