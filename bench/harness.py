"""Shared by all cases: it runs the sides of a comparison in turn, and keeps a line of what was measured."""

from __future__ import annotations

import datetime
import json
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from bench.data import made

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 8
WARM_UP_S = 6
ROUNDS_MAX = 25
PEERS = ("parquet", "delta")
RESULTS = Path(__file__).parent / "results.ndjson"
MADE = ("bench/results.ndjson", "bench/RESULTS.md", "docs/performance.md", "docs/guide/stores.md")
"""The files that a run changes."""

FASTER = "parquet, zstd's level 1"

# A function whose run is timed.
Side: TypeAlias = Callable[[], object]


@dataclass
class Bench:
    """One run of the benchmarks. Each side of a case is a function. Sides take turns, so that a slow phase of the machine slows all."""

    spark: SparkSession
    folder: Path
    records: int
    rounds: int
    seconds: float
    """Rounds are added until a comparison has taken this long, up to ROUNDS_MAX rounds."""
    processes: list[int]
    """The processes whose CPU time counts: Spark's JVM, and those that a side starts."""
    keeps: bool
    """Whether measurements are kept in results.ndjson."""
    beside: str = ""
    """Other work of the machine, which is kept with them."""
    measured: list[dict[str, object]] = field(default_factory=list)
    """The lines of this run, whether or not they are kept."""
    only: str = ""
    """A pattern of the calls that the cases distance measure."""

    def is_wanted(self, *calls: str) -> bool:
        """Whether this run measures one of these calls."""
        return any(re.search(self.only, call) for call in calls)

    def data(self, kind: str = "random") -> DataFrame:
        """`records` rows of one of the kinds that `bench.data` makes."""
        return self.spark.read.parquet(str(made(self.spark, self.folder, kind, self.records)))

    def path(self, name: str) -> str:
        """The path of something in the folder of this run."""
        return str(self.folder / name)

    def remove(self, name: str) -> None:
        """Deletes something in the folder of this run, if it exists."""
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
        """Warms up, then runs the sides in turn for `rounds` rounds. Prints and keeps medians, and the ratio of each side to `ours`.

        * CPU time is that of all threads. Compare it, not seconds, if the machine does other work.
        * Sides that take tenths of a second get more rounds, because their times vary more.
        * Each round runs the sides in another random order, so that one side's garbage is not always collected during the same other side.
        * `before` runs before each side, and its time does not count.
        """
        records = records or self.records
        for _ in range(2):
            for side in sides.values():
                # A JVM compiles code that runs for seconds, not code that ran once.
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
                began, spent = time.perf_counter(), cpu_seconds(self.processes)
                sides[name]()
                seconds[name].append(time.perf_counter() - began)
                cpu[name].append(cpu_seconds(self.processes) - spent)
        self.times(case, ours, seconds, records=records, cpu={name: statistics.median(times) for name, times in cpu.items()})

    def times(
        self, case: str, ours: str, seconds: Mapping[str, list[float]], *, records: int, cpu: Mapping[str, float] | None = None
    ) -> None:
        """Prints and keeps what was measured of each side: medians, and the ratio of each side to `ours`."""
        medians = {name: statistics.median(times) for name, times in seconds.items()}
        print(f"\n{case}: {records:,} records, median of {min(map(len, seconds.values()))}")
        for name, median in medians.items():
            times = seconds[name]
            ratio = ""
            if name != ours:
                ratio = f"   {ours} is {median / medians[ours]:.2f}× as fast"
                ratio += f", by CPU {cpu[name] / cpu[ours]:.2f}×" if cpu and cpu[ours] else ""
            figures = f"{median:7.3f} s ({min(times):.3f} to {max(times):.3f}) {records / median / 1e6:7.2f} M records/s"
            print(f"  {name:<34} {figures}{f', CPU {cpu[name]:.2f} s' if cpu else ''}{ratio}", flush=True)
        self._keep(
            {
                "case": case,
                "records": records,
                "ours": ours,
                "seconds": {name: [round(each, 3) for each in times] for name, times in seconds.items()},
                **({"cpu": {name: round(used, 2) for name, used in cpu.items()}} if cpu else {}),
                "ratios": {name: round(median / medians[ours], 2) for name, median in medians.items() if name != ours},
            }
        )

    def note(self, case: str, **figures: object) -> None:
        """Prints and keeps figures that are not times."""
        print(
            f"\n{case}: "
            + ", ".join(f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value in figures.items()),
            flush=True,
        )
        self._keep({"case": case, **figures})

    def sizes(self, case: str, sizes: Mapping[str, int]) -> None:
        """Prints and keeps the number of bytes that each side wrote."""
        print(f"\n{case}, bytes on disk: {self.records:,} records")
        for name, size in sizes.items():
            print(
                f"  {name:<34} {size:>15,}   {size / self.records:7.1f} a record   {size / sizes['partlog']:.2f} of partlog's", flush=True
            )
        self._keep({"case": case, "records": self.records, "bytes": dict(sizes)})

    def _keep(self, measured: dict[str, object]) -> None:
        self.measured.append(measured)
        if not self.keeps:
            return
        circumstances = {
            "at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "commit": _commit(),
            "spark": self.spark.version,
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "master": self.spark.conf.get("spark.master", ""),
            **({"beside": self.beside} if self.beside else {}),
        }
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**measured, **circumstances}) + "\n")


def cpu_seconds(processes: Iterable[int]) -> float:
    """The CPU time that processes have used since they started."""
    ticks = 0
    for process in processes:
        # The name in parentheses can hold anything. After it come the fields from number 3 on: 14 is user time, 15 system time, 16
        # and 17 are those of children that have ended.
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def topic_options(codec: str) -> dict[str, str]:
    """The options of the topic that the data is written to."""
    return {"topic": "t", "partitions": str(PARTITIONS), "compression.type": codec}


def write_to(bench: Bench, rows: DataFrame, format: str, codec: str, name: str = "write", level: int | None = None) -> Side:
    """A side that writes rows with a format and syncs them to disk. Without `level`, Parquet uses zstd's level 3."""
    options = topic_options(codec) if format == "partlog" else {"compression": codec}
    if level is not None:
        options["parquet.compression.codec.zstd.level"] = str(level)

    def write() -> None:
        rows.write.format(format).options(**options).mode("append").save(bench.path(name))
        os.sync()

    return write


def log_and_copies(bench: Bench, codec: str, kind: str = "random") -> dict[str, DataFrame]:
    """The data as a topic, and the same rows in the same order and with the same codec in Parquet and Delta. Made once per folder."""
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
    # Otherwise the disk would still write these files while they are read.
    os.sync()
    return readers


def copy_of(bench: Bench, side: str, codec: str, kind: str = "random") -> Path:
    """The path of what `log_and_copies` makes for one side."""
    return bench.folder / f"{side}-{kind}-{codec}-{bench.records}"


def metric(rows: DataFrame, node: str, name: str) -> int:
    """The sum of a metric over the nodes of a plan whose names begin with `node`, once it has run."""
    plan: Any = rows._jdf.queryExecution().executedPlan()
    plan.executeCollect()
    total = 0
    nodes = [plan]
    while nodes:
        one = nodes.pop()
        kind = one.nodeName()
        if kind.startswith("AdaptiveSparkPlan"):
            nodes.append(one.executedPlan())
        elif "QueryStage" in kind:
            nodes.append(one.plan())
        elif kind.startswith(node) and one.metrics().contains(name):
            total += int(one.metrics().apply(name).value())
        children = one.children()
        nodes.extend(children.apply(i) for i in range(children.size()))
    return total


def _commit() -> str:
    """The commit of this checkout, with `-dirty` if more is changed than results."""
    root = Path(__file__).parents[1]

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--", ".", *(f":!{page}" for page in MADE))
    return (git("rev-parse", "--short=8", "HEAD") or "unknown") + ("-dirty" if changed else "")
