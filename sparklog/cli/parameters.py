"""The arguments and options that several commands have."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterable
from typing import Annotated

import typer

from sparklog.errors import SparklogError


def _topics(context: typer.Context, incomplete: str) -> list[str]:
    """The topics that a shell offers to complete a word."""
    from sparklog.log.log import Log

    root = context.params.get("root")  # None if it cannot be read
    try:
        return [name for name in Log(root).topics() if name.startswith(incomplete)] if root else []
    except SparklogError:  # without a root there is nothing to offer
        return []


def _groups(context: typer.Context, incomplete: str) -> list[str]:
    """The groups that a shell offers to complete a word, if it is known in which table they are."""
    from sparklog.groups import OffsetTable

    try:
        table = context.params.get("at_table") or os.environ["SPARKLOG_OFFSETS"]
        return [name for name in OffsetTable(None, table).groups() if name.startswith(incomplete) and name.isprintable()]
    except (SparklogError, KeyError):
        return []


class Numbers(tuple[int, ...]):
    """The partitions of an option, each once and in order: `3`, or `0,2`."""


_NUMBERS = re.compile(r"[0-9]{1,9}(,[0-9]{1,9})*")


def numbers(text: str, example: str = "0,2") -> Numbers:
    """Partitions as an option gives them."""
    if not _NUMBERS.fullmatch(text):
        raise typer.BadParameter(f"{text!r} names no partitions; they are numbers from 0 on with commas, as {example}")
    return Numbers(sorted(set(map(int, text.split(",")))))


Root = Annotated[str, typer.Argument(metavar="ROOT", help="The directory or URL that holds the topics.", show_default=False)]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The name of the topic.", show_default=False, autocompletion=_topics)]
Group = Annotated[str, typer.Argument(metavar="GROUP", help="The name of the group.", show_default=False, autocompletion=_groups)]
Topics = Annotated[
    list[str] | None,
    typer.Argument(metavar="TOPIC", help="The topics; by default all.", show_default=False, autocompletion=_topics),
]
Config = Annotated[
    list[str] | None,
    typer.Option(
        "--config", "-X", metavar="KEY=VALUE", help="An option of the topic that is created; may be repeated.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", "-J", help="Print JSON.")]
Partitions = Annotated[
    Numbers | None,
    typer.Option("--partition", "-p", help="Only these partitions, such as 3 or 0,2.", parser=numbers, metavar="N[,N]", show_default=False),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        "-k",
        help="Only records with this key, from all partitions that may hold it, or from those of -p.",
        show_default=False,
    ),
]
_TABLE = typer.Option("--table", "-t", envvar="SPARKLOG_OFFSETS", help="The Delta table of the groups' offsets.", show_default=False)
Table = Annotated[str, _TABLE]
SomeTable = Annotated[str | None, _TABLE]


def key_values(given: Iterable[str], flag: str) -> dict[str, str]:
    """The keys and values of an option that may be repeated, each given as KEY=VALUE."""
    pairs = [each.partition("=") for each in given]
    if wrong := [key for key, equals, _ in pairs if not equals or not key]:
        raise typer.BadParameter(f"{flag} is given as KEY=VALUE, not {wrong[0]!r}")
    return {key.strip(): value.strip() for key, _, value in pairs}


def key_bytes(key: str | None) -> bytes | None:
    """A key as the bytes that the shell gave."""
    return None if key is None else os.fsencode(key)


def millis(time: datetime.datetime | str, option: str = "time") -> int:
    """A time as milliseconds since 1970-01-01 UTC."""
    from sparklog import arguments

    return arguments.millis(time, option)
