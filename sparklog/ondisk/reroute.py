"""The field of a version that gives partitions to slots: a re-route or a binding. FORMAT.md annex A."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sparklog.ondisk.fields import Fields, integer
from sparklog.store.store import Damaged

SLOTS_MAX = 2**20
WEIGHT_MAX = 1_000_000
EPOCH_MAX = 2**31 - 1
_PARTITIONS_MAX = 10_000

Moved = Sequence[tuple[int, Sequence[int]]]
"""The slots that move, by the partition that takes them."""


class Reroute(NamedTuple):
    """A version that moves slots to other partitions. `table` is the CRC-32C of the slot table after it."""

    epoch: int
    slots: int
    weights: tuple[int, ...]
    moved: Moved
    table: int


class Binding(NamedTuple):
    """A version that gives their first partition to slots that had none. `table` is as in a re-route."""

    moved: Moved
    table: int


RoutingChange = Reroute | Binding


def read(fields: Fields) -> RoutingChange:
    """The field, which does not say how many partitions the topic has. Damaged if it breaks a rule."""
    table = fields.integer("table", most=2**32 - 1)
    if fields.mark("binds"):
        return Binding(moved_of(fields, SLOTS_MAX, _PARTITIONS_MAX), table)
    slots = fields.integer("slots", 1, SLOTS_MAX)
    weights = weights_of(fields)
    return Reroute(fields.integer("epoch", 0, EPOCH_MAX), slots, weights, moved_of(fields, slots, len(weights)), table)


def weights_of(fields: Fields) -> tuple[int, ...]:
    """`weights`, which are not all 0. Damaged if it breaks a rule."""
    weights = tuple(integer(weight, "weights", 0, WEIGHT_MAX) for weight in fields.array("weights", _PARTITIONS_MAX))
    if not any(weights):
        raise Damaged("no partition has a weight, or all of them are closed")
    return weights


def moved_of(fields: Fields, slots: int, partitions: int) -> Moved:
    """`moved`: slots below `slots`, each once, that go to partitions below `partitions`. Damaged if it breaks a rule."""
    moved: list[tuple[int, tuple[int, ...]]] = []
    seen: set[int] = set()
    for entry in fields.array("moved", partitions):
        if type(entry) is not list or len(entry) < 2:
            raise Damaged("an entry of `moved` has no slots")
        partition = integer(entry[0], "moved", moved[-1][0] + 1 if moved else 0, partitions - 1)
        own = _ascending(entry[1:], slots)
        if not seen.isdisjoint(own):
            raise Damaged("`moved` moves a slot twice")
        seen.update(own)
        moved.append((partition, own))
    return moved


def _ascending(given: Iterable[object], slots: int) -> tuple[int, ...]:
    found: list[int] = []
    for slot in given:
        found.append(integer(slot, "moved", found[-1] + 1 if found else 0, slots - 1))
    return tuple(found)
