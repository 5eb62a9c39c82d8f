"""The JSON of version files and checkpoints, with every field checked. FORMAT.md sections 5, 6 and 10."""

from __future__ import annotations

import json
from typing import Any

from sparklog.ondisk.names import INT64_MAX
from sparklog.store.store import Damaged

DEPTH_MAX = 8
STRING_BYTES_MAX = 32 * 1024
CONTAINERS_MAX = 2_100_000
"""Enough for a million segments added and a million removed. Without this limit, empty arrays could take 30 times their bytes in memory."""


class Fields:
    """The fields of a JSON object. Each method raises Damaged if the field is missing or has another type."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise Damaged("it holds something other than a JSON object where one belongs")
        self._fields: dict[str, Any] = value

    def value(self, name: str) -> Any:
        """The field, of any type."""
        try:
            return self._fields[name]
        except KeyError:
            raise Damaged(f"it has no `{name}`") from None

    def integer(self, name: str, least: int = 0, most: int = INT64_MAX) -> int:
        """An integer from `least` to `most`."""
        return integer(self.value(name), name, least, most)

    def string(self, name: str) -> str:
        """A string."""
        return string(self.value(name), name)

    def mark(self, name: str) -> bool:
        """Whether the field is there: its only value is true."""
        if name not in self._fields:
            return False
        if self._fields[name] is not True:
            raise Damaged(f"`{name}` is not true")
        return True

    def array(self, name: str, most: int) -> list[Any]:
        """An array of at most `most` elements of any type."""
        value = self.value(name)
        if type(value) is not list:
            raise Damaged(f"`{name}` is not an array")
        if len(value) > most:
            raise Damaged(f"`{name}` has {len(value)} entries, more than {most}")
        return value

    def integers(self, name: str, most: int) -> tuple[int, ...]:
        """An array of at most `most` integers from 0 to 2⁶³ − 1."""
        return tuple(integer(value, name, 0, INT64_MAX) for value in self.array(name, most))

    def strings(self, name: str) -> dict[str, str]:
        """An object all of whose fields are strings."""
        value = self.value(name)
        if type(value) is not dict or not all(type(text) is str for text in value.values()):
            raise Damaged(f"`{name}` is not an object of strings")
        return value

    def __contains__(self, name: str) -> bool:
        return name in self._fields


def integer(value: object, name: str, least: int, most: int) -> int:
    """The value of the field `name`, an integer from `least` to `most`. Damaged if it is anything else."""
    if type(value) is not int:
        raise Damaged(f"`{name}` is not an integer")
    if not least <= value <= most:
        raise Damaged(f"`{name}` is {value}, out of range")
    return value


def string(value: object, name: str) -> str:
    """The value of the field `name`, a string. Damaged if it is anything else."""
    if type(value) is not str:
        raise Damaged(f"`{name}` is not a string")
    return value


def boolean(value: object, name: str) -> bool:
    """The value of the field `name`, true or false. Damaged if it is anything else."""
    if type(value) is not bool:
        raise Damaged(f"`{name}` is neither true nor false")
    return value


def parse(text: bytes) -> Any:
    """The JSON value of a text. Damaged if it is not JSON, or exceeds a limit."""
    containers = text.count(b"[") + text.count(b"{")
    if containers > CONTAINERS_MAX:
        raise Damaged(f"it has {containers} opening brackets and braces, and {CONTAINERS_MAX} is the limit")
    try:
        value = json.loads(text.decode(), object_pairs_hook=_object, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise Damaged("it is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Damaged(f"it is not JSON ({error})") from None
    _require_bounded(value, DEPTH_MAX)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Damaged("it names a field twice")
    return fields


def _no_constant(name: str) -> Any:
    raise Damaged(f"it holds {name}, which is not JSON")


def _require_bounded(value: object, depth: int) -> None:
    if isinstance(value, str):
        # JSON can express half of a surrogate pair, but it can be neither stored nor shown.
        try:
            size = len(value) if value.isascii() else len(value.encode())
        except UnicodeEncodeError:
            raise Damaged("it holds half of a surrogate pair") from None
        if size > STRING_BYTES_MAX:
            raise Damaged(f"it holds a string of {size} bytes, and {STRING_BYTES_MAX} is the limit")
    elif isinstance(value, dict | list):
        if not depth:
            raise Damaged(f"it nests deeper than {DEPTH_MAX}")
        for inner in value.values() if isinstance(value, dict) else value:
            _require_bounded(inner, depth - 1)
        if isinstance(value, dict):
            for name in value:
                _require_bounded(name, depth - 1)
    elif isinstance(value, float) or (type(value) is int and not -INT64_MAX - 1 <= value <= INT64_MAX):
        raise Damaged("it holds a number that is not an integer of 64 bits")
