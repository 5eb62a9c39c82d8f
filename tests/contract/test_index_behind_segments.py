"""The index behind a segment: both readers begin by it, and a wrong one costs time and nothing else. FORMAT.md sections 4 and K.2."""

import struct
from pathlib import Path

import pytest
from handmade import Topic, batch, records, seeded
from logtool import LogTool

from sparklog import Log
from sparklog.ondisk import segment as ondisk_segment
from sparklog.store.local import LocalFile

BATCHES, RECORDS, BEFORE = 200, 10, 7
INTERVAL = 1 << 16


def entries(octets: list[bytes]) -> list[tuple[int, int]]:
    found, position, last = [], 0, 0
    for number, one in enumerate(octets):
        if position - last > INTERVAL:
            found.append((RECORDS * number + RECORDS - 1, position))
            last = position
        position += len(one)
    return found


def packed(index: list[tuple[int, int]]) -> bytes:
    return b"".join(struct.pack(">ii", *entry) for entry in index)


def write(root: Path, absolute: bool, index: bytes | None, told: int | None = None) -> Topic:
    """A small commit, and then a segment of 2 MB with more records than are before it. So most of its fields could be of either kind."""
    topic = Topic(root)
    topic.append(records(BEFORE))
    base = BEFORE if absolute else 0
    large = [batch(_large(number), base + RECORDS * number) for number in range(BATCHES)]
    index = packed(entries(large)) if index is None else index
    segment = topic.data(b"".join(large), name="p0-t0-0-0.log", index=len(index) if told is None else told)
    with (topic.folder / segment["file"]).open("ab") as file:
        file.write(index)
    topic.commit(segment)
    return topic


def _large(number: int) -> list:
    return [one._replace(value=f"r-{number}-{at}".encode().ljust(1000, b"v")) for at, one in enumerate(records(RECORDS))]


WRONG = {
    "right": lambda right: packed(right),
    "absent": lambda right: b"",
    "cut": lambda right: packed(right)[:-3],
    "of zeros": lambda right: bytes(8 * len(right)),
    "a position off": lambda right: packed([(offset, position + 1) for offset, position in right]),
    "an offset off": lambda right: packed([(offset + 1, position) for offset, position in right]),
    "the base off": lambda right: packed([(offset + BEFORE, position) for offset, position in right]),
    "the base off, below": lambda right: packed([(max(0, offset - BEFORE), position) for offset, position in right]),
    "a batch off": lambda right: packed([(offset + RECORDS, position) for offset, position in right]),
    "of the last batch alone": lambda right: packed([(offset, right[-1][1]) for offset, _ in right]),
    "reversed": lambda right: packed(list(reversed(right))),
    "at random": lambda right: seeded().randbytes(8 * len(right)),
}


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_index_costs_time_and_nothing_else(tool: LogTool, absolute: bool, wrong: str) -> None:
    right = entries([batch(_large(number), RECORDS * number) for number in range(BATCHES)])
    index = WRONG[wrong](right)
    write(tool.root, absolute, index, told=8 * len(right))
    wanted = [f"r-{number}-{at}" for number in range(BATCHES) for at in range(RECORDS)]
    assert tool.read()[0][BEFORE:] == wanted
    topic = Log(tool.root).topic("t")
    random = seeded()
    for start in [random.randrange(BEFORE, BEFORE + len(wanted)) for _ in range(20)]:
        found = topic.read(0, start, min(start + 25, BEFORE + len(wanted)))["value"].to_pylist()
        assert [value.decode().rstrip("v") for value in found] == wanted[start - BEFORE :][:25]


@pytest.mark.parametrize("absolute", [False, True], ids=["relative", "absolute"])
def test_python_begins_by_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absolute: bool) -> None:
    topic = write(tmp_path, absolute, None)
    monkeypatch.setattr(ondisk_segment, "_INDEX_WORTHWHILE_BYTES", 0)
    spans: list[int] = []
    read = LocalFile.read
    monkeypatch.setattr(LocalFile, "read", lambda file, position, size: spans.append(size) or read(file, position, size))
    log = Log(tmp_path).topic("t")
    assert log.read(0, BEFORE + 1500, BEFORE + 1501)["value"][0].as_py().startswith(b"r-150-0")
    assert sum(spans) < topic.versions[1]["added"][0]["bytes"] / 4


@pytest.mark.parametrize("index", [-1, 262_145, True, "8", None, 8.5])
def test_an_index_of_a_length_that_no_segment_has(tool: LogTool, index: object) -> None:
    topic = Topic(tool.root)
    topic.commit(topic.data(batch(records(3)), index=index))
    assert tool.outcome("read", topic="t") == ["VERSION_CORRUPT"]
    with pytest.raises(Exception, match="VERSION_CORRUPT"):
        Log(tool.root).topic("t").read()


def test_a_checkpoint_has_the_index(tool: LogTool) -> None:
    topic = write(tool.root, False, None)
    told = topic.versions[1]["added"][0]["index"]
    topic.commit(boundary=1)
    topic.checkpoint()
    (line,) = [line for line in next(topic.folder.glob("*.checkpoint-*")).read_text().splitlines() if "p0-t0" in line]
    assert f',{{"index":{told}}}]\t' in line
    (tool.root / "_partlog" / "t" / f"{0:020d}.json").unlink()
    assert len(tool.read()[0]) == Log(tool.root).topic("t").read().num_rows == BEFORE + BATCHES * RECORDS
