"""`commit_async` and `metrics` of a consumer."""

from __future__ import annotations

import math
import threading
from typing import Any

import deltalake
import pytest
from handmade import records

import sparklog
from sparklog import TopicPartition
from sparklog.consumer.metrics import Samples
from sparklog.groups import OffsetTable

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(params=["exclusive", "sticky"], ids=["alone", "member"])
def consumer(request, topic, tmp_path):
    table = OffsetTable(topic.root, tmp_path / "offsets")
    given = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "partition_assignment_strategy": request.param}
    with sparklog.Consumer(topic.root, "t", group_id="g", table=table, **given) as made:
        yield made


def test_commits_are_made_in_their_order_and_told_of_later(consumer, monkeypatch):
    told = []
    may_write = threading.Event()
    written = deltalake.write_deltalake

    def slow(*given, **more):
        if threading.current_thread() is not threading.main_thread():
            assert may_write.wait(20)
        return written(*given, **more)

    for _ in range(2):
        consumer.poll(200)
    monkeypatch.setattr(deltalake, "write_deltalake", slow)
    asked = [consumer.commit_async({P0: offset}, lambda offsets, error: told.append((offsets[P0].offset, error))) for offset in (3, 5, 8)]
    consumer.poll(0)
    assert not any(each.done() for each in asked)
    assert told == []
    may_write.set()
    asked[-1].result(60)
    assert told == []  # callbacks run in calls of the consumer
    consumer.poll(0)
    assert told == [(3, None), (5, None), (8, None)]
    consumer.commit_async({P0: 9})
    consumer.commit({P0: 10})  # comes after it
    assert consumer.committed(P0) == 10


def test_a_commit_that_fails_says_so_and_the_consumer_goes_on(consumer, topic):
    told = []
    consumer.poll(200)
    consumer.commit_async({P0: 999}, lambda _, error: told.append(error))
    assert "OUT_OF_RANGE" in str(consumer.commit_async({P0: 999}).exception(60))
    consumer.poll(0)
    assert [error.id for error in told] == ["OFFSETS_OUT_OF_RANGE"]
    consumer.commit_async()
    consumer.close()
    table = OffsetTable(topic.root, topic.root.parent / "offsets")
    assert {each.partition: each.offset for each in table.positions("g")} == {0: 25, 1: 10}


def test_metrics_have_kafkas_names(consumer, topic):
    before = consumer.metrics()
    assert math.isnan(before["consumer-coordinator-metrics"]["commit-latency-max"])
    assert before["consumer-fetch-manager-metrics"]["records-consumed-total"] == 0
    while sum(consumer.position(each) for each in consumer.assignment()) < 35 or not consumer.assignment():
        consumer.poll(50, max_records=10)
    consumer.commit()
    topic.append(records(4), 1)
    consumer.end_offsets([P0, P1])
    fetched, group = consumer.metrics().values()
    assert fetched["records-consumed-total"] == 35
    assert fetched["records-consumed-rate"] > 0
    assert 0 < fetched["records-per-request-avg"] <= 10
    assert fetched["records-lag-max"] == 4
    assert group["commit-total"] >= 1
    assert 0 < group["commit-latency-avg"] <= group["commit-latency-max"]
    assert group["assigned-partitions"] == 2
    assert group["rebalance-total"] == len(OffsetTable(topic.root, topic.root.parent / "offsets").members("g"))


def test_samples_of_a_window():
    now = 1_000.0
    samples = Samples(lambda: now)
    assert (samples.total, samples.rate, samples.seconds_ago) == (0, 0, -1)
    for value in (2, 4):
        samples.add(value)
    now += 10
    samples.add(9)
    assert (samples.total, samples.count, samples.maximum, samples.average) == (15, 3, 9, 5)
    assert (samples.rate, samples.frequency) == (1.5, 0.3)
    now += 25
    assert (samples.total, samples.maximum, samples.average, samples.seconds_ago) == (15, 9, 9, 25)
    assert samples.rate == 0.3
    now += 60
    assert math.isnan(samples.average)
    assert math.isnan(samples.maximum)


@pytest.mark.parametrize("strategy", ["exclusive", "sticky"])
def test_a_second_table_gets_each_commit(topic, tmp_path, strategy, caplog):
    first, second = (OffsetTable(topic.root, tmp_path / name) for name in ("first", "second"))
    given = {"group_id": "g", "auto_offset_reset": "earliest", "partition_assignment_strategy": strategy}
    with sparklog.Consumer(topic.root, "t", table=first, dual_table=second, **given) as consumer:
        consumer.poll(200)
        consumer.commit({P0: 7})
        assert {each.partition: each.offset for each in second.positions("g")}[0] == 7
        consumer.seek(P0, 3)
        consumer.commit({P0: 3})  # back, too
        consumer.poll(200)
    assert second.export("g") == first.export("g") == OffsetTable(topic.root, tmp_path / "second").export("g")
    assert not second.summaries()[0].running
    with sparklog.Consumer(topic.root, "t", table=second, **given) as back:
        back.poll(200)
        assert back.position(P0) == 25
    assert caplog.text == ""


@pytest.mark.parametrize("strategy", ["exclusive", "sticky"])
def test_a_second_table_gets_only_positions_that_changed(topic, tmp_path, strategy):
    first, second = (OffsetTable(topic.root, tmp_path / name) for name in ("first", "second"))
    given = {"group_id": "g", "auto_offset_reset": "earliest", "partition_assignment_strategy": strategy, "enable_auto_commit": False}
    with sparklog.Consumer(topic.root, "t", table=first, dual_table=second, **given) as consumer:
        consumer.poll(200)
        for offset in (3, 5, 5, 8):
            consumer.commit({P0: offset, P1: 10})
        assert [(row["partition"], row["offset"]) for row in history(second)] == [(0, 3), (1, 10), (0, 5), (0, 8)]
        consumer.commit({P0: 4})  # back, in a generation that begins with all
        consumer.commit({P0: 6})
    assert [(row["partition"], row["offset"]) for row in history(second)][4:] == [(0, 4), (1, 10), (0, 6)]
    assert second.export("g") == first.export("g")


def history(table: OffsetTable) -> list[dict[str, Any]]:
    """The positions in a table in the order of their commits."""
    rows = deltalake.DeltaTable(table.path).to_pyarrow_table().to_pylist()
    return sorted((row for row in rows if row["partition"] >= 0), key=lambda row: (row["seq"], row["partition"]))


def test_a_second_table_that_cannot_be_written_stops_nothing(topic, tmp_path, caplog):
    first, second = (OffsetTable(topic.root, tmp_path / name) for name in ("first", "second"))
    (tmp_path / "second").write_text("")
    with sparklog.Consumer(topic.root, "t", group_id="g", table=first, dual_table=second, auto_offset_reset="earliest") as consumer:
        consumer.poll(200)
        consumer.commit()
    assert "are not in the second table" in caplog.text
    assert {each.partition: each.offset for each in first.positions("g")} == {0: 25, 1: 10}
