"""Base offsets of batches: dense ones, half stamped or not, and stored ones with gaps. FORMAT.md section 4."""

import os

import pytest
from handmade import TIME, VALUES, Topic, batch, batches, records, split, stamped
from unit.answers import failure, offsets, values

from sparklog import Log
from sparklog.errors import SparklogError


@pytest.mark.parametrize("bases", [(), (15,), (15, 22), (0, 22)])
def test_a_stamp_may_be_half_done(topic, log, bases):
    file = topic.data_file(1)
    octets = file.read_bytes()
    size = topic.versions[1]["added"][0]["bytes"]
    file.write_bytes(stamped(octets[:size], *bases) + octets[size:])
    assert values(log.read(0)) == VALUES
    assert [each.base_offset for each in log.batches(0)] == [0, 5, 9, 15, 22]


@pytest.mark.parametrize("bases", [(16,), (15, 7 + 1), (0, 6), (0, 0), (-1,), (15, 22 + 15)])
def test_an_offset_that_is_neither_relative_nor_absolute(topic, log, bases):
    file = topic.data_file(1)
    octets = file.read_bytes()
    size = topic.versions[1]["added"][0]["bytes"]
    file.write_bytes(stamped(octets[:size], *bases) + octets[size:])
    assert values(log.read(0, end=15))
    for ask in (lambda: log.read(0), lambda: list(log.batches(0)), lambda: log.offsets_for_time(TIME + 1500), lambda: log.tail(1)):
        error = failure(ask)
        assert error.id == "BATCH_CORRUPT" and error.parameters["partition"] == "0"


def test_offsets_may_have_gaps(tmp_path):
    topic = Topic(tmp_path)
    octets = batch(records(3, "a"), deltas=[10, 14, 17], last_offset_delta=19)
    octets += batch([], 20, last_offset_delta=19) + batch(records(2, "b"), 40) + batch([], 42, last_offset_delta=17)
    topic.commit(topic.data(octets, offsets="tiled"))
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
    assert log.offsets_for_time(TIME + 2) == {0: 17}
    assert log.describe()["records"] == 5


def test_the_contents_of_batches(tmp_path):
    """A damaged batch comes with its error, and a damaged header ends its segment."""
    topic = Topic(tmp_path)
    topic.commit(topic.data(batch(records(3, "a")) + batch([], 3), offsets="tiled"))
    topic.commit(topic.data(batches(records(2, "b"), records(3, "c"), records(4, "d"))))
    topic.append(records(5, "e"))
    log = Log(tmp_path).topic("t")

    def contents() -> list[tuple[int | None, object]]:
        found: list[tuple[int | None, object]] = []
        for each, content in log.batches(0).contents():
            what = content.id if isinstance(content, SparklogError) else [value for part in content for value in part["value"].to_pylist()]
            found.append((each and each.base_offset, what))
        return found

    texts = [[f"{tag}-{number}".encode() for number in range(count)] for tag, count in zip("abcde", (3, 2, 3, 4, 5), strict=True)]
    sound = [(0, texts[0]), (3, []), (4, texts[1]), (6, texts[2]), (9, texts[3]), (13, texts[4])]
    assert contents() == sound
    assert [each.base_offset for each in log.batches(0)] == [offset for offset, _ in sound]
    file = topic.data_file(1)
    octets = file.read_bytes()
    first, second, _ = split(octets)
    file.write_bytes(first + second[:-1] + b"?" + octets[len(first + second) :])
    assert contents() == [*sound[:3], (6, "BATCH_CORRUPT"), *sound[4:]]
    file.write_bytes(first + b"\xff" * 16 + octets[len(first) + 16 :])
    assert contents() == [*sound[:3], (None, "BATCH_CORRUPT"), sound[5]]
    file.unlink()
    assert contents() == [*sound[:2], (None, "SEGMENT_MISSING"), sound[5]]


def test_a_batch_that_is_too_large_is_not_read(tmp_path):
    """A reader refuses a length that no batch of the topic can have. The file is sparse, so its bytes take no space."""
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
