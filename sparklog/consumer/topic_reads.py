"""Reads of a topic for a consumer, one after another."""

from __future__ import annotations

from collections.abc import Iterator

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.ondisk.prefetch import Prefetch, Span
from sparklog.ondisk.reader import Part, PartitionReader, Stop
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_logs import TopicLogs
from sparklog.ondisk.watch import NewestState


class TopicReads:
    """The newest state of a topic that is known, and where in its segments the last reads stopped. It keeps no file open.

    `prefetch` has the bytes that its parts need next, and parts of other topics.
    """

    def __init__(self, logs: TopicLogs, topic: str, prefetch: Prefetch) -> None:
        """CallError TOPIC_NOT_FOUND, TOPIC_NAME_ILLEGAL."""
        self._prefetch = prefetch
        self._log = logs.log(arguments.topic(topic))
        self._stops: dict[int, Stop] = {}
        self.newest = NewestState(self._log)

    @property
    def state(self) -> State:
        """The newest known state."""
        return self.newest.state

    def refresh(self) -> None:
        """Takes the newest state, as `NewestState.look`. CallError TOPIC_NOT_FOUND."""
        self.newest.look()

    def ask(self) -> None:
        """Takes the newest state, also if versions were put and deleted since the last call. CallError TOPIC_NOT_FOUND."""
        self.newest.ask()

    def spans(self, partition: int, offset: int, bytes_max: int) -> Iterator[Span]:
        """The bytes that `part` reads from an offset on."""
        if offset < self.state.starts[partition]:
            return iter(())
        return PartitionReader(self._log, self.state, partition).next_spans(offset, bytes_max, self._stops.get(partition))

    def part(self, partition: int, offset: int, bytes_max: int, *, expected: bool = True) -> Part:
        """The records from an offset on, as `PartitionReader.part` returns them.

        If the files are gone, and the records are not elsewhere, the part is empty and ends where it begins. The state is then the newest
        state: there the records have expired, or the topic is another topic. `expected`: the program said that it will want this part.
        CallError TOPIC_NOT_FOUND.
        """
        reader = PartitionReader(self._log, self.state, partition, self._prefetch if expected else None)
        stop = self._stops.get(partition)
        try:
            if not expected:
                reader.request(offset, bytes_max, stop)
            part = reader.part(offset, bytes_max, stop)
        except SparklogError as error:
            if error.id not in ("OFFSETS_EXPIRED", "TOPIC_REPLACED"):
                raise
            self.ask()
            return Part([], offset, None)
        if part.stop:
            self._stops[partition] = part.stop
        else:
            self._stops.pop(partition, None)
        return part

    def offset_at(self, partition: int, millis: int) -> tuple[int, int] | None:
        """Offset and time of the first record at or after a time in milliseconds since 1970-01-01 UTC; None without such a record."""
        reader = PartitionReader(self._log, self.state, partition)
        offset = reader.offset_at(millis)
        if offset == self.state.ends[partition]:
            return None
        found = next(reader.records(offset, offset + 1, columns=["timestamp"]))
        return offset, int(found.column(0).view("int64")[0].as_py()) // 1000
