"""A model of slots: how keys are shared out to partitions, and how that changes while as few of them move as can. FORMAT.md annex A."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sparklog.errors import SparklogError

WEIGHT_MAX = 1_000_000
_SLOTS_LEAST = 4096


class Move(NamedTuple):
    """A slot that gets another partition."""

    slot: int
    before: int
    after: int


def modulo(partitions: int, slots: int | None = None) -> list[int]:
    """The slot table that routes as hashing modulo `partitions` does; `slots` is a multiple of that, at least 4,096 if it is not given."""
    return [slot % partitions for slot in range(slots or partitions * -(-_SLOTS_LEAST // partitions))]


def replan(table: Sequence[int], weights: Mapping[int, int]) -> tuple[list[int], list[Move]]:
    """The next slot table, and the moves that lead there: the fewest that give each partition its share of the slots.

    * table: the partition of each slot. weights: the weight of each partition, 1 to 1,000,000; a partition that is not named keeps no slot.

    The result depends on these two alone; moves come by the partition that takes, and within it by the one that gives.
    CallError OPTION_VALUE for weights that no topic has.
    """
    _require(weights)
    owned = Counter(table)
    targets = _targets(owned, len(table), weights)
    surplus = {partition: owned[partition] - targets.get(partition, 0) for partition in owned}
    given = [slot for partition in sorted(surplus) if surplus[partition] > 0 for slot in _highest(table, partition, surplus[partition])]
    after, moves, at = list(table), [], 0
    for partition in sorted(targets):
        lacks = max(0, targets[partition] - owned[partition])
        for slot in given[at : at + lacks]:
            moves.append(Move(slot, table[slot], partition))
            after[slot] = partition
        at += lacks
    return after, moves


def _require(weights: Mapping[int, int]) -> None:
    for partition, weight in weights.items():
        if operator.index(partition) < 0 or not 1 <= operator.index(weight) <= WEIGHT_MAX:
            reason = f"the weight of a partition must be an integer from 1 to {WEIGHT_MAX}, and its number at least 0"
            raise SparklogError("OPTION_VALUE", option="weights", value=f"{partition}: {weight}", reason=reason)
    if not weights:
        raise SparklogError("OPTION_VALUE", option="weights", value="{}", reason="at least one partition must have a weight")


def _targets(owned: Mapping[int, int], slots: int, weights: Mapping[int, int]) -> dict[int, int]:
    """By largest remainder; of equal ones, first those that have more slots, then the lower numbers."""
    total = sum(weights.values())
    targets = {partition: slots * weight // total for partition, weight in weights.items()}
    left = slots - sum(targets.values())
    for partition in sorted(weights, key=lambda each: (-(slots * weights[each] % total), -owned.get(each, 0), each))[:left]:
        targets[partition] += 1
    return targets


def _highest(table: Sequence[int], partition: int, count: int) -> list[int]:
    return [slot for slot, its in enumerate(table) if its == partition][-count:]
