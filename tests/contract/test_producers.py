"""Java and Python on topics that know the newest batches of producers: both see the same, or both refuse.

A server of Java needs the producers, and `verify` of Python checks them. Readers look at the field of a version file alone.
"""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from broken_rules import Change, changed
from contract.verdicts import verdict
from handmade import TIME, Topic, batch, featured, given, records
from logtool import LogTool

from sparklog import Log
from sparklog.ondisk.producers import LastBatches, ProducerBatch, Producers, Sent
from sparklog.ondisk.root import Root
from sparklog.verify.asking import AskingStore
from sparklog.verify.versions import Chain

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


def known(root: Path) -> dict[tuple[int, int], LastBatches]:
    """The producers of the newest state, as `verify` finds them."""
    folder = root / "_partlog" / "t"
    return Chain(Root(AskingStore(Root.at(str(root)).store)), "t", [each.name for each in folder.iterdir()]).replay().producers.known


def told(tool: LogTool) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """By topic: the findings of `verify`, of a server in Java, and of readers, which must agree."""
    checks = dict.fromkeys(Log(tool.root).topics(), "ok")
    for finding in Log(tool.root).verify().findings:
        assert finding.topic
        if finding.condition in ("VERSION_CORRUPT", "CHECKPOINT_DAMAGED"):
            checks[finding.topic] = finding.condition
    servers, readers = (dict(line.split(" ") for line in tool.run("states", **words)) for words in ({"producers": True}, {}))
    assert readers == {name: verdict(Path(tool.root), name) for name in checks}
    return checks, servers, readers


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
    "the feature ends": given("features", []),
}
UNREPLAYED: dict[str, Change] = {
    "a sequence that is left out": entry("first", 7),
    "a sequence again": entry("first", 5),
    "an epoch that falls": lambda content: content["producers"][0].update(id=9, epoch=3),
    "a new epoch that does not begin at sequence 0": entry("first", 1, 1),
    "an old epoch after a new one": lambda content: (
        content["producers"][0].update(epoch=1, first=0),
        content["producers"][1].update(epoch=0),
    ),
}
RIGHT: dict[str, Change] = {
    "as it should be": lambda content: None,
    "an unknown field": entry("more", [{}]),
    "an unknown producer at any sequence": entry("id", 8),
    "the greatest numbers": lambda content: content["producers"][2].update(id=2**63 - 1, epoch=2**15 - 1, first=2**31 - 1),
    "no batch of a producer": lambda content: content.pop("producers"),
    "the longest time to expire in": given("config", {"producer.id.expiration.ms": str(2**63 - 1)}),
    **{
        f"{key} is {value[:20]}": given("config", {key: value})
        for key in ("producer.id.expiration.ms", "producer.ids.max")
        for value in ("0", "1e3", "1" * 5_000, str(2**63), "-1")
    },
    "the highest limit": given("config", {"producer.ids.max": "1000000"}),
}


LINES: list[Any] = [
    [0, 7, 0, TIME + 1000, [0, 0, 3], [3, 3, 5], [5, 9, 10]],
    [0, 9, 4, TIME + 1000, [WRAPS, 5, 9]],
    [1, 7, 0, TIME, [0, 0, 1]],
]
"""The producers in a checkpoint of a topic that `Written` wrote."""


def test_version_files(tool: LogTool) -> None:
    corrupt, ok = "VERSION_CORRUPT", "ok"
    cases = [*((rule, change, corrupt, corrupt) for rule, change in BROKEN.items())]
    cases += [(rule, change, corrupt, ok) for rule, change in UNREPLAYED.items()]
    cases += [(rule, change, ok, ok) for rule, change in RIGHT.items()]
    for number, (_, change, _, _) in enumerate(cases):
        put(Topic(Path(tool.root), f"t{number}", partitions=2), change)
    checks, servers, readers = told(tool)
    for number, (rule, _, check, read) in enumerate(cases):
        name = f"t{number}"
        assert (rule, checks[name], servers[name], readers[name]) == (rule, check, check, read)


def line(at: int, value: Any, number: int = 0) -> Change:
    def change(lines: list[Any]) -> None:
        lines[number][at] = value

    return change


DAMAGED: dict[str, Change] = {
    **{f"value {at} is {value!r}": line(at, value) for at in range(5) for value in WRONG},
    "a partition that is not there": line(0, 2, 2),
    "a producer twice": lambda lines: lines.insert(1, lines[0]),
    "out of order": lambda lines: lines.reverse(),
    "an object": line(5, {}),
    "no batch": lambda lines: lines[1].pop(),
    "six batches": lambda lines: lines[2].__setitem__(slice(4, None), [[number, 0, 1] for number in range(6)]),
    "a batch of two numbers": line(4, [0, 0], 2),
    "batches that overlap": line(5, [3, 2, 5]),
    "batches whose sequences do not follow": line(5, [4, 3, 5]),
    "a batch beyond the end": line(6, [5, 9, 11]),
    "an epoch of 16 bits": line(2, 2**15),
    "a line is missing": lambda lines: lines.pop(),
}


def with_checkpoint(topic: Topic, lines: list[Any], **head: Any) -> Path:
    """Puts a checkpoint of a topic that `Written` wrote, in the place of all versions before it."""
    Written(topic)
    path = topic.checkpoint(**{"features": FEATURES, "producers": len(LINES)} | head)
    newest = len(topic.versions) - 1
    content = [json.loads(each.split(b"\t")[0]) for each in path.read_bytes().splitlines()]
    path.unlink()
    for version in range(newest):
        topic.version_file(version).unlink()
    return topic.put_checkpoint(newest, [*content, *lines])


def test_checkpoints(tool: LogTool) -> None:
    """Damage of producers stops servers, and no reader."""
    cases = {"as it should be": "ok"} | dict.fromkeys(DAMAGED, "VERSION_MISSING")
    for number, rule in enumerate(cases):
        lines = json.loads(json.dumps(LINES))
        DAMAGED.get(rule, lambda lines: None)(lines)
        with_checkpoint(Topic(Path(tool.root), f"t{number}", partitions=2), lines)
    flipped = with_checkpoint(Topic(Path(tool.root), "flipped", partitions=2), LINES)
    flipped.write_bytes(flipped.read_bytes()[:-2] + b"x\n")
    behind = with_checkpoint(Topic(Path(tool.root), "behind", partitions=2), LINES)
    behind.write_bytes(behind.read_bytes() + b"later\n")
    for value in (*WRONG, [], 1_000_001):
        with_checkpoint(Topic(Path(tool.root), f"h{len(cases)}", partitions=2), LINES, producers=value)
        cases[f"the head says {value!r}"] = "a wrong head"
    with_checkpoint(Topic(Path(tool.root), "without", partitions=2), [], features=[])
    checks, servers, readers = told(tool)
    for number, (rule, server) in enumerate(cases.items()):
        name = f"t{number}" if server != "a wrong head" else f"h{number}"
        expected = ("VERSION_MISSING",) * 2 if server == "a wrong head" else (server, "ok")
        assert (rule, servers[name], readers[name]) == (rule, *expected)
        assert (checks[name] == "ok") == (server == "ok")
    assert (servers["flipped"], readers["flipped"], servers["behind"], readers["behind"]) == ("VERSION_MISSING", "ok", "ok", "ok")


def test_a_server_that_finds_producers_damaged_goes_to_an_older_checkpoint(tool: LogTool) -> None:
    topic = Topic(Path(tool.root), partitions=2)
    written = Written(topic)
    topic.put_checkpoint(1, [*_lines(topic.checkpoint(features=FEATURES, producers=3)), *LINES])
    written.put([(0, 7, 0, 6, 1)])
    newer = topic.checkpoint(features=FEATURES, producers=4)
    topic.version_file(0).unlink()
    assert tool.run("states", producers=True) == tool.run("states") == ["t ok"]
    assert newer.exists()


def _lines(path: Path) -> list[Any]:
    found = [json.loads(each.split(b"\t")[0]) for each in path.read_bytes().splitlines()]
    path.unlink()
    return found


def test_a_state_knows_the_last_five_batches_of_each_producer(tmp_path: Path) -> None:
    written = Written(Topic(tmp_path, partitions=2))
    found = [[*key, its.epoch, its.time, *map(list, its.batches)] for key, its in sorted(known(tmp_path).items())]
    assert found == LINES
    for number in range(4):
        written.put([(0, 7, 0, 6 + number, 1)])
    assert [each.first for each in known(tmp_path)[0, 7].batches] == [5, 6, 7, 8, 9]
    assert known(tmp_path)[0, 9].batches[-1].next == 2
    written.put([(0, 7, 1, 0, 1)])
    assert known(tmp_path)[0, 7] == LastBatches(1, TIME + 6000, (ProducerBatch(0, 14, 15),))


def test_a_producer_is_forgotten_in_time(tmp_path: Path) -> None:
    written = Written(Topic(tmp_path, partitions=2))
    written.topic.commit(features=FEATURES, operation="alter", config={"producer.id.expiration.ms": "5000"})
    written.put([(0, 7, 0, 6, 1)], time=TIME + 5999)
    assert set(known(tmp_path)) == {(0, 7), (0, 9)}
    written.put([], time=TIME + 6000)
    assert set(known(tmp_path)) == {(0, 7)}
    written.put([(0, 9, 0, 77, 1)])
    assert known(tmp_path)[0, 9].epoch == 0
    assert Log(tmp_path).verify().findings == []


def test_beyond_the_limit_the_oldest_producer_leaves(tmp_path: Path) -> None:
    written = Written(Topic(tmp_path, partitions=2))
    written.topic.commit(features=FEATURES, operation="alter", config={"producer.ids.max": "2"})
    assert set(known(tmp_path)) == {(0, 7), (0, 9)}
    written.put([(1, 8, 0, 0, 1)], time=TIME + 1000)
    assert set(known(tmp_path)) == {(0, 9), (1, 8)}
    written.put([(1, 8, 0, 1, 1), (1, 6, 0, 0, 1)], time=TIME)
    assert set(known(tmp_path)) == {(0, 9), (1, 8)}, "the time of the newest version is the lowest one, and (1, 6) is before (1, 8)"


def test_a_checkpoint_of_java_says_what_replay_says(tool: LogTool) -> None:
    """Java goes on with the topic, and puts a checkpoint; `verify` compares it with the versions."""
    topic = Topic(Path(tool.root), partitions=2)
    written = Written(topic)
    config = {key.replace(".", "_"): value for key, value in Log(topic.root).topic("t").config.items()}
    topic.commit(features=FEATURES, operation="alter", config={"producer.id.expiration.ms": str(2**63 - 1)})
    for number in range(4):
        written.put([(0, 7, 0, 6 + number, 1)])
    tool.run("append", topic="t", tag="A", commits=3, tasks=1, pace=2, clock=0, **config)
    before = known(topic.root)
    assert {key: len(its.batches) for key, its in before.items()} == {(0, 7): 5, (0, 9): 1, (1, 7): 1}
    found = [each.name for each in topic.folder.glob("*.checkpoint-*")]
    assert found
    assert Log(topic.root).verify().findings == []
    head, *lines = [json.loads(each.split(b"\t")[0]) for each in (topic.folder / found[0]).read_bytes().splitlines()]
    assert head["producers"] == 3
    assert [each[:2] for each in lines[-3:]] == [[0, 7], [0, 9], [1, 7]]
    for version in range(head["version"]):
        topic.version_file(version).unlink(missing_ok=True)
    assert known(topic.root) == before
    assert tool.run("states", producers=True) == ["t ok"]


def test_producers_of_random_histories(tmp_path: Path) -> None:
    """Beside a model that looks at all producers for each version."""
    for seed in range(30):
        chance = random.Random(seed)
        config = {"producer.id.expiration.ms": "50", "producer.ids.max": str(chance.randrange(1, 12))}
        found, model, ends, time = Producers(), dict[tuple[int, int], LastBatches](), [0, 0], 1000
        for _ in range(200):
            time += chance.choice([-30, 0, 0, 1, 5, 60])
            sent: list[Sent] = []
            for _ in range(chance.randrange(4)):
                key = partition, id = chance.randrange(2), chance.randrange(12)
                at = next(
                    (LastBatches(each.epoch, 0, (each.batch,)) for each in reversed(sent) if (each.partition, each.id) == key),
                    model.get(key),
                )
                begins = not at or chance.random() < 0.2
                epoch, first = (at.epoch + 1 if at else 0, 0) if begins else (at.epoch, at.batches[-1].next) if at else (0, 0)
                base = max([ends[partition], *(each.batch.end for each in sent if each.partition == partition)])
                sent.append(Sent(partition, id, epoch, ProducerBatch(first, base, base + chance.randrange(1, 4))))
            found.follow(sent, ends, time, config)
            for partition, id, epoch, its in sent:
                before = model.get((partition, id))
                kept = before.batches if before and before.epoch == epoch else ()
                model[partition, id] = LastBatches(epoch, time, (*kept, its)[-5:])
                ends[partition] = its.end
            model = {key: last for key, last in model.items() if time - last.time < 50}
            for _, key in sorted((last.time, key) for key, last in model.items())[: -int(config["producer.ids.max"])]:
                del model[key]
            assert found.known == model, seed


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
