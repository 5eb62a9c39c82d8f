"""Additions of a later release to a root: 68 futures, and the answer of each class of programs to each of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from foreign.key_reader import murmur3
from handmade import TIME, Record, Topic, batch, featured, summed

Change = Callable[[dict[str, Any]], object]
NEW, CORRUPT, OK = "FORMAT_TOO_NEW", "VERSION_CORRUPT", "ok"


class Future(NamedTuple):
    """A change of a version, and what a record reader, a key reader and a writer answer. A topic with a checkpoint has it there, too."""

    change: Change
    record: str = OK
    key: str = OK
    write: str = OK
    says: str = ""
    """A part of the text of each FORMAT_TOO_NEW: the feature, or the key and its value."""

    @property
    def elsewhere(self) -> bool:
        """Whether keys have other partitions than a key reader of today thinks."""
        return self.key != self.record


def featuring(*entries: object) -> Change:
    return lambda content: content.update(features=list(entries))


def feature(binds: object, name: object = "later.one") -> Change:
    return featuring({"name": name, "binds": binds, "more": {"of": [1]}})


def more(**fields: Any) -> Change:
    return lambda content: content.update(fields)


def of_segment(**fields: Any) -> Change:
    return lambda content: content["added"][0].update(fields)


LATER = "it needs the features later.one"
LONG = "a" * 64
FEATURES = {
    "a feature of readers": Future(feature("readers"), NEW, NEW, NEW, LATER),
    "a feature of key readers": Future(feature("keyReaders"), OK, NEW, NEW, LATER),
    "a feature of writers": Future(feature("writers"), OK, OK, NEW, LATER),
    "a feature of a class of tomorrow": Future(feature("servers"), NEW, NEW, NEW, LATER),
    "a feature of no class": Future(feature(""), NEW, NEW, NEW, LATER),
    "a feature with the longest name": Future(feature("writers", LONG), OK, OK, NEW, LONG),
    "features of two classes": Future(
        featuring(*({"name": each, "binds": each.lower()} for each in ("writers", "readers"))), NEW, NEW, NEW, "features readers"
    ),
    **{
        f"the reserved feature {name}": Future(feature("readers", name), NEW, NEW, NEW, name)
        for name in ("transactions", "compaction", "stored", "shared-objects")
    },
    "a known feature with a further field": Future(feature("writers", "producers")),
    "format 2": Future(more(format=2), NEW, NEW, NEW, "its format is 2"),
    "format 2, and all else different": Future(
        lambda content: [content.clear(), content.update(format=2, of=None)], NEW, NEW, NEW, "its format is 2"
    ),
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
    "versions.keep.ms": "P7D",
    "transaction.retention.ms": "-2",
    "producer.id.expiration.ms": "0",
    "producer.ids.max": "1000001",
    "kafka.view": "links",
    "placement.shares": "0:1:1:1",
    "routing.pending.weights": "soon",
    "key.type": "avro",
    "value.type": "json",
}
OF_KEY_READERS = {"partitioner": "xxh3", "placement": "by_range", "placement.slots": "7"}
OF_ALL = {"partitions": "002", "max.message.bytes": "2g"}
WORDS = {
    **{f"{key}={value}": Future(word(key, value), OK, OK, NEW, f"{key} is {value}") for key, value in OF_WRITERS.items()},
    **{f"{key}={value}": Future(word(key, value), OK, NEW, NEW, f"{key} is {value}") for key, value in OF_KEY_READERS.items()},
    **{f"{key}={value}": Future(word(key, value), CORRUPT, CORRUPT, CORRUPT) for key, value in OF_ALL.items()},
    "an operation of tomorrow": Future(more(operation="Ünion all")),
}
CASES = WORDS | FEATURES | FIELDS | {name: Future(change, CORRUPT, CORRUPT, CORRUPT) for name, change in BROKEN.items()}
KEYS = [[key for key in (b"k%d" % number for number in range(7)) if murmur3(key) % 2 == partition] for partition in (0, 1)]
"""The keys of each of two partitions."""
KEY = KEYS[0][1]


def topic_with(root: Path, name: str, future: Future) -> Topic:
    """Three versions; the newest has the change. `rows` has the records."""
    topic, ends = Topic(root, name, partitions=2), [0, 0]

    def segment(partition: int, count: int) -> dict[str, Any]:
        offsets = range(ends[partition], ends[partition] + count)
        ends[partition] += count
        content = [Record(b"%d-%d" % (partition, offset), _key(future, partition, offset), TIME + offset) for offset in offsets]
        return topic.data(batch(content), partition)

    topic.commit(segment(0, 5), segment(1, 5))
    topic.commit(segment(0, 3))
    content = topic.next(segment(0, 2), config={})
    changed = copy.deepcopy(content)
    future.change(changed)
    different = "config" not in changed
    topic.put(content if different else changed)
    if different:
        topic.version_file(2).write_bytes(summed(json.dumps(changed).encode()))
    return topic


def _key(future: Future, partition: int, offset: int) -> bytes:
    keys = KEYS[1 - partition if future.elsewhere else partition]
    return keys[offset % len(keys)]


def rows(topic: Topic, future: Future) -> list[tuple[int, int, bytes, bytes]]:
    """Partition, offset, key and value of each record."""
    places = [(partition, offset) for partition, end in enumerate(topic.versions[2]["ends"]) for offset in range(end)]
    return [(partition, offset, _key(future, partition, offset), b"%d-%d" % (partition, offset)) for partition, offset in places]


def in_a_checkpoint(topic: Topic, what: str) -> bool:
    """Puts a checkpoint with the same change, and deletes the versions before it. False if the change is none of a checkpoint."""
    content = topic.versions[2]
    if what == "format 2, and all else different" or (what in BROKEN and content.get("features") == []) or what.partition("=")[0] in OF_ALL:
        return False
    if content["config"]:
        topic.config |= content["config"]
    fields = {name: value for name, value in content.items() if name in ("format", "features", "ledger", "routing")}
    queries = [["q", 1, None, content["time"]]] if content["query"] else []
    topic.checkpoint(**fields, queries=queries)
    for version in range(2):
        topic.version_file(version).unlink()
    return True
