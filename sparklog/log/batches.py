"""The segments of a topic, and the record batches of a partition as their headers tell of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from sparklog import arguments
from sparklog.batches.header import CODECS
from sparklog.ondisk.reader import PartitionReader
from sparklog.ondisk.segment import StoredBatch
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.version import Segment
from sparklog.show.display import SHOWN, Display, Displayed, counted, when

if TYPE_CHECKING:
    import pyarrow as pa

    from sparklog.errors import SparklogError


@dataclass(frozen=True)
class Batch:
    """A record batch: its position in bytes in its data file, and its header.

    Times are milliseconds since 1970-01-01 UTC. −1 means that a batch does not have a time, a producer or a sequence number.
    """

    partition: int
    base_offset: int
    last_offset: int
    records: int
    codec: str
    bytes: int
    file: str
    position: int
    log_append_time: bool
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    leader_epoch: int
    crc: int


class Batches(Displayed, Iterator[Batch]):
    """The record batches of a partition, one after another. In a terminal and in a notebook it shows the first ones as a table.

    A segment's headers are all checked before its first batch. A merge with `rebatch` may replace the batches, and their files may be
    deleted. Then it goes on with the new batches, and the first of them may begin below the end of the batch before it. To get each record
    once, use `scan`.
    """

    def __init__(self, reader: PartitionReader, partition: int) -> None:
        self._reader = reader
        self._partition = partition
        self._left = _batches(reader, partition)

    def __next__(self) -> Batch:
        return next(self._left)

    def contents(self) -> Iterator[tuple[Batch | None, list[pa.RecordBatch] | SparklogError]]:
        """All batches of the partition, each with its records as Arrow record batches, or with the error that it is damaged.

        If a segment is so damaged that its next batch is not found, it is skipped from there on: None with the error.
        """
        for file, batch, content in self._reader.contents():
            yield batch and _batch(batch, file, self._partition), content

    def _display(self) -> Display:
        found = list(islice(_batches(self._reader, self._partition), SHOWN + 1))
        columns = ["base offset", "last offset", "records", "codec", "bytes", "position", "newest (UTC)", "producer", "crc", "file"]
        rows: list[list[object]] = [
            [
                *(each.base_offset, each.last_offset, each.records, each.codec, each.bytes, each.position),
                when(None if each.max_timestamp < 0 else each.max_timestamp),
                "" if each.producer_id < 0 else each.producer_id,
                f"{each.crc:08x}",
                each.file.rpartition("/")[2],
            ]
            for each in found[:SHOWN]
        ]
        count = f"the first {SHOWN}" if len(found) > SHOWN else f"{len(found)}"
        title = f"Partition {self._partition}, {count} record batch{'es' * (len(found) != 1)}"
        return Display(title, [], columns, rows)


class Segments(Displayed, list[Segment]):
    """Segments of a topic, in order of partitions and offsets. In a terminal and in a notebook the list shows itself as a table."""

    @classmethod
    def of(cls, log: TopicLog, partition: object = None) -> Segments:
        """The live segments of a partition, of a collection of partitions, or of all partitions. CallError PARTITION_NOT_FOUND."""
        state = log.newest()
        asked = arguments.some_partitions(state, log.root, partition)
        return cls(segment for each in asked for segment in log.segments(state, each))

    def _display(self) -> Display:
        return self.display()

    def display(self, most: int | None = SHOWN, of: str = "") -> Display:
        """The table of the first ones, at most that many; `of` begins its title."""
        columns = ["partition", "base", "end", "records", "batches", "bytes", "from (UTC)", "to (UTC)", "position", "file"]
        rows: list[list[object]] = [
            [
                *(each.partition, each.base, each.end, each.records, each.batches, each.bytes),
                *(when(None if time < 0 else time) for time in (each.min_timestamp, each.max_timestamp)),
                *(each.position, each.file),
            ]
            for each in self[:most]
        ]
        title = of + counted(len(self), "segment")
        return Display(title, [], columns, rows, more=len(self) - len(rows))


def _batches(reader: PartitionReader, partition: int) -> Iterator[Batch]:
    for file, found in reader.headers():
        for batch in found:
            yield _batch(batch, file, partition)


def _batch(batch: StoredBatch, file: str, partition: int) -> Batch:
    header = batch.header
    return Batch(
        partition=partition,
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        records=header.records,
        codec=CODECS[header.codec],
        bytes=header.total_bytes,
        file=file,
        position=batch.position,
        log_append_time=header.log_append_time,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        leader_epoch=header.leader_epoch,
        crc=header.crc,
    )
