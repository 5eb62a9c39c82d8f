"""The readers in Java and in Python on topics that know the newest batches of producers: both see the same, or both refuse."""

import json
from pathlib import Path
from typing import Any

import pytest
from broken_rules import Change, changed
from contract.verdicts import agree_on_checkpoints, agree_on_versions
from handmade import TIME, Topic, batch, featured, given, records
from logtool import LogTool

from sparklog import Log
from sparklog.ondisk.producers import LastBatches, ProducerBatch
from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog

FEATURES = featured("producers")
WRAPS = 2**31 - 2
"""The sequence of the first of four records; the third record has sequence 0."""


class Written:
    """A topic of two partitions with batches of two producers, written by hand."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.put([(0, 7, 0, 0, 3), (0, 7, 0, 3, 2), (1, 7, 0, 0, 1)])
        self.put([(0, 9, 4, WRAPS, 4), (0, 7, 0, 5, 1)])

    def next(self, sent: list[tuple[int, int, int, int, int]], **fields: Any) -> dict[str, Any]:
        """The content of a version with batches: partition, producer id, epoch, the first sequence, and the number of records of each."""
        ends = list(self.topic.versions[-1]["ends"]) if self.topic.versions else [0, 0]
        added, entries = [], []
        for partition, id, epoch, first, count in sent:
            octets = batch(records(count), producer_id=id, producer_epoch=epoch, base_sequence=first)
            base = ends[partition]
            ends[partition] += count
            added.append(self.topic.data(octets, partition, routed=False) | {"base": base, "end": base + count})
            entries.append({"partition": partition, "id": id, "epoch": epoch, "first": first, "base": base, "end": base + count})
        return self.topic.next(*added, features=FEATURES, producers=entries) | fields

    def put(self, sent: list[tuple[int, int, int, int, int]], **fields: Any) -> None:
        self.topic.put(self.next(sent, **fields))

    def routing(self) -> None:
        """A topic without slots has none in its checkpoints."""


def newest(root: Path) -> State:
    return TopicLog(Root.at(str(root)), "t").newest()


def entry(name: str, value: Any, number: int = 0) -> Change:
    def change(content: dict[str, Any]) -> None:
        content["producers"][number][name] = value

    return change


def put(topic: Topic, change: Change) -> None:
    """Writes a third version, with a change."""
    written = Written(topic)
    topic.put(changed(written.next([(0, 7, 0, 6, 2), (0, 7, 1, 0, 1), (1, 9, 4, 8, 2)]), change))


FIELDS = ("partition", "id", "epoch", "first", "base", "end")
WRONG: list[Any] = [None, True, 1.5, "1", {}, -1, 2**63]
BROKEN: dict[str, Change] = {
    **{f"{name} is {value!r}": entry(name, value) for name in FIELDS for value in WRONG},
    **{
        f"no {name}": lambda content, name=name: content["producers"][0].pop(name)
        for name in ("partition", "id", "epoch", "first", "base", "end")
    },
    "producers is null": given("producers", None),
    "producers is an object": given("producers", {}),
    "an entry that is a number": given("producers", [1]),
    "a partition that is not there": entry("partition", 2),
    "an epoch of 16 bits": entry("epoch", 2**15),
    "a sequence of 32 bits": entry("first", 2**31),
    "a batch without offsets": entry("end", 10),
    "a batch of more offsets than sequences": lambda content: content["producers"][0].update(end=10 + 2**31),
    "a batch beyond its segment": entry("end", 4, 2),
    "a batch before its segment": lambda content: content["producers"][0].update(base=9, first=5),
    "a batch of another partition": entry("partition", 1),
    "batches out of order": lambda content: content["producers"].reverse(),
    "a batch twice": lambda content: content["producers"].insert(0, content["producers"][0]),
    "a sequence that is left out": entry("first", 7),
    "a sequence again": entry("first", 5),
    "an epoch that falls": lambda content: content["producers"][0].update(id=9, epoch=3),
    "a new epoch that does not begin at sequence 0": entry("first", 1, 1),
    "an old epoch after a new one": lambda content: (
        content["producers"][0].update(epoch=1, first=0),
        content["producers"][1].update(epoch=0),
    ),
    "no time to expire in": given("config", {"producer.id.expiration.ms": "0"}),
    "a time to expire in that is no number": given("config", {"producer.id.expiration.ms": "1e3"}),
    "a time to expire in of 5,000 digits": given("config", {"producer.id.expiration.ms": "1" * 5_000}),
    "a time to expire in of 65 bits": given("config", {"producer.id.expiration.ms": str(2**63)}),
    "the feature ends": given("features", []),
}
RIGHT: dict[str, Change] = {
    "as it should be": lambda content: None,
    "an unknown field": entry("more", [{}]),
    "an unknown producer at any sequence": entry("id", 8),
    "the greatest numbers": lambda content: content["producers"][2].update(id=2**63 - 1, epoch=2**15 - 1, first=2**31 - 1),
    "no batch of a producer": lambda content: content.pop("producers"),
    "the longest time to expire in": given("config", {"producer.id.expiration.ms": str(2**63 - 1)}),
}


PRODUCERS: list[dict[str, Any]] = [
    {"partition": 0, "id": 7, "epoch": 0, "time": TIME + 1000, "batches": [[0, 0, 3], [3, 3, 5], [5, 9, 10]]},
    {"partition": 0, "id": 9, "epoch": 4, "time": TIME + 1000, "batches": [[WRAPS, 5, 9]]},
    {"partition": 1, "id": 7, "epoch": 0, "time": TIME, "batches": [[0, 0, 1]]},
]
"""The producers in a checkpoint of a topic that `Written` wrote."""


def test_version_files(tool: LogTool) -> None:
    cases = {
        **{("third", rule): (put, change, "VERSION_CORRUPT") for rule, change in BROKEN.items()},
        **{("third", rule): (put, change, "ok") for rule, change in RIGHT.items()},
    }
    agree_on_versions(tool, cases)


def head(name: str, value: Any) -> Change:
    def change(content: dict[str, Any]) -> None:
        content["producers"][0][name] = value

    return change


HEADS: dict[str, Change] = {
    **{f"{name} is {value!r}": head(name, value) for name in ("partition", "id", "epoch", "time", "batches") for value in WRONG},
    "a partition that is not there": head("partition", 2),
    "a producer twice": lambda content: content["producers"].append(content["producers"][0]),
    "no batch": head("batches", []),
    "six batches": head("batches", [[number, number, number + 1] for number in range(6)]),
    "a batch of two numbers": head("batches", [[0, 0]]),
    "batches that overlap": head("batches", [[0, 0, 3], [3, 2, 5]]),
    "batches whose sequences do not follow": head("batches", [[0, 0, 3], [4, 3, 5]]),
    "a batch beyond the end": head("batches", [[0, 9, 11]]),
    "no feature": given("features", []),
}


def test_checkpoints(tool: LogTool) -> None:
    def told(change: Change) -> Change:
        return lambda content: (content.update(producers=json.loads(json.dumps(PRODUCERS))), change(content))

    right: dict[str, Change] = {"as it should be": lambda content: None, "in any order": lambda content: content["producers"].reverse()}
    wrong = {rule: told(change) for rule, change in HEADS.items()}
    agree_on_checkpoints(tool, Written, wrong, {rule: told(change) for rule, change in right.items()}, FEATURES)


def test_a_state_knows_the_last_five_batches_of_each_producer(tmp_path: Path) -> None:
    written = Written(Topic(tmp_path, partitions=2))
    state = newest(tmp_path)
    assert [(*key, its.epoch, [*map(list, its.batches)]) for key, its in sorted(state.producers.items())] == [
        (each["partition"], each["id"], each["epoch"], each["batches"]) for each in PRODUCERS
    ]
    for number in range(4):
        written.put([(0, 7, 0, 6 + number, 1)])
    assert [each.first for each in newest(tmp_path).producers[0, 7].batches] == [5, 6, 7, 8, 9]
    assert newest(tmp_path).producers[0, 9].batches[-1].next == 2
    written.put([(0, 7, 1, 0, 1)])
    assert newest(tmp_path).producers[0, 7] == LastBatches(1, TIME + 6000, (ProducerBatch(0, 14, 15),))


def test_a_producer_is_forgotten_in_time(tmp_path: Path) -> None:
    written = Written(Topic(tmp_path, partitions=2))
    written.topic.commit(features=FEATURES, operation="alter", config={"producer.id.expiration.ms": "5000"})
    written.put([(0, 7, 0, 6, 1)], time=TIME + 5999)
    assert set(newest(tmp_path).producers) == {(0, 7), (0, 9)}
    written.put([], time=TIME + 6000)
    assert set(newest(tmp_path).producers) == {(0, 7)}
    written.put([(0, 9, 0, 77, 1)])
    assert newest(tmp_path).producers[0, 9].epoch == 0
    assert Log(tmp_path).verify().findings == []


def test_a_checkpoint_of_java_says_what_replay_says(tool: LogTool) -> None:
    """Java goes on with the topic, and puts a checkpoint; `verify` compares it with the versions."""
    topic = Topic(Path(tool.root), partitions=2)
    written = Written(topic)
    config = {key.replace(".", "_"): value for key, value in newest(topic.root).config.items()}
    topic.commit(features=FEATURES, operation="alter", config={"producer.id.expiration.ms": str(2**63 - 1)})
    for number in range(4):
        written.put([(0, 7, 0, 6 + number, 1)])
    tool.run("append", topic="t", tag="A", commits=3, tasks=1, pace=2, clock=0, **config)
    state = newest(topic.root)
    assert state.features.words == {"producers": "writers"}
    assert {key: len(its.batches) for key, its in state.producers.items()} == {(0, 7): 5, (0, 9): 1, (1, 7): 1}
    found = [each.name for each in topic.folder.glob("*.checkpoint-*")]
    assert found
    assert Log(topic.root).verify().findings == []
    head = json.loads((topic.folder / found[0]).read_bytes().split(b"\t")[0])
    assert "producers" in head
    for version in range(head["version"]):
        topic.version_file(version).unlink(missing_ok=True)
    assert newest(topic.root).producers == state.producers
    assert tool.run("states") == ["t ok"]


HEADERS: dict[str, dict[str, int]] = {
    "another producer": {"producer_id": 8},
    "another epoch": {"producer_epoch": 1},
    "another sequence": {"base_sequence": 1},
    "no producer": {"producer_id": -1},
}


@pytest.mark.parametrize("what", HEADERS)
def test_verify_compares_headers_with_versions(tmp_path: Path, what: str) -> None:
    topic = Topic(tmp_path, partitions=2)
    said = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    entry = {"partition": 0, "id": 7, "epoch": 0, "first": 0, "base": 0, "end": 3}
    topic.commit(topic.data(batch(records(3), **said | HEADERS[what]), routed=False), features=FEATURES, producers=[entry])
    assert [each.condition for each in Log(tmp_path).verify().findings] == ["PRODUCER_WRONG"]


def test_verify_misses_a_batch_of_a_producer_that_a_version_does_not_name(tmp_path: Path) -> None:
    topic = Topic(tmp_path, partitions=2)
    topic.commit(topic.data(batch(records(3), producer_id=7, producer_epoch=0, base_sequence=0), routed=False), features=FEATURES)
    assert [each.condition for each in Log(tmp_path).verify().findings] == ["PRODUCER_WRONG"]


def test_readers_accept_the_producers_of_batches(tool: LogTool) -> None:
    """With the feature and without it."""
    topic = Topic(Path(tool.root), partitions=2)
    topic.commit(topic.data(batch(records(3), producer_id=7, producer_epoch=0, base_sequence=0), routed=False))
    Written(topic)
    found = {each: [row["value"].decode() for row in Log(topic.root)["t"].read(partition=each).to_pylist()] for each in (0, 1)}
    assert {each: len(values) for each, values in found.items()} == {0: 13, 1: 1}
    assert tool.read() == found
    assert Log(topic.root).verify().findings == []
