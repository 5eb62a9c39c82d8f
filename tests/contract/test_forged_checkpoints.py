"""Checkpoints whose checksums are right and whose content is not: both readers return what the versions say, or the same error."""

import hashlib
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from handmade import Topic, batch, identity, records
from logtool import LogTool

from sparklog import Log, SparklogError

Lines = list[Any]
UNDETECTED = {
    # It is of a version that is not there.
    "hash": ["VERSION_CORRUPT"],
    # Below the log start offset segments may be gone, and so may begin anywhere.
    "line 1 holds 1 to 3, not 0 to 3": ["BATCH_CORRUPT"],
}


def topic_of(root: Path, name: str, *, older: bool) -> tuple[Topic, Lines]:
    """A topic of two partitions whose newest checkpoint is of version 5 of 7, and that checkpoint's lines; or also one of version 2."""
    topic = Topic(root, name, partitions=2)
    for number in range(6):
        if number == 3 and older:
            topic.checkpoint()
        both = [topic.data(batch(records(3, f"{number}-{partition}")), partition) for partition in (0, 1)]
        topic.commit(*both, starts=[2 if number == 5 else 0, 0])
    path = topic.checkpoint()
    lines = [json.loads(line.split(b"\t")[0]) for line in path.read_bytes().splitlines()]
    path.unlink()
    # The next commit removes segments of the checkpoint, of one partition.
    first, second = topic.live[0][3:5]
    topic.commit(topic.data(batch(records(3, "6-1")), 1))
    joined = topic.data(batch(records(6, "joined")), 0)
    topic.commit({**joined, "base": first["base"], "end": second["end"]}, removed=[first, second], ends=topic.versions[-1]["ends"])
    return topic, lines


def forgeries(lines: Lines) -> Iterator[tuple[str, Lines]]:
    """Each changes one field, or leaves lines out."""

    def changed(line: int, key: Any, value: Any) -> Lines:
        copy = json.loads(json.dumps(lines))
        copy[line][key] = value
        return copy

    head = lines[0]
    for name in ("time", "horizon", "boundary"):
        for by in (-1, 1, 1000):
            if head[name] + by >= 0:
                yield f"{name} by {by}", changed(0, name, head[name] + by)
    # Readers trust the start of partition 1, which version 5 does not change.
    for name, partition in (("starts", 0), ("ends", 0), ("ends", 1)):
        for to in (0, 1, head["starts"][0], head[name][partition] - 1, head[name][partition] + 1, head["ends"][0], 1 << 40):
            offsets = list(head[name])
            offsets[partition] = to
            if offsets != head[name]:
                yield f"{name}[{partition}] is {to}", changed(0, name, offsets)
    yield "topicId", changed(0, "topicId", identity("another"))
    yield "hash", changed(0, "hash", hashlib.sha256(b"").hexdigest())
    yield "deleted", changed(0, "deleted", True)
    empty = [{**head, "starts": head["ends"], "segments": [0, 0], "deleted": True}]
    yield "deleted, as a whole", empty
    yield "nothing", [{**head, "starts": [0, 0], "ends": [0, 0], "segments": [0, 0]}]
    yield "nothing of partition 1", [{**head, "ends": [head["ends"][0], 0], "segments": [6, 0]}, *lines[1:7]]
    # The lines of the segments are there, and are bytes behind the last line.
    yield "segments that are not counted", [{**head, "segments": [6, 5]}, *lines[1:]]
    yield "no segments", [{**head, "segments": [0, 0]}]
    yield "too few segments", [{**head, "segments": [6, 5]}, *lines[1:12]]
    yield "config", changed(0, "config", {**head["config"], "retention.ms": "5"})
    yield "queries", changed(0, "queries", [["q", 1, None, 1]])
    for line in range(1, len(lines)):
        base, end = lines[line][4:6]
        for key, shift in ((4, (-1, 1)), (5, (-1, 1))):
            for by in shift:
                copy = json.loads(json.dumps(lines))
                copy[line][key] += by
                copy[line][6] = copy[line][5] - copy[line][4]
                if copy[line][4] >= 0:
                    yield f"line {line} holds {copy[line][4]} to {copy[line][5]}, not {base} to {end}", copy
        yield f"line {line} is gone", [{**head, "segments": [6 - (line < 7), 6 - (line > 6)]}, *lines[1:line], *lines[line + 1 :]]
        yield f"line {line} is there twice", [{**head, "segments": [6 + (line < 7), 6 + (line > 6)]}, *lines[1 : line + 1], *lines[line:]]


def python(root: Path, topic: str) -> list[str]:
    try:
        found = Log(root).topic(topic).read(columns=["partition", "offset", "value"]).to_pylist()
    except SparklogError as error:
        return [error.id]
    return [f"{each['partition']} {each['offset']} {each['value'].decode()}" for each in found]


def java(tool: LogTool, topic: str) -> list[str]:
    lines = tool.outcome("read", topic=topic)
    return [line for line in lines if not line.startswith("version ")]


@pytest.mark.parametrize(
    "older", [pytest.param(False, id="versions"), pytest.param(True, id="an older checkpoint", marks=pytest.mark.slow)]
)
def test_a_field_that_is_not_that_of_the_versions(tool: LogTool, older: bool) -> None:
    """The versions are all there, so the answer is the right one, unless the checkpoint has to be trusted."""
    right, lines = topic_of(tool.root, "right", older=older)
    right.put_checkpoint(5, lines)
    answer = python(tool.root, "right")
    assert len(answer) == 37 and java(tool, "right") == answer
    rules = [rule for rule, _ in forgeries(lines)]
    assert len(rules) > 80
    for number, rule in enumerate(rules):
        topic, its = topic_of(tool.root, f"t{number}", older=older)
        topic.put_checkpoint(5, next(islice(forgeries(its), number, None))[1])
        expected = UNDETECTED.get(rule, answer)
        assert python(tool.root, topic.name) == expected, rule
        assert java(tool, topic.name) == expected, rule
