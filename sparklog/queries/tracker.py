"""Commits the offsets of a streaming query to a group, beside the query."""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from sparklog.errors import SparklogError
from sparklog.groups.table.offset_table import OffsetTable
from sparklog.groups.table.owner import Owner, is_behind
from sparklog.groups.topics import Topics
from sparklog.queries import reads
from sparklog.spark.progress import require_query

if TYPE_CHECKING:
    from pyspark.sql.connect.streaming.query import StreamingQuery as ConnectQuery
    from pyspark.sql.streaming.query import StreamingQuery

_log = logging.getLogger(__name__)
_LOOK_S = 1.0
"""How often a tracker asks whether the query still runs."""
_RETRY_MAX_S = 60.0
_ENDING = {"GENERATION_FENCED", "OFFSETS_TABLE_REPLACED", "QUERY_NOT_OF_ROOT"}
"""The errors after which no later commit can succeed."""
_END_S = 30.0
"""How long `stop` waits for a commit that is being written."""


def track(
    query: StreamingQuery | ConnectQuery,
    group: str,
    root: str | os.PathLike[str],
    table: str | os.PathLike[str] | OffsetTable,
    *,
    interval_s: float = 10.0,
) -> Tracker:
    """Commits the micro-batches that a streaming query has finished to a group, until the query ends; classic and Connect.

    The tracker takes the next generation of the group at once, so that an earlier tracker stops. From its first commit on the group is
    where the query is: if the query began further back, the group goes back too. For a query that has ended, such as one with the trigger
    availableNow, its last micro-batch is committed before the call returns.

    Args:
        query: The streaming query, as `start()` returns it.
        group: The name of the group.
        root: The root whose topics count. If several sources of the query read it, all count; where several read one partition, the
            position is the lowest of their offsets.
        table: The offset table, as a path or an `OffsetTable`.
        interval_s: Seconds between two commits, above 0; default 10. The last micro-batch of a run is committed when the query ends.

    Returns:
        The tracker.

    Raises:
        CallError: OFFSETS_SCHEMA if the table is not an offset table; QUERY_NOT_OF_ROOT if the query does not read this root (if that shows
            later, the tracker stops, and its `failure` says so); QUERY_ENDED if the query has ended and the group is further than it.

    Example:
        >>> from sparklog.groups import track
        >>> orders = sparklog.session().readStream.format("partlog").option("startingOffsets", "earliest").load("events")
        >>> query = orders.writeStream.format("noop").option("checkpointLocation", "checkpoint").trigger(availableNow=True).start()
        >>> query.awaitTermination()
        >>> tracker = track(query, "stream", "events", "offsets")
        >>> [each.offset for each in table.positions("stream")]
        [5, 15]
    """
    require_query(query)
    if isinstance(interval_s, bool) or not isinstance(interval_s, int | float) or not interval_s > 0:
        raise SparklogError("OPTION_VALUE", option="interval_s", value=interval_s, reason="it must be a number of seconds above 0")
    return Tracker(query, group, root, table, float(interval_s))


class Tracker:
    """Commits for one query, as `track` begins it. In a `with` statement, its end is `stop()`.

    It works on a thread of its own. It looks only at what Spark keeps of the query anyway, so it does not slow the query and cannot fail
    it. A commit that failed is tried again, later each time, up to a minute. If another owner took the group, or another table is in the
    place of the offset table, the tracker stops.

    Example:
        >>> from sparklog.groups import track
        >>> orders = sparklog.session().readStream.format("partlog").option("startingOffsets", "earliest").load("events")
        >>> query = orders.writeStream.format("noop").option("checkpointLocation", "checkpoint").start()
        >>> with track(query, "stream", "events", "offsets") as tracker:
        ...     query.processAllAvailable()
        >>> query.stop()
        >>> [each.offset for each in table.positions("stream")]
        [5, 15]
    """

    group: str
    """The name of the group."""
    failure: Exception | None
    """Why the last attempt to commit failed; None if it did not.

    After GenerationFencedError and OFFSETS_TABLE_REPLACED the tracker has stopped.
    """

    def __init__(
        self,
        query: StreamingQuery | ConnectQuery,
        group: str,
        root: str | os.PathLike[str],
        table: str | os.PathLike[str] | OffsetTable,
        interval_s: float,
    ) -> None:
        self.group = group
        self.failure = None
        self._query = query
        self._interval_s = interval_s
        opened = table if isinstance(table, OffsetTable) else OffsetTable(root, table)
        self._topics = Topics(root, opened.path) if opened is table else opened.topics
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self._over = False
        self._committed: tuple[str, int] | None = None
        self._due = 0.0
        self._failed = 0
        ended = not query.isActive
        read = self._read()
        if ended and read is not None and opened.generations.group(group).exists:
            # A position in a topic that was created again since is not further than the query, which read the topic that is there.
            ids = {each.topic_id for each in read.commits}
            if is_behind(read.commits, [each for each in opened.positions(group) if each.topic_id in ids]):
                raise SparklogError("QUERY_ENDED", query=read.query_id, group=group, table=opened.path)
        self._owner = Owner(opened, group)
        self._thread = threading.Thread(target=self._run, name=f"sparklog tracker of {group}", daemon=True)
        atexit.register(self._at_exit)
        if ended:
            self.stop()
        else:
            self._thread.start()

    def flush(self) -> None:
        """Commits the finished micro-batches of the query now.

        Raises:
            GenerationFencedError: If another owner took the group.
            RetryError: If the table cannot be written.

        Example:
            >>> from sparklog.groups import track
            >>> orders = sparklog.session().readStream.format("partlog").option("startingOffsets", "earliest").load("events")
            >>> query = orders.writeStream.format("noop").option("checkpointLocation", "checkpoint").start()
            >>> with track(query, "stream", "events", "offsets") as tracker:
            ...     query.processAllAvailable()
            ...     tracker.flush()
            ...     print(table.positions("stream")[0].offset)
            5
            >>> query.stop()
        """
        with self._lock:
            if self._over:
                if self.failure is not None:
                    raise self.failure
                return
            try:
                self._commit()
            except Exception as error:
                self._failed_with(error)
                raise
            self._succeeded()

    def stop(self) -> None:
        """Commits the finished micro-batches of the query, and ends: the group no longer runs.

        The query goes on. A second call changes nothing.

        Raises:
            GenerationFencedError: If another owner took the group.
            RetryError: If the table cannot be written.

        Example:
            >>> from sparklog.groups import track
            >>> orders = sparklog.session().readStream.format("partlog").option("startingOffsets", "earliest").load("events")
            >>> query = orders.writeStream.format("noop").option("checkpointLocation", "checkpoint").start()
            >>> tracker = track(query, "stream", "events", "offsets")
            >>> tracker.stop()
            >>> query.isActive
            True
            >>> query.stop()
        """
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(_END_S)
        with self._lock:
            self.flush()
            self._end()

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self.stop()
        else:
            self._at_exit()  # its error does not replace the error that is on its way

    # ---- on the thread

    def _run(self) -> None:
        while not self._stopping.wait(min(_LOOK_S, self._interval_s)):
            try:
                active = self._query.isActive
            except Exception as error:
                self._failed_with(error)  # Spark is gone, and the query with it
                self._over = True
                return
            with self._lock:
                if self._over:
                    return
                # An ended query is committed at once, unless that failed just before.
                if time.monotonic() < self._due and (active or self._failed):
                    continue
                try:
                    self._commit()
                    self._succeeded()
                    if not active:
                        self._end()
                except Exception as error:
                    self._failed_with(error)

    def _commit(self) -> None:
        read = self._read()
        if read is not None:
            self._owner.commit(read.commits, query_id=read.query_id, epoch=read.epoch)
            self._committed = (read.query_id, read.epoch)
        self._owner.beat()

    def _read(self) -> reads.Read | None:
        """The offsets that the query has read, if they are not committed yet."""
        last = self._query.lastProgress
        if last is None:
            return None
        progress = json.loads(last.json)
        if self._committed == (str(progress.get("id")), progress.get("batchId")):
            return None
        return reads.of_progress(progress, self._topics)

    def _end(self) -> None:
        if not self._over:
            self._owner.end()
            self._over = True
            atexit.unregister(self._at_exit)

    def _succeeded(self) -> None:
        self.failure = None
        self._failed = 0
        self._due = time.monotonic() + self._interval_s

    def _failed_with(self, error: Exception) -> None:
        self.failure = error
        self._failed += 1
        pause = min(_RETRY_MAX_S, self._interval_s * 2 ** min(self._failed, 10))
        self._due = time.monotonic() + pause
        if isinstance(error, SparklogError) and error.id in _ENDING:
            self._over = True
            atexit.unregister(self._at_exit)
            _log.warning("the tracker of group %s stopped: %s", self.group, error)
        else:
            _log.warning("the tracker of group %s tries again in %.0f s: %s", self.group, pause, error)

    def _at_exit(self) -> None:
        try:
            self.stop()
        except Exception as error:
            _log.warning("the tracker of group %s could not commit at the end: %s", self.group, error)
