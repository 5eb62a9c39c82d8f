"""Records that are read front to back, in a store over a network: no byte is asked for twice, and requests are few."""

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from handmade import Topic, batches, records
from unit.memory_store import MemoryStore

from sparklog.ondisk.reader import PartitionReader
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog
from sparklog.store.remote import ReadAhead
from sparklog.store.store import File

EACH, BATCHES, SEGMENTS = 20, 60, 2
END = EACH * BATCHES * SEGMENTS
PART_BYTES = 300_000


@dataclass
class Remote(MemoryStore):
    """A store whose data files are read ahead. It keeps what is asked of them."""

    opened: list[str] = field(default_factory=list)
    asked: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def open(self, name: str) -> File:
        if not name.endswith(".log"):
            return super().open(name)
        self.opened.append(name)
        return ReadAhead(Asked(super().open(name), self.asked.setdefault(name, [])))


class Asked(File):
    def __init__(self, file: File, asked: list[tuple[int, int]]) -> None:
        self._file, self._asked, self.size = file, asked, file.size

    def read(self, position: int, count: int) -> bytes:
        self._asked.append((position, position + count))
        return self._file.read(position, count)

    def close(self) -> None:
        self._file.close()


@pytest.fixture
def store(tmp_path) -> Remote:
    topic = Topic(tmp_path)
    for number in range(SEGMENTS):
        topic.commit(topic.data(batches(*(records(EACH, f"{number * BATCHES + each:>900}") for each in range(BATCHES)))))
    return Remote.copy_of(topic.root)


def reader(store: Remote) -> PartitionReader:
    log = TopicLog(Root(store), "t")
    return PartitionReader(log, log.newest(), 0)


def assert_each_byte_once(store: Remote) -> None:
    assert len(store.asked) == SEGMENTS
    for name, spans in store.asked.items():
        assert all(end <= following for (_, end), (following, _) in pairwise(spans)), spans
        assert sum(end - first for first, end in spans) == len(store.files[name].content)


def test_records(store):
    assert sum(batch.num_rows for batch in reader(store).records(0, END)) == END
    assert_each_byte_once(store)
    assert len(store.opened) == SEGMENTS


@pytest.mark.parametrize("excess", [0, 1_000], ids=["small", "a segment and less than a batch"])
def test_parts(store, excess):
    """As a consumer reads, which does other things in between."""
    segment_bytes = max(len(kept.content) for name, kept in store.files.items() if name.endswith(".log"))
    part_bytes = segment_bytes + excess if excess > 0 else PART_BYTES
    offset, stop, count, rows = 0, None, 0, 0
    while offset < END:
        part = reader(store).part(offset, part_bytes, stop)
        rows += sum(batch.num_rows for batch in part.batches)
        offset, stop, count = part.offset, part.stop, count + 1
    assert rows == END
    assert count >= SEGMENTS
    assert_each_byte_once(store)
    assert len(store.opened) == SEGMENTS
    assert max(end - first for spans in store.asked.values() for first, end in spans) <= max(2 * PART_BYTES, part_bytes), (
        "memory of an idle consumer"
    )


def test_a_file_that_went_between_two_parts(store):
    part = reader(store).part(0, PART_BYTES)
    name, content = store.opened[0], store.files.copy()
    del store.files[name]
    rest = reader(store).part(part.offset, PART_BYTES, part.stop)
    assert rest.offset > part.offset, "it was read ahead"
    assert content[name].content
