"""The header of a record batch: its 61 bytes, and the checks that need only these bytes. FORMAT.md section 3."""

from __future__ import annotations

import struct
from typing import NamedTuple

from sparklog.store.store import Damaged

# Each field with its struct code, big-endian. The sizes and positions below follow from this list.
_FIELDS = (
    ("base_offset", "q"),
    ("length", "i"),
    ("leader_epoch", "i"),
    ("magic", "b"),
    ("crc", "I"),
    ("attributes", "h"),
    ("last_offset_delta", "i"),
    ("base_timestamp", "q"),
    ("max_timestamp", "q"),
    ("producer_id", "q"),
    ("producer_epoch", "h"),
    ("base_sequence", "i"),
    ("records", "i"),
)


def _end_of(field: str) -> int:
    names = [name for name, _ in _FIELDS]
    return struct.calcsize(">" + "".join(code for _, code in _FIELDS[: names.index(field) + 1]))


HEADER_BYTES = _end_of("records")
LENGTH_FROM = _end_of("base_offset")
"""A header never changes from this byte on. The base offset before it may be stamped at any time."""
COUNTED_FROM = _end_of("length")
"""The length field counts the bytes from this one on."""
SUMMED_FROM = _end_of("crc")
"""The CRC-32C of a batch covers the bytes from this one on."""
LENGTH_MIN = HEADER_BYTES - COUNTED_FROM
_DECOMPRESSED_MIN = 64 << 20


def decompressed_max(message_bytes_max: int) -> int:
    """The most bytes of records that a batch decompresses to, in a topic with this `max.message.bytes`. FORMAT.md section 10."""
    return max(_DECOMPRESSED_MIN, message_bytes_max)


def batch_bytes_max(message_bytes_max: int) -> int:
    """The most bytes that a batch of such a topic has as it is stored. FORMAT.md section 10."""
    return HEADER_BYTES + decompressed_max(message_bytes_max) // 8 * 9


MAGIC = 2

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_CODEC_BITS = 0b111
_LOG_APPEND_TIME = 1 << 3
_ATTRIBUTES = _CODEC_BITS | _LOG_APPEND_TIME
"""No batch of this release has another bit. FORMAT.md section 3.1."""

RECORD_BYTES_MIN = 7
"""The length field and six other fields, of one byte each."""
RECORDS_MAX = 1 << 20
"""The most records that a batch may have."""
VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10

_HEADER = struct.Struct(">" + "".join(code for _, code in _FIELDS))


class Header(NamedTuple):
    """The header of a batch, as it is stored."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def total_bytes(self) -> int:
        """The bytes of the whole batch."""
        return COUNTED_FROM + self.length

    @property
    def codec(self) -> int:
        """The codec of the records, as an index into CODECS."""
        return self.attributes & _CODEC_BITS

    @property
    def log_append_time(self) -> bool:
        """Whether every record has the time `max_timestamp`, at which the batch was appended."""
        return bool(self.attributes & _LOG_APPEND_TIME)

    @classmethod
    def read(cls, data: bytes, at: int, bytes_left: int) -> Header:
        """The header at byte `at` of `data`. Damaged if it breaks a rule, or if the batch is longer than `bytes_left`."""
        if bytes_left < HEADER_BYTES:
            raise Damaged(f"{bytes_left} bytes are left, fewer than a header has")
        header = cls(*_HEADER.unpack_from(data, at))
        if header.magic != MAGIC:
            raise Damaged(f"its magic is {header.magic}, not {MAGIC}")
        if not LENGTH_MIN <= header.length <= bytes_left - COUNTED_FROM:
            raise Damaged(f"its length is {header.length} where {bytes_left - COUNTED_FROM} bytes follow")
        if header.codec >= len(CODECS):
            raise Damaged(f"its codec is {header.codec}, which is not a known codec")
        if header.attributes & ~_ATTRIBUTES:
            raise Damaged(f"its attributes are 0x{header.attributes & 0xFFFF:04x}, and bits 4 to 15 must be 0")
        if not 0 <= header.records <= RECORDS_MAX:
            raise Damaged(f"it counts {header.records} records, and at most {RECORDS_MAX} fit")
        if header.last_offset_delta < 0:
            raise Damaged(f"its last offset delta is {header.last_offset_delta}")
        if header.records > header.last_offset_delta + 1:
            raise Damaged(f"it counts {header.records} records in {header.last_offset_delta + 1} offsets")
        return header
