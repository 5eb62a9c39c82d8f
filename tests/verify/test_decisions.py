"""The line between faults and files that are right, as FORMAT.md draws it, on roots that are written by hand."""

import struct
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from handmade import TIME, Record, Topic, batch, batches, records, stamped, varint
from kinds_of_versions import KINDS
from odd_batches import BROKEN, RIGHT, WRONG, compressed
from planting import Unrouted, checked, found, only, publish

from sparklog.batches.header import CODECS
from sparklog.ondisk.root import Root
from sparklog.verify import verify

OWN = "p0-t0-0-0.log"


def test_what_a_finding_says(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    topic.append(records(5))
    octets = batches(records(4), records(6), records(2))
    second = len(batch(records(4)))
    segment = topic.data(octets)
    topic.commit(segment)
    topic.data_file(1).write_bytes(octets[: second + 70] + b"?" + octets[second + 71 :])
    finding = only(tmp_path)
    assert (finding.severity, finding.condition, finding.topic, finding.partition) == ("damage", "BATCH_CORRUPT", "t", 0)
    assert (finding.offset, finding.byte, finding.file) == (9, second, f"_partlog/t/{segment['file']}")
    assert "checksum" in finding.problem
    assert finding.impact == "6 offsets, 9 to 15 (exclusive)"
    assert finding.fix.startswith("restore the file from a copy")
    report = checked(tmp_path)
    assert str(finding) in str(report)
    assert (report.checked.versions, report.checked.segments, report.checked.batches, report.checked.records) == (2, 2, 4, 11)
    assert report.summary() == "1 damage"
    assert not report.ok
    assert report.as_dict()["findings"][0]["byte"] == second
    assert verify(Root.at(str(tmp_path)), quick=True, settles_s=()).ok, "quick reads no batch"


def test_what_is_behind_a_damaged_batch_is_checked_too(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    parts = [batch(records(3, str(number)), 3 * number) for number in range(9)]
    topic.commit(topic.data(b"".join(parts)))
    size = len(parts[0])
    octets = bytearray(b"".join(parts))
    for number in (1, 4, 8):
        octets[number * size + 65] ^= 1
    topic.data_file(0).write_bytes(octets)
    assert [each.byte for each in checked(tmp_path).findings] == [size, 4 * size, 8 * size]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_version_is_right(tmp_path: Path, kind: str) -> None:
    topic = Unrouted(tmp_path, partitions=2)
    topic.put(KINDS[kind].prepare(topic))
    expected = [("repairable", "MARKER_MISSING")] if kind == "a deletion" else []
    assert [each for each in found(tmp_path) if each != ("repairable", "CHECKPOINT_MISSING")] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_every_broken_rule_of_a_version_is_found(tmp_path: Path, kind: str) -> None:
    for number, name in enumerate(KINDS[kind].wrong):
        root = tmp_path / str(number)
        topic = Unrouted(root, partitions=2)
        content = KINDS[kind].prepare(topic)
        KINDS[kind].wrong[name](content)
        topic.put(content) if not content["removed"] else _put_only(topic, content)
        file = f"_partlog/t/{content['version']:020d}.json"
        said = [(each.severity, each.condition) for each in checked(root).findings if each.file == file]
        assert ("damage", "VERSION_CORRUPT") in said or ("damage", "VERSION_ODD") in said, (name, said)


def _put_only(topic: Topic, content: dict[str, Any]) -> None:
    """Without what `Topic` remembers, which a wrong version confuses."""
    live, topic.live = topic.live, {partition: [] for partition in range(9)}
    topic.put(content)
    topic.live = live


@pytest.mark.parametrize("name", RIGHT)
def test_codecs_that_are_right(tmp_path: Path, name: str) -> None:
    codec, payload = RIGHT[name]
    topic = Unrouted(tmp_path)
    fields = {"records": 50, "last_offset_delta": 49, "base_timestamp": TIME, "max_timestamp": TIME + 49}
    topic.commit(topic.data(batch([], payload=payload, attributes=CODECS.index(codec), **fields)))
    assert found(tmp_path) == []


def test_batches_that_are_wrong_with_a_right_checksum(tmp_path: Path) -> None:
    wrong = {name: compressed(*WRONG[name]) for name in WRONG}
    wrong |= {name: batch([Record()], **BROKEN[name]) for name in BROKEN if name not in ("a wrong checksum",)}
    for number, octets in enumerate(wrong.values()):
        root = tmp_path / str(number)
        topic = Unrouted(root)
        right = batch(records(3))
        segment = topic.data(right)
        octets = struct.pack(">q", 3) + octets[8:]
        crc = google_crc32c.extend(segment["headerCrc"], octets[8:61])
        topic.commit(segment | {"bytes": len(right + octets), "batches": 2, "records": 53, "end": 53, "headerCrc": crc})
        topic.data_file(0).write_bytes(right + octets)
        there = [each for each in checked(root).findings if each.condition == "BATCH_CORRUPT"]
        assert [each.byte for each in there] == [len(right)], list(wrong)[number]


# --- the base offset field of a dense segment

BASE = 0x0102030405060708


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        (OWN, (0, 3), []),
        (OWN, (BASE, BASE + 3), []),
        (OWN, (BASE, 3), []),
        (OWN, (0x0100000405000008, 3), []),
        (OWN, (0, 4), ["BATCH_CORRUPT"]),
        (OWN, (1, 3), ["BATCH_CORRUPT"]),
        (OWN, (-1, 3), ["BATCH_CORRUPT"]),
        ("pool.log", (0, 3), []),
        ("pool.log", (BASE, BASE + 3), []),
        ("pool.log", (BASE, 3), ["STAMP_WRONG"]),
        ("pool.log", (0x0100000405000008, 3), ["STAMP_WRONG"]),
        ("pool.log", (0, BASE + 2), ["BATCH_CORRUPT"]),
    ],
)
def test_a_base_offset_field(tmp_path: Path, name: str, fields: tuple[int, int], expected: list[str]) -> None:
    """Each byte is that of the relative or of the absolute offset. Only a data file of its own is stamped, in any order of bytes."""
    topic = Unrouted(tmp_path, starts=[BASE])
    octets = batches(records(3), records(2))
    topic.commit(topic.data(octets, name=name))
    topic.data_file(0).write_bytes(stamped(octets, *fields))
    assert [condition for _, condition in found(tmp_path)] == expected


def test_a_linked_view_has_absolute_offsets(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path, starts=[70])
    octets = batch(records(3))
    topic.commit(topic.data(octets, name=OWN))
    path = publish(topic, octets, 70)
    assert found(tmp_path) == [("repairable", "VIEW_WRONG")], "not a hard link"
    path.write_bytes(stamped(octets, 70))
    assert found(tmp_path) == [("repairable", "VIEW_WRONG")], "the right bytes, but not a hard link"
    path.unlink()
    path.hardlink_to(topic.data_file(0))
    assert found(tmp_path) == [("repairable", "STAMP_WRONG")]
    topic.data_file(0).write_bytes(stamped(octets, 70))
    assert found(tmp_path) == []


def test_a_data_file_with_bytes_behind_its_segment_is_copied(tmp_path: Path) -> None:
    """It is not the segment's own file then, so a link would show Kafka's tools the bytes behind it."""
    topic = Unrouted(tmp_path, starts=[70])
    octets = batch(records(3))
    topic.commit(topic.data(octets, name=OWN))
    topic.data_file(0).write_bytes(octets + b"?")
    publish(topic, stamped(octets, 70), 70)
    assert found(tmp_path) == []


def test_a_copied_view_has_absolute_offsets(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path, starts=[70])
    octets = batch(records(3))
    topic.commit(topic.data(octets))
    publish(topic, stamped(octets, 70), 70)
    assert found(tmp_path) == []
    path = publish(topic, octets, 70)
    finding = only(tmp_path)
    assert (finding.condition, finding.byte, finding.file) == ("VIEW_WRONG", 0, str(path.relative_to(tmp_path)))
    path.with_suffix(".index").write_bytes(struct.pack(">ii", 2, 0))
    path.unlink()
    assert sorted(found(tmp_path)) == [("repairable", "INDEX_WRONG"), ("repairable", "VIEW_MISSING")]


def test_a_topic_without_a_view_waits_for_one(tmp_path: Path) -> None:
    Unrouted(tmp_path).append(records(3))
    report = checked(tmp_path)
    assert report.ok
    assert [each.what for each in report.waiting] == ["view"]


def test_a_long_varint_is_accepted(tmp_path: Path) -> None:
    """Readers accept longer forms of numbers than needed."""
    body = b"\0" + b"\x80\x00" + varint(0) + varint(-1) * 2 + varint(0)
    topic = Unrouted(tmp_path)
    topic.commit(topic.data(batch([], payload=varint(len(body)) + body, records=1, base_timestamp=TIME, max_timestamp=TIME)))
    assert found(tmp_path) == []
