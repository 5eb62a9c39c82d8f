"""The readers in Java and in Python on topics whose features they do not know.

A topic of a later version is one of today whose features and settings have names that no program knows yet.
"""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import broken_bindings
import broken_reroutes
import pytest
from contract.verdicts import verdict
from handmade import Topic, batch, featured, records
from logtool import LogTool

from sparklog import Log, SparklogError
from sparklog.ondisk.features import Binds, Feature
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog

JAVA = "jvm-shim/src/main/java/io/sparklog"

WRITES: list[tuple[Any, ...]] = [
    ("append", ("tag", "A"), ("partitions", 2)),
    ("change", ("what", "config"), ("retention_ms", 1000)),
    ("change", ("what", "records"), ("offsets", "0:1")),
    ("change", ("what", "delete")),
    ("publish",),
    ("vacuum", ("hours", 24)),
    ("merge",),
]


def waiting(topic: Topic) -> None:
    """A topic with slots and a re-route that waits for the next write."""
    routed = broken_reroutes.grown(topic)
    topic.commit(features=routed.features, operation="alter", config={"routing.pending.weights": f"{routed.epoch}:1,0,1"})
    assert TopicLog(Root.at(str(topic.root)), topic.name).newest().pending_weights == [1, 0, 1]


MADE: dict[str, Callable[[Topic], object]] = {
    "slots": broken_reroutes.grown,
    "slots that are bound later": broken_bindings.rerouted,
    "a re-route that waits": waiting,
}


def renamed(made: Callable[[Topic], object], today: Path, to: Path, checkpoint: bool = False) -> Topic:
    """The topic that `made` makes, with the same records, as a version of sparklog writes it that knows other features."""
    live = Topic(today, partitions=2)
    made(live)
    shutil.copytree(today, to, dirs_exist_ok=True)
    topic = Topic(to, partitions=2)
    for file in sorted(live.folder.glob("*.json")):
        content = json.loads(file.read_bytes().splitlines()[0])
        config = content["config"] | ({"partitioner": "murmur3"} if "partitioner" in content["config"] else {})
        routing = {"routing": {"of": "tomorrow"}} if "routing" in content else {}
        features = [each | {"name": f"{each['name']}-of-tomorrow", "level": 2} for each in content["features"]]
        topic.put({**content, "previous": topic.hash, "features": features, "config": config, **routing})
    topic.live = live.live
    if checkpoint:
        config = TopicLog(Root.at(str(to)), topic.name).newest().config
        topic.checkpoint(features=features, routing={"of": "tomorrow"}, config=dict(config))
        for version in range(len(topic.versions) - 1):
            topic.version_file(version).unlink()
    return topic


def values(root: Path) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for row in Log(root)["t"].read().to_pylist():
        found.setdefault(row["partition"], []).append(row["value"].decode())
    return found


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(SparklogError) as refused:
        call()
    assert refused.value.id == "FORMAT_TOO_NEW"
    return str(refused.value)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("what", MADE)
def test_a_reader_by_offset_reads_a_topic_without_its_routing(tool: LogTool, tmp_path: Path, what: str, checkpoint: bool) -> None:
    today, root = tmp_path / "today", Path(tool.root)
    renamed(MADE[what], today, root, checkpoint)
    expected = values(today)
    assert sum(map(len, expected.values())) >= 4
    assert values(root) == expected
    assert tool.read() == expected
    before, after = (Log(each)["t"].describe()["partitions"] for each in (today, root))
    assert [(each["start"], each["end"]) for each in after] == [(each["start"], each["end"]) for each in before]
    found = [each.condition for each in Log(root).verify().findings]
    assert found == (["VERSION_MISSING"] if checkpoint else []) + ["FORMAT_TOO_NEW"]


@pytest.mark.parametrize("what", MADE)
def test_readers_by_key_and_writers_refuse_it_by_name(tool: LogTool, tmp_path: Path, what: str) -> None:
    root = Path(tool.root)
    topic = renamed(MADE[what], tmp_path / "today", root)
    count = len(topic.versions)
    for call in (lambda: Log(root)["t"].partition_for("a"), lambda: Log(root)["t"].read(key="a"), lambda: Log(root)["t"].hot_slots()):
        assert ", ".join(sorted(each["name"] for each in topic.versions[-1]["features"])) in refusal(call)
    for words in WRITES:
        assert tool.outcome(*words[:1], topic="t", **dict(words[1:])) == ["FORMAT_TOO_NEW"]
    assert len(list(topic.folder.glob("*.json"))) == count


def test_a_feature_of_writers_alone_binds_no_reader(tool: LogTool) -> None:
    topic = Topic(Path(tool.root), partitions=2)
    topic.append(records(3))
    topic.commit(topic.data(batch(records(2)), 1), features=featured("ledger"))
    topic.checkpoint(features=featured("ledger"))
    assert (verdict(topic.root, "t"), tool.run("states")) == ("ok", ["t ok"])
    assert Log(topic.root)["t"].partition_for("a") in (0, 1)
    assert Log(topic.root)["t"].read(key="k0").num_rows == 1
    for words in WRITES:
        assert tool.outcome(*words[:1], topic="t", **dict(words[1:])) == ["FORMAT_TOO_NEW"]


ENDED: dict[str, list[list[str]]] = {
    "a feature of writers that ends": [["ledger"], []],
    "one of two features that ends": [["ledger", "routing.more"], ["ledger"]],
    "a feature that another one replaces": [["ledger"], ["other"]],
}


@pytest.mark.parametrize("what", ENDED)
def test_a_feature_ends_with_the_topic_alone(tool: LogTool, what: str) -> None:
    topic = Topic(Path(tool.root), partitions=2)
    for names in ENDED[what]:
        topic.commit(topic.data(batch(records(2))), features=featured(*names))
    assert (verdict(topic.root, "t"), tool.run("states")) == ("VERSION_CORRUPT", ["t VERSION_CORRUPT"])


def test_a_topic_begins_without_the_features_of_the_deleted_one(tool: LogTool) -> None:
    topic = Topic(Path(tool.root), partitions=2)
    topic.commit(topic.data(batch(records(2))), features=featured("ledger"))
    topic.delete()
    topic.commit(topic.data(batch(records(2))))
    assert (verdict(topic.root, "t"), tool.run("states")) == ("ok", ["t ok"])


def test_a_checkpoint_has_the_features_of_its_version(tool: LogTool) -> None:
    others = {"none": [], "another class": featured("ledger", binds="keyReaders"), "another field": [{**featured("ledger")[0], "level": 2}]}
    for name, features in others.items():
        topic = Topic(Path(tool.root), name.replace(" ", "-"), partitions=2)
        topic.commit(topic.data(batch(records(2))), features=featured("ledger"))
        topic.commit(topic.data(batch(records(2))), features=featured("ledger"))
        topic.checkpoint(features=features)
        topic.version_file(0).unlink()
    found = dict(line.split(" ") for line in tool.run("states"))
    assert found == {"none": "VERSION_MISSING", "another-class": "VERSION_MISSING", "another-field": "ok"}
    assert {name: verdict(Path(tool.root), name) for name in found} == found


def test_a_class_that_is_unknown_is_all_programs(tool: LogTool) -> None:
    expected = {}
    for number, word in enumerate(("readers", "auditors", "", "Writers", "keyReaders", "writers")):
        topic = Topic(Path(tool.root), f"t{number}", partitions=2)
        topic.commit(features=featured("ledger", binds=word))
        expected[topic.name] = "ok" if word in ("keyReaders", "writers") else "FORMAT_TOO_NEW"
    assert {name: verdict(Path(tool.root), name) for name in expected} == expected
    assert dict(line.split(" ") for line in tool.run("states")) == expected


def test_a_writer_keeps_the_fields_of_a_feature_that_it_does_not_know(tool: LogTool) -> None:
    topic = Topic(Path(tool.root), partitions=2)
    producers = [featured("producers")[0] | {"level": [2, {"of": None}]}]
    topic.commit(topic.data(batch(records(2))), features=producers)
    tool.run("append", topic="t", tag="A", partitions=2)
    tool.run("change", topic="t", what="records", offsets="0:1")
    files = sorted(topic.folder.glob("*.json"))
    assert [json.loads(file.read_bytes().splitlines()[0])["features"] for file in files] == [producers] * 3


BEHIND: dict[str, tuple[list[str], bytes, str]] = {
    "batches of a later feature": (["tail"], b"record batches", "FORMAT_TOO_NEW"),
    "a line end of a later feature": (["tail"], b"\n", "FORMAT_TOO_NEW"),
    "nothing of a later feature": (["tail"], b"", "FORMAT_TOO_NEW"),
    "bytes without a feature": ([], b"record batches", "VERSION_CORRUPT"),
    "a line end": ([], b"\n", "VERSION_CORRUPT"),
    "the same checksum again": ([], b"again", "VERSION_CORRUPT"),
}


def test_bytes_behind_the_second_line(tool: LogTool) -> None:
    """A later version of sparklog may put some there: an older one must say that it is too old, and not that the file is damaged."""
    expected = {}
    for number, (names, more, found) in enumerate(BEHIND.values()):
        topic = Topic(Path(tool.root), f"t{number}", partitions=2)
        topic.append(records(2))
        topic.commit(features=featured(*names, binds="readers"))
        file = topic.version_file(1)
        data = file.read_bytes()
        file.write_bytes(data + (data.splitlines(keepends=True)[1] if more == b"again" else more))
        expected[f"t{number}"] = found
    assert {name: verdict(Path(tool.root), name) for name in expected} == expected
    assert dict(line.split(" ") for line in tool.run("states")) == expected


def test_the_features_are_those_of_the_page() -> None:
    """In both languages, with the programs that each binds, and the features that it requires."""
    rows = re.findall(r"(?m)^\| `([a-z.]+)` \| `(readers|keyReaders|writers)` \| (?:`([a-z.]+)`)? ?\|", text("docs/FORMAT.md"))
    assert rows == [(each.text, each.binds, "".join(each.requires)) for each in Feature]
    java = re.findall(r'([A-Z]+)\("([a-z.]+)", Binds\.([A-Z_]+)(?:, ([A-Z]+))?\)', text(f"{JAVA}/log/Feature.java"))
    requires = {each: "".join(other.name for other in Feature if other.text in each.requires) for each in Feature}
    assert java == [(each.name, each.text, Binds.of(each.binds).name, requires[each]) for each in Feature]


def text(file: str) -> str:
    return (Path(__file__).parents[2] / file).read_text(encoding="utf-8")
