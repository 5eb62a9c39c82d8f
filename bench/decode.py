"""Decoding record batches in Python: our reader, and kafka-python over the same batches.

kafka-python writes the batches. It reads each record into an object and does not verify checksums. Our reader checks everything
that the format demands, checksums too, and makes Arrow record batches.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from bench.harness import Bench
from sparklog.batches.columns import arrow_batch
from sparklog.batches.header import Header
from sparklog.batches.records import Payload, locate

TIME = 1_700_000_000_000
CHUNK_BYTES = 1 << 21
TOTAL_BYTES = 1 << 24
CODECS = {"none": 0, "gzip": 1}
# Name: bytes of a batch, shortest and longest value, headers, codec.
CASES: dict[str, tuple[int, int, int, list[tuple[str, bytes]], str]] = {
    "values of 100 bytes, batches of 256 KiB": (256 << 10, 100, 100, [], "none"),
    "values of 50 to 150 bytes, batches of 16 KiB": (16 << 10, 50, 150, [], "none"),
    "values of 5 to 20 bytes, batches of 256 KiB": (256 << 10, 5, 20, [], "none"),
    "values of 100 bytes and a header, batches of 256 KiB": (256 << 10, 100, 100, [("trace", b"0123456789abcdef")], "none"),
    "values of 50 to 150 bytes, batches of 256 KiB, gzip": (256 << 10, 50, 150, [], "gzip"),
}


def run(bench: Bench) -> None:
    for case, arguments in CASES.items():
        batches, count = _written(*arguments)
        assert _ours(batches) == _theirs(batches) == count
        sides = {"sparklog": partial(_ours, batches), "kafka-python": partial(_theirs, batches)}
        bench.compare(f"decode in Python, {case}", "sparklog", sides, records=count)


def _written(batch_bytes: int, shortest: int, longest: int, headers: list[tuple[str, bytes]], codec: str) -> tuple[list[bytes], int]:
    """Batches with keys of 16 bytes, and the number of records in all of them."""
    numbers = random.Random(1)
    batches: list[bytes] = []
    count = 0
    while sum(map(len, batches)) < TOTAL_BYTES and len(batches) * batch_bytes < TOTAL_BYTES:
        builder = MemoryRecordsBuilder(magic=2, compression_type=CODECS[codec], batch_size=batch_bytes)
        number = 0
        while builder.append(TIME + number, numbers.randbytes(16), numbers.randbytes(numbers.randint(shortest, longest)), headers):
            number += 1
        builder.close()
        batches.append(bytes(builder.buffer()))
        count += number
    return batches, count


def _ours(batches: list[bytes]) -> int:
    count = 0
    for chunk in _chunks(batches):
        for records in locate(chunk):
            count += arrow_batch("topic", 0, records, 0, records.offsets.size).num_rows
    return count


def _chunks(batches: list[bytes]) -> Iterator[list[Payload]]:
    """The batches in chunks like those of `sparklog.ondisk.reader`."""
    chunk: list[Payload] = []
    octets = 0
    for batch in batches:
        chunk.append(Payload.of(Header.read(batch, 0, len(batch)), memoryview(batch), 0, 1 << 26))
        octets += chunk[-1].bytes
        if octets >= CHUNK_BYTES:
            yield chunk
            chunk, octets = [], 0
    yield chunk


def _theirs(batches: list[bytes]) -> int:
    count = 0
    for batch in batches:
        found = MemoryRecords(batch).next_batch()
        for _ in found:
            count += 1
    return count
