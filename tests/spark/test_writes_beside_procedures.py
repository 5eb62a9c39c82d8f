"""Batch writes that sleep while an operator cleans up, or puts another topic in the place of theirs."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr, udf
from spark.collecting import Stream, wait_until
from spark.epochs import Sink

Call = Callable[..., list[dict[str, Any]]]
Fails = Callable[[str, Callable[[], object]], str]


def asleep(spark: SparkSession, until: Path) -> DataFrame:
    """The numbers 20 to 29 in two tasks, the second of which waits for a file. Each has too much for its report alone."""

    @udf(returnType="string", useArrow=False)
    def woken(number: int) -> str:
        while number >= 25 and not until.exists():
            time.sleep(0.02)
        return str(number)

    return spark.range(20, 30, 1, 2).select(woken(col("id")).alias("value"), expr("repeat('k', 100000) AS key"))


def data_files(root: Path) -> set[Path]:
    return set(root.glob("_partlog/*/data/*/*.log"))


def begun(root: Path, before: set[Path]) -> set[Path]:
    """The files of the task that does not wait."""
    deadline = time.monotonic() + 120
    while not data_files(root) - before:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return data_files(root) - before


def test_a_vacuum_beside_a_write_that_sleeps(spark: SparkSession, sink: Sink, call: Call, fails: Fails, tmp_path: Path) -> None:
    sink.save(spark.range(20).selectExpr("CAST(id AS STRING) AS value"), partitions=2)
    before = data_files(sink.root)
    rows = asleep(spark, tmp_path / "wake")
    with ThreadPoolExecutor(1) as pool:
        try:
            refused = pool.submit(fails, "WRITE_EXPIRED", lambda: sink.save(rows))
            deadline = time.monotonic() + 120
            deleted = 0
            while not deleted:
                assert time.monotonic() < deadline
                for file in begun(sink.root, before):
                    for each in (file, file.parent):
                        os.utime(each, (time.time() - 7_200,) * 2)
                deleted = call("vacuum", topic="'t'", older_than="INTERVAL '1' HOUR")[0]["files"]
        finally:
            (tmp_path / "wake").touch()
        said = refused.result()
    print(said)
    assert "Nothing was committed" in said and "Run the write again." in said
    assert data_files(sink.root) == before
    assert sink.values() == list(range(20))
    sink.save(rows)
    assert sink.values() == list(range(30))


def test_another_topic_in_the_place_of_one_that_is_read_and_written(
    spark: SparkSession, stream: Stream, call: Call, fails: Fails, tmp_path: Path
) -> None:
    stream.write(range(20), partitions=2)
    query = stream.start(available_now=False, startingOffsets="earliest")
    wait_until(lambda: len(stream.rows) == 20, query)
    writer = asleep(spark, tmp_path / "wake").write.format("partlog").option("topic", "events").mode("append")
    before = data_files(stream.root)
    with ThreadPoolExecutor(1) as pool:
        try:
            refused = pool.submit(fails, "TOPIC_RECREATED", lambda: writer.save(str(stream.root)))
            begun(stream.root, before)
            call("delete_topic", topic="'events'")
            stream.write(range(100, 103), partition=0, partitions=1)
        finally:
            (tmp_path / "wake").touch()
        print(refused.result())
    with pytest.raises(StreamingQueryException, match=r"PARTLOG_STREAM_TOPIC_(GONE|REPLACED)"):
        query.awaitTermination(120)
    assert sorted(int(value) for _, _, value in stream.rows) == list(range(20))
    stream.checkpoint = stream.checkpoint.with_name("another")
    assert stream.run(startingOffsets="earliest") == ["100", "101", "102"]
    writer.save(str(stream.root))
    assert sorted(int(value) for value in stream.run()) == list(range(20, 30))
