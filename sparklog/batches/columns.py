"""Records as Arrow record batches with the columns of Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sparklog.batches.record_starts import Longs
from sparklog.batches.records import Headers, Records

SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestampType", pa.int32()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
_TIMESTAMP = SCHEMA.field("timestamp").type
_HEADERS = SCHEMA.field("headers").type
_FEW = 256
_MICROS = 1000
_MILLIS_MIN, _MILLIS_MAX = -62_135_424_000_000, 253_402_250_399_999
"""The first and the last millisecond that Python's datetime has as local time in each time zone: of the years 1 and 9999."""


def arrow_batch(
    topic: str, partition: int, records: Records, first: int, end: int, columns: Sequence[str] = SCHEMA.names
) -> pa.RecordBatch:
    """The records from number `first` to before number `end`, with these columns of SCHEMA in this order."""
    part = slice(first, end)
    rows = end - first
    make: dict[str, Callable[[], pa.Array]] = {
        "key": lambda: _slices(pa.binary(), records.data, records.key_at[part], records.key_bytes[part]),
        "value": lambda: _slices(pa.binary(), records.data, records.value_at[part], records.value_bytes[part]),
        "topic": lambda: _repeated(topic.encode(), rows),
        "partition": lambda: numbers(pa.int32(), np.full(rows, partition, dtype=np.int32)),
        "offset": lambda: numbers(pa.int64(), records.offsets[part]),
        # Beyond them, `to_pylist` would fail, and so would Spark's `collect` in Python.
        "timestamp": lambda: numbers(_TIMESTAMP, records.timestamps[part].clip(_MILLIS_MIN, _MILLIS_MAX) * _MICROS),
        "timestampType": lambda: numbers(pa.int32(), records.log_append_time[part].astype(np.int32)),
        "headers": lambda: _headers(records.data, records.headers, first, end) if records.headers else pa.nulls(rows, _HEADERS),
    }
    return pa.RecordBatch.from_arrays([make[name]() for name in columns], schema=schema_of(columns))


def schema_of(columns: Sequence[str]) -> pa.Schema:
    """The part of SCHEMA with these columns, in this order."""
    return pa.schema([SCHEMA.field(name) for name in columns])


# Arrays are made from buffers, because `pa.array`, `pa.scalar` and `to_numpy` import pandas, which takes longer than a small read.


def numbers(kind: pa.DataType, values: npt.NDArray[Any]) -> pa.Array:
    """An array of these numbers, which `kind` has as they are in memory."""
    return pa.Array.from_buffers(kind, values.size, [None, pa.py_buffer(values)])


def numbers_of(array: pa.Array) -> npt.NDArray[Any]:
    """The numbers of an array without nulls, as they are in memory: times are in microseconds. They must not be written."""
    width = array.type.byte_width
    return np.frombuffer(array.buffers()[1], f"i{width}", len(array), width * array.offset)


def _repeated(text: bytes, rows: int) -> pa.Array:
    bounds = np.arange(0, (rows + 1) * len(text), len(text), dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(bounds), pa.py_buffer(text * rows)])


def _validity(valid: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def _slices(kind: pa.DataType, data: bytes, at: Longs, sizes: Longs) -> pa.Array:
    """An array of the byte strings at these ascending positions; null where a size is −1."""
    count = at.size
    ends = at + np.maximum(sizes, 0)
    if count < _FEW:
        # `take` below imports Arrow's functions. A read of a few records need not wait for that.
        bounds = np.zeros(count + 1, dtype=np.int32)
        np.cumsum(ends - at, out=bounds[1:])
        pieces = [data[first:end] for first, end in zip(at.tolist(), ends.tolist(), strict=True)]
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(b"".join(pieces))]
    else:
        # One array over all of the data: every second element is wanted, the others are the gaps between them.
        bounds = np.empty(2 * count + 1, dtype=np.int32)
        bounds[0:-1:2] = at
        bounds[1::2] = ends
        bounds[-1] = bounds[-2]
        everything = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
        buffers = everything.take(numbers(pa.int32(), np.arange(0, 2 * count, 2, dtype=np.int32))).buffers()
    return pa.Array.from_buffers(kind, count, [_validity(sizes >= 0), *buffers[1:]])


def _headers(data: bytes, headers: Headers, first: int, end: int) -> pa.Array:
    before = int(headers.per_record[:first].sum())
    counts = headers.per_record[first:end]
    bounds = np.zeros(counts.size + 1, dtype=np.int32)
    np.cumsum(counts, out=bounds[1:])
    part = slice(before, before + int(bounds[-1]))
    keys = _slices(pa.string(), data, headers.key_at[part], headers.key_bytes[part])
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        keys = _slices(pa.binary(), data, headers.key_at[part], headers.key_bytes[part])
        keys = pa.array([key.decode(errors="replace") for key in keys.to_pylist()], pa.string())
    values = _slices(pa.binary(), data, headers.value_at[part], headers.value_bytes[part])
    elements = pa.StructArray.from_arrays([keys, values], fields=list(_HEADERS.value_type))
    return pa.Array.from_buffers(_HEADERS, counts.size, [_validity(counts > 0), pa.py_buffer(bounds)], children=[elements])
