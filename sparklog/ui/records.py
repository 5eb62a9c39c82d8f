"""Pages of records, and the search for records: bounded in rows, bytes and time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sparklog.log import by_time
from sparklog.ondisk.reader import PartitionReader, Wanted
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.version import Segment

ROWS_MAX = 500
MERGED_MAX = 256
"""The most partitions whose records a page shows together."""
_VALUE_BYTES = 2_048
KEY_BYTES = 512
"""So many bytes of a key are shown in a list."""
_HEADERS = 20
_HEADER_BYTES = 64
_SEARCH_S = 1.0
_WINDOW = 2_000
_WINDOW_MAX = 256_000
_COLUMNS = ["partition", "offset", "timestamp", "timestampType", "key", "value", "headers"]

Rows = list[dict[str, Any]]


class Range(NamedTuple):
    """Offsets of a partition: from `low` to before `high`."""

    partition: int
    low: int
    high: int


class Page(NamedTuple):
    """Records in order, and the positions before the first and after the last of them. A position is None where there is nothing more."""

    rows: Rows
    older: dict[int, int] | None
    newer: dict[int, int] | None


class Found(NamedTuple):
    """Records that a search found, how many offsets it looked at, and where it goes on; None if it is at the end."""

    rows: Rows
    scanned: int
    next: tuple[int, int] | None


class Search(NamedTuple):
    """Which records are wanted: records with a key, with its `routes` as in `Wanted`; or records with some bytes in key or value."""

    key: bytes | None
    routes: Callable[[Segment], bool] | None
    contains: bytes | None


def shown(data: Any, longest: int) -> dict[str, Any] | None:
    """Bytes (a buffer) for the page: their number, and the first of them as text, or in hex if they are not UTF-8; None for None."""
    if data is None:
        return None
    size = len(data)
    part = bytes(memoryview(data)[:longest])
    try:
        return {"size": size, "text": part.decode()}
    except UnicodeDecodeError as error:
        # Where it was cut, a character can lack its last bytes.
        if size > longest and error.reason == "unexpected end of data" and error.start > len(part) - 4:
            return {"size": size, "text": part[: error.start].decode()}
    return {"size": size, "hex": part.hex()}


def rows_of(batch: pa.RecordBatch, numbers: Iterable[int] | None = None, value_bytes: int = _VALUE_BYTES) -> Iterator[dict[str, Any]]:
    """The records of a batch with these numbers, cut to the length that a list shows. They do not keep the batch in memory."""
    columns = {name: batch.column(name) for name in _COLUMNS}
    times = columns["timestamp"].cast(pa.int64())
    for number in range(batch.num_rows) if numbers is None else numbers:
        headers = columns["headers"][number].values if columns["headers"][number].is_valid else ()
        yield {
            "partition": columns["partition"][number].as_py(),
            "offset": columns["offset"][number].as_py(),
            "time": times[number].as_py() // 1000,
            "appended": columns["timestampType"][number].as_py() == 1,
            "key": shown(columns["key"][number].as_buffer(), KEY_BYTES),
            "value": shown(columns["value"][number].as_buffer(), value_bytes),
            "headers": [{"key": shown(header["key"].as_buffer(), _HEADER_BYTES)} for header in headers[:_HEADERS]],
            "header_count": len(headers),
        }


def header_of(header: Any, longest: int) -> dict[str, Any]:
    """A header (a struct of Arrow) for the page."""
    return {"key": shown(header["key"].as_buffer(), longest), "value": shown(header["value"].as_buffer(), longest)}


class PagedRecords:
    """The records of a topic in one state, between some offsets of some partitions, and with times from `since` to before `until`."""

    def __init__(self, log: TopicLog, state: State, partitions: Sequence[int], since: int | None = None, until: int | None = None) -> None:
        self._log = log
        self._state = state
        self._wanted = Wanted(since=since, until=until)
        self.ranges = [self._range(each) for each in partitions]
        """The offsets that have to be looked at: there may be records of other times in between."""

    def _range(self, partition: int) -> Range:
        wanted = self._wanted
        low = self._state.starts[partition] if wanted.since is None else self._reader(partition).offset_at(wanted.since)
        high = self._state.ends[partition]
        if wanted.until is not None:
            found = [each for each in self._log.segments(self._state, partition) if wanted.may_be_in(each)]
            high = found[-1].end if found else low
            if found and found[-1].ordered:
                high = min(high, self._reader(partition).offset_at(wanted.until, found[-1].base))
        return Range(partition, low, max(low, high))

    def after(self, positions: Mapping[int, int], count: int) -> Page:
        """The first records from these positions on. Those of several partitions are merged by time, and each keeps its order."""
        begins = [(each, max(each.low, min(positions.get(each.partition, each.low), each.high))) for each in self.ranges]
        heads = [self._first(each, begin, count) for each, begin in begins]
        return self._page(begins, heads, count, last=False)

    def before(self, positions: Mapping[int, int], count: int) -> Page:
        """The last records before these positions."""
        begins = [(each, max(each.low, min(positions.get(each.partition, each.high), each.high))) for each in self.ranges]
        tails = [self._last(each, begin, count) for each, begin in begins]
        return self._page(begins, tails, count, last=True)

    def _page(
        self,
        begins: list[tuple[Range, int]],
        found: list[by_time.Places],
        count: int,
        *,
        last: bool,
    ) -> Page:
        owner, offsets = by_time.chosen(found, count, last=last)
        rows: dict[tuple[int, int], dict[str, Any]] = {}
        lows, highs = {}, {}
        for number, (each, begin) in enumerate(begins):
            own = offsets[owner == number]
            lows[each.partition], highs[each.partition] = begin, begin
            if own.size:
                first, end = int(own[0]), int(own[-1]) + 1
                lows[each.partition], highs[each.partition] = (first, begin) if last else (begin, end)
                for batch in self._reader(each.partition).records(first, end, wanted=self._wanted, columns=_COLUMNS):
                    rows.update({(each.partition, row["offset"]): row for row in rows_of(batch)})
            if own.size == found[number][0].size < count:  # no other record of it is wanted
                lows[each.partition], highs[each.partition] = (each.low, begin) if last else (begin, each.high)
        listed = [rows[begins[which][0].partition, offset] for which, offset in zip(owner.tolist(), offsets.tolist(), strict=True)]
        older = lows if any(lows[each.partition] > each.low for each in self.ranges) else None
        newer = highs if any(highs[each.partition] < each.high for each in self.ranges) else None
        return Page(listed, older, newer)

    def _reader(self, partition: int) -> PartitionReader:
        return PartitionReader(self._log, self._state, partition)

    def _first(self, each: Range, begin: int, count: int) -> by_time.Places:
        """The first records from `begin` on."""
        return by_time.places(self._reader(each.partition).records(begin, each.high, count, self._wanted, by_time.PLACES))

    def _last(self, each: Range, end: int, count: int) -> by_time.Places:
        """The last records before `end`."""
        return by_time.last_places(self._reader(each.partition), each.low, end, count, self._wanted)

    def search(self, wanted: Search, at: tuple[int, int] | None, count: int, *, newest_first: bool) -> Found:
        """Looks for records partition by partition: upwards, or downwards with the newest first. It stops after about a second.

        It goes on at `at`, a partition and an offset: the first one to look at, or downwards the one to stop before.
        """
        deadline = time.monotonic() + _SEARCH_S
        ranges = list(self.ranges)[::-1] if newest_first else list(self.ranges)
        if at is not None:
            ranges = [each for each in ranges if (each.partition <= at[0] if newest_first else each.partition >= at[0])]
        rows: Rows = []
        scanned = 0
        window = _WINDOW
        for place, each in enumerate(ranges):
            low, high = each.low, each.high
            if at is not None and at[0] == each.partition:
                low, high = (low, max(low, min(high, at[1]))) if newest_first else (min(high, max(low, at[1])), high)
            while low < high:
                if scanned and time.monotonic() > deadline:  # each call looks at something
                    return Found(rows, scanned, (each.partition, high if newest_first else low))
                begun = time.monotonic()
                left = count - len(rows)
                if newest_first:
                    first, end = max(low, high - window), high
                    # As many as are left, from the end on.
                    batch = list(deque(self._matching(each.partition, first, end, wanted), maxlen=left))[::-1]
                else:
                    first, end = low, min(high, low + window)
                    batch = [row for row, _ in zip(self._matching(each.partition, first, end, wanted), range(left), strict=False)]
                rows += batch
                if len(rows) >= count:
                    edge = int(batch[-1]["offset"])
                    scanned += end - edge if newest_first else edge + 1 - first
                    low, high = (low, edge) if newest_first else (edge + 1, high)
                    more = low < high or any(later.low < later.high for later in ranges[place + 1 :])
                    return Found(rows, scanned, (each.partition, high if newest_first else low) if more else None)
                scanned += end - first
                low, high = (low, first) if newest_first else (end, high)
                if time.monotonic() - begun < _SEARCH_S / 8:
                    window = min(2 * window, _WINDOW_MAX)
        return Found(rows, scanned, None)

    def _matching(self, partition: int, first: int, end: int, wanted: Search) -> Iterator[dict[str, Any]]:
        for batch in self._reader(partition).records(
            first, end, wanted=self._wanted._replace(key=wanted.key, routes=wanted.routes), columns=_COLUMNS
        ):
            yield from rows_of(batch, None if wanted.contains is None else _containing(batch, wanted.contains))


def _containing(batch: pa.RecordBatch, needle: bytes) -> list[int]:
    import pyarrow.compute as pc

    found = np.zeros(batch.num_rows, dtype=bool)
    for name in ("key", "value"):
        found |= pc.match_substring(batch.column(name), needle).fill_null(False).to_numpy(zero_copy_only=False)
    return [int(number) for number in np.flatnonzero(found)]
