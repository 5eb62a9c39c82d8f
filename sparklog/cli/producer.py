"""The command that writes lines as records: it reads lines and commits them in batches."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparklog.cli import lines
from sparklog.cli.parameters import Config, Root, TopicName, key_values
from sparklog.cli.show import table
from sparklog.errors import SparklogError
from sparklog.serve.command import require
from sparklog.show.display import counted

if TYPE_CHECKING:
    from sparklog.cli.served import ServedTopic

_PIECE = 1 << 16
_COMMIT_BYTES = 32 << 20
"""A commit has at most about as many bytes of lines, however few records they are."""
_LINE_BYTES = 64 << 20
"""A longer line is refused, so that memory is bounded."""
_COMMIT_RECORDS = 10_000
_COMMIT_S = 1.0
_LOOKS_S = 0.2
"""How often the command looks whether it was interrupted."""


def produce(
    root: Root,
    topic: TopicName,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="The file; by default standard input.", exists=True, dir_okay=False, show_default=False),
    ] = None,
    separator: Annotated[
        str | None, typer.Option("--key-separator", "-K", help="The text between key and value of a line.", show_default=False)
    ] = None,
    null: Annotated[bool, typer.Option("--null", "-Z", help="An empty key or value is null.")] = False,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", help="Write all records to this partition.", min=0, max=2**31 - 1, show_default=False)
    ] = None,
    config: Config = None,
    as_json: Annotated[bool, typer.Option("--json", "-J", help="Each line is an object, in the form that cat --json prints.")] = False,
) -> None:
    """Write lines of a file or a pipe as records.

    Records go through a server of the root that runs, if clients without a password may write there; otherwise through a server of the
    command. Each line is committed in some milliseconds. The topic is created if it does not exist, also by an input without lines. With -K
    a line is a key and a value; a line without the separator is a value. Bytes that are not UTF-8 are written as they are. With --json, a
    line may have key, value, headers, partition and timestamp; topic and offset do not count. A line that is wrong ends the command: the
    lines before it are committed. Ctrl-C commits the lines that were read, and ends. A second Ctrl-C ends at once.

    Examples:
      echo customer-7:hello | sparklog produce my-log orders -K :
      sparklog produce my-log orders -K : -X partitions=4 < orders.txt
    """
    if as_json and (separator is not None or null):
        raise typer.BadParameter("--json goes without -K and -Z: a line says itself what its key is, and what is null")
    if separator == "":
        raise typer.BadParameter("the separator of -K is empty")
    options = key_values(config or (), "-X")
    require("confluent_kafka")  # before the first line is read
    parse = lines.as_json if as_json else lines.plain(lines.delimiter(separator) if separator else None, null=null)
    with file.open("rb") if file else os.fdopen(os.dup(0), "rb") as source:
        into = _Topic(root, topic, options, str(file or "standard input"))
        stopped = _produce(source.fileno(), parse, partition, into, blank=as_json)
    if stopped:
        raise typer.Exit(130)


def _produce(
    fd: int,
    parse: lines.Parser,
    partition: int | None,
    into: _Topic,
    *,
    blank: bool,
) -> bool:
    """Commits all lines of a file or pipe, and prints the commits. Whether an interrupt ended it."""
    held: list[lines.Record] = []
    number, size, since = 0, 0, 0.0

    def commit() -> None:
        nonlocal size
        into.commit(held, number)
        held.clear()
        size = 0

    with _interrupts() as asked:
        try:
            for piece in _pieces(fd, asked):
                for line in piece:
                    if blank and not line.strip():
                        number += 1
                        continue
                    try:
                        if len(line) > _LINE_BYTES:
                            raise ValueError(f"it has more than {_LINE_BYTES:,} bytes")
                        record = parse(line)
                    except ValueError as error:
                        commit()
                        raise SparklogError(
                            "LINE",
                            line=number + 1,
                            source=into.source,
                            reason=error,
                            committed=into.said(),
                            topic=into.name,
                            root=into.root,
                        ) from None
                    if not held:
                        since = time.monotonic()
                    held.append(record if partition is None else dataclasses.replace(record, partition=partition))
                    number += 1
                    size += len(line)
                    if len(held) >= _COMMIT_RECORDS or size >= _COMMIT_BYTES:
                        commit()
                is_idle = not select.select([fd], [], [], 0)[0]
                if held and (is_idle or time.monotonic() - since >= _COMMIT_S):
                    commit()
                if asked():
                    break
            commit()
            if not asked():
                into.exist()
        finally:
            into.end()
        return asked()


def _pieces(fd: int, asked: Callable[[], bool]) -> Iterator[list[bytes]]:
    """The lines of a file or pipe as they come, without their ends; an empty list each time that none came for a while.

    The last line needs no end, unless an interrupt came: then the program that writes it may have been stopped within it.
    """
    prompt = os.isatty(fd)
    begun: list[bytes] = []
    size = 0
    while True:
        if prompt and not begun:
            sys.stderr.write(">")
            sys.stderr.flush()
        while not select.select([fd], [], [], _LOOKS_S)[0]:
            yield []
        piece = os.read(fd, _PIECE)
        if not piece:
            break
        first, *others = piece.split(b"\n")
        begun.append(first)
        size += len(first)
        if others:
            yield [b"".join(begun), *others[:-1]]
            begun, size = [others[-1]] if others[-1] else [], len(others[-1])
        elif size > _LINE_BYTES:
            break
    if begun and not asked():
        yield [b"".join(begun)]


@contextmanager
def _interrupts() -> Iterator[Callable[[], bool]]:
    """Gives a function that returns whether an interrupt came. The first one only sets that; the second one is a KeyboardInterrupt."""
    came = False

    def note(_number: int, _frame: object) -> None:
        nonlocal came
        if came:
            raise KeyboardInterrupt
        came = True

    def asked() -> bool:
        return came

    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


class _Topic:
    """The topic that is written, and the records that it got."""

    def __init__(self, root: str, name: str, config: dict[str, str], source: str) -> None:
        from sparklog import arguments

        self.root, self.name, self.source = arguments.named_root(root), arguments.topic(name), source
        self._config = config
        self._served: ServedTopic | None = None
        self._records = self._lines = 0
        self._placed: dict[int, list[int]] = {}
        """By partition: the first and the last offset, and the number of records."""
        self._began = time.monotonic()

    def commit(self, records: list[lines.Record], lines_read: int) -> None:
        """Commits records, in their order. An error names the lines that are not committed."""
        if not records:
            return
        try:
            for place in self._open().write(records):
                first, _, count = self._placed.get(place.partition, [place.offset, 0, 0])
                self._placed[place.partition] = [first, place.offset, count + 1]
        except BaseException as error:
            self.clear()
            sure = isinstance(error, SparklogError) and not error.id.startswith("SEND_")
            state = "are not committed" if sure else "may be committed or not"
            print(f"Lines {self._lines + 1} to {lines_read} of {self.source} {state}.", file=sys.stderr)
            raise
        self._records += len(records)
        self._lines = lines_read
        if sys.stderr.isatty():
            rate = self._records / (time.monotonic() - self._began)
            sys.stderr.write(f"\r\x1b[K{self.said()}, {rate:,.0f} a second")
            sys.stderr.flush()

    def exist(self) -> None:
        """The end of an input: its options are checked, and the topic is created if it does not exist."""
        if self._served is None and (self._config or not self._exists()):
            self._open()

    def _open(self) -> ServedTopic:
        from sparklog.cli.served import ServedTopic

        self._served = self._served or ServedTopic(self.root, self.name, self._config)
        return self._served

    def _exists(self) -> bool:
        from sparklog.log.log import Log

        try:
            Log(self.root).topic(self.name)
        except SparklogError:
            return False
        return True

    def said(self) -> str:
        """How much was committed."""
        return counted(self._records, "record")

    def end(self) -> None:
        """Prints the offsets of the records."""
        self.clear()
        if self._served:
            with contextlib.suppress(SparklogError):  # `commit` has raised an error for these records
                self._served.close(0 if sys.exc_info()[0] else None)
        rows = [[number, first, last, count] for number, (first, last, count) in sorted(self._placed.items())]
        table(f"{self.said()} to {self.name}", [], ["partition", "first offset", "last offset", "records"], rows)

    @staticmethod
    def clear() -> None:
        """Removes the line of progress."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")


COMMANDS = (produce,)
