"""Record batches, written from docs/FORMAT.md alone. The numbers in comments are sections of that page."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import cramjam
import google_crc32c
import lz4.frame
import zstandard

XERIAL = b"\x82SNAPPY\0"
WINDOW = 128 << 20
SECTION = 64 << 20
BLOCK = 1 << 10
"""A compressed block is not read in one piece: so its decompressed bytes stay within the limit."""


class Refused(Exception):
    """A program refuses what it met. `id` is an id of the page."""

    def __init__(self, id: str, why: str) -> None:
        super().__init__(f"{id}: {why}")
        self.id = id


class Row(NamedTuple):
    partition: int
    offset: int
    time: int
    append: bool
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...]


def rows(octets: bytes, segment: dict[str, Any], limit: int) -> list[Row]:
    """9.2: all records of a segment, whose bytes are given."""
    found: list[Row] = []
    at, offset, crc, count = 0, segment["base"], 0, 0
    while at < len(octets) and offset != segment["end"]:
        header = octets[at : at + 61]
        _need(len(header) == 61, "3.3, 1: fewer than 61 bytes")
        length, magic, sum, attributes, last, first_time, max_time, *_, records = struct.unpack(">8xi4xbIhiqqqhii", header)
        whole = length + 12
        _need(61 <= whole <= min(len(octets) - at, 61 + 9 * (limit // 8)), "3.3, 2: the length")
        _need(magic == 2 and attributes & 7 <= 4 and attributes >> 4 == 0, "3.3, 3: magic or attributes")
        _need(last >= 0 and 0 <= records <= min(1 << 20, last + 1), "3.3, 4: the count")
        _need(segment["offsets"] == "tiled" or records == last + 1, "4.1: a dense segment with gaps")
        relative, absolute = ((offset - segment["base"]).to_bytes(8, "big"), offset.to_bytes(8, "big"))
        _need(all(byte in pair for byte, *pair in zip(header[:8], relative, absolute, strict=True)), "4.1: the base offset field")
        _need(offset + last < segment["end"], "4.1: it goes beyond the end offset")
        body = octets[at + 61 : at + whole]
        _need(google_crc32c.extend(google_crc32c.value(header[21:]), body) == sum, "3.3, 6: the CRC")
        content = decompressed(attributes & 7, body, limit) if body or records else b""
        append = bool(attributes & 8)
        for delta, time, *fields in _records(content, records, last):
            time = max_time if append else (first_time + time + 2**63) % 2**64 - 2**63
            found.append(Row(segment["partition"], offset + delta, time, append, *fields))
        crc = google_crc32c.extend(crc, header[8:])
        at, offset, count = at + whole, offset + last + 1, count + 1
    if at < len(octets) or (offset, crc, count) != (segment["end"], segment["headerCrc"], segment["batches"]):
        raise Refused("SEGMENT_CORRUPT", f"{segment['file']}: its end, its headers or its number of batches differ")
    return found


def _need(right: object, rule: str) -> None:
    if not right:
        raise Refused("BATCH_CORRUPT", rule)


def _records(data: bytes, count: int, last: int) -> Iterator[tuple[int, int, bytes | None, bytes | None, tuple[Any, ...]]]:
    """3.1, and 3.3 from step 7 on: offset delta, time delta, key, value, headers."""
    _need(count <= len(data) // 7, "3.3, 8: too many records")
    at, before = 0, -1
    for _ in range(count):
        length, at = varint(data, at)
        end = at + length
        _need(1 <= length <= len(data) - at, "3.3, 9: a record outside its batch")
        time, at = varint(data, at + 1, 10)
        delta, at = varint(data, at)
        key, at = _sized(data, at, end)
        value, at = _sized(data, at, end)
        many, at = varint(data, at)
        _need(0 <= many <= max(end - at, 0) // 2, "3.3, 10: the number of headers")
        headers = []
        for _ in range(many):
            name, at = _sized(data, at, end)
            _need(name is not None, "3.3, 9: a header without a key")
            text, at = _sized(data, at, end)
            headers.append((name, text))
        _need(at == end, "3.3, 9: the length of a record")
        _need(before < delta <= last, "3.3, 11: offset deltas")
        before = delta
        yield delta, time, key, value, tuple(headers)
    _need(at == len(data), "3.3, 12: bytes behind the last record")


def varint(data: bytes, at: int, most: int = 5) -> tuple[int, int]:
    """3.1: the number, and where it ends. It has at most 32 bits in 5 bytes, or 64 bits in 10."""
    number = 0
    for place in range(most):
        _need(at + place < len(data), "3.3, 9: a varint is cut short")
        byte = data[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            _need(number < 1 << (32 if most == 5 else 64), "3.1: a varint of too many bits")
            return number >> 1 ^ -(number & 1), at + place + 1
    raise Refused("BATCH_CORRUPT", "3.1: a varint of too many bytes")


def _sized(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = varint(data, at)
    _need(-1 <= length <= end - at, "3.3, 9: a length")
    return (None, at) if length == -1 else (data[at : at + length], at + length)


def decompressed(codec: int, data: bytes, limit: int) -> bytes:
    """3.2: the records section."""
    try:
        content = (_plain, _gzip, _snappy, _lz4, _zstd)[codec](data, limit)
    except (zlib.error, RuntimeError, EOFError, zstandard.ZstdError, cramjam.DecompressionError) as error:
        raise Refused("BATCH_CORRUPT", f"3.2: {error}") from None
    _need(len(content) <= limit, "3.3, 7: the records section is too large")
    return content


def _plain(data: bytes, _: int) -> bytes:
    return data


def _gzip(data: bytes, limit: int) -> bytes:
    content = b""
    while data:
        member = zlib.decompressobj(31)
        content += member.decompress(data, limit + 1 - len(content))
        _need(len(content) <= limit and member.eof, "3.2: a member of gzip that is too long or cut short")
        data = member.unused_data
    return content


def _snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(XERIAL):
        return _snappy_block(data, limit)
    content, at = b"", 0
    while at < len(data):
        if data.startswith(XERIAL, at):
            at += 16
            _need(at <= len(data), "3.2: a stream of snappy is cut short")
            continue
        _need(at + 4 <= len(data), "3.2: a block of snappy is cut short")
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        _need(1 <= size <= len(data) - at, "3.2: the length of a block of snappy")
        content += _snappy_block(data[at : at + size], limit - len(content))
        at += size
    return content


def _snappy_block(data: bytes, limit: int) -> bytes:
    size = 0
    for place, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    _need(size <= limit, "3.3, 7: the records section is too large")
    return bytes(cramjam.snappy.decompress_raw(data))


def _lz4(data: bytes, limit: int) -> bytes:
    _need(len(data) > 4 and data[:4] == b"\x04\x22\x4d\x18", "3.2: no frame of LZ4")
    _need(data[4] & 0x21 == 0x20, "3.2: a frame of LZ4 with a dictionary, or with blocks that are not independent")
    frame = lz4.frame.LZ4FrameDecompressor()
    content = bytes(frame.decompress(data, limit + 1))
    _need(len(content) <= limit and frame.eof and not frame.unused_data, "3.2: a frame of LZ4 is cut short, or bytes follow")
    return content


def _zstd(data: bytes, limit: int) -> bytes:
    content = b""
    while data:
        if len(data) >= 8 and data[1:4] == b"\x2a\x4d\x18" and data[0] >> 4 == 5:
            size = 8 + int.from_bytes(data[4:8], "little")
            _need(size <= len(data), "3.2: a skippable frame is cut short")
            data = data[size:]
            continue
        about = zstandard.get_frame_parameters(data)
        _need(about.dict_id == 0 and about.window_size <= WINDOW, "3.2: a frame of zstd with a dictionary or a large window")
        frame, at = zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj(), 0
        while at < len(data) and not frame.eof:
            content += frame.decompress(data[at : at + BLOCK])
            at += BLOCK
            _need(len(content) <= limit, "3.3, 7: the records section is too large")
        _need(frame.eof, "3.2: a frame of zstd is cut short")
        data = frame.unused_data + data[at:]
    return content
