"""The findings of the readers in Java and in Python on topics, in the same words."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from broken_rules import Change
from handmade import Topic
from logtool import LogTool

from sparklog import Log, SparklogError


def verdict(root: Path, topic: str) -> str:
    """The finding of the reader in Python, in the format of `LogTool states`."""
    try:
        Log(root).topic(topic).read()
    except SparklogError as error:
        return error.id
    return "ok"


def told(tool: LogTool, names: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The findings of both readers, by what was done to the topic."""
    here = {rule: verdict(tool.root, name) for name, rule in names.items()}
    return here, {names[name]: found for name, found in (line.split(" ") for line in tool.run("states"))}


def agree_on_versions(tool: LogTool, cases: Mapping[tuple[str, str], tuple[Callable[[Topic, Change], object], Change, str]]) -> None:
    """Both readers find what is expected, of topics of two partitions that `put` makes with a change, each in a topic of its own.

    `cases` has the put, the change and the finding, by the kind of the version and the rule.
    """
    names = {f"t{number}": f"{kind}: {rule}" for number, (kind, rule) in enumerate(cases)}
    for name, (put, change, _) in zip(names, cases.values(), strict=True):
        put(Topic(tool.root, name, partitions=2), change)
    _agree(tool, names, {f"{kind}: {rule}": found for (kind, rule), (_, _, found) in cases.items()})


def agree_on_checkpoints(
    tool: LogTool, made: Callable[[Topic], Any], wrong: Mapping[str, Change], right: Mapping[str, Change], features: list[dict[str, str]]
) -> None:
    """Both readers take the checkpoints whose heads have a right change, and no wrong one, of topics that `made` makes.

    The versions before the checkpoint's are deleted: either it is valid, or these versions are missing.
    """
    changes = {**wrong, **right}
    names = {f"t{number}": rule for number, rule in enumerate(changes)}
    for name, rule in names.items():
        topic = Topic(tool.root, name, partitions=2)
        path = topic.checkpoint(features=features, routing=made(topic).routing())
        lines = [json.loads(line.split(b"\t")[0]) for line in path.read_bytes().splitlines()]
        path.unlink()
        newest = len(topic.versions) - 1
        for version in range(newest):
            topic.version_file(version).unlink()
        changes[rule](lines[0])
        topic.put_checkpoint(newest, lines)
    _agree(tool, names, dict.fromkeys(wrong, "VERSION_MISSING") | dict.fromkeys(right, "ok"))


def _agree(tool: LogTool, names: dict[str, str], expected: dict[str, str]) -> None:
    here, there = told(tool, names)
    assert here == expected, {name: (here.get(name), right) for name, right in expected.items() if here.get(name) != right}
    assert there == expected
