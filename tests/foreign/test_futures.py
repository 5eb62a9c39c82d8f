"""The answers of each class of programs to additions of a later release: of the foreign ones, and of both languages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foreign import futures
from foreign.futures import (
    CASES,
    CORRUPT,
    KEY,
    NEW,
    OF_ALL,
    OF_KEY_READERS,
    OF_WRITERS,
    OK,
    Future,
    in_a_checkpoint,
    more,
    rows,
    topic_with,
)
from foreign.key_reader import KeyReader
from foreign.record_reader import RecordReader
from foreign.three import answer, as_java, java, python
from foreign.writer import Record, Writer
from handmade import SEGMENT_FIELDS, Topic, batch, records
from logtool import LogTool

from sparklog import Consumer, Log, SparklogError

TODAY = Future(more())
WRITES: list[tuple[str, dict[str, object]]] = [
    ("append", {"tag": "A", "partitions": 2}),
    ("change", {"what": "config", "retention.ms": 10**12}),
    ("change", {"what": "records", "offsets": "0:1"}),
    ("change", {"what": "partitions", "to": 3}),
    ("append", {"tag": "B", "partitions": 3, "pace": 1}),
    ("publish", {}),
    ("merge", {}),
    ("vacuum", {"hours": 24}),
]
"""The second append puts a checkpoint."""


def answers(tool: LogTool, topic: str) -> tuple[set[str], set[str]]:
    """The answers of record readers, and of key readers: OK if all return the same records."""
    root = tool.root
    right = answer(lambda: RecordReader(root).read(topic))
    of_key = right if isinstance(right, str) else [row for row in right if row.key == KEY]

    def ended(found: Any, expected: Any) -> str:
        return found if isinstance(found, str) else OK if found == expected else f"not {expected}, but {found}"

    reads = {ended(right, right), ended(python(root, topic), right), ended(java(tool, topic), as_java(right))}
    keys = {ended(answer(lambda: sorted(KeyReader(root).by_key(topic, KEY))), of_key), ended(python(root, topic, key=KEY), of_key)}
    place = answer(lambda: Log(root)[topic].partition_for(KEY))
    return reads, keys | {ended(place, place)}


@pytest.mark.parametrize("where", ["in a version", "in a checkpoint"])
def test_readers(tool: LogTool, where: str) -> None:
    found, expected = {}, {}
    for number, (what, future) in enumerate(CASES.items()):
        topic = topic_with(Path(tool.root), f"f{number}", future)
        if where == "in a checkpoint" and not in_a_checkpoint(topic, what):
            continue
        expected[what] = ({future.record}, {future.key})
        if where == "in a checkpoint" and future.record == CORRUPT and "features" in topic.versions[2]:
            # The checkpoint is damaged, and the versions before it are gone.
            expected[what] = ({"VERSION_MISSING"}, {"VERSION_MISSING"})
        found[what] = answers(tool, topic.name)
        if future.record == OK:
            here = [(row.partition, row.offset, row.key, row.value) for row in RecordReader(tool.root).read(topic.name)]
            assert here == rows(topic, future), what
    assert {what: each for what, each in found.items() if each != expected[what]} == {}


@pytest.mark.parametrize("where", ["in a version", "in a checkpoint"])
def test_consumers(tmp_path: Path, where: str) -> None:
    """A consumer keeps the order of the records of a key over re-routes, so it is a key reader."""
    wrong = {}
    for number, (what, future) in enumerate(CASES.items()):
        topic = topic_with(tmp_path, f"f{number}", future)
        if where == "in a checkpoint" and not in_a_checkpoint(topic, what):
            continue
        found = answer(lambda: _consumed(tmp_path, topic.name))  # noqa: B023
        if where == "in a checkpoint" and future.key == CORRUPT and found == "VERSION_MISSING":
            found = CORRUPT
        if found != (rows(topic, future) if future.key == OK else future.key):
            wrong[what] = found
    assert wrong == {}


def _consumed(root: Path, topic: str) -> list[tuple[int, int, bytes | None, bytes | None]]:
    with Consumer(root, topic, auto_offset_reset="earliest", consumer_timeout_ms=20) as consumer:
        return sorted((record.partition, record.offset, record.key, record.value) for record in consumer)


def test_a_refusal_says_what_is_unknown(tool: LogTool) -> None:
    silent = {}
    for number, (what, future) in enumerate(CASES.items()):
        topic = topic_with(Path(tool.root), f"f{number}", future).name
        texts = [tool.failure("append", topic=topic, tag="A", partitions=2)] if future.write == NEW else []
        texts += [_text(lambda: Log(tool.root)[topic].read(key=KEY))] if future.key == NEW else []  # noqa: B023
        if future.record == NEW:
            texts += [_text(lambda: Log(tool.root)[topic].read()), tool.failure("read", topic=topic)]  # noqa: B023
        if not all(future.says in text and "Upgrade sparklog" in text for text in texts) or bool(texts) != bool(future.says):
            silent[what] = texts
    assert silent == {}


def _text(call: Callable[[], object]) -> str:
    with pytest.raises(SparklogError) as refused:
        call()
    return str(refused.value)


def test_the_futures_are_those_of_the_page() -> None:
    """A value of tomorrow for each key of the configuration, by the programs that it binds; and the count of the futures."""
    page = (Path(__file__).parents[2] / "docs/FORMAT.md").read_text(encoding="utf-8")
    bind_all = re.search("has the keys (`.*?`), which bind all programs", page)
    found = {"all programs": set(re.findall("`(.*?)`", bind_all[1] if bind_all else ""))}
    for keys, binds in re.findall(r"(?m)^\| (`[a-z.`, ]+`) \| [^|]+ \| (key readers, writers|writers) \|", page):
        found.setdefault(binds, set()).update(re.findall("`(.*?)`", keys))
    assert found == {"all programs": {*OF_ALL}, "key readers, writers": {*OF_KEY_READERS}, "writers": {*OF_WRITERS}}
    assert f": {len(CASES)} futures," in str(futures.__doc__)


def test_writers(tool: LogTool) -> None:
    """A writer refuses what it does not know, and changes nothing. Otherwise all of them go on."""
    wrong = {}
    for number, (what, future) in enumerate(CASES.items()):
        topic = topic_with(Path(tool.root), f"f{number}", future)
        calls = {f"{word} {given}": tool.ended(word, topic=topic.name, **given) for word, given in WRITES}
        outcomes = {call: OK if not status else err.partition("PARTLOG_")[2].partition("]")[0] for call, (status, _, err) in calls.items()}
        outcomes["foreign"] = answer(lambda: str(Writer(tool.root).append(topic.name, [Record(b"1", b"k")])))  # noqa: B023
        outcomes["foreign"] = OK if outcomes["foreign"].isdigit() else outcomes["foreign"]
        if future.write != OK and len(list(topic.folder.glob("*.json"))) != 3:
            outcomes["files"] = "more"
        if set(outcomes.values()) != {future.write}:
            wrong[what] = {call: each for call, each in outcomes.items() if each != future.write}
        elif future.write == OK and answers(tool, topic.name) != ({OK}, {OK}):
            wrong[what] = {"then": str(answers(tool, topic.name))}
    assert wrong == {}


def test_verify(tool: LogTool) -> None:
    """Neither a field nor a file of tomorrow is a fault. A release that is newer is said to be."""
    expected = {}
    for number, (what, future) in enumerate(CASES.items()):
        topic_with(Path(tool.root), f"f{number}", future)
        expected[f"f{number}"] = (what, {future.write} - {OK})
    found: dict[str, set[str]] = {}
    for each in Log(tool.root).verify().findings:
        found.setdefault(each.topic or "", set()).add(each.condition)
    assert {name: (what, found.get(name, set())) for name, (what, right) in expected.items() if found.get(name, set()) != right} == {}


@pytest.mark.parametrize("bit", range(4, 16))
def test_bits_of_attributes(tool: LogTool, bit: int) -> None:
    topic = Topic(Path(tool.root), partitions=2)
    topic.commit(topic.data(batch(records(3), attributes=(1 << bit) - (1 << 16 if bit == 15 else 0)), routed=False))
    assert answers(tool, "t")[0] == {"BATCH_CORRUPT"}
    assert answer(lambda: Log(tool.root)["t"].read(key=b"k1")) == answer(lambda: KeyReader(tool.root).by_key("t", b"k1")) == "BATCH_CORRUPT"


def test_files_of_tomorrow(tool: LogTool) -> None:
    """No program reads, deletes or reports files whose names it does not know, and files of others."""
    topic = topic_with(Path(tool.root), "t", TODAY)
    root = topic.root
    files = [
        topic.folder / "ext" / "a" / f"{9:020d}.json",
        topic.folder / f"{3:020d}.ledger",
        topic.folder / f"{3:020d}.checkpoint2-00.jsonl",
    ]
    files += [root / "_shared" / "7" / "object", root / "_ledger" / "a.json", topic.folder / "data" / "later" / "a.parquet"]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"of tomorrow")
    assert answers(tool, "t") == ({OK}, {OK})
    for word, given in WRITES:
        tool.run(word, topic="t", **given)
    Writer(root).append("t", [Record(b"1", b"k")])
    assert answers(tool, "t") == ({OK}, {OK})
    assert [file for file in files if file.read_bytes() != b"of tomorrow"] == []
    tool.run("publish", topic="t")
    garbage = [each.file for each in Log(root).verify().findings if each.severity == "garbage"]
    assert len(garbage) == len(Log(root).verify().findings) == 3, "it tells of files that nobody reads, but not of ext/ and _shared/"
    assert not any("ext" in each or "_shared" in each for each in garbage)


def test_what_follows_in_a_checkpoint(tool: LogTool) -> None:
    """Lines and bytes behind the segments, and an object behind the fixed values of a line."""
    topic = topic_with(Path(tool.root), "t", TODAY)
    path = topic.checkpoint(later={"of": [1]})
    lines = [json.loads(line.split(b"\t")[0]) for line in path.read_bytes().splitlines()]
    path.unlink()
    for line in lines[1:]:
        line[len(SEGMENT_FIELDS) :] = [{"bloom": "00ff"}]
    path = topic.put_checkpoint(2, [*lines, ["a line of tomorrow"]])
    path.write_bytes(path.read_bytes() + b"and what is no line")
    for version in range(2):
        topic.version_file(version).unlink()
    assert answers(tool, "t") == ({OK}, {OK})
    assert Writer(topic.root).append("t", [Record(b"1", b"k")]) == 3
