"""The calls of a consumer about any partition, whether it reads it or not."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from sparklog import arguments
from sparklog.consumer.core import Core
from sparklog.consumer.records import Fetched, OffsetAndTimestamp, TopicPartition, partition_of, together
from sparklog.consumer.shell import Shell
from sparklog.errors import SparklogError
from sparklog.ondisk.root import Root


def process() -> int:
    """The number of this process."""
    return os.getpid()


class AnyPartition:
    """The calls of a consumer that need no position."""

    _root: Root
    _core: Core
    _shell: Shell
    _pid: int

    def topics(self) -> set[str]:
        """The topics of the root."""
        return set(self._root.topics())

    def partitions_for_topic(self, topic: str) -> set[int]:
        """The numbers of a topic's partitions. CallError TOPIC_NOT_FOUND."""
        return set(range(self._shell.topic(topic).state.partitions))

    def fetch(self, partition: TopicPartition, offset: int, max_bytes: int = 1 << 20) -> Fetched:
        """The records of any partition from an offset on, without a subscription; its own positions stay as they are.

        They are those of whole batches of `max_bytes` together as they are stored, and at least of one, as from a broker; but of some 1 GiB
        of Arrow at most, whatever `max_bytes` is. At the end offset the batch is empty. CallError OFFSETS_OUT_OF_RANGE, TOPIC_NOT_FOUND,
        PARTITION_NOT_FOUND.
        """
        self._require_open("fetch")
        octets = arguments.positive("max_bytes", max_bytes)
        offset = arguments.count("offset", offset)
        place = partition_of(partition)
        followed = self._shell.topic(place.topic)
        while True:
            (number,) = arguments.partitions(followed.state, self._root, place.partition)
            arguments.offsets(followed.state, self._root, "offset", {number: offset}, [number], followed.state.starts)
            start, end = followed.state.starts[number], followed.state.ends[number]
            if offset == end:
                return Fetched(together([]), offset, start, end)
            part = followed.part(number, offset, octets)
            if part.offset > offset:
                return Fetched(together(part.batches), part.offset, start, end)

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The log start offsets of any partitions."""
        return {each: self._shell.topic(each.topic).state.starts[each.partition] for each in self._existing(partitions)}

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end offsets of any partitions: those that their next records will get."""
        return {each: self._shell.topic(each.topic).state.ends[each.partition] for each in self._existing(partitions)}

    def offsets_for_times(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first records of any partitions at or after times in milliseconds since 1970-01-01 UTC; None if there is no such record."""
        found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        for given, time_ms in arguments.mapping("timestamps", timestamps):
            (each,) = self._existing([given])
            at = self._shell.topic(each.topic).offset_at(
                each.partition, arguments.millis(arguments.count("timestamp", time_ms), "timestamp")
            )
            found[each] = OffsetAndTimestamp(*at) if at else None
        return found

    def _existing(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        self._require_open("a call about partitions")
        found = list(map(partition_of, partitions))
        for topic, number in found:
            arguments.partitions(self._shell.topic(topic).state, self._root, number)
        return found

    def _require_open(self, call: str) -> None:
        if self._core.closed:
            raise SparklogError("CONSUMER_CLOSED", call=call)
        self._require_own(call)

    def _require_own(self, call: str) -> None:
        """A process that was forked does not read what its parent reads."""
        if self._core.has_group and process() != self._pid:
            raise SparklogError("CONSUMER_FORKED", call=call)
