"""The additions of a later release to a root, and the answer of each class of programs: of the foreign ones, and of both languages."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from foreign.key_reader import KeyReader
from foreign.record_reader import RecordReader
from foreign.three import answer
from foreign.writer import Record, Writer
from handmade import SEGMENT_FIELDS, Topic, batch, featured, records, summed
from logtool import LogTool

from sparklog import Log

Change = Callable[[dict[str, Any]], object]
NEW, CORRUPT, OK = "FORMAT_TOO_NEW", "VERSION_CORRUPT", "ok"
WRITES: list[tuple[str, dict[str, object]]] = [
    ("append", {"tag": "A", "partitions": 2}),
    ("change", {"what": "config", "retention.ms": 10**12}),
    ("change", {"what": "records", "offsets": "0:1"}),
    ("change", {"what": "partitions", "to": 3}),
    ("publish", {}),
    ("merge", {}),
    ("vacuum", {"hours": 24}),
]


class Future(NamedTuple):
    """A change of a version, and what a record reader, a key reader and a writer answer. A topic with a checkpoint has it there, too."""

    change: Change
    record: str = OK
    key: str = OK
    write: str = OK


def featuring(*entries: object) -> Change:
    return lambda content: content.update(features=list(entries))


def feature(binds: object, name: object = "later.one") -> Change:
    return featuring({"name": name, "binds": binds, "more": {"of": [1]}})


def more(**fields: Any) -> Change:
    return lambda content: content.update(fields)


def of_segment(**fields: Any) -> Change:
    return lambda content: content["added"][0].update(fields)


FEATURES = {
    "a feature of readers": Future(feature("readers"), NEW, NEW, NEW),
    "a feature of key readers": Future(feature("keyReaders"), OK, NEW, NEW),
    "a feature of writers": Future(feature("writers"), OK, OK, NEW),
    "a feature of a class of tomorrow": Future(feature("servers"), NEW, NEW, NEW),
    "a feature of no class": Future(feature(""), NEW, NEW, NEW),
    "a feature with the longest name": Future(feature("writers", "a" * 64), OK, OK, NEW),
    "features of two classes": Future(
        featuring(*({"name": each, "binds": each.lower()} for each in ("writers", "readers"))), NEW, NEW, NEW
    ),
    **{
        f"the reserved feature {name}": Future(feature("readers", name), NEW, NEW, NEW)
        for name in ("transactions", "compaction", "stored", "shared-objects")
    },
    "a known feature with a further field": Future(feature("writers", "producers")),
    "format 2": Future(more(format=2), NEW, NEW, NEW),
    "format 2, and all else different": Future(lambda content: [content.clear(), content.update(format=2, of=None)], NEW, NEW, NEW),
}
BROKEN = {
    **{f"a feature named {name!r}": feature("writers", name) for name in ("", "A", "a_b", "a" * 65, None, 1)},
    **{f"a feature that binds {binds!r}": feature(binds) for binds in (None, 1, ["writers"])},
    "a feature without `binds`": featuring({"name": "later"}),
    "a feature that is a text": featuring("later"),
    "a feature twice": featuring(*featured("producers"), *featured("producers")),
    "a known feature of another class": feature("readers", "producers"),
    "a feature without the one that it requires": featuring(*featured("routing.unbound")),
    "no features": lambda content: content.pop("features"),
    "format 0": more(format=0),
    "a kind of segments of tomorrow": of_segment(offsets="sparse"),
    "a stored segment without the feature": of_segment(offsets="stored"),
    **{
        f"the file {name}": of_segment(file=name)
        for name in ("_shared/a", "_shared/../a", "_shared/.a/b", "_shared/a/b/c", "../_shared/a/b", "ext/a", "data/a/pool.log")
    },
}
FIELDS = {
    "fields of a version": Future(more(ledger=[{}], transactions=None)),
    "fields of a segment": Future(of_segment(bloom={"of": [1]}, x=None)),
    "fields of a query": Future(more(query={"id": "q", "epoch": 1, "input": None, "more": 1})),
    "a routing without the feature": Future(more(routing={"of": "tomorrow"})),
    "producers without the feature": Future(more(producers={"of": "tomorrow"})),
    "a key of the configuration": Future(more(config={"later.key": "later value"}, operation="alter", added=[], ends=[8, 5])),
}


def word(key: str, value: str) -> Change:
    return lambda content: content.update(config={key: value}, operation="alter", added=[], ends=[8, 5])


OF_WRITERS = {
    "compression.type": "brotli",
    "message.timestamp.type": "EventTime",
    "segment.bytes": "10g",
    "index.interval.bytes": "-1",
    "segment.ms": "forever",
    "retention.ms": "1 day",
    "retention.bytes": "-2",
    "file.delete.delay.ms": "never",
    "kafka.view": "links",
    "placement.shares": "0:1:1:1",
    "routing.pending.weights": "soon",
    "key.type": "avro",
    "value.type": "json",
}
OF_KEY_READERS = {"partitioner": "xxh3", "placement": "by_range", "placement.slots": "7"}
OF_READERS = {"max.message.bytes": "2g"}
WORDS = {
    **{f"{key}={value}": Future(word(key, value), OK, OK, NEW) for key, value in OF_WRITERS.items()},
    **{f"{key}={value}": Future(word(key, value), OK, NEW, NEW) for key, value in OF_KEY_READERS.items()},
    **{f"{key}={value}": Future(word(key, value), CORRUPT, CORRUPT, CORRUPT) for key, value in OF_READERS.items()},
    "an operation of tomorrow": Future(more(operation="Ünion all")),
}
CASES = WORDS | FEATURES | FIELDS | {name: Future(change, CORRUPT, CORRUPT, CORRUPT) for name, change in BROKEN.items()}


def topic_with(root: Path, name: str, change: Change) -> Topic:
    """Three versions; the newest has the change."""
    topic = Topic(root, name, partitions=2)
    topic.commit(*(topic.data(batch(records(5)), partition, routed=False) for partition in (0, 1)))
    topic.commit(topic.data(batch(records(3)), routed=False))
    content = topic.next(topic.data(batch(records(2)), routed=False), config={})
    changed = copy.deepcopy(content)
    change(changed)
    different = "config" not in changed
    topic.put(content if different else changed)
    if different:
        topic.version_file(2).write_bytes(summed(json.dumps(changed).encode()))
    return topic


def answers(tool: LogTool, topic: str) -> tuple[set[str], set[str]]:
    """The answers of record readers, and of key readers."""
    root = tool.root

    def ended(call: Callable[[], object]) -> str:
        found = answer(call)
        return found if isinstance(found, str) else OK

    status = tool.ended("read", topic=topic)
    java = OK if not status[0] else tool.outcome("read", topic=topic)[0]
    reads = {ended(lambda: RecordReader(root).read(topic)), ended(lambda: Log(root)[topic].read()), java}
    keys = {ended(lambda: KeyReader(root).by_key(topic, b"k1")), ended(lambda: Log(root)[topic].read(key=b"k1"))}
    return reads, keys | {ended(lambda: Log(root)[topic].partition_for(b"k1"))}


@pytest.mark.parametrize("where", ["in a version", "in a checkpoint"])
def test_readers(tool: LogTool, where: str) -> None:
    found, expected = {}, {}
    for number, (what, future) in enumerate(CASES.items()):
        topic = topic_with(Path(tool.root), f"f{number}", future.change)
        wrong = future.record == CORRUPT
        if where == "in a checkpoint":
            content = topic.versions[-1]
            if what == "format 2, and all else different" or (wrong and content.get("features") == []):
                continue
            if content.get("config"):
                topic.config |= content["config"]
            fields = {name: value for name, value in content.items() if name in ("format", "features", "ledger", "routing")}
            queries = [["q", 1, None, content["time"]]] if content["query"] else []
            topic.checkpoint(**fields, queries=queries)
            for version in range(2):
                topic.version_file(version).unlink()
        expected[what] = ({future.record}, {future.key})
        if wrong and where == "in a checkpoint" and "features" in content:
            # The checkpoint is damaged, and the versions before it are gone.
            expected[what] = ({"VERSION_MISSING"}, {"VERSION_MISSING"})
        found[what] = answers(tool, topic.name)
    assert {what: each for what, each in found.items() if each != expected[what]} == {}


def test_writers(tool: LogTool) -> None:
    """A writer refuses what it does not know, and changes nothing. Otherwise all of them go on."""
    wrong = {}
    for number, (what, future) in enumerate(CASES.items()):
        topic = topic_with(Path(tool.root), f"f{number}", future.change)
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
        topic_with(Path(tool.root), f"f{number}", future.change)
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
    topic = topic_with(Path(tool.root), "t", id)
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
    topic = topic_with(Path(tool.root), "t", id)
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
