"""States in the reader in Python: replay, and every rule that a version file can break."""

import errno
import os
from pathlib import Path

import pytest
from broken_rules import BROKEN, changed, write_third, write_two_versions
from handmade import TIME, Topic, batch, featured, flipped, identity, records, seeded, summed
from kinds_of_versions import KINDS
from unit.readback import failure, newest, segments, values

from sparklog import DataError, Log, SparklogError, UpgradeError
from sparklog.batches.faults import Unreadable
from sparklog.ondisk.checkpoint import Checkpoint
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog
from sparklog.store.local import LocalStore


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    return Topic(tmp_path, partitions=2)


def test_versions_add_up(topic):
    first = topic.append(records(3, "a"))
    topic.commit(config={"unknown.key": "kept"}, query={"id": "q", "epoch": 7, "input": None}, horizon=1)
    second = topic.append(records(2, "b"), partition=1)
    third = topic.append(records(4, "c"))
    state = newest(topic)
    assert (state.version, state.topic_id, state.time) == (3, identity("t"), TIME + 3000)
    assert (state.starts, state.ends) == ((0, 0), (7, 2))
    assert (state.horizon, state.boundary) == (1, 0)
    assert state.config["unknown.key"] == "kept" and state.config["partitions"] == "2"
    files = {partition: [segment.file for segment in segments(topic, partition)] for partition in (0, 1)}
    assert files == {0: [first["file"], third["file"]], 1: [second["file"]]}
    assert values(topic) == [b"a-0", b"a-1", b"a-2", b"c-0", b"c-1", b"c-2", b"c-3", b"b-0", b"b-1"]


def test_a_state_is_kept_and_followed(topic):
    topic.append(records(1))
    log = TopicLog(Root.at(str(topic.root)), topic.name)
    first = log.newest()
    assert log.newest() is first
    topic.append(records(1))
    topic.append(records(1))
    assert log.newest().ends == (3, 0)
    assert first.ends == (1, 0)
    assert [segment.base for segment in log.segments(first, 0)] == [0]


def test_a_topic_that_was_deleted_and_created_again_is_another_one(topic, tmp_path):
    topic.append(records(3, "old"))
    log = Log(tmp_path).topic("t")
    assert log.end_offsets() == {0: 3, 1: 0}
    for file in topic.folder.glob("*.json"):
        file.unlink()
    with pytest.raises(SparklogError) as raised:
        log.end_offsets()
    assert raised.value.id == "TOPIC_NOT_FOUND"
    again = Topic(tmp_path, partitions=2)
    again.append(records(1, "new"))
    assert log.read()["value"].to_pylist() == [b"new-0"]


def test_a_topic_that_is_deleted_and_begins_again_shares_nothing(topic, tmp_path):
    topic.append(records(3, "old"))
    log = Log(tmp_path).topic("t")
    first = log.describe()["id"]
    topic.delete()
    assert failure(topic).id == "TOPIC_NOT_FOUND"
    with pytest.raises(SparklogError) as raised:
        log.read()
    assert (raised.value.id, raised.value.parameters["topics"]) == ("TOPIC_NOT_FOUND", "none")
    topic.partitions = 1
    topic.append(records(2, "new"))
    assert log.read()["value"].to_pylist() == [b"new-0", b"new-1"]
    assert (log.partitions, log.describe()["id"] == first) == (1, False)
    assert [commit.version for commit in log.commits()] == [2], "the others are of the topic before"
    topic.version_file(0).unlink()
    assert Log(tmp_path).topic("t").end_offsets() == {0: 2}


# --- the rules of section 5, one by one


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_broken_rule_is_found(topic, change):
    right = write_two_versions(topic)
    broken = write_third(topic, changed(right, change))
    error = failure(topic)
    assert (error.id, error.parameters["file"]) == ("VERSION_CORRUPT", str(broken)), error
    assert isinstance(error, DataError)
    write_third(topic, right)
    assert newest(topic).ends == (7, 0)


@pytest.mark.parametrize(
    ("kind", "change"),
    [pytest.param(kind, change, id=f"{name}: {rule}") for name, kind in KINDS.items() for rule, change in kind.wrong.items()],
)
def test_a_broken_rule_of_what_does_more_than_add_records_is_found(topic, kind, change):
    broken = changed(kind.prepare(topic), change)
    file = topic.version_file(broken["version"])
    file.write_bytes(topic.octets(broken))
    error = failure(topic)
    assert (error.id, error.parameters["file"]) == ("VERSION_CORRUPT", str(file)), error


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("partitions", "1x"),
        ("max.message.bytes", str(2**30 + 1)),
        ("max.message.bytes", "0128"),
    ],
)
def test_a_configuration_with_an_impossible_value(topic, key, value):
    topic.append(records(1))
    assert newest(topic).config[key]
    content = topic.versions[0]
    content["config"][key] = value
    topic.version_file(0).write_bytes(topic.octets(content, 0))
    assert key in str(failure(topic)) and failure(topic).id == "VERSION_CORRUPT"


@pytest.mark.parametrize("key", ["partitions", "max.message.bytes"])
def test_version_0_has_the_keys_of_record_readers(topic, key):
    topic.append(records(1))
    content = topic.versions[0]
    del content["config"][key]
    topic.version_file(0).write_bytes(topic.octets(content, 0))
    assert failure(topic).id == "VERSION_CORRUPT"


def test_version_0_follows_none(topic):
    topic.commit(previous="0" * 64)
    assert "`previous`" in str(failure(topic))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"{}",
        b"{}\n",
        b"{}\ncrc32c:00000000\n",
        summed(b"{}"),
        summed(b"[]"),
        summed(b"null"),
        summed(b"{"),
        summed(b"[" * 100_000),
        summed(b"\xff"),
        summed(b'{"format": NaN}'),
        summed(b'{"format": 1, "format": 1}'),
        summed(b'{"format": ' + b"1" * 10_000 + b"}"),
        summed(b'{"format": 1e999}'),
    ],
    ids=lambda text: text[:20],
)
def test_bytes_that_are_not_a_version_file(topic, text):
    topic.append(records(1))
    topic.version_file(0).write_bytes(text)
    assert failure(topic).id == "VERSION_CORRUPT"


def test_around_the_checksum_nothing_may_stand(topic):
    topic.append(records(1))
    right = topic.version_file(0).read_bytes()
    for wrong in (right + b"\n", right[:-1], b"\n" + right, right.replace(b"crc32c:", b"CRC32C:"), right.replace(b"\ncrc", b"\r\ncrc")):
        topic.version_file(0).write_bytes(wrong)
        assert failure(topic).id == "VERSION_CORRUPT"


def test_every_flipped_bit_of_a_version_file_is_found(topic):
    topic.append(records(1))
    topic.append(records(1))
    random = seeded()
    for version in (0, 1):
        whole = topic.version_file(version).read_bytes()
        for bit in random.sample(range(len(whole) * 8), 150):
            topic.version_file(version).write_bytes(flipped(whole, bit))
            assert failure(topic).id == "VERSION_CORRUPT", bit
        for size in random.sample(range(len(whole)), 20):
            topic.version_file(version).write_bytes(whole[:size])
            assert failure(topic).id == "VERSION_CORRUPT", size
        topic.version_file(version).write_bytes(whole)


def test_a_version_that_was_changed_with_its_checksum_is_found_by_the_next(topic):
    topic.append(records(1))
    topic.append(records(1))
    content = topic.versions[0] | {"writer": "somebody else"}
    topic.version_file(0).write_bytes(topic.octets(content, 0))
    assert failure(topic).parameters["file"] == str(topic.version_file(1))


@pytest.mark.parametrize("changes", [{"format": 2}, {"features": featured("tiered", binds="readers")}, {"format": 2, "txn": None}])
def test_what_a_later_version_wrote_is_not_read(topic, changes):
    topic.append(records(1))
    topic.commit(**changes)
    error = failure(topic)
    assert error.id == "FORMAT_TOO_NEW"
    assert isinstance(error, UpgradeError)


@pytest.mark.parametrize("gone", [0, 1])
def test_a_missing_version_is_found(topic, gone):
    for _ in range(3):
        topic.append(records(1))
    topic.version_file(gone).unlink()
    error = failure(topic)
    assert (error.id, error.parameters["version"], error.parameters["newest"]) == ("VERSION_MISSING", str(gone), "2")


def test_a_pipe_or_a_folder_is_not_a_version_file(topic):
    topic.append(records(1))
    topic.append(records(1))
    file = topic.version_file(1)
    file.unlink()
    os.mkfifo(file)
    assert failure(topic).id == "VERSION_CORRUPT"
    file.unlink()
    file.mkdir()
    assert failure(topic).id in ("VERSION_CORRUPT", "IO")


def test_a_huge_version_file_is_not_read(topic):
    topic.append(records(1))
    with topic.version_file(0).open("ab") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    assert "more than 67108864" in str(failure(topic))


# --- versions that remove segments


def test_a_merge_replaces_segments_by_one_with_the_same_offsets(topic):
    parts = [topic.append(records(2, tag)) for tag in "abc"]
    merged = topic.data(batch(records(2, "a")) + batch(records(2, "b"), 2), base=0, end=4, name="p0-t0-0-0.log")
    topic.commit(merged, removed=parts[:2])
    assert [(segment.base, segment.end, segment.file) for segment in segments(topic, 0)] == [
        (0, 4, merged["file"]),
        (4, 6, parts[2]["file"]),
    ]
    assert values(topic) == [b"a-0", b"a-1", b"b-0", b"b-1", b"c-0", b"c-1"]


def test_a_merge_and_an_append_in_one_version(topic):
    parts = [topic.append(records(2, tag)) for tag in "ab"]
    merged = topic.data(batch(records(2, "a")) + batch(records(2, "b"), 2), base=0, end=4, name="p0-t0-0-0.log")
    topic.commit(merged, topic.data(batch(records(1, "c"))), removed=parts)
    assert values(topic) == [b"a-0", b"a-1", b"b-0", b"b-1", b"c-0"]


def test_what_has_expired_may_go(topic):
    parts = [topic.append(records(2, tag)) for tag in "abc"]
    topic.commit(removed=parts[:1], starts=[3, 0])
    assert newest(topic).starts == (3, 0)
    assert values(topic) == [b"b-1", b"c-0", b"c-1"]
    topic.commit(removed=parts[1:], starts=[6, 0])
    assert values(topic) == []
    topic.append(records(1, "d"))
    assert values(topic) == [b"d-0"]


def test_partitions_can_be_added(topic):
    topic.append(records(2, "a"))
    topic.grow(3)
    topic.append(records(1, "b"), partition=2)
    assert newest(topic).ends == (2, 0, 1)
    assert values(topic) == [b"a-0", b"a-1", b"b-0"]


def test_a_checkpoint_that_is_deleted_meanwhile_is_not_damaged(topic, monkeypatch):
    """The only checkpoint cannot be read for a moment; when it is read again, it has been deleted, as a newer one is there."""
    topic.append(records(1))
    topic.append(records(1))
    only = topic.checkpoint()
    topic.version_file(0).unlink()
    tried = []

    def read(*where):
        tried.append(where)
        if len(tried) == 1:
            raise Unreadable("a fault")
        if len(tried) == 2:
            topic.append(records(1))
            topic.checkpoint()
            only.unlink()
        return Checkpoint(*where)

    monkeypatch.setattr("sparklog.ondisk.topic_log.Checkpoint", read)
    assert TopicLog(Root.at(str(topic.root)), topic.name).newest().version == 2
    assert len(tried) == 3


def test_a_checkpoint_that_cannot_be_read_is_not_a_missing_version(topic, monkeypatch):
    topic.append(records(1))
    topic.append(records(1))
    file = topic.checkpoint()
    open_at = LocalStore.open_at

    def denied(store, name, position):
        if name.endswith(file.name):
            raise PermissionError(errno.EACCES, "denied")
        return open_at(store, name, position)

    monkeypatch.setattr(LocalStore, "open_at", denied)
    assert newest(topic).ends == (2, 0)
    topic.version_file(0).unlink()
    error = failure(topic)
    assert (error.id, error.parameters["file"]) == ("IO", str(file))


def test_files_with_other_names_are_skipped(topic):
    topic.append(records(1, "a"))
    for name in ("1.json", f"{2:020d}.json.tmp", f"{10**20 - 1:020d}.json", f"{5:020d}.checkpoint-xyz.jsonl", ".x", "README"):
        (topic.folder / name).write_text("something")
    assert values(topic) == [b"a-0"]


def test_history(topic):
    topic.append(records(1))
    topic.commit(query={"id": "q", "epoch": 3, "input": "0123456789abcdef"})
    topic.append(records(2), partition=1)
    log = TopicLog(Root.at(str(topic.root)), "t")
    assert [version.version for version in log.history()] == [0, 1, 2]
    assert [version.query for version in log.history()] == [None, ("q", 3, "0123456789abcdef"), None]
    assert [version.version for version in log.history(2)] == [1, 2]
    assert log.history(0) == []
    topic.version_file(0).unlink()
    assert [version.version for version in log.history()] == [1, 2]
    content = topic.version_file(1).read_bytes()
    topic.version_file(1).write_bytes(summed(content.splitlines()[0].replace(b"by hand", b"by foot")))
    with pytest.raises(SparklogError) as raised:
        log.history()
    assert raised.value.id == "VERSION_CORRUPT"
    topic.version_file(1).write_bytes(content)
    topic.append(records(2))
    topic.version_file(2).unlink()
    with pytest.raises(SparklogError) as raised:
        log.history()
    assert raised.value.id == "VERSION_MISSING"
