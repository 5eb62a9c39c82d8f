"""What a consumer reads: topics with all of their partitions, or partitions by hand; and whose turn it is."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from sparklog import arguments
from sparklog.consumer.assigned import Assigned
from sparklog.consumer.records import TopicPartition
from sparklog.consumer.tail import Tail
from sparklog.errors import SparklogError
from sparklog.ondisk import topic_log


class Subscription:
    """The partitions of a consumer, and the topics that they are in. A topic is looked at only if one of its partitions is read."""

    def __init__(self, root: str, list_again_s: float) -> None:
        self._root = root
        self._list_again_s = list_again_s
        self._listed = 0.0
        self._names: set[str] | None = None
        self._pattern: re.Pattern[str] | None = None
        self._tails: dict[str, Tail] = {}
        self._others: dict[str, Tail] = {}
        """Topics that are asked about but not read."""
        self._changed = False
        self._turns: deque[Assigned] = deque()
        self.assigned: dict[TopicPartition, Assigned] = {}

    @property
    def topics(self) -> set[str] | None:
        """The topics that are subscribed to; None if partitions are assigned by hand, or nothing is."""
        return None if self._names is None and self._pattern is None else set(self._tails)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read, and nothing that could come."""
        return self.topics is None and not self.assigned

    @property
    def has_changed(self) -> bool:
        """Whether a topic has another state than `look` has told of."""
        return self._changed or any(tail.has_moved for tail in self._tails.values())

    def subscribe(self, names: Iterable[str]) -> None:
        """Reads all partitions of these topics, which must exist. CallError TOPIC_NOT_FOUND, TOPIC_NAME_ILLEGAL."""
        tails = {name: self.tail(name) for name in names}
        self._become(tails, names=set(tails))
        self._align_all(late=False)

    def subscribe_to(self, pattern: str | re.Pattern[str]) -> None:
        """Reads all partitions of all topics whose names begin with a match, also of those that will exist."""
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            reason = f"it must be a regular expression, and is not: {error}"
            raise SparklogError("OPTION_VALUE", option="pattern", value=pattern, reason=reason) from None
        self._become({name: tail for name, tail in self._tails.items() if compiled.match(name)}, pattern=compiled)
        self._align_all(late=False)
        self._list(late=False)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads these partitions, which must exist. CallError TOPIC_NOT_FOUND, PARTITION_NOT_FOUND."""
        wanted = dict.fromkeys(partitions)
        tails = {topic: self.tail(topic) for topic in {topic for topic, _ in wanted}}
        for topic, number in wanted:
            arguments.partitions(tails[topic].state, self._root, number)
        before = self.assigned
        self._become(tails)
        self._keep({each: before.get(each) or Assigned(tails[each.topic], each, late=False) for each in wanted})

    def clear(self) -> None:
        """Reads nothing."""
        self._become({})

    def tail(self, topic: str) -> Tail:
        """A topic that is read or not, in its newest state. CallError TOPIC_NOT_FOUND, TOPIC_NAME_ILLEGAL."""
        tail = self._tails.get(topic) or self._others.get(topic)
        if tail is None:
            tail = self._others[topic] = Tail(self._root, topic)
        elif topic in self._tails:
            self._changed |= self._look_at(topic, tail, surely=True)
            return self._tails.get(topic) or Tail(self._root, topic)
        else:
            tail.ask()
        return tail

    def look(self) -> bool:
        """Takes the newest state of each topic that is read. Whether one has changed."""
        if self._pattern is not None and time.monotonic() - self._listed >= self._list_again_s:
            self._changed |= self._list(late=True)
        for topic, tail in list(self._tails.items()):
            self._changed |= self._look_at(topic, tail)
        changed, self._changed = self._changed, False
        return changed

    def returns(self, each: Assigned) -> bool:
        """Whether records of a partition may be returned, after calls that may have paused it or taken it away."""
        return not each.paused and self.assigned.get(each.partition) is each

    def ask(self, topics: Iterable[str]) -> None:
        """Takes the newest state of some topics that are read. `look` tells of what that changes."""
        for topic in topics:
            if topic in self._tails:
                self._changed |= self._look_at(topic, self._tails[topic], surely=True)

    def take(self, records_max: int, bytes_max: int, part_bytes_max: int) -> list[tuple[Assigned, pa.RecordBatch, int]]:
        """The next records of some partitions, each with the position after them, which the caller sets. Every partition gets its turn.

        A turn ends with the part that was read, so a partition that has more does not keep others waiting.
        """
        found: list[tuple[Assigned, pa.RecordBatch, int]] = []
        for _ in range(len(self._turns)):
            each = self._turns[0]
            taken = None if each.paused else each.take(records_max, min(bytes_max, part_bytes_max))
            if taken:
                found.append((each, *taken))
                records_max -= taken[0].num_rows
                bytes_max -= taken[0].nbytes
            if not taken or not each.holds:
                self._turns.rotate(-1)
            if records_max <= 0 or bytes_max <= 0:
                break
        return found

    def _become(self, tails: dict[str, Tail], names: set[str] | None = None, pattern: re.Pattern[str] | None = None) -> None:
        self._tails, self._names, self._pattern = tails, names, pattern
        for topic in tails:
            self._others.pop(topic, None)
        self._keep({partition: each for partition, each in self.assigned.items() if partition.topic in tails})

    def _list(self, *, late: bool) -> bool:
        """Adds the topics that match and exist by now. Whether there were any."""
        assert self._pattern is not None
        self._listed = time.monotonic()
        added = False
        for name in topic_log.topics(self._root):
            if name not in self._tails and self._pattern.match(name):
                try:
                    self._tails[name] = Tail(self._root, name)
                except SparklogError as error:
                    if error.id != "TOPIC_NOT_FOUND":  # it was deleted just now
                        raise
                else:
                    self._others.pop(name, None)
                    self._align(name, late=late)
                    added = True
        return added

    def _look_at(self, topic: str, tail: Tail, *, surely: bool = False) -> bool:
        try:
            if surely:
                tail.ask()
            if not tail.look():
                return False
        except SparklogError as error:
            if error.id != "TOPIC_NOT_FOUND" or self._pattern is None:
                raise
            del self._tails[topic]
            self._keep({partition: each for partition, each in self.assigned.items() if partition.topic != topic})
            return True
        self._align(topic, late=True)
        return True

    def _align_all(self, *, late: bool) -> None:
        for topic in self._tails:
            self._align(topic, late=late)

    def _align(self, topic: str, *, late: bool) -> None:
        """The partitions of a topic are those of its state. Positions in another topic of the name do not count."""
        tail = self._tails[topic]
        partitions = [TopicPartition(topic, number) for number in range(tail.state.partitions)]
        if self.topics is not None:
            kept = {each: self.assigned.get(each) or Assigned(tail, each, late=late) for each in partitions}
            if any(each.topic == topic and each not in kept for each in self.assigned) or kept.keys() - self.assigned.keys():
                self._keep({partition: each for partition, each in self.assigned.items() if partition.topic != topic} | kept)
        for partition, each in self.assigned.items():
            if partition.topic == topic and each.topic_id != tail.state.topic_id:
                each.renew()

    def _keep(self, assigned: dict[TopicPartition, Assigned]) -> None:
        self.assigned = assigned
        self._turns = deque(assigned.values())
