"""The decoders in Java and in Python get the same bytes. They return the same records, or both refuse the batch."""

import struct
import subprocess
import time
import zlib
from collections import Counter
from typing import IO, Any

import pytest
from handmade import seeded
from logtool import TIMEOUT_S, small_jvm

from sparklog.batches.header import Header
from sparklog.batches.records import Payload, Records, locate
from sparklog.store.store import Damaged

DECOMPRESSED_MAX = 1 << 20
REFUSED = (-1, 0)


def python(batch: bytes) -> tuple[int, int]:
    """The number of records in a batch, and a CRC-32 over them, computed like `MutatedBatches` of the Java tests."""
    try:
        header = Header.read(batch, 0, len(batch))
        if header.total_bytes != len(batch):
            return REFUSED
        parts = list(locate([Payload.of(header, memoryview(batch), 0, DECOMPRESSED_MAX)]))
    except Damaged:
        return REFUSED
    total = 0
    for part in parts:
        total = summed(part, total)
    return sum(len(part.offsets) for part in parts), total


def summed(records: Records, total: int) -> int:
    def add(at: int, size: int) -> bytes:
        return struct.pack(">i", size) + records.data[at : at + max(size, 0)]

    columns = [records.offsets, records.timestamps, records.key_at, records.key_bytes, records.value_at, records.value_bytes]
    headers = records.headers
    names = zip(*(column.tolist() for column in headers[1:]), strict=True) if headers else iter(())
    counts = headers.per_record.tolist() if headers else [0] * len(records.offsets)
    for (offset, millis, key_at, key_bytes, value_at, value_bytes), count in zip(
        zip(*(column.tolist() for column in columns), strict=True), counts, strict=True
    ):
        total = zlib.crc32(struct.pack(">qq", offset, millis), total)
        total = zlib.crc32(add(key_at, key_bytes) + add(value_at, value_bytes) + struct.pack(">i", count), total)
        for _ in range(count):
            name_at, name_bytes, text_at, text_bytes = next(names)
            total = zlib.crc32(add(name_at, name_bytes) + add(text_at, text_bytes), total)
    return total


def compared(java_classpath: str, seed: int, cases: int) -> Counter[str]:
    """How often both found the same records, and how often both refused."""
    command = [*small_jvm(java_classpath), "-Xmx256m"]
    command += ["io.sparklog.format.MutatedBatches", str(seed), str(cases)]
    found: Counter[str] = Counter()
    slowest = 0.0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        for number in range(cases):
            size = whole(process.stdout, ">i", process)[0]
            batch = process.stdout.read(size)
            java = whole(process.stdout, ">iI", process)
            begun = time.perf_counter()
            answer = python(batch)
            slowest = max(slowest, time.perf_counter() - begun)
            assert answer == java, f"batch {number}: {batch.hex()}"
            found["refused" if java == REFUSED else "same"] += 1
        assert process.stdout.read() == b""
        assert process.wait(TIMEOUT_S) == 0, process.stderr.read().decode()
    print(f"{cases:,} mutations: {found['same']:,} the same records, {found['refused']:,} refused by both; slowest {slowest * 1000:.0f} ms")
    return found


def whole(stream: IO[bytes], layout: str, process: "subprocess.Popen[bytes]") -> tuple[Any, ...]:
    octets = stream.read(struct.calcsize(layout))
    assert len(octets) == struct.calcsize(layout), process.stderr.read().decode() if process.stderr else ""
    return struct.unpack(layout, octets)


def test_mutations(java_classpath: str) -> None:
    found = compared(java_classpath, seeded().randrange(2**63), 6_000)
    assert min(found["same"], found["refused"]) > 1_500, found


@pytest.mark.soak
def test_very_many_mutations(java_classpath: str) -> None:
    found = compared(java_classpath, seeded().randrange(2**63), 300_000)
    assert min(found["same"], found["refused"]) > 75_000, found
