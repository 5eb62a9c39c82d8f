"""What callers of `Log` and `Topic` give, checked: a TypeError or a CallError names the argument and what it was."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Mapping, Sequence

from sparklog.errors import SparklogError
from sparklog.ondisk.columns import SCHEMA
from sparklog.ondisk.state import State

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_KAFKAS_NAMES = "leave `start` out for the earliest offset and `end` for the latest, and take tail(n) for the last n records"


def integer(name: str, given: object, instead: str = "") -> int:
    try:
        return operator.index(given)  # type: ignore[arg-type] # that is the question
    except TypeError:
        raise TypeError(f"`{name}` is {given!r}, of type {type(given).__name__}; it must be an integer{instead}") from None


def count(name: str, given: object) -> int:
    number = integer(name, given)
    if number < 0:
        raise SparklogError("OPTION_VALUE", option=name, value=number, reason="it must not be negative")
    return number


def partitions(state: State, root: str, given: object, name: str = "partition") -> list[int]:
    """The partition that is named, or all where none is."""
    if given is None:
        return list(range(state.partitions))
    number = integer(name, given)
    if not 0 <= number < state.partitions:
        raise SparklogError("PARTITION_NOT_FOUND", option=name, partition=number, topic=state.topic, root=root, last=state.partitions - 1)
    return [number]


def offsets(state: State, root: str, name: str, given: object, asked: Sequence[int], otherwise: Sequence[int]) -> list[int]:
    """The offset of each of the partitions that are asked for: the one given for it, or for all of them, or else `otherwise`."""
    if not isinstance(given, Mapping):
        given = {} if given is None else dict.fromkeys(asked, given)
    for named in given:
        partitions(state, root, named, name)
    found = []
    for partition in asked:
        offset = integer(name, given.get(partition, otherwise[partition]), f", or a dict of such by partition; {_KAFKAS_NAMES}")
        if offset in (-1, -2):
            raise SparklogError("OPTION_VALUE", option=name, value=offset, reason=f"offsets begin at 0; {_KAFKAS_NAMES}")
        if not state.starts[partition] <= offset <= state.ends[partition]:
            raise SparklogError(
                "OFFSETS_OUT_OF_RANGE",
                option=name,
                offset=offset,
                topic=state.topic,
                partition=partition,
                root=root,
                start=state.starts[partition],
                end=state.ends[partition],
            )
        found.append(offset)
    return found


def columns(given: object) -> list[str]:
    """The names of the columns that are wanted, in the caller's order; all of them where none are named."""
    if given is None:
        return list(SCHEMA.names)
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"`columns` is {given!r}, of type {type(given).__name__}; it must be a list of names")
    if unknown := [name for name in given if name not in SCHEMA.names]:
        raise SparklogError("OPTION_VALUE", option="columns", value=given, reason=f"{unknown[0]!r} is not one of {', '.join(SCHEMA.names)}")
    if not given or len(set(given)) < len(given):
        raise SparklogError("OPTION_VALUE", option="columns", value=given, reason="it must name one column or more, each of them once")
    return list(given)


def millis(given: object) -> int:
    """A time as milliseconds since 1970-01-01 UTC; between two of them, the later."""
    time = given
    if isinstance(time, str):
        try:
            time = datetime.datetime.fromisoformat(re.sub("[zZ]$", "+00:00", time))
        except ValueError:
            raise SparklogError("OPTION_VALUE", option="time", value=given, reason="it is not a time in ISO 8601") from None
    if not isinstance(time, datetime.datetime):
        instead = " (milliseconds since 1970-01-01 UTC), a datetime with a time zone, or a time in ISO 8601 with one"
        return max(integer("time", time, instead), -(2**63))
    if time.tzinfo is None:
        reason = "it must have a time zone, as 2024-05-01T12:00:00Z or a datetime in datetime.timezone.utc has"
        raise SparklogError("OPTION_VALUE", option="time", value=given, reason=reason)
    return -((_EPOCH - time) // datetime.timedelta(milliseconds=1))
