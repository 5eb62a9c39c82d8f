"""Checkpoints only save time: with a damaged one, answers take longer and stay the same. FORMAT.md section 6."""

import json
from pathlib import Path

import pytest
from broken_checkpoints import HEADS, LINES
from handmade import Topic, batch, featured, flipped, records, seeded
from unit.readback import failure, newest, segments, values

from sparklog import Log, SparklogError
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog
from sparklog.store.local import LocalStore


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    return Topic(tmp_path, partitions=2)


@pytest.fixture
def checked(topic):
    """Ten versions, a checkpoint, and one more version."""
    for number in range(10):
        topic.append(records(3, f"v{number}"), partition=number % 2)
    checkpoint = topic.checkpoint()
    topic.append(records(1, "last"))
    return checkpoint


@pytest.fixture
def wanted(topic, checked):
    found = {partition: [segment.base for segment in segments(topic, partition)] for partition in (0, 1)}
    assert found == {0: [0, 3, 6, 9, 12, 15], 1: [0, 3, 6, 9, 12]}
    return values(topic)


def test_what_a_checkpoint_holds_needs_no_older_version(topic, checked, wanted):
    for version in range(9):
        topic.version_file(version).unlink()
    assert newest(topic).ends == (16, 15)
    assert values(topic) == wanted


def test_a_checkpoint_alone_is_a_topic_of_which_a_version_is_missing(topic, checked):
    for version in range(11):
        topic.version_file(version).unlink()
    assert Log(topic.root).topics() == ["t"]
    error = failure(topic)
    assert (error.id, error.parameters["version"]) == ("VERSION_MISSING", "9")


def test_a_damaged_checkpoint_is_skipped(topic, checked, wanted):
    random = seeded()
    whole = checked.read_bytes()
    for bit in random.sample(range(len(whole) * 8), 150):
        checked.write_bytes(flipped(whole, bit))
        assert values(topic) == wanted, bit
    for size in random.sample(range(len(whole)), 20):
        checked.write_bytes(whole[:size])
        assert values(topic) == wanted, size


def test_every_checksum_of_a_checkpoint_counts(topic, checked):
    for version in range(9):
        topic.version_file(version).unlink()
    whole = checked.read_bytes()
    digit = -1
    for _ in range(4):
        digit = whole.index(b"\t", digit + 1) + 1
        checked.write_bytes(flipped(whole, digit * 8))
        with pytest.raises(SparklogError, match="PARTLOG_VERSION_MISSING"):
            values(topic)


def test_a_checkpoint_of_another_state_is_not_believed(topic, checked):
    """Its head is valid, but version 9 has another hash."""
    checked.unlink()
    topic.hash, after, last = "0" * 64, topic.versions.pop(), topic.live[0].pop()
    topic.checkpoint()
    topic.versions.append(after)
    topic.live[0].append(last)
    assert failure(topic).parameters["file"] == str(topic.version_file(9))


@pytest.mark.parametrize("change", LINES.values(), ids=LINES)
def test_a_checkpoint_with_a_wrong_line_and_right_checksums_is_skipped(topic, checked, wanted, change):
    right = [json.loads(line.split(b"\t")[0]) for line in checked.read_bytes().splitlines()]
    checked.unlink()
    for number in (1, 3, 5, 6, 10):
        wrong = topic.put_checkpoint(9, [*right[:number], change(right[number]), *right[number + 1 :]])
        log = Log(topic.root).topic("t")
        assert log.read()["value"].to_pylist() == wanted, number
        assert log.tail(2)["value"].to_pylist()[-1] in (wanted[-1], wanted[15]), number
        assert sum(partition["segments"] for partition in log.describe()["partitions"]) == 11, number
        wrong.unlink()


@pytest.mark.parametrize("change", HEADS.values(), ids=HEADS)
def test_a_checkpoint_with_a_wrong_head_is_skipped(topic, checked, wanted, change):
    lines = [json.loads(line.split(b"\t")[0]) for line in checked.read_bytes().splitlines()]
    checked.unlink()
    change(lines[0])
    topic.put_checkpoint(9, lines)
    assert values(topic) == wanted


def test_a_checkpoint_of_a_later_format_stops(topic, checked):
    lines = [json.loads(line.split(b"\t")[0]) for line in checked.read_bytes().splitlines()]
    topic.put_checkpoint(9, [lines[0] | {"features": featured("tiered", binds="readers")}, *lines[1:]])
    checked.unlink()
    assert failure(topic).id == "FORMAT_TOO_NEW"


@pytest.mark.parametrize(("name", "offsets"), [("ends", [20, 12]), ("ends", [15, 15]), ("ends", [12, 12]), ("starts", [3, 0])])
def test_a_head_with_a_wrong_offset_that_its_version_does_not_name_is_skipped(topic, checked, wanted, name, offsets):
    """Version 9 names the end of partition 1 alone. The lines of segments tell."""
    lines = [json.loads(line.split(b"\t")[0]) for line in checked.read_bytes().splitlines()]
    checked.unlink()
    lines[0][name] = offsets
    if name == "starts":
        lines[0]["segments"], lines[1:3] = [4, 5], lines[2:3]
        lines[0]["starts"] = [2, 0]
    topic.put_checkpoint(9, lines)
    state = newest(topic)
    assert (state.starts, state.ends) == ((0, 0), (16, 15))
    assert values(topic) == wanted


def test_an_older_checkpoint_takes_the_place_of_a_damaged_one(topic, checked, wanted):
    second = topic.checkpoint()
    topic.append(records(1, "after"))
    for version in range(9):
        topic.version_file(version).unlink()
    lines = [json.loads(line.split(b"\t")[0]) for line in second.read_bytes().splitlines()]
    second.unlink()
    # The damage is noticed only when the segments of partition 1 are read.
    lines[8] = LINES["another base"](lines[8])
    topic.put_checkpoint(10, lines)
    log = Log(topic.root).topic("t")
    assert log.end_offsets() == {0: 17, 1: 15}
    assert sorted(log.read()["value"].to_pylist()) == sorted([*wanted, b"after-0"])


def test_a_state_whose_checkpoint_is_damaged_is_loaded_again_once_and_does_not_change(topic, checked, wanted, monkeypatch):
    lines = [json.loads(line.split(b"\t")[0]) for line in checked.read_bytes().splitlines()]
    checked.unlink()
    lines[8] = LINES["another base"](lines[8])
    topic.put_checkpoint(9, lines)
    files = []
    read = LocalStore.read
    monkeypatch.setattr(LocalStore, "read", lambda store, name, bytes_max: files.append(name) or read(store, name, bytes_max))
    log = TopicLog(Root.at(str(topic.root)), "t")
    state = log.newest()
    before = dict(vars(state))
    # That of the checkpoint, and the one after it.
    assert len(files) == 2
    for _ in range(3):
        assert [segment.base for segment in log.segments(state, 1)] == [0, 3, 6, 9, 12]
        assert len(files) == 2 + 11
    assert vars(state) == before
    topic.append(records(1, "next"), partition=1)
    assert [segment.base for segment in log.segments(log.newest(), 1)] == [0, 3, 6, 9, 12, 15]
    assert len(files) == 2 + 11 + 1


def test_without_the_versions_that_a_damaged_checkpoint_stood_for_there_is_an_error(topic, checked):
    for version in range(5):
        topic.version_file(version).unlink()
    whole = checked.read_bytes()
    checked.write_bytes(flipped(whole, len(whole) * 4))
    with pytest.raises(SparklogError) as raised:
        values(topic)
    assert raised.value.id == "VERSION_MISSING"


def test_a_checkpoint_beyond_the_versions_shows_that_some_are_missing(topic, checked):
    for version in (9, 10):
        topic.version_file(version).unlink()
    checked.write_bytes(b"damaged")
    error = failure(topic)
    assert (error.id, error.parameters["version"]) == ("VERSION_MISSING", "9")


def test_a_merge_after_a_checkpoint(topic, checked):
    live = topic.live[1]
    merged = topic.data(
        b"".join(batch(records(3, f"v{number}"), 3 * part) for part, number in enumerate((1, 3, 5))), 1, base=0, end=9, name="t0-1.log"
    )
    topic.commit(merged, removed=live[:3])
    found = [(segment.base, segment.end) for segment in segments(topic, 1)]
    assert found == [(0, 9), (9, 12), (12, 15)]
    lines = [json.loads(line.split(b"\t")[0]) for line in checked.read_bytes().splitlines()]
    checked.unlink()
    lines[8] = LINES["no array"](lines[8])
    topic.put_checkpoint(9, lines)
    assert [(segment.base, segment.end) for segment in segments(topic, 1)] == found
