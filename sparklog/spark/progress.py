"""How far a streaming query is: what `sparklog.progress(query)` gives, and how it is shown in a terminal and in a notebook."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sparklog.show.display import SHOWN, Display, readable, when

if TYPE_CHECKING:
    from pyspark.sql.connect.streaming.query import StreamingQuery as ConnectQuery
    from pyspark.sql.streaming.query import StreamingQuery

_REFRESH_S = 1
_MESSAGE = 200
_ID = 8
"""A bar has this part of the id of a query without a name."""


def progress(query: StreamingQuery | ConnectQuery) -> Progress:
    """Describes the work of a streaming query in its last trigger, and how far it is behind its sources.

    It works for every query of Spark, classic and Connect. It asks Spark only for `lastProgress` and `status`, which Spark keeps anyway, so
    it does not slow the query. Numbers that a source does not report are left out. Sources with offsets like Kafka's report offsets of each
    partition, and partlog reports bytes and seconds behind.

    Args:
        query: The streaming query, as `start()` returns it.

    Returns:
        The progress. `str` and notebooks show it, and `watch()` keeps asking.

    Raises:
        TypeError: If `query` is not a streaming query.

    Example:
        >>> orders = sparklog.session().readStream.format("partlog").option("startingOffsets", "earliest").load("events")
        >>> query = orders.writeStream.format("noop").option("checkpointLocation", "checkpoint").trigger(availableNow=True).start()
        >>> sparklog.progress(query).watch().rows
        20
    """
    require_query(query)
    last = query.lastProgress
    message = str(query.status["message"])
    return Progress(query, json.loads(last.json) if last is not None else {}, message)


def require_query(given: object) -> None:
    """TypeError if the argument `query` is something else than a streaming query."""
    if not hasattr(given, "lastProgress"):
        raise TypeError(f"`query` is {given!r}, of type {type(given).__name__}; it must be a streaming query, as start() returns it")


@dataclass(frozen=True)
class PartitionProgress:
    """Which offsets of a partition the last trigger read: [start, end). `latest` is the end offset of the partition at that moment.

    `start` is None in the first trigger of a query, `latest` if the source does not report it.
    """

    source: int
    """The number of the source in the query, from 0."""
    topic: str
    partition: int
    start: int | None
    end: int
    latest: int | None

    @property
    def behind(self) -> int | None:
        """How many offsets of the partition the query has still to read; None if that is not known."""
        return None if self.latest is None else max(0, self.latest - self.end)


class Progress:
    """A streaming query at one moment. `str` and notebooks show it; `progress(query)` asks again, and `watch()` keeps asking."""

    name: str
    """The name of the query, or its id if it has none."""
    message: str
    """The work that the query is doing, in Spark's words."""
    batch: int | None
    """The number of the last micro-batch; None before the first."""
    at: datetime.datetime | None
    """When the last trigger began, in UTC."""
    seconds: float | None
    """How long the last trigger took."""
    rows: int
    """How many rows the last trigger read."""
    rows_per_second: float
    """How many rows a second the last trigger read."""
    arriving_per_second: float
    """How many of these rows arrived a second since the trigger before. 0 if Spark does not know."""
    behind_offsets: int | None
    """How many offsets the query has still to read; None if no source reports it."""
    behind_bytes: int | None
    """The bytes of these offsets in their log; None if no source reports it."""
    behind_seconds: float | None
    """The time between the first record to read and the newest one, by their timestamps; None if no source reports it."""
    partitions: list[PartitionProgress]
    """The offsets of each partition that were read; empty for sources whose offsets are not like Kafka's."""

    def __init__(self, query: StreamingQuery | ConnectQuery, last: Mapping[str, Any], message: str) -> None:
        self._query = query
        self._last = last
        sources = last.get("sources") or []
        self.name = str(query.name or query.id)
        self.message = message
        self.batch = last.get("batchId")
        self.at = datetime.datetime.fromisoformat(last["timestamp"].replace("Z", "+00:00")) if "timestamp" in last else None
        took = (last.get("durationMs") or {}).get("triggerExecution")
        self.seconds = None if took is None else took / 1000
        # Sums over the sources, because Spark Connect does not give them.
        self.rows = sum(source.get("numInputRows") or 0 for source in sources)
        self.rows_per_second = sum(source.get("processedRowsPerSecond") or 0.0 for source in sources)
        self.arriving_per_second = sum(source.get("inputRowsPerSecond") or 0.0 for source in sources)
        self.partitions = [each for number, source in enumerate(sources) for each in _partitions(number, source)]
        behind = [each.behind for each in self.partitions if each.behind is not None]
        self.behind_offsets = sum(behind) if behind else None
        bytes_behind = _reported(sources, "bytesBehindLatest")
        self.behind_bytes = int(sum(bytes_behind)) if bytes_behind else None
        self.behind_seconds = max(_reported(sources, "secondsBehindLatest"), default=None)

    def watch(self) -> Progress:
        """Shows the progress until the query ends, in place: a bar in a terminal, a table in a notebook, nothing elsewhere.

        The bar counts the offsets since it began to watch, of all that are in the log. It is drawn by rich, which the extra `cli`
        installs; without rich, a terminal shows nothing. Returns the progress at the end. If the query fails, raises its error as Spark
        does. Interrupting the call does not stop the query.
        """
        with _shown() as show:
            while not self._query.awaitTermination(_REFRESH_S):
                show(progress(self._query))
            last = progress(self._query)
            show(last)
        return last

    def _display(self) -> Display:
        title = f"Query {self.name}: {readable(self.message, _MESSAGE)}"
        several = len({each.source for each in self.partitions}) > 1
        columns = [*(["source"] if several else []), "topic", "partition", "start", "end", "latest", "behind"]
        rows = [
            [*([each.source] if several else []), each.topic, each.partition, *map(_cell, (each.start, each.end, each.latest, each.behind))]
            for each in self.partitions[:SHOWN]
        ]
        return Display(title, list(self._lines()), columns, rows, len(self.partitions) - SHOWN)

    def _lines(self) -> Iterator[str]:
        if self.at is None:
            return
        yield f"batch {self.batch} at {when(self.at)} UTC" + ("" if self.seconds is None else f" took {self.seconds:,.3f} s")
        arriving = f", {self.arriving_per_second:,.0f} a second arrived" if self.arriving_per_second else ""
        yield f"{self.rows:,} rows, {self.rows_per_second:,.0f} a second{arriving}"
        offsets = [] if self.behind_offsets is None else [f"{self.behind_offsets:,} offsets"]
        if behind := [*offsets, *self._behind()]:
            yield f"behind by {', '.join(behind)}"
        if watermark := (self._last.get("eventTime") or {}).get("watermark"):
            yield f"watermark {when(datetime.datetime.fromisoformat(watermark.replace('Z', '+00:00')))} UTC"
        if operators := self._last.get("stateOperators"):
            kept, size = (sum(operator.get(key, 0) for operator in operators) for key in ("numRowsTotal", "memoryUsedBytes"))
            yield f"state of {kept:,} rows in {size:,} bytes of memory"
        for source in self._last.get("sources") or []:
            yield f"from {readable(source.get('description', ''), _MESSAGE)}"
        yield f"to {readable((self._last.get('sink') or {}).get('description', ''), _MESSAGE)}"

    def _behind(self) -> Iterator[str]:
        if self.behind_bytes is not None:
            yield f"{self.behind_bytes:,} bytes"
        if self.behind_seconds is not None:
            yield f"{self.behind_seconds:,.1f} s"

    def _bar(self, begins: dict[tuple[int, str, int], int]) -> dict[str, Any]:
        """The bar that shows it. `begins` keeps the first offsets, from which it counts."""
        done = 0
        for each in self.partitions:
            first = each.end if each.start is None else each.start
            done += each.end - begins.setdefault((each.source, each.topic, each.partition), first)
        total = None if self.behind_offsets is None else done + self.behind_offsets
        batch = "before its first batch" if self.batch is None else f"batch {self.batch}, {self.rows_per_second:,.0f} rows/s"
        speed = ", ".join([batch, *(f"{each} behind" for each in self._behind())])
        name = self.name if self._query.name else self.name[:_ID]
        return {"description": readable(name, _MESSAGE), "completed": done, "total": total, "speed": speed}

    def text(self) -> str:
        """For a terminal."""
        return self._display().text()

    def html(self) -> str:
        """For a notebook."""
        return self._display().html()

    __repr__ = text
    _repr_html_ = html


@contextmanager
def _shown() -> Iterator[Callable[[Progress], object]]:
    """Shows each progress that it is called with. A notebook shows the whole progress, a terminal one line of it."""
    ipython = sys.modules.get("IPython")
    if ipython and hasattr(ipython.get_ipython(), "kernel"):  # IPython in a terminal has no kernel
        yield ipython.display.display(display_id=True).update
    elif sys.stderr.isatty() and find_spec("rich"):
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Bar

        name, speed = (TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[speed]"))
        with Bar(name, BarColumn(), TaskProgressColumn(), speed, console=Console(stderr=True)) as bar:
            task, begins = bar.add_task("", total=None, speed=""), dict[tuple[int, str, int], int]()
            yield lambda now: bar.update(task, **now._bar(begins))
    else:
        yield lambda _: None


def _partitions(number: int, source: Mapping[str, Any]) -> Iterator[PartitionProgress]:
    """By topic and partition, if the source's offsets are `{topic: {partition: offset}}` as Kafka's are."""
    starts, ends, latest = (source_offsets(source.get(key)) for key in ("startOffset", "endOffset", "latestOffset"))
    if not ends:
        return
    for topic, partition in sorted(ends | latest):
        # A partition that is found while the query runs is read from 0 on, and has no offset before.
        place = (topic, partition)
        yield PartitionProgress(number, topic, partition, starts.get(place), ends.get(place, 0), latest.get(place))


def source_offsets(offsets: object) -> dict[tuple[str, int], int]:
    """Offsets as a source reports them, by topic and partition; empty if they are not like Kafka's."""
    if isinstance(offsets, str):  # Spark Connect gives them as text
        try:
            offsets = json.loads(offsets)
        except ValueError:
            return {}
    if not isinstance(offsets, dict) or not all(isinstance(partitions, dict) for partitions in offsets.values()):
        return {}
    flat = [(topic, partition, offset) for topic, partitions in offsets.items() for partition, offset in partitions.items()]
    if not all(str(partition).isdecimal() and isinstance(offset, int) for _, partition, offset in flat):
        return {}
    return {(topic, int(partition)): offset for topic, partition, offset in flat}


def _reported(sources: list[Mapping[str, Any]], metric: str) -> list[float]:
    """The reports of the sources that have this metric."""
    values = [(source.get("metrics") or {}).get(metric) for source in sources]
    return [float(value) for value in values if value is not None]


def _cell(number: int | None) -> int | str:
    return "" if number is None else number
