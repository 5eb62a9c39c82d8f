"""The subscription of a consumer, and the newest known states of its topics."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from sparklog.consumer import requests as ask
from sparklog.consumer.records import TopicPartition
from sparklog.consumer.settings import Settings
from sparklog.errors import SparklogError
from sparklog.ondisk.state import State
from sparklog.steps import Steps

_FLAGS = {re.ASCII: "a", re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x"}


class Subscription:
    """The topics, the pattern or the partitions that the program named, and its topics, each in the newest known state.

    * `names`, `pattern` and `partitions` exclude one another.
    * `states` has only topics that the program named. The positions of shares are compared with these states, and with no others.
    * `news` are states, or errors, that were seen and are not in `states` yet. `Shares.take_news` moves them there.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.names: frozenset[str] | None = None
        """The topics that the program named."""
        self.pattern: re.Pattern[str] | None = None
        """The pattern of topics that the program named."""
        self.partitions: list[TopicPartition] = []
        """The partitions that the program assigned."""
        self.states: dict[str, State] = {}
        """The newest known states of the topics that are read, by name."""
        self.news: dict[str, State | SparklogError] = {}
        """States that were seen since, by topic, and errors of topics."""
        self.listed = float("-inf")
        """When the topics of the pattern were listed last."""
        self._ends: dict[tuple[tuple[str, int], str], int] = {}
        """The end offsets when the program subscribed, by partition and topic id. Records from there on are new."""

    @property
    def is_member(self) -> bool:
        """Whether the group gives the partitions: not while the program assigns them."""
        return self._settings.shares and not self.partitions

    @property
    def is_by_topic(self) -> bool:
        """Whether the program named topics or a pattern."""
        return self.names is not None or self.pattern is not None

    @property
    def topics(self) -> set[str] | None:
        """The topics that the program subscribed to; None if it assigned partitions, or nothing."""
        return set(self.states) if self.is_by_topic else None

    def reads(self, topic: str) -> bool:
        """Whether the program subscribed to a topic of this name."""
        return self.pattern.match(topic) is not None if self.pattern else topic in (self.names or ())

    def may_go(self, topic: str) -> bool:
        """Whether the topic may be deleted without an error of this kind: a new topic of its name is read later."""
        return self.is_by_topic and (self.is_member or self.pattern is not None) and self.reads(topic)

    def wanted(self, state: State) -> list[TopicPartition]:
        """The partitions of a topic that the program wants."""
        if self.is_by_topic:
            return [TopicPartition(state.topic, number) for number in range(state.partitions)]
        return [each for each in self.partitions if each.topic == state.topic]

    def has_read(self, topic: str, read: Collection[str]) -> bool:
        """Whether a group that has read these topics has read this topic, or another topic of the pattern."""
        return topic in read or (self.pattern is not None and any(map(self.pattern.match, read)))

    def beginning(self, partition: tuple[str, int], topic_id: str, start: int, end: int, was_read: bool) -> int | None:
        """Where a partition begins in which the group has no position; None if the program must say it.

        `was_read`: whether the group has read its topic before.
        """
        if self._settings.reset == "none":
            return None
        if self._settings.reset == "earliest" or was_read:
            return start
        return self._first_new((partition, topic_id), start, end) if self.is_member else end

    def _first_new(self, partition: tuple[tuple[str, int], str], start: int, end: int) -> int:
        """The offset of the first new record. A partition that was not there when the program subscribed is new to it."""
        return max(start, self._ends.get(partition, start))

    def change(
        self, states: Mapping[str, State], names: Collection[str] | None, pattern: re.Pattern[str] | None, partitions: list[TopicPartition]
    ) -> None:
        """Takes the place of the subscription before."""
        self.names, self.pattern, self.partitions = None if names is None or pattern else frozenset(names), pattern, partitions
        for name in states.keys() - self.states.keys():
            for number, end in enumerate(states[name].ends):
                self._ends[TopicPartition(name, number), states[name].topic_id] = end
        self.states, self.news = dict(states), {}

    def find(self, names: Collection[str]) -> Steps[dict[str, State]]:
        """The newest states of topics. CallError TOPIC_NOT_FOUND."""
        found = yield from ask.RefreshTopics(sorted(names), surely=True)
        for state in found.values():
            if isinstance(state, SparklogError):
                raise state
        return _states(found)

    def find_matching(self, pattern: re.Pattern[str]) -> Steps[dict[str, State]]:
        """The topics whose names begin with a match of a pattern that the program names now."""
        now = yield from ask.Now()
        listed = yield from ask.ListTopics(lambda name: pattern.match(name) is not None)
        found = yield from ask.RefreshTopics(listed)
        self.listed = now
        return _states(found)

    def find_new(self, now: float) -> Steps[dict[str, State]]:
        """The topics of the pattern that came since, if it is time to list them again."""
        pattern = self.pattern
        if pattern is None or now - self.listed < self._settings.list_again_s:
            return {}
        self.listed = now
        added = yield from ask.ListTopics(lambda name: name not in self.states and pattern.match(name) is not None)
        return _states((yield from ask.RefreshTopics(added, surely=True))) if added else {}

    def require(self, state: State, partition: TopicPartition) -> None:
        """CallError PARTITION_NOT_FOUND."""
        topic, number = partition
        if not 0 <= number < state.partitions:
            root, last = self._settings.root, state.partitions - 1
            raise SparklogError("PARTITION_NOT_FOUND", option="partition", partition=number, topic=topic, root=root, last=last)


def _states(found: Mapping[str, State | SparklogError]) -> dict[str, State]:
    return {name: state for name, state in found.items() if not isinstance(state, SparklogError)}


def text_of(pattern: re.Pattern[str]) -> str:
    """A pattern with its flags in its text, where other members read it."""
    flags = "".join(letter for flag, letter in _FLAGS.items() if pattern.flags & flag)
    return f"(?{flags}){pattern.pattern}" if flags else pattern.pattern
