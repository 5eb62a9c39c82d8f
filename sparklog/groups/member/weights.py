"""How partitions of a group are weighed: by their number, by lag or by rate; and the member that measures them while others run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping

from sparklog.errors import SparklogError
from sparklog.groups.assignors import Partition
from sparklog.groups.member.heartbeats import clock
from sparklog.groups.member.state import GroupState
from sparklog.groups.rows import Position
from sparklog.groups.topics import Topics
from sparklog.ondisk.reader import PartitionReader
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_logs import TopicLogs

_log = logging.getLogger(__name__)
UNIT = 1_000
"""While members run, partitions weigh whole thousands of records: less is read before anything has moved."""
_EVERY_S = 60
_RATE_MS = 3_600_000


def lags(states: Mapping[str, State], positions: Iterable[Position]) -> dict[Partition, int | None]:
    """The offsets that are unread of each partition; None without a position in the topic that is there now."""
    lags: dict[Partition, int | None] = {(topic, number): None for topic, state in states.items() for number in range(state.partitions)}
    for each in positions:
        if (each.topic, each.partition) in lags and states[each.topic].topic_id == each.topic_id:
            lags[each.topic, each.partition] = states[each.topic].unread(each.partition, each.offset)
    return lags


def measured(weight: str, states: Mapping[str, State], lags: Mapping[Partition, int | None], logs: TopicLogs) -> dict[Partition, int]:
    """The lag or the rate of the partitions, in records. Without a position, all records of a partition are its lag."""
    if weight == "lag":
        return {
            (topic, number): states[topic].ends[number] - states[topic].starts[number] if lag is None else lag
            for (topic, number), lag in lags.items()
        }
    since = int(time.time() * 1000) - _RATE_MS
    return {
        (topic, number): states[topic].ends[number] - PartitionReader(logs.log(topic), states[topic], number).offset_at(since)
        for topic, number in lags
    }


class Weigher:
    """Measures the partitions of a group from time to time, while its member is the owner of the group's first share."""

    def __init__(self, topics: Topics, positions: Callable[[], Iterable[Position]]) -> None:
        """`positions` gives the positions of the group, as the table has them now."""
        self._topics, self._positions = topics, positions
        self._since: float | None = None
        """When it measured last, or first saw that it is to."""

    def weigh(self, state: GroupState, member: str | None) -> dict[Partition, int] | None:
        """The load of each partition in thousands of records, for `GroupState.weighed`; None if it is not due, or not known."""
        if state.measure == "count" or member is None or state.first_owner() != member:
            self._since = None
            return None
        now = clock()
        self._since = now if self._since is None else self._since
        if now - self._since < _EVERY_S:
            return None
        self._since = now
        try:
            found = {name: self._topics.find_state(name) for name in state.topics}
            states = {name: newest for name, newest in found.items() if newest is not None and newest.topic_id == state.topics[name].id}
            loads = measured(state.measure, states, lags(states, self._positions()), self._topics.logs)
        except SparklogError as error:
            _log.warning("the partitions are not weighed: %s", error)
            return None
        return {each: load // UNIT for each, load in loads.items()}
