"""The records of decompressed batches: the positions of their fields, for thousands of records at once. FORMAT.md section 3.

`record_starts` finds where records begin; here each field is read from all of them together. Positions point into the decompressed bytes,
from which Arrow copies keys, values and headers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import google_crc32c
import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from sparklog.batches.codecs import decompress
from sparklog.batches.header import HEADER_BYTES, RECORD_BYTES_MIN, SUMMED_FROM, VARINT_BYTES_MAX, VARLONG_BYTES_MAX, Header
from sparklog.batches.record_starts import PADDING, ByteArray, Longs, starts, starts_abreast, varint
from sparklog.store.store import Damaged

RECORDS_AT_ONCE = 1 << 18
"""Positions and lengths take more memory than a small record does, so they are held for this many records only."""
_HEADERS_AT_ONCE = 64


class Payload(NamedTuple):
    """The records of one batch, decompressed: `bytes` bytes in `pieces`."""

    header: Header
    base_offset: int
    pieces: Sequence[bytes | memoryview]
    bytes: int

    @classmethod
    def of(cls, header: Header, batch: memoryview, base_offset: int, decompressed_max: int) -> Payload:
        """The payload of a whole batch. Damaged if its checksum is wrong, or if it decompresses to more than `decompressed_max` bytes."""
        if (found := _crc32c(batch[SUMMED_FROM:])) != header.crc:
            raise Damaged(f"its checksum is {header.crc:08x} where its bytes have {found:08x}")
        payload = batch[HEADER_BYTES:]
        if header.codec == 0 or not payload:
            return cls(header, base_offset, [payload], len(payload))
        pieces = decompress(header.codec, payload, decompressed_max)
        return cls(header, base_offset, pieces, sum(map(len, pieces)))


def _crc32c(data: memoryview) -> int:
    # google-crc32c takes a NumPy array without copying it, and nothing else.
    return int(google_crc32c.value(np.frombuffer(data, dtype=np.uint8)))


class Headers(NamedTuple):
    """The headers of all records, in order. A value length of −1 is null."""

    per_record: Longs
    key_at: Longs
    key_bytes: Longs
    value_at: Longs
    value_bytes: Longs


class Records(NamedTuple):
    """Records of one or more batches. Times are milliseconds since 1970-01-01 UTC. A length of −1 is null."""

    data: bytes
    offsets: Longs
    timestamps: Longs
    log_append_time: npt.NDArray[np.bool_]
    key_at: Longs
    key_bytes: Longs
    value_at: Longs
    value_bytes: Longs
    headers: Headers | None

    def having(self, key: bytes) -> Records:
        """The records with this key."""
        rows = np.flatnonzero(self.key_bytes == len(key))
        if rows.size:
            keys = sliding_window_view(np.frombuffer(self.data, dtype=np.uint8), len(key))[self.key_at[rows]]
            rows = rows[(keys == np.frombuffer(key, dtype=np.uint8)).all(axis=1)]
        return self._only(rows)

    def within(self, since: int | None, until: int | None) -> Records:
        """The records with times from `since` to before `until`; None is without a bound."""
        inside = np.ones(self.timestamps.size, dtype=np.bool_)
        if since is not None:
            inside &= self.timestamps >= since
        if until is not None:
            inside &= self.timestamps < until
        return self._only(np.flatnonzero(inside))

    def _only(self, rows: Longs) -> Records:
        headers = self.headers
        if headers:
            kept = np.zeros(self.offsets.size, dtype=np.bool_)
            kept[rows] = True
            kept = np.repeat(kept, headers.per_record)
            headers = Headers(headers.per_record[rows], *(each[kept] for each in headers[1:]))
        return Records(
            self.data,
            self.offsets[rows],
            self.timestamps[rows],
            self.log_append_time[rows],
            self.key_at[rows],
            self.key_bytes[rows],
            self.value_at[rows],
            self.value_bytes[rows],
            headers,
        )


def locate(payloads: Sequence[Payload]) -> Iterator[Records]:
    """The records of some batches, in order.

    Damaged if a batch breaks a rule; that may come after records were returned. It does not name the batch: pass one batch alone to know.
    """
    for payload in payloads:
        if payload.header.records > payload.bytes // RECORD_BYTES_MIN or (not payload.header.records and payload.bytes):
            raise Damaged(f"it counts {payload.header.records} records in {payload.bytes} bytes")
    payloads = [payload for payload in payloads if payload.header.records]
    data = b"".join([piece for payload in payloads for piece in payload.pieces] + [PADDING])
    bounds = np.cumsum([0, *(payload.bytes for payload in payloads)], dtype=np.int64)
    counts = np.array([payload.header.records for payload in payloads], dtype=np.int64)
    firsts = np.cumsum([0, *counts], dtype=np.int64)
    total = int(firsts[-1])
    at = 0
    last_delta = np.int64(-1)
    for first in range(0, total, RECORDS_AT_ONCE):
        end = min(first + RECORDS_AT_ONCE, total)
        begins = starts_abreast(data, bounds, counts) if end - first == total else None
        if begins is None:
            begins = starts(data, at, end - first)
        at = int(begins[-1])
        held = np.flatnonzero((firsts[1:] > first) & (firsts[:-1] < end))
        part = _Run(
            data,
            begins,
            [payloads[batch] for batch in held],
            np.clip(firsts[held] - first, 0, None),
            np.clip(firsts[held + 1] - first, None, end - first),
            np.where(firsts[held] < first, last_delta, -1),
        )
        whole = firsts[held] >= first
        if not np.array_equal(begins[part.firsts[whole]], bounds[held[whole]]):
            raise Damaged("its records do not end where it ends")
        records, last_delta = part.records()
        yield records
    if at != bounds[-1]:
        raise Damaged("its records do not end where it ends")


class _Run(NamedTuple):
    """A run of records, and the batches that hold them.

    * starts: the position of each record, then the end of the last one.
    * firsts, ends: for each batch, the number of its first record in the run, and of the record after its last one.
    * floors: for each batch, the offset delta that its first record must exceed.
    """

    data: bytes
    starts: Longs
    batches: Sequence[Payload]
    firsts: Longs
    ends: Longs
    floors: Longs

    def records(self) -> tuple[Records, np.int64]:
        """The records, and the offset delta of the last one."""
        array = np.frombuffer(self.data, dtype=np.uint8)
        ends = self.starts[1:]
        # Hostile data can hold any number, but a length below −1 is refused at once. So positions only grow: if the last position is
        # right, all positions before it are inside the record. Until then, a read beyond the data returns its last byte.
        length, at = _varints(array, self.starts[:-1], VARINT_BYTES_MAX)
        if not np.array_equal(at + length, ends):
            raise Damaged("a record has a negative length")
        at += 1
        times, at = _varints(array, at, VARLONG_BYTES_MAX)
        deltas, at = _varints(array, at, VARINT_BYTES_MAX)
        key_bytes, key_at = _varints(array, at, VARINT_BYTES_MAX)
        value_bytes, value_at = _varints(array, _after(key_at, key_bytes), VARINT_BYTES_MAX)
        header_counts, at = _varints(array, _after(value_at, value_bytes), VARINT_BYTES_MAX)
        headers = None
        if header_counts.any():
            if (header_counts < 0).any() or (header_counts > (ends - at) // 2).any():
                raise Damaged("a record counts more headers than it has room for")
            headers, at = _headers(self.data, array, at, header_counts)
        if not np.array_equal(at, ends):
            raise Damaged("a record does not end where its length says")
        self._check(deltas)

        log_append_time = self._each(lambda batch: batch.header.log_append_time).astype(np.bool_)
        times += self._each(lambda batch: batch.header.base_timestamp)
        if log_append_time.any():
            times = np.where(log_append_time, self._each(lambda batch: batch.header.max_timestamp), times)
        offsets = deltas + self._each(lambda batch: batch.base_offset)
        records = Records(self.data, offsets, times, log_append_time, key_at, key_bytes, value_at, value_bytes, headers)
        return records, deltas[-1]

    def _check(self, deltas: Longs) -> None:
        rising = np.empty(deltas.size, dtype=np.bool_)
        np.greater(deltas[1:], deltas[:-1], out=rising[1:])
        rising[self.firsts] = deltas[self.firsts] > self.floors
        inside = deltas[self.ends - 1] <= np.array([batch.header.last_offset_delta for batch in self.batches])
        if not rising.all() or not inside.all():
            raise Damaged("the offsets of its records do not rise inside it")

    def _each(self, number: Callable[[Payload], int]) -> Longs:
        """A number of each batch, repeated for each of its records."""
        return np.repeat(np.array([number(batch) for batch in self.batches], dtype=np.int64), self.ends - self.firsts)


def _varints(array: ByteArray, at: Longs, bytes_max: int) -> tuple[Longs, Longs]:
    """The numbers that begin at these positions, and the positions after them. Damaged if a number has more than `bytes_max` bytes."""
    # Most numbers have one byte or two. Short types make this fast.
    first = array.take(at, mode="clip")
    at = at + 1
    if first.max(initial=0) < 0x80:
        return _unzigzag(first).view(np.int8).astype(np.int64), at
    more = first >= 0x80
    second = array.take(at, mode="clip") * more
    at += more
    both = (first & 0x7F) | (second & 0x7F).astype(np.uint16) << 7
    values = _unzigzag(both).view(np.int16).astype(np.int64)
    longer = np.flatnonzero(second >= 0x80)
    if longer.size:
        values[longer], at[longer] = _long_varints(array, at[longer], both[longer].astype(np.uint64), bytes_max)
    return values, at


def _long_varints(array: ByteArray, at: Longs, low: npt.NDArray[np.uint64], bytes_max: int) -> tuple[Longs, Longs]:
    """The same as `_varints`, for numbers that have more bytes after the first two, which `low` holds."""
    bits = 32 if bytes_max == VARINT_BYTES_MAX else 64
    open_ones = np.arange(at.size)
    for shift in range(14, 7 * bytes_max, 7):
        byte = array.take(at[open_ones], mode="clip").astype(np.uint64)
        if shift + 7 > bits and (byte >> np.uint64(bits - shift)).any():
            raise Damaged("a number has too many bits")
        at[open_ones] += 1
        low[open_ones] |= (byte & 0x7F) << np.uint64(shift)
        open_ones = open_ones[byte >= 0x80]
        if not open_ones.size:
            break
    return _unzigzag(low).view(np.int64), at


def _unzigzag(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Decodes zigzag. The result is unsigned and has the bits of the signed numbers."""
    return (numbers >> 1) ^ -(numbers & 1)


def _after(at: Longs, sizes: Longs) -> Longs:
    """The positions after keys or values of these sizes; the size −1 is null. Damaged if a size is below −1."""
    least = sizes.min(initial=0)
    if least < -1:
        raise Damaged("a key or a value has a negative length")
    return at + (sizes if least == 0 else np.maximum(sizes, 0))


def _headers(data: bytes, array: ByteArray, at: Longs, counts: Longs) -> tuple[Headers, Longs]:
    """All headers, and the position after the headers of each record. The caller has checked that the data have room for them."""
    firsts = np.cumsum(counts) - counts
    total = int(counts.sum())
    found = Headers(counts, *(np.empty(total, dtype=np.int64) for _ in range(4)))
    at = at.copy()
    for nth in range(min(int(counts.max()), _HEADERS_AT_ONCE)):
        having = np.flatnonzero(counts > nth)
        at[having] = _header(array, at[having], found, firsts[having] + nth)
    # Each round above handles one header of every record. A record with a thousand headers would need a thousand rounds: read it alone.
    for record in np.flatnonzero(counts > _HEADERS_AT_ONCE).tolist():
        rest = range(int(firsts[record]) + _HEADERS_AT_ONCE, int(firsts[record] + counts[record]))
        at[record] = _header_by_header(data, int(at[record]), found, rest)
    return found, at


def _header(array: ByteArray, at: Longs, found: Headers, to: Longs) -> Longs:
    key_bytes, key_at = _varints(array, at, VARINT_BYTES_MAX)
    if (key_bytes < 0).any():
        raise Damaged("a header has no key")
    value_bytes, value_at = _varints(array, key_at + key_bytes, VARINT_BYTES_MAX)
    for column, values in zip(found[1:], (key_at, key_bytes, value_at, value_bytes), strict=True):
        column[to] = values
    return _after(value_at, value_bytes)


def _header_by_header(data: bytes, at: int, found: Headers, to: range) -> int:
    for header in to:
        try:
            key_bytes, key_at = varint(data, at)
            value_bytes, value_at = varint(data, key_at + (key_bytes >> 1))
        except IndexError:
            raise Damaged("a header reaches beyond its record") from None
        if key_bytes & 1 or (value_bytes & 1 and value_bytes != 1):
            raise Damaged("a header has a negative length")
        at = value_at + (value_bytes >> 1)
        numbers = (key_at, key_bytes >> 1, value_at, -1 if value_bytes & 1 else value_bytes >> 1)
        for column, number in zip(found[1:], numbers, strict=True):
            column[header] = number
    return at
