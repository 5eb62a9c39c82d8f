"""A root, its topics and their records, without a JVM and without Spark."""

from __future__ import annotations

import datetime
import operator
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from sparklog.errors import SparklogError
from sparklog.ondisk import commitlog, names
from sparklog.ondisk.columns import SCHEMA
from sparklog.ondisk.commitlog import CommitLog, State
from sparklog.ondisk.layout import CODECS
from sparklog.ondisk.reader import PartitionReader
from sparklog.ondisk.root import local, require
from sparklog.views import View

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_SHOWN = 50


@dataclass(frozen=True)
class Commit:
    """A version of a topic: who committed what, and when."""

    version: int
    time: datetime.datetime
    operation: str
    writer: str
    txn: str
    query: str | None
    epoch: int | None
    records: int
    bytes: int
    segments: int
    removed: int
    start_offsets: dict[int, int]
    end_offsets: dict[int, int]


@dataclass(frozen=True)
class Batch:
    """A record batch: where it is, and its header. Times are milliseconds since 1970-01-01 UTC, as stored; −1 stands for none."""

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
    transactional: bool
    control: bool
    delete_horizon: bool
    crc: int


class Log:
    """A root: the directory that holds topics. Every call looks at what is committed now.

    >>> log = Log("/data/events")
    >>> log.topics()
    ['orders']
    >>> log.topic("orders").head(10)
    """

    root: str

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = local(os.fspath(root))
        require(self.root)

    def topics(self) -> list[str]:
        """The names of the topics, sorted."""
        return commitlog.topics(self.root)

    def topic(self, name: str) -> Topic:
        """The topic of this name. CallError `TOPIC_NOT_FOUND` names those there are."""
        return Topic(self, name)

    def __repr__(self) -> str:
        return self._view().text()

    def _repr_html_(self) -> str:
        return self._view().html()

    def _view(self) -> View:
        topics = self.topics()
        rows: list[list[object]] = []
        for name in topics[:_SHOWN]:
            try:
                state = CommitLog(self.root, name).newest()
            except SparklogError as error:
                rows.append([name, error.condition, "", "", ""])
            else:
                rows.append([name, state.partitions, sum(state.ends) - sum(state.starts), state.version, _time(state.time)])
        return View(
            f"Log {self.root}",
            [f"{len(topics)} topics" if len(topics) != 1 else "1 topic"],
            ["topic", "partitions", "offsets", "version", "committed at"],
            rows,
            more=len(topics) - len(rows),
        )


class Topic:
    """A topic of a log. Made by `Log.topic`."""

    name: str

    def __init__(self, log: Log, name: str) -> None:
        if not names.is_topic(name):
            reason = "it is '.' or '..'" if name in (".", "..") else "it is empty, too long, or has other characters"
            raise SparklogError("TOPIC_NAME_ILLEGAL", topic=name, reason=reason)
        self.name = name
        self._log = CommitLog(log.root, name)
        self._log.newest()

    @property
    def root(self) -> str:
        return self._log.root

    @property
    def partitions(self) -> int:
        """The number of partitions; they are numbered from 0."""
        return self._log.newest().partitions

    @property
    def config(self) -> dict[str, str]:
        """The topic's configuration, under Kafka's names."""
        return dict(self._log.newest().config)

    def start_offsets(self) -> dict[int, int]:
        """By partition, the first offset that is still there."""
        return dict(enumerate(self._log.newest().starts))

    def end_offsets(self) -> dict[int, int]:
        """By partition, the offset that the next record will get."""
        return dict(enumerate(self._log.newest().ends))

    def offsets_for_time(self, time: int | datetime.datetime) -> dict[int, int]:
        """By partition, the offset of the first record with this timestamp or a later one; the end offset where there is none.

        A number counts milliseconds since 1970-01-01 UTC. A datetime needs a time zone.
        """
        state = self._log.newest()
        millis = _millis(time)
        return {partition: PartitionReader(self._log, state, partition).offset_at(millis) for partition in range(state.partitions)}

    def head(self, n: int = 10, partition: int | None = None) -> pa.Table:
        """The first n records, partition after partition, in order of offsets."""
        return _table(self.scan(partition, limit=_count("n", n)))

    def tail(self, n: int = 10, partition: int | None = None) -> pa.Table:
        """The last n records. Of several partitions, those that come last when they are merged by timestamp, each in its own order."""
        state = self._log.newest()
        n = _count("n", n)
        tails = [self._tail(state, each, n) for each in self._partitions(state, partition)]
        merged = pa.concat_tables(tails) if tails else SCHEMA.empty_table()
        if len(tails) > 1:
            # A record counts as early as any after it in its partition: so each partition keeps its order.
            times = [np.minimum.accumulate(tail["timestamp"].cast(pa.int64()).to_numpy()[::-1])[::-1] for tail in tails]
            merged = merged.take(np.argsort(np.concatenate(times), kind="stable"))
        return merged.slice(max(0, merged.num_rows - n))

    def read(
        self,
        partition: int | None = None,
        start: int | Mapping[int, int] | None = None,
        end: int | Mapping[int, int] | None = None,
        limit: int | None = None,
    ) -> pa.Table:
        """Records as a table, in order of partitions and offsets. What `scan` says of its arguments holds here too."""
        return _table(self.scan(partition, start, end, limit))

    def scan(
        self,
        partition: int | None = None,
        start: int | Mapping[int, int] | None = None,
        end: int | Mapping[int, int] | None = None,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Records in parts of some megabytes, in order of partitions and offsets, as they were committed when this was called.

        Without `partition`, of all partitions. `start` is the first offset and `end` the one to stop before, for all of them or by
        partition; left out, they are the first that is there and the end. At most `limit` records in all.
        """
        state = self._log.newest()
        partitions = self._partitions(state, partition)
        firsts = self._offsets(state, "start", start, partitions, state.starts)
        ends = self._offsets(state, "end", end, partitions, state.ends)
        return self._scan(state, list(zip(partitions, firsts, ends, strict=True)), None if limit is None else _count("limit", limit))

    def _scan(self, state: State, ranges: list[tuple[int, int, int]], limit: int | None) -> Iterator[pa.RecordBatch]:
        for partition, start, end in ranges:
            if limit == 0:
                return
            for batch in PartitionReader(self._log, state, partition).records(start, end, limit):
                yield batch
                if limit is not None:
                    limit -= batch.num_rows

    def _tail(self, state: State, partition: int, n: int) -> pa.Table:
        start, end = state.starts[partition], state.ends[partition]
        span = n
        while True:
            first = max(start, end - span)
            table = _table(self._scan(state, [(partition, first, end)], None))
            if first == start or table.num_rows >= n:
                return table.slice(max(0, table.num_rows - n))
            # Offsets have gaps here.
            span *= 4

    def _partitions(self, state: State, partition: int | None, option: str = "partition") -> list[int]:
        if partition is None:
            return list(range(state.partitions))
        number = operator.index(partition)
        if not 0 <= number < state.partitions:
            raise SparklogError(
                "PARTITION_NOT_FOUND",
                option=option,
                partition=number,
                topic=state.topic,
                root=self._log.root,
                last=state.partitions - 1,
            )
        return [number]

    def _offsets(
        self, state: State, option: str, given: int | Mapping[int, int] | None, partitions: list[int], otherwise: tuple[int, ...]
    ) -> list[int]:
        """The offset of each of the partitions: the one given for it, or for all of them, or else `otherwise`."""
        if not isinstance(given, Mapping):
            given = {} if given is None else dict.fromkeys(partitions, given)
        for named in given:
            self._partitions(state, named, option)
        offsets = {each: operator.index(given.get(each, otherwise[each])) for each in partitions}
        for partition, offset in offsets.items():
            if not state.starts[partition] <= offset <= state.ends[partition]:
                raise SparklogError(
                    "OFFSETS_OUT_OF_RANGE",
                    option=option,
                    offset=offset,
                    topic=state.topic,
                    partition=partition,
                    root=self._log.root,
                    start=state.starts[partition],
                    end=state.ends[partition],
                )
        return list(offsets.values())

    def batches(self, partition: int) -> Iterator[Batch]:
        """The record batches of a partition, as their headers tell. Those of a segment come when all of its headers were checked."""
        state = self._log.newest()
        (partition,) = self._partitions(state, partition)
        return self._batches(state, partition)

    def _batches(self, state: State, partition: int) -> Iterator[Batch]:
        for file, found in PartitionReader(self._log, state, partition).headers():
            for batch in found:
                header = batch.header
                yield Batch(
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
                    transactional=header.transactional,
                    control=header.control,
                    delete_horizon=header.delete_horizon,
                    crc=header.crc,
                )

    def commits(self, limit: int | None = None) -> list[Commit]:
        """What was committed, oldest first; with a limit, only so many of the newest. Very old commits may be known no more."""
        return [
            Commit(
                version=version.version,
                time=_datetime(version.time),
                operation=version.operation,
                writer=version.writer,
                txn=version.txn,
                query=version.query[0] if version.query else None,
                epoch=version.query[1] if version.query else None,
                records=sum(segment.records for segment in version.added),
                bytes=sum(segment.bytes for segment in version.added),
                segments=len(version.added),
                removed=len(version.removed),
                start_offsets=dict(enumerate(version.starts)),
                end_offsets=dict(enumerate(version.ends)),
            )
            for version in self._log.history(None if limit is None else _count("limit", limit))
        ]

    def describe(self) -> dict[str, Any]:
        """All about the topic, as JSON can hold it. Times are milliseconds since 1970-01-01 UTC, None where no record has one."""
        state = self._log.newest()
        partitions = []
        for partition in range(state.partitions):
            segments = list(state.segments_of(partition))
            timed = [segment for segment in segments if segment.max_timestamp >= 0]
            partitions.append(
                {
                    "partition": partition,
                    "start": state.starts[partition],
                    "end": state.ends[partition],
                    "records": sum(segment.records for segment in segments),
                    "batches": sum(segment.batches for segment in segments),
                    "bytes": sum(segment.bytes for segment in segments),
                    "segments": len(segments),
                    "min_timestamp": min((segment.min_timestamp for segment in timed), default=None),
                    "max_timestamp": max((segment.max_timestamp for segment in timed), default=None),
                }
            )
        return {
            "root": self.root,
            "topic": self.name,
            "id": state.topic_id,
            "version": state.version,
            "committed_at": state.time,
            "config": dict(state.config),
            "records": sum(partition["records"] for partition in partitions),
            "bytes": sum(partition["bytes"] for partition in partitions),
            "segments": sum(partition["segments"] for partition in partitions),
            "partitions": partitions,
        }

    def __repr__(self) -> str:
        return self._view().text()

    def _repr_html_(self) -> str:
        return self._view().html()

    def _view(self) -> View:
        try:
            state = self._log.newest()
        except SparklogError as error:
            return View(f"Topic {self.name}", [f"in {self.root}", str(error)], [], [])
        rows = [[partition, start, end, end - start] for partition, (start, end) in enumerate(zip(state.starts, state.ends, strict=True))]
        about = [
            f"in {self.root}",
            f"version {state.version}, committed at {_time(state.time)}",
            ", ".join(f"{key}={value}" for key, value in sorted(state.config.items())),
        ]
        return View(f"Topic {self.name}", about, ["partition", "start", "end", "offsets"], rows[:_SHOWN], more=len(rows) - _SHOWN)


def _table(batches: Iterator[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches, schema=SCHEMA)


def _count(option: str, given: SupportsIndex) -> int:
    number = operator.index(given)
    if number < 0:
        raise SparklogError("OPTION_VALUE", option=option, value=number, reason="it must not be negative")
    return number


def _millis(time: int | datetime.datetime) -> int:
    if not isinstance(time, datetime.datetime):
        return max(operator.index(time), -(2**63))
    if time.tzinfo is None:
        raise SparklogError("OPTION_VALUE", option="time", value=time, reason="it must have a time zone")
    # Records have whole milliseconds: the first that is not before.
    return -((_EPOCH - time) // datetime.timedelta(milliseconds=1))


def _datetime(millis: int) -> datetime.datetime:
    try:
        return _EPOCH + datetime.timedelta(milliseconds=millis)
    except OverflowError:
        return datetime.datetime.max.replace(tzinfo=datetime.timezone.utc)


def _time(millis: int) -> str:
    return f"{_datetime(millis):%Y-%m-%d %H:%M:%S} UTC"
