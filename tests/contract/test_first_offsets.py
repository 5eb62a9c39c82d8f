"""Topics whose partitions do not begin at offset 0, like a log adopted after retention, deletion or compaction. FORMAT.md section 5."""

from pathlib import Path

import pytest
from handmade import Topic, batches, records
from logtool import LogTool

from sparklog import Log, SparklogError

STARTS = [2930, 0, 7_000_000_000, 41]


def adopted(root: Path) -> Topic:
    """Partitions 0 to 2 hold 7 records each; partition 3 is empty."""
    topic = Topic(root, partitions=4, starts=STARTS)
    contents = [records(4, f"p{partition}a") + records(3, f"p{partition}b") for partition in range(3)]
    topic.commit(*(topic.data(batches(content[:4], content[4:]), partition) for partition, content in enumerate(contents)))
    return topic


def expected(more: int = 0) -> dict[int, list[int]]:
    counts = [7 + more, 7 + more, 7 + more, more]
    return {
        partition: list(range(start, start + count)) for partition, (start, count) in enumerate(zip(STARTS, counts, strict=True)) if count
    }


def read_by_java(tool: LogTool) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for line in tool.run("read")[:-1]:
        partition, offset, _ = line.split(" ")
        found.setdefault(int(partition), []).append(int(offset))
    return found


def read_by_python(root: Path) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    table = Log(root).topic("t").read()
    for partition, offset in zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True):
        found.setdefault(partition, []).append(offset)
    return found


def test_both_readers_take_them(tool: LogTool) -> None:
    """I4: also where partitions start and end."""
    adopted(tool.root)
    assert read_by_java(tool) == read_by_python(tool.root) == expected()
    topic = Log(tool.root).topic("t")
    assert topic.start_offsets() == dict(enumerate(STARTS))
    assert topic.end_offsets() == {0: 2937, 1: 7, 2: 7_000_000_007, 3: 41}


def test_a_write_continues_there_and_a_checkpoint_keeps_it(tool: LogTool) -> None:
    """I4: Java's records follow; the view has the names that a broker would use; no reader needs the version that began the topic."""
    adopted(tool.root)
    # 28 keys per task, so that every partition gets some. 100 versions make a checkpoint.
    tool.run("append", tag="A", records=28, commits=100)
    tool.run("publish")
    java = read_by_java(tool)
    assert read_by_python(tool.root) == java
    assert {partition: offsets[0] for partition, offsets in java.items()} == {p: STARTS[p] for p in java}
    assert sum(map(len, java.values())) == 21 + 100 * 56
    for partition in java:
        assert min(file.name for file in (tool.root / f"t-{partition}").glob("*.log")) == f"{STARTS[partition]:020d}.log"
    assert list(tool.root.glob("_partlog/t/*.checkpoint-*"))
    for version in range(int(next(tool.root.glob("_partlog/t/*.checkpoint-*")).name[:20])):
        (tool.root / f"_partlog/t/{version:020d}.json").unlink()
    assert read_by_python(tool.root) == read_by_java(tool) == java


@pytest.mark.parametrize(
    "starts",
    [[0, 0, 7_000_000_000, 41], [2929, 0, 7_000_000_000, 41], [2931, 0, 7_000_000_000, 41], [2930, 0, 7_000_000_000, 40]],
    ids=["at 0", "one before", "one after", "no records"],
)
def test_segments_begin_where_the_topic_does(tool: LogTool, starts: list[int]) -> None:
    """I7: the first segment must not begin elsewhere, and without a segment no offsets may be missing."""
    topic = adopted(tool.root)
    topic.put({**topic.versions[0], "starts": starts})
    with pytest.raises(SparklogError, match="PARTLOG_VERSION_CORRUPT"):
        Log(tool.root).topic("t").read()
    assert tool.run("states") == ["t VERSION_CORRUPT"]
