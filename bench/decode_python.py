"""How many records of record batches a second Python decodes: our reader, and kafka-python over the same batches in the same process.

`python bench/decode_python.py` prints a JSON line for each case. kafka-python writes the batches, and makes an object of each record,
without a look at checksums. Our reader checks all that the format asks for, checksums too, and makes Arrow record batches. Both take
turns, the time is that of the processor, and the best of several rounds counts.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from sparklog.ondisk.batch import section
from sparklog.ondisk.columns import record_batch
from sparklog.ondisk.layout import Header
from sparklog.ondisk.records import Section, locate

TIME = 1_700_000_000_000
CHUNK_BYTES = 1 << 21
TOTAL_BYTES = 1 << 24
CODECS = {"none": 0, "gzip": 1}
# Name: bytes of a batch, shortest and longest value, headers, codec.
CASES: dict[str, tuple[int, int, int, list[tuple[str, bytes]], str]] = {
    "values of 100 bytes, batches of 256 KiB": (256 << 10, 100, 100, [], "none"),
    "values of 50 to 150 bytes, batches of 256 KiB": (256 << 10, 50, 150, [], "none"),
    "values of 50 to 150 bytes, batches of 16 KiB": (16 << 10, 50, 150, [], "none"),
    "values of 5 to 20 bytes, batches of 256 KiB": (256 << 10, 5, 20, [], "none"),
    "values of 100 bytes and a header, batches of 256 KiB": (256 << 10, 100, 100, [("trace", b"0123456789abcdef")], "none"),
    "values of 50 to 150 bytes, batches of 256 KiB, gzip": (256 << 10, 50, 150, [], "gzip"),
}


def written(batch_bytes: int, shortest: int, longest: int, headers: list[tuple[str, bytes]], codec: str) -> tuple[list[bytes], int]:
    """Batches with keys of 16 bytes, and how many records they hold together."""
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


def ours(batches: list[bytes]) -> int:
    count = 0
    for chunk in chunks(batches):
        for records in locate(chunk):
            count += record_batch("topic", 0, records, 0, records.offsets.size).num_rows
    return count


def chunks(batches: list[bytes]) -> Iterator[list[Section]]:
    """As `sparklog.ondisk.reader` puts batches together."""
    chunk: list[Section] = []
    octets = 0
    for batch in batches:
        chunk.append(section(Header.read(batch, 0, len(batch)), memoryview(batch), 0, 1 << 26))
        octets += chunk[-1].bytes
        if octets >= CHUNK_BYTES:
            yield chunk
            chunk, octets = [], 0
    yield chunk


def theirs(batches: list[bytes]) -> int:
    count = 0
    for batch in batches:
        found = MemoryRecords(batch).next_batch()
        for _ in found:
            count += 1
    return count


def seconds(decode: Callable[[list[bytes]], int], batches: list[bytes], count: int) -> float:
    begun = time.process_time()
    assert decode(batches) == count
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    ).stdout.strip()
    for case, arguments in CASES.items():
        batches, count = written(*arguments)
        turns = [[seconds(decode, batches, count) for decode in (ours, theirs)] for _ in range(rounds)]
        best_of_ours, best_of_theirs = map(min, zip(*turns, strict=True))
        line = {
            "case": f"decode in Python: {case}",
            "records": count,
            "bytes": sum(map(len, batches)),
            "sparklog_records_per_s": round(count / best_of_ours),
            "kafka_python_records_per_s": round(count / best_of_theirs),
            "ratio": round(best_of_theirs / best_of_ours, 1),
            "commit": commit,
            "python": platform.python_version(),
            "versions": {name: importlib.metadata.version(name) for name in ("kafka-python", "numpy", "pyarrow", "google-crc32c")},
            "cores": os.cpu_count(),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
