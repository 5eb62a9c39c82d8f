"""The slots of a topic whose exchange levels the loads of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparklog.errors import SparklogError
from sparklog.log.keys import routing_of
from sparklog.log.newest_keys import newest_keys
from sparklog.ondisk.features import Binds
from sparklog.ondisk.routing import UNBOUND
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.router import Router
from sparklog.show.display import SHOWN, Display, Displayed, counted

if TYPE_CHECKING:
    import numpy.typing as npt

    Longs = npt.NDArray[np.int64]

MOVES_MAX = 65_536
"""The most slots that one call exchanges."""
_BYTES = 32 << 20
"""The bytes of stored batches that the sample of a partition is meant to have."""
_WORTHWHILE = 0.05
"""No slot moves unless the greatest load falls by this share."""


@dataclass(frozen=True)
class PartitionLoad:
    """How many records of the sample have keys in the slots of a partition, before and after the moves.

    `weight` is 0 if the partition is closed. `moved` is the number of slots that the partition takes. It gives away the
    same number.
    """

    partition: int
    weight: int
    records_before: int
    records_after: int
    moved: int


class SlotMoves(Displayed, dict[int, int]):
    """The new partition of each slot that should move. It is empty if no exchange is worth it. It shows itself as a table of partitions.

    `loads` has the load of each partition. `sql` is the argument `moves` of `CALL partlog.move_slots`, which makes the moves.
    """

    def __init__(self, topic: str, moves: dict[int, int], loads: list[PartitionLoad]) -> None:
        super().__init__(moves)
        self.topic = topic
        self.loads = loads

    @classmethod
    def of(cls, log: TopicLog, state: State, most: int) -> SlotMoves:
        """At most `most` moves. `Topic.suggest_moves` describes how they are chosen."""
        routing = routing_of(state)
        _require_movable(log, state)
        router = Router(state.partitions, state.config["partitioner"], routing.table)
        counts = np.zeros(len(routing.table), dtype=np.int64)
        for partition in range(state.partitions):
            for key, count in newest_keys(log, state, partition, state.starts[partition], _BYTES).items():
                counts[router.slot(key)] += count
        table = np.asarray(routing.table)
        moves = levelled(table, counts, routing.weights, most)
        after = table.copy()
        after[list(moves)] = list(moves.values())
        taken = np.bincount(list(moves.values()), minlength=state.partitions).tolist()
        sums = (sums_of(each, counts, state.partitions).tolist() for each in (table, after))
        rows = zip(range(state.partitions), routing.weights, *sums, taken, strict=True)
        return cls(state.topic, moves, [PartitionLoad(*row) for row in rows])

    @property
    def sql(self) -> str:
        """The moves as SQL: `map(17, 3, 99, 3)`."""
        return f"map({', '.join(f'{slot}, {partition}' for slot, partition in self.items())})"

    def as_dict(self) -> dict[str, Any]:
        """The moves and the loads as JSON types."""
        moves = [{"slot": slot, "partition": partition} for slot, partition in self.items()]
        return {"moves": moves, "partitions": [vars(each) for each in self.loads]}

    def _display(self) -> Display:
        return self.display()

    def display(self, most: int | None = SHOWN, *, moved: bool = False) -> Display:
        """The table of the first partitions, at most that many. `moved` says that the moves were made."""
        about = [f"A sample: {counted(sum(each.records_before for each in self.loads), 'record')} with keys, the newest of each partition"]
        columns = ["partition", "weight", "records before", "records after", "slots moved"]
        rows: list[list[object]] = [list(vars(each).values()) for each in self.loads[:most]]
        title = f"Topic {self.topic}: {counted(len(self), 'slot')} {'moved' if moved else 'to move'}"
        return Display(title, about, columns, rows, more=len(self.loads) - len(rows))


def _require_movable(log: TopicLog, state: State) -> None:
    """Refuses what `CALL partlog.move_slots` refuses: FORMAT_TOO_NEW, REROUTE_PENDING."""
    state.require_known_to(Binds.WRITERS)
    if weights := state.pending_weights:
        raise SparklogError("REROUTE_PENDING", topic=state.topic, root=log.root, weights=weights)


def sums_of(table: Longs, loads: Longs, partitions: int) -> Longs:
    """The load of each partition. `loads` has the load of each slot."""
    bound = table != UNBOUND
    return np.bincount(table[bound], weights=loads[bound], minlength=partitions).astype(np.int64)


def _exchanged(slots: Longs, leaves: np.intp, comes: np.int64) -> Longs:
    """Slots in order, with the slot `comes` in place of the slot at the index `leaves`."""
    rest = np.delete(slots, leaves)
    return np.insert(rest, np.searchsorted(rest, comes), comes)


def levelled(table: Longs, loads: Longs, weights: Sequence[int], most: int) -> dict[int, int]:
    """The new partition of each slot that moves, in order of slots. Each partition keeps its number of slots.

    * table: the partition of each slot.
    * loads: the load of each slot, 0 or more.
    * weights: the weight of each partition; 0 if it is closed.
    * most: how many slots may move.

    The result depends on the arguments alone. It is empty if the greatest load by weight would fall by less than 5 %.
    """
    homes, sums = table.copy(), sums_of(table, loads, len(weights)).astype(np.float64)
    order = np.argsort(table, kind="stable")
    slots = np.split(order, np.searchsorted(table[order], np.arange(len(weights) + 1)))[1:-1]
    opened, shares = np.flatnonzero(weights), np.asarray(weights, dtype=np.float64)
    before = (sums[opened] / shares[opened]).max()
    for _ in range(most // 2):
        by_weight = sums[opened] / shares[opened]
        busiest, idlest = opened[by_weight.argmax()], opened[by_weight.argmin()]
        own, others = slots[busiest], slots[idlest]
        if busiest == idlest or not others.size:
            break
        given = loads[others].argmin()
        back = others[given]
        gains = loads[own] - loads[back]
        fit = (gains > 0) & ((sums[idlest] + gains) / shares[idlest] < by_weight.max())
        if not fit.any():
            break
        # The largest slot whose move lowers the greatest load, or how many partitions have it.
        taken = np.where(fit, gains, 0).argmax()
        chosen = own[taken]
        gain = loads[chosen] - loads[back]
        sums[busiest] -= gain
        sums[idlest] += gain
        slots[busiest], slots[idlest] = _exchanged(own, taken, back), _exchanged(others, given, chosen)
        homes[chosen], homes[back] = idlest, busiest
    fell = before - (sums[opened] / shares[opened]).max()
    if fell < _WORTHWHILE * before:
        return {}
    moved = np.flatnonzero(homes != table)
    return dict(zip(moved.tolist(), homes[moved].tolist(), strict=True))
