"""How a consumer reads: it finds out positions, waits at re-routes, and takes the next records in turns."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from sparklog.barrier import Barrier, until
from sparklog.consumer import requests as ask
from sparklog.consumer.beliefs import AssignedPartition, Beliefs, Failed, Taken
from sparklog.consumer.records import ConsumerRecord, TopicPartition, last_offset, rows_before, together
from sparklog.consumer.requests import Known, Steps
from sparklog.errors import SparklogError
from sparklog.ondisk.state import State

_log = logging.getLogger(__name__)
_PARTS = 4
"""The most parts of a share whose bytes are requested before they are fetched."""
_EXPECTED_BYTES_MIN = 1 << 16
Decode = Callable[[TopicPartition, pa.RecordBatch], tuple[list[ConsumerRecord], Exception | None]]
"""The records of a batch up to the first that cannot be decoded, and its error."""


class Reading(Beliefs, ABC):
    """The reading of one consumer. Methods that return `Steps` are run by the shell."""

    @abstractmethod
    def _turn(self, now: float) -> Steps[None]:
        """Runs before records are returned, and while no records are there: `Core` follows the group in it."""

    def _settle(self, *, end: bool = False) -> Steps[None]:
        """Waits for the commits on their way. The errors of their callbacks are kept until the turn is done."""
        raised = yield from ask.Settle(end)
        self._raised += raised
        self._beside = 0

    def _look(self, now: float) -> Steps[None]:
        """Takes the newest states of the topics that it reads, and with a pattern of all matching topics."""
        idle = self._idle
        if self.pattern is not None and now - self._listed >= self._settings.list_again_s:
            self._listed = now
            pattern = self.pattern
            added = yield from ask.ListTopics(lambda name: name not in self.states and pattern.match(name) is not None)
            for name, state in (yield from ask.LookAtTopics(added, surely=True)).items() if added else ():
                if not isinstance(state, SparklogError):
                    self.states[name] = state
                    self._align(name, late=True)
                    self._moved()
        self._news |= yield from ask.News(list(self.states), idle)
        self.absorb()
        self._looked = now

    # ---- positions

    def settle(self) -> Steps[None]:
        """Finds out unknown positions, and moves positions that are not in the log."""
        if self._news:
            yield from self._look((yield from ask.Now()))
        if self._settled:
            return
        asked: set[str] = set()
        while True:
            for share in self.assigned().values():
                self._require(self.states[share.partition.topic], share.partition)
            if any(share.position is None for share in self.assigned().values()):
                yield from self._find_out()
            strayed = [each for each in self.assigned().values() if not self._start(each) <= (each.position or 0) <= self._end(each)]
            # A position may be in the log now: only the newest state can show that it is not.
            if not (topics := {each.partition.topic for each in strayed} - asked):
                break
            asked |= topics
            self._news |= yield from ask.LookAtTopics(sorted(topics), surely=True)
            self.absorb()
        for each in strayed:
            each.position = self._in_log(each)
        self._settled = True

    def _find_out(self) -> Steps[None]:
        """Finds out the positions that are not known."""
        known: Known = {}
        if self.has_group and not self._settings.shares:
            known = yield from ask.LookAtPositions()
        read = {partition.topic for partition, _ in known}
        for share in self.assigned().values():
            if share.position is not None:
                continue
            if found := known.get((share.partition, share.topic_id)):
                share.position = share.committed = found.offset
                continue
            topic, number = share.partition
            # If the group has read a topic, new partitions of it are read from their first record.
            late = share.late or topic in read or (self.pattern is not None and any(map(self.pattern.match, read)))
            first = self.beginning(share.partition, share.topic_id, self._start(share), share.latest, late=late)
            if first is None:
                raise SparklogError("OFFSET_NOT_COMMITTED", topic=topic, partition=number, root=self._settings.root)
            share.position = first

    def _in_log(self, share: AssignedPartition) -> int:
        """The position to go on at, if the present position is not in the log."""
        assert share.position is not None
        topic, number = share.partition
        start, end, reset = self._start(share), self._end(share), self._settings.reset
        if reset == "none":
            raise SparklogError(
                "OFFSETS_OUT_OF_RANGE",
                option="position",
                way="Seek to an offset in that range",
                offset=share.position,
                topic=topic,
                partition=number,
                root=self._settings.root,
                start=start,
                end=end,
            )
        to = start if reset == "earliest" else end
        _log.warning("Offset %d of topic %s, partition %d is not in the log; going on at %d (%s)", share.position, topic, number, to, reset)
        return to

    def position(self, partition: TopicPartition) -> Steps[int]:
        self.share(partition)
        yield from self.settle()
        share = self.share(partition)  # its topic may be another topic now
        assert share.position is not None
        return share.position

    # ---- records

    def poll(self, timeout_s: float, records_max: int, bytes_max: int, decode: Decode) -> Steps[dict[TopicPartition, list[ConsumerRecord]]]:
        """The next records, decoded. A record that fails raises its error once those before it were returned; others go on."""
        self._fail()
        given: dict[TopicPartition, list[ConsumerRecord]] = {}
        failed: Failed | None = None
        taken = yield from self.take(timeout_s, records_max, bytes_max)
        decoded = [decode(each.share.partition, each.batch) for each in taken]
        # No position moves before all records are there: an interrupt in a deserializer skips no record.
        self.last = [(each.share, each.share.position) for each in taken]
        for (share, batch, after, _), (records, error) in zip(taken, decoded, strict=True):
            if error is None:
                share.position = after
            else:
                share.position = int(batch.column("offset")[len(records)].as_py())
                share.failed = failed = Failed(share.position, error, to_tell=True)
                self._let_others(share)
            if records:
                given[share.partition] = records
        if failed and not given:
            failed.to_tell, self.last = False, []
            raise failed.error
        return given

    def poll_batches(self, timeout_s: float, records_max: int, bytes_max: int) -> Steps[dict[TopicPartition, pa.RecordBatch]]:
        """The next records."""
        taken = yield from self.take(timeout_s, records_max, bytes_max)
        self.last = [(each.share, each.share.position) for each in taken]
        for each in taken:
            each.share.position = each.after
        return {each.share.partition: each.batch for each in taken}

    def give(self, taken: list[Taken], decode: Decode, is_live: Callable[[], bool]) -> Iterator[ConsumerRecord]:
        """One record after another. The position is that after the last one, and nothing is given of a share that is not held by then.

        `is_live` is true if no other member can have taken the shares of this member.
        """
        waiting = [(share, batch, after, share.position) for share, batch, after, _ in taken]
        failed: tuple[AssignedPartition, int, Exception] | None = None
        for share, batch, after, position in waiting:
            if share.position != position or share.paused or not share.alive:
                continue
            records, error = decode(share.partition, batch)
            for record in records:
                if share.position != position or share.paused or not share.alive or not is_live():
                    break
                self.last = [(share, record.offset)]
                share.position = position = record.offset + 1
                yield record
            else:
                if share.position != position or share.paused or not share.alive:
                    continue
                if error is None:
                    share.position = after
                else:
                    share.position = int(batch.column("offset")[len(records)].as_py())
                    failed = failed or (share, share.position, error)
                    self._let_others(share)
        if failed and failed[0].position == failed[1] and failed[0].alive:
            raise failed[2]

    def finds_nothing(self, now: float, look: Callable[[str], State | SparklogError | None]) -> bool:
        """Whether a call that does not wait would find nothing, and has nothing else to do.

        `look` gives the newest state of a topic; None if a look at it is due and takes long.

        All is read, topics are as they were, and no turn is due: each tenth of a second has at least one turn.
        """
        if not self._idle or self._news or self._within or self._beside or self.woken or now - self._looked >= self._turn_s:
            return False
        return all(look(name) is state for name, state in self.states.items())

    def take(self, timeout_s: float, records_max: int, bytes_max: int) -> Steps[list[Taken]]:
        """The next records as soon as there are any; the caller sets the positions after them. Empty after the timeout, or when woken."""
        if self._within:
            raise SparklogError("CONSUMER_IN_CALLBACK", event=self._within)
        now = yield from ask.Now()
        yield from self._turn(now)
        end = (yield from ask.Now()) + timeout_s if timeout_s else 0.0
        while True:
            found = [] if self.closed else (yield from self._look_and_take(now, records_max, bytes_max))
            if found:
                if not self._settings.shares or (yield from ask.IsLive()):
                    self.given_records += sum(each.batch.num_rows for each in found)
                    self.given_bytes += sum(each.size for each in found)
                    return found
                for each in found:  # it took so long that others may have its shares
                    each.share.batch = None
            left = end - (yield from ask.Now()) if timeout_s else 0.0
            if self.woken or self.closed or (left <= 0 and not found):
                self.woken = False
                return []
            if not found:
                yield from ask.Wait(min(self._settings.interval_s, left))
            now = yield from ask.Now()
            yield from self._turn(now)

    def _let_others(self, share: AssignedPartition) -> None:
        """A share that cannot go on has its next turn after all others."""
        if share in self._turns:
            self._turns = deque([*(each for each in self._turns if each is not share), share])

    def _fail(self) -> None:
        """Raises the error of a record at which a share stopped, if the program does not know of it."""
        for share in self._turns if not self._within else ():
            if share.failed and share.failed.to_tell and share.position == share.failed.offset and share.alive and not share.paused:
                share.failed.to_tell = False
                raise share.failed.error

    def _look_and_take(self, now: float, records_max: int, bytes_max: int) -> Steps[list[Taken]]:
        """The fetched records, after a look for more if there are no records, or if the last look is a poll interval ago."""
        looked = False
        while True:
            if self._idle or now - self._looked >= self._settings.interval_s:
                # Records of one topic do not wait for looks at others. Without records, the look is waited for.
                looked = self._idle or not self._settings.far
                yield from self._look(now)
            if not self._idle:
                yield from self.settle()
                yield from self._look_at_barriers()
                before = self._positions()
                if found := (yield from self._take(records_max, bytes_max)):
                    return found
                if self._news or before != self._positions():
                    continue  # offsets without records were passed, or a topic is in another state
                # By the same look at the group as the records that were taken.
                self._idle = not any(
                    TopicPartition(share.partition.topic, awaited) not in self.shares
                    for share, donors in self._blocked()
                    for awaited in donors
                )
            if looked or not self._idle:
                return []

    def _positions(self) -> list[int | None]:
        return [share.position for share in self.shares.values()]

    def _take(self, records_max: int, bytes_max: int) -> Steps[list[Taken]]:
        """The next records of some shares. Each has one turn, which ends with the part that was read."""
        found: list[Taken] = []
        fetches = self._settings.far and any(share.batch is None or share.batch_from != share.position for share in self._turns)
        if fetches:
            yield from ask.Expect(self._fetches({}))
        for share in list(self._turns):
            taken = None
            if share.alive and not share.paused and not share.asked:
                taken = yield from self._take_of(share, records_max, min(bytes_max, self._settings.part_bytes))
            if taken:
                found.append(taken)
                records_max -= taken.batch.num_rows
                bytes_max -= taken.size
            full = records_max <= 0 or bytes_max <= 0
            if not (full and taken and share.batch is not None):
                self._turns.rotate(-1)
            if full:
                break
        if fetches and found:
            yield from ask.Expect(self._fetches({each.share: each.after for each in found}))
        return found

    def _fetches(self, taken: Mapping[AssignedPartition, int]) -> list[ask.Fetch]:
        """The next fetches of all shares, in their turns. `taken` has the positions of shares after the records that are given now."""
        fetches = []
        shares = [share for share in self._turns if share.alive and not share.paused and not share.asked]
        settings = self._settings
        size = max(settings.part_bytes, min(_PARTS * settings.part_bytes, settings.fetch_bytes // max(1, len(shares))), _EXPECTED_BYTES_MIN)
        for share in shares:
            at = taken.get(share, share.position)
            if share.batch is not None and share.batch_from == at:
                at = share.batch_to
            if at is not None and at < min(self._end(share), until(self._open.get(share.partition.topic, {}), share.number)):
                fetches.append(ask.Fetch(share.partition, share.topic_id, at, size))
        return fetches

    def _take_of(self, share: AssignedPartition, records_max: int, bytes_max: int) -> Steps[Taken | None]:
        """The next records of a share; None without records. The position goes on over empty offsets."""
        topic = share.partition.topic
        end = until(self._open.get(topic, {}), share.number)
        while True:
            assert share.position is not None
            if topic in self._news or share.position >= min(self._end(share), end):
                return None
            if share.batch is not None and share.batch_from == share.position:
                break
            part = yield from ask.Fetch(share.partition, share.topic_id, share.position, bytes_max)
            if part.state is not None and part.state is not self.states.get(topic):
                self._news[topic] = part.state
                return None  # this position may be in a topic that is gone
            if part.offset == share.position:
                return None
            if part.batches:
                share.batch, share.batch_from, share.batch_to = together(part.batches), share.position, part.offset
            else:
                share.batch, share.position = None, min(part.offset, end)
        batch = share.batch
        rows = min(records_max, batch.num_rows if share.batch_to <= end else rows_before(batch, end))
        if not rows:
            share.position = share.batch_from = end
            return None
        if batch.num_rows > rows:
            rest, batch = batch.slice(rows), batch.slice(0, rows)
            share.batch, share.batch_from = rest, last_offset(batch) + 1  # both or neither, also at an interrupt
        else:
            share.batch, share.batch_from = None, share.batch_to
        return Taken(share, batch, share.batch_from, batch.nbytes)

    # ---- the barrier

    def _look_at_barriers(self) -> Steps[None]:
        """Finds out what waits. It asks for the positions of others if that depends on a partition that this consumer does not read."""
        self._find_open()
        if self.has_group and self._depends:
            now = yield from ask.Now()
            if now - self._asked >= self._settings.interval_s:
                self._asked = now
                yield from self._settle()
                self._others = yield from ask.LookAtPositions()
                for barrier in self._barriers.values():
                    barrier.forget()
                self._find_open()
        for share, donors in self._blocked():
            if (waits := (share.partition, tuple(sorted(donors.items())))) not in self._told:
                self._told.add(waits)
                _log.info("%s-%d waits for %s", *share.partition, ", ".join(f"partition {n} up to offset {to}" for n, to in donors.items()))

    def _find_open(self) -> None:
        self._open, self._depends = {}, False
        for topic, state in self.states.items():
            if state.routing and state.routing.past:
                barrier = self._barriers.setdefault(topic, Barrier())
                if found := barrier.open(state, lambda number, state=state: self._consumed(state, number)):  # type: ignore[misc]
                    self._open[topic] = found

    def _consumed(self, state: State, number: int) -> int | None:
        """The offset up to which a partition was consumed; None if neither the consumer nor its group reads it, as far as is known."""
        partition = TopicPartition(state.topic, number)
        share = self.shares.get(partition)
        if share is not None and share.topic_id == state.topic_id:
            return share.position or 0
        self._depends = True
        found = self._others.get((partition, state.topic_id))
        return found.offset if found else 0 if self._settings.shares else None

    def _blocked(self) -> list[tuple[AssignedPartition, dict[int, int]]]:
        """The shares that wait, each with what for."""
        found = []
        for topic, barriers in self._open.items():
            for number, cuts in barriers.items():
                share = self.shares.get(TopicPartition(topic, number))
                if share is None or not share.alive or share.position is None or share.position >= self._end(share):
                    continue
                waits: dict[int, int] = {}
                for cut, awaited in cuts:
                    if share.position >= cut:
                        for each, offset in awaited.items():
                            waits[each] = max(offset, waits.get(each, 0))
                if waits:
                    found.append((share, waits))
        return found

    def waiting(self) -> Steps[dict[TopicPartition, dict[TopicPartition, int]]]:
        """For each partition that waits, the partitions that it waits for, each with the offset up to which they must be consumed."""
        yield from self.settle()
        yield from self._look_at_barriers()
        return {
            share.partition: {TopicPartition(share.partition.topic, each): offset for each, offset in donors.items()}
            for share, donors in self._blocked()
        }
