"""Both readers agree on what a version may do to a partition's segments, and on batches that no writer makes. FORMAT.md sections 4, 5."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from handmade import TIME, Topic, batch, records
from logtool import LogTool

from sparklog import Log, SparklogError


def three_segments(root: Path) -> tuple[Topic, list[dict[str, Any]]]:
    """Offsets 0 to 5, 5 to 10 and 10 to 15."""
    topic = Topic(root)
    return topic, [topic.append(records(5, tag)) for tag in "abc"]


def cut_below_the_start(root: Path) -> None:
    """The log starts at 12; of what is below, the middle is gone and the first segment still there."""
    topic, segments = three_segments(root)
    topic.commit(removed=[segments[1]], starts=[12])


def all_below_the_start(root: Path) -> None:
    topic, segments = three_segments(root)
    topic.commit(removed=[segments[2]], starts=[15])


def put_back_below_the_start(root: Path) -> None:
    """A version that removes nothing adds a segment where another was removed."""
    topic, segments = three_segments(root)
    topic.commit(removed=[segments[1]], starts=[12])
    topic.commit(segments[1])


def gap_above_the_start(root: Path) -> None:
    topic, segments = three_segments(root)
    topic.commit(removed=[segments[1]], starts=[9])


def overlap_below_the_start(root: Path) -> None:
    topic, segments = three_segments(root)
    topic.commit(removed=[segments[1]], starts=[12])
    topic.commit({**segments[1], "base": 4, "end": 9})


def put_twice(root: Path) -> None:
    topic, segments = three_segments(root)
    topic.commit(segments[1])


def two_at_one_place(root: Path) -> tuple[Topic, dict[str, Any]]:
    """Offsets 0 to 5 and 5 to 10 are the same bytes of one file. FORMAT.md section 5.5, step 5."""
    topic, segment = Topic(root), {}
    for base in (0, 5):
        segment = segment or topic.data(batch(records(5)))
        topic.commit({**segment, "base": base, "end": base + 5})
    return topic, segment


def both_at_one_place_removed(root: Path) -> None:
    topic, segment = two_at_one_place(root)
    joined = topic.data(batch(records(10)), base=0, end=10)
    topic.commit(joined, removed=[segment], ends=[10])


def one_of_two_at_one_place_removed(root: Path) -> None:
    """One entry removes both, and only the first has a substitute."""
    topic, segment = two_at_one_place(root)
    topic.commit(topic.data(batch(records(5)), base=0, end=5), removed=[segment], ends=[10])


def both_at_one_place_removed_one_by_one(root: Path) -> None:
    topic, segment = two_at_one_place(root)
    joined = topic.data(batch(records(10)), base=0, end=10)
    topic.commit(joined, removed=[segment, segment], ends=[10])


def an_attribute_of_a_later_release(root: Path, bit: int, offsets: str = "dense") -> None:
    topic = Topic(root)
    topic.commit(topic.data(batch(records(3)) + batch(records(2), 3, attributes=1 << bit if bit < 15 else -(1 << 15)), offsets=offsets))


def gaps_between_batches(root: Path) -> None:
    """Offsets of this kind need a feature of a later release."""
    topic = Topic(root)
    topic.commit(topic.data(batch(records(3), 5)) | {"offsets": "stored", "end": 8})


def offsets_beyond_the_range_of_numbers(root: Path) -> None:
    """The last offset of a batch does not fit 64 bits."""
    topic = Topic(root, starts=[2**63 - 20])
    topic.commit(topic.data(batch(records(3), last_offset_delta=100), offsets="tiled", end=2**63 - 1))


def one_batch_fewer_than_committed(root: Path) -> None:
    topic = Topic(root)
    topic.commit(topic.data(batch(records(30)) + batch(records(2), 30), batches=3))


def one_batch_more_than_committed(root: Path) -> None:
    topic = Topic(root)
    topic.commit(topic.data(batch(records(3)) + batch(records(2), 3), batches=1))


def a_batch_after_the_last_offset(root: Path) -> None:
    topic = Topic(root)
    topic.commit(topic.data(batch(records(3)) + batch(records(2), 3), end=3, records=3))


def bytes_after_the_last_offset(root: Path) -> None:
    """Fewer than a header has."""
    topic = Topic(root)
    segment = topic.data(batch(records(3)))
    with (topic.folder / segment["file"]).open("ab") as file:
        file.write(bytes(10))
    topic.commit(segment | {"bytes": segment["bytes"] + 10})


def read_by_java(tool: LogTool) -> list[int] | str:
    status, out, err = tool.ended("read")
    if status:
        return re.findall(r"PARTLOG_([A-Z_]+)", err)[0]
    return [int(line.split(" ")[1]) for line in out.splitlines()[:-1]]


def read_by_python(root: Path) -> list[int] | str:
    try:
        return Log(root).topic("t").read()["offset"].to_pylist()  # type: ignore[no-any-return]
    except SparklogError as error:
        return error.id


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (cut_below_the_start, [12, 13, 14]),
        (all_below_the_start, []),
        (put_back_below_the_start, [12, 13, 14]),
        (gap_above_the_start, "VERSION_CORRUPT"),
        (overlap_below_the_start, "VERSION_CORRUPT"),
        (put_twice, "VERSION_CORRUPT"),
        (both_at_one_place_removed, [*range(10)]),
        (one_of_two_at_one_place_removed, "VERSION_CORRUPT"),
        (both_at_one_place_removed_one_by_one, "VERSION_CORRUPT"),
        (gaps_between_batches, "VERSION_CORRUPT"),
        (offsets_beyond_the_range_of_numbers, "BATCH_CORRUPT"),
        (one_batch_fewer_than_committed, "SEGMENT_CORRUPT"),
        (one_batch_more_than_committed, "SEGMENT_CORRUPT"),
        (a_batch_after_the_last_offset, "SEGMENT_CORRUPT"),
        (bytes_after_the_last_offset, "SEGMENT_CORRUPT"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_readers_agree(tool: LogTool, make: Callable[[Path], None], expected: list[int] | str) -> None:
    make(tool.root)
    assert read_by_java(tool) == read_by_python(tool.root) == expected


@pytest.mark.parametrize("offsets", ["dense", "tiled"])
@pytest.mark.parametrize("bit", range(4, 16))
def test_attributes_of_a_later_release_are_refused(tool: LogTool, bit: int, offsets: str) -> None:
    an_attribute_of_a_later_release(tool.root, bit, offsets)
    assert read_by_java(tool) == read_by_python(tool.root) == "BATCH_CORRUPT"


def test_a_search_for_a_time_reads_no_batch_beyond_the_limit(tool: LogTool) -> None:
    """FORMAT.md section 10: nothing is allocated for a batch that is larger than any right one, for any kind of search."""
    topic = Topic(tool.root)
    size = 80 << 20
    segment = topic.data(batch(records(1), length=size - 12), bytes=size, minTimestamp=0)
    os.truncate(topic.folder / segment["file"], size)
    topic.commit(segment)
    err = tool.failure("read", startingTimestamp=TIME)
    assert "PARTLOG_BATCH_CORRUPT" in err and f"it has {size} bytes" in err
    with pytest.raises(SparklogError, match=f"PARTLOG_BATCH_CORRUPT.*it has {size} bytes"):
        Log(tool.root).topic("t").offsets_for_time(TIME)
