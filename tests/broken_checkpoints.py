"""Checkpoints that each break one rule of FORMAT.md section 6. Readers must skip them."""

from collections.abc import Callable
from typing import Any

from broken_rules import BIG, WRONG_INPUTS, Change
from handmade import SEGMENT_FIELDS, given, without

LINES: dict[str, Callable[[list[Any]], Any]] = {
    "no array": lambda line: {"partition": 0},
    **{f"only {number} fields": lambda line, number=number: line[:number] for number in range(len(SEGMENT_FIELDS))},
    **{f"{name} is null": lambda line, nth=nth: [*line[:nth], None, *line[nth + 1 :]] for nth, name in enumerate(SEGMENT_FIELDS)},
    "a fraction": lambda line: [*line[:3], 1.0, *line[4:]],
    "a truth for the kind of offsets": lambda line: [*line[:10], True, *line[11:]],
    "offsets of another kind": lambda line: [*line[:10], "sparse", *line[11:]],
    "a number for a truth": lambda line: [*line[:11], 1, *line[12:]],
    "another partition": lambda line: [1 - line[0], *line[1:]],
    "a name that leaves the root": lambda line: [line[0], "../x.log", *line[2:]],
    "another base": lambda line: [*line[:4], line[4] + 1, *line[5:]],
    "another end": lambda line: [*line[:5], line[5] + 1, *line[6:]],
    "a long line": lambda line: [*line, {"more": ["x" * 30_000] * 3}],
    "no batch": lambda line: [*line[:7], 0, *line[8:]],
    "a negative time": lambda line: [*line[:8], -2, *line[9:]],
    "a position beyond the last byte": lambda line: [*line[:2], BIG - 61, *line[3:]],
    "a checksum of 33 bits": lambda line: [*line[:13], 2**32, *line[14:]],
    "a fraction in an unknown field": lambda line: [*line, {"more": 1.5}],
    "an index of a negative length": lambda line: [*line, {"index": -1}],
    "an index of a length that no segment has": lambda line: [*line, {"index": (1 << 18) + 1}],
    "an index that is null": lambda line: [*line, {"index": None}],
    "an index without a name": lambda line: [*line, 176],
    "an array in place of the object": lambda line: [*line, [["index", 176]]],
    "a value behind the object": lambda line: [*line, {"index": 0}, 0],
    **{f"{name} twice": lambda line, name=name, nth=nth: [*line, {name: line[nth]}] for nth, name in enumerate(SEGMENT_FIELDS)},
    "null": lambda line: None,
}
"""Changes that break the line of a segment."""

ODD_LINES: dict[str, Callable[[list[Any]], Any]] = {
    "further fields": lambda line: [*line, {"index": 0, "filter": {"file": "x", "position": 7}, "": [1, [2]], "more": -BIG}],
    "a further field that is null": lambda line: [*line, {"filter": None}],
    "further fields that are long": lambda line: [*line, {"filter": "x" * 32_768, "more": "y" * 32_000}],
    "an object without fields": lambda line: [*line, {}],
    "offsets that are tiled": lambda line: [*line[:10], "tiled", *line[11:]],
}
"""Changes after which the line of a segment is still right."""

HEADS: dict[str, Change] = {
    **{
        f"no {name}": without(name)
        for name in (
            "format",
            "features",
            "topic",
            "topicId",
            "version",
            "hash",
            "time",
            "horizon",
            "boundary",
            "config",
            "starts",
            "ends",
            "queries",
            "segments",
        )
    },
    "too few segments": given("segments", [5, 4]),
    "too many segments": given("segments", [5, 6]),
    "segments of one partition": given("segments", [10]),
    "segments of the wrong partitions": given("segments", [4, 6]),
    "another topic": given("topic", "other"),
    "another version": given("version", 8),
    "queries of numbers": given("queries", [1]),
    **{f"a query of {count} values": given("queries", [["q", 1, None, 1, None][:count]]) for count in (0, 1, 2, 3, 5)},
    **{f"a query with the input {input!r}": given("queries", [["q", 1, input, 1]]) for input in WRONG_INPUTS},
    "queries of an object": given("queries", [{"0": "q", "1": 1, "2": None, "3": 1}]),
    "a query without a name": given("queries", [[1, 1, None, 1]]),
    "a query with a fraction": given("queries", [["q", 1.0, None, 1]]),
    "a query with a negative epoch": given("queries", [["q", -1, None, 1]]),
    **{f"a query with the time {time!r}": given("queries", [["q", 1, None, time]]) for time in (None, -1, 1.0, BIG)},
    "a query twice": given("queries", [["q", 1, None, 1], ["p", 1, None, 1], ["q", 1, None, 1]]),
    "a hash in capitals": given("hash", "A" * 64),
    "a short hash": given("hash", "a" * 63),
    "a topic id that is none": given("topicId", "topic"),
    "a negative horizon": given("horizon", -1),
    "a boundary of text": given("boundary", "0"),
    "ends of one partition": given("ends", [6]),
    "a start beyond its end": given("starts", [100, 0]),
    "another number of partitions": lambda head: head["config"].update(partitions="3"),
    "a number with a zero before it": lambda head: head["config"].update(partitions="02"),
    "a configuration without a key": lambda head: head["config"].pop("max.message.bytes"),
    "a configuration of numbers": lambda head: head["config"].update(more=1),
    **{f"deleted is {value!r}": given("deleted", value) for value in (True, False, None, 1)},
    "a string that is too long": given("more", "m" * 32_769),
    "a number of 65 bits": given("more", BIG),
}
"""Changes that break the head of a checkpoint."""
