"""The topics that a consumer reads, as they are now, and the partitions of them that its assignment gives."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable

from sparklog import arguments
from sparklog.consumer.assigned_partition import AssignedPartition
from sparklog.consumer.assignment import All, AllMatching, Assignment, ByHand
from sparklog.consumer.records import TopicPartition
from sparklog.consumer.topic_reads import TopicReads
from sparklog.consumer.turns import Turns
from sparklog.errors import SparklogError
from sparklog.ondisk.topic_logs import TopicLogs


class Subscription:
    """The partitions of a consumer, and the topics that they are in. A topic is looked at only if one of its partitions is read."""

    def __init__(self, logs: TopicLogs, list_again_s: float, part_of: Callable[[Assignment], Assignment] = lambda whole: whole) -> None:
        """`list_again_s`: how often it looks for new topics that a pattern names, in seconds. `part_of` gives what is read of topics."""
        self._logs = logs
        self._part_of = part_of
        self._list_again_s = list_again_s
        self._listed = 0.0
        self._assignment: Assignment = ByHand()
        self._followed: dict[str, TopicReads] = {}
        self._others: dict[str, TopicReads] = {}
        """Topics that are asked about but not read."""
        self._changed = False
        self.assigned: dict[TopicPartition, AssignedPartition] = {}
        self.turns = Turns()

    @property
    def topics(self) -> set[str] | None:
        """The topics that are subscribed to; None if partitions are assigned by hand, or nothing is."""
        return set(self._followed) if self._assignment.subscribes else None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read, and nothing that could come."""
        return not self._assignment.subscribes and not self.assigned

    @property
    def has_changed(self) -> bool:
        """Whether a topic has another state than `look` has told of."""
        return self._changed or any(followed.has_moved for followed in self._followed.values())

    def subscribe(self, names: Iterable[str]) -> None:
        """Reads all partitions of these topics, which must exist. CallError TOPIC_NOT_FOUND, TOPIC_NAME_ILLEGAL."""
        self._become(self._part_of(All()), {name: self.followed(name) for name in names})
        self._align_all(late=False)

    def subscribe_to(self, pattern: str | re.Pattern[str]) -> None:
        """Reads all partitions of all topics whose names begin with a match, also of those that will exist."""
        matching = AllMatching(pattern)
        self._become(self._part_of(matching), {name: followed for name, followed in self._followed.items() if matching.finds(name)})
        self._align_all(late=False)
        self._list(late=False)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Reads these partitions, which must exist. CallError TOPIC_NOT_FOUND, PARTITION_NOT_FOUND."""
        wanted = dict.fromkeys(partitions)
        followed = {topic: self.followed(topic) for topic in {topic for topic, _ in wanted}}
        for topic, number in wanted:
            arguments.partitions(followed[topic].state, self._logs.root, number)
        before = self.assigned
        self._become(ByHand(wanted), followed)
        self._keep({each: before.get(each) or AssignedPartition(followed[each.topic], each, late=False) for each in wanted})

    def realign(self, topics: Iterable[str]) -> None:
        """Takes what the assignment gives by now, in the newest states; of these topics too, which may have been created again."""
        for topic in {*self._followed, *topics}:
            if topic in self._followed:
                self._changed |= self._look_at(topic, self._followed[topic], surely=True)
            if topic in self._followed:
                self._align(topic, late=False)
            else:
                self._add(topic, late=False)

    def clear(self) -> None:
        """Reads nothing."""
        self._become(ByHand(), {})

    def followed(self, topic: str) -> TopicReads:
        """A topic that is read or not, in its newest state. CallError TOPIC_NOT_FOUND, TOPIC_NAME_ILLEGAL."""
        followed = self._followed.get(topic) or self._others.get(topic)
        if followed is None:
            followed = self._others[topic] = TopicReads(self._logs, topic)
        elif topic in self._followed:
            self._changed |= self._look_at(topic, followed, surely=True)
            return self._followed.get(topic) or TopicReads(self._logs, topic)
        else:
            followed.ask()
        return followed

    def look(self) -> bool:
        """Takes the newest state of each topic that is read. Whether one has changed."""
        if self._assignment.searches and time.monotonic() - self._listed >= self._list_again_s:
            self._changed |= self._list(late=True)
        for topic, followed in list(self._followed.items()):
            self._changed |= self._look_at(topic, followed)
        changed, self._changed = self._changed, False
        return changed

    def returns(self, each: AssignedPartition) -> bool:
        """Whether records of a partition may be returned, after calls that may have paused it or taken it away."""
        return not each.paused and self.assigned.get(each.partition) is each

    def ask(self, topics: Iterable[str]) -> None:
        """Takes the newest state of some topics that are read. `look` tells of what that changes."""
        for topic in topics:
            if topic in self._followed:
                self._changed |= self._look_at(topic, self._followed[topic], surely=True)

    def _become(self, assignment: Assignment, followed: dict[str, TopicReads]) -> None:
        self._assignment, self._followed = assignment, followed
        for topic in followed:
            self._others.pop(topic, None)
        self._keep({partition: each for partition, each in self.assigned.items() if partition.topic in followed})

    def _list(self, *, late: bool) -> bool:
        """Adds the topics that the assignment finds by now. Whether there were any."""
        self._listed = time.monotonic()
        added = False
        for name in self._logs.root.topics():
            if name not in self._followed and self._assignment.finds(name):
                added |= self._add(name, late=late)
        return added

    def _add(self, name: str, *, late: bool) -> bool:
        """Adds a topic, unless it was deleted just now. Whether it is there."""
        try:
            self._followed[name] = TopicReads(self._logs, name)
        except SparklogError as error:
            if error.id != "TOPIC_NOT_FOUND":
                raise
            return False
        self._others.pop(name, None)
        self._align(name, late=late)
        return True

    def _look_at(self, topic: str, followed: TopicReads, *, surely: bool = False) -> bool:
        try:
            if surely:
                followed.ask()
            if not followed.look():
                return False
        except SparklogError as error:
            if error.id != "TOPIC_NOT_FOUND" or not self._assignment.finds(topic):
                raise
            del self._followed[topic]
            self._logs.forget(topic)
            self._keep({partition: each for partition, each in self.assigned.items() if partition.topic != topic})
            return True
        self._align(topic, late=True)
        return True

    def _align_all(self, *, late: bool) -> None:
        for topic in self._followed:
            self._align(topic, late=late)

    def _align(self, topic: str, *, late: bool) -> None:
        """The partitions of a topic are those that it has and the assignment gives. Positions in another topic of the name do not count."""
        followed = self._followed[topic]
        before = {partition for partition in self.assigned if partition.topic == topic}
        given = self._assignment.of(topic, followed.state)
        kept = {
            each: self.assigned.get(each) or AssignedPartition(followed, each, late=self._assignment.is_late(each, found_late=late))
            for each in given
        }
        if kept.keys() != before:
            self._keep({partition: each for partition, each in self.assigned.items() if partition.topic != topic} | kept)
        for each in kept.values():
            if each.topic_id != followed.state.topic_id:
                each.renew()

    def _keep(self, assigned: dict[TopicPartition, AssignedPartition]) -> None:
        self.assigned = assigned
        self.turns = Turns(assigned.values())
