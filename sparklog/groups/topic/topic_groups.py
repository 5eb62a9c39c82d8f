"""Groups of Kafka's clients, whose home is a topic of the root: `sparklog serve` keeps their positions there."""

from __future__ import annotations

import datetime
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups.rows import Group, Position
from sparklog.groups.snapshots import GroupSnapshot
from sparklog.groups.summaries import GroupSummaries
from sparklog.groups.topic import records as group_records
from sparklog.groups.topic.records import Classic, Client, CommittedOffset, RecordKey
from sparklog.groups.topics import Topics
from sparklog.ondisk.reader import PartitionReader
from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.topic_logs import TopicLogs

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

TOPIC = "__consumer_offsets"
"""The topic whose records are the groups."""
_BYTES_MAX = 256 << 20
"""The most bytes of keys and values that are held of a partition."""
_LISTED = 20


class TopicGroup(Group):
    """A group whose home is the topic. Its members are clients of a server."""

    home = "topic"

    def __init__(self, name: str, generation: int, positions: list[Position], clients: list[Client]) -> None:
        super().__init__(name, positions)
        self.generation = generation
        self.clients = clients

    @property
    def exists(self) -> bool:
        """Whether there is such a group."""
        return True

    def is_running(self, now: datetime.datetime) -> bool:
        """Whether the group has members, as far as the server has written."""
        return bool(self.clients)


class TopicGroups:
    """The groups of Kafka's clients that `sparklog serve` coordinates. It only reads: Kafka's tools and clients move such groups.

    The positions are the committed ones, also while no server runs. Each call reads the records that came since the last one. A record
    that no coordinator can have written is left out, and counted in `unreadable`. Threads may share it.

    Example:
        >>> from sparklog.groups import TopicGroups
        >>> shop = TopicGroups("shop")
        >>> shop.groups(), shop.group("mail").lag()["records"].to_pylist()
        (['mail'], [2, 7])
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | Root | TopicLogs,
        *,
        filesystem: FileSystem | None = None,
    ) -> None:
        """Opens a root, which need not have groups.

        Args:
            root: The root, as for `Log`.
            filesystem: As for `Log`.

        Raises:
            CallError: If the root does not exist.

        Example:
            >>> from sparklog.groups import TopicGroups
            >>> TopicGroups("events").groups()
            []
        """
        self._topics = Topics(root, None, filesystem)
        self._lock = threading.Lock()
        self._topic_id: str | None = None
        self._partitions: list[_Partition] = []

    @property
    def unreadable(self) -> int:
        """How many records the last call left out, since no coordinator can have written them."""
        return sum(each.unreadable for each in self._partitions)

    def exists(self) -> bool:
        """Returns whether the root has the topic of groups; a server makes it for the first group.

        Returns:
            True if it has the topic.

        Raises:
            DataError: If the topic is damaged.

        Example:
            >>> shop.exists()
            True
        """
        return self._topics.logs.find(TOPIC) is not None

    def groups(self) -> list[str]:
        """Lists the groups.

        Returns:
            The names, sorted; empty if the root has no topic of groups.

        Raises:
            DataError: If the topic is damaged; GROUPS_TOO_LARGE.

        Example:
            >>> shop.groups()
            ['mail']
        """
        return sorted({of.group for of, _ in self._records() if of.type in (*group_records.OFFSET_TYPES, *_GROUP_TYPES)})

    def group(self, group: str) -> GroupSnapshot:
        """Returns a group at one moment: its positions, lag and members.

        Args:
            group: The name of the group.

        Returns:
            The group. In a notebook it shows its lag.

        Raises:
            CallError: TOPIC_GROUP_NOT_FOUND.
            DataError: As `groups`.

        Example:
            >>> mail = shop.group("mail")
            >>> mail.home, [each.offset for each in mail.positions()], mail.summary.running
            ('topic', [8, 3], False)
        """
        return self.snapshots([arguments.text("group", group)])[0]

    def snapshots(self, groups: Sequence[str] | None = None) -> list[GroupSnapshot]:
        """Returns groups at one moment each, as `group` does.

        Args:
            groups: The names of the groups; by default all, sorted by name.

        Returns:
            The groups.

        Raises:
            CallError: TOPIC_GROUP_NOT_FOUND.
            DataError: As `groups`.

        Example:
            >>> [each.summary.lag for each in shop.snapshots()]
            [9]
        """
        found: dict[str, list[tuple[RecordKey, Any]]] = {}
        for of, value in self._records():
            found.setdefault(of.group, []).append((of, value))
        there = {name for name, records in found.items() if any(of.type in (0, 1, *_GROUP_TYPES) for of, _ in records)}
        names = sorted(there) if groups is None else arguments.texts("groups", groups)
        for name in names:
            if name not in there:
                listed = sorted(there)[:_LISTED]
                more = f" and {len(there) - _LISTED} more" if len(there) > _LISTED else ""
                known = ", ".join(listed) + more if listed else "none"
                raise SparklogError("TOPIC_GROUP_NOT_FOUND", group=name, topic=TOPIC, root=self._topics.root, groups=known)
        topics = self._topics.pinned(of.topic for name in names for of, _ in found[name] if of.topic)
        return [GroupSnapshot(_group(name, found[name], topics), topics, None) for name in names]

    def summaries(self) -> GroupSummaries:
        """Describes all groups in short: topics, lag, last commit.

        Returns:
            The summaries. A group whose lag is not known has an `error`.

        Raises:
            DataError: As `groups`.

        Example:
            >>> [(each.group, each.home, each.lag) for each in shop.summaries()]
            [('mail', 'topic', 9)]
        """
        return GroupSummaries([each.summary for each in self.snapshots()], f"topic {TOPIC} of {self._topics.root}")

    def _records(self) -> Iterator[tuple[RecordKey, Any]]:
        """The newest record of each key, from the newest state of the topic."""
        with self._lock:
            state = self._topics.logs.find(TOPIC)
            if state is None:
                self._topic_id, self._partitions = None, []
            elif (state.topic_id, state.partitions) != (self._topic_id, len(self._partitions)):
                self._topic_id = state.topic_id
                self._partitions = [_Partition(number) for number in range(state.partitions)]
            if state is not None:
                log = self._topics.logs.log(TOPIC)
                for _ in log.root.store.at_once(partial(_Partition.read_on, log=log, state=state), self._partitions):
                    pass
            found = [each for partition in self._partitions for each in partition.newest.items()]
        return iter(found)


_GROUP_TYPES = (group_records.CLASSIC, group_records.EPOCH)


class _Partition:
    """The newest record of each key of a partition, up to an offset."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._forget()

    def _forget(self) -> None:
        self._end = 0
        self._bytes: dict[RecordKey, int] = {}
        self.newest: dict[RecordKey, Any] = {}
        self.unreadable = 0

    def read_on(self, log: TopicLog, state: State) -> None:
        """Reads the records that came since the last call."""
        start, end = state.starts[self._number], state.ends[self._number]
        if not start <= self._end <= end:
            self._forget()  # the records before the log start offset may have been compacted without a trace
        reader = PartitionReader(log, state, self._number)
        held = sum(self._bytes.values())
        for batch in reader.records(max(start, self._end), end, columns=["key", "value"]):
            for of, value in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                held += self._take(of, value)
            if held > _BYTES_MAX:
                raise SparklogError("GROUPS_TOO_LARGE", topic=TOPIC, root=log.root, partition=self._number, most=_BYTES_MAX)
        self._end = end

    def _take(self, key: bytes | None, value: bytes | None) -> int:
        """Keeps a record, and returns by how many bytes more are held."""
        try:
            of = group_records.key(key or b"")
            if of is not None and of.topic:
                arguments.topic(of.topic)
            made = None if of is None or value is None else group_records.value(of, value)
        except (ValueError, SparklogError):
            self.unreadable += 1
            return 0
        if of is None:
            return 0
        before = self._bytes.pop(of, 0)
        self.newest.pop(of, None)
        if made is None or key is None or value is None:
            return -before
        self.newest[of] = made
        self._bytes[of] = len(key) + len(value)
        return self._bytes[of] - before


def _group(name: str, records: list[tuple[RecordKey, Any]], topics: Topics) -> TopicGroup:
    """A group of its newest records."""
    generation, positions, clients = 0, [], []
    members: dict[str, Client] = {}
    owned: dict[str, dict[str, list[int]]] = {}
    committed: list[tuple[RecordKey, CommittedOffset]] = []
    for of, value in records:
        if isinstance(value, CommittedOffset):
            committed.append((of, value))
        elif isinstance(value, Classic):
            generation, clients = value.generation, value.members
        elif isinstance(value, Client):
            members[of.member] = value
        elif isinstance(value, dict):
            owned[of.member] = value
        else:
            generation = value
    for of, value in committed:
        at = datetime.datetime.fromtimestamp(0, datetime.timezone.utc)
        with suppress(OverflowError, ValueError):
            at += datetime.timedelta(milliseconds=value.at)
        id = value.topic_id or _id(topics, of.topic)
        positions.append(Position(name, generation, of.topic, id, of.partition, value.offset, at, metadata=value.metadata or None))
    names = {id: topic for topic in {name for each in members.values() for name in each.topics} if (id := _id(topics, topic))}
    names |= {each.topic_id: each.topic for each in positions if each.topic_id}
    for id, client in sorted(members.items()):
        assignment = {names.get(topic, topic): partitions for topic, partitions in owned.get(id, {}).items()}
        clients.append(client._replace(assignment=assignment))
    return TopicGroup(name, generation, positions, sorted(clients, key=lambda each: each.id))


def _id(topics: Topics, topic: str) -> str:
    """The id of a topic; empty if it does not exist, or its name is not legal."""
    try:
        state = topics.find_state(topic)
    except SparklogError:
        return ""
    return "" if state is None else state.topic_id
