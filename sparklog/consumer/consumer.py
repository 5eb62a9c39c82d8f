"""The consumer: its calls, and the positions of its partitions."""

from __future__ import annotations

import logging
import os
import re
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa

from sparklog import arguments
from sparklog.consumer.beliefs import AssignedPartition, Settings
from sparklog.consumer.core import Core
from sparklog.consumer.groups import Alone, ConsumerGroup, Owned, Shared, member_settings
from sparklog.consumer.named import compiled, explained, one_of, strategy
from sparklog.consumer.records import (
    ConsumerRecord,
    Deserializer,
    Fetched,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
    partition_of,
    records_of,
    together,
)
from sparklog.consumer.requests import At, Ats, Committed
from sparklog.consumer.shell import Shell
from sparklog.errors import SparklogError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from sparklog.offsets import OffsetTable
    from sparklog.ondisk.topic_logs import TopicLogs

_log = logging.getLogger(__name__)
_RESETS = ("earliest", "latest", "none")
_NO_LIMIT = 1 << 62
Rebalanced = Callable[[Any, list[TopicPartition]], object]
"""Is called with a consumer, and partitions that came to it or go."""


class Consumer:
    """Reads topics on and on: first what is there, then what is committed while it waits. Names and defaults are those of kafka-python.

    >>> with Consumer("/data/events", "orders", group="billing", table="/data/offsets") as consumer:
    ...     for record in consumer:
    ...         print(record.partition, record.offset, record.value)

    It needs neither a JVM nor Spark, and its memory does not grow with what it reads. It reads all partitions of its topics. To share them
    with other processes, give all of them the same group and `assignor`; or `assign` partitions to each.

    It is not thread-safe: use it in one thread at a time. Only `wakeup` may be called from others, and from signal handlers.
    """

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
        metadata_max_age_ms: int = 5000,
        partition_assignment_strategy: str | Sequence[str] | None = None,
        weight: str = "count",
        session_timeout_ms: int = 45_000,
        heartbeat_interval_ms: int = 5_000,
        max_poll_interval_ms: int = 300_000,
        group_instance_id: str | None = None,
        capacity: int = 1,
        client_rack: str | None = None,
        on_assign: Rebalanced | None = None,
        on_revoke: Rebalanced | None = None,
        on_lost: Rebalanced | None = None,
        filesystem: FileSystem | None = None,
        group: str | None = None,
        assignor: str | None = None,
        rack: str | None = None,
    ) -> None:
        """Subscribes to the topics, if any are named: `Consumer(root, "a", "b")`, or `Consumer(root, topics=["a", "b"])`.

        * group_id, table: the name of the group whose positions it keeps, and the offset commit table that has them: a path, or an
          `OffsetTable`. Without `partition_assignment_strategy` it takes the group's next generation, and so ends any other consumer of
          the group (GenerationFenced).
        * dual_table: a second offset table, which gets each commit after `table` has it, while a group moves from one to the other: as
          Kafka's `dual.commit.enabled`. A commit that fails there is logged, and the next one is later than it.
        * partition_assignment_strategy: with it, the consumer is a member of the group, which shares the partitions of its topics with the
          others: `range`, `roundrobin` or `sticky`, the same for all. Partitions come and go in `poll` and in iteration.
        * weight: by what `sticky` evens out the members, the same for all: `count` of partitions, `lag`, or `rate` in the last hour, the
          latter two in thousands of records. Partitions move if a member has more than 1.25 times the mean, at most once a minute.
        * session_timeout_ms, heartbeat_interval_ms: a member whose heartbeats stop for so long loses its partitions to others.
        * max_poll_interval_ms: so does one that did not call `poll` for so long.
        * group_instance_id: the name of a static member. A consumer that joins under it takes the place of the one before.
        * capacity, client_rack: for the assignor: as how many members it counts, and where it is.
        * on_assign, on_revoke, on_lost: called as `on_assign(consumer, partitions)` in `poll`: after partitions came, before they go to
          another member, and after others took them since this member was expired or the group reset; without `on_lost`, `on_revoke` is
          called for these too.
        * auto_offset_reset: where a partition begins in which the group has no position, and goes on if its position is not in the log any
          more. "latest" begins with what is committed after this call, so it reads a partition that comes to be later from its start.
          With "none" it is an error.
        * enable_auto_commit, auto_commit_interval_ms: with a group, `poll` and iteration commit what earlier calls returned, at most that
          often; so does `close`.
        * max_poll_records: the most records that `poll` returns.
        * fetch_max_bytes, max_partition_fetch_bytes: how much is read at once, in all and of one partition. A larger record is read too. A
          partition gives some 1 GiB of Arrow at a time, also if more is allowed.
        * consumer_timeout_ms: iteration ends when no record came for so long.
        * key_deserializer, value_deserializer: functions from bytes, for the records of `poll` and of iteration.
        * poll_interval_ms: how often it looks for new commits while it waits.
        * metadata_max_age_ms: how often it looks for new topics, if it subscribes to a pattern.
        * filesystem: through which a bucket is read, as in `Log`.
        * group, assignor, rack: the names of before of group_id, partition_assignment_strategy and client_rack, for one release.

        CallError if the root or a topic does not exist, or an argument is wrong.
        """
        group = one_of("group_id", group_id, "group", group)
        assignor = one_of("partition_assignment_strategy", strategy(partition_assignment_strategy), "assignor", assignor)
        rack = one_of("client_rack", client_rack, "rack", rack)
        logs = arguments.topic_logs(root, filesystem)
        self._root, self.root = logs.root, str(logs.root)
        list_again = arguments.count("metadata_max_age_ms", metadata_max_age_ms) / 1000
        arguments.choice("auto_offset_reset", auto_offset_reset, _RESETS)
        if names and topics:
            raise SparklogError("OPTION_CONFLICT", options="topics by position and topics=", reason="give one of them")
        wanted = names or ((topics,) if isinstance(topics, str) else tuple(topics))
        if dual_table is not None and table is None:
            raise SparklogError("GROUP_REQUIRED", call="Consumer(dual_table=…)", missing="table")
        if group_instance_id is not None and group is None:
            raise SparklogError("GROUP_REQUIRED", call="Consumer(group_instance_id=…)", missing="group")
        if (group is None) != (table is None):
            raise SparklogError("GROUP_REQUIRED", call="Consumer()", missing="group" if group is None else "table")
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
        self._iterator: Iterator[ConsumerRecord] | None = None
        interval = arguments.positive("poll_interval_ms", poll_interval_ms) / 1000
        commit_interval = arguments.count("auto_commit_interval_ms", auto_commit_interval_ms) / 1000
        opened = None if table is None else self._opened(table, logs)
        logs = logs if opened is None else opened.topics.logs
        self._pid = os.getpid()
        member = None
        if assignor is not None:
            if opened is None or group is None:
                raise SparklogError("GROUP_REQUIRED", call="Consumer(assignor=…)", missing="group")
            times = (session_timeout_ms, heartbeat_interval_ms, max_poll_interval_ms)
            member = member_settings(assignor, weight, times, group_instance_id, capacity, rack)
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
        )
        self._core = Core(settings)
        told = {"assigned": on_assign, "revoked": on_revoke, "lost": on_lost or on_revoke}
        dual = None if dual_table is None else self._opened(dual_table, logs)
        self._membership: Membership | None = None
        its: ConsumerGroup = Alone()
        if member is not None and opened is not None and group is not None:
            from sparklog.membership import Membership

            self._membership = Membership(opened, group, member, self._core.beginning)
            self._membership.belongs_to(self)
            its = Shared(self._membership)
        self._shell = Shell(self._core, logs, its, _telling(weakref.ref(self), told), dual)
        if wanted:
            self._shell.run(self._core.subscribe(wanted, None))
        if opened is not None and group is not None and member is None:
            from sparklog.offsets import Owner

            # After all checks, since it ends another consumer of the group.
            its = Owned(Owner(opened, group))
            self._shell.group = its

    # ---- any topic and partition, whether it is read or not

    def topics(self) -> set[str]:
        """The topics of the root."""
        return set(self._root.topics())

    def partitions_for_topic(self, topic: str) -> set[int]:
        """The numbers of a topic's partitions. CallError TOPIC_NOT_FOUND."""
        return set(range(self._shell.topic(topic).state.partitions))

    def fetch(self, partition: TopicPartition, offset: int, max_bytes: int = 1 << 20) -> Fetched:
        """The records of any partition from an offset on, without a subscription; its own positions stay as they are.

        They are those of whole batches of `max_bytes` together as they are stored, and at least of one, as from a broker; but of some 1 GiB
        of Arrow at most, whatever `max_bytes` is. At the end offset the batch is empty. CallError OFFSETS_OUT_OF_RANGE, TOPIC_NOT_FOUND,
        PARTITION_NOT_FOUND.
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
            part = reads.part(number, offset, bytes_max)
            if part.offset > offset:
                return Fetched(together(part.batches), part.offset, start, end)

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The log start offsets of any partitions."""
        return {each: self._shell.topic(each.topic).state.starts[each.partition] for each in self._existing(partitions)}

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end offsets of any partitions: the offsets that their next records will get."""
        return {each: self._shell.topic(each.topic).state.ends[each.partition] for each in self._existing(partitions)}

    def offsets_for_times(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first records of any partitions at or after times in milliseconds since 1970-01-01 UTC; None if there is no such record."""
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
        """Reads all partitions of these topics, or of all topics whose names begin with a match of the pattern, in place of what it read.

        CallError TOPIC_NOT_FOUND; a pattern may match topics that will exist later.
        """
        self._require_open("subscribe")
        if isinstance(topics, str):
            raise TypeError(f"`topics` is {topics!r}, of type str; it must be a list of names")
        if bool(topics) == (pattern is not None):
            raise SparklogError("OPTION_VALUE", option="topics", value=list(topics), reason="give either topics or a pattern")
        if self._core.by_hand:
            raise SparklogError("OPTION_CONFLICT", options="subscribe and assign", reason="call unsubscribe between them")
        self._shell.run(self._core.subscribe(topics, None if pattern is None else compiled(pattern)))

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Reads these partitions alone, or unsubscribes if no partition is given. CallError TOPIC_NOT_FOUND, PARTITION_NOT_FOUND."""
        self._require_open("assign")
        if not partitions:
            self.unsubscribe()
            return
        if self._membership is not None:
            raise SparklogError("OPTION_CONFLICT", options="assignor and assign", reason="the assignor gives the partitions")
        if self._core.subscribes:
            raise SparklogError("OPTION_CONFLICT", options="subscribe and assign", reason="call unsubscribe between them")
        self._shell.run(self._core.assign(list(map(partition_of, partitions))))

    def unsubscribe(self) -> None:
        """Reads nothing any more."""
        self._require_open("unsubscribe")
        self._shell.run(self._core.unsubscribe())

    def subscription(self) -> set[str] | None:
        """The topics that it is subscribed to; None if partitions are assigned, or nothing is."""
        return self._core.topics

    def assignment(self) -> set[TopicPartition]:
        """The partitions that it reads."""
        return set(self._core.assigned())

    # ---- records

    def poll(self, timeout_ms: float = 0, max_records: int | None = None) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The next records by partition, as soon as there are any; empty if none came within the timeout.

        At most `max_records` of them, or `max_poll_records`. DataError if a file is damaged; GenerationFenced as `commit`. If the topic was
        deleted, CallError TOPIC_NOT_FOUND, until it is there again or the subscription is another one; with an `assignor`, RetryError
        MEMBER_TOPIC_GONE, once, and then the other topics go on.
        """
        limit = self._max_poll_records if max_records is None else arguments.positive("max_records", max_records)
        self._require_to_read("poll", timeout_ms)
        if not timeout_ms and self._shell.finds_nothing():
            return {}
        found = self._shell.run(self._core.poll(timeout_ms / 1000, limit, self._fetch_bytes, self._decoded))
        self._measure()
        return found

    def poll_batches(
        self, timeout_ms: float = 0, max_records: int | None = None, max_bytes: int | None = None
    ) -> dict[TopicPartition, pa.RecordBatch]:
        """As `poll`, as Arrow record batches with the columns of `Topic.read`: several times as fast.

        Without `max_records`, only bytes limit it: `max_partition_fetch_bytes` for each partition, and `max_bytes` in all, or
        `fetch_max_bytes`.
        """
        limit = _NO_LIMIT if max_records is None else arguments.positive("max_records", max_records)
        bytes_max = self._fetch_bytes if max_bytes is None else arguments.positive("max_bytes", max_bytes)
        self._require_to_read("poll_batches", timeout_ms)
        if not timeout_ms and self._shell.finds_nothing():
            return {}
        found = self._shell.run(self._core.poll_batches(timeout_ms / 1000, limit, bytes_max))
        self._measure()
        return found

    def __iter__(self) -> Consumer:
        return self

    def __next__(self) -> ConsumerRecord:
        """The next record. It waits for one, and ends after `consumer_timeout_ms`, or when `wakeup` or `close` is called."""
        iterator, self._iterator = self._iterator or self._records(), None  # an error, the end, and a callback within it find no iterator
        record = next(iterator)
        self._iterator = iterator
        return record

    def wakeup(self) -> None:
        """Ends a wait: `poll` returns, empty, and iteration ends, within a poll interval. If none waits, the next one will not."""
        self._core.woken = True

    def pause(self, *partitions: TopicPartition) -> None:
        """Returns no records of these partitions until `resume`. CallError PARTITION_NOT_ASSIGNED."""
        self._require_open("pause")
        self._core.pause(map(partition_of, partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """Takes back `pause`."""
        self._require_open("resume")
        self._core.resume(map(partition_of, partitions))

    def paused(self) -> set[TopicPartition]:
        """The partitions that are paused."""
        return {partition for partition, each in self._core.assigned().items() if each.paused}

    # ---- positions

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continues at this offset of a partition. If it is not in the log, `auto_offset_reset` applies to the next poll."""
        self._core.seek(self._share(partition), arguments.count("offset", offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continues at the log start offset of these partitions, or of all."""
        for each in self._in_newest("seek_to_beginning", partitions):
            self._core.seek(each, self._core.states[each.partition.topic].starts[each.number])

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continues at the end offset of these partitions, or of all."""
        for each in self._in_newest("seek_to_end", partitions):
            self._core.seek(each, self._core.states[each.partition.topic].ends[each.number])

    def position(self, partition: TopicPartition) -> int:
        """The offset of the record that comes next, if there is one."""
        return self._shell.run(self._core.position(self._share(partition).partition))

    def waiting(self) -> dict[TopicPartition, dict[TopicPartition, int]]:
        """The partitions that wait for others, so that each key comes in order over a change of partitions.

        Each is given with the partitions that its keys came from, and the offsets up to which these must be consumed first: by this
        consumer, or where it does not read them by its group. A partition that is paused is waited for, too.
        """
        self._require_open("waiting")
        return self._shell.run(self._core.waiting())

    def highwater(self, partition: TopicPartition) -> int:
        """The end offset of a partition as far as this consumer has looked."""
        each = self._share(partition)
        state = self._core.states[each.partition.topic]
        arguments.partitions(state, self._root, each.number)
        return state.ends[each.number]

    # ---- the group

    def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        """Commits these offsets, or all positions: the group continues there. An offset is that of the next record, not of the last one.

        GenerationFenced if another consumer, a tracker or a reset took the group since: then it moved nothing. CallError GROUP_REQUIRED if
        there is no group; OFFSETS_OUT_OF_RANGE, TOPIC_NOT_FOUND, PARTITION_NOT_FOUND. RetryError TOPIC_RECREATED if that was not read.
        """
        self._require_group("commit")
        self._shell.run(self._core.commit(self._to_commit(offsets)))

    def commit_async(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None, callback: Committed | None = None
    ) -> Future[None]:
        """Begins to commit as `commit` does, and does not wait for it. Commits are made in the order in which they were asked for.

        `callback` is called as `callback(offsets, error)`, where the error is None if all went well, by a later call of `poll`, iteration,
        `commit` or `close`. The future that is returned ends with the commit. Nothing tries again, as a later commit has later offsets.
        """
        self._require_group("commit_async")
        arguments.function("callback", callback)
        found: Future[None] = self._shell.run(self._core.commit_beside(self._to_commit(offsets), callback))
        return found

    @overload
    def committed(self, partition: TopicPartition, metadata: Literal[False] = ...) -> int | None: ...

    @overload
    def committed(self, partition: TopicPartition, metadata: bool) -> int | OffsetAndMetadata | None: ...

    def committed(self, partition: TopicPartition, metadata: bool = False) -> int | OffsetAndMetadata | None:
        """The offset that the group has committed in a partition.

        Args:
            metadata: whether the text that was committed with the offset is returned too.

        Returns:
            The offset, or an `OffsetAndMetadata` with `metadata`; None if the group has committed nothing in the partition.

        Raises:
            CallError: GROUP_REQUIRED, TOPIC_NOT_FOUND or PARTITION_NOT_FOUND.
        """
        metadata = arguments.boolean("metadata", metadata)
        self._require_group("committed")
        (each,) = self._existing([partition])
        found = self._shell.run(self._core.committed()).get((each, self._shell.topic(each.topic).state.topic_id))
        return found if found is None or metadata else found.offset

    def metrics(self) -> dict[str, dict[str, float]]:
        """Numbers of its work and of its lag, by the groups and names of Kafka's metrics; rates are of the last 30 seconds.

        `consumer-fetch-manager-metrics` has records-lag-max, records-lag-avg, and totals and rates of records and bytes;
        `consumer-coordinator-metrics` has commit-latency-avg and -max in milliseconds, and totals of commits and rebalances. The lag is
        what the partitions that it reads have beyond its positions, as far as it has looked.
        """
        self._require_open("metrics")
        return self._shell.metrics.told(self._core.lags(), len(self._core.assigned()))

    def close(self, autocommit: bool = True) -> None:
        """Ends the consumer. With a group, commits all positions first, unless `autocommit` or `enable_auto_commit` is false."""
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

    def _to_commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None) -> Ats | None:
        """These offsets, each with the id of its topic; None for all positions."""
        if offsets is None:
            return None
        # The offsets are of the topics that it reads, even if there is another one of the name by now.
        known = self._core.shares.copy()
        given: Ats = {}
        for partition, value in arguments.mapping("offsets", offsets):
            (each,) = self._existing([partition])
            offset, metadata = (value[0], value[1]) if isinstance(value, tuple) else (value, None)
            offset, share = arguments.count("offset", offset), known.get(each)
            topic_id, holding = (share.topic_id, share.holding) if share else (self._shell.topic(each.topic).state.topic_id, None)
            given[each] = At(topic_id, holding, offset, metadata or None)
        return given

    def _decoded(self, partition: TopicPartition, batch: pa.RecordBatch) -> tuple[list[ConsumerRecord], Exception | None]:
        return records_of(partition, batch, *self._deserializers, self.root)

    def _require_to_read(self, call: str, timeout_ms: float) -> None:
        self._require_open(call)
        arguments.duration("timeout_ms", timeout_ms)
        if self._core.is_empty:
            raise SparklogError("NOT_SUBSCRIBED", call=call)

    def _records(self) -> Iterator[ConsumerRecord]:
        """One record after another. The position is always that after the one returned last, so that `commit` in a loop is exact."""
        is_live = (lambda: True) if self._membership is None else self._membership.liveness()
        while not self._core.closed:
            self._require_to_read("next", self._timeout_ms)
            taken = self._shell.run(self._core.take(self._timeout_ms / 1000, self._max_poll_records, self._fetch_bytes))
            if not taken:
                return
            self._measure()
            yield from self._core.give(taken, self._decoded, is_live)

    def _measure(self) -> None:
        core, metrics = self._core, self._shell.metrics
        if core.given_records:
            metrics.records.add(core.given_records)
            metrics.bytes.add(core.given_bytes)
            core.given_records = core.given_bytes = 0

    def _share(self, partition: TopicPartition) -> AssignedPartition:
        self._require_open("a call about assigned partitions")
        return self._core.share(partition_of(partition))

    def _in_newest(self, call: str, partitions: Sequence[TopicPartition]) -> list[AssignedPartition]:
        """These partitions, or all, in the newest states of their topics; a topic that was created again may have fewer.

        CallError NOT_SUBSCRIBED if there are none.
        """
        self._require_open("a call about assigned partitions")
        if not partitions and not self._core.assigned():
            raise SparklogError("NOT_SUBSCRIBED", call=call)
        for topic in {self._core.share(partition_of(each)).partition.topic for each in partitions or self._core.assigned()}:
            self._shell.topic(topic)
        self._core.absorb()
        wanted = list(map(partition_of, partitions)) or list(self._core.assigned())
        return list(map(self._core.share, self._existing(wanted)))

    def _existing(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        self._require_open("a call about partitions")
        found = list(map(partition_of, partitions))
        for topic, number in found:
            arguments.partitions(self._shell.topic(topic).state, self._root, number)
        return found

    def _require_open(self, call: str) -> None:
        if self._core.closed:
            raise SparklogError("CONSUMER_CLOSED", call=call)
        self._require_own(call)

    def _require_own(self, call: str) -> None:
        """A forked process does not read the records of its parent."""
        if self._core.has_group and os.getpid() != self._pid:
            raise SparklogError("CONSUMER_FORKED", call=call)

    def _require_group(self, call: str) -> None:
        self._require_open(call)
        if not self._core.has_group:
            raise SparklogError("GROUP_REQUIRED", call=call, missing="group")

    def _opened(self, table: str | os.PathLike[str] | OffsetTable, logs: TopicLogs) -> OffsetTable:
        from sparklog.offsets import OffsetTable

        opened = table if isinstance(table, OffsetTable) else OffsetTable(table, logs)
        if opened.root != self.root:
            reason = f"it was opened with the root {opened.root}, and the consumer reads {self.root}: give one of the same root"
            raise SparklogError("OPTION_VALUE", option="table", value=opened.path, reason=reason)
        return opened


def _telling(its: weakref.ref[Consumer], callbacks: Mapping[str, Rebalanced | None]) -> Callable[[str, list[TopicPartition]], None]:
    """Calls the callback of an event with the consumer, and does not keep the consumer alive."""

    def tell(event: str, partitions: list[TopicPartition]) -> None:
        if callback := callbacks[event]:
            callback(its(), partitions)

    return tell
