"""What every case needs: sides that take turns, and a line of what was measured."""

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

from bench.data import made

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 8
WARM_UP_S = 6
ROUNDS_MAX = 25
PEERS = ("parquet", "delta")
RESULTS = Path(__file__).parent / "results.ndjson"

FASTER = "parquet, zstd's level 1"

# What is timed.
Side: TypeAlias = Callable[[], object]


@dataclass
class Bench:
    """One run of the benchmarks. Each side of a case is a function; sides take turns, so that the machine's moods hit all."""

    spark: SparkSession
    folder: Path
    records: int
    rounds: int
    seconds: float
    """Rounds go on for so long, if there are fewer than ROUNDS_MAX."""
    processes: list[int]
    """Those whose CPU time counts: Spark's JVM, and what a side runs beside it."""

    keeps: bool
    """Whether what is measured is kept in results.ndjson."""

    def data(self, kind: str = "random") -> DataFrame:
        """`records` rows of a kind that `bench.data` makes."""
        return self.spark.read.parquet(str(made(self.spark, self.folder, kind, self.records)))

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

        CPU time, of all threads, stands beside seconds: where the machine has other work, it is what can be compared.

        What takes tenths of a second is run more often, for its times scatter more. Each round has an order of its own, so
        that the garbage of one side does not always fall to the same other one. What `before` does comes before each of
        them, and its time does not count.
        """
        records = records or self.records
        for _ in range(2):
            for side in sides.values():
                # A JVM compiles what runs for seconds, not what ran once.
                ends = time.perf_counter() + min(WARM_UP_S, self.seconds) / 2
                while True:
                    before()
                    side()
                    if time.perf_counter() > ends:
                        break
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        cpu: dict[str, list[float]] = {name: [] for name in sides}
        order = list(sides)
        rounds = 0
        ends = time.perf_counter() + self.seconds
        while rounds < self.rounds or (time.perf_counter() < ends and rounds < ROUNDS_MAX):
            rounds += 1
            random.shuffle(order)
            for name in order:
                before()
                began, spent = time.perf_counter(), self._cpu_seconds()
                sides[name]()
                seconds[name].append(time.perf_counter() - began)
                cpu[name].append(self._cpu_seconds() - spent)
        medians = {name: statistics.median(times) for name, times in seconds.items()}
        print(f"\n{case}: {records:,} records, median of {rounds}")
        for name, median in medians.items():
            times = seconds[name]
            used = statistics.median(cpu[name])
            ratio = ""
            if name != ours:
                least = statistics.median(cpu[ours])
                ratio = f"   {ours} is {median / medians[ours]:.2f}× as fast" + (f", by CPU {used / least:.2f}×" if least else "")
            figures = f"{median:7.2f} s ({min(times):.2f} to {max(times):.2f}) {records / median / 1e6:7.2f} M records/s, CPU {used:.2f} s"
            print(f"  {name:<34} {figures}{ratio}", flush=True)
        self._keep(
            {
                "case": case,
                "records": records,
                "ours": ours,
                "seconds": {name: [round(each, 3) for each in times] for name, times in seconds.items()},
                "cpu": {name: round(statistics.median(times), 2) for name, times in cpu.items()},
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

    def sizes(self, case: str, sizes: Mapping[str, int]) -> None:
        """Prints and keeps the bytes of what each side wrote."""
        print(f"\n{case}, bytes on disk: {self.records:,} records")
        for name, size in sizes.items():
            print(
                f"  {name:<34} {size:>15,}   {size / self.records:7.1f} a record   {size / sizes['partlog']:.2f} of partlog's", flush=True
            )
        self._keep({"case": case, "records": self.records, "bytes": dict(sizes)})

    def _cpu_seconds(self) -> float:
        """What the processes have used so far."""
        ticks = 0
        for process in self.processes:
            # After the name, which can hold anything, in parentheses: fields 3 and so on, of which 14 and 15 are user's and system's.
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def _keep(self, measured: dict[str, object]) -> None:
        if not self.keeps:
            return
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


def write_to(bench: Bench, rows: DataFrame, format: str, codec: str, name: str = "write", level: int | None = None) -> Side:
    """Writes rows with a format, and sees that they are on disk. Parquet's level of zstd is 3 if none is given."""
    options = topic_options(codec) if format == "partlog" else {"compression": codec}
    if level is not None:
        options["parquet.compression.codec.zstd.level"] = str(level)

    def write() -> None:
        rows.write.format(format).options(**options).mode("append").save(bench.path(name))
        os.sync()

    return write


def log_and_copies(bench: Bench, codec: str, kind: str = "random") -> dict[str, DataFrame]:
    """The data as a topic, and what is read of it in Parquet and Delta by the same codec, in the same order; made once a folder."""
    root = copy_of(bench, "partlog", codec, kind)
    log = bench.spark.read.format("partlog").option("includeHeaders", False).load(str(root))
    if not root.exists():
        write_to(bench, bench.data(kind), "partlog", codec, root.name)()
    readers = {"partlog": log}
    for peer in PEERS:
        copy = copy_of(bench, peer, codec, kind)
        if not copy.exists():
            log.write.format(peer).option("compression", codec).save(str(copy))
        readers[peer] = bench.spark.read.format(peer).load(str(copy))
    # Else the disk would be busy with what was just made while it is read.
    os.sync()
    return readers


def copy_of(bench: Bench, side: str, codec: str, kind: str = "random") -> Path:
    """Where `log_and_copies` puts it."""
    return bench.folder / f"{side}-{kind}-{codec}-{bench.records}"


def _commit() -> str:
    here = Path(__file__).parent
    ran = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=here, capture_output=True, text=True, check=False)
    return ran.stdout.strip() or "unknown"
