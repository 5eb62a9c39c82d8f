"""Where the records of a key can be in a topic."""

from __future__ import annotations

from typing import NamedTuple

from sparklog.ondisk.routing import Routing
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.version import Segment
from sparklog.router import Router, partition_for


class Key(NamedTuple):
    """A key, and the partition that the topic chooses for it; its slot, if the topic has slots."""

    octets: bytes
    home: int
    slot: int
    routing: Routing | None

    @classmethod
    def of(cls, state: State, key: bytes | bytearray | memoryview | str) -> Key:
        """A key of the topic; a string is encoded as UTF-8. TypeError if it is None."""
        home = partition_for(key, state.partitions, partitioner := state.config["partitioner"])
        if home is None:
            raise TypeError("`key` is None; records without a key are in any partition")
        octets = key.encode() if isinstance(key, str) else bytes(key)
        if not state.routing:
            return cls(octets, home, home, None)
        router = Router(state.partitions, partitioner, state.routing.table)
        return cls(octets, router.of_key(octets), router.slot(octets), state.routing)

    def may_be_in(self, segment: Segment) -> bool:
        """Whether a `routed` segment may hold the key: its partition had the key's slot when the segment was written."""
        home = self.home
        if self.routing:
            home = self.routing.partition(self.slot, self.routing.reroutes_before(segment.partition, segment.base))
        return segment.partition == home

    def partitions(self, log: TopicLog, state: State) -> list[int]:
        """The partitions that may hold records of the key, in order: its home, and those with a segment that may hold it.

        In a segment that is not `routed`, records were written to a partition that the caller chose, or before partitions were added.
        FORMAT.md section 5.
        """
        return [
            each
            for each in range(state.partitions)
            if each == self.home or any(not found.routed or self.may_be_in(found) for found in log.segments(state, each))
        ]
