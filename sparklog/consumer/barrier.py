"""Keeps each key in order over re-routes: a partition waits for those from which it took slots or keys. FORMAT.md section 9."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

from sparklog.consumer.assigned_partition import AssignedPartition
from sparklog.consumer.records import OffsetAndMetadata, TopicPartition
from sparklog.consumer.subscription import Subscription
from sparklog.ondisk.names import INT64_MAX
from sparklog.ondisk.routing import Awaited, Routing
from sparklog.ondisk.state import State
from sparklog.router import Router

Committed = dict[tuple[TopicPartition, str], OffsetAndMetadata]

_log = logging.getLogger(__name__)


class Barrier:
    """How far the partitions of a consumer may be read, by its own positions and by those that its group has committed in others."""

    def __init__(self, subscription: Subscription, committed: Callable[[], Committed], interval_s: float) -> None:
        """`committed` gives the group's positions by partition and topic id; it is asked every `interval_s` seconds at most."""
        self._subscription = subscription
        self._ask = committed
        self._interval_s = interval_s
        self._asked = float("-inf")
        self._committed: Committed = {}
        self._awaited: dict[str, tuple[Routing, Awaited]] = {}
        """By topic, for the routing that it had when that was last asked."""
        self._told: set[tuple[TopicPartition, TopicPartition, int]] = set()
        self.shares = False
        """Whether members of the group read all partitions: then one without a position is waited for, too."""

    def until(self, each: AssignedPartition) -> int:
        """The offset before which records of a partition may be returned now."""
        for cut, awaited, offset in self._open(each):
            if each.position is not None and each.position >= cut and (waits := (each.partition, awaited, offset)) not in self._told:
                self._told.add(waits)
                _log.info("%s-%d waits for %s-%d up to offset %d", *each.partition, *awaited, offset)
            return cut
        return INT64_MAX

    def waiting(self) -> dict[TopicPartition, dict[TopicPartition, int]]:
        """For each partition that waits, the partitions that it waits for, each with the offset up to which they must be consumed."""
        found: dict[TopicPartition, dict[TopicPartition, int]] = {}
        for each in self._subscription.assigned.values():
            for cut, awaited, offset in self._open(each):
                if each.position is not None and each.position >= cut and each.position < each.end:
                    its = found.setdefault(each.partition, {})
                    its[awaited] = max(offset, its.get(awaited, 0))
        return found

    @property
    def depends_on_group(self) -> bool:
        """Whether a partition waits for one that the group reads and this consumer does not: then nothing here tells when that is read."""
        return any(awaited not in self._subscription.assigned for its in self.waiting().values() for awaited in its)

    def _open(self, each: AssignedPartition) -> Iterator[tuple[int, TopicPartition, int]]:
        """The re-routes that keep a partition from going on, from old to new: its cut, and a partition that must reach an offset first."""
        state = each.followed.state
        if not state.routing or state.topic_id != each.topic_id:
            return
        for cut, donors in self._awaited_in(state, state.routing).get(each.number, ()):
            for donor, offset in donors.items():
                awaited = TopicPartition(each.partition.topic, donor)
                consumed = self._consumed(each, awaited)
                if consumed is not None and max(consumed, state.starts[donor]) < offset:
                    yield cut, awaited, offset

    def _awaited_in(self, state: State, routing: Routing) -> Awaited:
        known = self._awaited.get(state.topic)
        if known is None or known[0] is not routing:
            router = Router(state.partitions, state.config["partitioner"], routing.table)
            known = self._awaited[state.topic] = routing, routing.awaited(router.slot)
        return known[1]

    def _consumed(self, each: AssignedPartition, awaited: TopicPartition) -> int | None:
        """The offset up to which a partition was consumed; None if neither the consumer nor its group reads it, as far as is known."""
        its = self._subscription.assigned.get(awaited)
        if its is not None:
            return its.position or 0
        if time.monotonic() - self._asked >= self._interval_s:
            self._asked = time.monotonic()
            self._committed = self._ask()
        found = self._committed.get((awaited, each.topic_id))
        if found is None:
            return 0 if self.shares else None
        return found.offset
