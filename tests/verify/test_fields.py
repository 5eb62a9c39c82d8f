"""Fields from which readers conclude something about records, right ones and wrong ones. FORMAT.md section 9.3."""

import struct
from pathlib import Path
from typing import Any

import pytest
from handmade import TIME, Record, Topic, batch, batches, records
from planting import Unrouted, checked, found, only

from sparklog import partition_for
from sparklog.ondisk.root import Root
from sparklog.verify import verify


def test_routes(tmp_path: Path) -> None:
    for partitioner in ("murmur3", "murmur2"):
        keys = [f"key-{number}".encode() * (number % 5) for number in range(300)]
        for routed in (True, False):
            root = tmp_path / f"{partitioner}-{routed}"
            topic = Topic(root, partitions=7, config={"partitioner": partitioner})
            placed = [[key for key in keys if partition_for(key, 7, partitioner) == partition] for partition in range(7)]
            # One key more in partition 3, which belongs elsewhere.
            placed[3].append(next(key for key in keys if key not in placed[3]))
            segments = [topic.data(batch([Record(key=key) for key in placed[each]]), each, routed=routed) for each in range(7)]
            topic.commit(*segments)
            there = checked(root).findings
            if routed:
                [finding] = there
                assert (finding.condition, finding.partition, finding.offset) == ("ROUTE_WRONG", 3, len(placed[3]) - 1)
            else:
                assert there == []


def test_a_null_key_is_not_routed(tmp_path: Path) -> None:
    Topic(tmp_path).append([Record(key=b"k"), Record(key=None)])
    finding = only(tmp_path)
    assert (finding.condition, finding.offset) == ("ROUTE_WRONG", 1)


@pytest.mark.parametrize(
    ("times", "fields", "expected"),
    [
        ([0, 1, 2], {"ordered": True}, []),
        ([0, 2, 1], {"ordered": False}, []),
        ([0, 2, 1], {"ordered": True}, ["ORDER_WRONG"]),
        ([0, 0, 0], {"ordered": True}, []),
        ([0, 1, 2], {"minTimestamp": -1}, []),
        ([0, 1, 2], {"minTimestamp": TIME + 1}, ["TIMES_WRONG"]),
        ([0, 1, 2], {"maxTimestamp": TIME + 1}, ["TIMES_WRONG"]),
        ([0, 1, 2], {"maxTimestamp": TIME + 3}, ["TIMES_WRONG"]),
    ],
)
def test_times(tmp_path: Path, times: list[int], fields: dict[str, Any], expected: list[str]) -> None:
    topic = Unrouted(tmp_path)
    least = {"minTimestamp": TIME}
    topic.append([Record(timestamp=TIME + each) for each in times], **(least | fields))
    assert [condition for _, condition in found(tmp_path)] == expected


def test_order_across_batches(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    octets = batches(records(3, timestamp=TIME + 10), records(3, timestamp=TIME))
    topic.commit(topic.data(octets, ordered=True))
    finding = only(tmp_path)
    assert (finding.condition, finding.offset, finding.byte) == ("ORDER_WRONG", 3, len(octets) // 2)


@pytest.mark.parametrize(("last", "expected"), [(1, []), (0, ["ORDER_WRONG"])])
def test_order_across_what_is_decoded_at_once(tmp_path: Path, last: int, expected: list[str]) -> None:
    """Megabytes of records are decoded together, and a time is compared with the one before these too."""
    topic = Unrouted(tmp_path)
    parts = [[Record(bytes(3 << 20), timestamp=TIME + time)] for time in (0, 1, 1, last)]
    topic.commit(topic.data(batches(*parts), ordered=True))
    assert [condition for _, condition in found(tmp_path)] == expected
    assert not expected or only(tmp_path).offset == 3


def test_the_greatest_time_is_that_of_all_that_is_decoded(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    parts = [[Record(bytes(3 << 20), timestamp=TIME + time)] for time in (9, 0)]
    topic.commit(topic.data(batches(*parts), maxTimestamp=TIME))
    assert found(tmp_path) == [("damage", "TIMES_WRONG")]


def test_times_below_minus_one_count_as_minus_one(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    topic.append([Record(timestamp=-7), Record(timestamp=-5)], minTimestamp=-1, maxTimestamp=-1)
    assert found(tmp_path) == []


@pytest.mark.parametrize(("greatest", "expected"), [(9, []), (10, ["TIMES_WRONG"])])
def test_the_latest_record_of_a_batch_may_be_gone(tmp_path: Path, greatest: int, expected: list[str]) -> None:
    """A compacted batch keeps its max timestamp."""
    topic = Unrouted(tmp_path)
    octets = batch([Record()], last_offset_delta=1, max_timestamp=TIME + 9)
    topic.commit(topic.data(octets, offsets="tiled", maxTimestamp=TIME + greatest))
    assert [condition for _, condition in found(tmp_path)] == expected


def test_a_batch_whose_base_timestamp_is_not_that_of_its_first_record(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    topic.commit(topic.data(batch(records(3), base_timestamp=TIME - 5), ordered=True))
    assert found(tmp_path) == [("damage", "ORDER_WRONG")]


def test_a_batch_whose_max_timestamp_is_too_low(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    topic.commit(topic.data(batch(records(3), max_timestamp=TIME + 1), maxTimestamp=TIME + 2))
    assert found(tmp_path) == [("damage", "TIMES_WRONG")]


def test_tiled_segments(tmp_path: Path) -> None:
    """Gaps and an empty batch; the sum of the counts, which no reader checks."""
    octets = batch([Record(), Record()], 10, deltas=[1, 3]) + batch([], 14, last_offset_delta=5, payload=b"")
    for wrong, expected in (({}, []), ({"records": 1}, ["SEGMENT_CORRUPT"]), ({"end": 19}, ["BATCH_CORRUPT"])):
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        topic = Unrouted(root, starts=[10])
        topic.commit(topic.data(octets, offsets="tiled") | wrong)
        assert [condition for _, condition in found(root)] == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"batches": 3}, "SEGMENT_CORRUPT"),
        ({"batches": 1}, "SEGMENT_CORRUPT"),
        ({"headerCrc": 7}, "SEGMENT_CORRUPT"),
        ({"end": 9, "records": 9}, "SEGMENT_CORRUPT"),
        ({"end": 7, "records": 7}, "BATCH_CORRUPT"),
        ({"position": 1}, "BATCH_CORRUPT"),
        ({"bytes": 140}, "BATCH_CORRUPT"),
    ],
)
def test_numbers_of_a_segment(tmp_path: Path, fields: dict[str, Any], expected: str) -> None:
    """Each is wrong alone, and the version file is right by itself."""
    topic = Unrouted(tmp_path)
    topic.commit(topic.data(batches(records(4), records(4))) | fields)
    assert expected in {condition for _, condition in found(tmp_path)}


def test_a_batch_with_a_reserved_attribute(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    topic.commit(topic.data(batch(records(1), attributes=0x20)))
    assert found(tmp_path) == [("damage", "BATCH_CORRUPT")]


def test_indexes(tmp_path: Path) -> None:
    """Made from the rules of FORMAT.md section 8, for each value that the topic's interval had."""
    times = [5, 5, 9, 2, 9, 12]
    octets = b"".join(batch([Record(timestamp=TIME + time)], number) for number, time in enumerate(times))
    size = len(octets) // len(times)
    for interval, entries in ((0, [1, 2, 3, 4, 5]), (size, [2, 4]), (size - 1, [1, 2, 3, 4, 5]), (2 * size, [3])):
        root = tmp_path / str(interval)
        topic = Unrouted(root, config={"index.interval.bytes": str(interval)})
        topic.commit(topic.data(octets))
        folder = root / "t-0"
        folder.mkdir()
        (folder / f"{0:020d}.log").write_bytes(octets)
        stored: list[tuple[int, int]] = []
        for number in [*entries, len(times) - 1]:
            greatest = max(times[: number + 1])
            if not stored or TIME + greatest > stored[-1][0]:
                stored.append((TIME + greatest, times.index(greatest)))
        index = folder / f"{0:020d}.index"
        index.write_bytes(b"".join(struct.pack(">ii", number, number * size) for number in entries))
        timeindex = folder / f"{0:020d}.timeindex"
        timeindex.write_bytes(b"".join(struct.pack(">qi", *each) for each in stored))
        assert found(root) == []
        if interval == size:
            # The interval becomes another one: what was made before is as right as what is made after.
            topic.commit(operation="alter", config={"index.interval.bytes": "0"})
            assert found(root) == []
            index.write_bytes(b"".join(struct.pack(">ii", number, number * size) for number in (1, 2, 3, 4, 5)))
            assert found(root) == []
        index.write_bytes(index.read_bytes()[:-8])
        assert found(root) == [("repairable", "INDEX_WRONG")]
        timeindex.write_bytes(timeindex.read_bytes()[:-1])
        assert found(root) == [("repairable", "INDEX_WRONG")] * 2
        index.write_bytes(b"")
        quick = verify(Root.at(str(root)), quick=True, settles_s=()).findings
        assert [(each.condition, each.file) for each in quick] == [("INDEX_WRONG", f"t-0/{timeindex.name}")], "quick sees lengths only"


@pytest.mark.parametrize("quick", [True, False])
def test_lengths_of_data_files(tmp_path: Path, quick: bool) -> None:
    topic = Unrouted(tmp_path, partitions=2)
    octets = batches(records(4), records(4))
    shared = [topic.data(octets, 0), topic.data(octets, 1)]
    topic.commit(*shared)
    path = topic.data_file(0)
    named = f"_partlog/t/{shared[0]['file']}"

    def said() -> list[tuple[str, int | None]]:
        findings = verify(Root.at(str(tmp_path)), quick=quick, settles_s=()).findings
        assert {each.file for each in findings} <= {named}
        return [(each.condition, each.byte) for each in findings]

    assert said() == []
    path.write_bytes(octets * 2 + b"?")
    assert said() == []
    path.write_bytes((octets * 2)[:-9])
    assert ("SEGMENT_CORRUPT", 2 * len(octets) - 9) in said()
    path.write_bytes(octets)
    assert {condition for condition, _ in said()} == {"SEGMENT_CORRUPT"} | ({"BATCH_CORRUPT"} if not quick else set())
    path.unlink()
    assert said() == [("SEGMENT_MISSING", None)] * 2
