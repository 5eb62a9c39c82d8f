"""The values that a consumer takes and gives: tuples with the names and fields of kafka-python's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sparklog import arguments
from sparklog.batches.columns import SCHEMA, numbers_of, schema_of
from sparklog.errors import DataError

Deserializer = Callable[[bytes], Any]
_COLUMNS = [SCHEMA.get_field_index(name) for name in ("offset", "timestamp", "timestampType", "key", "value", "headers")]
_ARROW_IS_FAST = int(pa.__version__.partition(".")[0]) >= 25
"""Whether `to_pylist` makes Python values without scalars between."""

_EMPTY: deque[list[Any]] = deque(maxlen=1_000)
"""The headers of the last records without headers: of two polls, by default.

Python before 3.13 collects garbage after 700 new objects that can hold others, less the freed objects. A poll of 500 records makes 1,000:
records, and lists of headers. A collection in each poll would take as long as all else. So each new list frees a list of an earlier poll
here, and a program that drops its records is not stopped by a collection.
"""


class TopicPartition(NamedTuple):
    """A partition of a topic. A tuple of both is the same, and so is kafka-python's class of this name.

    Example:
        >>> sparklog.TopicPartition("orders", 0) == ("orders", 0)
        True
    """

    topic: str
    partition: int


TopicPartition.__module__ = "sparklog"


class OffsetAndMetadata(NamedTuple):
    """An offset to commit, and a text that is kept with it.

    Example:
        >>> from sparklog.consumer import OffsetAndMetadata
        >>> OffsetAndMetadata(5, "checked")
        OffsetAndMetadata(offset=5, metadata='checked')
    """

    offset: int
    metadata: str | None = None


class OffsetAndTimestamp(NamedTuple):
    """The offset of a record, and its time in milliseconds since 1970-01-01 UTC.

    Example:
        >>> from sparklog.consumer import OffsetAndTimestamp
        >>> OffsetAndTimestamp(3, 1_700_000_013_000).offset
        3
    """

    offset: int
    timestamp: int


class ConsumerRecord(NamedTuple):
    """A record. Its time is in milliseconds since 1970-01-01 UTC, −1 if it has none.

    The type of the time is 0 for the time of the producer, 1 for the time of the append. Keys and values are bytes, or the results of a
    deserializer; None stays None.

    Example:
        >>> with sparklog.Consumer("events", "orders", auto_offset_reset="earliest", consumer_timeout_ms=200) as consumer:
        ...     record = next(record for record in consumer if record.partition == 0)
        >>> record.offset, record.key, record.value, record.timestamp
        (0, b'customer-1', b'{"cents": 100}', 1700000001000)
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: Any
    value: Any
    headers: list[tuple[str, bytes | None]]


ConsumerRecord.__module__ = "sparklog"


class Fetched(NamedTuple):
    """The records that `Consumer.fetch` found. `batch` can be empty although `next_offset` is higher than the offset of the call.

    Example:
        >>> part = sparklog.Consumer("events").fetch(("orders", 0), 0)
        >>> part.batch.num_rows, part.next_offset, part.start_offset, part.end_offset
        (5, 5, 0, 5)
    """

    batch: pa.RecordBatch
    """The records, with the columns of `Topic.read`."""
    next_offset: int
    """The offset to fetch next."""
    start_offset: int
    """The log start offset of the partition at this moment."""
    end_offset: int
    """The end offset of the partition at this moment."""


def partition_of(given: object) -> TopicPartition:
    """A partition as callers give it. TypeError if it is not a pair."""
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], str):
        raise TypeError(f"a partition is {given!r}, of type {type(given).__name__}; it must be a TopicPartition")
    return TopicPartition(given[0], arguments.integer("partition", given[1]))


def partitions_of(given: object) -> list[TopicPartition]:
    """Partitions as callers give them. TypeError if they are not a collection of pairs."""
    if isinstance(given, str | TopicPartition) or not isinstance(given, Iterable):
        raise TypeError(f"`partitions` is {given!r}, of type {type(given).__name__}; it must be a list of TopicPartition")
    return [partition_of(each) for each in given]


def together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches with the columns of `Topic.read` as one batch: the batches of a part, which ends before an array could not hold them."""
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=schema_of(SCHEMA.names))
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def last_offset(batch: pa.RecordBatch) -> int:
    """The offset of the last record of a batch that is not empty."""
    return int(batch.column(_COLUMNS[0])[-1].as_py())


def rows_before(batch: pa.RecordBatch, offset: int) -> int:
    """How many of the first records of a batch that is not empty have offsets below this one."""
    if last_offset(batch) < offset:
        return int(batch.num_rows)
    return int(np.searchsorted(numbers_of(batch.column(_COLUMNS[0])), offset))


def records_of(
    partition: TopicPartition, batch: pa.RecordBatch, key: Deserializer | None, value: Deserializer | None, root: str
) -> tuple[list[ConsumerRecord], Exception | None]:
    """The records of a batch of a partition as objects, up to the first that a deserializer cannot read, and the error of that one.

    `root` is for the error.
    """
    offsets, times, types, keys, values, headers = (batch.column(number) for number in _COLUMNS)
    rows = batch.num_rows
    found_keys, found_values, found_headers = _values_of(keys), _values_of(values), _headers_of(headers)
    numbers = (numbers_of(offsets).tolist(), (numbers_of(times) // 1000).tolist(), numbers_of(types).tolist())
    columns = (repeat(partition.topic, rows), repeat(partition.partition, rows), *numbers)
    decoded_keys, key_error = _deserialized(found_keys, key)
    decoded_values, value_error = _deserialized(found_values[: len(decoded_keys)], value)
    # Values end before the record whose key failed, so the error of a value belongs to an earlier record.
    fields = zip(*columns, decoded_keys, decoded_values, found_headers, strict=False)
    # As `ConsumerRecord._make`, in three fifths of its time: no Python runs for a record.
    records: list[ConsumerRecord] = list(map(tuple.__new__, repeat(ConsumerRecord), fields))
    which, cause = ("key", key_error) if value_error is None else ("value", value_error)
    if cause is None:
        return records, None
    row = len(records)
    offset, time = numbers[0][row], numbers[1][row]
    failed = RecordDeserializationError(partition, offset, time, found_keys[row], found_values[row], which, cause, root)
    failed.__cause__ = cause
    return records, failed


def _deserialized(raw: list[bytes | None], deserializer: Deserializer | None) -> tuple[list[Any], Exception | None]:
    """Keys or values, up to the first that the deserializer cannot read, and its error."""
    if deserializer is None:
        return raw, None
    found: list[Any] = []
    try:
        for each in raw:
            found.append(None if each is None else deserializer(each))
    except Exception as error:
        return found, error
    return found, None


class RecordDeserializationError(DataError, ValueError):
    """A record that a deserializer of the consumer cannot read. `seek(error.partition, error.offset + 1)` skips it.

    `timestamp` is in milliseconds since 1970-01-01 UTC; `key` and `value` are the bytes of the record.

    Example:
        >>> from sparklog.consumer import RecordDeserializationError
        >>> consumer = sparklog.Consumer("events", "orders", auto_offset_reset="earliest", value_deserializer=int)
        >>> try:
        ...     consumer.poll(1_000)
        ... except RecordDeserializationError as error:
        ...     print(error.offset)
        0
    """

    def __new__(cls, *given: object) -> RecordDeserializationError:
        return Exception.__new__(cls, *given)

    def __init__(
        self,
        partition: TopicPartition,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        which: str,
        cause: object,
        root: str,
    ) -> None:
        topic, number = partition
        super().__init__("RECORD_DESERIALIZATION", which=which, topic=topic, partition=number, root=root, offset=offset, cause=repr(cause))
        self.partition, self.offset, self.timestamp, self.key, self.value = partition, offset, timestamp, key, value
        self._given = (partition, offset, timestamp, key, value, which, repr(cause), root)

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordDeserializationError, self._given


def _values_of(array: pa.Array) -> list[Any]:
    """The same as `to_pylist` of an array of bytes or strings, also with an Arrow whose `to_pylist` makes a scalar of each value."""
    if _ARROW_IS_FAST:
        found: list[Any] = array.to_pylist()
        return found
    _, bounds, data = array.buffers()
    ends = np.frombuffer(bounds, np.int32, len(array) + 1, 4 * array.offset)
    first = int(ends[0])
    held = data.slice(first, int(ends[-1]) - first).to_pybytes() if data is not None else b""
    found = [held[begin:end] for begin, end in pairwise((ends - first).tolist())]
    if pa.types.is_string(array.type):
        found = list(map(bytes.decode, found))
    if array.null_count:
        return [each if valid else None for each, valid in zip(found, array.is_valid().to_pylist(), strict=True)]
    return found


def _headers_of(array: pa.Array) -> list[list[tuple[str, bytes | None]]]:
    """The headers of each record, made of all headers at once."""
    if array.null_count == len(array):
        made: list[list[tuple[str, bytes | None]]] = [[] for _ in range(len(array))]
        _EMPTY.extend(made)
        return made
    bounds = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)
    first = int(bounds[0])
    keys, values = array.values.slice(first, int(bounds[-1]) - first).flatten()
    pairs = list(zip(_values_of(keys), _values_of(values), strict=True))
    return [pairs[begin:end] for begin, end in pairwise((bounds - first).tolist())]
