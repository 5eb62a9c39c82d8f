"""The command that prints record batches and their records, line by line as Kafka's DumpLogSegments does."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparklog.cli.parameters import Json, Partitions, Root, TopicName
from sparklog.cli.show import complain, write
from sparklog.errors import SparklogError
from sparklog.show.display import field, readable, rows

if TYPE_CHECKING:
    import pyarrow as pa

    from sparklog.log.batches import Batch
    from sparklog.log.topic import Topic

_SEQUENCES = 1 << 31
"""Sequence numbers begin at 0 again after the last number that an int32 holds."""


def dump(
    root: Root,
    topic: TopicName,
    partition: Partitions = None,
    batches_only: Annotated[bool, typer.Option("--batches", help="Only the batches, not their records.")] = False,
    data: Annotated[bool, typer.Option("--print-data-log", help="The keys and values of records too.")] = False,
    _deep: Annotated[bool, typer.Option("--deep-iteration", help="The records too; this is the default.", hidden=True)] = False,
    as_json: Json = False,
) -> None:
    """Dump record batches as Kafka's DumpLogSegments does.

    Their positions and their records are shown, too.
    A damaged batch is marked `isvalid: false`, its error goes to standard error, and the others are still printed. Then the exit status
    is 3.

    Example:
      sparklog dump my-log orders -p 0 --print-data-log
    """
    from sparklog.log.log import Log

    of = Log(root).topic(topic)
    status = 0
    for number in range(of.partitions) if partition is None else partition:
        for batch, position, content in _contents(of, number, titles=not as_json):
            error = content if isinstance(content, SparklogError) else None
            if error is not None:
                status = complain(error)
            if batch is None:
                continue
            records = [] if isinstance(content, SparklogError) or batches_only else _rows(content)
            if as_json:
                about = {**vars(batch), "segment_position": position, "valid": error is None, "contents": list(map(_as_json, records))}
                write(json.dumps(about))
                continue
            write(_batch_line(batch, position, valid=error is None))
            for record in records:
                write(_record_line(batch, record, data=data))
    if status:
        raise typer.Exit(status)


def _contents(of: Topic, partition: int, *, titles: bool) -> Iterator[tuple[Batch | None, int, list[pa.RecordBatch] | SparklogError]]:
    """The batches of a partition, each with its position in its segment. With titles, a line for each segment is printed before it."""
    segments = deque(of.segments(partition))
    began = 0
    for batch, content in of.batches(partition).contents():
        while batch and segments and segments[0].base <= batch.last_offset:
            segment = segments.popleft()
            began = segment.position
            if segment.end > batch.last_offset and titles:
                write(f"Dumping {of.name}-{partition}/{segment.base:020d}.log: byte {began} of {segment.file}")
                write(f"Log starting offset: {segment.base}")
        yield batch, batch.position - began if batch else 0, content


def _rows(content: list[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in content:
        for row in rows(batch.select(["offset", "timestamp", "key", "value", "headers"])):
            yield {**row, "headers": row["headers"] or ()}


def _as_json(record: dict[str, Any]) -> dict[str, Any]:
    headers = [{**field("key", each["key"].encode()), **field("value", each["value"])} for each in record["headers"]]
    return {
        "offset": record["offset"],
        "timestamp": record["timestamp"],
        **field("key", record["key"]),
        **field("value", record["value"]),
        "headers": headers,
    }


def _batch_line(batch: Batch, position: int, *, valid: bool) -> str:
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.records} baseSequence: {batch.base_sequence} "
        f"lastSequence: {_sequence(batch, batch.last_offset)} producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
        f"partitionLeaderEpoch: {batch.leader_epoch} isTransactional: false isControl: false "
        f"deleteHorizonMs: OptionalLong.empty position: {position} {_time(batch)}: {batch.max_timestamp} size: {batch.bytes} magic: 2 "
        f"compresscodec: {batch.codec} crc: {batch.crc} isvalid: {str(valid).lower()}"
    )


def _record_line(batch: Batch, record: dict[str, Any], *, data: bool) -> str:
    sizes = [-1 if record[name] is None else len(record[name]) for name in ("key", "value")]
    headers = ",".join(readable(each["key"], None) for each in record["headers"])
    line = (
        f"| offset: {record['offset']} {_time(batch)}: {record['timestamp']} keySize: {sizes[0]} valueSize: {sizes[1]} "
        f"sequence: {_sequence(batch, record['offset'])} headerKeys: [{headers}]"
    )
    if data:
        for name, content in (("key", record["key"]), ("payload", record["value"])):
            line += "" if content is None else f" {name}: {readable(content, None)}"
    return line


def _sequence(batch: Batch, offset: int) -> int:
    return (batch.base_sequence + offset - batch.base_offset) % _SEQUENCES if batch.base_sequence >= 0 else -1


def _time(batch: Batch) -> str:
    return "LogAppendTime" if batch.log_append_time else "CreateTime"


COMMANDS = (dump,)
