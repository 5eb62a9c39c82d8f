"""The newest batches of each producer, by which a writer knows a batch that is sent again. FORMAT.md annex B."""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sparklog.ondisk.config import PRODUCERS_MAX, usable
from sparklog.ondisk.fields import Fields, integer
from sparklog.ondisk.names import INT64_MAX
from sparklog.store.store import Damaged

SEQUENCES = 2**31
"""Sequences are below this number, and the sequence after the last one is 0."""
EPOCH_MAX = 2**15 - 1
BATCHES_KEPT = 5
"""The most entries of a version, and lines of a checkpoint."""


class ProducerBatch(NamedTuple):
    """A batch of a producer: the sequence of its first record, and its offsets from `base` to before `end`."""

    first: int
    base: int
    end: int

    @property
    def next(self) -> int:
        """The sequence of the first record of the batch after this one."""
        return (self.first + self.end - self.base) % SEQUENCES

    @classmethod
    def of(cls, first: object, base: object, end: object) -> ProducerBatch:
        """The batch with these values of fields. Damaged if one is out of its range."""
        at = integer(base, "base", 0, INT64_MAX)
        return cls(integer(first, "first", 0, SEQUENCES - 1), at, integer(end, "end", at + 1, min(INT64_MAX, at + SEQUENCES - 1)))


class Sent(NamedTuple):
    """A batch of a producer that a version adds."""

    partition: int
    id: int
    epoch: int
    batch: ProducerBatch


class LastBatches(NamedTuple):
    """The last batches of a producer in a partition, from old to new. `time` is the time of the version with the newest."""

    epoch: int
    time: int
    batches: tuple[ProducerBatch, ...]


def sent_of(fields: Fields, partitions: int, added: Iterable[tuple[int, int, int]]) -> list[Sent]:
    """The batches of producers in a version file, which adds segments of these partitions, base offsets and end offsets.

    Damaged if the field breaks a rule.
    """
    segments: dict[int, list[tuple[int, int]]] = {}
    for partition, *offsets in sorted(added):
        segments.setdefault(partition, []).append((offsets[0], offsets[1]))
    ends: dict[int, int] = {}
    found = []
    for entry in fields.array("producers", PRODUCERS_MAX) if "producers" in fields else []:
        item = Fields(entry)
        batch = ProducerBatch.of(*map(item.value, ("first", "base", "end")))
        sent = Sent(item.integer("partition", most=partitions - 1), item.integer("id"), item.integer("epoch", most=EPOCH_MAX), batch)
        if batch.base < ends.get(sent.partition, 0):
            raise Damaged(f"`producers` has batches of partition {sent.partition} that overlap, or not in order of offsets")
        ends[sent.partition] = batch.end
        among = segments.get(sent.partition, [])
        at = bisect_right(among, (batch.base, INT64_MAX)) - 1
        if at < 0 or among[at][1] < batch.end:
            raise Damaged(f"`producers` has a batch of partition {sent.partition} at offset {batch.base} that is in no segment it adds")
        found.append(sent)
    return found


def producer_of(line: object, ends: Sequence[int]) -> tuple[tuple[int, int], LastBatches]:
    """A producer in a line of a checkpoint, of a state with these ends. Damaged if the line breaks a rule."""
    if type(line) is not list or not 4 < len(line) <= 4 + BATCHES_KEPT:
        raise Damaged("a line is not of a producer")
    key = integer(line[0], "partition", 0, len(ends) - 1), integer(line[1], "id", 0, INT64_MAX)
    batches = [_batch(each) for each in line[4:]]
    for before, after in itertools.pairwise(batches):
        if after.base < before.end or after.first != before.next:
            raise Damaged(f"it has batches of producer {key[1]} that do not follow one another")
    if batches[-1].end > ends[key[0]]:
        raise Damaged(f"it has a batch of producer {key[1]} that ends after partition {key[0]}")
    return key, LastBatches(integer(line[2], "epoch", 0, EPOCH_MAX), integer(line[3], "time", 0, INT64_MAX), tuple(batches))


def _batch(values: object) -> ProducerBatch:
    if type(values) is not list or len(values) != 3:
        raise Damaged("`producers` has something other than a batch")
    return ProducerBatch.of(*values)


class Producers:
    """The producers of a state, which `follow` turns into the producers of the next state."""

    def __init__(self, known: Mapping[tuple[int, int], LastBatches] | None = None) -> None:
        self.known = dict(known or {})
        """By partition and id."""
        self._oldest = [(last.time, *key) for key, last in self.known.items()]
        """A heap of all of `known`, and of earlier batches."""
        heapq.heapify(self._oldest)

    def follow(self, sent: Sequence[Sent], ends: Sequence[int], time: int, config: Mapping[str, str]) -> None:
        """A version of this time adds these batches to partitions with these ends. Damaged if it breaks a rule."""
        for partition, id, epoch, batch in sent:
            if batch.base < ends[partition]:
                raise Damaged(f"`producers` has a batch of partition {partition} at offset {batch.base}, below its end {ends[partition]}")
            known = self.known.get((partition, id))
            if known and (epoch < known.epoch or batch.first != (known.batches[-1].next if epoch == known.epoch else 0)):
                raise Damaged(
                    f"the batch of producer {id} at offset {batch.base} of partition {partition} does not follow the one before it"
                )
            kept = known.batches if known and epoch == known.epoch else ()
            self.known[partition, id] = LastBatches(epoch, time, (*kept, batch)[-BATCHES_KEPT:])
            heapq.heappush(self._oldest, (time, partition, id))
        expiration, most = (
            int(usable(config, key, default))
            for key, default in (("producer.id.expiration.ms", "86400000"), ("producer.ids.max", "500000"))
        )
        while self._oldest:
            last, *key = self._oldest[0]
            current = self.known.get((key[0], key[1]))
            if current and current.time == last:
                if time - last < expiration and len(self.known) <= most:
                    break
                del self.known[key[0], key[1]]
            heapq.heappop(self._oldest)
