"""`retention.ms` through Spark: what a slow topic keeps, and what a call deletes of one without writers."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sparklog import Log

HOUR_MS = 3_600_000
RETENTION_MS = 24 * HOUR_MS
SPAN_MS = RETENTION_MS // 8
WAIT_MS = SPAN_MS // 8


@pytest.mark.slow
def test_a_slow_topic_keeps_no_record_for_long(spark: SparkSession, tmp_path: Path, call: Callable[..., list[dict[str, Any]]]) -> None:
    root = tmp_path / "root"
    began_ms = time.time_ns() // 1_000_000
    hours = range(-35, 0)
    for hour in hours:
        row = spark.range(1).selectExpr("'v' AS value", f"timestamp_millis({began_ms + hour * HOUR_MS}) AS timestamp")
        options = {"topic": "t", "partitions": 1, "retention.ms": RETENTION_MS}
        row.coalesce(1).write.format("partlog").options(**options).mode("append").save(str(root))
    read = spark.read.format("partlog").option("subscribe", "t")

    def ages_ms() -> list[int]:
        now_ms = time.time_ns() // 1_000_000
        return [now_ms - row[0] for row in read.load(str(root)).selectExpr("unix_millis(timestamp)").collect()]

    def taken_ms() -> int:
        """How long this test has taken: the records have become older by that."""
        return time.time_ns() // 1_000_000 - began_ms

    ages = ages_ms()
    assert RETENTION_MS - HOUR_MS < max(ages) <= RETENTION_MS + SPAN_MS + WAIT_MS + taken_ms()
    assert len(ages) <= 28
    [row] = call("merge", topic="'t'")
    segments = call("segments", topic="'t'")
    # Four times an hour apart fit into the span of three hours, and 24 or a few more hours are left.
    assert 6 <= len(segments) == row["segments_after"] <= 8
    for segment in segments:
        assert (segment["max_timestamp"] - segment["min_timestamp"]).total_seconds() * 1000 <= SPAN_MS
    assert ages_ms()[0] >= ages[0] and len(ages_ms()) == len(ages), "a merge changes no record"

    call("expire", topic="'t'", retention_ms=6 * HOUR_MS)
    assert 5 * HOUR_MS < max(ages_ms()) <= 6 * HOUR_MS + SPAN_MS + taken_ms()
    [gone] = call("expire", topic="'t'", retention_ms=HOUR_MS // 2)
    assert gone["start_after"] == gone["end_offset"] == len(hours)
    assert ages_ms() == [] and call("segments", topic="'t'") == [] and list(root.glob("t-0/*.log")) == []
    topic = Log(root)["t"]
    assert (topic.start_offsets(), topic.end_offsets()) == ({0: len(hours)}, {0: len(hours)})
    assert Log(root).verify().ok

    spark.range(1).selectExpr("'w' AS value").write.format("partlog").option("topic", "t").mode("append").save(str(root))
    assert [tuple(row) for row in read.load(str(root)).select("offset", "value").collect()] == [(len(hours), bytearray(b"w"))]
