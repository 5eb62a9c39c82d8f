"""Lines as records: a value, a key and a value, or an object in the form that `cat --json` prints."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_FIELDS = ("topic", "partition", "offset", "timestamp", "key", "key_base64", "value", "value_base64", "headers")
_INT, _MILLIS = 2**31 - 1, (2**63 - 1) // 1000


@dataclass(frozen=True)
class Record:
    """A record to write. Without a partition the partitioner chooses; without a timestamp (ms) it is the time of the write."""

    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: list[dict[str, Any]] = field(default_factory=list)


Parser = Callable[[bytes], Record]
"""Makes a record of a line. ValueError, in words that end a sentence, if the line is not a record."""


def delimiter(text: str) -> bytes:
    r"""A separator as kcat takes it: `\t`, `\n` and `\x1e` are the bytes that they name."""
    named = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"0": b"\0"}

    def replace(found: re.Match[bytes]) -> bytes:
        return bytes([int(found[1], 16)]) if found[1] else named.get(found[2], found[2])

    return re.sub(rb"\\(?:x([0-9a-fA-F]{1,2})|(.))", replace, os.fsencode(text), flags=re.DOTALL)


def plain(separator: bytes | None, *, null: bool) -> Parser:
    """Lines that are a value, or a key, the separator and a value; without the separator a value. With `null`, an empty text is null."""

    def parse(line: bytes) -> Record:
        first, found, rest = line.partition(separator) if separator else (line, b"", b"")
        key, value = (first, rest) if found else (None, line)
        return Record((value or None) if null else value, (key or None) if null else key)

    return parse


def as_json(line: bytes) -> Record:
    """A line that is an object as `cat --json` prints it. Its topic and its offset do not count: the log that is written gives them."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON ({error})") from None
    if not isinstance(given, dict):
        raise ValueError("it is not an object of JSON")
    if unknown := [name for name in given if name not in _FIELDS]:
        raise ValueError(f"it has a field {unknown[0]!r}; the fields of a record are {', '.join(_FIELDS)}")
    if "value" not in given and "value_base64" not in given:
        raise ValueError("it has no field 'value'; a record without a value has null there")
    headers = given.get("headers")
    if headers is not None and not (isinstance(headers, list) and all(isinstance(each, dict) for each in headers)):
        raise ValueError("'headers' must be a list of objects with 'key' and 'value'")
    return Record(
        _octets(given, "value"),
        _octets(given, "key"),
        _number(given, "partition", 0, _INT),
        _number(given, "timestamp", 1, _MILLIS),  # librdkafka takes 0 for the present time
        [_header(each) for each in headers or ()],
    )


def _header(given: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(given.get("key"), str):
        raise ValueError("a header must have a 'key' that is text")
    if b"\0" in _utf8(given["key"], "key of a header"):
        raise ValueError("the 'key' of a header must not have a NUL character")  # librdkafka would cut it there
    return {"key": given["key"], "value": _octets(given, "value")}


def _number(given: dict[str, Any], name: str, least: int, most: int) -> int | None:
    number = given.get(name)
    if number is not None and (not isinstance(number, int) or isinstance(number, bool) or not least <= number <= most):
        raise ValueError(f"{name!r} must be a whole number from {least} to {most}, or null")
    return number


def _octets(given: dict[str, Any], name: str) -> bytes | None:
    """The bytes of a field: text, or base64 under `<name>_base64`."""
    encoded = f"{name}_base64"
    if name in given and encoded in given:
        raise ValueError(f"it has both {name!r} and {encoded!r}")
    text = given.get(name, given.get(encoded))
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"{name!r} must be text or null; write other JSON as text, as '{{\"a\":1}}'")
    if name in given:
        return _utf8(text, name)
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise ValueError(f"{encoded!r} is not base64") from None


def _utf8(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} has half of a surrogate pair, which UTF-8 cannot encode") from None
