"""Decompression of a batch's records, never to more bytes than allowed. FORMAT.md sections 3 and 10."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pyarrow as pa

from sparklog.batches.faults import TooLarge
from sparklog.batches.header import CODECS
from sparklog.batches.memory import batch_bytes_max
from sparklog.store.store import Damaged

_FEED_BYTES = 4096
_ROOM_BYTES = 1 << 16
_ROOM_BYTES_MAX = 1 << 24


def decompress(codec: int, payload: memoryview, bytes_max: int) -> list[bytes]:
    """The records as pieces of at most `bytes_max` bytes in all. `codec` must not be 0, and `payload` must not be empty.

    TooLarge if that is more than this process may hold.
    """
    own = batch_bytes_max()
    try:
        return _DECOMPRESS[CODECS[codec]](payload, min(bytes_max, own))
    except TooLarge:
        if own < bytes_max:
            raise
        raise Damaged(f"it decompresses to more than {bytes_max} bytes") from None


def _gzip(payload: memoryview, bytes_max: int) -> list[bytes]:
    pieces = []
    at, left = 0, bytes_max
    while at < len(payload):
        member = zlib.decompressobj(wbits=31)
        # zlib copies the input that a member leaves over. If each of many small members were fed all of it, that would take quadratic time.
        feed = _FEED_BYTES
        while not member.eof:
            if at >= len(payload):
                raise Damaged("its gzip stream is cut off")
            try:
                piece = member.decompress(payload[at : at + feed], left + 1)
            except zlib.error as error:
                raise Damaged(f"its gzip stream is damaged ({error})") from None
            if len(piece) > left:
                raise TooLarge(bytes_max)
            left -= len(piece)
            pieces.append(piece)
            at = min(at + feed, len(payload)) - len(member.unused_data) - len(member.unconsumed_tail)
            feed *= 2
    return pieces


_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = len(_XERIAL) + 8
_SNAPPY_PREAMBLE_BYTES_MAX = 5


def _snappy(payload: memoryview, bytes_max: int) -> list[bytes]:
    if payload[: len(_XERIAL)] != _XERIAL:
        return [_snappy_block(payload, bytes_max, bytes_max)]
    pieces = []
    at, left = 0, bytes_max
    while at < len(payload):
        if payload[at : at + len(_XERIAL)] == _XERIAL:
            at += _XERIAL_HEADER_BYTES
            if at > len(payload):
                raise Damaged("its snappy stream is cut off")
            continue
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
    for at, byte in enumerate(block[:_SNAPPY_PREAMBLE_BYTES_MAX]):
        size |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            break
    else:
        raise Damaged("a snappy block has no length")
    if size > left:
        raise TooLarge(bytes_max)
    try:
        return bytes(pa.Codec("snappy").decompress(block, size, asbytes=True))
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"a snappy block is damaged ({error})") from None


_LZ4_MAGIC = 0x184D2204.to_bytes(4, "little")
_LZ4_STORED = 1 << 31


def _lz4(payload: memoryview, bytes_max: int) -> list[bytes]:
    if len(payload) < 7 or payload[:4] != _LZ4_MAGIC:
        raise Damaged("it does not hold an lz4 frame")
    flags = payload[4]
    if flags >> 6 != 1:
        raise Damaged("its lz4 frame is of an unknown version")
    if not flags & 0x20:
        raise Damaged("the blocks of its lz4 frame depend on each other")
    block_sum, size, content_sum, dictionary = (bool(flags & bit) for bit in (0x10, 0x08, 0x04, 0x01))
    if dictionary:
        raise Damaged("its lz4 frame needs a dictionary")
    # The library would continue with a second frame, which the format does not allow. So find where the first one ends.
    at = 4 + 2 + 8 * size + 1
    while block := _number(payload, at, 4, "lz4"):
        at += 4 + (block & ~_LZ4_STORED) + 4 * block_sum
    if at + 4 + 4 * content_sum != len(payload):
        raise Damaged("its lz4 frame does not end where the batch does")
    return _streamed("lz4", payload, bytes_max)


def _number(payload: memoryview, at: int, size: int, codec: str) -> int:
    if at + size > len(payload):
        raise Damaged(f"its {codec} frame is cut off")
    return int.from_bytes(payload[at : at + size], "little")


_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50
_ZSTD_WINDOW_BYTES_MAX = 1 << 27
_ZSTD_REPEATED = 1
"""The type of a block that holds one byte, to be repeated as often as the block's size says."""


def _zstd(payload: memoryview, bytes_max: int) -> list[bytes]:
    # Some builds of the library accept older formats and larger windows. So walk the frames here, block by block.
    at = 0
    while at < len(payload):
        magic = _number(payload, at, 4, "zstd")
        if magic & ~0xF == _ZSTD_SKIPPABLE:
            at += 8 + _number(payload, at + 4, 4, "zstd")
        elif magic == _ZSTD_MAGIC:
            at = _zstd_end(payload, at + 4)
        else:
            raise Damaged("it holds something other than zstd frames")
    return _streamed("zstd", payload, bytes_max)


def _zstd_end(payload: memoryview, at: int) -> int:
    """The end of the frame whose descriptor is at byte `at`."""
    descriptor = _number(payload, at, 1, "zstd")
    size_code, single_segment, summed, dictionary_code = descriptor >> 6, descriptor >> 5 & 1, descriptor >> 2 & 1, descriptor & 3
    at += 1
    # A frame of a single segment is its own window.
    code = 0 if single_segment else _number(payload, at, 1, "zstd")
    at += (not single_segment) + (0, 1, 2, 4)[dictionary_code]
    size_bytes = (single_segment, 2, 4, 8)[size_code]
    window = _number(payload, at, size_bytes, "zstd") if single_segment else (8 + (code & 7)) << (code >> 3) + 7
    if window > _ZSTD_WINDOW_BYTES_MAX:
        raise Damaged(f"its zstd frame wants a window of more than {_ZSTD_WINDOW_BYTES_MAX} bytes")
    at += size_bytes
    last = 0
    while not last:
        header = _number(payload, at, 3, "zstd")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        at += 3 + (1 if kind == _ZSTD_REPEATED else size)
    return at + 4 * summed


def _streamed(codec: str, payload: memoryview, bytes_max: int) -> list[bytes]:
    pieces: list[bytes] = []
    room, left = max(_ROOM_BYTES, 4 * len(payload)), bytes_max
    try:
        stream = pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(payload)), codec)
        while piece := stream.read_buffer(min(room, _ROOM_BYTES_MAX, left + 1)):
            if len(piece) > left:
                raise TooLarge(bytes_max)
            left -= len(piece)
            pieces.append(piece)
            room *= 2
    except (OSError, pa.ArrowException) as error:
        raise Damaged(f"its {codec} stream is damaged ({error})") from None
    return pieces


_DECOMPRESS: dict[str, Callable[[memoryview, int], list[bytes]]] = {"gzip": _gzip, "snappy": _snappy, "lz4": _lz4, "zstd": _zstd}
