"""The topics of the root that positions are in."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.member.state import Registered, SharedTopic
from sparklog.groups.rows import Position, now
from sparklog.groups.table import places
from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.topic_logs import TopicLogs

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

Offsets = Mapping[str, Mapping[int, int]]
"""Offsets by topic and partition."""


class Topics:
    """The topics of a root, or of none: then every look at one is a CallError that names the table.

    Without a table, there is a root.
    """

    def __init__(
        self, root: str | os.PathLike[str] | Root | TopicLogs | None, table: str | None, filesystem: FileSystem | None = None
    ) -> None:
        self._logs = None if root is None else arguments.topic_logs(root, filesystem)
        self.root = None if self._logs is None else self._logs.root
        if table is not None:
            places.require_apart(table, self.root, "offsets")
        self._table = table
        self._pinned: dict[str, State | None] | None = None

    def pinned(self, soon: Iterable[str] = ()) -> Topics:
        """The same topics. Each stays in the state of the first look at it, so that several answers agree.

        In a store over a network, the topics that are needed `soon` are looked at now, and at once.
        """
        found = copy.copy(self)
        found._pinned = {}
        if self.root is not None and self.root.store.is_far:
            found.find_states(soon)
        return found

    @property
    def storage_options(self) -> Mapping[str, str]:
        """How deltalake reaches the table, as far as it is in a store of the root's kind."""
        return {} if self.root is None or self._table is None else self.root.store.storage_options(self._table)

    @property
    def logs(self) -> TopicLogs:
        """The commit logs of the root's topics, which the owners of its groups and their consumers share."""
        if self._logs is None:
            raise SparklogError("OFFSETS_ROOT", table=self._table)
        return self._logs

    def log(self, topic: str) -> TopicLog:
        """The commit log of a topic. CallError if the name is not legal."""
        return self.logs.log(arguments.topic(topic))

    def state(self, topic: str) -> State:
        """The newest state of a topic. Cheap if nothing was committed since the last call. CallError TOPIC_NOT_FOUND."""
        pinned = None if self._pinned is None else self.find_state(topic)
        return self.log(topic).newest() if pinned is None else pinned

    def find_state(self, topic: str) -> State | None:
        """The newest state of a topic; None if the topic does not exist."""
        if self._pinned is None:
            return self.logs.find(arguments.topic(topic))
        if topic not in self._pinned:
            self._pinned[topic] = self.logs.find(arguments.topic(topic))
        return self._pinned[topic]

    def find_states(self, topics: Iterable[str]) -> dict[str, State | SparklogError | None]:
        """The newest states of topics, which are looked at at once: None if a topic does not exist, or the error of its look."""

        def find(topic: str) -> State | SparklogError | None:
            try:
                return self.find_state(topic)
            except SparklogError as error:
                return error

        names = sorted(set(topics))
        return dict(zip(names, map(find, names) if self.root is None else self.root.store.at_once(find, names), strict=True))

    def rows(self, group: str, commits: Iterable[OffsetCommit], known: Iterable[Position] = ()) -> list[Position]:
        """The positions of a group by its commits, which are checked; their generation is 0.

        RetryError if a topic does not have the id of its commit; CallError if it is not the topic of a known position, or if the topic or
        the partition does not exist. Also if an offset is not from 0 to the end offset.
        """
        by_topic = {each.topic: each for each in known}
        states: dict[tuple[str, str], State] = {}
        made: list[Position] = []
        at = now()  # one time for all, by which `lags.together` knows the rows of a commit
        for each in commits:
            topic = (each.topic, each.topic_id)
            state = states[topic] = states.get(topic) or self._state_of(*topic, by_topic)
            # A position may have expired while its owner read on.
            placed = placed_in(state, self.root, each.partition, each.offset, [0] * state.partitions)
            made.append(Position(group, 0, each.topic, state.topic_id, *placed, at, metadata=each.metadata))
        return made

    def _state_of(self, topic: str, id: str, known: Mapping[str, Position]) -> State:
        """The newest state of a topic, which must have this id, and be the topic of a known position."""
        state = self.state(topic)
        if id != state.topic_id:
            raise SparklogError("TOPIC_RECREATED", topic=topic, root=self.root, expected=id, found=state.topic_id)
        if topic in known:
            require_same(self.root, known[topic], state)
        return state

    def unread(self, positions: Iterable[Position]) -> dict[tuple[str, int], int]:
        """How many offsets are unread, by topic and partition, where the position is of the topic that is there."""
        if self.root is None:
            return {}
        found, wanted = {}, list(positions)
        states = _without_errors(self.find_states(each.topic for each in wanted))
        for each in wanted:
            state = states[each.topic]
            if state is not None and state.topic_id == each.topic_id and each.partition < state.partitions:
                found[each.topic, each.partition] = state.unread(each.partition, each.offset)
        return found

    def shared(self, members: Iterable[Registered]) -> dict[str, SharedTopic]:
        """The topics that members read, as they are now."""
        readers = list(members)
        names = {name for member in readers for name in member.topics}
        patterns = [member for member in readers if member.pattern is not None]
        if patterns:
            names.update(self.logs.root.topics(lambda name: any(each.reads(name) for each in patterns)))
        found = _without_errors(self.find_states(names))
        return {name: SharedTopic(state.topic_id, state.partitions) for name, state in found.items() if state is not None}

    def noted(self, position: Position) -> Position:
        """The position, with a `note` if its topic was created again or deleted."""
        if self.root is None:
            return position
        state = self.find_state(position.topic)
        if state is None:
            return dataclasses.replace(position, note="the topic does not exist")
        if state.topic_id != position.topic_id:
            return dataclasses.replace(position, note=f"the topic was created again, with the id {state.topic_id}")
        return position


def _without_errors(states: Mapping[str, State | SparklogError | None]) -> dict[str, State | None]:
    """The states; raises the first error among them."""
    found: dict[str, State | None] = {}
    for name, state in states.items():
        if isinstance(state, SparklogError):
            raise state
        found[name] = state
    return found


def placed_in(state: State, root: Root | None, partition: object, offset: object, starts: Iterable[int]) -> tuple[int, int]:
    """The partition and the offset, checked: the partition exists, and the offset is from its entry in `starts` to its end offset."""
    (placed,) = arguments.partitions(state, root, arguments.integer("partition", partition), "offsets")
    checked = arguments.integer("offset", offset)
    if not list(starts)[placed] <= checked <= state.ends[placed]:
        raise SparklogError(
            "OFFSETS_OUT_OF_RANGE",
            option="offsets",
            offset=checked,
            topic=state.topic,
            partition=placed,
            root=root,
            start=state.starts[placed],
            end=state.ends[placed],
            way="Give an offset in that range; reset() to 'earliest' or 'latest' gives the ends of it",
        )
    return placed, checked


def require_same(root: Root | None, position: Position, state: State) -> None:
    """CallError if the topic was created again since the position was committed, or does not have the partition (it never loses one)."""
    if position.topic_id != state.topic_id:
        raise SparklogError(
            "GROUP_OF_OTHER_TOPIC",
            group=position.group,
            topic=position.topic,
            root=root,
            expected=position.topic_id,
            found=state.topic_id,
        )
    arguments.partitions(state, root, position.partition)
