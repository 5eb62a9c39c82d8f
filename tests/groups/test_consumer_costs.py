"""The costs of a consumer: looks at files, and memory."""

import gc
import os
import time
import tracemalloc
from collections import Counter, deque
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from handmade import Record, Topic, batch, batches, records

import sparklog
from sparklog import Consumer
from sparklog.consumer import core, metrics, shell
from sparklog.consumer import records as consumer_records
from sparklog.consumer.shell import Shell
from sparklog.ondisk import watch

PACKAGE = Path(sparklog.__file__).parent

OWNER = {"group_id": "g", "auto_commit_interval_ms": 600_000, "partition_assignment_strategy": "exclusive"}
MEMBER = {**OWNER, "partition_assignment_strategy": "range", "heartbeat_interval_ms": 30_000, "session_timeout_ms": 120_000}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what Python asks the file system."""
    counted: Counter[str] = Counter()

    def watch(name: str) -> None:
        function = getattr(os, name)

        def counting(*given: object, **more: object) -> object:
            counted[name] += 1
            return function(*given, **more)

        monkeypatch.setattr(os, name, counting)

    for name in ("stat", "lstat", "open", "scandir", "listdir", "pread"):
        watch(name)
    return counted


def test_a_poll_that_finds_nothing_costs_one_stat_a_topic(topic, calls, monkeypatch):
    other = Topic(topic.root, "u", partitions=16)
    other.append(records(1))
    consumer = Consumer(topic.root, "t", "u", auto_offset_reset="earliest")
    consumer.poll()
    monkeypatch.setattr(watch, "_ASK_S", 1e9)
    calls.clear()
    for _ in range(100):
        assert consumer.poll() == {}
    assert calls["stat"] + calls["lstat"] == 200
    assert calls.total() == 200
    calls.clear()
    consumer = Consumer(topic.root, "t", poll_interval_ms=10)
    calls.clear()
    polls = looks = 0
    while looks < 3:  # on a busy machine, a poll of 200 ms may look once
        consumer.poll(200)
        polls, looks = polls + 1, calls["stat"] + calls["lstat"]
        assert calls.total() == looks <= 22 * polls


def test_once_a_second_the_version_before_is_looked_at_too(topic, calls, monkeypatch):
    """A version that was put and deleted while the consumer slept cannot be seen in its own place."""
    consumer = Consumer(topic.root, "t")
    consumer.poll()
    monkeypatch.setattr(watch, "_ASK_S", 0.05)
    for _ in range(4):
        topic.append(records(1))
    topic.checkpoint()
    topic.append(records(1), boundary=5)
    for version in range(5):
        topic.version_file(version).unlink()
    time.sleep(0.06)
    assert [record.offset for record in consumer.poll()[("t", 0)]] == [25, 26, 27, 28, 29]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [({}, ["Now", "News"]), (OWNER, ["Now", "Beat", "News"]), (MEMBER, ["Now", "PollGroup", "Beat", "News"])],
    ids=["alone", "owner", "member"],
)
def test_a_poll_that_finds_nothing_makes_requests_where_a_round_is_due(topic, table, given, wanted, monkeypatch):
    """Each costs as much as a record. Between turns, a poll sees new records all the same."""
    now, reply = 1.0, Shell.reply
    monkeypatch.setattr(shell, "time", SimpleNamespace(monotonic=lambda: now))
    with Consumer(topic.root, "t", **given, **({"table": table} if given else {})) as consumer:
        for _ in range(3):
            consumer.poll()
        asked: list[str] = []
        monkeypatch.setattr(Shell, "reply", lambda self, request: asked.append(type(request).__name__) or reply(self, request))
        assert consumer.poll() == consumer.poll_batches() == {}
        assert asked == []
        now += core.ROUND_S
        assert consumer.poll() == {}
        assert asked == wanted
        topic.append(records(1))
        assert len(consumer.poll()["t", 0]) == 1


def test_what_is_held_is_read_without_a_look(topic, calls):
    consumer = Consumer(topic.root, "t", auto_offset_reset="earliest", max_poll_records=1, poll_interval_ms=60_000)
    consumer.poll()
    calls.clear()
    for _ in range(24):
        assert len(consumer.poll()[("t", 0)]) == 1
    assert calls.total() == 0


def used() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()


@pytest.mark.slow
def test_memory_does_not_grow_with_polls(tmp_path, monkeypatch):
    monkeypatch.setattr(metrics, "_WINDOW_S", 0)  # seconds of the window are memory too, and a busy machine takes more of them
    topic = Topic(tmp_path, partitions=2)
    octets = batches(*[[Record(bytes(1000)) for _ in range(20)]] * 50)
    for _ in range(4):
        topic.commit(topic.data(octets), topic.data(octets, 1))
    consumer = Consumer(tmp_path, "t", auto_offset_reset="earliest")
    tracemalloc.start()
    try:
        kept, polls = [], 0
        for _ in range(5):
            for _ in range(2):
                consumer.seek_to_beginning()
                count = 0
                while found := consumer.poll_batches(max_records=100):
                    count += sum(each.num_rows for each in found.values())
                    polls += 1
                assert count == 8000
            del found
            for _ in range(600):
                consumer.poll()
            polls += 600
            kept.append(used())
        print(f"after each {polls // 5} polls: {kept} bytes")
        # The first round fills caches of Python and of Arrow.
        assert max(kept[1:]) - kept[1] < 50_000
        peak = tracemalloc.get_traced_memory()[1]
        assert peak < 30_000_000
    finally:
        tracemalloc.stop()


def test_memory_grows_with_live_segments_only(tmp_path, monkeypatch):
    """A consumer that follows commits keeps a line of each live segment, as every reader does. A merge takes them away."""
    monkeypatch.setattr(metrics, "_WINDOW_S", 0)  # seconds of the window are memory too, and a busy machine takes more of them
    monkeypatch.setattr(consumer_records, "_EMPTY", deque(maxlen=0))  # it is full after a thousand records
    topic = Topic(tmp_path)
    topic.append(records(10))
    consumer = Consumer(tmp_path, "t", auto_offset_reset="earliest", max_partition_fetch_bytes=1)
    tracemalloc.start()
    try:
        kept, count, total = [], 0, 10
        for _ in range(4):
            for _ in range(50):
                topic.append(records(10))
                total += 10
                found = consumer.poll(max_records=1000)
                while found:
                    count += sum(map(len, found.values()))
                    found = consumer.poll(max_records=1000)
            whole = batches(*[records(10)] * (total // 10))
            topic.commit(topic.data(whole, base=0, end=total, name="p0-t0-0-0.log"), removed=topic.live[0][:])
            assert consumer.poll() == {}
            topic.versions[:-1] = [{}] * (len(topic.versions) - 1)  # our writer's own memory
            del found, whole
            gc.collect()
            # Only that of the package counts: a checkout may have its name, and tests and pytest in it take more and more.
            ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, str(PACKAGE / "*"))])
            kept.append(sum(each.size for each in ours.statistics("filename")))
        print(f"after each 50 commits and a merge: {kept} bytes")
        assert count == total
        # A number of a commit that is kept takes 100 times 24 bytes; what comes and goes takes 200 in all.
        assert kept[-1] - kept[1] < 2_000
    finally:
        tracemalloc.stop()


def test_a_large_segment_is_walked_once(tmp_path, calls):
    """Without an index, as it is before the Kafka view is there: each part begins where the last one ended."""
    topic = Topic(tmp_path)
    one = batch([Record(bytes(1000)) for _ in range(60)])
    count = 200
    topic.commit(topic.data(b"".join(bytes(8 - 4) + (60 * number).to_bytes(4, "big") + one[8:] for number in range(count))))
    consumer = Consumer(tmp_path, "t", auto_offset_reset="earliest", max_partition_fetch_bytes=2 * len(one))
    consumer.poll_batches()
    calls.clear()
    parts = 0
    while found := consumer.poll_batches():
        parts += 1
        assert found[("t", 0)].num_rows == 120
    assert parts == count // 2 - 1
    assert calls["pread"] <= 3 * parts
