"""The requests that the cases `distance` have counted, their price in dollars, and the tables of docs/guide/stores.md that show both."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from bench import distance
from bench.stream import MANAGERS

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "stores.md"
PRICES = {"PUT": 5.0, "COPY": 5.0, "POST": 5.0, "LIST": 5.0, "GET": 0.4, "HEAD": 0.4, "DELETE": 0.0}
"""Dollars for a million requests: S3 Standard in us-east-1, November 2026."""
DAY_S = 86_400
# A line of results.ndjson.
Line: TypeAlias = dict[str, Any]
_ASKED = {
    f"Spark writes {distance.ROWS:,} rows to a topic": f"write of {distance.ROWS:,} rows, topic there",
    "… to a new topic": f"write of {distance.ROWS:,} rows, new topic",
    "… to a new root, after the server was tried": f"write of {distance.ROWS:,} rows, new root",
    f"Spark opens a topic of {distance.VERSIONS} versions without a checkpoint": distance.OPEN_BY_SPARK,
    f"`CALL partlog.topics` of {distance.TOPICS} topics": distance.CALL_TOPICS,
    f"Spark reads {distance.VERSIONS} small segments": distance.SUM,
    f"`sparklog topics` of {distance.TOPICS} topics": distance.COMMAND_TOPICS,
    f"`log.topics()` of {distance.TOPICS} topics": distance.LOG_TOPICS,
    '`"orders" in Log(root)`': distance.NAME_IN_LOG,
    f"Python opens a topic of {distance.VERSIONS} versions without a checkpoint": distance.OPEN_BY_PYTHON,
    f"`read()` of {distance.VERSIONS} small segments": distance.READ,
    "`verify(quick=True)` of them": distance.VERIFY_QUICK,
    f"a `Consumer` reads {distance.SEGMENTS} small segments": distance.CONSUME,
}
_TRIGGER = f"sink, a trigger of {distance.ROWS:,} rows"
_TRIGGERS = {
    "sink": _TRIGGER,
    "sink, `merge=false`": f"{_TRIGGER}, merge=false",
    "source": f"source, a trigger of {distance.ROWS:,} rows",
    **{f"a checkpoint in S3, {name}": f"checkpoint in the store, a trigger, {name}" for name in MANAGERS},
    "sink of Delta (delta-spark)": f"{_TRIGGER}, delta",
}
_IDLE = {
    "source of a stream without an interval of triggers": ("source, idle on one topic, a second", 1),
    f"consumer of {distance.IDLE_TOPICS} topics": (distance.IDLE_BY_NAME, distance.IDLE_TOPICS),
    f"consumer by a pattern: {distance.IDLE_TOPICS} of {distance.TOPICS} topics": (distance.IDLE_BY_PATTERN, distance.IDLE_TOPICS),
}


def dollars(line: Line) -> float:
    """The price of the requests of a line."""
    return sum(PRICES[kind] * float(number) for kind, number in line["kinds"].items()) / 1e6


def page(runs: Mapping[str, list[Line]]) -> str:
    """The guide with the tables of the newest results."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in {"requests": _requests, "triggers": _triggers, "idle": _idle}.items():
        begins, ends = f"<!-- Made by bench/prices.py: {name} -->\n", "<!-- End of the table -->"
        pattern = f"{re.escape(begins)}.*?{re.escape(ends)}"
        assert len(re.findall(pattern, text, re.DOTALL)) == 1, name
        made = begins + "\n" + table(lambda what: _newest(runs, what)) + "\n" + ends
        text = re.sub(pattern, lambda _, made=made: made, text, flags=re.DOTALL)  # type: ignore[misc]
    return text


def _newest(runs: Mapping[str, list[Line]], what: str) -> Line:
    return runs[f"S3 at {distance.TOLD_MS} ms: {what}"][-1]


def _requests(newest: Callable[[str], Line]) -> str:
    text = "| | PUT, POST, LIST | GET, HEAD | at once | in a row |\n| --- | ---: | ---: | ---: | ---: |\n"
    for name, what in _ASKED.items():
        line = newest(what)
        cells = [_at_the_price_of("PUT", line), _at_the_price_of("GET", line), line["at once"], line["in a row"]]
        text += f"| {name} | {' | '.join(f'{cell:g}' for cell in cells)} |\n"
    return text


def _triggers(newest: Callable[[str], Line]) -> str:
    text = "| a trigger | PUT, POST, LIST | GET, HEAD | dollars for a million |\n| --- | ---: | ---: | ---: |\n"
    for name, what in _TRIGGERS.items():
        line = newest(what)
        text += f"| {name} | {_at_the_price_of('PUT', line):g} | {_at_the_price_of('GET', line):g} | {_round(dollars(line) * 1e6)} |\n"
    return text


def _idle(newest: Callable[[str], Line]) -> str:
    text = "| reader | requests a second and topic | dollars a topic |\n| --- | ---: | ---: |\n"
    for name, (what, topics) in _IDLE.items():
        line = newest(what)
        text += f"| {name} | {line['requests'] / topics:.1f} | {_round(dollars(line) * DAY_S / topics)} |\n"
    return text


def _at_the_price_of(kind: str, line: Line) -> float:
    return round(sum(float(number) for each, number in line["kinds"].items() if PRICES[each] == PRICES[kind]), 1)


def _round(amount: float) -> str:
    """Two digits that count."""
    return f"{amount:.0f}" if amount >= 10 else f"{amount:.2g}"
