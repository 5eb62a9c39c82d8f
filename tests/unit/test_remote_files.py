"""Records in a store over a network: they are requested before they are needed, many at once, and no byte is asked for twice."""

from __future__ import annotations

import gc
import random
import struct
import threading
import tracemalloc
import weakref
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from handmade import Topic, batches, draw_seed, records
from unit.far_store import FarStore, Together

from sparklog import DataError
from sparklog import Topic as Read
from sparklog.ondisk import prefetch
from sparklog.ondisk.prefetch import Prefetch, Span
from sparklog.ondisk.reader import PartitionReader
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.topic_logs import TopicLogs
from sparklog.store.requests import Answer
from sparklog.store.store import File

EACH, BATCHES, SEGMENTS = 20, 60, 2
END = EACH * BATCHES * SEGMENTS
PART_BYTES = 300_000


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    topic = Topic(tmp_path)
    for number in range(SEGMENTS):
        topic.commit(topic.data(batches(*(records(EACH, f"{number * BATCHES + each:>900}") for each in range(BATCHES)))))
    return topic


def of(store: FarStore) -> Read:
    return Read(TopicLogs(Root(store)), "t")


def reader(store: FarStore, partition: int = 0) -> PartitionReader:
    log = TopicLog(Root(store), "t")
    return PartitionReader(log, log.newest(), partition)


def assert_each_byte_once(store: FarStore) -> None:
    assert len(store.asked.spans) == SEGMENTS
    for name, spans in store.asked.spans.items():
        ordered = sorted(spans)
        assert all(end <= following for (_, end), (following, _) in pairwise(ordered)), spans
        assert sum(end - first for first, end in spans) == (Path(store.root.removeprefix("far:")) / name).stat().st_size


def test_records(topic: Topic) -> None:
    store = FarStore(str(topic.root))
    log = reader(store)
    store.asked.clear()
    assert sum(batch.num_rows for batch in log.records(0, END)) == END
    assert_each_byte_once(store)


@pytest.mark.parametrize("excess", [0, 1_000], ids=["small", "a segment and less than a batch"])
def test_parts(topic: Topic, excess: int) -> None:
    """As a consumer reads, which does other things in between."""
    store = FarStore(str(topic.root))
    part_bytes = max(part["bytes"] for part in topic.live[0]) + excess if excess else PART_BYTES
    log = reader(store)
    store.asked.clear()
    offset, stop, rows = 0, None, 0
    while offset < END:
        log.request(offset, part_bytes, stop)
        part = log.part(offset, part_bytes, stop)
        rows += sum(batch.num_rows for batch in part.batches)
        offset, stop = part.offset, part.stop
    assert rows == END
    assert_each_byte_once(store)
    assert store.asked.counts().keys() == {"GET"}


def test_a_hundred_segments_are_requested_many_at_a_time(tmp_path: Path) -> None:
    topic = Topic(tmp_path)
    for _ in range(100):
        topic.append(records(10))
    store = Together(str(tmp_path))
    log = of(store)
    store.asked.clear()
    store.wait_for(store.max_requests - 1)
    assert log.read().num_rows == 1000
    assert store.asked.counts() == {"HEAD": 2, "GET": 100}, "two for the newest state"
    assert store.asked.most_at_once <= store.max_requests
    store.wait_for(1)
    store.asked.clear()
    assert log.head(5).num_rows == 5
    assert store.asked.counts() == {"HEAD": 2, "GET": 1}, "what is not needed is not requested"
    store.asked.clear()
    assert log.head(55).num_rows == 55
    assert store.asked.counts()["GET"] < 20


def test_a_scan_that_may_end_soon_requests_little_of_a_large_segment(tmp_path: Path) -> None:
    topic = Topic(tmp_path)
    topic.commit(topic.data(batches(*(records(EACH, f"{each:>40000}") for each in range(20)))))
    store = FarStore(str(tmp_path))
    log = of(store)
    store.asked.clear()
    assert log.head(1).num_rows == 1
    assert sum(end - first for spans in store.asked.spans.values() for first, end in spans) <= 2 << 20
    store.asked.clear()
    assert log.head(20 * EACH).num_rows == 20 * EACH
    assert store.asked.counts()["GET"] <= 10


@pytest.mark.parametrize("limit", [None, 1500])
def test_a_range_in_the_middle_of_a_segment_is_requested_ahead_from_the_index_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None
) -> None:
    monkeypatch.setattr(prefetch, "_PIECE_BYTES", 1 << 20)
    topic, each = Topic(tmp_path), batches(records(100, f"{'':>1000}"))
    octets = batches(*[records(100, f"{'':>1000}")] * 80)
    segment = topic.data(octets)
    index = b"".join(struct.pack(">ii", 100 * number + 99, number * len(each)) for number in range(80))
    with (topic.folder / segment["file"]).open("ab") as file:
        file.write(index)
    topic.commit(segment | {"index": len(index)})
    topic.append(records(10))
    store = FarStore(str(tmp_path), 0.01)
    log = reader(store)
    store.asked.clear()
    assert sum(batch.num_rows for batch in log.records(3000, 6000, limit)) == (limit or 3000)
    (spans,) = store.asked.spans.values()
    needed = (limit or 3000) // 100 * len(each)
    assert sum(end - first for first, end in spans) <= 1.2 * needed + len(index) + ((1 << 20) if limit else 0)
    assert len(spans) <= 2 + 6
    assert store.asked.rows() <= (6 if limit else 5), "the index, the header of the first batch, and the records at once"
    assert store.asked.counts().keys() == {"GET"}


def test_small_segments_of_one_file_are_one_request(tmp_path: Path) -> None:
    topic = Topic(tmp_path, partitions=8)
    for _ in range(5):
        topic.commit(*(topic.data(batches(records(3)), partition) for partition in range(8)))
    store = FarStore(str(tmp_path))
    log = of(store)
    store.asked.clear()
    assert log.read().num_rows == 120
    assert store.asked.counts()["GET"] == 5
    store.asked.clear()
    assert log.read(partition=[2, 6]).num_rows == 30
    assert store.asked.counts()["GET"] == 5


def test_a_scan_that_is_given_up_requests_no_more(tmp_path: Path) -> None:
    topic = Topic(tmp_path)
    for _ in range(100):
        topic.append(records(10))
    store = FarStore(str(tmp_path), 0.01, max_requests=4)
    log, before = of(store), threading.active_count()
    store.asked.clear()
    scan = log.scan()
    assert scan.read_next_batch().num_rows == 10
    del scan
    gc.collect()
    assert log.read(start=990).num_rows == 10
    assert len(store.asked.requests) < 30
    assert threading.active_count() <= before + 4


def test_a_file_that_is_gone_before_its_bytes_were_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge takes the place of the segments that are read next. The scan goes on in it."""
    monkeypatch.setattr(prefetch, "BYTES_MAX", 1_000)
    topic = Topic(tmp_path)
    for _ in range(40):
        topic.append(records(10))
    log = of(FarStore(str(tmp_path)))
    monkeypatch.setattr(prefetch, "_SPANS_MAX", 4)
    scan = log.scan()
    found = [scan.read_next_batch()]
    old = topic.live[0][:]
    topic.commit(topic.data(batches(*[records(10)] * 40), base=0, end=400, name="p0-t0-0-0.log"), removed=old)
    for part in old:
        (topic.folder / part["file"]).unlink()
    found += list(scan)
    assert [offset for batch in found for offset in batch["offset"].to_pylist()] == list(range(400))


def test_a_file_that_is_too_short_is_named(topic: Topic) -> None:
    file = topic.data_file(0)
    size = file.stat().st_size
    with file.open("r+b") as out:
        out.truncate(size - 1)
    with pytest.raises(DataError, match=rf"SEGMENT_CORRUPT.*pool.log.*the file has {size - 1} bytes where it ends at {size}"):
        of(FarStore(str(topic.root))).read()


def test_memory_of_a_scan_does_not_grow_with_the_records(tmp_path: Path) -> None:
    peaks = []
    for count in (4, 16):
        topic = Topic(tmp_path / str(count))
        octets = batches(*(records(EACH, f"{each:>40000}") for each in range(10)))
        for _ in range(count):
            topic.commit(topic.data(octets))
        log = of(FarStore(str(topic.root)))
        tracemalloc.start()
        for batch in log.scan():
            del batch
        peaks.append(tracemalloc.get_traced_memory()[1] + pa.total_allocated_bytes())
        tracemalloc.stop()
        print(f"{count * len(octets)} bytes in {count} segments: a scan holds {peaks[-1]} bytes at most")
    assert peaks[1] < peaks[0] + prefetch.BYTES_MAX


def test_a_scan_that_is_given_up_asks_for_no_more_and_holds_nothing(topic: Topic) -> None:
    """At once, and not at a collection of garbage."""

    class Unanswered(FarStore):
        """No thread makes a call. It knows the calls that are still known to others."""

        def begin(self, ask: Any, argument: Any) -> Answer[Any]:
            answer = Answer(ask, argument)
            calls.append(weakref.ref(answer))
            return answer

    calls: list[weakref.ref[Answer[Any]]] = []
    whole = PartitionReader.records
    gc.collect()
    gc.disable()
    try:
        for scan in (
            lambda: iter(of(Unanswered(str(topic.root))).scan()),
            lambda: iter(of(Unanswered(str(topic.root))).scan(limit=END)),
            lambda: whole(reader(Unanswered(str(topic.root))), 0, END),
            lambda: iter(of(Unanswered(str(topic.root))).batches(0)),
        ):
            begun = scan()
            next(begun)
            assert any(call() for call in calls)
            del begun
            assert not any(call() for call in calls)
            calls.clear()
    finally:
        gc.enable()


def test_bytes_that_a_reader_has_passed_are_not_requested(tmp_path: Path) -> None:
    """It leapt over them before they were requested."""
    store = Bytes(str(tmp_path))
    ahead = Prefetch(store, 4 << 20)
    ahead.want([Span("f", 0, 100 << 20)])
    with ahead.open("f", 0, 100 << 20) as file:
        file.read(0, 10)
        file.read(99 << 20, 10)
        file.read(99 << 20, 1 << 20)
    assert ahead.held_bytes == sum(ahead.held().values())
    assert len(store.asked.requests) <= 8


@pytest.mark.parametrize("mebibytes", [1, 4, 32])
def test_no_more_is_held_than_the_bound(tmp_path: Path, mebibytes: int) -> None:
    bound = mebibytes << 20
    ahead = Prefetch(Zeros(str(tmp_path)), bound)
    end = 3 * bound
    ahead.follow([Span("f", 0, end), Span("g", 0, end)])
    most = 0
    with ahead.open("f", 0, end) as file:
        for at in range(0, end, 1 << 18):
            file.read(at, 1 << 18)
            most = max(most, ahead.held_bytes)
    print(f"{most} bytes of {bound}")
    assert bound / 2 <= most <= bound


# ---- the bytes themselves


class Bytes(FarStore):
    """Files of which each byte tells its place."""

    def got(self, name: str, position: int, count: int) -> bytes:
        with self.asked.one("GET", name):
            return content(name, position, position + count)

    def open(self, name: str) -> File:
        return Content(name)

    def open_at(self, name: str, position: int) -> File:
        return Content(name)


class Zeros(Bytes):
    """Files of zeros, which take no time to make."""

    def got(self, name: str, position: int, count: int) -> bytes:
        with self.asked.one("GET", name):
            return bytes(count)


class Content(File):
    size = 1 << 30

    def __init__(self, name: str) -> None:
        self._name = name

    def read(self, position: int, count: int) -> bytes:
        return content(self._name, position, position + count)

    def close(self) -> None:
        pass


def content(name: str, begin: int, end: int) -> bytes:
    return bytes((len(name) * 31 + at // 3) % 251 for at in range(begin, end))


def test_random_scans_and_wants(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A reader gets the bytes of the file, whatever was requested before, and no more is held than the bound."""
    monkeypatch.setattr(prefetch, "_PIECE_BYTES", 50)
    monkeypatch.setattr(prefetch, "_GAP_BYTES", 10)
    monkeypatch.setattr(prefetch, "_LEAST_BYTES", 20)
    monkeypatch.setattr(prefetch, "_BEHIND_BYTES", 60)
    first = draw_seed()
    for seed in range(first, first + 150):
        draw = random.Random(seed)
        store = Bytes(str(tmp_path), max_requests=draw.choice((1, 2, 16)))
        store.place = f"bytes {seed % 3} {store.max_requests}"
        monkeypatch.setattr(prefetch, "_SPANS_MAX", draw.choice((1, 3, 4096)))
        ahead = Prefetch(store, bound := draw.choice((1, 120, 1000, 100_000)))
        for _ in range(12):
            spans = list(some_spans(draw))
            if draw.random() < 0.5:
                ahead.want(spans)
                for span in draw.sample(spans, min(len(spans), 3)):
                    read(ahead, span, draw)
            else:
                ahead.follow(iter(spans), few=draw.random() < 0.3)
                for span in spans[: draw.randrange(len(spans) + 1)]:
                    read(ahead, span, draw)
                    ahead.done(*span)
                if draw.random() < 0.3:
                    read_in_leaps(ahead, spans, draw)
            assert ahead.held_bytes == sum(ahead.held().values()), seed
            assert ahead.held_bytes <= bound + 60 + 50, (seed, ahead.held_bytes)
        ahead.drop()
        assert (ahead.held_bytes, ahead.held()) == (0, {}), seed


def some_spans(draw: random.Random) -> Iterator[Span]:
    at = dict.fromkeys(("f", "gg", "hhh"), 0)
    for _ in range(draw.randrange(1, 12)):
        file = draw.choice(list(at))
        begin = at[file] + draw.choice((0, 0, 5, 40))
        at[file] = begin + draw.choice((1, 20, 49, 300))
        yield Span(file, begin, at[file])


def read_in_leaps(ahead: Prefetch, spans: list[Span], draw: random.Random) -> None:
    """A reader of a long segment goes forth and back in it. It finds its place by an index, or skips batches."""
    file = draw.choice(spans).file
    its = [span for span in spans if span.file == file]
    begin, end = its[0].begin, its[-1].end
    with ahead.open(file, begin, end) as opened:
        for _ in range(draw.randrange(8)):
            at = draw.randrange(begin, end)
            count = draw.randint(1, min(60, end - at))
            assert opened.some(at, count, count) == content(file, at, at + count)


def read(ahead: Prefetch, span: Span, draw: random.Random) -> None:
    with ahead.open(span.file, span.begin, span.end) as file:
        at = span.begin
        while at < span.end:
            least = draw.randint(1, min(60, span.end - at))
            most = draw.randint(least, span.end - at)
            got = file.some(at, least, most)
            assert least <= len(got) <= most
            assert got == content(span.file, at, at + len(got))
            at += least
