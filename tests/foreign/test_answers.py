"""Places of the page where two answers seemed possible: each reader gives the one answer, in both languages and from the page alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import broken_bindings
import broken_reroutes
import pytest
from foreign.key_reader import KeyReader, table_sum
from foreign.record_reader import RecordReader
from foreign.three import answer
from foreign.writer import Record, Writer
from handmade import CONFIG, Topic, batch, featured, given, records
from logtool import LogTool

from sparklog import Log

OK, NEW, CORRUPT, MISSING, NOT_FOUND = "ok", "FORMAT_TOO_NEW", "VERSION_CORRUPT", "VERSION_MISSING", "TOPIC_NOT_FOUND"
Head = Callable[[dict[str, Any]], object]


class Case(NamedTuple):
    """A topic, and the answers of record readers, key readers and writers.

    `alone`: the answer of a program that is a record reader alone, and so looks at no routing. Our readers by offset are key readers, too.
    """

    make: Callable[[Topic], object]
    record: str = OK
    key: str = OK
    write: str = OK
    alone: str = ""


def written(topic: Topic, *configs: dict[str, str]) -> None:
    """Three records in each of two partitions, and then versions that change the configuration, or none."""
    topic.commit(*(topic.data(batch(records(3)), partition, routed=False) for partition in (0, 1)))
    for config in configs or ({},):
        topic.commit(operation="alter", config=config)


def lacking(key: str) -> Callable[[Topic], None]:
    """Version 0 lacks a key of the configuration."""

    def make(topic: Topic) -> None:
        config = {name: value for name, value in ({"partitions": "2"} | CONFIG).items() if name != key}
        topic.commit(*(topic.data(batch(records(3)), partition, routed=False) for partition in (0, 1)), config=config)

    return make


def setting(*configs: dict[str, str]) -> Callable[[Topic], None]:
    return lambda topic: written(topic, *configs)


def again(binds: str) -> Callable[[Topic], None]:
    """A topic with a later feature was deleted, and another one begun. No checkpoint is there."""

    def make(topic: Topic) -> None:
        topic.commit(topic.data(batch(records(3))), features=[{"name": "later", "binds": binds}])
        topic.put(topic.deletion())
        written(topic)

    return make


def headed(change: Head, *, alone: bool = True, made: Callable[[Topic], Any] = written, **fields: Any) -> Callable[[Topic], None]:
    """A checkpoint whose head has a change; `alone`: the versions before its version are gone."""

    def make(topic: Topic) -> None:
        found = made(topic)
        routing = {"routing": found.routing()} if hasattr(found, "routing") else {}
        path = topic.checkpoint(**routing, features=topic.versions[-1]["features"], **fields)
        lines = [json.loads(line.split(b"\t")[0]) for line in path.read_bytes().splitlines()]
        path.unlink()
        change(lines[0])
        newest = len(topic.versions) - 1
        topic.put_checkpoint(newest, lines)
        for version in range(newest if alone else 0):
            topic.version_file(version).unlink()

    return make


def configured(**config: str) -> Head:
    return lambda head: head["config"].update({key.replace("_", "."): value for key, value in config.items()})


def routed(**fields: Any) -> Head:
    return lambda head: head["routing"].update(fields)


def version_of_a_checkpoint(change: Callable[[Topic], object]) -> Callable[[Topic], None]:
    """The version of a checkpoint is changed, and so the hash in the head."""

    def make(topic: Topic) -> None:
        written(topic, {}, {})
        change(topic)
        topic.checkpoint()
        topic.version_file(0).unlink()

    return make


def corrupt_with_its_hash(topic: Topic) -> None:
    topic.versions.pop()
    topic.hash = hashlib.sha256(topic.version_file(1).read_bytes()).hexdigest()
    topic.put(topic.next(operation="alter", txn="no identity"))


def without_its_version(topic: Topic) -> None:
    headed(lambda head: None)(topic)
    topic.version_file(1).unlink()


def of_another_version(topic: Topic) -> None:
    headed(lambda head: None)(topic)
    topic.version_file(1).write_bytes(topic.octets(topic.versions[1] | {"writer": "another"}, 1))


def without_version_1(topic: Topic) -> None:
    written(topic, {}, {})
    topic.version_file(1).unlink()


def that_does_not_follow(topic: Topic) -> None:
    written(topic, {}, {})
    topic.version_file(1).write_bytes(topic.octets(topic.versions[1] | {"writer": "another"}, 1))


def deleted_first(topic: Topic) -> None:
    content = topic.next(deleted=True, horizon=1, boundary=0, operation="delete")
    topic.put({**content, "config": {}, "starts": {}, "ends": {}} | {"starts": [0, 0], "ends": [0, 0]})
    for name in ("starts", "ends"):
        assert f'"{name}":{{}}' in topic.version_file(0).read_text()


def deleted_twice(topic: Topic) -> None:
    written(topic)
    topic.put(topic.deletion())
    topic.put(topic.deletion(topicId=topic.next()["topicId"], config={}))


def of_a_feature(name: str, binds: str) -> Callable[[Topic], None]:
    def make(topic: Topic) -> None:
        topic.features = [{"name": name, "binds": binds}]
        written(topic)

    return make


def placed_by_a_later_word(topic: Topic) -> broken_reroutes.Routed:
    """The fields of `routing` are right, and nothing else of it is."""
    found = broken_reroutes.begun(topic)
    content = found.reroute([1, 1], {1: [0]})
    content["routing"] |= {"epoch": 9, "table": 1, "weights": [0, 0, 0, 1], "moved": [[3, 1]]}
    topic.put(content | {"config": {"placement": "by_range"}})
    topic.config["placement"] = "by_range"
    return found


def bound(change: Head) -> Callable[[Topic], None]:
    """The newest version binds slots, with a change."""

    def make(topic: Topic) -> None:
        found = broken_bindings.begun(topic)
        content = found.bind({1: [9]})
        change(content)
        topic.put(content)

    return make


QUERY = ["q", 1, None, 7]
UNSLOTTED = {"made": broken_reroutes.grown}
CASES = {
    "no partitioner": Case(lacking("partitioner"), OK, NEW, NEW),
    "no compression.type": Case(lacking("compression.type"), OK, OK, NEW),
    "no partitions": Case(lacking("partitions"), CORRUPT, CORRUPT, CORRUPT),
    "no max.message.bytes": Case(lacking("max.message.bytes"), CORRUPT, CORRUPT, CORRUPT),
    "a word of writers that came and went": Case(setting({"kafka.view": "links"}, {"kafka.view": "all"})),
    "a word of key readers that came and went": Case(setting({"partitioner": "xxh3"}, {"partitioner": "murmur3"})),
    "a deleted topic had a feature of writers": Case(again("writers")),
    "a deleted topic had a feature of key readers": Case(again("keyReaders")),
    "a deleted topic had a feature of readers": Case(again("readers"), NEW, NEW, NEW),
    "an unknown word of a head": Case(headed(configured(partitioner="xxh3")), OK, NEW, NEW),
    "an unknown word of writers in a head": Case(headed(configured(kafka_view="links")), OK, OK, NEW),
    "an unknown word of a head that is not that of its version": Case(
        headed(configured(partitioner="xxh3"), alone=False, made=setting({"partitioner": "murmur2"}))
    ),
    "a wrong number of a head": Case(headed(lambda head: head["config"].update({"max.message.bytes": "1"})), *[MISSING] * 3),
    "a wrong number of a head, and all versions": Case(headed(lambda head: head["config"].update(partitions="0"), alone=False)),
    "a later word with a routing": Case(placed_by_a_later_word, OK, NEW, NEW),
    "a later word with a routing in a head": Case(headed(given("routing", {"of": 1}), made=placed_by_a_later_word), OK, NEW, NEW),
    "a version that is corrupt and has the hash of its checkpoint": Case(version_of_a_checkpoint(corrupt_with_its_hash), *[CORRUPT] * 3),
    "a checkpoint without its version": Case(without_its_version, *[MISSING] * 3),
    "a checkpoint of another version": Case(of_another_version, *[CORRUPT] * 3),
    "a version is gone": Case(without_version_1, *[MISSING] * 3),
    "a version does not follow": Case(that_does_not_follow, *[CORRUPT] * 3),
    "a deletion as version 0": Case(deleted_first, *[CORRUPT] * 3),
    "a deletion after a deletion": Case(deleted_twice, *[CORRUPT] * 3),
    "a query of three values": Case(headed(given("queries", [QUERY[:3]])), *[MISSING] * 3),
    "a query of four values": Case(headed(given("queries", [QUERY]))),
    "a query of five values": Case(headed(given("queries", [[*QUERY, None]])), *[MISSING] * 3),
    **{
        f"{name} binds {binds}": Case(of_a_feature(name, binds), *answers)
        for name in ("transactions", "compaction", "stored", "shared-objects")
        for binds, answers in (("writers", (OK, OK, NEW)), ("keyReaders", (OK, NEW, NEW)))
    },
    "a re-route of a head with a further field": Case(headed(lambda head: head["routing"]["reroutes"][0].update(why=[1]), **UNSLOTTED)),
    "a first slot table with a partition that is not there": Case(
        headed(lambda head: head["routing"]["first"].__setitem__(0, 3), **UNSLOTTED), *[MISSING] * 3, OK
    ),
    "an unbound slot without its feature": Case(
        headed(lambda head: head["routing"]["first"].__setitem__(0, 65_535), **UNSLOTTED), *[MISSING] * 3, OK
    ),
    "the greatest routing epoch": Case(headed(routed(epoch=2**31 - 1), made=broken_bindings.rerouted)),
    "a greater routing epoch": Case(headed(routed(epoch=2**31), made=broken_bindings.rerouted), *[MISSING] * 3, OK),
    "a binding": Case(bound(lambda content: None)),
    "a binding that is false": Case(bound(lambda content: content["routing"].update(binds=False)), *[CORRUPT] * 3, OK),
    "a binding with wrong fields of a re-route": Case(bound(lambda content: content["routing"].update(slots=0, weights=None, epoch="x"))),
    "a binding to a partition that is not there": Case(
        bound(lambda content: content["routing"]["moved"][0].__setitem__(0, 2)), *[CORRUPT] * 3, OK
    ),
}


def answers(tool: LogTool, topic: str) -> dict[str, str]:
    """By reader."""

    def ended(call: Callable[[], object]) -> str:
        return found if isinstance(found := answer(call), str) else OK

    status = tool.ended("read", topic=topic)[0]
    return {
        "record reader of the page": ended(lambda: RecordReader(tool.root).read(topic)),
        "Log.read": ended(lambda: Log(tool.root)[topic].read()),
        "Java": tool.outcome("read", topic=topic)[0] if status else OK,
        "key reader of the page": ended(lambda: KeyReader(tool.root).by_key(topic, b"k1")),
        "Log.read(key)": ended(lambda: Log(tool.root)[topic].read(key=b"k1")),
        "Log.partition_for": ended(lambda: Log(tool.root)[topic].partition_for(b"k1")),
    }


def test_readers(tool: LogTool) -> None:
    wrong = {}
    for number, (what, case) in enumerate(CASES.items()):
        case.make(Topic(Path(tool.root), f"t{number}", partitions=2))
        found = answers(tool, f"t{number}")
        right = {name: case.key if "key" in name or "partition" in name else case.record for name in found}
        right["record reader of the page"] = case.alone or case.record
        if found != right:
            wrong[what] = {name: (found[name], right[name]) for name in found if found[name] != right[name]}
    assert wrong == {}


def test_writers(tool: LogTool) -> None:
    wrong = {}
    for number, (what, case) in enumerate(CASES.items()):
        case.make(Topic(Path(tool.root), f"t{number}", partitions=2))
        mine = answer(lambda: str(Writer(tool.root).append(f"t{number}", [Record(b"1", b"k")])))  # noqa: B023
        status = tool.ended("append", topic=f"t{number}", tag="A", partitions=2)[0]
        found = {"page": OK if mine.isdigit() else mine, "Java": tool.outcome("append", topic=f"t{number}", tag="A")[0] if status else OK}
        if set(found.values()) != {case.write}:
            wrong[what] = found
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.parametrize("where", ["in versions", "in a checkpoint"])
@pytest.mark.parametrize("more", [0, 1])
def test_the_numbers_of_re_routes(tool: LogTool, more: int, where: str) -> None:
    """A.3: 2,000,000 of them, in `cut` and `moved`, the partitions in `moved` too."""
    topic = Topic(Path(tool.root), partitions=2)
    topic.commit(*(topic.data(batch(records(3)), partition, routed=False) for partition in (0, 1)))
    slots, per, left = 1 << 20, 1 << 19, 2_000_000 + more
    table, features, past, own = [slot % 2 for slot in range(slots)], featured("routing.slots"), [], list[int]()
    first = list(table)
    while left:
        count = min(per, left - 3)
        own, to = list(range(0, slots, 2))[:count], (len(past) + 1) % 2
        for slot in own:
            table[slot] = to
        change = {"epoch": len(past) + 1, "slots": slots, "weights": [1, 1], "moved": [[to, *own]], "table": table_sum(table)}
        topic.commit(features=features, operation="reroute", routing=change)
        past.append({"version": len(topic.versions) - 1, "cut": [3, 3], "moved": change["moved"]})
        left -= count + 3
    assert len(past) == 4 and 3 < len(own) < per
    if where == "in a checkpoint":
        routing = change | {"first": first, "reroutes": past}
        topic.commit(topic.data(batch(records(1)), routed=False), features=features)
        topic.checkpoint(features=features, routing=routing)
        for version in range(len(topic.versions) - 1):
            topic.version_file(version).unlink()
    id = OK if not more else CORRUPT if where == "in versions" else MISSING
    found = answers(tool, "t")
    assert found == {name: OK if name == "record reader of the page" else id for name in found}
