"""How a topic with slots routes keys, and how it did for the records that it still has. FORMAT.md annex A."""

from __future__ import annotations

import bisect
import functools
import sys
from array import array
from collections.abc import Sequence
from typing import NamedTuple

import google_crc32c

from sparklog.ondisk.fields import Fields, integer
from sparklog.ondisk.reroute import EPOCH_MAX, SLOTS_MAX, Binding, Moved, Reroute, RoutingChange, moved_of, weights_of
from sparklog.store.store import Damaged

UNBOUND = 0xFFFF
"""In place of the partition of a slot that has none yet."""
SLOTS = 65_536
"""How many slots a topic has whose slots get a partition when they are first used, if its configuration does not say."""
_NUMBERS_MAX = 2_000_000
_SLOTS_LEAST = 4096


class Past(NamedTuple):
    """A re-route that has records from before it.

    `cut` has the end offset before it of each partition that gave or got slots, 0 for a partition that it added. Any other partition keeps
    its cut of the re-route before, 0 without such a re-route.
    """

    version: int
    cut: tuple[int, ...]
    moved: Moved

    def cut_of(self, partition: int) -> int:
        """The cut in a partition, which a later re-route may have added."""
        return self.cut[partition] if partition < len(self.cut) else 0

    @property
    def numbers(self) -> int:
        """How many numbers it has, for the limit of section 10."""
        return len(self.cut) + sum(1 + len(slots) for _, slots in self.moved)


class Routing:
    """The routing of a topic at one version. It never changes."""

    def __init__(
        self,
        epoch: int,
        weights: tuple[int, ...],
        first: array[int],
        table: array[int],
        past: Sequence[Past],
    ) -> None:
        """`table` has the partition of each slot. So has `first`, before the oldest of `past`: the re-routes with records from before."""
        self.epoch = epoch
        self.weights = weights
        self.first = first
        self.table = table
        self.past = tuple(past)

    @classmethod
    def modulo(cls, partitions: int, slots: int | None = None) -> Routing:
        """The routing of a topic without slots, as a topic with that number of slots."""
        table = array("H", (slot % partitions for slot in range(slots or partitions * -(-_SLOTS_LEAST // partitions))))
        return cls(0, (1,) * partitions, table, table, ())

    @classmethod
    def unbound(cls, partitions: int, slots: int) -> Routing:
        """The routing before the version that begins a topic whose slots have no partition."""
        table = array("H", [UNBOUND]) * slots
        return cls(0, (1,) * partitions, table, table, ())

    def bound(self, binding: Binding) -> Routing:
        """The routing after a binding. Damaged if it breaks a rule.

        A slot that is bound counts as if it had always been: it has no older record.
        """
        first, table = self.first[:], self.table[:]
        for partition, slots in binding.moved:
            for slot in slots:
                if slot >= len(table) or table[slot] != UNBOUND:
                    raise Damaged(f"it binds slot {slot}, which has a partition or does not exist")
                first[slot] = table[slot] = partition
        routing = Routing(self.epoch, self.weights, first, table, self.past)
        routing._require(binding.table)
        return routing

    @classmethod
    def read(cls, fields: Fields, version: int, ends: Sequence[int], *, unbound: bool) -> Routing:
        """The field of a checkpoint of a version, after which the partitions end there. Damaged if it breaks a rule.

        `unbound`: whether slots without a partition may exist.
        """
        slots = fields.integer("slots", 1, SLOTS_MAX)
        weights = weights_of(fields)
        _require_weights(weights, len(ends))
        partitions = fields.array("first", slots)
        if len(partitions) != slots:
            raise Damaged(f"its first slot table has {len(partitions)} of {slots} slots")
        most = len(ends) - 1
        first = array("H", (integer(each, "first", 0, UNBOUND if unbound and each == UNBOUND else most) for each in partitions))
        past = list[Past]()
        for entry in fields.array("reroutes", _NUMBERS_MAX):
            item = Fields(entry)
            cut = item.integers("cut", len(ends))
            before = past[-1] if past else None
            one = Past(
                item.integer("version", before.version + 1 if before else 0, version),
                cut,
                moved_of(item, slots, len(cut)),
            )
            _require_risen(before, cut)
            past.append(one)
        _require_risen(past[-1] if past else None, ends)
        routing = cls(fields.integer("epoch", 0, EPOCH_MAX), weights, first, _after(first, past), past)
        routing._require(fields.integer("table", most=2**32 - 1))
        return routing

    def followed_by(self, reroute: Reroute, version: int, ends: tuple[int, ...]) -> Routing:
        """The routing after a re-route, before whose version the partitions end there. Damaged if it cannot come next."""
        _require_weights(reroute.weights, len(ends))
        if (reroute.epoch, reroute.slots) != (self.epoch + 1, len(self.table)):
            raise Damaged("its routing epoch or its number of slots does not follow those of the version before it")
        for partition, weight in enumerate(self.weights):
            if not weight and reroute.weights[partition]:
                raise Damaged(f"it opens partition {partition}, which is closed")
        one = Past(version, self._cut(reroute.moved, ends), reroute.moved)
        routing = Routing(reroute.epoch, reroute.weights, self.first, _after(self.table, [one]), (*self.past, one))
        routing._require(reroute.table)
        return routing

    def _cut(self, moved: Moved, ends: Sequence[int]) -> tuple[int, ...]:
        """The cut of the next re-route. A partition that neither gives nor gets slots keeps the cut that it had."""
        cut = [self.past[-1].cut_of(partition) if self.past else 0 for partition in range(len(ends))]
        for to, slots in moved:
            for partition in {to, *(self.table[slot] for slot in slots)} - {UNBOUND}:
                cut[partition] = ends[partition]
        return tuple(cut)

    def since(self, starts: Sequence[int]) -> Routing:
        """The same without the oldest re-routes that no record is from before; `starts` has the log start offset of each partition."""
        gone = 0
        while gone < len(self.past) and all(cut <= start for cut, start in zip(self.past[gone].cut, starts, strict=False)):
            gone += 1
        return Routing(self.epoch, self.weights, self.table_after(gone), self.table, self.past[gone:]) if gone else self

    def _require(self, table: int) -> None:
        for partition in sorted(set(self.table)):
            if partition != UNBOUND and (partition >= len(self.weights) or not self.weights[partition]):
                raise Damaged(f"partition {partition} has slots, and is closed or not there")
        if len(self.past) > self.epoch:
            raise Damaged(f"it has had {self.epoch} re-routes, and has {len(self.past)}")
        if self.crc != table:
            raise Damaged("its slot table is not that of its checksum")
        if (numbers := sum(each.numbers for each in self.past)) > _NUMBERS_MAX:
            raise Damaged(f"its re-routes have {numbers} numbers, more than {_NUMBERS_MAX}")

    @functools.cached_property
    def crc(self) -> int:
        """The CRC-32C of the slot table: two bytes for each slot, the low one first."""
        table = self.table[:]
        if sys.byteorder == "big":
            table.byteswap()
        return int(google_crc32c.value(table.tobytes()))

    def reroutes_before(self, partition: int, offset: int) -> int:
        """The number of re-routes in `past` that an offset of a partition comes after."""
        return bisect.bisect_right(self.past, offset, key=lambda each: each.cut_of(partition))

    def partition(self, slot: int, reroutes: int) -> int:
        """The partition that had a slot after this number of re-routes in `past`."""
        moves = self._moves.get(slot, ())
        nth = bisect.bisect_right(moves, reroutes, key=lambda each: each[0])
        return moves[nth - 1][1] if nth else self.first[slot]

    @functools.cached_property
    def _moves(self) -> dict[int, list[tuple[int, int]]]:
        """By slot, after which re-routes it was in another partition, and in which one."""
        moves: dict[int, list[tuple[int, int]]] = {}
        for after, each in enumerate(self.past, 1):
            for partition, slots in each.moved:
                for slot in slots:
                    moves.setdefault(slot, []).append((after, partition))
        return moves

    def table_after(self, reroutes: int) -> array[int]:
        """The slot table after this number of re-routes in `past`."""
        return _after(self.first, self.past[:reroutes])

    def donors(self) -> list[dict[int, set[int]]]:
        """For each re-route in `past`, the partitions that gave slots, by the partition that took them."""
        found = []
        table = self.first[:]
        for each in self.past:
            found.append({to: {table[slot] for slot in slots} for to, slots in each.moved})
            for to, slots in each.moved:
                for slot in slots:
                    table[slot] = to
        return found

    def agrees_with(self, change: RoutingChange) -> bool:
        """Whether a version has the same routing as this routing of its checkpoint."""
        same = isinstance(change, Binding) or change[:3] == (self.epoch, len(self.table), self.weights)
        return same and change.table == self.crc

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Routing) and self._told() == other._told()

    def __hash__(self) -> int:
        return hash((self.epoch, self.crc))

    def _told(self) -> tuple[object, ...]:
        return self.epoch, self.weights, self.first, self.table, self.past

    def __repr__(self) -> str:
        slots = f"{len(self.table)} slots of CRC {self.crc}"
        return f"routing epoch {self.epoch}, weights {self.weights}, {slots}, {len(self.past)} re-routes"


def _after(first: array[int], past: Sequence[Past]) -> array[int]:
    """The slot table after these re-routes; it is copied once for all. Damaged if a slot moves that has no partition, or to its own."""
    table = first[:] if past else first
    for each in past:
        for partition, slots in each.moved:
            for slot in slots:
                if table[slot] in (partition, UNBOUND):
                    raise Damaged(f"slot {slot} is in partition {partition} already, or in none")
                table[slot] = partition
    return table


def _require_weights(weights: Sequence[int], partitions: int) -> None:
    if len(weights) != partitions:
        raise Damaged(f"it has {len(weights)} weights, and {partitions} partitions")


def _require_risen(before: Past | None, ends: Sequence[int]) -> None:
    for partition, cut in enumerate(before.cut if before else ()):
        if partition >= len(ends) or cut > ends[partition]:
            raise Damaged(f"the cut of partition {partition} falls")
