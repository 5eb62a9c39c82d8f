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
with the speed of memory ("bytes and CRC-32C alone" has taken 0.05 to 0.09 s). Records have a random key of 16 bytes and
a random value of 100, seed fixed, in 8 partitions; files are synced to disk within the time of a write. A ratio of 2
means that partlog is twice as fast. All runs have 4 GB of heap.

"A source that costs nothing" reads and decodes nothing: it gives Spark one batch, in Spark's own vectors, until there
were as many records. What it takes is Spark's; taking whole rows from our vectors is somewhat cheaper for Spark. "Bytes
and CRC-32C alone" is what a checked read takes without Spark. Spark takes some 50 ms here for any query, and some
milliseconds for a task.

| case | records | side | seconds: median (least to most) | M records/s | ratio | of five runs |
| --- | ---: | --- | ---: | ---: | ---: | ---: |
"""


def write() -> None:
    """Writes the page."""
    lines = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    runs: dict[str, list[Line]] = {}
    for line in lines:
        runs.setdefault(line["case"], []).append(line)
    rows = "".join(_rows(of_case[-RUNS_SHOWN:]) for of_case in runs.values())
    PAGE.write_text(HEAD + rows + _circumstances([of_case[-1] for of_case in runs.values()]), encoding="utf-8")


def _rows(runs: list[Line]) -> str:
    """The newest of the runs of a case, a row for each side."""
    line = runs[-1]
    if "seconds" not in line:
        return ""
    rows = ""
    for side, times in line["seconds"].items():
        median = statistics.median(times)
        ratio = f"{line['ratios'][side]:.2f}" if side in line["ratios"] else ""
        ratios = [run["ratios"][side] for run in runs if side in run["ratios"]]
        moved = f"{min(ratios):.2f} to {max(ratios):.2f}" if len(ratios) > 1 else ""
        spread = f"{median:.2f} ({min(times):.2f} to {max(times):.2f})"
        rows += f"| {line['case']} | {line['records']:,} | {side} | {spread} | {line['records'] / median / 1e6:.2f} | {ratio} | {moved} |\n"
    return rows


def _circumstances(lines: list[Line]) -> str:
    notes = ""
    for line in lines:
        if "seconds" not in line:
            figures = {
                name: value for name, value in line.items() if name not in ("case", "at", "commit", "spark", "python", "cores", "master")
            }
            notes += f"* {line['case']}: " + ", ".join(f"{name} {value:,}" for name, value in figures.items()) + "\n"
    latest = max(lines, key=lambda line: line["at"])
    made = f"Spark {latest['spark']}, Python {latest['python']}, {latest['cores']} cores, {latest['master']}"
    return f"\n{notes}\n{made}; newest line of {latest['at'][:10]}, commit {latest['commit']}.\n"


if __name__ == "__main__":
    write()
