"""A consumer of a store over a network: the bytes of its next fetches are requested at once, and are dropped when it goes elsewhere."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from handmade import Record, Topic, batches, records
from unit.far_store import FarStore, Together

from sparklog import Consumer, TopicPartition
from sparklog.consumer import shell
from sparklog.ondisk.prefetch import Prefetch
from sparklog.ondisk.root import Root


def of(store: FarStore, **given: object) -> Consumer:
    return Consumer(Root(store), "t", auto_offset_reset="earliest", **given)  # type: ignore[arg-type]


@pytest.fixture
def prefetches(monkeypatch: pytest.MonkeyPatch) -> list[Prefetch]:
    """The bytes that consumers request before they need them: one for each consumer."""
    made: list[Prefetch] = []

    def make(*given: Any) -> Prefetch:
        made.append(Prefetch(*given))
        return made[-1]

    monkeypatch.setattr(shell, "Prefetch", make)
    return made


def all_of(consumer: Consumer, count: int) -> int:
    found = 0
    while found < count:
        batches = consumer.poll_batches(10_000)
        assert batches, f"{found} of {count}"
        found += sum(each.num_rows for each in batches.values())
    return found


def test_segments_are_requested_many_at_a_time(tmp_path: Path) -> None:
    topic = Topic(tmp_path)
    for _ in range(40):
        topic.append(records(10))
    store = Together(str(tmp_path))
    store.wait_for(store.max_requests - 1)
    consumer = of(store)
    store.asked.clear()
    assert all_of(consumer, 400) == 400
    assert store.asked.counts()["GET"] == 40
    assert store.asked.counts()["HEAD"] <= 4, "the looks at the topic"


def test_partitions_are_requested_together(tmp_path: Path) -> None:
    topic = Topic(tmp_path, partitions=8)
    for _ in range(5):
        topic.commit(*(topic.data(batches(records(3)), partition) for partition in range(8)))
    for partition in range(8):
        topic.append(records(3), partition)
    store = Together(str(tmp_path))
    store.wait_for(13)
    consumer = of(store)
    store.asked.clear()
    assert all_of(consumer, 144) == 144
    assert store.asked.counts()["GET"] == 13, "five shared files, and eight"


@pytest.mark.parametrize("large", [False, True], ids=["within the bound", "beyond the bound"])
def test_the_next_parts_are_requested_while_the_program_works(tmp_path: Path, prefetches: list[Prefetch], large: bool) -> None:
    topic = Topic(tmp_path)
    octets = batches(*[[Record(bytes(1000)) for _ in range(10)]] * 20)
    for _ in range(4):
        topic.commit(topic.data(octets))
    store = FarStore(str(tmp_path))
    size = len(octets) // 2
    consumer = of(store, max_partition_fetch_bytes=size, **({"fetch_max_bytes": size} if large else {}))
    parts = 0
    while found := consumer.poll_batches(1):
        parts += 1
        assert found["t", 0].num_rows <= 100  # type: ignore[index]
        assert prefetches[0].held_bytes <= (size + (64 << 10) if large else 5 * size)
    spans = [span for name, its in store.asked.spans.items() if name.endswith(".log") for span in its]
    assert parts >= 8
    assert sum(end - first for first, end in spans) <= (1.6 if large else 1.0) * 4 * len(octets)
    assert store.asked.counts()["GET"] <= 20


def test_requested_bytes_are_dropped(tmp_path: Path, prefetches: list[Prefetch]) -> None:
    topic = Topic(tmp_path, partitions=2)
    for number in range(40):
        topic.append(records(10), number % 2)
    store = FarStore(str(tmp_path))
    before = threading.active_count()
    consumer = of(store, max_partition_fetch_bytes=1)
    (prefetch,) = prefetches
    consumer.poll(1)
    assert len(prefetch.held()) >= 2
    consumer.pause(TopicPartition("t", 0))
    consumer.seek(TopicPartition("t", 1), 150)
    consumer.poll(1)
    assert prefetch.held().keys() <= {f"_partlog/t/{part['file']}" for part in topic.live[1] if part["end"] > 150}
    consumer.unsubscribe()
    assert (prefetch.held_bytes, prefetch.held()) == (0, {})
    consumer.subscribe(["t"])
    consumer.poll(1)
    assert prefetch.held_bytes > 0
    consumer.close()
    assert (prefetch.held_bytes, prefetch.held()) == (0, {})
    assert threading.active_count() - before < store.max_requests


def test_a_look_for_new_topics_of_a_pattern_lists_the_root_and_no_known_topic(tmp_path: Path) -> None:
    for number in range(30):
        Topic(tmp_path, f"t{number:02}").append(records(1))
    gone = Topic(tmp_path, "t99")
    gone.append(records(1))
    gone.delete()
    store = FarStore(str(tmp_path))
    with Consumer(Root(store), auto_offset_reset="earliest", metadata_max_age_ms=0, idle_look_ms=60_000) as consumer:
        consumer.subscribe(pattern="t[019]")
        listed = [request.name for request in store.asked.requests if request.call == "LIST"]
        assert not [name for name in listed if name.startswith("_partlog/t2")], "it does not match"
        while consumer.poll():
            pass
        store.asked.clear()
        assert consumer.poll() == {}
        assert [request.name for request in store.asked.requests if request.call == "LIST"] == ["_partlog", "_partlog/t99"]
        Topic(tmp_path, "t1x").append(records(2))
        Topic(tmp_path, "t2x").append(records(2))
        assert {partition.topic for partition in consumer.poll()} == {"t1x"}
        assert len(consumer.subscription() or ()) == 21


def test_memory_of_a_consumer_does_not_grow(tmp_path: Path) -> None:
    octets = batches(*[[Record(bytes(10_000)) for _ in range(10)]] * 5)
    held = []
    for count in (20, 80):
        topic = Topic(tmp_path / str(count))
        for _ in range(count):
            topic.commit(topic.data(octets))
        consumer = of(FarStore(str(topic.root)))
        gc.collect()
        tracemalloc.start()
        assert all_of(consumer, 50 * count) == 50 * count
        held.append(tracemalloc.get_traced_memory()[1] + pa.total_allocated_bytes())
        tracemalloc.stop()
        consumer.close()
        print(f"{count * len(octets)} bytes in {count} segments: a consumer holds {held[-1]} bytes at most")
    assert max(held) < 14_000_000  # twice what it holds where its threads are ahead of it; a topic has 10 and 40 million bytes
