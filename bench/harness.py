"""What every case needs: data, sides that take turns, and a line of what was measured."""

from __future__ import annotations

import datetime
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

KEY_BYTES = 16
VALUE_BYTES = 100
PARTITIONS = 8
WARM_UP_S = 6
ROUNDS_S = 40
ROUNDS_MAX = 25
RESULTS = Path(__file__).parent / "results.ndjson"

# What is timed.
Side: TypeAlias = Callable[[], object]


@dataclass
class Bench:
    """One run of the benchmarks. Each side of a case is a function; sides take turns, so that the machine's moods hit all."""

    spark: SparkSession
    folder: Path
    records: int
    rounds: int

    def data(self) -> DataFrame:
        """`records` rows of a 16-byte key and a 100-byte value, random, from uncompressed Parquet; the seed is fixed."""
        source = self.folder / f"source-{self.records}"
        if not source.exists():
            _generate(source, self.records)
        return self.spark.read.parquet(str(source))

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def remove(self, name: str) -> None:
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def compare(
        self,
        case: str,
        ours: str,
        sides: Mapping[str, Side],
        *,
        before: Side = lambda: None,
        records: int | None = None,
    ) -> None:
        """Warms up, runs the sides `rounds` times in turn, prints and keeps medians, and the ratios of `ours` to the others.

        What takes tenths of a second is run more often, for its times scatter more. Each round has an order of its own, so
        that the garbage of one side does not always fall to the same other one. What `before` does comes before each of
        them, and its time does not count.
        """
        records = records or self.records
        for _ in range(2):
            for side in sides.values():
                # A JVM compiles what runs for seconds, not what ran once.
                ends = time.perf_counter() + WARM_UP_S / 2
                while True:
                    before()
                    side()
                    if time.perf_counter() > ends:
                        break
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        order = list(sides)
        rounds = 0
        ends = time.perf_counter() + ROUNDS_S
        while rounds < self.rounds or (time.perf_counter() < ends and rounds < ROUNDS_MAX):
            rounds += 1
            random.shuffle(order)
            for name in order:
                before()
                began = time.perf_counter()
                sides[name]()
                seconds[name].append(time.perf_counter() - began)
        medians = {name: statistics.median(times) for name, times in seconds.items()}
        print(f"\n{case}: {records:,} records, median of {rounds}")
        for name, median in medians.items():
            times = seconds[name]
            ratio = "" if name == ours else f"   {ours} is {median / medians[ours]:.2f}× as fast"
            print(f"  {name:<34} {median:7.2f} s ({min(times):.2f} to {max(times):.2f}) {records / median / 1e6:7.2f} M records/s{ratio}")
        self._keep(
            {
                "case": case,
                "records": records,
                "ours": ours,
                "seconds": {name: [round(each, 3) for each in times] for name, times in seconds.items()},
                "ratios": {name: round(median / medians[ours], 2) for name, median in medians.items() if name != ours},
            }
        )

    def note(self, case: str, **figures: object) -> None:
        """Prints and keeps figures that are no times."""
        print(
            f"\n{case}: "
            + ", ".join(f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value in figures.items())
        )
        self._keep({"case": case, **figures})

    def _keep(self, measured: dict[str, object]) -> None:
        circumstances = {
            "at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "commit": _commit(),
            "spark": self.spark.version,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "master": self.spark.conf.get("spark.master", ""),
        }
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**measured, **circumstances}) + "\n")


def topic_options(codec: str) -> dict[str, str]:
    """The topic that the data is written into."""
    return {"topic": "t", "partitions": str(PARTITIONS), "compression.type": codec}


def log_and_copies(bench: Bench, codec: str) -> dict[str, DataFrame]:
    """The data as a topic, and what is read of it in Parquet and Delta by the same codec, in the same order; made once a folder."""
    root = bench.folder / f"log-{codec}-{bench.records}"
    log = bench.spark.read.format("partlog").option("includeHeaders", False).load(str(root))
    if not root.exists():
        bench.data().write.format("partlog").options(**topic_options(codec)).mode("append").save(str(root))
    readers = {"partlog": log}
    for peer in ("parquet", "delta"):
        copy = bench.folder / f"{peer}-{codec}-{bench.records}"
        if not copy.exists():
            log.write.format(peer).option("compression", codec).save(str(copy))
        readers[peer] = bench.spark.read.format(peer).load(str(copy))
    # Else the disk would be busy with what was just made while it is read.
    os.sync()
    return readers


def _commit() -> str:
    here = Path(__file__).parent
    ran = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=here, capture_output=True, text=True, check=False)
    return ran.stdout.strip() or "unknown"


def _generate(target: Path, records: int) -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    print(f"Making {records:,} records …", flush=True)
    target.mkdir(parents=True)
    numbers = np.random.default_rng(42)
    files = 4
    for file in range(files):
        rows = records // files + (1 if file < records % files else 0)
        table = pa.table(
            {"key": _binary(numbers.bytes(rows * KEY_BYTES), KEY_BYTES), "value": _binary(numbers.bytes(rows * VALUE_BYTES), VALUE_BYTES)}
        )
        parquet.write_table(table, target / f"{file}.parquet", compression="none", use_dictionary=False, row_group_size=500_000)


def _binary(data: bytes, width: int) -> pa.Array:
    import pyarrow as pa

    fixed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(data) // width, [None, pa.py_buffer(data)])
    return fixed.cast(pa.binary())
