"""Finds the next records of a consumer's partitions: waits for them, keeps positions in the log, and commits them when that is due."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from sparklog import arguments
from sparklog.consumer.assigned_partition import AssignedPartition
from sparklog.consumer.barrier import Barrier
from sparklog.consumer.beside import Beside, Given
from sparklog.consumer.metrics import Metrics
from sparklog.consumer.records import OffsetAndMetadata, TopicPartition
from sparklog.consumer.subscription import Subscription
from sparklog.consumer.turns import Taken
from sparklog.errors import GenerationFenced, SparklogError
from sparklog.ondisk.topic_logs import TopicLogs

if TYPE_CHECKING:
    from sparklog.offsets import Membership, OffsetTable, Owner, Position
    from sparklog.offsets.topics import Ids, Offsets

_log = logging.getLogger(__name__)


class Reader:
    """Reads what a subscription names, for the owner of a group or for none.

    * reset: the consumer's `auto_offset_reset`. interval_s: how often it looks for new commits while it waits.
    * part_bytes: how much it reads of a partition at once. commit_s: how often it commits what was returned; None for never.
    * dual: a second table, which gets what is committed.
    """

    def __init__(
        self,
        logs: TopicLogs,
        subscription: Subscription,
        owner: Owner | Membership | None,
        *,
        reset: str,
        interval_s: float,
        part_bytes: int,
        commit_s: float | None,
        dual: OffsetTable | None = None,
    ) -> None:
        self._logs = logs
        self._subscription = subscription
        self.owner = owner
        self._reset = reset
        self._interval_s = interval_s
        self._part_bytes = part_bytes
        self._commit_s, self._dual = commit_s, dual
        self.commits_by_itself = owner is not None and commit_s is not None
        self._tried = time.monotonic()
        self._settled = False
        """Whether all positions are known and in the log."""
        self._idle = False
        """Whether all was read that is known to be there."""
        self._looked = float("-inf")
        self._woken = False
        self.barrier = Barrier(subscription, self.committed, interval_s)
        self.beside = Beside(self._commit)
        self.metrics = Metrics()
        self.turn: Callable[[], None] = lambda: None
        """Is called before records are returned, and while there are none: partitions may come and go in it."""
        self.known: Callable[[], dict[tuple[TopicPartition, str], OffsetAndMetadata]] = self.committed
        """Gives at least what the group has committed in the partitions that are assigned."""

    def moved(self) -> None:
        """To be called after positions, partitions or states became others."""
        self._settled = self._idle = False

    def wake(self) -> None:
        """Ends `next`, or the next call of it."""
        self._woken = True

    def next(self, timeout_s: float, records_max: int, bytes_max: int) -> list[Taken]:
        """The next records as soon as there are any, each with the position after them, which the caller sets.

        Empty after the timeout, or when woken.
        """
        self._take_turn()
        until = time.monotonic() + timeout_s
        while not (found := self._look_and_take(records_max, bytes_max)):
            left = until - time.monotonic()
            if self._woken or left <= 0:
                self._woken = False
                break
            time.sleep(min(self._interval_s, left))
            self._take_turn()
        if found:
            self.metrics.records.add(sum(batch.num_rows for _, batch, _ in found))
            self.metrics.bytes.add(sum(batch.nbytes for _, batch, _ in found))
        return found

    def _take_turn(self) -> None:
        self.beside.tell()
        self.turn()
        self.auto_commit()

    def _look_and_take(self, records_max: int, bytes_max: int) -> list[Taken]:
        """The records that are there, after a look for more if there are none, or if the last look is a poll interval ago."""
        looked = False
        while True:
            if self._idle or time.monotonic() - self._looked >= self._interval_s:
                if self._subscription.look():
                    self.moved()
                self._looked = time.monotonic()
                looked = True
            if not self._idle:
                self.settle()
                before = self._positions()
                if found := self._subscription.turns.take(records_max, bytes_max, self._part_bytes, self.barrier.until):
                    return found
                if before != self._positions():
                    continue  # offsets without records were passed, for which another partition may have waited
                self._idle = not self.barrier.depends_on_group
            if looked or not self._idle:
                return []

    def _positions(self) -> list[int | None]:
        return [each.position for each in self._subscription.assigned.values()]

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
            arguments.partitions(each.followed.state, self._logs.root, each.number)
        if any(each.position is None for each in assigned):
            committed = self.known()
            for each in assigned:
                if each.position is None:
                    found = committed.get((each.partition, each.topic_id))
                    each.position = found.offset if found else self._first(each)

    def _first(self, each: AssignedPartition) -> int:
        """The position in a partition in which none was committed."""
        if self._reset == "none":
            topic, partition = each.partition
            raise SparklogError("OFFSET_NOT_COMMITTED", topic=topic, partition=partition, root=self._logs.root)
        return each.start if self._reset == "earliest" else each.latest

    def _in_log(self, each: AssignedPartition, offset: int) -> int:
        """The position in place of one that is not in the log."""
        if self._reset == "none":
            # It raises the error.
            arguments.offsets(
                each.followed.state, self._logs.root, "position", {each.number: offset}, [each.number], each.followed.state.starts
            )
        to = each.start if self._reset == "earliest" else each.end
        topic, partition = each.partition
        _log.warning(
            "Offset %d of topic %s, partition %d is not in the log; going on at %d (%s)", offset, topic, partition, to, self._reset
        )
        return to

    # ---- the group

    def committed(self) -> dict[tuple[TopicPartition, str], OffsetAndMetadata]:
        """The offsets that the group has committed, by partition and topic id; without a group there are none."""
        self.beside.settle()
        return by_place(self.owner.positions() if self.owner else ())

    def lags(self) -> list[int]:
        """How far each partition is behind its end offset, where its position is known."""
        known = [each for each in self._subscription.assigned.values() if each.position is not None]
        return [each.followed.state.unread(each.number, each.position) for each in known if each.position is not None]

    def positions(self) -> dict[TopicPartition, tuple[str, OffsetAndMetadata]]:
        """The positions that are known, each with the topic id, as `commit` takes them."""
        known = self._subscription.assigned.items()
        return {partition: (each.topic_id, OffsetAndMetadata(each.position)) for partition, each in known if each.position is not None}

    def commit(self, offsets: Given) -> None:
        """Commits offsets, each given with the topic id, at once. GenerationFenced if another generation has begun."""
        self.beside.settle()
        self._commit(offsets)

    def _commit(self, offsets: Given) -> None:
        if not self.owner or not offsets:
            return
        began = time.monotonic()
        try:
            self.owner.commit(*by_topic(offsets), metadata={partition: value.metadata for partition, (_, value) in offsets.items()})
        except BaseException:
            self.metrics.failed_commits += 1
            raise
        self.metrics.commits.add(1000 * (time.monotonic() - began))
        self.committed_elsewhere(offsets)

    def committed_elsewhere(self, offsets: Given) -> None:
        """Tells the second table, if there is one, of a commit in the first. A failure there is logged."""
        if self._dual is None or self.owner is None or not offsets:
            return
        try:
            self._dual.follow(self.owner.group, *by_topic(offsets))
        except SparklogError as error:
            _log.warning("Positions of group %s are not in the second table %s: %s", self.owner.group, self._dual.path, error)

    def commit_what_stays(self, offsets: Given) -> None:
        """As `commit`. If another member has one of the partitions by now, nothing is committed, and the next turn gives it up."""
        try:
            self.commit(offsets)
        except GenerationFenced as error:
            if error.id != "MEMBER_FENCED":
                raise
            self._not_committed(error)

    def to_commit(self) -> dict[TopicPartition, tuple[str, OffsetAndMetadata]]:
        """The positions that are not committed, of topics that are still there, as `commit` takes them."""
        return {each: at for each, at in self.positions().items() if self._is_to_commit(each, *at)}

    def auto_commit(self, *, at_once: bool = False) -> None:
        """Commits those positions that are not committed, if that is due or asked for; and once a minute, says that the consumer is there.

        A commit that fails is tried again after an interval. GenerationFenced as in `commit`. A topic that was deleted or created again is
        left out, and does not keep the others from being committed.
        """
        if self.owner is None:
            return
        now = time.monotonic()
        due = self._commit_s is not None and (at_once or now - self._tried >= self._commit_s)
        try:
            if due:
                self.beside.settle()
                self._tried = now
                self.commit_what_stays(self.to_commit())
            if self.beside.is_idle:
                self.owner.beat()
        except GenerationFenced:
            raise
        except SparklogError as error:
            self._not_committed(error)

    def _not_committed(self, error: SparklogError) -> None:
        assert self.owner
        _log.warning("The positions of group %s could not be committed: %s", self.owner.group, error)

    def _is_to_commit(self, partition: TopicPartition, id: str, at: OffsetAndMetadata) -> bool:
        """Whether a position is not committed, and its topic is the one that is there."""
        assert self.owner
        topic, number = partition
        if self.owner.is_committed(topic, id, number, at.offset):
            return False
        state = self._logs.find(topic)
        return state is not None and state.topic_id == id


def by_place(positions: Iterable[Position]) -> dict[tuple[TopicPartition, str], OffsetAndMetadata]:
    """Positions by partition and topic id."""
    return {
        (TopicPartition(each.topic, each.partition), each.topic_id): OffsetAndMetadata(each.offset, each.metadata) for each in positions
    }


def by_topic(offsets: Given) -> tuple[Offsets, Ids]:
    """Offsets as the owner of a group takes them, with the ids of their topics."""
    found: dict[str, dict[int, int]] = {}
    for (topic, number), (_, value) in offsets.items():
        found.setdefault(topic, {})[number] = value.offset
    return found, {topic: id for (topic, _), (id, _) in offsets.items()}


def _known(each: AssignedPartition) -> int:
    assert each.position is not None
    return each.position
