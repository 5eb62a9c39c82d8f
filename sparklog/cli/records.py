"""Commands about records: look at some, print many, follow new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparklog.cli.parameters import Json, Key, Numbers, Partitions, Root, TopicName, key_bytes, millis
from sparklog.cli.show import bar, table, terminal, write
from sparklog.errors import SparklogError
from sparklog.show.display import counted, readable, rows, when

if TYPE_CHECKING:
    import pyarrow as pa

    from sparklog.log.topic import Topic

_SHOWN = 60
_SHOWN_IN_LINES = 1_000
"""The most characters of a value where it may take several lines. `cat` prints all of it."""
COLUMNS = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
Count = Annotated[int, typer.Option("--max-messages", "-n", "-c", help="How many records.", min=0)]


def head(root: Root, topic: TopicName, n: Count = 10, partition: Partitions = None, key: Key = None, as_json: Json = False) -> None:
    """Show the first records, partition by partition.

    Example:
      sparklog head my-log orders -n 3 -p 0
    """
    from sparklog.log.log import Log

    found = Log(root).topic(topic).head(n, partition, key=key_bytes(key), columns=COLUMNS)
    _show(found, f"Topic {topic}, first {counted(found.num_rows, 'record')}", as_json=as_json)


def tail(
    root: Root,
    topic: TopicName,
    n: Count = 10,
    partition: Partitions = None,
    key: Key = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Then print new records as they are committed.")] = False,
    as_json: Json = False,
) -> None:
    """Show the last records; follow new ones with -f.

    The last ones by time are shown, in that order. Partitions that are added are followed too, unless -p is given.

    Examples:
      sparklog tail my-log orders -n 20
      sparklog tail my-log orders -f
    """
    from sparklog.log.log import Log

    of = Log(root).topic(topic)
    # The offsets to follow from are decided first: a record that is committed in between is printed once, by one of the two.
    ends = of.end_offsets()
    found = of.tail(n, partition, key=key_bytes(key), columns=COLUMNS)
    if not follow:
        _show(found, f"Topic {topic}, last {counted(found.num_rows, 'record')}", as_json=as_json)
        return
    print_lines(found, as_json=as_json)
    for number, offset in zip(found["partition"].to_pylist(), found["offset"].to_pylist(), strict=True):
        ends[number] = max(ends[number], offset + 1)
    _follow(root, topic, ends, partition, key_bytes(key), as_json=as_json)


def _follow(root: str, topic: str, starts: dict[int, int], partitions: Numbers | None, wanted: bytes | None, *, as_json: bool) -> None:
    import sys

    from sparklog.consumer import Consumer, TopicPartition

    with Consumer(root, auto_offset_reset="earliest") as consumer, ended_by(consumer.wakeup) as ended:
        if partitions is None:
            consumer.subscribe([topic])  # with the partitions that will be added, and the records that are then in them
        else:
            consumer.assign([TopicPartition(topic, number) for number in partitions])
        for place in consumer.assignment() & {TopicPartition(topic, number) for number in starts}:
            consumer.seek(place, starts[place.partition])
        sys.stdout.flush()
        while not ended:
            for batch in consumer.poll_batches(1000).values():
                import pyarrow.compute as pc

                kept = batch if wanted is None else batch.filter(pc.equal(batch.column("key"), wanted))
                print_lines(kept.select(COLUMNS), as_json=as_json)
            sys.stdout.flush()
    raise SystemExit(128 + ended[0])


@contextmanager
def ended_by(wake: Callable[[], None]) -> Iterator[list[int]]:
    """Gives a list that gets the first SIGINT or SIGTERM, when `wake` is called too. A second one ends the program at once."""
    import signal

    ended: list[int] = []

    def note(number: int, _: object) -> None:
        if ended:
            raise SystemExit(128 + number)
        ended.append(number)
        wake()

    before = {each: signal.signal(each, note) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ended
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def print_lines(records: pa.Table | pa.RecordBatch, *, as_json: bool) -> None:
    """A line for each record."""
    from sparklog.cli import formats

    if as_json:
        with formats.sink("json", None, records.schema) as into:
            for batch in records.to_batches() if hasattr(records, "to_batches") else [records]:
                into(batch)
        return
    for row in rows(records):
        key = "" if row["key"] is None else f"{readable(row['key'], _SHOWN)} "
        write(f"{row['partition']}:{row['offset']} {when(row['timestamp'])} {key}{readable(row['value'], _SHOWN_IN_LINES)}")


def _show(records: pa.Table, title: str, *, as_json: bool) -> None:
    if as_json:
        print_lines(records, as_json=True)
        return
    columns = ["partition", "offset", "timestamp (UTC)", "key", "value", "headers"]
    cells = [
        [
            row["partition"],
            row["offset"],
            when(row["timestamp"]),
            readable(row["key"], _SHOWN),
            readable(row["value"], _SHOWN_IN_LINES if terminal() else 4 * _SHOWN),
            readable(", ".join(f"{each['key']}={readable(each['value'], _SHOWN)}" for each in row["headers"] or ()), 4 * _SHOWN),
        ]
        for row in rows(records)
    ]
    if not any(row[-1] for row in cells):
        columns, cells = columns[:-1], [row[:-1] for row in cells]
    table(title, [], columns, cells)


def cat(
    root: Root,
    topic: TopicName,
    partition: Partitions = None,
    offset: Annotated[
        list[str] | None,
        typer.Option(
            "--offset",
            "-o",
            help="Where to begin: beginning, end, an offset (with -p), -N for the last N, s@TIME; e@TIME or e@end: where to end.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[str | None, typer.Option("--from", help="Only records at or after this time.", show_default=False)] = None,
    until: Annotated[str | None, typer.Option("--to", help="Only records before this time.", show_default=False)] = None,
    key: Key = None,
    limit: Annotated[
        int | None, typer.Option("--max-messages", "-c", "-n", help="How many records at most.", min=0, show_default=False)
    ] = None,
    format: Annotated[
        str,
        typer.Option("--format", "-f", help="text, json, csv, arrow, parquet, or a format as kcat's: '%t %p %o %k %s %T %h %K %S\\n'."),
    ] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-O", help="Write into this file, in place of its content.", show_default=False)
    ] = None,
    as_json: Json = False,
    _to_end: Annotated[bool, typer.Option("-e", help="End at the end offset; it always does.", hidden=True)] = False,
) -> None:
    """Print records: text, JSON, CSV, Arrow or Parquet.

    To a pipe or a file, values are printed byte by byte; in a terminal, an unprintable character becomes an escape. Times are ISO 8601, in
    UTC without a zone, or milliseconds since 1970-01-01 UTC.

    Examples:
      sparklog cat my-log orders -p 0 -o -5
      sparklog cat my-log orders --from 2023-11-14 -f '%o %k %s\\n'
      sparklog cat my-log orders -k customer-7 --json | jq .value
      sparklog cat my-log orders -f parquet -O orders.parquet
    """
    from sparklog import arguments
    from sparklog.cli import formats
    from sparklog.log.log import Log

    if as_json and format not in ("text", "json"):
        reason = "it is given together with --json, which is another format: give one of them"
        raise SparklogError("OPTION_VALUE", option="--format", value=format, reason=reason)
    given = "json" if as_json else format
    of = Log(root).topic(topic)
    starts, ends = _range(of, partition, offset or [])
    wanted = formats.needed(given)
    earliest, latest = arguments.times(since, until, ("--from", "--to"))
    reader = of.scan(partition, starts, ends, limit, key=key_bytes(key), columns=wanted, since=earliest, until=latest)
    total = sum(ends.values()) - sum(starts.values())
    progress: AbstractContextManager[Any] = bar(total, "records") if not terminal() or output else nullcontext(lambda _: None)
    with progress as advance, formats.sink(given, output, reader.schema) as into:
        for batch in reader:
            into(batch)
            advance(batch.num_rows)


def _range(topic: Topic, partitions: Numbers | None, offsets: list[str]) -> tuple[dict[int, int], dict[int, int]]:
    """The first offset, and the offset to stop before, by partition."""
    starts, ends = topic.start_offsets(), topic.end_offsets()
    first, last = dict(starts), dict(ends)
    for text in offsets:
        if text in ("beginning", "earliest", "e@end", "e@latest"):
            continue
        if text in ("end", "latest"):
            first = dict(ends)
        elif text.startswith(("s@", "e@")):
            found = topic.offsets_for_time(millis(text[2:], "--offset"))
            first, last = (found, last) if text[0] == "s" else (first, found)
        elif text.startswith("-") and text[1:].isdecimal():
            first = {number: max(starts[number], end - int(text[1:])) for number, end in ends.items()}
        elif text.isdecimal():
            if partitions is None and len(ends) > 1:
                raise SparklogError("OPTION_VALUE", option="--offset", value=text, reason="an offset needs a partition: add -p")
            first = dict.fromkeys(partitions or [0], int(text))
        else:
            reason = "it must be beginning, end, an offset, -N, s@TIME or e@TIME"
            raise SparklogError("OPTION_VALUE", option="--offset", value=text, reason=reason)
    asked = [number for number in (ends if partitions is None else partitions) if number in first]
    for number in asked:
        # An end by time may be before the first offset that was asked for: then there is nothing, unless that offset is out of range.
        if last.get(number) != ends.get(number) and first[number] <= ends[number]:
            first[number] = min(first[number], last[number])
    return {number: first[number] for number in asked}, {number: last[number] for number in asked if number in last}


COMMANDS = (head, tail, cat)
