"""Data files that go while they are read, in a store that does not keep them for readers: every question still gets its answer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from handmade import TIME, Topic, batches, records
from unit.memory_store import MemoryStore

from sparklog import Log
from sparklog.errors import SparklogError
from sparklog.ondisk.reader import PartitionReader, Wanted
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog
from sparklog.store.store import Absent, File
from sparklog.verify import verify

EACH, BATCHES, SEGMENTS = 20, 6, 3
SIZE = EACH * BATCHES
END = SIZE * SEGMENTS


@dataclass
class Forgetful(MemoryStore):
    """A file that is deleted is gone for those too that have it open. `countdown` reads of data files later, `then` happens."""

    countdown: int = -1
    then: Callable[[], None] = field(default=lambda: None)

    def open(self, name: str) -> File:
        return Forgotten(self, name, super().open(name)) if name.endswith(".log") else super().open(name)


class Forgotten(File):
    def __init__(self, store: Forgetful, name: str, file: File) -> None:
        self._store, self._name, self._file, self.size = store, name, file, file.size

    def read(self, position: int, count: int) -> bytes:
        self._store.countdown -= 1
        if self._store.countdown == 0:
            self._store.then()
        if self._name not in self._store.files:
            raise Absent
        return self._file.read(position, count)

    def close(self) -> None:
        self._file.close()


def content(*numbers: int) -> bytes:
    begins = [number * SIZE + at for number in numbers for at in range(0, SIZE, EACH)]
    return batches(*(records(EACH, f"{begin:>900}", TIME + begin) for begin in begins))


def offsets(reader: PartitionReader, start: int, end: int, **more) -> list[int]:
    return [offset for batch in reader.records(start, end, **more) for offset in batch["offset"].to_pylist()]


def parts(reader: PartitionReader, bytes_max: int) -> Iterator[int]:
    """Those before `END`. A part may have more, as a consumer asks for the newest state by then, and ends behind them."""
    offset, stop = 0, None
    while offset < END:
        part = reader.part(offset, bytes_max, stop)
        its = [each for batch in part.batches for each in batch["offset"].to_pylist()]
        assert part.offset == its[-1] + 1
        yield from (each for each in its if each < END)
        offset, stop = part.offset, part.stop


QUESTIONS = {
    "records": (lambda reader: offsets(reader, 0, END), list(range(END))),
    "some records": (lambda reader: offsets(reader, 33, END - 7), list(range(33, END - 7))),
    "a limit": (lambda reader: offsets(reader, 0, END, limit=SIZE + 5), list(range(SIZE + 5))),
    "a time": (lambda reader: offsets(reader, 0, END, wanted=Wanted(since=TIME + 77)), list(range(77, END))),
    "parts": (lambda reader: list(parts(reader, 40_000)), list(range(END))),
    "large parts": (lambda reader: list(parts(reader, 1 << 20)), list(range(END))),
    "headers": (lambda reader: sum(len(found) for _, found in reader.headers()), SEGMENTS * BATCHES),
    "contents": (
        lambda reader: [offset for _, _, found in reader.contents() for batch in found for offset in batch["offset"].to_pylist()],
        list(range(END)),
    ),
    "offset_at": (lambda reader: reader.offset_at(TIME + 2 * SIZE + 3), 2 * SIZE + 3),
    "newest_time": (lambda reader: reader.newest_time(3, END), TIME + END - 1),
}


@pytest.fixture
def topic(tmp_path) -> Topic:
    topic = Topic(tmp_path)
    for number in range(SEGMENTS):
        topic.commit(topic.data(content(number)))
    return topic


def planned(topic: Topic, later: int = 0) -> tuple[Forgetful, Callable[[], None]]:
    """The store before a merge of all segments and of some that come later, and that merge."""
    store = Forgetful.copy_of(topic.root)
    for number in range(later):
        topic.commit(topic.data(content(SEGMENTS + number)))
    old = topic.live[0]
    whole = content(*range(SEGMENTS + later))
    topic.commit(topic.data(whole, base=0, end=END + later * SIZE, name="p0-t0-0-0.log"), removed=old, operation="merge")
    after = MemoryStore.copy_of(topic.root)

    def merge() -> None:
        store.files |= after.files
        for part in old:
            store.files.pop(f"_partlog/t/{part['file']}", None)

    return store, merge


@pytest.mark.parametrize("later", [0, 1])
@pytest.mark.parametrize("question", QUESTIONS)
def test_each_read_may_be_the_first_that_finds_the_file_gone(topic, question, later):
    ask, answer = QUESTIONS[question]
    store, store.then = planned(topic, later)
    before = dict(store.files)
    reads, met = 0, 0
    while True:
        reads += 1
        store.files = dict(before)
        log = TopicLog(Root(store), "t")
        state = log.newest()
        store.countdown = reads
        assert ask(PartitionReader(log, state, 0)) == answer, f"the files are gone at read {reads}"
        if store.countdown > 0:
            break
        met += 1
    assert met >= SEGMENTS, "each segment was met at least once"


def test_a_file_that_is_gone_from_the_newest_state_too_is_missing(topic):
    store = Forgetful.copy_of(topic.root)
    store.then = lambda: store.files.pop(f"_partlog/t/{topic.live[0][1]['file']}")
    found = Log(Root(store))["t"]
    store.countdown = 2
    with pytest.raises(SparklogError, match="PARTLOG_SEGMENT_MISSING"):
        found.read()


def test_verify_tells_of_a_file_that_went_as_of_one_that_was_never_there(topic):
    store = Forgetful.copy_of(topic.root)
    store.then = lambda: store.files.pop(f"_partlog/t/{topic.live[0][1]['file']}")
    store.countdown = 2
    assert "SEGMENT_MISSING" in {finding.condition for finding in verify(Root(store), jobs=1, settles_s=()).findings}
    store, store.then = planned(topic)
    store.countdown = 2
    assert [
        finding.condition for finding in verify(Root(store), jobs=1, settles_s=(0, 0, 0)).findings if finding.severity == "damage"
    ] == []
