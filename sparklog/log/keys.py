"""Where the records of a key can be in a topic."""

from __future__ import annotations

import time
from typing import NamedTuple

import pyarrow as pa

from sparklog.ondisk.routing import Routing
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.version import Segment
from sparklog.router import Router, key_bytes

KEY_TABLE = pa.schema([("key", pa.binary()), ("partition", pa.int32()), ("records", pa.int64()), ("timestamp", pa.timestamp("us", "UTC"))])


def router_of(state: State) -> Router:
    """Where the topic of a state puts records by their keys, in a write that begins now."""
    routing = state.routing
    if not routing:
        return Router(state.partitions, state.config["partitioner"])
    return Router(state.partitions, state.config["partitioner"], routing.table, state.shares(time.time() * 1000) or routing.weights)


def routing_of(state: State) -> Routing:
    """The routing of a topic. Without slots, the routing that its first re-route would begin with."""
    return state.routing or Routing.modulo(state.partitions)


def recent_keys(state: State, records: pa.Table) -> pa.Table:
    """The keys of records, which have `key` and `timestamp`, as `Topic.recent_keys` gives them."""
    keyed = records.filter(records["key"].is_valid())
    counted = keyed.group_by("key").aggregate([([], "count_all"), ("timestamp", "max")])
    router = router_of(state)
    found = sorted((router.of_key(each["key"]), each["key"], each["count_all"], each["timestamp_max"]) for each in counted.to_pylist())
    return pa.table([[row[at] for row in found] for at in (1, 0, 2, 3)], schema=KEY_TABLE)


class Key(NamedTuple):
    """A key, and the partition that the topic chooses for it; its slot, if the topic has slots."""

    data: bytes
    home: int
    slot: int
    routing: Routing | None

    @classmethod
    def of(cls, state: State, key: bytes | bytearray | memoryview | str) -> Key:
        """A key of the topic; a string is encoded as UTF-8. TypeError if it is None."""
        data = key_bytes(key)
        if data is None:
            raise TypeError("`key` is None; records without a key are in any partition")
        router = router_of(state)
        return cls(data, router.of_key(data), router.slot(data), state.routing)

    def may_be_in(self, segment: Segment) -> bool:
        """Whether a `routed` segment may hold the key: the key belonged to its partition when the segment was written."""
        home = self.home
        if self.routing:
            home = self.routing.partition(self.slot, self.routing.reroutes_before(segment.partition, segment.base))
        return segment.partition == home

    def partitions(self, log: TopicLog, state: State) -> list[int]:
        """The partitions that may hold records of the key, in order: its home, and partitions with a segment that may hold it.

        In a segment that is not `routed`, records were written without a key, or to a partition that the caller chose. FORMAT.md
        section A.8.
        """
        return [
            each
            for each in range(state.partitions)
            if each == self.home or any(not found.routed or self.may_be_in(found) for found in log.segments(state, each))
        ]
