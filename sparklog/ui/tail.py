"""A live tail: records that are committed from now on, as server-sent events."""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import anyio
import numpy as np
from starlette.responses import StreamingResponse

from sparklog.errors import SparklogError
from sparklog.log import by_time
from sparklog.ondisk.reader import PartitionReader
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.watch import NewestState, Pace, TopicWatch
from sparklog.ui.records import rows_of
from sparklog.ui.responses import Refused, failure, written

BACKLOG = 1_000
"""If more records are new at a time, the tail shows the last records, and the number of skipped records."""
TAILS_MAX = 16
_AT_ONCE = 4
"""So many tails read at a time. The others wait."""
_ROWS = 200
_VALUE_BYTES = 1_024
_POLL_S = 0.2
_BEAT_S = 10


class Tail:
    """The records that a page that follows a topic has been sent: the next offset of each partition."""

    def __init__(self, log: TopicLog, partition: int | None, positions: Mapping[int, int] | None, topic_id: str | None) -> None:
        self._log = log
        self._newest = NewestState(log)
        self._watch = TopicWatch(log.root.store, Pace.of(log.root.store, _POLL_S))
        state = self._newest.state
        self.topic_id = topic_id or state.topic_id
        self._require_same(state)
        self._partition = partition
        given = positions or {}
        self.positions = {each: min(given.get(each, state.ends[each]), state.ends[each]) for each in self._partitions(state.partitions)}
        self._pending = bool(positions)

    def _partitions(self, count: int) -> range:
        return range(count) if self._partition is None else range(self._partition, self._partition + 1)

    def _require_same(self, state: State) -> None:
        if state.topic_id != self.topic_id:
            raise SparklogError("TOPIC_REPLACED", topic=state.topic, root=self._log.root)

    def poll(self) -> dict[str, Any] | None:
        """The records since the last call; None without such records. They are at most BACKLOG."""
        found = self._watch.news({self._log.topic: self._newest}, idle=True).get(self._log.topic)
        if isinstance(found, SparklogError):
            raise found
        if found is None and not self._pending:
            return None
        state = self._newest.state
        self._pending = False
        self._require_same(state)
        for partition in self._partitions(state.partitions):
            # A partition that was added since is read from its start.
            self.positions.setdefault(partition, state.starts[partition])
        new = {each: state.ends[each] - at for each, at in self.positions.items() if at < state.ends[each]}
        if not new:
            return None
        total = sum(new.values())
        skipped = 0
        rows: list[dict[str, Any]] = []
        times: list[Any] = []
        for partition, count in new.items():
            end = state.ends[partition]
            share = count if total <= BACKLOG else count * BACKLOG // total
            begin = max(end - share, state.starts[partition])
            skipped += begin - self.positions[partition]
            part: list[dict[str, Any]] = []
            for batch in PartitionReader(self._log, state, partition).records(begin, end):
                part += rows_of(batch, value_bytes=_VALUE_BYTES)
            rows += part
            times.append(np.array([row["time"] for row in part], dtype=np.int64))
            self.positions[partition] = end
        ordered = [rows[number] for number in by_time.order(times, last=False).tolist()]
        return {"rows": ordered, "skipped": skipped, "version": state.version, "positions": {each: self.positions[each] for each in new}}


class Tails:
    """The tails that pages follow now, which are not too many."""

    def __init__(self) -> None:
        self._open = 0
        self._reading = anyio.CapacityLimiter(_AT_ONCE)

    def follow(self, log: TopicLog, partition: int | None, positions: Mapping[int, int] | None, topic_id: str | None) -> StreamingResponse:
        """The events of a tail. It begins at the end of the log, or at the given positions, which are of the topic with this id."""
        if self._open >= TAILS_MAX:
            raise Refused(503, "BUSY", f"{TAILS_MAX} pages follow topics already. Close one, and try again.")
        start = functools.partial(Tail, log, partition, positions, topic_id)
        return StreamingResponse(self._events(start), media_type="text/event-stream")

    async def _events(self, start: Callable[[], Tail]) -> AsyncIterator[bytes]:
        self._open += 1
        try:
            tail = await anyio.to_thread.run_sync(start, limiter=self._reading)
            yield _event("begin", {"id": tail.topic_id, "positions": tail.positions})
            beat = time.monotonic()
            while True:
                found = await anyio.to_thread.run_sync(lambda: _events_of(tail.poll()), limiter=self._reading)
                for event in found:
                    yield event
                if found:
                    beat = time.monotonic()
                elif time.monotonic() - beat > _BEAT_S:
                    yield b": still here\n\n"
                    beat = time.monotonic()
                await anyio.sleep(_POLL_S)
        except Exception as error:
            yield _event("failed", failure(error)[1])
        finally:
            self._open -= 1


def _events_of(found: dict[str, Any] | None) -> list[bytes]:
    """The records found, as events: while a slow browser takes them, only the events are kept."""
    if found is None:
        return []
    rows = found.pop("rows")
    parts = [{"rows": rows[first : first + _ROWS]} for first in range(0, max(1, len(rows)), _ROWS)]
    # The page takes the positions when it has all of these records.
    parts[-1] |= found
    return [_event("records", part) for part in parts]


def _event(name: str, content: object) -> bytes:
    return f"event: {name}\ndata: ".encode() + written(content) + b"\n\n"
