"""The command that writes lines as records: it reads lines and commits them in batches."""

from __future__ import annotations

import dataclasses
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparklog.cli import lines, served
from sparklog.cli.parameters import Config, Root, TopicName, key_values
from sparklog.cli.show import table, write
from sparklog.errors import SparklogError
from sparklog.show.display import counted
from sparklog.spark.installed import require_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PIECE = 1 << 16
_COMMIT_BYTES = 32 << 20
"""A commit has at most about as many bytes of lines, however few records they are."""
_LINE_BYTES = 64 << 20
"""A longer line is refused, so that memory is bounded."""
_COMMIT_RECORDS = 10_000
_COMMIT_S = 1.0
_LOOKS_S = 0.2
"""How often the command looks whether it was interrupted."""
_BESIDE = 16
"""The most commits that are searched for the commit that was just made."""


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
    commit_records: Annotated[
        int | None,
        typer.Option("--commit-records", help="Commit after this number of records, by Spark.", min=1, show_default="10000"),
    ] = None,
    commit_seconds: Annotated[
        float | None,
        typer.Option(
            "--commit-seconds",
            help="Commit this many seconds after the first record, by Spark.",
            min=0.0,
            show_default="1",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", "-J", help="Each line is an object, in the form that cat --json prints.")] = False,
) -> None:
    """Write lines of a file or a pipe as records.

    With the extra `serve`, records go through a server, and each line is committed in some milliseconds. Spark writes them without the
    extra, to topics with slots, and if you say when a commit is made. The first commit creates the topic, and starts the server or Spark.
    An input without lines creates it too, and its options are checked. With -K a line is a key and a value; a line without the separator is
    a value. Bytes that are not UTF-8 are written as they are. With --json, a line may have key, value, headers, partition and timestamp;
    topic and offset do not count. A line that is wrong ends the command: the lines before it are committed. Ctrl-C commits the lines that
    were read, and ends. A second Ctrl-C ends at once.

    Examples:
      echo customer-7:hello | sparklog produce my-log orders -K :
      sparklog produce my-log orders -K : -X partitions=4 < orders.txt
    """
    if as_json and (separator is not None or null):
        raise typer.BadParameter("--json goes without -K and -Z: a line says itself what its key is, and what is null")
    if separator == "":
        raise typer.BadParameter("the separator of -K is empty")
    options = key_values(config or (), "-X")
    parse = lines.as_json if as_json else lines.plain(lines.delimiter(separator) if separator else None, null=null)
    with file.open("rb") if file else os.fdopen(os.dup(0), "rb") as source:
        into = _Topic(root, topic, options, str(file or "standard input"), may_serve=commit_records is None and commit_seconds is None)
        if not into.is_served:
            require_pyspark()  # before the first line is read
        most, seconds = commit_records or _COMMIT_RECORDS, _COMMIT_S if commit_seconds is None else commit_seconds
        stopped = _produce(source.fileno(), parse, partition, into, most, seconds, blank=as_json)
    if stopped:
        raise typer.Exit(130)


def _produce(
    fd: int,
    parse: lines.Parser,
    partition: int | None,
    into: _Topic,
    most: int,
    seconds: float,
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
                    if len(held) >= most or size >= _COMMIT_BYTES:
                        commit()
                is_idle = into.is_served and not select.select([fd], [], [], 0)[0]
                if held and (is_idle or time.monotonic() - since >= seconds):
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
    """The topic that is written, and the commits to it."""

    def __init__(self, root: str, name: str, config: dict[str, str], source: str, *, may_serve: bool) -> None:
        from sparklog import arguments

        self.root, self.name, self.source = arguments.named_root(root), arguments.topic(name), source
        self._config = config
        self._spark: SparkSession | None = None
        self._opening = served.opening(str(self.root), self.name, config) if may_serve else None
        self._served: served.ServedTopic | None = None
        self._records = self._commits = self._lines = 0
        self._version = -1
        self._placed: dict[int, list[int]] = {}
        """By partition: the first and the last offset, and the number of records."""
        self._known = True
        self._began = time.monotonic()

    def commit(self, records: list[lines.Record], lines_read: int) -> None:
        """Commits records, in their order: by Spark, as one version. An error names the lines that are not committed."""
        if not records:
            return
        try:
            self._write(records)
        except BaseException as error:
            self.clear()
            sure = isinstance(error, SparklogError) and error.id not in ("COMMIT_UNKNOWN", "SERVE_REFUSED")
            state = "are not committed" if sure else "may be committed or not"
            print(f"Lines {self._lines + 1} to {lines_read} of {self.source} {state}.", file=sys.stderr)
            raise
        self._records += len(records)
        self._commits += 1
        self._lines = lines_read
        if sys.stderr.isatty():
            rate = self._records / (time.monotonic() - self._began)
            sys.stderr.write(f"\r\x1b[K{self.said()}, {rate:,.0f} a second")
            sys.stderr.flush()

    def exist(self) -> None:
        """The end of an input without records: its options are checked like the options of any input, and the topic is created if it does
        not exist.
        """
        if self._commits or (self._newest() >= 0 and not self._config):
            return
        self._write([])
        self._commits = int(self._version < 0)

    @property
    def is_served(self) -> bool:
        """Whether records go through a server."""
        return self._opening is not None

    def _write(self, records: list[lines.Record]) -> None:
        if self._opening is not None and all(map(served.is_sendable, records)):
            self._served = self._served or self._opening()
            for partition, offset in self._served.write(records):
                first, _, count = self._placed.get(partition, [offset, 0, 0])
                self._placed[partition] = [first, offset, count + 1]
            return
        self._write_by_spark(records)
        if records:
            self._place(len(records))

    def _write_by_spark(self, records: list[lines.Record]) -> None:
        from sparklog.cli import spark

        if self._spark is None:
            handler = signal.getsignal(signal.SIGINT)
            self._version = self._newest()
            self._spark = spark.start(1)
            signal.signal(signal.SIGINT, handler)  # Spark's own cancels the commit that runs
        with spark.errors():
            frame = self._spark.createDataFrame(_arrow(records)).coalesce(1)  # one task keeps the order
            frame.write.format("partlog").options(**{**self._config, "topic": self.name}).mode("append").save(str(self.root))

    def said(self) -> str:
        """How much was committed."""
        if self._served:  # clients that write at the same time share commits
            return counted(self._records, "record")
        return f"{counted(self._records, 'record')} in {counted(self._commits, 'commit')}"

    def end(self) -> None:
        """Prints the commits, and their offsets."""
        self.clear()
        if self._served:
            # After an error or a second Ctrl-C, nothing waits.
            self._served.close(0) if sys.exc_info()[0] else self._served.close()
        rows = [[number, first, last, count] for number, (first, last, count) in sorted(self._placed.items())]
        title = f"{self.said()} to {self.name}"
        if self._known:
            table(title, [], ["partition", "first offset", "last offset", "records"], rows)
        else:
            write(f"{title}; others wrote to it at the same time, so it is not known which offsets these are")

    @staticmethod
    def clear() -> None:
        """Removes the line of progress."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")

    def _newest(self) -> int:
        """The newest version of the topic; -1 if it does not exist."""
        from sparklog.log.log import Log

        try:
            return int(Log(self.root).topic(self.name).describe()["version"])
        except SparklogError:
            return -1

    def _place(self, records: int) -> None:
        """Notes which offsets the commit that was just made gave. It is the commit with this number of records, if exactly one exists."""
        from sparklog import arguments

        try:
            newest = arguments.topic_logs(self.root).log(self.name).history(_BESIDE)
        except SparklogError:  # it may have been deleted at once
            self._known = False
            return
        own = [each for each in newest if each.version > self._version and each.operation == "write"]
        found = [each.added for each in own if sum(segment.records for segment in each.added) == records]
        self._version = newest[-1].version
        if len(found) != 1:
            self._known = False
            return
        for segment in found[0]:  # in each partition, in the order of offsets
            first, _, count = self._placed.get(segment.partition, [segment.base, 0, 0])
            self._placed[segment.partition] = [first, segment.end - 1, count + segment.records]


def _arrow(records: list[lines.Record]) -> Any:
    import pyarrow as pa

    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    return pa.table(
        {
            "key": pa.array([each.key for each in records], pa.binary()),
            "value": pa.array([each.value for each in records], pa.binary()),
            "headers": pa.array([each.headers for each in records], pa.list_(header)),
            "partition": pa.array([each.partition for each in records], pa.int32()),
            "timestamp": pa.array(
                [None if each.timestamp is None else each.timestamp * 1000 for each in records], pa.timestamp("us", "UTC")
            ),
        }
    )


COMMANDS = (produce,)
