"""The JSON of version files and checkpoints, taken apart with suspicion. FORMAT.md sections 5, 6 and 10."""

from __future__ import annotations

import json
from typing import Any

from sparklog.ondisk.faults import Damaged, TooNew
from sparklog.ondisk.names import INT64_MAX

FORMAT = 1
DEPTH_MAX = 8
STRING_BYTES_MAX = 32 * 1024
CONTAINERS_MAX = 2_100_000
"""A million segments added and as many removed, and some room. Empty arrays instead would take thirty times their bytes in memory."""


class Fields:
    """The fields of a JSON object; asking for one that is missing or of another type finds the damage."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise Damaged("it holds something else than a JSON object where one belongs")
        self._fields: dict[str, Any] = value

    def value(self, name: str) -> Any:
        try:
            return self._fields[name]
        except KeyError:
            raise Damaged(f"it has no `{name}`") from None

    def integer(self, name: str, least: int = 0, most: int = INT64_MAX) -> int:
        return integer(self.value(name), name, least, most)

    def string(self, name: str) -> str:
        value = self.value(name)
        if type(value) is not str:
            raise Damaged(f"`{name}` is no string")
        return value

    def boolean(self, name: str) -> bool:
        value = self.value(name)
        if type(value) is not bool:
            raise Damaged(f"`{name}` is neither true nor false")
        return value

    def array(self, name: str, most: int) -> list[Any]:
        value = self.value(name)
        if type(value) is not list:
            raise Damaged(f"`{name}` is no array")
        if len(value) > most:
            raise Damaged(f"`{name}` has {len(value)} entries, more than {most}")
        return value

    def integers(self, name: str, most: int) -> tuple[int, ...]:
        return tuple(integer(value, name, 0, INT64_MAX) for value in self.array(name, most))

    def strings(self, name: str) -> dict[str, str]:
        value = self.value(name)
        if type(value) is not dict or not all(type(text) is str for text in value.values()):
            raise Damaged(f"`{name}` is no object of strings")
        return value

    def require_known_format(self) -> None:
        format = self.integer("format", least=1)
        if format > FORMAT:
            raise TooNew(f"its format is {format}, known is {FORMAT}")
        features = self.array("features", most=INT64_MAX)
        if not all(type(feature) is str for feature in features):
            raise Damaged("`features` holds something else than strings")
        if features:
            raise TooNew(f"it needs the features {', '.join(features)}")


def integer(value: object, name: str, least: int, most: int) -> int:
    if type(value) is not int:
        raise Damaged(f"`{name}` is no integer")
    if not least <= value <= most:
        raise Damaged(f"`{name}` is {value}, out of range")
    return value


def parse(text: bytes) -> Any:
    """A JSON value that keeps to the limits."""
    containers = text.count(b"[") + text.count(b"{")
    if containers > CONTAINERS_MAX:
        raise Damaged(f"it has {containers} brackets and braces that open, and {CONTAINERS_MAX} is the limit")
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
        # Half of a surrogate pair can be written in JSON, but neither stored nor shown.
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
        raise Damaged("it holds a number that is no integer of 64 bits")
