"""Small writes of 1,000 rows each: to a new topic, and to a topic after a thousand of them; and a scan of that topic."""

from __future__ import annotations

import os
import time

from bench.harness import PEERS, Bench, write_to
from bench.scan import values

ROWS = 1000
SIDES = ("partlog", *PEERS)


def run(bench: Bench, writes: int) -> None:
    batch = bench.data().limit(ROWS).cache()
    assert batch.count() == ROWS

    def clear() -> None:
        for side in SIDES:
            bench.remove(f"small-{side}")
        os.sync()

    clear()
    sides = {name: write_to(bench, batch, name, "none", f"small-{name}") for name in SIDES}
    bench.compare(f"write of {ROWS:,} rows, new", "partlog", sides, before=clear, records=ROWS)
    clear()
    seconds = dict.fromkeys(SIDES, 0.0)
    for _ in range(writes):
        for name, write in sides.items():
            began = time.perf_counter()
            write()
            seconds[name] += time.perf_counter() - began
    bench.note(f"{writes:,} writes of {ROWS:,} rows, seconds", **{name: round(took, 1) for name, took in seconds.items()})
    readers = {name: bench.spark.read.format(name).load(bench.path(f"small-{name}")) for name in SIDES}
    assert {rows.count() for rows in readers.values()} == {writes * ROWS}
    scans = {name: values(rows) for name, rows in readers.items()}
    bench.compare(f"scan after {writes:,} writes of {ROWS:,} rows, sum(length(value))", "partlog", scans, records=writes * ROWS)
    bench.compare(f"write of {ROWS:,} rows, after {writes:,} of them", "partlog", sides, records=ROWS)
    clear()
    batch.unpersist()
