"""The readers in Java and in Python share no code. Both read roots that Java wrote: whole, unfinished and damaged ones."""

import json
import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from handmade import TIME, Topic, batch, either, flipped, records, seeded
from logtool import HALTED, LogTool

from sparklog import DataError, Log, SparklogError, partition_for
from sparklog.batches.header import CODECS
from sparklog.ondisk import segment as ondisk_segment
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog

Answer = dict[int, list[str]] | None
"""The values of each partition that is not empty; None means an error."""

LARGE = {"records": 300, "big": 10_000}
ROOTS: dict[str, dict[str, object]] = {
    "small": {},
    "one partition": {"partitions": 1, "commits": 3},
    "many partitions": {"partitions": 57, "records": 200, "tasks": 3},
    "murmur2": {"partitioner": "murmur2", "records": 100},
    "of LogAppendTime": {"message.timestamp.type": "LogAppendTime", "records": 100},
    "data files of tasks, and a pool": {**LARGE, "tasks": 3, "commits": 2},
    "many batches": {**LARGE, "batch": 200},
    "times that fall": {**LARGE, "batch": 2000, "segment.bytes": 20_000, "fall": 90},
    "many segments": {**LARGE, "segment.bytes": 20_000},
    "little memory": {**LARGE, "buffer": 100_000},
    **{codec: {**LARGE, "compression.type": codec, "records": 2000} for codec in ("gzip", "snappy", "lz4", "zstd")},
    "checkpoints": {"commits": 230, "records": 3},
}


def python(root: Path) -> Answer:
    try:
        table = Log(root).topic("t").read()
    except DataError:
        return None
    answer: dict[int, list[str]] = {}
    for partition, value in zip(table["partition"].to_pylist(), table["value"].to_pylist(), strict=True):
        answer.setdefault(partition, []).append(value.decode().rstrip("v"))
    for partition, values in answer.items():
        start = Log(root).topic("t").start_offsets()[partition]
        mine = table.filter(table["partition"].to_numpy() == partition)
        assert mine["offset"].to_pylist() == list(range(start, start + len(values)))
    return answer


def java(tool: LogTool) -> Answer:
    status, out, err = tool.ended("read", topic="t")
    if status:
        assert "Exception" in err, err
        return None
    answer: dict[int, list[str]] = {}
    for line in out.splitlines():
        word, *rest = line.split(" ")
        if word != "version":
            answer.setdefault(int(word), []).append(rest[1])
    return answer


def options(given: dict[str, object]) -> dict[str, object]:
    return {key.replace(".", "_"): value for key, value in given.items()}


def test_segments_with_further_fields(tool: LogTool) -> None:
    """FORMAT.md sections 5 and 6: the lines of a checkpoint and the segments of a version may have fields that no reader knows."""
    topic = Topic(tool.root, partitions=2)
    for number in range(4):
        topic.commit(topic.data(batch(records(3, f"v{number}")), number % 2, more={"file": "x", "position": 7}))
    lines = [json.loads(line.split(b"\t")[0]) for line in topic.checkpoint().read_bytes().splitlines()]
    topic.put_checkpoint(3, lines[:1] + [[*line, 0, {"file": "x"}, None, "more"] for line in lines[1:]])
    for version in range(3):
        topic.version_file(version).unlink()
    topic.commit(topic.data(batch(records(2, "after")), more=1))
    assert (
        java(tool)
        == python(tool.root)
        == {
            0: [f"v{number}-{each}" for number in (0, 2) for each in range(3)] + ["after-0", "after-1"],
            1: [f"v{number}-{each}" for number in (1, 3) for each in range(3)],
        }
    )


@pytest.fixture(params=ROOTS.values(), ids=ROOTS)
def written(request: pytest.FixtureRequest, tool: LogTool) -> dict[str, object]:
    tool.run("append", tag="A", seed=1, **options(request.param))
    return request.param


def test_whole_roots(tool: LogTool, written: dict[str, object]) -> None:
    """Everything that Log answers agrees with what Java reads and with what was written."""
    answer = java(tool)
    assert answer
    assert python(tool.root) == answer

    topic = Log(tool.root).topic("t")
    everything = topic.read()
    ends = topic.end_offsets()
    assert {partition: len(values) for partition, values in answer.items()} == {each: end for each, end in ends.items() if end}
    for key, value in written.items():
        if "." in key or key.startswith("partition"):
            assert topic.config[key] == str(value)
    routed = [partition_for(key, topic.partitions, topic.config["partitioner"]) for key in everything["key"].to_pylist()]
    assert routed == everything["partition"].to_pylist()
    late = topic.config["message.timestamp.type"] == "LogAppendTime"
    assert set(everything["timestampType"].to_pylist()) == {int(late)}

    about = topic.describe()
    commits = topic.commits()
    assert about["records"] == everything.num_rows
    assert [commit.version for commit in commits] == list(range(commits[0].version, about["version"] + 1))
    writes = [commit for commit in commits if commit.operation == "write"]
    if commits[0].version == 0:  # otherwise the first version files are cleaned up
        assert len(writes) == written.get("commits", 1)
        assert sum(commit.records for commit in writes) == everything.num_rows
    times = everything["timestamp"].cast("int64").to_numpy() // 1000
    log = TopicLog(Root.at(str(tool.root)), "t")
    for partition in range(topic.partitions):
        batches = list(topic.batches(partition))
        assert {batch.codec for batch in batches} <= {topic.config["compression.type"]}
        assert sum(batch.records for batch in batches) == ends[partition]
        assert sum(batch.bytes for batch in batches) == about["partitions"][partition]["bytes"]
        mine = times[everything["partition"].to_numpy() == partition]
        for segment in log.segments(log.newest(), partition):
            rising = bool(np.all(np.diff(mine[segment.base : segment.end]) >= 0))
            # With LogAppendTime, writers compare the records' own times, which may fall even if those of their batches rise.
            assert segment.ordered == rising or (late and rising)
        for time in (0, *np.unique(mine)[:: max(1, len(mine) // 5)].tolist(), 2**60):
            later = np.flatnonzero(mine >= time)
            assert topic.offsets_for_time(time)[partition] == (later[0] if later.size else ends[partition])


def test_parts_of_a_root(tool: LogTool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every range of offsets gives that part of the whole, with the indexes that Java wrote and without them."""
    tool.run("append", tag="A", records=2000, big=300, batch=2000, commits=2)
    topic = Log(tool.root).topic("t")
    whole = {partition: topic.read(partition) for partition in range(topic.partitions)}
    numbers = seeded()
    for worthwhile in (0, 1 << 40):
        monkeypatch.setattr(ondisk_segment, "_INDEX_WORTHWHILE_BYTES", worthwhile)
        for _ in range(150):
            partition = numbers.choice([each for each, table in whole.items() if table.num_rows])
            start = numbers.randint(0, whole[partition].num_rows)
            end = numbers.randint(start, whole[partition].num_rows)
            limit = numbers.choice([None, 0, 1, 10, 1000])
            found = topic.read(partition, start, end, limit)
            assert found == whole[partition].slice(start, end - start if limit is None else min(limit, end - start))


@pytest.mark.parametrize(
    "stop", ["task.write", "commit.link", "commit.linked", "publish.stamp:halt:1", "publish.stamp:halt:7", "publish.log", "publish.done"]
)
def test_unfinished_roots(tool: LogTool, stop: str) -> None:
    """A writer was halted at a step: the batches are stamped in part, or the Kafka view is missing."""
    tool.run("append", tag="A", **LARGE)
    tool.run("append", tag="B", stop=stop if ":" in stop else f"{stop}:halt", status=HALTED, **LARGE)
    answer = java(tool)
    assert answer and python(tool.root) == answer
    for folder in tool.root.glob("t-*"):
        shutil.rmtree(folder)
    assert python(tool.root) == answer


def damaged(files: list[Path], numbers: random.Random) -> str:
    """Damages one of the files, and returns how."""
    file = numbers.choice(files)
    whole = file.read_bytes()
    kind = numbers.choice(["flip", "flip", "flip", "cut", "zero", "gone"])
    # Without its file, no reader can know that the newest version ever existed.
    if kind == "flip" or (kind == "gone" and file.suffix == ".json" and file == files[-1]):
        bit = numbers.randrange(len(whole) * 8)
        file.write_bytes(flipped(whole, bit))
        return f"{file.name}: bit {bit} flipped"
    if kind == "cut":
        size = numbers.randrange(len(whole))
        file.write_bytes(whole[:size])
        return f"{file.name}: cut to {size} bytes"
    if kind == "zero":
        at = numbers.randrange(len(whole))
        file.write_bytes(whole[:at] + bytes(len(whole[at : at + 64])) + whole[at + 64 :])
        return f"{file.name}: zeros at {at}"
    file.unlink()
    return f"{file.name}: gone"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "commits", "damages"),
    [
        ("data/*/*.log", 5, either(8, 32)),
        ("*.json", 5, either(8, 32)),
        ("*.checkpoint-*.jsonl", 104, either(3, 12)),
        ("*-*/*", 5, either(3, 12)),
    ],
    ids=["data files", "version files", "checkpoint", "Kafka view"],
)
def test_damaged_roots(tool: LogTool, tmp_path: Path, what: str, commits: int, damages: int) -> None:
    """Both readers return everything that was committed, or both report the damage. Damage to files that only save time changes nothing."""
    numbers = seeded()
    tool.run("append", tag="A", commits=commits, records=5)
    tool.run("append", tag="B", **LARGE)
    right = java(tool)
    assert right and python(tool.root) == right
    copy = LogTool(tool.classpath, tmp_path / "copy")
    found = 0
    for _ in range(damages):
        shutil.rmtree(copy.root, ignore_errors=True)
        shutil.copytree(tool.root, copy.root)
        folder = copy.root if what.startswith("*-") else copy.root / "_partlog" / "t"
        how = damaged(sorted(file for file in folder.glob(what) if file.is_file() and file.stat().st_size), numbers)
        print(how)
        answer = python(copy.root)
        assert answer in (right, None), how
        assert java(copy) == answer, how
        found += answer is None
    if "checkpoint" in what or what.startswith("*-"):
        assert not found
    elif what.startswith("data"):
        assert found


def test_a_snappy_block_that_claims_two_gigabytes(tool: LogTool) -> None:
    """The block is long enough for the size that it claims. A decoder that believes it writes outside its memory and kills the JVM."""
    size = 2**31 * 3 // 64 + 64
    # The length in 7 bits at a time; one literal, with its length in four bytes.
    payload = b"\x80\x80\x80\x80\x08" + b"\xfc" + (size - 1).to_bytes(4, "little") + bytes(size)
    topic = Topic(tool.root)
    topic.commit(
        topic.data(batch([], payload=payload, attributes=CODECS.index("snappy"), records=1, base_timestamp=TIME, max_timestamp=TIME))
    )
    assert python(tool.root) is None
    assert java(replace(tool, java=("-Xms64m",))) is None  # in a JVM of its own, which may be killed


def test_a_version_file_is_of_its_topic(tool: LogTool) -> None:
    """Neither reader takes a topic that was renamed in the file system."""
    tool.run("append", tag="A")
    (tool.root / "_partlog" / "t").rename(tool.root / "_partlog" / "u")
    with pytest.raises(SparklogError, match="VERSION_CORRUPT"):
        Log(tool.root).topic("u")
    assert "PARTLOG_VERSION_CORRUPT" in tool.failure("read", topic="u")


def test_json_of_java_is_told_from_its_bytes(tool: LogTool) -> None:
    """The format defines the bytes of a version file, not only the JSON that a parser finds in them."""
    tool.run("append", tag="A", query="Zürich", epoch=0)
    line, trailer = (tool.root / "_partlog" / "t" / f"{0:020d}.json").read_bytes().splitlines()
    assert trailer.startswith(b"crc32c:")
    assert json.loads(line)["query"]["id"] == "Zürich"
    assert Log(tool.root).topic("t").commits()[0].query == "Zürich"
