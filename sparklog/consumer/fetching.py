"""How a consumer takes the next records of its shares, and returns them to the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa

from sparklog.consumer import requests as ask
from sparklog.consumer.records import ConsumerRecord, TopicPartition, last_offset, rows_before, together
from sparklog.consumer.reroutes import Reroutes
from sparklog.consumer.settings import Settings
from sparklog.consumer.shares import AssignedPartition, Failed, Shares
from sparklog.consumer.subscription import Subscription
from sparklog.steps import Steps

_PARTS = 4
"""The most parts of a share whose bytes are requested before they are fetched."""
_EXPECTED_BYTES_MIN = 1 << 16
Decoded = tuple[list[ConsumerRecord], Exception | None]
"""The records of a batch up to the first that cannot be decoded, and its error."""
Decode = Callable[[TopicPartition, pa.RecordBatch], Decoded]


class Taken(NamedTuple):
    """The next records of a share, the position after them, and how many bytes they have, which Arrow takes long to count."""

    share: AssignedPartition
    batch: pa.RecordBatch
    after: int
    size: int


class Fetching:
    """Takes the next records of shares, in their order, and returns them.

    * A share gives at most one part in a poll, and a share that gave one comes after the others.
    * A position moves when the program gets the records, and not before. It moves over offsets without records at once.
    * No record at or beyond a re-route is taken that its share has not passed.
    """

    def __init__(self, settings: Settings, subscription: Subscription, shares: Shares, reroutes: Reroutes) -> None:
        self._settings, self._subscription, self._shares, self._reroutes = settings, subscription, shares, reroutes
        self.records = self.bytes = 0
        """The records and bytes that were taken, and that the metrics of the consumer do not count yet."""

    # ---- taking records

    def take(self, now: float, records_max: int, bytes_max: int) -> Steps[list[Taken]]:
        """The fetched records. It refreshes topics first if no record is fetched, or if the last refresh was a poll interval ago."""
        shares, refreshed = self._shares, False
        while True:
            if shares.is_idle or now - shares.refreshed >= self._settings.interval_s:
                # Records of one topic do not wait for refreshes of others. Without records, the refresh is waited for.
                refreshed = shares.is_idle or not self._settings.far
                yield from shares.refresh(now)
            if not shares.is_idle:
                yield from shares.resolve()
                yield from self._reroutes.refresh()
                before = self._positions()
                if found := (yield from self._take(records_max, bytes_max)):
                    return found
                if self._subscription.news or before != self._positions():
                    continue  # offsets without records were passed, or a topic is in another state
                # By the same positions of the group as the records that were taken.
                shares.is_idle = not self._reroutes.waits_for_others()
            if refreshed or not shares.is_idle:
                return []

    def _positions(self) -> list[int | None]:
        return [share.position for share in self._shares.held.values()]

    def _take(self, records_max: int, bytes_max: int) -> Steps[list[Taken]]:
        """The next records of some shares. Each gives one part."""
        found: list[Taken] = []
        shares = self._shares
        fetches = self._settings.far and any(not share.has_fetched for share in shares.order)
        if fetches:
            yield from self._expect({})
        for share in list(shares.order):
            taken = None
            if share.is_read:
                taken = yield from self._take_of(share, records_max, min(bytes_max, self._settings.part_bytes))
            if taken:
                found.append(taken)
                records_max -= taken.batch.num_rows
                bytes_max -= taken.size
            full = records_max <= 0 or bytes_max <= 0
            if not (full and taken and share.batch is not None):
                shares.order.rotate(-1)
            if full:
                break
        if fetches and found:
            yield from self._expect({each.share: each.after for each in found})
        return found

    def _expect(self, taken: Mapping[AssignedPartition, int]) -> Steps[None]:
        """Requests the bytes of the next fetches of all shares, in their order.

        `taken` has the positions of shares after the records that are returned now.
        """
        fetches = []
        shares = [share for share in self._shares.order if share.is_read]
        settings = self._settings
        size = max(settings.part_bytes, min(_PARTS * settings.part_bytes, settings.fetch_bytes // max(1, len(shares))), _EXPECTED_BYTES_MIN)
        for share in shares:
            at = taken.get(share, share.position)
            if share.batch is not None and share.batch_from == at:
                at = share.batch_to
            if at is not None and at < min(self._shares.end(share), self._reroutes.until(share)):
                fetches.append(ask.Fetch(share.partition, share.topic_id, at, size))
        yield from ask.Expect(fetches)

    def _take_of(self, share: AssignedPartition, records_max: int, bytes_max: int) -> Steps[Taken | None]:
        """The next records of a share; None without records. The position goes on over empty offsets."""
        topic, cut = share.partition.topic, self._reroutes.until(share)
        while True:
            if topic in self._subscription.news or self._is_at_end(share, cut):
                return None
            if share.batch is not None and share.batch_from == share.position:
                break
            assert share.position is not None
            part = yield from ask.Fetch(share.partition, share.topic_id, share.position, bytes_max)
            if part.state is not None and part.state is not self._subscription.states.get(topic):
                self._subscription.news[topic] = part.state
                return None  # this position may be in a topic that is gone
            if part.offset == share.position:
                return None
            if part.batches:
                share.batch, share.batch_from, share.batch_to = together(part.batches), share.position, part.offset
            else:
                share.batch, share.position = None, min(part.offset, cut)
        batch = share.batch
        rows = min(records_max, batch.num_rows if share.batch_to <= cut else rows_before(batch, cut))
        if not rows:
            share.position = share.batch_from = cut
            return None
        if batch.num_rows > rows:
            rest, batch = batch.slice(rows), batch.slice(0, rows)
            share.batch, share.batch_from = rest, last_offset(batch) + 1  # both or neither, also at an interrupt
        else:
            share.batch, share.batch_from = None, share.batch_to
        return Taken(share, batch, share.batch_from, batch.nbytes)

    def _is_at_end(self, share: AssignedPartition, cut: int) -> bool:
        """Whether nothing of a share may be returned, since it is at its end or at a re-route."""
        assert share.position is not None
        return share.position >= min(self._shares.end(share), cut)

    # ---- returning records

    def count(self, taken: list[Taken]) -> None:
        """These records are returned."""
        self.records += sum(each.batch.num_rows for each in taken)
        self.bytes += sum(each.size for each in taken)

    def raise_failed(self) -> None:
        """Raises the error of a record at which a share stopped, if the program does not know of it."""
        for share in self._shares.order:
            failed = share.failed
            if failed and failed.to_raise and share.position == failed.offset and share.alive and not share.paused:
                failed.to_raise = False
                raise failed.error

    def batches(self, taken: list[Taken]) -> dict[TopicPartition, pa.RecordBatch]:
        """The records, as they were taken."""
        self._shares.last = [(each.share, each.share.position) for each in taken]
        for each in taken:
            each.share.position = each.after
        return {each.share.partition: each.batch for each in taken}

    def records_of(self, taken: list[Taken], decode: Decode) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The records, decoded. A record that fails raises its error once those before it were returned; other shares go on."""
        decoded = self._decoded(taken, decode)
        self._shares.last = [(each.share, each.share.position) for each in taken]
        failed: Failed | None = None
        for (share, batch, after, _), (records, error) in zip(taken, decoded, strict=True):
            if error is None:
                share.position = after
            else:
                share.failed = failed = Failed(self._stop(share, batch, len(records)), error, to_raise=True)
        given = self._given(taken, decoded)
        if failed and not given:
            failed.to_raise, self._shares.last = False, []
            raise failed.error
        return given

    def _decoded(self, taken: list[Taken], decode: Decode) -> list[Decoded]:
        """No position moves before all records are decoded: an interrupt in a deserializer skips no record."""
        return [decode(each.share.partition, each.batch) for each in taken]

    def _given(self, taken: list[Taken], decoded: list[Decoded]) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The records before a record that fails are returned, too."""
        return {each.share.partition: records for each, (records, _) in zip(taken, decoded, strict=True) if records}

    def _stop(self, share: AssignedPartition, batch: pa.RecordBatch, number: int) -> int:
        """A share stops at the record of a batch with this number, which cannot be decoded. Returns the offset."""
        share.position = offset = int(batch.column("offset")[number].as_py())
        self._shares.let_others(share)
        return offset

    def one_by_one(self, taken: list[Taken], decode: Decode, is_live: Callable[[], bool]) -> Iterator[ConsumerRecord]:
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
                self._shares.last = [(share, record.offset)]
                share.position = position = record.offset + 1
                yield record
            else:
                if share.position != position or share.paused or not share.alive:
                    continue
                if error is None:
                    share.position = after
                else:
                    stopped = (share, self._stop(share, batch, len(records)), error)
                    failed = failed or stopped
        if failed and failed[0].position == failed[1] and failed[0].alive:
            raise failed[2]
