"""Version files that each break one rule of FORMAT.md section 5: both readers must refuse them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from handmade import TIME, Topic, batch, given, identity, records, summed, without

Change = Callable[[dict[str, Any]], object]


def write_two_versions(topic: Topic) -> dict[str, Any]:
    """Versions 0 and 1 of a topic of two partitions, and the content of a right version 2; the first partition then ends at offset 7."""
    topic.append(records(5))
    topic.commit(horizon=5, boundary=5, starts=[1, 0])
    added = [topic.data(batch(records(2)))]
    return {**topic.versions[-1], "version": 2, "txn": identity("x"), "previous": topic.hash, "config": {}, "ends": [7, 0], "added": added}


def write_third(topic: Topic, content: dict[str, Any]) -> Path:
    """Writes a version 2. In it, PLACEHOLDER stands for the name of the first data file."""
    file = topic.version_file(2)
    file.write_bytes(summed(json.dumps(content).replace("PLACEHOLDER", topic.versions[0]["added"][0]["file"]).encode()))
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
    *("format", "features", "topic", "topicId", "version", "txn", "previous", "time", "operation", "writer", "query", "horizon"),
    *("boundary", "config", "starts", "ends", "removed", "added"),
]
SEGMENT_FIELDS = [
    *("partition", "file", "position", "bytes", "base", "end", "records", "batches", "minTimestamp", "maxTimestamp"),
    *("offsets", "routed", "ordered", "headerCrc"),
]
BIG = 2**63
NESTED: Any = 0
for _ in range(9):
    NESTED = [NESTED]
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
    "features are no strings": given("features", [1]),
    "another topic": given("topic", "other"),
    "another topic id": given("topicId", identity("other")),
    "a topic id of 21 characters": given("topicId", "A" * 21),
    "a reserved topic id": given("topicId", "A" * 22),
    "another version": given("version", 3),
    "a txn that begins with a dash": given("txn", "-" + "B" * 21),
    "a txn that is no 16 bytes": given("txn", "B" * 22),
    "a reserved txn": given("txn", "A" * 21 + "Q"),
    "no previous version": given("previous", None),
    "another previous version": given("previous", "0" * 64),
    "a previous version in capitals": lambda content: given("previous", content["previous"].upper())(content),
    "an operation in capitals": given("operation", "Write"),
    "no operation": given("operation", ""),
    "a long operation": given("operation", "w" * 33),
    "a query without an epoch": given("query", {"id": "q"}),
    "a query with a negative epoch": given("query", {"id": "q", "epoch": -1}),
    "a query that is a string": given("query", "q"),
    "a horizon that falls": given("horizon", 4),
    "a boundary that falls": given("boundary", 4),
    "a configuration of numbers": given("config", {"retention.ms": 1}),
    "partitions that do not fit": given("config", {"partitions": "3"}),
    "starts of one partition": given("starts", [0]),
    "ends of one partition": given("ends", [7]),
    "no partitions": lambda content: content.update(starts=[], ends=[], added=[]),
    "fewer partitions": lambda content: content.update(starts=[0], ends=[7], config={"partitions": "1"}),
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
    "JSON that nests too deep": given("more", NESTED),
    "a string that is too long": given("more", "m" * (32 * 1024 + 1)),
    "a long string in two bytes a character": given("more", "ä" * (32 * 1024 + 1)),
    "half a surrogate pair": given("writer", "\ud800"),
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
