"""Checks the arguments of public calls. A TypeError or a CallError names the argument and its value.

It does not import Arrow, so that a program that only configures Spark does not wait for that.
"""

from __future__ import annotations

import datetime
import operator
import os
import re
from collections.abc import ItemsView, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from sparklog.errors import SparklogError
from sparklog.ondisk import names
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_logs import TopicLogs

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from sparklog.ondisk.state import State

F = TypeVar("F")
K = TypeVar("K")
V = TypeVar("V")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)
TIME = (
    "milliseconds since 1970-01-01 UTC (a number of ten digits counts seconds: append 000), or ISO 8601 as 2024-05-01, "
    "2024-05-01T12:00Z or 2024-05-01 12:00:30.5+02:00, in UTC without a zone"
)
"""The forms of a text that is a time; docs/guide/reading-and-writing.md has the whole grammar, and `io.sparklog.spec.TimeText` the same."""
_NUMBER = re.compile("-?[0-9]{1,19}")
_SECONDS = range(10**9, 10**10)
"""Seconds since 1970-01-01 UTC from 2001 to 2286. As milliseconds, these numbers are in the first months of 1970."""
_SHARE = re.compile("([0-9]{1,5})/([0-9]{1,5})")
_ISO_8601 = re.compile(
    "([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[Tt ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:[.]([0-9]{1,9}))?)?)?"
    "(?: ?(?:[Zz]|([+-])([0-9]{2})(?::?([0-9]{2}))?))?)?"
)
_KAFKAS_NAMES = "leave `start` out for the earliest offset and `end` for the latest, and take tail(n) for the last n records"


def integer(name: str, given: object, instead: str = "") -> int:
    """The argument as an integer. TypeError if it is not one, as True is not; `instead` names other types that the argument can have."""
    try:
        if isinstance(given, bool):
            raise TypeError
        return operator.index(given)  # type: ignore[arg-type] # that is the question
    except TypeError:
        raise TypeError(f"`{name}` is {given!r}, of type {type(given).__name__}; it must be an integer{instead}") from None


def boolean(name: str, given: object) -> bool:
    """The argument, which is True or False, or NumPy's. A text is refused: `"false"` is true to Python, and a setting may be one."""
    if isinstance(given, bool) or (type(given).__module__ == "numpy" and type(given).__name__ in ("bool", "bool_")):
        return bool(given)
    raise TypeError(f"`{name}` is {given!r}, of type {type(given).__name__}; it must be True or False")


def function(name: str, given: F) -> F:
    """The argument, which can be called, or is None."""
    if given is None or callable(given):
        return given
    raise TypeError(f"`{name}` is {given!r}, of type {type(given).__name__}; it must be a function")


def count(name: str, given: object, most: int | None = None) -> int:
    """The argument as an integer of 0 or more, and at most `most`."""
    number = integer(name, given)
    if number < 0:
        raise SparklogError("OPTION_VALUE", option=name, value=number, reason="it must not be negative")
    if most is not None and number > most:
        raise SparklogError("OPTION_VALUE", option=name, value=number, reason=f"it must be {most:,} or less")
    return number


def positive(name: str, given: object) -> int:
    """The argument as an integer of 1 or more."""
    number = integer(name, given)
    if number <= 0:
        raise SparklogError("OPTION_VALUE", option=name, value=number, reason="it must be positive")
    return number


def between(name: str, given: object, least: int, most: int) -> int:
    """The argument as an integer from `least` to `most`."""
    number = integer(name, given)
    if not least <= number <= most:
        raise SparklogError("OPTION_VALUE", option=name, value=number, reason=f"it must be from {least:,} to {most:,}")
    return number


def long(name: str, given: object) -> int:
    """The argument as an integer of 0 or more that 64 bits hold."""
    number = count(name, given)
    if number >= 2**63:
        raise SparklogError("OPTION_VALUE", option=name, value=number, reason="it must be less than 2^63")
    return number


def choice(name: str, given: object, words: Sequence[str]) -> None:
    """Checks that these words contain the argument. CallError otherwise."""
    if given not in words:
        raise SparklogError("OPTION_VALUE", option=name, value=given, reason=f"it must be one of {', '.join(words)}")


def text(name: str, given: object) -> str:
    """The argument as a string that UTF-8 can encode."""
    if not isinstance(given, str):
        raise TypeError(f"`{name}` is {given!r}, of type {type(given).__name__}; it must be a string")
    try:
        given.encode()
    except UnicodeEncodeError:
        reason = "it must be text that UTF-8 can encode"
        raise SparklogError("OPTION_VALUE", option=name, value=repr(given[:200]), reason=reason) from None
    return given


def path(name: str, given: object) -> str:
    """The argument as a path or URL: a string, or what stands for one, as pathlib.Path does."""
    found = given.__fspath__() if isinstance(given, os.PathLike) else given
    if not isinstance(found, str):
        if isinstance(getattr(given, name, None), str):  # a Log has a root, and an OffsetTable a path
            raise TypeError(f"`{name}` is of type {type(given).__name__}; it must be a path or URL: give its `.{name}`")
        raise TypeError(f"`{name}` is {given!r}, of type {type(given).__name__}; it must be a path or URL: a string, or a pathlib.Path")
    return found


def texts(name: str, given: object) -> list[str]:
    """The argument as strings: one, or a collection of them."""
    if not isinstance(given, Iterable):
        raise TypeError(f"`{name}` is {given!r}, of type {type(given).__name__}; it must be a name, or a list of names")
    return [text(name, each) for each in ([given] if isinstance(given, str) else given)]


def duration(name: str, given: object) -> float:
    """The argument as a number of 0 or more, infinity too."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"`{name}` is {given!r}, of type {type(given).__name__}; it must be a number")
    if not given >= 0:
        raise SparklogError("OPTION_VALUE", option=name, value=given, reason="it must be a number, and not negative")
    return given


def mapping(name: str, given: Mapping[K, V]) -> ItemsView[K, V]:
    """The keys and values of the argument. TypeError if it is not a dict."""
    if not isinstance(given, Mapping):
        raise TypeError(f"`{name}` is {given!r}, of type {type(given).__name__}; it must be a dict")
    return given.items()


def topic_logs(
    given: str | os.PathLike[str] | Root | TopicLogs, filesystem: FileSystem | None = None, most: int | None = None
) -> TopicLogs:
    """The topics of the root that `named_root` makes of this, or the given ones as they are; `most` is as in `TopicLogs`.

    CallError if the root does not exist (ROOT_NOT_FOUND and others).
    """
    if isinstance(given, TopicLogs):
        return given
    found = TopicLogs(named_root(given, filesystem), most)
    found.root.require()
    return found


def named_root(given: str | os.PathLike[str] | Root, filesystem: FileSystem | None = None) -> Root:
    """The root that a caller names, which need not be there: by a path, `file:` and a path, or a URL; `Log` explains them.

    `filesystem` is a FileSystem of pyarrow, through which the root is read. CallError ROOT_REQUIRED, STORE_UNSUPPORTED, OPTION_VALUE.
    """
    return given if isinstance(given, Root) else Root.at(path("root", given), filesystem)


def topic(given: object, name: str = "name") -> str:
    """The argument as the name of a topic, which need not exist."""
    if not isinstance(given, str):
        raise TypeError(f"`{name}` is {given!r}, of type {type(given).__name__}; it must be a string")
    if not names.is_topic(given):
        reason = "it is '.' or '..'" if given in (".", "..") else "it is empty, too long, or has other characters"
        raise SparklogError("TOPIC_NAME_ILLEGAL", topic=given, reason=reason)
    return given


def share(given: object) -> tuple[int, int]:
    """A share of partitions, `k/n`, as k and n: k is from 1 to n."""
    found = _SHARE.fullmatch(text("share", given))
    place, parts = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= place <= parts:
        reason = "it must be k/n with k from 1 to n, as 2/5 for the second of five shares"
        raise SparklogError("OPTION_VALUE", option="share", value=given, reason=reason)
    return place, parts


def partitions(state: State, root: Root | None, given: object, name: str = "partition") -> list[int]:
    """The given partition alone; all partitions if it is None."""
    if given is None:
        return list(range(state.partitions))
    number = integer(name, given)
    if not 0 <= number < state.partitions:
        raise SparklogError("PARTITION_NOT_FOUND", option=name, partition=number, topic=state.topic, root=root, last=state.partitions - 1)
    return [number]


def some_partitions(state: State, root: Root, given: object) -> list[int]:
    """The given partition, or the partitions of a collection, each once and in order; all partitions if it is None."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return partitions(state, root, given)
    return sorted({number for each in given for number in partitions(state, root, integer("partition", each))})


def offsets(state: State, root: Root, name: str, given: object, asked: Sequence[int], default: Sequence[int]) -> list[int]:
    """An offset for each of the partitions `asked`: the offset given for it, or the offset given for all, or the offset in `default`.

    CallError if an offset is not between the partition's log start offset and its end offset.
    """
    if not isinstance(given, Mapping):
        given = {} if given is None else dict.fromkeys(asked, given)
    for named in given:
        partitions(state, root, named, name)
    found = []
    for partition in asked:
        offset = integer(name, given.get(partition, default[partition]), f", or a dict of such by partition; {_KAFKAS_NAMES}")
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
                way="Ask for offsets in that range",
            )
        found.append(offset)
    return found


def offset_ranges(state: State, root: Root, start: object, end: object, asked: Sequence[int]) -> list[tuple[int, int, int]]:
    """Each of the partitions `asked` with its offsets from `start` to before `end`, which are given as to `offsets`.

    CallError as `offsets`, and OFFSETS_BACKWARDS.
    """
    firsts = offsets(state, root, "start", start, asked, state.starts)
    ends = offsets(state, root, "end", end, asked, state.ends)
    ranges = list(zip(asked, firsts, ends, strict=True))
    for partition, first, stop in ranges:
        if stop < first:
            raise SparklogError(
                "OFFSETS_BACKWARDS",
                topic=state.topic,
                partition=partition,
                root=root,
                starting="start",
                start=first,
                ending="end",
                end=stop,
            )
    return ranges


def columns(given: object) -> list[str]:
    """The given names of columns, in the caller's order; all columns if it is None."""
    from sparklog.batches.columns import SCHEMA

    if given is None:
        return list(SCHEMA.names)
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"`columns` is {given!r}, of type {type(given).__name__}; it must be a list of names")
    if unknown := [name for name in given if name not in SCHEMA.names]:
        raise SparklogError("OPTION_VALUE", option="columns", value=given, reason=f"{unknown[0]!r} is not one of {', '.join(SCHEMA.names)}")
    if not given or len(set(given)) < len(given):
        raise SparklogError("OPTION_VALUE", option="columns", value=given, reason="it must name one column or more, each of them once")
    return list(given)


def millis(given: object, name: str = "time") -> int:
    """A time as milliseconds since 1970-01-01 UTC, rounded up: an integer is that, and a text is of the form that `TIME` describes.

    CallError if it is not a time, or an integer of ten digits, which counts seconds.
    """
    if isinstance(given, str):
        return _millis_of_text(given, name)
    if not isinstance(given, datetime.datetime):
        instead = f" (milliseconds since 1970-01-01 UTC), a datetime with a time zone, or a text: {TIME}"
        if (number := integer(name, given, instead)) in _SECONDS:
            raise _no_time(name, number)
        return max(number, -(2**63))
    if given.tzinfo is None:
        reason = "it must have a time zone, as a datetime in datetime.timezone.utc has"
        raise SparklogError("OPTION_VALUE", option=name, value=given, reason=reason)
    return -((_EPOCH - given) // _MILLISECOND)


def times(since: object, until: object, names: tuple[str, str] = ("since", "until")) -> tuple[int | None, int | None]:
    """The times from `since` to before `until` as `millis`; None is without a bound. CallError if they are the wrong way round."""
    found = tuple(None if time is None else millis(time, name) for time, name in zip((since, until), names, strict=True))
    if found[0] is not None and found[1] is not None and found[1] < found[0]:
        reason = f"it is before `{names[0]}`, {since}: give a time that is not before it"
        raise SparklogError("OPTION_VALUE", option=names[1], value=until, reason=reason)
    return found[0], found[1]


def _no_time(name: str, given: object) -> SparklogError:
    return SparklogError("OPTION_VALUE", option=name, value=given, reason=f"it is not a time; a time is {TIME}")


def _millis_of_text(text: str, name: str) -> int:
    refused = _no_time(name, text[:200])
    if _NUMBER.fullmatch(text.strip()):
        if -(2**63) <= (number := int(text)) < 2**63 and number not in _SECONDS:
            return number
        raise refused
    found = _ISO_8601.fullmatch(text.strip())
    if not found:
        raise refused
    date, hour, minute, second, fraction, sign, zone_hour, zone_minute = found.groups()
    ahead = int(zone_hour or 0) * 60 + int(zone_minute or 0)
    try:
        local = datetime.datetime.fromisoformat(f"{date}T{hour or '00'}:{minute or '00'}:{second or '00'}+00:00")
    except ValueError:
        raise refused from None
    if int(zone_hour or 0) > 23 or int(zone_minute or 0) > 59:
        raise refused
    nanos = int((fraction or "").ljust(9, "0"))
    return (local - _EPOCH) // _MILLISECOND - (-ahead if sign == "-" else ahead) * 60_000 - (-nanos // 1_000_000)
