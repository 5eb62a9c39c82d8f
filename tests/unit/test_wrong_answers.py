"""A store that gives wrong bytes once: what fails its checksum is asked for again before an error says that it is damaged."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from handmade import Topic, batches, records
from unit.far_store import FarStore

from sparklog import Consumer, DataError, Log
from sparklog.ondisk.root import Root

SEGMENTS, BATCHES, RECORDS = 5, 3, 20
TOTAL = SEGMENTS * BATCHES * RECORDS


class Wrong(FarStore):
    """The bytes of some reads of files with `name` are changed: those whose numbers, from 0 on, are below `times`."""

    def __init__(self, folder: str, name: str, times: int, change: Callable[[bytes], bytes]) -> None:
        super().__init__(folder)
        self.name, self.times, self.change = name, times, change
        self.asked_for = 0
        self.guard = threading.Lock()

    def changed(self, name: str, data: bytes) -> bytes:
        if self.name not in name:
            return data
        with self.guard:
            self.asked_for += 1
            return self.change(data) if self.asked_for <= self.times else data

    def got(self, name: str, position: int, count: int) -> bytes:
        return self.changed(name, super().got(name, position, count))

    def opened(self, name: str):
        file = super().opened(name)
        read = file.read
        file.read = lambda position, count: self.changed(name, read(position, count))  # type: ignore[method-assign]
        return file


def flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] if len(data) > at else data


WRONG = {
    "other bytes": lambda data: bytes(len(data)),
    "a bit of the first header": flipped(16),
    "a bit of the first batch": flipped(200),
    "a bit of the last batch": lambda data: flipped(len(data) - 20)(data),
    "fewer bytes": lambda data: data[:40],
}


@pytest.fixture
def topic(tmp_path) -> Topic:
    topic = Topic(tmp_path)
    for number in range(SEGMENTS):
        parts = [records(RECORDS, f"r{number}-{part}") for part in range(BATCHES)]
        topic.commit(topic.data(batches(*parts), routed=False))
    return topic


def read(root: Root) -> int:
    return Log(root)["t"].read().num_rows


def consumed(root: Root) -> int:
    with Consumer(root, "t", auto_offset_reset="earliest") as consumer:
        return sum(len(found) for _ in range(20) for found in consumer.poll(timeout_ms=10).values())


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("ask", [read, consumed, lambda root: Log(root)["t"].head(TOTAL).num_rows])
def test_wrong_bytes_of_a_data_file(topic: Topic, ask, wrong: str, times: int) -> None:
    """Two wrong answers are to two requests, since all files are asked for at once."""
    assert ask(Root(Wrong(str(topic.root), "/data/", times if wrong != "fewer bytes" else 1, WRONG[wrong]))) == TOTAL


@pytest.mark.parametrize("wrong", ["other bytes", "a bit of the first batch", "nothing"])
def test_wrong_bytes_of_a_version(topic: Topic, wrong: str) -> None:
    change = (WRONG | {"nothing": lambda _: b""})[wrong]
    assert read(Root(Wrong(str(topic.root), "2.json", 1, change))) == TOTAL
    with pytest.raises(DataError, match="VERSION_CORRUPT"):
        read(Root(Wrong(str(topic.root), "2.json", 1000, change)))


def test_lasting_damage_is_told_at_each_call_until_it_is_mended(topic: Topic) -> None:
    file = topic.data_file(3)
    right = file.read_bytes()
    file.write_bytes(flipped(200)(right))
    with Consumer(Root(FarStore(str(topic.root))), "t", auto_offset_reset="earliest") as consumer:
        for _ in range(2):
            with pytest.raises(DataError, match="BATCH_CORRUPT"):
                consumer.poll(timeout_ms=10)
        file.write_bytes(right)
        assert sum(len(found) for _ in range(20) for found in consumer.poll(timeout_ms=10).values()) == TOTAL


def test_a_file_that_is_absent_once(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    from sparklog.store.store import Absent

    for times, error in ((1, None), (1000, "SEGMENT_MISSING")):
        asked = []

        def absent(store: FarStore, name: str, times: int = times, asked: list[str] = asked, real=FarStore.opened):
            if name == str(topic.data_file(2).relative_to(topic.root)):
                asked.append(name)
                if len(asked) <= times:
                    raise Absent
            return real(store, name)

        with monkeypatch.context() as patch:
            patch.setattr(FarStore, "opened", absent)
            patch.setattr(FarStore, "reader", lambda store, name: lambda position, count: store.opened(name).read(position, count))
            root = Root(FarStore(str(topic.root)))
            if error:
                with pytest.raises(DataError, match=error):
                    read(root)
            else:
                assert read(root) == TOTAL


@pytest.mark.parametrize("given", [False, True])
def test_a_batch_of_another_file_is_not_taken_for_the_right_one(topic: Topic, monkeypatch: pytest.MonkeyPatch, given: bool) -> None:
    """It has a right checksum and the expected offset. Only the checksum over all headers tells: an error, if its records are given."""
    if given:
        monkeypatch.setattr("sparklog.ondisk.reader._CHUNK_RECORDS", 1)
    other = batches(*(records(RECORDS, f"x0-{part}") for part in range(BATCHES)))
    root = Root(Wrong(str(topic.root), "/data/", 1, lambda data: other + data[len(other) :]))
    if given:
        with pytest.raises(DataError, match="SEGMENT_CORRUPT"):
            read(root)
    assert not any(value.startswith(b"x0") for value in Log(root)["t"].read().column("value").to_pylist())
    assert read(root) == TOTAL
