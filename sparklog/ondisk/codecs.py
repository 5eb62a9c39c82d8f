"""Decompression of a batch's records, never to more than was allowed. FORMAT.md sections 3 and 10."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from sparklog.ondisk.layout import CODECS, Damaged

_FEED_BYTES = 4096
_ROOM_BYTES = 1 << 16
_ROOM_BYTES_MAX = 1 << 24


def decompress(codec: int, payload: memoryview, bytes_max: int) -> list[bytes]:
    """The records in pieces, at most `bytes_max` together. `codec` is not 0."""
    if not payload:
        raise Damaged("it has no compressed bytes")
    return _DECOMPRESS[CODECS[codec]](payload, bytes_max)


def _too_large(bytes_max: int) -> Damaged:
    return Damaged(f"it decompresses to more than {bytes_max} bytes")


def _gzip(payload: memoryview, bytes_max: int) -> list[bytes]:
    pieces = []
    at, left = 0, bytes_max
    while at < len(payload):
        member = zlib.decompressobj(wbits=31)
        # What is left over of a feed is copied, so many small members must not be fed everything at once.
        feed = _FEED_BYTES
        while not member.eof:
            if at >= len(payload):
                raise Damaged("its gzip stream is cut off")
            try:
                piece = member.decompress(payload[at : at + feed], left + 1)
            except zlib.error as error:
                raise Damaged(f"its gzip stream is damaged ({error})") from None
            if len(piece) > left:
                raise _too_large(bytes_max)
            left -= len(piece)
            pieces.append(piece)
            at = min(at + feed, len(payload)) - len(member.unused_data) - len(member.unconsumed_tail)
            feed *= 2
    return pieces


_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_VERSIONS = (1).to_bytes(4, "big") * 2
_SNAPPY_PREAMBLE_BYTES_MAX = 5


def _snappy(payload: memoryview, bytes_max: int) -> list[bytes]:
    if payload[: len(_XERIAL)] != _XERIAL:
        return [_snappy_block(payload, bytes_max, bytes_max)]
    at = len(_XERIAL) + len(_XERIAL_VERSIONS)
    if payload[len(_XERIAL) : at] != _XERIAL_VERSIONS:
        raise Damaged("its snappy stream is of an unknown version")
    pieces = []
    left = bytes_max
    while at < len(payload):
        size = int.from_bytes(payload[at : at + 4], "big", signed=True)
        at += 4
        if not 0 < size <= len(payload) - at:
            raise Damaged(f"a snappy block of {size} bytes begins where {len(payload) - at} follow")
        pieces.append(_snappy_block(payload[at : at + size], left, bytes_max))
        left -= len(pieces[-1])
        at += size
    return pieces


def _snappy_block(block: memoryview, left: int, bytes_max: int) -> bytes:
    size = 0
    for at, octet in enumerate(block[:_SNAPPY_PREAMBLE_BYTES_MAX]):
        size |= (octet & 0x7F) << 7 * at
        if octet < 0x80:
            break
    else:
        raise Damaged("a snappy block has no length")
    if size > left:
        raise _too_large(bytes_max)
    try:
        return bytes(pa.Codec("snappy").decompress(block, size, asbytes=True))
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"a snappy block is damaged ({error})") from None


_LZ4_MAGIC = 0x184D2204.to_bytes(4, "little")
_LZ4_STORED = 1 << 31


def _lz4(payload: memoryview, bytes_max: int) -> list[bytes]:
    if len(payload) < 7 or payload[:4] != _LZ4_MAGIC:
        raise Damaged("it holds no lz4 frame")
    flags = payload[4]
    if flags >> 6 != 1:
        raise Damaged("its lz4 frame is of an unknown version")
    if not flags & 0x20:
        raise Damaged("the blocks of its lz4 frame depend on each other")
    block_sum, size, content_sum, dictionary = (bool(flags & bit) for bit in (0x10, 0x08, 0x04, 0x01))
    if dictionary:
        raise Damaged("its lz4 frame needs a dictionary")
    # The library goes on with a second frame, which is not the format's; so see where the first one ends.
    at = 4 + 2 + 8 * size + 1
    while block := int.from_bytes(_whole(payload, at, 4), "little"):
        at += 4 + (block & ~_LZ4_STORED) + 4 * block_sum
    if at + 4 + 4 * content_sum != len(payload):
        raise Damaged("its lz4 frame does not end where the batch does")
    return _streamed("lz4", payload, bytes_max)


def _whole(payload: memoryview, at: int, size: int) -> memoryview:
    if at + size > len(payload):
        raise Damaged("its lz4 frame is cut off")
    return payload[at : at + size]


def _zstd(payload: memoryview, bytes_max: int) -> list[bytes]:
    return _streamed("zstd", payload, bytes_max)


def _streamed(codec: str, payload: memoryview, bytes_max: int) -> list[bytes]:
    pieces: list[bytes] = []
    room, left = max(_ROOM_BYTES, 4 * len(payload)), bytes_max
    try:
        stream = pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(payload)), codec)
        while piece := stream.read_buffer(min(room, _ROOM_BYTES_MAX, left + 1)):
            if len(piece) > left:
                raise _too_large(bytes_max)
            left -= len(piece)
            pieces.append(piece)
            room *= 2
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"its {codec} stream is damaged ({error})") from None
    return pieces


_DECOMPRESS: dict[str, Callable[[memoryview, int], list[bytes]]] = {"gzip": _gzip, "snappy": _snappy, "lz4": _lz4, "zstd": _zstd}
