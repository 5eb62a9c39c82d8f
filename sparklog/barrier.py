"""The barrier, which keeps each key in order over re-routes: a partition waits for the partitions from which it took slots.

FORMAT.md section A.9.
"""

from __future__ import annotations

from collections.abc import Callable

from sparklog.ondisk.names import INT64_MAX
from sparklog.ondisk.routing import Routing
from sparklog.ondisk.state import State

Open = dict[int, list[tuple[int, dict[int, int]]]]
"""By partition, the re-routes that it may not pass yet, from old to new: its cut, and the partitions that must reach an offset first."""


class Barrier:
    """The re-routes that keep partitions of one topic from going on. It remembers which re-routes were passed, until `forget`."""

    def __init__(self) -> None:
        self._routing: Routing | None = None
        self._donors: list[dict[int, set[int]]] = []
        self._passed = 0
        """So many of the oldest re-routes keep nothing from going on, and positions only rise."""

    def forget(self) -> None:
        """A position may be lower than before."""
        self._passed = 0

    def open(self, state: State, consumed: Callable[[int], int | None]) -> Open:
        """The re-routes that are not passed yet. `consumed`: the offset up to which a partition was consumed; None if it is not read.

        A partition passes a re-route that gave it keys when two things hold for each donor: its records below the cut are consumed or have
        expired, and it has passed all earlier re-routes that gave it keys.
        """
        if not state.routing or not state.routing.past:
            return {}
        if self._routing is not state.routing:
            self._routing, self._donors, self._passed = state.routing, state.routing.donors(), 0
        found: Open = {}
        waits: dict[int, dict[int, int]] = {}
        """By partition, the offsets that the re-routes so far wait for."""
        for number in range(self._passed, len(self._donors)):
            past = state.routing.past[number]
            taken: dict[int, dict[int, int]] = {}
            for partition, donors in self._donors[number].items():
                needs: dict[int, int] = {}
                for donor in donors:
                    offset, at = past.cut_of(donor), consumed(donor)
                    if at is not None and max(at, state.starts[donor]) < offset:
                        needs[donor] = max(offset, needs.get(donor, 0))
                    for awaited, until in self._waits_of(donor, waits).items():
                        needs[awaited] = max(until, needs.get(awaited, 0))
                if needs:
                    taken[partition] = needs
                    found.setdefault(partition, []).append((past.cut_of(partition), needs))
            for partition, needs in taken.items():
                joined = waits.setdefault(partition, {})
                for awaited, until in needs.items():
                    joined[awaited] = max(until, joined.get(awaited, 0))
            if not found:
                self._passed = number + 1
        return found

    def _waits_of(self, donor: int, waits: dict[int, dict[int, int]]) -> dict[int, int]:
        """The offsets that a donor waits for itself, so that its keys come in order."""
        return waits.get(donor, {})


def until(open: Open, partition: int) -> int:
    """The offset before which records of a partition may be returned."""
    return open[partition][0][0] if partition in open else INT64_MAX
