"""The files of offsets that Kafka's tools take and write: JSON and CSV."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterable
from typing import Any

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups.rows import Position

_FORMATS = ("json", "csv")
_NUMBER = re.compile("-?[0-9]+")


def written(positions: Iterable[Position], format: str) -> str:
    """The positions as JSON that kafka-delete-records.sh takes, or as CSV that kafka-consumer-groups.sh takes with --from-file."""
    _require_format(format)
    places = [{"topic": each.topic, "partition": each.partition, "offset": each.offset} for each in positions]
    if format == "json":
        return json.dumps({"partitions": places, "version": 1})
    return "".join(f"{each['topic']},{each['partition']},{each['offset']}\n" for each in places)


def read(text: str, format: str, group: str) -> dict[str, dict[int, int]]:
    """The offsets of a group in such a file. Lines of CSV may begin with a group: then only lines of this group count."""
    _require_format(format)
    if not isinstance(text, str):
        raise TypeError(f"`text` is of type {type(text).__name__}; it must be a string, the content of a file and not its path")
    text = text.removeprefix("\ufeff")  # spreadsheets begin files with it
    found: dict[str, dict[int, int]] = {}
    for where, topic, partition, offset in (_of_json if format == "json" else _of_csv)(text, group):
        if partition in found.setdefault(topic, {}):
            raise _not_readable(f"{where} names partition {partition} of topic {topic} a second time")
        found[topic][partition] = offset
    if not found:
        raise _not_readable(f"it has no offset of group {group}")
    return found


def _of_csv(text: str, group: str) -> Iterable[tuple[str, str, int, int]]:
    lines = csv.reader(io.StringIO(text), strict=True)
    for number in itertools.count(1):
        try:
            line = next(lines, None)
        except csv.Error as error:
            raise _not_readable(f"line {number} is not CSV: {error}") from None
        if line is None:
            return
        if not line:
            continue
        if len(line) not in (3, 4):
            raise _not_readable(f"line {number} has {len(line)} fields, not topic,partition,offset or group,topic,partition,offset")
        if len(line) == 4 and line[0] != group:
            continue
        topic, partition, offset = (field.strip() for field in line[-3:])
        try:
            if not _NUMBER.fullmatch(partition) or not _NUMBER.fullmatch(offset):
                raise ValueError  # Python's own numbers, as 1_000, are not Kafka's
            yield f"line {number}", topic, int(partition), int(offset)
        except ValueError:
            raise _not_readable(f"line {number} has partition {partition!r} and offset {offset!r}, which must be numbers") from None


def _of_json(text: str, _: str) -> Iterable[tuple[str, str, int, int]]:
    try:
        content = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise _not_readable(f"it is not JSON: {error}") from None
    entries = content.get("partitions") if isinstance(content, dict) else None
    if not isinstance(entries, list) or content.get("version", 1) != 1:
        raise _not_readable('it is not {"partitions": [{"topic": …, "partition": …, "offset": …}, …], "version": 1}')
    for number, entry in enumerate(entries, 1):
        topic, partition, offset = (entry.get(name) if isinstance(entry, dict) else None for name in ("topic", "partition", "offset"))
        if not isinstance(topic, str) or type(partition) is not int or type(offset) is not int:
            raise _not_readable(f"entry {number} does not have a topic (text), a partition and an offset (integers)")
        yield f"entry {number}", topic, partition, offset


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        twice = next(name for number, (name, _) in enumerate(members) if name in dict(members[:number]))
        raise _not_readable(f"an object in it has {twice!r} twice")
    return found


def _require_format(format: str) -> None:
    arguments.choice("format", format, _FORMATS)


def _not_readable(reason: str) -> SparklogError:
    return SparklogError("OFFSETS_FILE", reason=reason)
