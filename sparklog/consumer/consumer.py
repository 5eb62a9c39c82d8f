"""The consumer: its calls, and the positions of its partitions."""

from __future__ import annotations

import logging
import os
import re
import weakref
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa

from sparklog import arguments
from sparklog.consumer.core import Core
from sparklog.consumer.groups import Alone, ByHand, ConsumerGroup, Owned, Shared, member_settings
from sparklog.consumer.named import EXCLUSIVE, compiled, explained, named_topics, strategy, without
from sparklog.consumer.records import (
    ConsumerRecord,
    Deserializer,
    Fetched,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
    partition_of,
    partitions_of,
    records_of,
    together,
)
from sparklog.consumer.requests import Committed
from sparklog.consumer.settings import Settings
from sparklog.consumer.shares import AssignedPartition
from sparklog.consumer.shell import Shell
from sparklog.errors import SparklogError
from sparklog.groups.commits import OffsetCommit
from sparklog.ondisk.watch import Pace

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from sparklog.groups import OffsetTable
    from sparklog.ondisk.topic_logs import TopicLogs

_log = logging.getLogger(__name__)
_RESETS = ("earliest", "latest", "none")
_NO_LIMIT = 1 << 62
Rebalanced = Callable[[Any, list[TopicPartition]], object]
"""Is called with a consumer, and partitions that came to it or go."""


class Consumer:
    """Reads the records of topics, and then waits for new records. Names and defaults come from kafka-python. `heartbeat_interval_ms`,
    `metadata_max_age_ms` and `partition_assignment_strategy` have other defaults.

    It needs neither a JVM nor Spark, and its memory does not grow with the number of records. It reads all partitions of its topics. To
    share them with other processes, give each the same `group_id` and `table`; or `assign` partitions to each.

    It is not thread-safe: use it in one thread at a time. Only `wakeup` may be called from others, and from signal handlers.

    Example:
        >>> with sparklog.Consumer("events", "orders", auto_offset_reset="earliest", consumer_timeout_ms=200) as consumer:
        ...     print(sum(1 for record in consumer))
        20
    """

    __module__ = "sparklog"

    @explained
    def __init__(
        self,
        root: str | os.PathLike[str],
        *names: str,
        topics: str | Collection[str] = (),
        group_id: str | None = None,
        table: str | os.PathLike[str] | OffsetTable | None = None,
        dual_table: str | os.PathLike[str] | OffsetTable | None = None,
        auto_offset_reset: Literal["earliest", "latest", "none"] = "latest",
        enable_auto_commit: bool = True,
        auto_commit_interval_ms: int = 5000,
        max_poll_records: int = 500,
        fetch_max_bytes: int = 50 << 20,
        max_partition_fetch_bytes: int = 1 << 20,
        consumer_timeout_ms: float = float("inf"),
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        poll_interval_ms: int = 100,
        idle_look_ms: int | None = None,
        metadata_max_age_ms: int = 5000,
        partition_assignment_strategy: str | Sequence[str] = "sticky",
        weight: str = "count",
        session_timeout_ms: int = 45_000,
        heartbeat_interval_ms: int | None = None,
        max_poll_interval_ms: int = 300_000,
        group_instance_id: str | None = None,
        capacity: int = 1,
        client_rack: str | None = None,
        on_assign: Rebalanced | None = None,
        on_revoke: Rebalanced | None = None,
        on_lost: Rebalanced | None = None,
        filesystem: FileSystem | None = None,
    ) -> None:
        """Subscribes to topics, if any are named: `Consumer(root, "a", "b")`, or `Consumer(root, topics=["a", "b"])`.

        Args:
            root: The root, as in `Log`.
            *names: The topics to read.
            topics: The topics to read, in place of `names`.
            group_id: The name of the group whose positions it keeps. The consumers of a group share the partitions of their topics.
            table: The offset table that has the positions: a path, or an `OffsetTable`. A group needs it.
            dual_table: A second offset table, which gets each commit after `table` has it, while a group moves from one to the other, as
                with Kafka's `dual.commit.enabled`. A commit that fails there is logged, and a later commit makes up for it.
            auto_offset_reset: Where a partition begins without a position of the group, and where it goes on if its position is not in the
                log any more: `latest` (default), `earliest`, or `none`, which raises an error. `latest` begins with the first commit after
                this call, so it reads a partition that is added later from its start.
            enable_auto_commit: Whether `poll`, iteration and `close` commit the records that earlier calls returned; default True.
            auto_commit_interval_ms: Milliseconds between such commits, 0 or more; default 5,000.
            max_poll_records: The most records that `poll` returns, 1 or more; default 500.
            fetch_max_bytes: The bytes that are read at once, 1 or more; default 50 MiB. A larger batch is read too. In a store over a
                network, at most so many bytes of the next records are requested before they are needed.
            max_partition_fetch_bytes: The same for one partition; default 1 MiB. A partition gives some 1 GiB of Arrow at a time at most.
            consumer_timeout_ms: Milliseconds without a record after which iteration ends; by default never.
            key_deserializer: A function from the bytes of a key to the key of `poll` and of iteration.
            value_deserializer: The same for the value.
            poll_interval_ms: Milliseconds between looks for new commits, 1 or more; default 100. While nothing is committed to a topic, the
                time between two looks at the topic doubles, up to `idle_look_ms`.
            idle_look_ms: The most milliseconds between two looks at a topic while the consumer waits, 0 or more. It is the latency of
                a record that comes after a long time; 0 looks in every call of `poll`. By default 0 on a disk, and 1,000 in a store over a
                network, where each look is a request that costs money.
            metadata_max_age_ms: Milliseconds between looks for new topics of a pattern, 0 or more; default 5,000.
            partition_assignment_strategy: How the members of the group share the partitions, the same for all: `sticky` (default), `range`
                or `roundrobin`. Partitions come and go in `poll` and in iteration. `exclusive`: the consumer has the group alone. It takes
                the group's next generation, which ends each other consumer of the group (GenerationFencedError).
            weight: The measure by which `sticky` evens out the members, the same for all: `count` of partitions (default), `lag`, or `rate`
                in the last hour; the latter two in thousands of records. Partitions move if a member has more than 1.25 times the mean, at
                most once a minute.
            session_timeout_ms: Milliseconds without a heartbeat after which a member loses its partitions, at least three times
                `heartbeat_interval_ms`; default 45,000.
            heartbeat_interval_ms: Milliseconds between heartbeats, 1 or more. By default 5,000, and 15,000 if the table is in a bucket,
                where each heartbeat costs money, or a third of a shorter session.
            max_poll_interval_ms: Milliseconds without a call of `poll` after which a member loses its partitions, 1 or more; default
                300,000.
            group_instance_id: The name of a static member, not empty. A consumer that joins under it takes the place of the one before.
            capacity: The number of members as which the assignor counts this one, 1 or more; default 1.
            client_rack: The rack of the member, for the assignor `range`.
            on_assign: A function that is called as `on_assign(consumer, partitions)` in `poll`, after partitions came.
            on_revoke: The same, before partitions go to another member.
            on_lost: The same, after others took partitions because this member expired or the group was reset; by default `on_revoke` is
                called.
            filesystem: The file system of the root, as in `Log`.

        Raises:
            CallError: TOPIC_NOT_FOUND or ROOT_NOT_FOUND; GROUP_REQUIRED if one of group and table is missing; OPTION_VALUE;
                OPTION_CONFLICT.

        Example:
            >>> given = {"group_id": "mail", "table": "offsets", "auto_offset_reset": "earliest", "consumer_timeout_ms": 200}
            >>> with sparklog.Consumer("events", "orders", **given) as consumer:
            ...     read = [record.offset for record in consumer if record.partition == 0]
            >>> read, table.positions("mail")[0].offset
            ([0, 1, 2, 3, 4], 5)
        """
        group, assignor = group_id, strategy(partition_assignment_strategy)
        logs = arguments.topic_logs(root, filesystem)
        self._root, self.root = logs.root, str(logs.root)
        list_again = arguments.count("metadata_max_age_ms", metadata_max_age_ms) / 1000
        arguments.choice("auto_offset_reset", auto_offset_reset, _RESETS)
        if names and topics:
            raise SparklogError("OPTION_CONFLICT", options="topics by position and topics=", reason="give one of them")
        wanted = named_topics(names, topics)
        if dual_table is not None and table is None:
            raise SparklogError("GROUP_REQUIRED", call="Consumer(dual_table=…)", missing="table")
        if group_instance_id is not None and group is None:
            raise SparklogError("GROUP_REQUIRED", call="Consumer(group_instance_id=…)", missing="group_id")
        if (group is None) != (table is None):
            raise SparklogError("GROUP_REQUIRED", call="Consumer()", missing="group_id" if group is None else "table")
        self._max_poll_records = arguments.positive("max_poll_records", max_poll_records)
        self._fetch_bytes = arguments.positive("fetch_max_bytes", fetch_max_bytes)
        self._timeout_ms = arguments.duration("consumer_timeout_ms", consumer_timeout_ms)
        enable_auto_commit = arguments.boolean("enable_auto_commit", enable_auto_commit)
        self._deserializers = (
            arguments.function("key_deserializer", key_deserializer),
            arguments.function("value_deserializer", value_deserializer),
        )
        for name, called in (("on_assign", on_assign), ("on_revoke", on_revoke), ("on_lost", on_lost)):
            arguments.function(name, called)
        self._iterator: Generator[ConsumerRecord, None, None] | None = None
        interval = arguments.positive("poll_interval_ms", poll_interval_ms) / 1000
        idle = None if idle_look_ms is None else arguments.count("idle_look_ms", idle_look_ms) / 1000
        pace = Pace.of(logs.root.store, interval, idle)
        commit_interval = arguments.count("auto_commit_interval_ms", auto_commit_interval_ms) / 1000
        opened = None if table is None else self._opened(table, logs)
        if opened is not None:
            from sparklog.groups.rows import require_group

            require_group(group, "group_id")
            logs = opened.topics.logs
        self._pid = os.getpid()
        member = None
        if assignor != EXCLUSIVE and opened is not None and group is not None:
            times = (session_timeout_ms, heartbeat_interval_ms, max_poll_interval_ms)
            member = member_settings(opened.path, assignor, weight, times, group_instance_id, capacity, client_rack)
        settings = Settings(
            self.root,
            group,
            None if opened is None else opened.path,
            shares=member is not None,
            reset=auto_offset_reset,
            interval_s=interval,
            part_bytes=arguments.positive("max_partition_fetch_bytes", max_partition_fetch_bytes),
            list_again_s=list_again,
            commit_s=commit_interval if enable_auto_commit else None,
            far=logs.root.store.is_far,
            fetch_bytes=self._fetch_bytes,
        )
        self._core = Core(settings)
        callbacks = {"assigned": on_assign, "revoked": on_revoke, "lost": on_lost or on_revoke}
        dual = None if dual_table is None else self._opened(dual_table, logs)
        self._membership: Membership | None = None
        self._shared: Shared | None = None
        self._by_hand: ByHand | None = None
        in_group: ConsumerGroup = Alone()
        if member is not None and opened is not None and group is not None:
            from sparklog.groups.member.membership import Membership
            from sparklog.groups.table.assigned import Assigned

            self._membership = Membership(opened, group, member, self._core.subscription.beginning)
            self._membership.belongs_to(self)
            in_group = self._shared = Shared(self._membership)
            self._by_hand = ByHand(Assigned(opened, group), self._shared)
        self._shell = Shell(self._core, logs, in_group, _telling(weakref.ref(self), callbacks), dual, self._fetch_bytes, pace)
        if wanted:
            self._shell.run(self._core.subscribe(wanted, None))
        if opened is not None and group is not None and member is None:
            from sparklog.groups.table.owner import Owner

            # After all checks, since it ends another consumer of the group.
            in_group = Owned(Owner(opened, group))
            self._shell.group = in_group

    # ---- any topic and partition, whether it is read or not

    def topics(self) -> set[str]:
        """Lists the topics of the root.

        Returns:
            The names.

        Raises:
            RetryError: IO if the root cannot be read.

        Example:
            >>> consumer.topics()
            {'orders'}
        """
        return set(self._root.topics())

    def partitions_for_topic(self, topic: str) -> set[int]:
        """Lists the partitions of a topic.

        Args:
            topic: The name of the topic.

        Returns:
            The numbers of its partitions.

        Raises:
            CallError: TOPIC_NOT_FOUND.

        Example:
            >>> consumer.partitions_for_topic("orders")
            {0, 1}
        """
        return set(range(self._shell.topic(arguments.topic(topic)).state.partitions))

    def fetch(self, partition: TopicPartition, offset: int, max_bytes: int = 1 << 20) -> Fetched:
        """Reads any partition from an offset on, without a subscription. The positions of the consumer stay as they are.

        Args:
            partition: The partition.
            offset: The first offset, from the log start offset to the end offset.
            max_bytes: The stored bytes of whole batches to return, 1 or more; default 1 MiB. At least one batch is returned, and at most
                some 1 GiB of Arrow.

        Returns:
            The records, the offset to fetch next, and both ends of the partition. At the end offset the batch is empty.

        Raises:
            CallError: OFFSETS_OUT_OF_RANGE, TOPIC_NOT_FOUND, PARTITION_NOT_FOUND, or CONSUMER_CLOSED.
            DataError: BATCH_CORRUPT or SEGMENT_CORRUPT if a record cannot be read.

        Example:
            >>> part = consumer.fetch(TopicPartition("orders", 1), 10)
            >>> part.batch.num_rows, part.next_offset, part.end_offset
            (5, 15, 15)
        """
        self._require_open("fetch")
        bytes_max = arguments.positive("max_bytes", max_bytes)
        offset = arguments.count("offset", offset)
        place = partition_of(partition)
        reads = self._shell.topic(place.topic)
        while True:
            (number,) = arguments.partitions(reads.state, self._root, place.partition)
            arguments.offsets(reads.state, self._root, "offset", {number: offset}, [number], reads.state.starts)
            start, end = reads.state.starts[number], reads.state.ends[number]
            if offset == end:
                return Fetched(together([]), offset, start, end)
            part = reads.part(number, offset, bytes_max, expected=False)
            if part.offset > offset:
                return Fetched(together(part.batches), part.offset, start, end)

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns the log start offsets of any partitions.

        Args:
            partitions: The partitions.

        Returns:
            The offsets by partition.

        Raises:
            CallError: TOPIC_NOT_FOUND, PARTITION_NOT_FOUND, or CONSUMER_CLOSED.

        Example:
            >>> consumer.beginning_offsets([TopicPartition("orders", 0)])
            {TopicPartition(topic='orders', partition=0): 0}
        """
        return {each: self._shell.topic(each.topic).state.starts[each.partition] for each in self._existing(partitions)}

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns the end offsets of any partitions: the offsets that their next records will get.

        Args:
            partitions: The partitions.

        Returns:
            The offsets by partition.

        Raises:
            CallError: TOPIC_NOT_FOUND, PARTITION_NOT_FOUND, or CONSUMER_CLOSED.

        Example:
            >>> consumer.end_offsets([TopicPartition("orders", 0)])
            {TopicPartition(topic='orders', partition=0): 5}
        """
        return {each: self._shell.topic(each.topic).state.ends[each.partition] for each in self._existing(partitions)}

    def offsets_for_times(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Finds the first records of any partitions at or after times.

        Args:
            timestamps: By partition, a time in milliseconds since 1970-01-01 UTC, 0 or more.

        Returns:
            By partition, the offset and the time of the record; None if no record is at or after the time.

        Raises:
            CallError: TOPIC_NOT_FOUND, PARTITION_NOT_FOUND, OPTION_VALUE, or CONSUMER_CLOSED.

        Example:
            >>> consumer.offsets_for_times({TopicPartition("orders", 0): 1_700_000_010_000})
            {TopicPartition(topic='orders', partition=0): OffsetAndTimestamp(offset=3, timestamp=1700000013000)}
        """
        found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        for given, time_ms in arguments.mapping("timestamps", timestamps):
            (each,) = self._existing([given])
            at = self._shell.topic(each.topic).offset_at(
                each.partition, arguments.millis(arguments.count("timestamp", time_ms), "timestamp")
            )
            found[each] = OffsetAndTimestamp(*at) if at else None
        return found

    # ---- topics and partitions

    def subscribe(self, topics: Collection[str] = (), pattern: str | re.Pattern[str] | None = None) -> None:
        """Reads all partitions of topics, in place of the partitions that it read before.

        Args:
            topics: The names of the topics; or give a pattern.
            pattern: A regular expression of Python: all topics whose names begin with a match, also those that are created later.

        Raises:
            CallError: TOPIC_NOT_FOUND; OPTION_VALUE if both are given, or neither is; OPTION_CONFLICT after `assign`; CONSUMER_CLOSED.

        Example:
            >>> consumer.subscribe(pattern="ord.*")
            >>> consumer.subscription()
            {'orders'}
        """
        self._require_open("subscribe")
        if isinstance(topics, str):
            raise TypeError(f"`topics` is {topics!r}, of type str; it must be a list of names")
        topics = arguments.texts("topics", topics)
        if bool(topics) == (pattern is not None):
            raise SparklogError("OPTION_VALUE", option="topics", value=list(topics), reason="give either topics or a pattern")
        if self._core.subscription.partitions:
            raise SparklogError("OPTION_CONFLICT", options="subscribe and assign", reason="call unsubscribe between them")
        wanted = None if pattern is None else compiled(pattern)
        self._shell.group = self._shared or self._shell.group
        self._shell.run(self._core.subscribe(topics, wanted))

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Reads these partitions alone; unsubscribes if no partition is given.

        The consumer does not share its group then. It commits beside other consumers that were assigned partitions, as in Kafka. A group
        with members refuses its commits (GROUP_HAS_MEMBERS).

        Args:
            partitions: The partitions.

        Raises:
            CallError: TOPIC_NOT_FOUND, PARTITION_NOT_FOUND, or CONSUMER_CLOSED; OPTION_CONFLICT after `subscribe`.

        Example:
            >>> consumer.unsubscribe()
            >>> consumer.assign([TopicPartition("orders", 1)])
            >>> consumer.assignment()
            {TopicPartition(topic='orders', partition=1)}
        """
        self._require_open("assign")
        if not partitions:
            self.unsubscribe()
            return
        if self._core.subscription.is_by_topic:
            raise SparklogError("OPTION_CONFLICT", options="subscribe and assign", reason="call unsubscribe between them")
        self._shell.group = self._by_hand or self._shell.group
        self._shell.run(self._core.assign(partitions_of(partitions)))

    def unsubscribe(self) -> None:
        """Gives up all topics and partitions. `poll` is refused until the next `subscribe` or `assign`.

        Raises:
            CallError: CONSUMER_CLOSED.

        Example:
            >>> consumer.unsubscribe()
            >>> consumer.assignment()
            set()
        """
        self._require_open("unsubscribe")
        self._shell.run(self._core.unsubscribe())

    def subscription(self) -> set[str] | None:
        """Returns the topics that it is subscribed to.

        Returns:
            The names; None if partitions are assigned, or nothing is.

        Example:
            >>> consumer.subscription()
            {'orders'}
        """
        return self._core.subscription.topics

    def assignment(self) -> set[TopicPartition]:
        """Returns the partitions that it reads.

        Returns:
            The partitions.

        Example:
            >>> sorted(each.partition for each in consumer.assignment())
            [0, 1]
        """
        return set(self._core.shares.assigned())

    # ---- records

    def poll(self, timeout_ms: float = 0, max_records: int | None = None) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Returns the next records, as soon as there are any.

        Args:
            timeout_ms: Milliseconds to wait for records, 0 or more; default 0.
            max_records: The most records to return, 1 or more; by default `max_poll_records`.

        Returns:
            The records by partition; empty if none came within the timeout.

        Raises:
            CallError: NOT_SUBSCRIBED; TOPIC_NOT_FOUND if the topic was deleted, until it exists again or another subscription is made;
                CONSUMER_CLOSED; CONSUMER_IN_CALLBACK.
            DataError: BATCH_CORRUPT or SEGMENT_CORRUPT if a file is damaged; RECORD_DESERIALIZATION.
            GenerationFencedError: If another owner took the group, and the call had to commit.
            RetryError: MEMBER_TOPIC_GONE, once, if a topic of a member was deleted. The other topics go on.

        Example:
            >>> records = consumer.poll(timeout_ms=1_000)
            >>> [(partition.partition, len(its)) for partition, its in sorted(records.items())]
            [(0, 2), (1, 5)]
        """
        limit = self._max_poll_records if max_records is None else arguments.positive("max_records", max_records)
        self._require_to_read("poll", timeout_ms)
        if not timeout_ms and self._shell.finds_nothing():
            return {}
        self._core.shares.last = []
        try:
            found = self._shell.run(self._core.poll(timeout_ms / 1000, limit, self._fetch_bytes, self._decoded))
            self._measure()
            return found
        except BaseException:
            self._core.shares.take_back()
            raise

    def poll_batches(
        self, timeout_ms: float = 0, max_records: int | None = None, max_bytes: int | None = None
    ) -> dict[TopicPartition, pa.RecordBatch]:
        """Returns the next records as Arrow record batches, with the columns of `Topic.read`. It is several times as fast as `poll`.

        Args:
            timeout_ms: Milliseconds to wait for records, 0 or more; default 0.
            max_records: The most records to return, 1 or more; by default only bytes limit them.
            max_bytes: The stored bytes to read at once, 1 or more; by default `fetch_max_bytes`.

        Returns:
            The batches by partition; empty if no record came within the timeout.

        Raises:
            CallError: As `poll`.
            DataError: BATCH_CORRUPT or SEGMENT_CORRUPT if a file is damaged.
            GenerationFencedError: As `poll`.
            RetryError: As `poll`.

        Example:
            >>> batches = consumer.poll_batches(timeout_ms=1_000)
            >>> sum(batch.num_rows for batch in batches.values())
            7
        """
        limit = _NO_LIMIT if max_records is None else arguments.positive("max_records", max_records)
        bytes_max = self._fetch_bytes if max_bytes is None else arguments.positive("max_bytes", max_bytes)
        self._require_to_read("poll_batches", timeout_ms)
        if not timeout_ms and self._shell.finds_nothing():
            return {}
        self._core.shares.last = []
        try:
            found = self._shell.run(self._core.poll_batches(timeout_ms / 1000, limit, bytes_max))
            self._measure()
            return found
        except BaseException:
            self._core.shares.take_back()
            raise

    def __iter__(self) -> Consumer:
        return self

    def __next__(self) -> ConsumerRecord:
        """The next record. It waits for one, and ends after `consumer_timeout_ms`, or when `wakeup` or `close` is called."""
        iterator, self._iterator = self._iterator or self._records(), None  # an error, the end, and a callback within it find no iterator
        self._core.shares.last = []
        try:
            record = next(iterator)
            self._iterator = iterator
            return record
        except BaseException:
            self._iterator = None
            self._core.shares.take_back()
            raise

    def wakeup(self) -> None:
        """Ends a wait within a poll interval: `poll` returns, empty, and iteration ends. If no call waits, the next call does not wait.

        Example:
            >>> consumer.seek_to_end()
            >>> consumer.wakeup()
            >>> consumer.poll(timeout_ms=60_000)
            {}
        """
        self._core.woken = True

    def pause(self, *partitions: TopicPartition) -> None:
        """Returns no records of partitions until `resume`.

        Args:
            *partitions: The partitions.

        Raises:
            CallError: PARTITION_NOT_ASSIGNED or CONSUMER_CLOSED.

        Example:
            >>> consumer.pause(TopicPartition("orders", 1))
            >>> [each.partition for each in consumer.poll(timeout_ms=1_000)]
            [0]
        """
        self._require_open("pause")
        self._core.shares.pause(map(partition_of, partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """Takes back `pause`.

        Args:
            *partitions: The partitions.

        Raises:
            CallError: PARTITION_NOT_ASSIGNED or CONSUMER_CLOSED.

        Example:
            >>> consumer.pause(TopicPartition("orders", 1))
            >>> consumer.resume(TopicPartition("orders", 1))
            >>> consumer.paused()
            set()
        """
        self._require_open("resume")
        self._core.shares.resume(map(partition_of, partitions))

    def paused(self) -> set[TopicPartition]:
        """Returns the partitions that are paused.

        Returns:
            The partitions.

        Example:
            >>> consumer.pause(TopicPartition("orders", 1))
            >>> consumer.paused()
            {TopicPartition(topic='orders', partition=1)}
        """
        return {partition for partition, each in self._core.shares.assigned().items() if each.paused}

    # ---- positions

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continues at an offset of a partition. If the offset is not in the log, `auto_offset_reset` applies to the next poll.

        Args:
            partition: The partition, which the consumer reads.
            offset: The offset of the next record, 0 or more.

        Raises:
            CallError: PARTITION_NOT_ASSIGNED, OPTION_VALUE, or CONSUMER_CLOSED.

        Example:
            >>> consumer.seek(TopicPartition("orders", 0), 1)
            >>> consumer.position(TopicPartition("orders", 0))
            1
        """
        self._core.shares.seek(self._share(partition), arguments.count("offset", offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continues at the log start offset of partitions.

        Args:
            *partitions: The partitions; by default all that it reads.

        Raises:
            CallError: PARTITION_NOT_ASSIGNED, NOT_SUBSCRIBED, or CONSUMER_CLOSED.

        Example:
            >>> consumer.seek_to_beginning()
            >>> consumer.position(TopicPartition("orders", 1))
            0
        """
        for each in self._in_newest("seek_to_beginning", partitions):
            self._core.shares.seek(each, self._core.shares.start(each))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continues at the end offset of partitions.

        Args:
            *partitions: The partitions; by default all that it reads.

        Raises:
            CallError: PARTITION_NOT_ASSIGNED, NOT_SUBSCRIBED, or CONSUMER_CLOSED.

        Example:
            >>> consumer.seek_to_end(TopicPartition("orders", 1))
            >>> consumer.position(TopicPartition("orders", 1))
            15
        """
        for each in self._in_newest("seek_to_end", partitions):
            self._core.shares.seek(each, self._core.shares.end(each))

    def position(self, partition: TopicPartition) -> int:
        """Returns the offset of the record that comes next in a partition.

        Args:
            partition: The partition, which the consumer reads.

        Returns:
            The offset.

        Raises:
            CallError: PARTITION_NOT_ASSIGNED; OFFSET_NOT_COMMITTED if the group has no position and `auto_offset_reset` is `none`.

        Example:
            >>> consumer.position(TopicPartition("orders", 0))
            3
        """
        return self._shell.run(self._core.shares.position(self._share(partition).partition))

    def waiting(self) -> dict[TopicPartition, dict[TopicPartition, int]]:
        """Returns the partitions that wait for others, so that the records of each key come in order over a change of partitions.

        Returns:
            By partition that waits, the partitions from which its keys came, each with the offset up to which it must be consumed first: by
            this consumer, or by its group where this consumer does not read it. A partition that is paused is waited for, too.

        Raises:
            CallError: CONSUMER_CLOSED.

        Example:
            >>> consumer.waiting()
            {}
        """
        self._require_open("waiting")
        return self._shell.run(self._core.waiting())

    def highwater(self, partition: TopicPartition) -> int:
        """Returns the end offset of a partition when the consumer last looked.

        Args:
            partition: The partition, which the consumer reads.

        Returns:
            The offset.

        Raises:
            CallError: PARTITION_NOT_ASSIGNED or CONSUMER_CLOSED.

        Example:
            >>> consumer.highwater(TopicPartition("orders", 0))
            5
        """
        each = self._share(partition)
        state = self._core.subscription.states[each.partition.topic]
        arguments.partitions(state, self._root, each.number)
        return state.ends[each.number]

    # ---- the group

    def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        """Commits positions: the group continues there.

        Args:
            offsets: By partition, the offset of the next record, or an `OffsetAndMetadata`; by default all positions.

        Raises:
            CallError: GROUP_REQUIRED without a group; OFFSETS_OUT_OF_RANGE; TOPIC_NOT_FOUND; PARTITION_NOT_FOUND.
            GenerationFencedError: If another consumer, a tracker or a reset took the group. Nothing was moved.
            RetryError: TOPIC_RECREATED if another topic has the name now.

        Example:
            >>> consumer.commit({TopicPartition("orders", 0): 4})
            >>> consumer.committed(TopicPartition("orders", 0))
            4
        """
        self._require_group("commit")
        self._shell.run(self._core.commits.commit(self._to_commit(offsets)))

    def commit_async(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None, callback: Committed | None = None
    ) -> Future[None]:
        """Begins a commit as `commit` makes it, and does not wait. Commits are made in the order of the calls, and none is repeated.

        Args:
            offsets: As in `commit`.
            callback: A function that is called as `callback(offsets, error)` by a later call of `poll`, iteration, `commit` or `close`. The
                error is None after success.

        Returns:
            A future that ends with the commit.

        Raises:
            CallError: GROUP_REQUIRED without a group; OFFSETS_OUT_OF_RANGE; TOPIC_NOT_FOUND; PARTITION_NOT_FOUND.

        Example:
            >>> consumer.commit_async({TopicPartition("orders", 0): 4}).result()
            >>> consumer.committed(TopicPartition("orders", 0))
            4
        """
        self._require_group("commit_async")
        arguments.function("callback", callback)
        return self._shell.run(self._core.commits.commit_async(self._to_commit(offsets), callback))

    @overload
    def committed(self, partition: TopicPartition, metadata: Literal[False] = ...) -> int | None: ...

    @overload
    def committed(self, partition: TopicPartition, metadata: bool) -> int | OffsetAndMetadata | None: ...

    def committed(self, partition: TopicPartition, metadata: bool = False) -> int | OffsetAndMetadata | None:
        """Returns the offset that the group has committed in a partition.

        Args:
            partition: The partition.
            metadata: Whether the text that was committed with the offset is returned too; default False.

        Returns:
            The offset, or an `OffsetAndMetadata` with `metadata`; None if the group has committed nothing in the partition.

        Raises:
            CallError: GROUP_REQUIRED, TOPIC_NOT_FOUND or PARTITION_NOT_FOUND.

        Example:
            >>> consumer.committed(TopicPartition("orders", 0))
            3
        """
        metadata = arguments.boolean("metadata", metadata)
        self._require_group("committed")
        (each,) = self._existing([partition])
        found = self._shell.run(self._core.commits.committed()).get((each, self._shell.topic(each.topic).state.topic_id))
        return found if found is None or metadata else found.offset

    def metrics(self) -> dict[str, dict[str, float]]:
        """Returns numbers of its work and of its lag, by the groups and names of Kafka's metrics. Rates are of the last 30 seconds.

        Returns:
            By group, the values by name. `consumer-fetch-manager-metrics` has `records-lag-max`, `records-lag-avg`, and totals and rates of
            records and bytes. `consumer-coordinator-metrics` has `commit-latency-avg` and `commit-latency-max` in milliseconds, and totals
            of commits and rebalances. The lag counts the records beyond the positions, when the consumer last looked.

        Raises:
            CallError: CONSUMER_CLOSED.

        Example:
            >>> _ = consumer.poll(1_000)
            >>> consumer.metrics()["consumer-fetch-manager-metrics"]["records-lag-max"]
            0
        """
        self._require_open("metrics")
        return self._shell.metrics.told(self._core.shares.lags(), len(self._core.shares.assigned()))

    @without("timeout_ms", "leave it out: it waits for commits alone, and at most 5 s for an operator")
    def close(self, autocommit: bool = True) -> None:
        """Ends the consumer. A second call changes nothing.

        Args:
            autocommit: Whether positions are committed first, if the consumer has a group and `enable_auto_commit`; default True.

        Raises:
            GenerationFencedError: If another owner took the group. The consumer is closed.

        Example:
            >>> consumer.close()
            >>> consumer.close()
        """
        autocommit = arguments.boolean("autocommit", autocommit)
        if not self._core.closed:
            self._require_own("close")
        self._shell.run(self._core.close(autocommit=autocommit))

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Closes it. After an error it does not commit: it is not known whether the last records were processed."""
        try:
            self.close(autocommit=kind is None)
        except SparklogError as error:
            if kind is None:
                raise
            _log.warning("The consumer was closed after an error, and %s", error)

    # ---- within

    def _to_commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None) -> list[OffsetCommit] | None:
        """These offsets, each with the id of its topic; None for all positions."""
        if offsets is None:
            return None
        # The offsets are of the topics that it reads, even if another topic has the name now.
        known = self._core.shares.held.copy()
        given: dict[TopicPartition, OffsetCommit] = {}
        for partition, value in arguments.mapping("offsets", offsets):
            (each,) = self._existing([partition])
            offset, metadata = (value[0], value[1]) if isinstance(value, tuple) else (value, None)
            offset, share = arguments.count("offset", offset), known.get(each)
            topic_id, holding = (share.topic_id, share.holding) if share else (self._shell.topic(each.topic).state.topic_id, None)
            given[each] = OffsetCommit(*each, topic_id, offset, metadata or None, holding)
        return list(given.values())

    def _decoded(self, partition: TopicPartition, batch: pa.RecordBatch) -> tuple[list[ConsumerRecord], Exception | None]:
        return records_of(partition, batch, *self._deserializers, self.root)

    def _require_to_read(self, call: str, timeout_ms: float) -> None:
        self._require_open(call)
        arguments.duration("timeout_ms", timeout_ms)
        if self._core.is_empty:
            raise SparklogError("NOT_SUBSCRIBED", call=call)

    def _records(self) -> Generator[ConsumerRecord, None, None]:
        """One record after another. The position is always that after the one returned last, so that `commit` in a loop is exact."""
        is_live = (lambda: True) if self._membership is None else self._membership.liveness()
        while not self._core.closed:
            self._require_to_read("next", self._timeout_ms)
            taken = self._shell.run(self._core.take(self._timeout_ms / 1000, self._max_poll_records, self._fetch_bytes))
            if not taken:
                return
            self._measure()
            yield from self._core.fetching.one_by_one(taken, self._decoded, is_live)

    def _measure(self) -> None:
        taken, metrics = self._core.fetching, self._shell.metrics
        if taken.records:
            metrics.records.add(taken.records)
            metrics.bytes.add(taken.bytes)
            taken.records = taken.bytes = 0

    def _share(self, partition: TopicPartition) -> AssignedPartition:
        self._require_open("a call about assigned partitions")
        return self._core.shares.share(partition_of(partition))

    def _in_newest(self, call: str, partitions: Sequence[TopicPartition]) -> list[AssignedPartition]:
        """These partitions, or all, in the newest states of their topics; a topic that was created again may have fewer.

        CallError NOT_SUBSCRIBED if there are none.
        """
        self._require_open("a call about assigned partitions")
        if not partitions and not self._core.shares.assigned():
            raise SparklogError("NOT_SUBSCRIBED", call=call)
        for topic in {self._core.shares.share(partition_of(each)).partition.topic for each in partitions or self._core.shares.assigned()}:
            self._shell.topic(topic)
        self._core.shares.take_news()
        wanted = list(map(partition_of, partitions)) or list(self._core.shares.assigned())
        return list(map(self._core.shares.share, self._existing(wanted)))

    def _existing(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        self._require_open("a call about partitions")
        found = partitions_of(partitions)
        for topic, number in found:
            arguments.partitions(self._shell.topic(topic).state, self._root, number)
        return found

    def _require_open(self, call: str) -> None:
        if self._core.closed:
            raise SparklogError("CONSUMER_CLOSED", call=call)
        self._require_own(call)

    def _require_own(self, call: str) -> None:
        """A forked process does not read the records of its parent."""
        if self._core.settings.has_group and os.getpid() != self._pid:
            raise SparklogError("CONSUMER_FORKED", call=call)

    def _require_group(self, call: str) -> None:
        self._require_open(call)
        if not self._core.settings.has_group:
            raise SparklogError("GROUP_REQUIRED", call=call, missing="group_id")

    def _opened(self, table: str | os.PathLike[str] | OffsetTable, logs: TopicLogs) -> OffsetTable:
        from sparklog.groups import OffsetTable

        opened = table if isinstance(table, OffsetTable) else OffsetTable(logs, table)
        if opened.root != self.root:
            reason = f"it was opened with the root {opened.root}, and the consumer reads {self.root}: give one of the same root"
            raise SparklogError("OPTION_VALUE", option="table", value=opened.path, reason=reason)
        return opened


def _telling(consumer: weakref.ref[Consumer], callbacks: Mapping[str, Rebalanced | None]) -> Callable[[str, list[TopicPartition]], None]:
    """Calls the callback of an event with the consumer, and does not keep the consumer alive."""

    def tell(event: str, partitions: list[TopicPartition]) -> None:
        if callback := callbacks[event]:
            callback(consumer(), partitions)

    return tell
