"""Assignments: they give a consumer its partitions. That of members of a group, which share topics, is in `sharing.py`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from sparklog.consumer.records import TopicPartition
from sparklog.errors import SparklogError
from sparklog.ondisk.state import State


class Assignment(Protocol):
    """Says which partitions a consumer reads, of topics whose states change."""

    subscribes: bool
    """Whether it names topics; otherwise it names partitions."""
    searches: bool
    """Whether topics that come to be may be read too."""

    def finds(self, topic: str) -> bool:
        """Whether a topic of this name is read when it comes to be, and may go without an error."""

    def of(self, topic: str, state: State) -> Iterable[TopicPartition]:
        """The partitions of a topic that are read, if it is in this state."""

    def is_late(self, partition: TopicPartition, *, found_late: bool) -> bool:
        """Whether all of a partition is new, since it came to be while its topic was read; `found_late`: while this consumer read it."""


class ByHand:
    """The caller gave these partitions, which stay."""

    subscribes = searches = False

    def __init__(self, partitions: Iterable[TopicPartition] = ()) -> None:
        self._partitions = list(partitions)

    def finds(self, topic: str) -> bool:
        return False

    def of(self, topic: str, state: State) -> Iterable[TopicPartition]:
        return [each for each in self._partitions if each.topic == topic]

    def is_late(self, partition: TopicPartition, *, found_late: bool) -> bool:
        return found_late


class All:
    """All partitions of topics that the caller named, also those that are added."""

    subscribes = True
    searches = False

    def finds(self, topic: str) -> bool:
        return False

    def of(self, topic: str, state: State) -> Iterable[TopicPartition]:
        return [TopicPartition(topic, number) for number in range(state.partitions)]

    def is_late(self, partition: TopicPartition, *, found_late: bool) -> bool:
        return found_late


class AllMatching(All):
    """All partitions of all topics whose names begin with a match of a pattern, also of those that will exist."""

    searches = True

    def __init__(self, pattern: str | re.Pattern[str]) -> None:
        """CallError if it is not a regular expression."""
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            reason = f"it must be a regular expression, and is not: {error}"
            raise SparklogError("OPTION_VALUE", option="pattern", value=pattern, reason=reason) from None

    def finds(self, topic: str) -> bool:
        return self._pattern.match(topic) is not None
