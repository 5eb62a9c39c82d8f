"""Realistic events, which codecs make smaller: bytes on disk, writes and scans."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import functions as F

from bench.alone import alone
from bench.harness import FASTER, PEERS, Bench, copy_of, log_and_copies, write_to
from bench.scan import rows, values

ALONE = "bytes, CRC-32C and decompression alone, in Java"


def run(bench: Bench, kind: str, codecs: list[str]) -> None:
    data = bench.data(kind)
    peers = bench.spark._jvm.org.apache.parquet.hadoop.codec.ZstandardCodec  # type: ignore[union-attr] # there is a JVM
    assert peers.DEFAULT_PARQUET_COMPRESS_ZSTD_LEVEL == 3, "docs/performance.md says that it is 3"
    expected = data.agg(F.count("*"), F.sum(F.length("value"))).collect()

    def clear() -> None:
        bench.remove("write")
        os.sync()

    for codec in codecs:
        label = f"{kind}, {'uncompressed' if codec == 'none' else codec}"
        sides = {name: write_to(bench, data, name, codec) for name in ("partlog", *PEERS)}
        if codec == "zstd":
            sides[FASTER] = write_to(bench, data, "parquet", codec, level=1)
        bench.compare(f"write, {label}", "partlog", sides, before=clear)
        clear()
        readers = log_and_copies(bench, codec, kind)
        for side in readers.values():
            found = side.agg(F.count("partition"), F.sum(F.length("value"))).collect()
            assert found == expected, f"{found} is not {expected}"
        bench.sizes(label, {name: _bytes(copy_of(bench, name, codec, kind)) for name in readers})
        scans = {name: values(frame) for name, frame in readers.items()}
        if codec == "none":
            bench.compare(f"scan, {label}, sum(length(value))", "partlog", scans)
        else:
            with alone(bench, copy_of(bench, "partlog", codec, kind), "decompress") as bare:
                bench.compare(f"scan, {label}, sum(length(value))", "partlog", scans | {ALONE: bare})
        bench.compare(f"scan, {label}, all columns to noop", "partlog", {name: rows(frame) for name, frame in readers.items()})
        for name in readers:
            bench.remove(copy_of(bench, name, codec, kind).name)


def _bytes(folder: Path) -> int:
    """The bytes of all files in a folder; a file with two names counts once."""
    return sum({status.st_ino: status.st_size for file in folder.rglob("*") if file.is_file() for status in [file.stat()]}.values())
