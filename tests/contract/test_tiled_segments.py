"""Tiled segments: batches follow one another without a gap, and some offsets have no record. FORMAT.md section 4."""

import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from handmade import Topic, batch, records, split, stamped
from logtool import LogTool
from planting import checked

from sparklog import Log, SparklogError

VECTOR: dict[str, Any] = json.loads((Path(__file__).parents[1] / "vectors" / "tiled.json").read_text())
BASE, END = VECTOR["base"], VECTOR["end"]
BATCHES = [bytes.fromhex(each) for each in VECTOR["batches"]]
OFFSETS = [each["offset"] for each in VECTOR["records"]]
STARTS = VECTOR["bases"]
"""The base offset of each batch."""


def written(root: Path, octets: bytes = b"".join(BATCHES), **fields: Any) -> Topic:
    """A topic whose only segment has these batches, in a data file of its own."""
    topic = Topic(root, starts=[BASE])
    topic.commit(topic.data(octets, name="p0-t0-0-0.log", **{"offsets": "tiled", "routed": False, **fields}))
    return topic


def by_java(tool: LogTool, **options: object) -> list[list[str]] | str:
    status, out, err = tool.ended("read", **options)
    if status:
        return re.findall(r"PARTLOG_([A-Z_]+)", err)[0]  # type: ignore[no-any-return]
    return [line.split(" ")[1:] for line in out.splitlines()[:-1]]


def by_python(root: Path, **bounds: int) -> list[list[str]] | str:
    try:
        table = Log(root).topic("t").read(0, **bounds)
    except SparklogError as error:
        return error.id
    return [[str(row["offset"]), row["value"].decode()] for row in table.to_pylist()]


EXPECTED = [[str(each["offset"]), bytes.fromhex(each["value"]).decode()] for each in VECTOR["records"]]


@pytest.mark.parametrize(
    "octets",
    [
        b"".join(BATCHES),
        stamped(b"".join(BATCHES), *STARTS),
        stamped(b"".join(BATCHES), *STARTS[:2]),
        # The lowest byte of each field is that of the absolute offset.
        b"".join((base - BASE).to_bytes(8, "big")[:7] + bytes([base & 0xFF]) + one[8:] for base, one in zip(STARTS, BATCHES, strict=True)),
    ],
    ids=["relative", "absolute", "half stamped", "fields half stamped"],
)
def test_readers_and_verify_agree(tool: LogTool, octets: bytes) -> None:
    written(tool.root, octets)
    assert by_java(tool) == by_java(tool, minPartitions=len(BATCHES)) == by_python(tool.root) == EXPECTED
    for start in range(BASE, END):
        for end in (start + 1, END):
            within = [row for row in EXPECTED if start <= int(row[0]) < end]
            assert by_python(tool.root, start=start, end=end) == within
    log = Log(tool.root)["t"]
    assert [each.base_offset for each in log.batches(0)] == STARTS
    assert checked(tool.root).findings == []


def test_the_view_of_a_tiled_segment(tool: LogTool) -> None:
    """The stamp is the absolute offset of each batch, and a later reader takes it."""
    topic = written(tool.root)
    tool.run("publish")
    assert [struct.unpack_from(">q", one)[0] for one in split(topic.data_file(0).read_bytes())] == STARTS
    assert (tool.root / f"t-0/{BASE:020d}.log").samefile(topic.data_file(0))
    assert by_java(tool) == by_python(tool.root) == EXPECTED
    assert checked(tool.root).findings == []


def test_an_index_leads_into_a_tiled_segment(tool: LogTool) -> None:
    """A reader of the last batches needs no header before them: the first header is damaged here."""
    batches = [batch(records(9, f"{number}-" + "x" * 3000), 10 * number, last_offset_delta=9) for number in range(100)]
    topic = written(tool.root, b"".join(batches))
    tool.run("publish")
    octets = topic.data_file(0).read_bytes()
    whole = by_java(tool, minPartitions=8)
    assert whole == by_python(tool.root) and len(whole) == 900
    topic.data_file(0).write_bytes(octets[:16] + b"?" + octets[17:])
    assert by_java(tool) == by_python(tool.root) == "BATCH_CORRUPT"
    assert by_python(tool.root, start=BASE + 900) == whole[810:]


def without_a_batch(root: Path) -> None:
    """All that the version says of the batches is right."""
    written(root, b"".join(BATCHES[:1] + BATCHES[2:]), end=END)


def between_two_batches(root: Path) -> None:
    """Each later batch is an offset further on."""
    fields = [struct.unpack_from(">q", one)[0] for one in BATCHES]
    written(root, stamped(b"".join(BATCHES), *fields[:2], *(each + 1 for each in fields[2:])), end=END + 1)


def behind_the_last_batch(root: Path) -> None:
    written(root, end=END + 1)


def before_the_first_batch(root: Path) -> None:
    topic = Topic(root, starts=[BASE - 1])
    topic.commit(topic.data(stamped(b"".join(BATCHES), *STARTS), offsets="tiled", end=END))


def an_overlap(root: Path) -> None:
    fields = [struct.unpack_from(">q", one)[0] for one in BATCHES]
    written(root, stamped(b"".join(BATCHES), *fields[:2], *(each - 1 for each in fields[2:])), end=END - 1)


def a_batch_beyond_the_end(root: Path) -> None:
    written(root, end=END - 1)


def said_to_be_dense(root: Path) -> None:
    written(root, offsets="dense", end=END, records=END - BASE)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (without_a_batch, "BATCH_CORRUPT"),
        (between_two_batches, "BATCH_CORRUPT"),
        (behind_the_last_batch, "SEGMENT_CORRUPT"),
        (before_the_first_batch, "BATCH_CORRUPT"),
        (an_overlap, "BATCH_CORRUPT"),
        (a_batch_beyond_the_end, "BATCH_CORRUPT"),
        (said_to_be_dense, "BATCH_CORRUPT"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_hole_is_an_error(tool: LogTool, make: Callable[[Path], None], expected: str) -> None:
    make(tool.root)
    assert by_java(tool) == by_python(tool.root) == expected
    assert expected in {each.condition for each in checked(tool.root).findings}


def test_records_may_be_fewer_than_offsets(tool: LogTool) -> None:
    """A dense segment has as many; a segment of no kind has more."""
    topic = Topic(tool.root, starts=[BASE])
    segment = topic.data(stamped(b"".join(BATCHES), *STARTS), offsets="tiled", base=BASE, end=END)
    topic.commit(segment | {"records": END - BASE + 1})
    assert by_java(tool) == by_python(tool.root) == "VERSION_CORRUPT"
