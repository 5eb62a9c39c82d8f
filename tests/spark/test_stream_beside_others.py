"""A stream from a topic that a writer appends to, to a topic that a reader reads in a loop."""

import json
import threading
import time
from collections import Counter
from itertools import accumulate
from operator import or_
from pathlib import Path

import pytest
from handmade import seeded
from logtool import LogTool
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from spark.collecting import stop

from sparklog import Log

SECONDS = 120


@pytest.mark.slow
def test_available_now_beside_a_writer_and_a_reader(spark: SparkSession, tmp_path: Path, java_classpath: str) -> None:
    """The query takes exactly what one version of the topic had, in epochs of which no reader sees a part; the next runs take the rest.

    They are stopped at any moment, also while they plan what to read. Stopping is not an error.
    """
    root = tmp_path / "root"
    tool = LogTool(java_classpath, root)
    # Without a checkpoint all version files stay, to be compared with.
    writes = {"topic": "live", "records": 50, "pace": 1_000_000}
    tool.run("append", tag="a", commits=30, **writes)
    live = Log(root)["live"]
    ended = threading.Event()
    seen: list[int] = []

    def copied(limit: int) -> DataStreamWriter:
        options = {"subscribe": "live", "startingOffsets": "earliest", "maxOffsetsPerTrigger": limit}
        rows = spark.readStream.format("partlog").options(**options).load(str(root))
        lines = rows.selectExpr("concat_ws(' ', partition, offset, value) AS value")
        given = {"topic": "copied", "partitions": 2, "path": root, "checkpointLocation": tmp_path / "checkpoint"}
        return lines.writeStream.format("partlog").options(**given)

    def found() -> "Counter[str]":
        return Counter(value.decode() for value in Log(root)["copied"].read(columns=["value"])["value"].to_pylist())

    def read_on() -> None:
        while not ended.is_set():
            if "copied" in Log(root):
                seen.append(Log(root)["copied"].read(columns=["value"]).num_rows)

    reader = threading.Thread(target=read_on)
    writing = tool.start("append", tag="b", commits=100_000, **writes)
    reader.start()
    try:
        while len(live.commits()) < 35:
            assert writing.poll() is None
        before = sum(live.end_offsets().values())
        query = copied(500).trigger(availableNow=True).start()
        assert query.awaitTermination(SECONDS)
    finally:
        ended.set()
        writing.kill()
        writing.communicate()
        reader.join()
    sizes = [batch.numInputRows for batch in query.recentProgress if batch.numInputRows]
    _, *versions = accumulate((each.end_offsets for each in live.commits()), or_, initial=dict.fromkeys(live.end_offsets(), 0))
    taken = {int(partition): end for partition, end in json.loads(query.lastProgress.sources[0].endOffset)["live"].items()}
    version = versions.index(taken)
    print(f"live: took {sum(sizes):,} records, version {version} of {len(versions)}, {len(seen)} looks at {len(sizes)} epochs")
    assert sizes[:-1] == [500] * (len(sizes) - 1) and len(sizes) > 2
    assert before <= sum(sizes) == sum(taken.values())
    assert version + 10 < len(versions), "the writer kept writing"
    assert len(set(seen)) > 2 and seen == sorted(seen) and set(seen) <= {*range(0, sum(sizes), 500), sum(sizes)}

    records = live.read(columns=["partition", "offset", "value"]).to_pylist()
    lines = {(row["partition"], row["offset"]): f"{row['partition']} {row['offset']} {row['value'].decode()}" for row in records}
    assert found() == Counter(line for (partition, offset), line in lines.items() if offset < taken[partition])

    chance = seeded()
    for _ in range(6):
        query = copied(100).start()
        time.sleep(chance.uniform(0.05, 0.8))
        stop(query)
    query = copied(100_000).trigger(availableNow=True).start()
    assert query.awaitTermination(SECONDS)
    assert found() == Counter(lines.values())
