"""Checking a whole root, beside reading its data files and nothing else, and beside their CRC-32C."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path

import google_crc32c
import numpy as np

from bench.harness import Bench, Side, topic_options
from sparklog import Log

BYTES = 400_000_000
"""The size of a root, so that it stays in the page cache."""
_KILOBYTE = "unhex(concat_ws('', transform(sequence(1, 32), i -> sha2(concat(hex(key), i), 256)))) AS value"
# Name: the kind of records, the bytes of a record, the columns, and the codec.
CASES = {
    "records of 100 bytes, uncompressed": ("random", 126, ["key", "value"], "none"),
    "records of 1 KiB, uncompressed": ("random", 1056, ["key", _KILOBYTE], "none"),
    "records of 300 bytes, zstd": ("flights", 300, ["key", "value"], "zstd"),
    "records of 1 KiB, zstd": ("random", 1056, ["key", _KILOBYTE], "zstd"),
}


def run(bench: Bench) -> None:
    bench.processes.append(os.getpid())
    try:
        for number, (case, (kind, size, columns, codec)) in enumerate(CASES.items()):
            root = bench.path(f"verify-{number}")
            rows = bench.data(kind).limit(min(bench.records, BYTES // size)).selectExpr(*columns)
            rows.repartition(4).write.format("partlog").options(**topic_options(codec)).mode("append").save(root)
            os.sync()
            _compare(bench, case, root)
            bench.remove(f"verify-{number}")
    finally:
        bench.processes.remove(os.getpid())


def _compare(bench: Bench, case: str, root: str) -> None:
    files = sorted(Path(root, "_partlog").glob("*/data/*/*.log"))
    report = Log(root).verify()
    assert report.ok, report
    sides: dict[str, Side] = {
        "verify": partial(_verify, root),
        "verify, one process": partial(_verify, root, jobs=1),
        "verify --quick": partial(_verify, root, quick=True),
        "cat > /dev/null": lambda: subprocess.run(["cat", *files], stdout=subprocess.DEVNULL, check=True),
        "CRC-32C": partial(_sum, files),
    }
    octets = sum(file.stat().st_size for file in files)
    bench.compare(f"verify {octets / 1e6:,.0f} MB: {case}", "verify, one process", sides, records=report.checked.records)


def _verify(root: str, **how: int) -> None:
    assert Log(root).verify(**how).ok  # type: ignore[arg-type] # numbers of processes, and whether it is quick


def _sum(files: list[Path]) -> None:
    for file in files:
        with file.open("rb") as data:
            while block := data.read(1 << 21):
                google_crc32c.value(np.frombuffer(block, dtype=np.uint8))
