"""The numbers and texts of a request's query, checked."""

from __future__ import annotations

import re

from starlette.requests import Request

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.ondisk.names import INT64_MAX
from sparklog.ondisk.state import State

_NUMBER = re.compile("[0-9]{1,19}")
_CURSOR = re.compile("[0-9]{1,4}:[0-9]{1,19}(?:,[0-9]{1,4}:[0-9]{1,19})*")
_NEEDLE_MAX = 4_096


def refused(option: str, value: object, reason: str) -> SparklogError:
    """The error that a part of a query is wrong."""
    return SparklogError("OPTION_VALUE", option=option, value=str(value)[:200], reason=reason)


def number(request: Request, name: str, default: int, largest: int = INT64_MAX) -> int:
    """A number from 0 on. A larger one than the largest is an error."""
    return given if (given := maybe_number(request, name, largest)) is not None else default


def maybe_number(request: Request, name: str, largest: int = INT64_MAX) -> int | None:
    """A number from 0 on; None if it is not given."""
    text = request.query_params.get(name, "")
    if not text:
        return None
    if not _NUMBER.fullmatch(text) or int(text) > largest:
        raise refused(name, text, f"it must be a number from 0 to {largest}")
    return int(text)


def word(request: Request, name: str, words: tuple[str, ...]) -> str:
    """One of some words; the first by default."""
    text = request.query_params.get(name, "") or words[0]
    if text not in words:
        raise refused(name, text, f"it must be one of {', '.join(words)}")
    return text


def given_bytes(request: Request, name: str) -> bytes | None:
    """Bytes: a text in UTF-8, or `hex:` and hex digits, which may have spaces; None if it is empty or not given."""
    text = request.query_params.get(name, "")
    if not text:
        return None
    try:
        found = bytes.fromhex(text[4:]) if text.startswith("hex:") else text.encode()
    except ValueError:
        raise refused(name, text, "after hex: there must be pairs of hex digits") from None
    if len(found) > _NEEDLE_MAX:
        raise refused(name, text, f"it must have at most {_NEEDLE_MAX} bytes, and has {len(found)}")
    return found


def millis(request: Request, name: str) -> int | None:
    """A time in milliseconds since 1970-01-01 UTC; None if it is not given."""
    text = request.query_params.get(name, "").strip()
    return arguments.millis(text, name) if text else None


def cursor(request: Request, name: str, state: State, partition: int | None = None) -> dict[int, int] | None:
    """Offsets by partition, as `0:42,3:7`; an offset alone belongs to `partition`, or to the only partition. None if they are not given."""
    text = request.query_params.get(name, "")
    if not text:
        return None
    if _NUMBER.fullmatch(text):
        if partition is None and state.partitions > 1:
            raise refused(name, text, f"an offset needs a partition, and the topic has {state.partitions}: choose one")
        text = f"{partition or 0}:{text}"
    if not _CURSOR.fullmatch(text):
        raise refused(name, text, "it must be an offset, a number from 0 on; of several partitions, 0:42,3:7")
    pairs = [tuple(map(int, pair.split(":"))) for pair in text.split(",")]
    found = {}
    for partition, offset in pairs:
        if partition >= state.partitions or offset > INT64_MAX:
            raise refused(name, f"{partition}:{offset}", f"its partition must be one of 0 to {state.partitions - 1}")
        found[partition] = offset
    return found
