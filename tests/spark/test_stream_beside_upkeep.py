"""Streams that are started before, during and after merges and clean-ups of what they read."""

from pathlib import Path

from audits import read_by_python
from logtool import MERGE_BYTES, TIMEOUT_S, LogTool
from pyspark.sql import SparkSession
from spark.collecting import Stream, wait_until

COMMITS = 40
EACH = 20


def test_streams_beside_merges_and_clean_ups(spark: SparkSession, tmp_path: Path, java_classpath: str) -> None:
    """All give the same rows, though the data files that the first ones began with are deleted while they read."""
    tool = LogTool(java_classpath, tmp_path / "root")
    arguments = {"topic": "events", "pace": 5, "merge": MERGE_BYTES, "file.delete.delay.ms": 0}
    tool.run("append", tag="A", commits=7, **arguments)
    files = set(tool.root.glob("_partlog/events/data/*/*"))
    streams = {name: Stream(spark, tool.root, tmp_path / name) for name in ("before", "during", "after")}
    slowly = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 5 * EACH}
    running = {"before": streams["before"].start(available_now=False, **slowly)}
    wait_until(lambda: bool(streams["before"].rows), running["before"])
    writer = tool.start("append", tag="B", commits=COMMITS, pause=50, **arguments)
    try:
        wait_until(lambda: not any(file.exists() for file in files), running["before"])
        running["during"] = streams["during"].start(available_now=False, **slowly)
        _, err = writer.communicate(timeout=TIMEOUT_S)
    finally:
        writer.kill()
        writer.communicate()
    assert writer.returncode == 0, err
    rows = (7 + COMMITS) * EACH
    for name, query in running.items():
        wait_until(lambda stream=streams[name]: len(stream.rows) >= rows, query)
        query.stop()
    streams["after"].run(startingOffsets="earliest")
    partitions = read_by_python(tool.root, "events")
    expected = [(partition, offset, value) for partition, values in partitions.items() for offset, value in enumerate(values)]
    assert len(expected) == rows
    for name, stream in streams.items():
        assert sorted(stream.rows) == expected, name
