"""The CPU time of each way to read with a consumer, beside the CPU time of an earlier version if `--before` names its folder.

Each version is measured in processes of its own, which take turns, so that both meet the same machine. These run this file as a script.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparklog import Consumer

if TYPE_CHECKING:
    from bench.harness import Bench

RECORDS = 40_000
PAIRS = 9
REPEATS = 3
SMALL = 10
POLLS = 500
GROUPS = ("alone", "owner of a group", "member of a group")
_NEVER_MS = 3_600_000
Figures = dict[str, float]
"""Microseconds of CPU of a record, or of a poll that finds no record, by the name of the case."""


def run(bench: Bench, before: Path | None) -> None:
    from bench.harness import topic_options

    rows = bench.data().limit(RECORDS).coalesce(2)
    versions = {"now": Path(__file__).parents[1]} | ({} if before is None else {"before": before})
    for codec in ("none", "zstd"):
        root = bench.path(f"consumer-calls-{codec}")
        rows.write.format("partlog").options(**topic_options(codec)).mode("append").save(root)
        for case, figures in in_pairs(root, versions).items():
            bench.note(f"µs of CPU of a consumer, {codec}, {case}", **figures)


def in_pairs(root: str, versions: dict[str, Path], pairs: int = PAIRS) -> dict[str, dict[str, float | str]]:
    """The medians of each version, each with the least and the greatest of its runs, and the median of the ratios of pairs.

    Args:
        root: A root with a topic `t` of RECORDS records.
        versions: The folders of the versions by name; `now` is divided by the others.
        pairs: How often each version runs.
    """
    runs: dict[str, list[Figures]] = {name: [] for name in versions}
    for number in range(pairs):
        for name in sorted(versions, reverse=bool(number % 2)):
            environment = {**os.environ, "PYTHONPATH": str(versions[name])}
            ran = subprocess.run([sys.executable, __file__, root], env=environment, stdout=subprocess.PIPE, text=True, check=True)
            runs[name].append(json.loads(ran.stdout))
    found: dict[str, dict[str, float | str]] = {}
    for case in runs["now"][0]:
        figures = found[case] = {}
        for name, its in runs.items():
            spent = [each[case] for each in its]
            figures[name] = f"{statistics.median(spent):.3f} ({min(spent):.3f} to {max(spent):.3f})"
            if name != "now":
                ratios = [now[case] / each[case] for now, each in zip(runs["now"], its, strict=True)]
                figures[f"now / {name}"] = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return found


def measured(root: str) -> Figures:
    """The figures of the sparklog that Python finds first; the median of some repeats of each."""
    found: Figures = {}
    for group in GROUPS:
        for deserializers in (False, True):
            with tempfile.TemporaryDirectory() as table, _consumer(root, group, table, deserializers=deserializers) as consumer:
                while not consumer.poll():
                    pass  # a member has no partitions yet
                calls: dict[str, tuple[Callable[[Consumer, int], int], int]] = {
                    "poll": (_poll, RECORDS),
                    f"poll(max_records={SMALL})": (_small, SMALL * POLLS),
                    "iteration": (_iterate, RECORDS),
                }
                if not deserializers:  # they change nothing in these
                    calls |= {"poll_batches": (_batches, RECORDS), "poll that finds nothing": (_idle, POLLS)}
                words = ", with deserializers" if deserializers else ""
                found |= {f"{group}, {name}{words}": _microseconds(consumer, *call) for name, call in calls.items()}
    return found


def _consumer(root: str, group: str, table: str, *, deserializers: bool) -> Consumer:
    """By arguments that earlier versions have too. Commits and heartbeats come now and then, which is another cost."""
    given: dict[str, Any] = {"auto_offset_reset": "earliest", "auto_commit_interval_ms": _NEVER_MS}
    if group != GROUPS[0]:
        given |= {"group": "g", "table": table}
    if group == GROUPS[2]:
        given |= {"assignor": "sticky", "session_timeout_ms": 3 * _NEVER_MS, "heartbeat_interval_ms": _NEVER_MS}
    if deserializers:
        given |= {"key_deserializer": bytes.hex, "value_deserializer": bytes.hex}
    return Consumer(root, "t", **given)


def _microseconds(consumer: Consumer, call: Callable[[Consumer, int], int], units: int) -> float:
    spent = []
    for _ in range(1 + REPEATS):
        if call is _idle:
            consumer.seek_to_end()
            consumer.poll()
        else:
            consumer.seek_to_beginning()
        began = time.process_time()
        found = call(consumer, units)
        spent.append(time.process_time() - began)
        assert found == units, f"{found} in place of {units}"
    return statistics.median(spent[1:]) / units * 1e6


def _poll(consumer: Consumer, records: int) -> int:
    found = 0
    while found < records:
        found += sum(map(len, consumer.poll().values()))
    return found


def _small(consumer: Consumer, records: int) -> int:
    found = 0
    while found < records:
        found += sum(map(len, consumer.poll(max_records=SMALL).values()))
    return found


def _iterate(consumer: Consumer, records: int) -> int:
    return sum(1 for _ in islice(consumer, records))


def _batches(consumer: Consumer, records: int) -> int:
    found = 0
    while found < records:
        found += sum(batch.num_rows for batch in consumer.poll_batches().values())
    return found


def _idle(consumer: Consumer, polls: int) -> int:
    return sum(not consumer.poll() for _ in range(polls))


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1])))
