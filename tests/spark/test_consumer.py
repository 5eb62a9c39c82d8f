"""A consumer without Spark tails a topic that a stream writes, and both are started again."""

import time
from collections import defaultdict
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sparklog import Consumer, Log

COUNT = 400
TIMEOUT_S = 120


def test_each_record_once_and_in_order_over_restarts_of_both(spark: SparkSession, tmp_path: Path) -> None:
    root, table = str(tmp_path / "root"), tmp_path / "offsets"

    def write(first: int, end: int) -> None:
        rows = spark.range(first, end).selectExpr("CAST(id % 10 AS STRING) AS key", "CAST(id AS STRING) AS value")
        rows.write.format("partlog").options(topic="input", partitions=2).mode("append").save(root)

    def start() -> StreamingQuery:
        rows = spark.readStream.format("partlog").options(subscribe="input", startingOffsets="earliest", maxOffsetsPerTrigger=40).load(root)
        stream = rows.select("key", "value").writeStream.format("partlog").options(topic="output", partitions=3)
        return stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start(root)

    def tail(until: int) -> None:
        """A consumer of the group, from its start to its end."""
        deadline = time.monotonic() + TIMEOUT_S
        with Consumer(root, "output", group_id="g", table=table, auto_offset_reset="earliest") as consumer:
            while sum(map(len, got.values())) < until:
                assert query.isActive and time.monotonic() < deadline
                for partition, records in consumer.poll(100, max_records=13).items():
                    deadline = time.monotonic() + TIMEOUT_S
                    assert [record.offset for record in records] == list(range(len(got[partition]), len(got[partition]) + len(records)))
                    got[partition] += [(record.key, record.value) for record in records]

    deadline = time.monotonic() + TIMEOUT_S
    got: dict[tuple[str, int], list[tuple[bytes, bytes]]] = defaultdict(list)
    write(0, COUNT // 2)
    query = start()
    while "output" not in Log(root):
        assert query.isActive and time.monotonic() < deadline
        time.sleep(0.05)
    tail(30)
    tail(COUNT // 4)
    query.stop()
    query = start()
    write(COUNT // 2, COUNT)
    tail(COUNT - 100)
    tail(COUNT)
    query.stop()
    log = Log(root)["output"]
    for partition in range(3):
        expected = log.read(partition, columns=["key", "value"]).to_pydict()
        assert got["output", partition] == list(zip(expected["key"], expected["value"], strict=True))
    assert sorted(int(value) for records in got.values() for _, value in records) == list(range(COUNT))
    # The stream writes the records of a key in order, and so they come.
    for records in got.values():
        by_key = defaultdict(list)
        for key, value in records:
            by_key[key].append(int(value))
        assert all(numbers == sorted(numbers) for numbers in by_key.values())
