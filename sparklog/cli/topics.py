"""Commands about topics: their contents, their files, and the writers of these."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparklog.cli.parameters import Json, Partitions, Root, TopicName, Topics, millis
from sparklog.cli.show import answer, bar, progress, progress_bar, show, table, write, write_json
from sparklog.show.display import Display, counted, field, readable, when

if TYPE_CHECKING:
    from sparklog.log.topic import Topic


def topics(root: Root, as_json: Json = False) -> None:
    """List the topics: partitions, offsets, bytes, times.

    The newest commit of each is shown, too.
    A topic that cannot be read shows its error; `sparklog verify` says more.

    Examples:
      sparklog topics my-log
      sparklog topics my-log --json | jq '.[].topic'
    """
    from sparklog.log.log import Log

    log = Log(root)
    found = list(progress(log.summaries(), None, "topics"))
    rows: list[list[object]] = [
        [each.topic, *[""] * 9, each.error.condition]
        if each.error
        else [
            each.topic,
            _or_empty(each.partitions),
            _or_empty(each.offsets),
            _or_empty(each.bytes),
            _or_empty(each.view_bytes),
            _or_empty(each.segments),
            when(each.min_timestamp),
            when(each.max_timestamp),
            _or_empty(each.version),
            when(each.committed_at),
            "",
        ]
        for each in found
    ]
    columns = ["topic", "partitions", "offsets", "bytes", "view bytes", "segments", "from (UTC)", "to (UTC)", "version"]
    columns += ["committed at (UTC)", "error"]
    if not any(each.error for each in found):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    answer(
        as_json,
        lambda: [each.as_dict() for each in found],
        lambda: Display(f"{log.root}: {counted(len(found), 'topic')}", [], columns, rows),
        ["view bytes", "segments", "from (UTC)", "version", "to (UTC)"],
    )


def describe(
    root: Root,
    names: Topics = None,
    slots: Annotated[bool, typer.Option("--slots", help="Show the busiest slots of each partition, too, by a sample of records.")] = False,
    as_json: Json = False,
) -> None:
    """Describe topics: configuration, and each partition.

    A partition has offsets, records, bytes and times.
    A topic whose partitions were changed shows its routing epoch, the slots of each partition, and which are closed. With
    `--slots`, about 1,000 of the newest records of each partition are read, of at most 32 partitions: which slots they have keys in, and
    which keys.

    Examples:
      sparklog describe my-log orders --slots
      sparklog describe my-log orders --json
    """
    from sparklog import arguments
    from sparklog.errors import SparklogError
    from sparklog.log.log import Log

    logs = arguments.topic_logs(root)
    log = Log(logs)
    wanted = names or log.topics()

    def of(name: str) -> dict[str, Any] | SparklogError:
        try:
            topic = log.topic(name)
            return {**topic.describe(), **({"hot_slots": topic.hot_slots()} if slots else {})}
        except SparklogError as error:
            return error

    # The records of one topic after another are in memory.
    each_at_once = map(of, wanted) if slots else logs.root.store.at_once(of, wanted)
    found: list[dict[str, Any]] = []
    failed: SparklogError | None = None
    for name, about in progress(zip(wanted, each_at_once, strict=True), len(wanted), "topics"):
        if isinstance(about, SparklogError):
            if len(names or ()) == 1:
                raise about
            failed = failed or about
            found.append({"root": log.root, "topic": name, "error": str(about)})
        else:
            found.append(about)
    if as_json:
        found = [{**each, "hot_slots": each["hot_slots"].as_dict()} if "hot_slots" in each else each for each in found]
        write_json(found[0] if names and len(names) == 1 else found)
    else:
        for each in found:
            _describe(each)
            if "hot_slots" in each:
                write("")
                show(each["hot_slots"].display(None), ["different keys"])
    if failed is not None:
        raise failed


def _describe(about: dict[str, Any]) -> None:
    if "error" in about:
        table(f"Topic {about['topic']}", [readable(about["error"], None)], [], [])
        return
    lines = [
        f"id {about['id']}, version {about['version']}, committed at {when(about['committed_at'])} UTC",
        f"{counted(about['records'], 'record')} in {about['bytes']:,} bytes, {counted(about['segments'], 'segment')}{_waiting(about)}",
        f"{about['view_bytes']:,} bytes more in the Kafka view, for copies and indexes",
        ", ".join(f"{name}={readable(value, 200)}" for name, value in sorted(about["config"].items())),
    ]
    columns = ["partition", "start", "end", "records", "bytes", "segments", "from (UTC)", "to (UTC)"]
    rows = [
        [*(each[name] for name in columns[:6]), when(each["min_timestamp"]), when(each["max_timestamp"])] for each in about["partitions"]
    ]
    if about["pending_weights"]:
        lines.append(f"before the next write to be re-routed to the weights {', '.join(map(str, about['pending_weights']))}")
    if about["routing"]:
        lines.append(_routing(about["routing"]))
        columns.insert(3, "slots")
        for row, each in zip(rows, about["partitions"], strict=True):
            row.insert(3, each["slots"] if each["weight"] else "closed")
    table(f"Topic {about['topic']}", lines, columns, rows, ["segments", "from (UTC)", "to (UTC)"])


def _routing(routing: dict[str, Any]) -> str:
    parts = [f"routing epoch {routing['epoch']}, {routing['slots']:,} slots"]
    if routing["unbound"]:
        parts.append(f"{routing['unbound']:,} without a partition yet")
    if routing["shares"]:
        parts.append(f"new keys by the shares {', '.join(map(str, routing['shares']))} until {when(routing['shares_until'])} UTC")
    if routing["closed"]:
        parts.append(f"closed: {', '.join(map(str, routing['closed']))}")
    return "; ".join(parts)


def _waiting(about: dict[str, Any]) -> str:
    waiting = about["waiting"]
    if not waiting or not waiting["files"]:
        return ""
    return f"; {waiting['bytes']:,} bytes in {counted(waiting['files'], 'replaced file')} wait for their deletion"


def segments(root: Root, topic: TopicName, partition: Partitions = None, as_json: Json = False) -> None:
    """List the segments of a topic, and their data files.

    Example:
      sparklog segments my-log orders -p 0
    """
    from sparklog.log.log import Log

    found = Log(root).topic(topic).segments(partition)
    answer(
        as_json,
        lambda: [each._asdict() for each in found],
        lambda: found.display(None, f"Topic {topic}: "),
        ["position", "batches", "from (UTC)", "records", "to (UTC)"],
    )


def commits(
    root: Root,
    topic: TopicName,
    limit: Annotated[int | None, typer.Option("--max", "-n", help="How many of the newest to list.", min=0, show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """List the newest commits of a topic, with writers.

    The newest is the last. Each is shown with the segments that it added or removed.

    Example:
      sparklog commits my-log orders -n 20
    """
    from sparklog.log.log import Log

    found = Log(root).topic(topic).commits(limit)
    if as_json:
        for each in found:
            write(json.dumps({**vars(each), "time": millis(each.time)}))
        return
    show(found.display(None, f"Topic {topic}: "), ["input", "removed", "segments", "query", "writer", "epoch"])


def keys(
    root: Root,
    topic: TopicName,
    names: Annotated[list[str], typer.Argument(metavar="KEY", help="The keys, as UTF-8.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Say which partition holds a key.

    How many records it has there, where and when, is shown, too.
    A key is in other partitions too if its records were written to a partition that the caller chose, or before partitions were added.
    Where that can be, these partitions are read as well.

    Example:
      sparklog keys my-log orders customer-7
    """
    from sparklog.log.log import Log

    of = Log(root).topic(topic)
    found: list[dict[str, Any]] = []
    for key in map(os.fsencode, names):
        placed = of.partition_for(key)
        for partition in sorted(of.partitions_holding(key), key=lambda each: (each != placed, each)):
            held = _held(of, partition, key)
            if partition == placed or held["records"]:
                found.append({"key": key, "partition": partition, "routed": partition == placed, **held})
    columns = ["key", "partition", "routed", "records", "first offset", "last offset", "last time (UTC)"]
    rows = [
        [
            *(readable(each["key"], 60), each["partition"], "here" if each["routed"] else "elsewhere"),
            *(_or_empty(each[name]) for name in ("records", "first", "last")),
            when(each["timestamp"]),
        ]
        for each in found
    ]
    document = [{**field("key", each.pop("key")), **each} for each in found]
    answer(as_json, lambda: document, lambda: Display(f"Topic {topic}", [], columns, rows), ["first offset"])


def _held(of: Topic, partition: int, key: bytes) -> dict[str, Any]:
    """How many records with a key a partition has, the first and the last offset of them, and the time of the last one."""
    records, first, last, time = 0, None, None, None
    with bar(of.end_offsets()[partition] - of.start_offsets()[partition], "records with the key") as advance:
        for batch in of.scan(partition, key=key, columns=["offset", "timestamp"]):
            offsets = batch.column("offset")
            first = offsets[0].as_py() if first is None else first
            last, time = offsets[-1].as_py(), batch.column("timestamp").cast("int64")[-1].as_py() // 1000
            records += batch.num_rows
            advance(batch.num_rows)
    return {"records": records, "first": first, "last": last, "timestamp": time}


def stats(root: Root, topic: TopicName, partition: Partitions = None, as_json: Json = False) -> None:
    """Count records, bytes and keys: skew, hot keys, sizes.

    The time range and the compression of each partition are shown, too. It reads all records.

    Example:
      sparklog stats my-log orders
    """
    from sparklog.log.log import Log

    of = Log(root).topic(topic)
    with progress_bar("records") as advance:
        found = of.stats(partition, progress=advance)
    if as_json:
        write_json(found.as_dict())
    else:
        for number, each in enumerate(found.displays()):
            if number:
                write("")
            table(*each, ["null keys", "value min", "from (UTC)", "max", "to (UTC)"])


def _or_empty(value: Any) -> Any:
    return "" if value is None else value


COMMANDS = (topics, describe, segments, commits, stats, keys)
