"""Version files that each break one rule of FORMAT.md section 5, and odd ones that break none. Both readers must tell them apart."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from handmade import SEGMENT_FIELDS, TIME, Topic, batch, featured, given, identity, records, summed, without

Change = Callable[[dict[str, Any]], object]


def write_two_versions(topic: Topic) -> dict[str, Any]:
    """Writes versions 0 and 1 of a topic with two partitions. Returns a right version 2, after which partition 0 ends at offset 7."""
    topic.append(records(5))
    topic.commit(horizon=5, boundary=5, starts=[1, 0])
    added = [topic.data(batch(records(2)))]
    return {**topic.versions[-1], "version": 2, "txn": identity("x"), "previous": topic.hash, "config": {}, "ends": [7, 0], "added": added}


def write_third(topic: Topic, content: dict[str, Any], text: Callable[[bytes], bytes] = bytes) -> Path:
    """Writes a version 2, with the name of the first data file for PLACEHOLDER. `text` can change its bytes before they are checksummed."""
    file = topic.version_file(2)
    line = json.dumps(topic.on_disk(content)).replace("PLACEHOLDER", topic.versions[0]["added"][0]["file"])
    file.write_bytes(summed(text(line.encode())))
    return file


def changed(content: dict[str, Any], change: Change) -> dict[str, Any]:
    wrong: dict[str, Any] = json.loads(json.dumps(content))
    change(wrong)
    return wrong


def of_segment(name: str, value: Any):
    def change(content: dict[str, Any]) -> None:
        content["added"][0][name] = value

    return change


def segment_without(name: str):
    def change(content: dict[str, Any]) -> None:
        del content["added"][0][name]

    return change


def times(factor: int):
    def change(content: dict[str, Any]) -> None:
        content["added"] = content["added"] * factor

    return change


FIELDS = [
    *(
        "format",
        "features",
        "topic",
        "topicId",
        "version",
        "txn",
        "previous",
        "time",
        "operation",
        "writer",
        "query",
        "horizon",
    ),
    *("boundary", "config", "starts", "ends", "removed", "added"),
]
BIG = 2**63
NESTED: Any = 0
for _ in range(9):
    NESTED = [NESTED]
WRONG_INPUTS: list[Any] = [
    "",
    "0" * 15,
    "0" * 17,
    "0" * 15 + "A",
    "0" * 15 + "g",
    "0" * 16 + "\n",
    "０" * 16,
    "٣" * 16,
    0,
    10**15,
    False,
    [],
    {},
]
"""Values that `input` of a query must not have."""
BROKEN: dict[str, Change] = {
    **{f"no {name}": without(name) for name in FIELDS},
    **{f"a segment without {name}": segment_without(name) for name in SEGMENT_FIELDS},
    **{f"{name} is null": given(name, None) for name in FIELDS if name not in ("query", "previous")},
    **{f"{name} is a fraction": given(name, 1.5) for name in FIELDS},
    **{f"{name} is true": given(name, True) for name in FIELDS},
    **{f"{name} of a segment is null": of_segment(name, None) for name in SEGMENT_FIELDS},
    **{f"{name} of a segment is a fraction": of_segment(name, 1.0) for name in SEGMENT_FIELDS},
    **{f"{name} is negative": given(name, -1) for name in ("format", "version", "time", "horizon", "boundary")},
    **{f"{name} is too large": given(name, BIG) for name in ("version", "time", "horizon", "boundary")},
    "format 0": given("format", 0),
    "features that are numbers": given("features", [1]),
    "features by name": given("features", {"ledger": "writers"}),
    "a feature without a name": given("features", [{"binds": "readers"}]),
    "a feature without its class": given("features", [{"name": "ledger"}]),
    "a feature whose class is a list": given("features", [{"name": "ledger", "binds": ["writers"]}]),
    **{
        f"a feature with the name {name!r}": given("features", featured(name, binds="readers"))
        for name in ("", "Ledger", "a_b", "a" * 65, "a\n", "ä", "１")
    },
    "two features with one name": given("features", featured("ledger") + featured("ledger", binds="readers")),
    "a known feature that binds too few": given("features", [{"name": "routing.slots", "binds": "writers"}]),
    "a known feature that binds too many": given("features", featured("producers", binds="readers")),
    "a known feature that binds a class of its own": given("features", featured("producers", binds="auditors")),
    "a feature without the feature that it requires": given("features", featured("routing.unbound")),
    "another topic": given("topic", "other"),
    "another topic id": given("topicId", identity("other")),
    "a topic id of 21 characters": given("topicId", "A" * 21),
    "a reserved topic id": given("topicId", "A" * 22),
    "another version": given("version", 3),
    "a txn that begins with a dash": given("txn", "-" + "B" * 21),
    "a txn that is not 16 bytes": given("txn", "B" * 22),
    "a reserved txn": given("txn", "A" * 21 + "Q"),
    "no previous version": given("previous", None),
    "another previous version": given("previous", "0" * 64),
    "a previous version in capitals": lambda content: given("previous", content["previous"].upper())(content),
    "a query without an id": given("query", {"epoch": 0, "input": None}),
    "a query without an epoch": given("query", {"id": "q", "input": None}),
    "a query without an input": given("query", {"id": "q", "epoch": 0}),
    "a query with a negative epoch": given("query", {"id": "q", "epoch": -1, "input": None}),
    **{f"a query with the input {input!r}": given("query", {"id": "q", "epoch": 0, "input": input}) for input in WRONG_INPUTS},
    "a query that is a string": given("query", "q"),
    "a horizon that falls": given("horizon", 4),
    "a boundary that falls": given("boundary", 4),
    "a configuration of numbers": given("config", {"retention.ms": 1}),
    "partitions that do not fit": given("config", {"partitions": "3"}),
    **{
        f"the configuration {key}={value!r}": given("config", {key: value})
        for key, value in (
            ("partitions", "02"),
            ("max.message.bytes", "127"),
            ("max.message.bytes", str(2**30 + 1)),
            ("max.message.bytes", "0000002048"),
            ("max.message.bytes", "+2048"),
            ("max.message.bytes", "-2048"),
            ("max.message.bytes", " 2048"),
            ("max.message.bytes", "2048\n"),
            ("max.message.bytes", "2048.0"),
            ("max.message.bytes", "2e4"),
            ("max.message.bytes", "0x800"),
            ("max.message.bytes", "٢٠٤٨"),
            ("max.message.bytes", str(2**64 + 2048)),
            ("max.message.bytes", "P7D"),
            ("max.message.bytes", ""),
        )
    },
    **{
        f"{name} of {text}": given(name, named)
        for name in ("starts", "ends")
        for text, named in {
            "an array": (1, 0),
            "no value": None,
            "an end that is no number": {"0": "7"},
            "a fraction": {"0": 7.5},
            "a partition that is not there": {"2": 0},
            "the 10,001st partition": {"10000": 0},
            "a partition with leading zeros": {"00": 7},
            "a negative partition": {"-1": 0},
            "a partition in words": {"one": 0},
            "a partition in other digits": {"\u0661": 0},
            "a partition with a line end": {"0\n": 7},
            "a partition without a name": {"": 0},
        }.items()
    },
    "ends without the partition that grows": given("ends", {}),
    "fewer partitions": lambda content: content.update(config={"partitions": "1"}),
    "starts that fall": given("starts", [0, 0]),
    "a start beyond its end": given("starts", [8, 0]),
    "a negative start": given("starts", [1, -1]),
    "ends that fall": given("ends", [4, 0]),
    "ends beyond what is added": given("ends", [8, 0]),
    "ends before what is added": given("ends", [6, 0]),
    "another partition's end": given("ends", [7, 1]),
    "a segment twice": times(2),
    "no segment": times(0),
    "a segment of no partition": of_segment("partition", 2),
    "a segment of a negative partition": of_segment("partition", -1),
    "a segment of another partition": of_segment("partition", 1),
    "a segment that begins too early": of_segment("base", 4),
    "a segment that begins too late": of_segment("base", 6),
    "a segment that ends before it begins": of_segment("end", 3),
    "an empty segment": of_segment("end", 5),
    "a segment with too many offsets": lambda content: (of_segment("end", 2**31 + 5)(content), given("ends", [2**31 + 5, 0])(content)),
    "a dense segment with too few records": of_segment("records", 1),
    "a dense segment with too many records": of_segment("records", 3),
    "a negative position": of_segment("position", -1),
    "a huge segment": of_segment("bytes", 2**31),
    "more batches than bytes hold": of_segment("batches", 100),
    "a segment of no batch": of_segment("batches", 0),
    "a segment of 60 bytes": of_segment("bytes", 60),
    "a segment beyond the last byte": of_segment("position", BIG - 61),
    "a time below -1": of_segment("minTimestamp", -2),
    "times the wrong way round": of_segment("minTimestamp", TIME + 10**9),
    "offsets of another kind": of_segment("offsets", "sparse"),
    "routed as a number": of_segment("routed", 1),
    "ordered as a number": of_segment("ordered", 1),
    "a negative header checksum": of_segment("headerCrc", -1),
    "a header checksum of 33 bits": of_segment("headerCrc", 2**32),
    "a removed segment that is not live": given("removed", [{"partition": 0, "file": "PLACEHOLDER", "position": 99}]),
    "a removed segment of no partition": given("removed", [{"partition": 2, "file": "PLACEHOLDER", "position": 0}]),
    "a removed segment without a file": given("removed", [{"partition": 0, "position": 0}]),
    "a removed segment that leaves a gap": given("removed", [{"partition": 0, "file": "PLACEHOLDER", "position": 0}]),
    "a removed segment twice": given("removed", [{"partition": 0, "file": "PLACEHOLDER", "position": 0}] * 2),
    "a line end after the txn": lambda content: given("txn", content["txn"] + "\n")(content),
    "a line end after the hash": lambda content: given("previous", content["previous"] + "\n")(content),
    "JSON that nests too deep": given("more", NESTED),
    "millions of empty arrays": given("more", [[]] * 2_100_000),
    **{
        f"a string of {len(text)} characters of {len(text.encode()) // len(text)} bytes": given("more", text)
        for text in ("m" * 32_769, "ä" * 16_385, "€" * 10_923, "\U0001f600" * 8_193)
    },
    "a name that is too long": given("m" * 32_769, 1),
    "a name that is too long, in bytes": given("ä" * 16_385, 1),
    "a key of the configuration that is too long": given("config", {"k" * 32_769: ""}),
    "the id of a query that is too long": given("query", {"id": "ä" * 16_385, "epoch": 0, "input": None}),
    "half a surrogate pair": given("writer", "\ud800"),
    "the other half": given("writer", "\udc00x"),
    "a surrogate pair the wrong way round": given("more", "\udc00\ud800"),
    "half a surrogate pair in an unknown field": given("more", ["\ud800"]),
    "half a surrogate pair in a name": given("\ud800", 1),
    "half a surrogate pair in the configuration": given("config", {"more": "\ud800"}),
    "a fraction in an unknown field": given("more", [1.0]),
    "a number of 65 bits": given("more", BIG),
    "a negative number of 65 bits": given("more", {"number": -BIG - 1}),
    "a number of 4,201 digits": given("more", 10**4_200),
    **{
        f"the file {file}": of_segment("file", file)
        for file in (
            "/etc/passwd",
            "../../../etc/passwd",
            "data/../../../x.log",
            "",
            "data/pool.log",
            f"data/{0:020d}-{identity(0)}/../pool.log",
            f"data/{0:020d}-{identity(0)}/pool.log\n",
            f"data/{0:020d}-{identity(0)}/pool.log/",
            f"data/{0:020d}-{identity(0)}/p01-t0-0-0.log",
            f"data/{0:020d}-{identity(0)}/p0-t0-0.log",
            f"data/{0:020d}-{identity(0)}/t0.log",
            f"data/{0:020d}-{identity(0)}/t٣-0.log",
            f"data/{0:020d}-{'-' + identity(0)[1:]}/pool.log",
            f"data/{0:020d}-{'A' * 22}/pool.log",
            f"data/{0:019d}-{identity(0)}/pool.log",
            f"data/{BIG:020d}-{identity(0)}/pool.log",
        )
    },
}

LATER = [
    ("segment.bytes", "0000002048"),
    ("segment.bytes", "+2048"),
    ("segment.bytes", "-2048"),
    ("segment.bytes", " 2048"),
    ("segment.bytes", "2048\n"),
    ("segment.bytes", "2048.0"),
    ("segment.bytes", "2e4"),
    ("segment.bytes", "0x800"),
    ("segment.bytes", "٢٠٤٨"),
    ("segment.bytes", "1023"),
    ("segment.bytes", str(2**31)),
    ("segment.bytes", str(2**64 + 2048)),
    ("index.interval.bytes", "00"),
    ("index.interval.bytes", "-0"),
    ("compression.type", "LZ4"),
    ("partitioner", "murmur4"),
    ("message.timestamp.type", ""),
    ("segment.ms", "0"),
    ("segment.ms", "-1"),
    ("segment.ms", str(2**63)),
    ("retention.ms", "-2"),
    ("retention.bytes", "-01"),
    ("retention.bytes", str(2**63)),
    ("file.delete.delay.ms", "-1"),
    ("kafka.view", "links"),
    ("placement", "never"),
    ("placement.slots", "4095"),
    ("placement.slots", "1048577"),
    ("retention.ms", "P7D"),
    ("compression.type", "brotli"),
    ("kafka.view", "linked" * 5_000),
    ("key.type", "avro"),
    ("value.type", "avro"),
]
"""Keys of the configuration, each with a value that no program of today knows. Record readers need none of these keys."""

ODD: dict[str, Change] = {
    "unknown fields": given("more", [None, True, {"": [{}, []]}, "", "more"]),
    "an unknown field of a segment": of_segment("more", {"file": "x", "position": 7}),
    "the largest numbers": given("more", [BIG - 1, -BIG]),
    "eight levels": given("more", NESTED[0][0]),
    **{
        f"a string of 32,768 bytes, {len(text)} characters": given("more", text)
        for text in ("m" * 32_768, "ä" * 16_384, "€" * 10_922 + "ä", "\U0001f600" * 8_192)
    },
    "a long name": given("m" * 32_768, 1),
    "a long name of two-byte characters": given("ä" * 16_384, 1),
    "a long key of the configuration": given("config", {"k" * 32_768: "v" * 32_768}),
    "an empty key of the configuration": given("config", {"": ""}),
    **{f"the configuration {key}={value[:20]!r}": given("config", {key: value}) for key, value in LATER},
    **{f"the operation {text[:20]!r}": given("operation", text) for text in ("", "Write", "w" * 32_768, "größer\n")},
    "many keys of the configuration": given("config", {f"key {number}": "" for number in range(2_000)}),
    "an empty query": given("query", {"id": "", "epoch": 0, "input": None, "more": 1}),
    "a long query": given("query", {"id": "ä" * 16_384, "epoch": BIG - 1, "input": "0123456789abcdef"}),
    "the last byte": of_segment("position", BIG - 1 - 1_000),
    "all characters below a space": given("writer", "".join(map(chr, range(0x21)))),
    "characters that are none": given("writer", "\ufeff\ufffe\uffff\x7f\x85\u2028"),
}
"""Changes after which a version file is still right."""
