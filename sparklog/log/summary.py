"""The newest state of a topic in a line: for lists of many topics."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sparklog.errors import SparklogError
from sparklog.ondisk.space import view_bytes
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.totals import Totals


@dataclass(frozen=True)
class Summary:
    """A topic in short. Times are milliseconds since 1970-01-01 UTC.

    * partitions, version, committed_at: None if the topic cannot be read; then `error` says why.
    * offsets: how many are between the log start offsets and the end offsets.
    * view_bytes: the bytes of the Kafka view beside the segments, for copies and indexes; None if they were not summed up.
    * records, bytes, segments, min_timestamp, max_timestamp: of the live segments; None if they were not summed up. The times are also
      None if no record has one.
    """

    topic: str
    partitions: int | None = None
    offsets: int | None = None
    records: int | None = None
    bytes: int | None = None
    view_bytes: int | None = None
    segments: int | None = None
    min_timestamp: int | None = None
    max_timestamp: int | None = None
    version: int | None = None
    committed_at: int | None = None
    error: SparklogError | None = None

    @classmethod
    def of(cls, log: TopicLog) -> Summary:
        """The summary of a topic, with its `error` if it cannot be read."""
        return cls.of_known(log, known(log))

    @classmethod
    def of_known(cls, log: TopicLog, known: State | SparklogError | None, segments_max: int | None = None) -> Summary:
        """The summary by the answer of `known`. It has no sums if the topic has more than `segments_max` segments."""
        if not isinstance(known, State):
            return cls(log.topic, error=known or log.not_found())
        state = known
        try:
            totals = Totals.of_partitions(log, state, segments_max)
            copies = None if totals is None else view_bytes(log, state)
        except SparklogError as error:
            return cls(log.topic, error=error)
        sums = None if totals is None else Totals.together(totals)
        return cls(
            log.topic,
            state.partitions,
            sum(state.ends) - sum(state.starts),
            sums and sums.records,
            sums and sums.bytes,
            copies,
            sums and sums.segments,
            sums and sums.min_timestamp,
            sums and sums.max_timestamp,
            state.version,
            state.time,
        )

    def as_dict(self) -> dict[str, Any]:
        """The summary as JSON types. The error is its text, or None without an error."""
        return {**asdict(self), "error": None if self.error is None else str(self.error)}


def known(log: TopicLog) -> State | SparklogError | None:
    """The newest state of a topic for a list of topics: None if the topic does not exist, or the error with which it cannot be read."""
    try:
        return log.find(as_listed=True)
    except SparklogError as error:
        return error
