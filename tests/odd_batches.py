"""Batches in every form that FORMAT.md section 3 allows, and batches that are wrong in one way. Both readers must tell them apart."""

import gzip
import struct
import zlib
from typing import Any

import lz4.frame
import pyarrow as pa
import zstandard
from handmade import TIME, Record, batch, records, varint

from sparklog.batches.header import CODECS

COUNT = 50
CONTENT = records(COUNT)
PLAIN = b"".join(record.encoded(delta, TIME) for delta, record in enumerate(CONTENT))
HALF = len(PLAIN) // 2


def compressed(codec: str, payload: bytes, count: int = COUNT) -> bytes:
    last = max(0, count - 1)
    return batch([], payload=payload, records=count, last_offset_delta=last, attributes=CODECS.index(codec), base_timestamp=TIME)


def snappy(octets: bytes) -> bytes:
    return pa.compress(octets, "snappy", asbytes=True)


def xerial(*blocks: bytes, versions: tuple[int, int] = (1, 1)) -> bytes:
    framed = b"".join(len(block).to_bytes(4, "big") + block for block in blocks)
    return b"\x82SNAPPY\0" + struct.pack(">ii", *versions) + framed


def lz4_stored(octets: bytes) -> bytes:
    """One frame of independent stored blocks of 64 KiB each."""
    blocks = [octets[at : at + 65536] for at in range(0, len(octets), 65536)]
    return bytes.fromhex("04224d18604082") + b"".join(struct.pack("<I", len(block) | 1 << 31) + block for block in blocks) + bytes(4)


def lz4_frame(octets: bytes, **kinds: bool) -> bytes:
    return lz4.frame.compress(octets, **{"block_linked": False, "store_size": False} | kinds)


def gzip_member(octets: bytes, header_sum: int = 0) -> bytes:
    """A gzip member whose header has every optional field. `header_sum` is added to the header's checksum."""
    header = bytes.fromhex("1f8b081e0000000000ff") + b"\3\0abc" + b"name\0" + b"words\0"
    header += struct.pack("<H", (zlib.crc32(header) + header_sum) & 0xFFFF)
    return header + gzip.compress(octets)[10:]


def zstd(octets: bytes, **kinds: bool) -> bytes:
    return zstandard.ZstdCompressor(**kinds).compress(octets)


def zstd_stream(octets: bytes) -> bytes:
    """A frame of many blocks that does not say its size."""
    stream = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    blocks = [stream.compress(octets[at : at + 99]) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) for at in range(0, len(octets), 99)]
    return b"".join([*blocks, stream.flush()])


def zstd_raw(octets: bytes, header: str) -> bytes:
    """A frame with one stored block after a header given in hex."""
    return bytes.fromhex("28b52ffd" + header) + (len(octets) << 3 | 1).to_bytes(3, "little") + octets


def altered(octets: bytes, at: int) -> bytes:
    return octets[:at] + bytes([octets[at] ^ 1]) + octets[at:][1:]


SKIPPABLE = bytes.fromhex("5a2a4d18") + struct.pack("<I", 3) + b"abc"
SUMMED = lz4_frame(PLAIN, content_checksum=True)
BLOCKS_SUMMED = lz4_frame(PLAIN, block_checksum=True)
ZSTD_SUMMED = zstd(PLAIN, write_checksum=True)

RIGHT: dict[str, tuple[str, bytes]] = {
    "gzip": ("gzip", gzip.compress(PLAIN)),
    "gzip in members": ("gzip", gzip.compress(PLAIN[:HALF]) + gzip.compress(b"") + gzip.compress(PLAIN[HALF:])),
    "gzip with all header fields": ("gzip", gzip_member(PLAIN)),
    "snappy": ("snappy", xerial(snappy(PLAIN))),
    "snappy in blocks": ("snappy", xerial(snappy(PLAIN[:HALF]), snappy(b""), snappy(PLAIN[HALF:]))),
    "snappy in streams": ("snappy", xerial(snappy(PLAIN[:HALF])) + xerial() + xerial(snappy(PLAIN[HALF:]))),
    "snappy of version 0": ("snappy", xerial(snappy(PLAIN), versions=(0, 0))),
    "snappy of version 1, reversed": ("snappy", xerial(snappy(PLAIN), versions=(1 << 24, 1 << 24))),
    "snappy of a negative version": ("snappy", xerial(snappy(PLAIN), versions=(-1, 1))),
    "snappy of a later compatible version": ("snappy", xerial(snappy(PLAIN), versions=(1, 2))),
    "snappy without a frame": ("snappy", snappy(PLAIN)),
    "lz4": ("lz4", lz4_frame(PLAIN)),
    "lz4 of stored blocks": ("lz4", lz4_stored(PLAIN)),
    "lz4 with a content checksum": ("lz4", SUMMED),
    "lz4 with block checksums": ("lz4", BLOCKS_SUMMED),
    "lz4 with a content size": ("lz4", lz4_frame(PLAIN, store_size=True)),
    "lz4 with all of these": ("lz4", lz4_frame(PLAIN, content_checksum=True, block_checksum=True, store_size=True)),
    "zstd": ("zstd", zstd(PLAIN)),
    "zstd with a checksum": ("zstd", ZSTD_SUMMED),
    "zstd without a size": ("zstd", zstd(PLAIN, write_content_size=False)),
    "zstd of many blocks": ("zstd", zstd_stream(PLAIN)),
    "zstd in frames": ("zstd", zstd(PLAIN[:HALF]) + zstd(b"") + zstd(PLAIN[HALF:])),
    "zstd among what is to be skipped": ("zstd", SKIPPABLE + zstd(PLAIN) + SKIPPABLE),
    "zstd with a window of 128 MiB": ("zstd", zstd_raw(PLAIN, "0088")),
}
"""Each of these holds CONTENT."""

WRONG: dict[str, tuple[str, bytes]] = {
    "another codec's": ("gzip", zstd(PLAIN)),
    "raw deflate": ("gzip", zlib.compress(PLAIN)[2:-4]),
    "zlib": ("gzip", zlib.compress(PLAIN)),
    "a wrong checksum of gzip's header": ("gzip", gzip_member(PLAIN, header_sum=1)),
    "a wrong checksum of gzip's content": ("gzip", altered(gzip.compress(PLAIN), -8)),
    "a wrong size of gzip's content": ("gzip", altered(gzip.compress(PLAIN), -4)),
    "an unknown gzip flag": ("gzip", gzip.compress(PLAIN)[:3] + b"\x20" + gzip.compress(PLAIN)[4:]),
    "gzip, then zeros": ("gzip", gzip.compress(PLAIN) + bytes(8)),
    "a negative snappy block": ("snappy", xerial() + b"\xff\xff\xff\xff" + snappy(PLAIN)),
    "a snappy block of no byte": ("snappy", xerial(snappy(PLAIN), b"")),
    "a snappy stream that ends in its header": ("snappy", xerial(snappy(PLAIN)) + xerial()[:-1]),
    "snappy, a stream after a bare block": ("snappy", snappy(PLAIN[:HALF]) + xerial(snappy(PLAIN[HALF:]))),
    "Google's framing of snappy": ("snappy", bytes.fromhex("ff060000734e61507059") + snappy(PLAIN)),
    "lz4 blocks that depend": ("lz4", bytes.fromhex("04224d184040c0") + lz4_stored(PLAIN)[7:]),
    "a wrong checksum of lz4's header": ("lz4", altered(lz4_stored(PLAIN), 6)),
    "a wrong checksum of lz4's content": ("lz4", altered(SUMMED, -1)),
    "a wrong checksum of an lz4 block": ("lz4", altered(BLOCKS_SUMMED, -5)),
    "a wrong size of lz4's content": ("lz4", lz4_frame(PLAIN + b"x", store_size=True)[:15] + lz4_stored(PLAIN)[7:]),
    "two lz4 frames": ("lz4", lz4_stored(PLAIN[:HALF]) + lz4_stored(PLAIN[HALF:])),
    "lz4 among what is to be skipped": ("lz4", SKIPPABLE + lz4_stored(PLAIN)),
    "a wrong checksum of zstd's content": ("zstd", altered(ZSTD_SUMMED, -1)),
    "a wrong size of zstd's content": ("zstd", zstd_raw(PLAIN, "2001")),
    "zstd with a window beyond 128 MiB": ("zstd", zstd_raw(PLAIN, "0089")),
    "zstd with a window of 2 GiB, and its size": ("zstd", zstd_raw(PLAIN, "80a8" + len(PLAIN).to_bytes(4, "little").hex())),
    "zstd with a dictionary": ("zstd", zstd_raw(PLAIN, "015807")),
    "zstd with a reserved bit": ("zstd", zstd_raw(PLAIN, "0858")),
    "zstd of version 0.7": ("zstd", bytes.fromhex("27b52ffd") + zstd(PLAIN)[4:]),
    "zstd that is skipped as a whole": ("zstd", SKIPPABLE),
    "what is skipped is cut off": ("zstd", zstd(PLAIN) + SKIPPABLE[:-1]),
}


def whole(record: bytes) -> bytes:
    return varint(len(record)) + record


BROKEN: dict[str, dict[str, Any]] = {
    "too few records": {"payload": Record().encoded(0, TIME) * 2},
    "no record": {"payload": b""},
    "a byte too many": {"payload": Record().encoded(0, TIME) + b"\0"},
    "a record cut off": {"payload": Record().encoded(0, TIME)[:-1]},
    "a record length beyond": {"payload": varint(100) + bytes(60)},
    "a record length far beyond": {"payload": b"\xfe\xff\xff\xff\x0f" + bytes(60)},
    "a record length of six bytes": {"payload": b"\x80\x80\x80\x80\x80\x00" + bytes(60)},
    "a negative record length": {"payload": varint(-7) + bytes(6)},
    "a record length of no byte": {"payload": varint(0) + bytes(6)},
    "a key length beyond": {"payload": whole(b"\0" + varint(0) * 2 + varint(90) + b"k" * 10 + varint(-1) + varint(0))},
    "a key length of -2": {"payload": whole(b"\0" + varint(0) * 2 + varint(-2) + varint(-1) + varint(0))},
    "a value length of -2": {"payload": whole(b"\0" + varint(0) * 2 + varint(-1) + varint(-2) + varint(0))},
    "a value length beyond": {"payload": whole(b"\0" + varint(0) * 2 + varint(-1) + varint(2**31 - 1) + varint(0))},
    "a key length of six bytes": {"payload": whole(b"\0" + varint(0) * 2 + b"\x80\x80\x80\x80\x80\x00" + varint(-1) + varint(0))},
    "a key length of 33 bits": {"payload": whole(b"\0" + varint(0) * 2 + b"\x82\x80\x80\x80\x10" + b"k" + varint(-1) + varint(0))},
    "a time of 65 bits": {"payload": whole(b"\0" + b"\x80" * 9 + b"\x02" + varint(0) + varint(-1) * 2 + varint(0))},
    "a time of eleven bytes": {"payload": whole(b"\0" + b"\x80" * 10 + b"\0" + varint(0) + varint(-1) * 2 + varint(0))},
    "a negative header count": {"payload": whole(b"\0" + varint(0) * 2 + varint(-1) * 2 + varint(-1))},
    "a header count beyond": {"payload": whole(b"\0" + varint(0) * 2 + varint(-1) * 2 + varint(2) + bytes(2))},
    "a huge header count": {"payload": whole(b"\0" + varint(0) * 2 + varint(-1) * 2 + varint(2**31 - 1) + bytes(2))},
    "a header without a key": {"payload": whole(b"\0" + varint(0) * 2 + varint(-1) * 2 + varint(1) + varint(-1) + varint(-1))},
    "a header value of -2": {"payload": whole(b"\0" + varint(0) * 2 + varint(-1) * 2 + varint(1) + varint(0) + varint(-2))},
    "a header value beyond": {"payload": whole(b"\0" + varint(0) * 2 + varint(-1) * 2 + varint(1) + varint(0) + varint(50))},
    "the 100th header beyond": {
        "payload": whole(b"\0" + varint(0) * 2 + varint(-1) * 2 + varint(100) + bytes(198) + varint(0) + varint(50))
    },
    "the 100th header without a key": {"payload": whole(b"\0" + varint(0) * 2 + varint(-1) * 2 + varint(100) + bytes(198) + b"\1\0")},
    "a delta beyond the last": {"deltas": [7], "last_offset_delta": 6},
    "a negative delta": {"deltas": [-1], "last_offset_delta": 6},
    "a negative count": {"records": -1},
    "a count beyond the offsets": {"records": 2},
    "a count beyond the bytes": {"records": 2**20, "last_offset_delta": 2**31 - 1},
    "a count beyond the limit": {"records": 2**20 + 1, "last_offset_delta": 2**31 - 1},
    "the largest count": {"records": 2**31 - 1, "last_offset_delta": 2**31 - 1},
    "a negative last offset delta": {"last_offset_delta": -1},
    "codec 5": {"attributes": 5},
    "codec 7": {"attributes": 7},
    "magic 1": {"magic": 1},
    "magic 3": {"magic": 3},
    "a length below 49": {"length": 48},
    "a length beyond": {"length": 1000},
    "a negative length": {"length": -1},
    "a wrong checksum": {"crc": 1},
}
"""Arguments of `batch([Record()], …)` that break one rule each."""
