"""Verify and the index behind a segment. FORMAT.md section 4."""

import struct
from pathlib import Path

import pytest
from handmade import Topic, batch, flipped, records, seeded

from sparklog.ondisk.root import Root
from sparklog.verify import verify

RECORDS = 10
OFFSETS = [number * RECORDS for number in range(40)]


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    """A segment of 400 KB with an index fills this file."""
    topic = Topic(tmp_path)
    octets = [batch([one._replace(value=bytes(1000)) for one in records(RECORDS)], offset) for offset in OFFSETS]
    size = len(octets[0])
    assert {len(one) for one in octets} == {size}
    index = b"".join(struct.pack(">ii", RECORDS * number + RECORDS - 1, size * number) for number in range(7, 40, 7))
    assert 7 * size > 1 << 16 > 6 * size
    topic.commit(topic.data(b"".join(octets), name="p0-t0-0-0.log", index=len(index), routed=False))
    file = topic.data_file(0)
    with file.open("ab") as out:
        out.write(index)
    return file


def said(data_file: Path) -> list[tuple[str, str]]:
    root = data_file.parents[4]
    return [(each.severity, each.condition) for each in verify(Root.at(str(root)), jobs=1, settles_s=()).findings]


def test_a_right_index(data_file: Path) -> None:
    assert said(data_file) == []


def test_a_wrong_index(data_file: Path) -> None:
    right = data_file.read_bytes()
    bit = 8 * (len(right) - 40) + seeded().randrange(40 * 8)
    data_file.write_bytes(flipped(right, bit))
    assert said(data_file) == [("repairable", "INDEX_WRONG")]


@pytest.mark.parametrize("bytes_", [1, 8, 40])
def test_an_index_that_is_cut(data_file: Path, bytes_: int) -> None:
    data_file.write_bytes(data_file.read_bytes()[:-bytes_])
    assert said(data_file) == [("repairable", "INDEX_WRONG")]


def test_bytes_behind_the_index(data_file: Path) -> None:
    """A later release may put more there."""
    data_file.write_bytes(data_file.read_bytes() + b"more")
    assert said(data_file) == []
