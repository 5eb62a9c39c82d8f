"""How far groups are behind, in records, bytes and seconds."""

from __future__ import annotations

import bisect
import datetime
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sparklog.errors import SparklogError
from sparklog.groups.rows import Position
from sparklog.groups.topics import require_same
from sparklog.ondisk.reader import PartitionReader
from sparklog.ondisk.state import State, unread
from sparklog.ondisk.topic_log import TopicLog
from sparklog.show.display import SHOWN, Display, counted

_DELETED = {"OFFSETS_EXPIRED", "TOPIC_NOT_FOUND", "TOPIC_REPLACED"}
"""The errors of a read whose records were deleted after its state."""
LAG = pa.schema(
    [
        pa.field("group", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("records", pa.int64()),
        pa.field("bytes", pa.int64()),
        pa.field("seconds", pa.float64()),
    ]
)
HISTORY = pa.schema(
    [
        pa.field("group", pa.string()),
        pa.field("generation", pa.int64()),
        pa.field("committed_at", pa.timestamp("us", "UTC")),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("records", pa.int64()),
    ]
)


def of_topic(group: str, log: TopicLog, state: State, positions: Iterable[Position]) -> list[dict[str, Any]]:
    """The lag of a group in one topic, in this state of it: a row for each partition of it, as `LAG` says."""
    by_partition = {}
    for position in positions:
        require_same(log.root, position, state)
        by_partition[position.partition] = position.offset
    rows = []
    for partition, (start, end) in enumerate(zip(state.starts, state.ends, strict=True)):
        offset = by_partition.get(partition)
        row = {"group": group, "topic": state.topic, "partition": partition, "offset": offset, "start": start, "end": end}
        if offset is not None:
            # No measure of lag counts expired records.
            first = max(offset, start)
            row |= {
                "records": state.unread(partition, offset),
                "bytes": _bytes(log, state, partition, first) if first < end else 0,
                "seconds": _seconds(log, state, partition, first) if first < end else 0.0,
            }
        rows.append(row)
    return rows


def unknown(position: Position) -> dict[str, Any]:
    """The row of a position whose topic was deleted or created again."""
    return {
        **dict.fromkeys(LAG.names),
        "group": position.group,
        "topic": position.topic,
        "partition": position.partition,
        "offset": position.offset,
    }


def _bytes(log: TopicLog, state: State, partition: int, start: int) -> int:
    """As the stream source counts: the records of a segment count as if they were of one size."""
    total = 0
    for segment in log.segments(state, partition, start):
        read = max(0, start - segment.base) / (segment.end - segment.base)
        total += int(segment.bytes * (1 - read))
    return total


def _seconds(log: TopicLog, state: State, partition: int, start: int) -> float | None:
    """From the time of the first unread record to the greatest time of the unread records.

    None if the first one has no time, or if the records of this state were deleted since.
    """
    try:
        return _seconds_read(log, state, partition, start)
    except SparklogError as error:
        if error.id not in _DELETED:
            raise
        return None


def _seconds_read(log: TopicLog, state: State, partition: int, start: int) -> float | None:
    segments = list(log.segments(state, partition, start))
    if not segments:
        return 0.0
    first, *rest = segments
    reader = PartitionReader(log, state, partition)
    newest = max((segment.max_timestamp for segment in rest), default=-1)
    if start <= first.base or first.ordered:
        newest = max(newest, first.max_timestamp)
    elif first.max_timestamp > newest:
        # Its greatest time may belong to a record that is read already.
        newest = max(newest, reader.newest_time(start, first.end))
    for batch in reader.records(start, state.ends[partition], 1, columns=["timestamp"]):
        (micros,) = batch.column(0).cast(pa.int64()).to_pylist()
        return None if micros < 0 else max(0, newest - micros // 1000) / 1000
    return 0.0  # the rest has no records


def over_time(rows: Iterable[Position], logs: Mapping[str, TopicLog]) -> list[dict[str, Any]]:
    """The lag at the time of each commit of a group, as `HISTORY` says. `end` is None if the log has no version of that time."""
    pasts = {topic: _Past(log) for topic, log in logs.items()}
    found = []
    for row in rows:
        start, end = pasts[row.topic].bounds(row) if row.topic in pasts else (0, None)
        found.append(
            {
                "group": row.group,
                "generation": row.generation,
                "committed_at": row.committed_at,
                "topic": row.topic,
                "partition": row.partition,
                "offset": row.offset,
                "end": end,
                "records": None if end is None else unread(row.offset, start, end),
            }
        )
    return found


def together(rows: Iterable[Mapping[str, Any]]) -> list[tuple[datetime.datetime, int]]:
    """From rows of `HISTORY`, how many records all of their partitions together were behind after each commit of the group.

    The rows of a commit have the same time. Rows that do not know how far they were behind are left out.
    """
    points: list[tuple[datetime.datetime, int]] = []
    behind: dict[tuple[str, int], int] = {}
    for row in rows:
        if row["records"] is None:
            continue
        at = row["committed_at"]
        if points and points[-1][0] == at:
            points.pop()
        behind[row["topic"], row["partition"]] = row["records"]
        points.append((at, sum(behind.values())))
    return points


class _Past:
    """The bounds of the partitions of a topic at earlier times, as far back as the state of a version can be made."""

    def __init__(self, log: TopicLog) -> None:
        state = log.newest()
        self._topic_id = state.topic_id
        versions = [each for each in log.history() if each.version >= state.boundary]
        self._first = log.at(versions[0].version)
        self._later = versions[1:] if self._first else []
        # Clocks may differ, and versions have an order.
        self._times = list(itertools.accumulate((each.time for each in versions if self._first), max))

    def bounds(self, row: Position) -> tuple[int, int | None]:
        """The log start offset and the end offset of the partition of a position, when it was committed; 0 and None if not known."""
        # A commit of the log that has the same time in milliseconds was before.
        number = bisect.bisect_right(self._times, row.committed_at.timestamp() * 1000)
        if not number or not self._first or row.topic_id != self._topic_id:
            return 0, None
        before = self._later[: number - 1]
        start = _last(row.partition, self._first.starts, [each.starts for each in before])
        return start, _last(row.partition, self._first.ends, [each.ends for each in before])


def _last(partition: int, first: Sequence[int], changes: Sequence[Mapping[int, int]]) -> int:
    """The offset of a partition after all changes, which name it where it changes. A partition that was added began at 0."""
    at = first[partition] if partition < len(first) else 0
    return next((each[partition] for each in reversed(changes) if partition in each), at)


def shown(table: pa.Table, group: str) -> Display:
    """The lag of a group for a terminal or a notebook."""
    rows = [["" if row[name] is None else row[name] for name in LAG.names[1:]] for row in table.slice(0, SHOWN).to_pylist()]
    records, size = (sum(each or 0 for each in table[name].to_pylist()) for name in ("records", "bytes"))
    seconds = max((each for each in table["seconds"].to_pylist() if each is not None), default=0.0)
    about = f"behind by {counted(records, 'record')}, {size:,} bytes, {seconds:,.1f} s"
    return Display(f"Group {group}", [about], LAG.names[1:], rows, more=table.num_rows - SHOWN)
