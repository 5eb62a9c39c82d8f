"""Finds the next records of a consumer's partitions: waits for them, and keeps positions in the log."""

from __future__ import annotations

import logging
import time

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from sparklog import arguments
from sparklog.consumer.assigned import Assigned
from sparklog.consumer.group import Group
from sparklog.consumer.records import TopicPartition
from sparklog.consumer.subscription import Subscription
from sparklog.errors import SparklogError

_log = logging.getLogger(__name__)


class Reader:
    """Reads what a subscription names. `reset` is the consumer's `auto_offset_reset`."""

    group: Group | None = None

    def __init__(self, root: str, subscription: Subscription, reset: str, interval_s: float, part_bytes: int) -> None:
        self._root = root
        self._subscription = subscription
        self._reset = reset
        self._interval_s = interval_s
        self._part_bytes = part_bytes
        self._settled = False
        """Whether all positions are known and in the log."""
        self._idle = False
        """Whether all was read that is known to be there."""
        self._looked = float("-inf")
        self._woken = False

    def moved(self) -> None:
        """To be called after positions, partitions or states became others."""
        self._settled = self._idle = False

    def wake(self) -> None:
        """Ends `next`, or the next call of it."""
        self._woken = True

    def next(self, timeout_s: float, records_max: int, bytes_max: int) -> list[tuple[Assigned, pa.RecordBatch, int]]:
        """The next records as soon as there are any, each with the position after them, which the caller sets.

        Empty after the timeout, or when woken.
        """
        self.auto_commit()
        until = time.monotonic() + timeout_s
        while not (found := self._look_and_take(records_max, bytes_max)):
            left = until - time.monotonic()
            if self._woken or left <= 0:
                self._woken = False
                break
            time.sleep(min(self._interval_s, left))
            self.auto_commit()
        return found

    def _look_and_take(self, records_max: int, bytes_max: int) -> list[tuple[Assigned, pa.RecordBatch, int]]:
        """What is there, after a look for more if there is nothing, or if the last look is a poll interval ago."""
        looked = False
        while True:
            if self._idle or time.monotonic() - self._looked >= self._interval_s:
                if self._subscription.look():
                    self.moved()
                self._looked = time.monotonic()
                looked = True
            if not self._idle:
                self.settle()
                if found := self._subscription.take(records_max, bytes_max, self._part_bytes):
                    return found
                self._idle = True
            if looked:
                return []

    def settle(self) -> None:
        """Finds out the positions that are not known, and moves those that are not in the log."""
        # A question about offsets, or a file that is gone, shows what is new too.
        if self._subscription.has_changed and self._subscription.look():
            self.moved()
        if self._settled:
            return
        asked: set[str] = set()
        while True:
            self._find_out()
            strayed = [each for each in self._subscription.assigned.values() if not each.start <= _known(each) <= each.end]
            # A position may be in the log by now: only the newest state says that it is not.
            if not (topics := {each.partition.topic for each in strayed} - asked):
                break
            asked |= topics
            self._subscription.ask(topics)
        for each in strayed:
            each.position = self._in_log(each, _known(each))
        self._settled = True

    def _find_out(self) -> None:
        """Finds out the positions that are not known."""
        assigned = self._subscription.assigned.values()
        for each in assigned:
            arguments.partitions(each.tail.state, self._root, each.number)
        if any(each.position is None for each in assigned):
            committed = self.group.committed() if self.group else {}
            for each in assigned:
                if each.position is None:
                    found = committed.get((each.partition, each.topic_id))
                    each.position = found.offset if found else self._first(each)

    def _first(self, each: Assigned) -> int:
        """The position in a partition in which none was committed."""
        if self._reset == "none":
            topic, partition = each.partition
            raise SparklogError("OFFSET_NOT_COMMITTED", topic=topic, partition=partition, root=self._root)
        return each.start if self._reset == "earliest" else each.latest

    def _in_log(self, each: Assigned, offset: int) -> int:
        """The position in place of one that is not in the log."""
        if self._reset == "none":
            # It raises the error.
            arguments.offsets(each.tail.state, self._root, "position", {each.number: offset}, [each.number], each.tail.state.starts)
        to = each.start if self._reset == "earliest" else each.end
        topic, partition = each.partition
        _log.warning(
            "Offset %d of topic %s, partition %d is not in the log; going on at %d (%s)", offset, topic, partition, to, self._reset
        )
        return to

    def positions(self) -> dict[TopicPartition, tuple[str, int]]:
        """The positions that are known, each with the topic id."""
        known = self._subscription.assigned.items()
        return {partition: (each.topic_id, each.position) for partition, each in known if each.position is not None}

    def auto_commit(self, *, at_once: bool = False) -> None:
        """Commits what was returned, if that is due. GenerationFenced."""
        if self.group is not None:
            self.group.auto_commit(self.positions, at_once=at_once)


def _known(each: Assigned) -> int:
    assert each.position is not None
    return each.position
