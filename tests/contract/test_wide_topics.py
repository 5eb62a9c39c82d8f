"""A topic of very many partitions: a version has the partitions that change, so a small commit is small."""

from pathlib import Path

from handmade import Topic, batch, records
from logtool import LogTool

from sparklog import Log

PARTITIONS = 10_000
FIRST = 1_234_567


def test_a_commit_of_one_record_in_ten_thousand_partitions(tool: LogTool) -> None:
    topic = Topic(Path(tool.root), partitions=PARTITIONS, starts=[FIRST] * PARTITIONS)
    topic.commit(topic.data(batch(records(1)), 7, routed=False))
    topic.checkpoint()
    tool.run("append", tag="A", tasks=1, records=1, keys=1, partitions=PARTITIONS, commits=100, pace=1000)
    sizes = [topic.version_file(version).stat().st_size for version in range(1, 101)]
    assert max(sizes) < 2_000, "bytes of a version of one record"
    # No reader reads a file twice, nor version 0, nor a data file: it begins at the checkpoint of that version.
    read = sum(file.stat().st_size for file in topic.folder.iterdir() if file.is_file() and file != topic.version_file(0))
    assert read < 1_000_000
    ends = Log(tool.root)["t"].end_offsets()
    assert len(ends) == PARTITIONS and sum(ends.values()) == PARTITIONS * FIRST + 101
    assert tool.run("states") == ["t ok"]
    assert Log(tool.root).verify().ok
