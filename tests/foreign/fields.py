"""The fields of version files and checkpoints, written from docs/FORMAT.md alone. The numbers in comments are sections of that page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from foreign.batches import Refused

MAX = 2**63 - 1
LINE = 64 << 10
Test = Callable[[Any], bool]

# 2: names


def pattern(text: str) -> Test:
    compiled = re.compile(text, re.ASCII)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


_ID = "[A-Za-z0-9_][A-Za-z0-9_-]{20}[AQgw]"
_NUMBER = "(0|[1-9][0-9]{0,18})"
_OTHER = "[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,127}"
_IS_ID = pattern(_ID)
_IS_DATA = pattern(rf"data/[0-9]{{20}}-{_ID}/(p(0|[1-9][0-9]{{0,3}})-t{_NUMBER}-{_NUMBER}-{_NUMBER}|t{_NUMBER}-{_NUMBER}|pool)\.log")
_IS_SHARED = pattern(f"_shared/{_OTHER}/{_OTHER}")
LOG_NAME = re.compile(r"([0-9]{20})\.(json|deleted|checkpoint-[0-9a-f]{16}\.jsonl)", re.ASCII)


def identity(value: Any) -> bool:
    return _IS_ID(value) and value not in ("A" * 22, "A" * 21 + "Q")


def topic_name(value: Any) -> bool:
    return pattern("[a-zA-Z0-9._-]{1,249}")(value) and value not in (".", "..")


def data_name(value: Any) -> bool:
    return _IS_SHARED(value) or (_IS_DATA(value) and int(value[5:25]) <= MAX and identity(value[26:48]))


# 5.1: types of fields


def whole(least: int = 0, most: int = MAX) -> Test:
    return lambda value: type(value) is int and least <= value <= most


def array(item: Test) -> Test:
    return lambda value: isinstance(value, list) and all(map(item, value))


def mapping(name: Test, item: Test) -> Test:
    return lambda value: isinstance(value, dict) and all(name(each) and item(value[each]) for each in value)


def text(value: Any) -> bool:
    return isinstance(value, str)


def boolean(value: Any) -> bool:
    return type(value) is bool


def optional(test: Test) -> Test:
    return lambda value: value is None or test(value)


def fits(value: Any, fields: dict[Any, Test]) -> bool:
    """Whether it is an object with these fields."""
    return isinstance(value, dict) and all(name in value and test(value[name]) for name, test in fields.items())


def corrupt(right: object, why: str) -> None:
    """A wrong field makes a version file corrupt, or a checkpoint damaged."""
    if not right:
        raise Refused("VERSION_CORRUPT", why)


INPUT = pattern("[0-9a-f]{16}")
PLACE = {"partition": whole(0, 9999), "file": data_name, "position": whole()}
SEGMENT = {
    **PLACE,
    **{name: whole() for name in ("bytes", "base", "end", "records")},
    "batches": whole(1),
    **{name: whole(-1) for name in ("minTimestamp", "maxTimestamp")},
    "offsets": lambda value: value in ("dense", "tiled"),
    "routed": boolean,
    "ordered": boolean,
    "headerCrc": whole(0, 2**32 - 1),
}
"""The fields of a segment, in the order of a checkpoint's line (6.1)."""
FEATURE = {"name": pattern("[a-z0-9.-]{1,64}"), "binds": text}
HEAD = {
    "topicId": identity,
    "version": whole(),
    "time": whole(),
    "horizon": whole(),
    "boundary": whole(),
    "config": mapping(text, text),
}
OFFSETS = mapping(pattern("0|[1-9][0-9]{0,3}"), whole())
VERSION = {
    **HEAD,
    "txn": identity,
    "previous": optional(pattern("[0-9a-f]{64}")),
    "operation": text,
    "writer": text,
    "query": optional(lambda value: fits(value, {"id": text, "epoch": whole(), "input": optional(INPUT)})),
    "starts": OFFSETS,
    "ends": OFFSETS,
    "removed": lambda value: array(lambda item: fits(item, PLACE))(value) and len(value) <= 1_000_000,
    "added": lambda value: array(lambda item: fits(item, SEGMENT))(value) and len(value) <= 1_000_000,
}
QUERY: dict[Any, Test] = {0: text, 1: whole(), 2: optional(INPUT), 3: whole()}
"""An entry of `queries` in the head of a checkpoint (6.1)."""
CHECKPOINT = {
    **HEAD,
    "hash": pattern("[0-9a-f]{64}"),
    "starts": array(whole()),
    "ends": array(whole()),
    "queries": array(lambda value: isinstance(value, list) and len(value) == 4 and fits(dict(enumerate(value)), QUERY)),
    "segments": array(whole()),
}
FEATURES = {"routing.slots": ("keyReaders", None), "routing.unbound": ("keyReaders", "routing.slots"), "producers": ("writers", None)}
"""By name: `binds`, and the feature that it requires."""


def decimal(least: int, most: int) -> Test:
    return lambda value: pattern("-1|0|[1-9][0-9]{0,18}")(value) and least <= int(value) <= most


# 5.3: JSON


def parsed(octets: bytes) -> Any:
    corrupt(octets.count(b"[") + octets.count(b"{") <= 2_100_000, "10: too many [ and {")
    depth = 0
    for bracket in re.sub(rb'"(?:[^"\\]|\\.)*"|[^\[{}\]]', b"", octets, flags=re.DOTALL):
        depth += 1 if bracket in b"[{" else -1
        corrupt(depth <= 8, "10: it nests too deep")
    try:
        # Only a decoder that is given text refuses a byte order mark.
        found = json.loads(octets.decode(), object_pairs_hook=_object, parse_int=_integer, parse_float=_integer, parse_constant=_integer)
    except (ValueError, RecursionError) as error:
        raise Refused("VERSION_CORRUPT", f"5.3: {error}") from None
    _check_texts(found)
    return found


def _integer(digits: str) -> int:
    value = int(digits) if len(digits) <= 20 else MAX + 1
    if not -MAX - 1 <= value <= MAX:
        raise ValueError("a number out of range")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field twice")
    return found


def _check_texts(value: Any) -> None:
    if isinstance(value, str):
        corrupt(not re.search("[\ud800-\udfff]", value) and len(value.encode()) <= 32_768, "5.3, 10: a text")
    elif isinstance(value, (list, dict)):
        for each in value:
            _check_texts(each)
        if isinstance(value, dict):
            _check_texts(list(value.values()))


def place(segment: dict[str, Any]) -> tuple[int, str, int]:
    return segment["partition"], segment["file"], segment["position"]


def check_segment(segment: dict[str, Any]) -> None:
    """5.4."""
    size, count = segment["end"] - segment["base"], segment["records"]
    corrupt(0 < size < 2**31 and segment["bytes"] < 2**31, "10: the size of a segment")
    corrupt(count == size if segment["offsets"] == "dense" else count <= size, "5.4: records")
    corrupt(segment["bytes"] >= 61 * segment["batches"] and segment["position"] + segment["bytes"] <= MAX, "5.4: bytes")
    corrupt(segment["minTimestamp"] <= segment["maxTimestamp"], "5.4: times")
    corrupt(whole(0, 262_144)(segment.get("index", 0)), "5.1: index")


def check_rebuilt(rebuilt: Any, topic_id: str) -> None:
    """D.1."""
    pair = lambda value: isinstance(value, list) and len(value) == 2 and all(map(array(whole()), value))  # noqa: E731
    corrupt(fits(rebuilt, {"topic": topic_name, "topicId": identity, "version": whole(), "passed": array(pair)}), "D.1: a field")
    passed = rebuilt["passed"]
    corrupt(passed and rebuilt["topicId"] != topic_id, "D.1: the origin")
    corrupt(sum(len(one) + len(two) for one, two in passed) <= 1_000_000, "10: too many numbers")
    for side in (0, 1):
        lengths = {len(each[side]) for each in passed}
        corrupt(len(lengths) == 1 and 1 <= min(lengths) <= 10_000, "D.1: the lengths of arrays")
        for one, two in pairwise(passed):
            corrupt(all(a <= b for a, b in zip(one[side], two[side], strict=True)), "D.1: an offset falls")
