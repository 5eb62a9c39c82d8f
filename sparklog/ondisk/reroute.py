"""The words of a version about routing: a re-route, a note, a binding or a fill. FORMAT.md sections 10 and 13."""

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


class Fill(NamedTuple):
    """How the slots that are bound next are shared among partitions, by writes that begin before `until`, in ms since 1970."""

    until: int
    shares: tuple[int, ...]

    @classmethod
    def read(cls, of: Fields, weights: Sequence[int]) -> Fill | None:
        """The field of a version or a checkpoint; None if it has none. Damaged if it breaks a rule."""
        if "fill" not in of:
            return None
        fields = Fields(of.value("fill"))
        shares = tuple(integer(share, "shares", 0, WEIGHT_MAX) for share in fields.array("shares", len(weights)))
        if len(shares) != len(weights) or not any(shares):
            raise Damaged(f"the shares of its fill are not of {len(weights)} partitions, or all 0")
        if any(share and not weight for share, weight in zip(shares, weights, strict=True)):
            raise Damaged("a closed partition has a share of its fill")
        return cls(fields.integer("until"), shares)


class Reroute(NamedTuple):
    """The field of a version that gives slots to other partitions. `table` is the CRC-32C of the slot table after it.

    With `asked` it is a note, and moves nothing: it says to which weights the topic is to be re-routed before the next write.
    With `binds` it is no re-route: `moved` are slots that had no partition. With `fill` it is none either, and moves nothing.
    """

    epoch: int
    slots: int
    weights: tuple[int, ...]
    moved: Moved
    table: int
    asked: tuple[int, ...] | None
    binds: bool
    fill: Fill | None

    @property
    def moves(self) -> bool:
        """Whether it is a re-route, and none of the others."""
        return not (self.asked or self.binds or self.fill)

    @classmethod
    def read(cls, fields: Fields, partitions: int) -> Reroute:
        """The field of a version with this number of partitions. Damaged if it breaks a rule."""
        slots = fields.integer("slots", 1, SLOTS_MAX)
        weights, asked = weights_of(fields, partitions), asked_of(fields, partitions)
        moved = moved_of(fields, slots, weights)
        if asked and moved:
            raise Damaged("it is a note, and moves slots")
        binds = fields.mark("binds")
        if binds and (asked or not moved):
            raise Damaged("it binds slots, and is a note or has none")
        fill = Fill.read(fields, weights)
        if fill and (asked or moved):
            raise Damaged("it has a fill, and is a note or moves slots")
        return cls(
            epoch=fields.integer("epoch", 0, EPOCH_MAX),
            slots=slots,
            weights=weights,
            moved=moved,
            table=fields.integer("table", most=2**32 - 1),
            asked=asked,
            binds=binds,
            fill=fill,
        )


def weights_of(fields: Fields, partitions: int) -> tuple[int, ...]:
    weights = tuple(integer(weight, "weights", 0, WEIGHT_MAX) for weight in fields.array("weights", partitions))
    if len(weights) != partitions or not any(weights):
        raise Damaged(f"the weights are not of {partitions} partitions, or all of these are closed")
    return weights


def asked_of(fields: Fields, partitions: int) -> tuple[int, ...] | None:
    if "asked" not in fields:
        return None
    asked = tuple(integer(weight, "asked", 0, WEIGHT_MAX) for weight in fields.array("asked", _PARTITIONS_MAX))
    if len(asked) < partitions or not any(asked):
        raise Damaged(f"it asks for weights of fewer than {partitions} partitions, or to close all of them")
    return asked


def moved_of(fields: Fields, slots: int, weights: Sequence[int], partitions: int | None = None, *, closed: bool = False) -> Moved:
    """`moved`, of `partitions` partitions, all that have weights if that is not given. `closed`: some may have been closed since."""
    most = len(weights) if partitions is None else partitions
    moved: list[tuple[int, tuple[int, ...]]] = []
    seen: set[int] = set()
    for entry in fields.array("moved", most):
        if type(entry) is not list or len(entry) < 2:
            raise Damaged("an entry of `moved` has no slots")
        partition = integer(entry[0], "moved", moved[-1][0] + 1 if moved else 0, most - 1)
        if not weights[partition] and not closed:
            raise Damaged(f"it moves slots to partition {partition}, which is closed")
        its = _ascending(entry[1:], slots)
        if not seen.isdisjoint(its):
            raise Damaged("`moved` moves a slot twice")
        seen.update(its)
        moved.append((partition, its))
    return moved


def _ascending(given: Iterable[object], slots: int) -> tuple[int, ...]:
    found: list[int] = []
    for slot in given:
        found.append(integer(slot, "moved", found[-1] + 1 if found else 0, slots - 1))
    return tuple(found)
