"""The table that ends the cases `distance`: a row for each call at 30 ms a request, with the figure wanted, measured, and the floor."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from bench import distance
from bench.distance import floor
from bench.harness import RESULTS
from bench.stores import ALONE, HDFS, OURS, PEER, S3

# A line of results.ndjson.
Line: TypeAlias = Mapping[str, Any]
# The newest line of a case at 30 ms in S3; empty without one.
Newest: TypeAlias = Callable[[str], Line]


@dataclass(frozen=True)
class _Row:
    what: str
    wanted: str
    cases: Sequence[str]
    measured: Callable[..., str]
    """Takes a line for each of `cases`."""
    floors: Sequence[str] = ()
    """Cases whose seconds are added up."""


def _seconds(line: Line) -> str:
    """The median, and the seconds of the first run, in which a JVM has compiled nothing."""
    first = f", first {line['each s'][0]:.2f}" if len(line.get("each s", ())) > 1 else ""
    return f"{line['s']:.2f} s{first}, {line['requests']} requests"


def _ratio(ours: Line, peer: Line) -> str:
    return f"{peer['s'] / ours['s']:.1f} × Parquet, {ours['s']:.2f} s"


def _a_topic(line: Line) -> str:
    return f"{line['requests'] / distance.IDLE_TOPICS:.2f} a second and topic"


def _of_range(line: Line) -> str:
    return f"{line['bytes'] / distance.RANGE_BYTES:.2f} × its bytes, {line['requests']} requests, {line['s']:.2f} s"


def _compared(line: Line) -> str:
    seconds = {side: statistics.median(times) for side, times in line["seconds"].items()}
    alone = f", {seconds[ALONE] / seconds[OURS]:.2f} × the bytes alone" if ALONE in seconds else ""
    return f"{seconds[PEER] / seconds[OURS]:.2f} × Parquet{alone}, {seconds[OURS]:.2f} s"


def _figures(line: Line) -> str:
    return ", ".join(f"{name} {figure}" for name, figure in line.items() if name.startswith(("MiB", "after")))


_WRITTEN, _SCANNED, _TRIGGER = distance.MANY_WRITTEN, distance.MANY_SCANNED, (distance.TRIGGER_NOTHING,)
_ROWS = (
    _Row("`sparklog topics`, 54 topics", "2 s, 4 requests a topic", [distance.COMMAND_TOPICS], _seconds, [floor(distance.COMMAND_TOPICS)]),
    _Row("`CALL topics`, 54 topics", "", [distance.CALL_TOPICS], _seconds, [floor(distance.CALL_TOPICS)]),
    _Row("`log.topics()`, 54 topics", "", [distance.LOG_TOPICS], _seconds, [floor(distance.LOG_TOPICS)]),
    _Row("name in log", "1 LIST", [distance.NAME_IN_LOG], _seconds, [floor(distance.NAME_IN_LOG)]),
    _Row("open a topic of 99 versions, Spark", "0.5 s", [distance.OPEN_BY_SPARK], _seconds, [floor(distance.OPEN_BY_SPARK)]),
    _Row("open a topic of 99 versions, Python", "0.5 s", [distance.OPEN_BY_PYTHON], _seconds, [floor(distance.OPEN_BY_PYTHON)]),
    _Row("`read()` of 99 segments", "0.9 s", [distance.READ], _seconds, [floor(distance.READ)]),
    _Row("`verify(quick=True)`, 99 segments", "2 s", [distance.VERIFY_QUICK], _seconds, [floor(distance.VERIFY_QUICK)]),
    _Row("Spark's sum over 99 segments", "3 × Parquet", [distance.SUM, distance.SUM_OF_PARQUET], _ratio, [floor(distance.SUM)]),
    _Row("write, topic there", "0.3 s", [distance.WRITE], _seconds, [floor(distance.WRITE), distance.WRITE_NOTHING]),
    _Row("write, new topic", "0.6 s", [distance.WRITE_NEW], _seconds, [floor(distance.WRITE_NEW), distance.WRITE_NOTHING]),
    _Row("write, new root", "", [distance.WRITE_ROOT], _seconds, [floor(distance.WRITE_ROOT), distance.WRITE_NOTHING]),
    _Row("trigger, sink", "floor + 20 %", [distance.SINK], _seconds, [floor(distance.SINK), *_TRIGGER]),
    _Row("trigger, sink, merge=false", "floor + 20 %", [distance.SINK_ALONE], _seconds, [floor(distance.SINK), *_TRIGGER]),
    _Row("trigger, source", "floor + 20 %", [distance.SOURCE], _seconds, [floor(distance.SOURCE), *_TRIGGER]),
    _Row("Consumer, 40 segments", "0.6 s", [distance.CONSUME], _seconds, [floor(distance.CONSUME)]),
    _Row("Consumer, idle on 20 topics by name", "1 a second and topic", [distance.IDLE_BY_NAME], _a_topic),
    _Row("Consumer, idle on 20 topics by pattern", "1 a second and topic", [distance.IDLE_BY_PATTERN], _a_topic),
    _Row("scan, S3", "1.5 × Parquet, or the floor", [_SCANNED, f"{_SCANNED}, parquet"], _ratio, [f"{_SCANNED}, bytes alone by S3A"]),
    _Row("write, S3", "1.5 × Parquet", [_WRITTEN, f"{_WRITTEN}, parquet"], _ratio, [f"{_WRITTEN}, bytes alone by S3A"]),
    _Row("64 MiB of 1 GiB, Spark", "1.2 ×, 12 requests", [distance.RANGE_BY_SPARK], _of_range, [floor(distance.RANGE_BY_SPARK)]),
    _Row("64 MiB of 1 GiB, Python", "1.2 ×, 12 requests", [distance.RANGE_BY_PYTHON], _of_range),
)
_OTHERS = (
    _Row("scan, HDFS, without a delay", "1.5 × Parquet, or the floor", [f"{HDFS}: scan, uncompressed, sum(length(value))"], _compared),
    _Row("write, HDFS, without a delay", "1.5 × Parquet", [f"{HDFS}: write, uncompressed"], _compared),
    _Row("memory of a scan", "flat", [distance.MEMORY_OF_SCAN], _figures),
    _Row("memory of a Consumer", "flat", [distance.MEMORY_OF_CONSUMER], _figures),
)


def show(measured: Sequence[Line]) -> None:
    """Prints the table. A figure of an earlier run, from results.ndjson, has its day."""
    newest = {line["case"]: line for line in [*map(json.loads, RESULTS.read_text(encoding="utf-8").splitlines()), *measured]}
    now = {line["case"] for line in measured}
    print("\n| row | wanted | measured | floor |\n| --- | --- | --- | ---: |")
    for rows, place in ((_ROWS, f"{S3} at {distance.TOLD_MS} ms: "), (_OTHERS, "")):
        for row in rows:
            cases = [place + case for case in row.cases]
            if not all(case in newest for case in cases):
                print(f"| {row.what} | {row.wanted} | not measured | |")
                continue
            lines = [newest[case] for case in cases]
            day = "" if now.issuperset([*cases, *(place + each for each in row.floors)]) else f" ({lines[0]['at'][:10]})"
            floors = [newest[place + each]["s"] for each in row.floors if place + each in newest]
            least = f"{sum(floors):.2f} s" if floors and len(floors) == len(row.floors) else ""
            print(f"| {row.what} | {row.wanted} | {row.measured(*lines)}{day} | {least} |", flush=True)
