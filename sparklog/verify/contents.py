"""The records of a segment: each is decoded, and compared with what readers conclude from the fields of segments and batches.

FORMAT.md section 9.3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sparklog.batches.records import Payload, Records, locate
from sparklog.ondisk.routing import UNBOUND
from sparklog.ondisk.version import Segment
from sparklog.router import Router, router
from sparklog.verify.report import DAMAGE, Finding

Longs = npt.NDArray[np.int64]
_NONE = -(2**63)
_RESTORE = "nothing makes the field right: read the records without conditions on times and keys, and write them to another topic"


class Contents:
    """The records of one segment. `batches` adds batches, and `findings` has the faults, each kind of fault once for a segment."""

    def __init__(
        self,
        segment: Segment,
        partitions: int,
        partitioner: str,
        table: Sequence[int] | None = None,
    ) -> None:
        self._segment = segment
        self._partitions = partitions
        routed = router(partitions, partitioner) if segment.routed and not table else None
        self._router = Router(partitions, partitioner, table) if table else routed
        self._when = " in the routing epoch of the segment" if table else ""
        self._least: int | None = None
        self._greatest = _NONE
        self._claimed = -1
        """The greatest of the times that the batches claim in their headers."""
        self._last = _NONE
        self._found: dict[str, tuple[str, str, int, int]] = {}
        self.records = 0

    def batches(self, found: list[tuple[int, Payload]]) -> None:
        """Adds whole batches, each with its position. Damaged if one breaks a rule of section 3."""
        payloads = [payload for _, payload in found]
        parts = list(locate(payloads)) if len(payloads) > 1 else locate(payloads)
        counted = 0
        having = [(position, payload) for position, payload in found if payload.header.records]
        counts = np.array([payload.header.records for _, payload in having], dtype=np.int64)
        firsts = np.cumsum([0, *counts], dtype=np.int64)
        for part in parts:
            self._check(part, having, firsts, counted)
            counted += part.offsets.size
        self.records += counted
        self._claimed = max(self._claimed, *(payload.header.max_timestamp for payload in payloads))

    def _check(self, records: Records, found: list[tuple[int, Payload]], firsts: Longs, before: int) -> None:
        """Checks some records, which begin at record number `before` of these batches. `firsts` is the number of each batch's first one."""
        size = records.offsets.size
        held = np.flatnonzero((firsts[1:] > before) & (firsts[:-1] < before + size))
        begins = np.clip(firsts[held] - before, 0, None)
        headers = [found[batch][1].header for batch in held]
        times = records.timestamps
        greatest = np.maximum.reduceat(times, begins)
        late = greatest > np.array([header.max_timestamp for header in headers], dtype=np.int64)
        if late.any():
            nth = int(late.argmax())
            problem = f"a record of the batch has the time {greatest[nth]}, later than its max timestamp {headers[nth].max_timestamp}"
            self._note("TIMES_WRONG", problem, found[held[nth]][0], int(records.offsets[begins[nth]]))
        least = int(times.min())
        self._least = least if self._least is None else min(self._least, least)
        self._greatest = max(self._greatest, int(greatest.max()))
        if self._segment.ordered:
            self._order(records, found, held, begins, firsts[held] >= before)
        self._last = int(times[-1])
        if self._segment.routed:
            self._routes(records, found, firsts, before)

    def _order(self, records: Records, found: list[tuple[int, Payload]], held: Longs, begins: Longs, whole: object) -> None:
        times = records.timestamps
        falls = np.flatnonzero(times[1:] < times[:-1]) + 1
        first = 0 if times[0] < self._last else int(falls[0]) if falls.size else None
        if first is not None:
            batch = int(np.searchsorted(begins, first, side="right")) - 1
            problem = "the segment is `ordered`, and the time of a record is below that of the record before it"
            self._note("ORDER_WRONG", problem, found[held[batch]][0], int(records.offsets[first]))
        bases = np.array([found[batch][1].header.base_timestamp for batch in held], dtype=np.int64)
        other = np.flatnonzero((times[begins] != bases) & np.asarray(whole))
        if other.size:
            batch = int(other[0])
            problem = "the segment is `ordered`, and the base timestamp of a batch is not the time of its first record"
            self._note("ORDER_WRONG", problem, found[held[batch]][0], int(records.offsets[begins[batch]]))

    def _routes(self, records: Records, found: list[tuple[int, Payload]], firsts: Longs, before: int) -> None:
        sizes = records.key_bytes
        null = sizes < 0
        if null.any():
            self._misrouted(records, int(null.argmax()), "its key is null", found, firsts, before)
            return
        if self._router is None or (self._partitions == 1 and not self._when):
            return
        placed = self._router.of_keys(records.data, records.key_at, sizes)
        wrong = placed != self._segment.partition
        if wrong.any():
            nth = int(wrong.argmax())
            home = "no partition yet" if placed[nth] == UNBOUND else f"partition {placed[nth]}"
            self._misrouted(records, nth, f"its key belongs to {home}{self._when}", found, firsts, before)

    def _misrouted(self, records: Records, nth: int, why: str, found: list[tuple[int, Payload]], firsts: Longs, before: int) -> None:
        batch = int(np.searchsorted(firsts, before + nth, side="right")) - 1
        problem = f"the segment is `routed`, and a record does not belong to the partition: {why}"
        self._note("ROUTE_WRONG", problem, found[batch][0], int(records.offsets[nth]))

    def _note(self, condition: str, problem: str, position: int, offset: int) -> None:
        self._found.setdefault(condition, (condition, problem, position, offset))

    def findings(self, file: str, topic: str, whole: bool) -> list[Finding]:
        """The faults that were found. `whole` says that every batch of the segment was added."""
        segment = self._segment
        if self._least is not None:
            # A record without a time, and a time below −1, count as −1.
            least, greatest = max(-1, self._least), max(-1, self._greatest)
            if segment.min_timestamp > least:
                problem = f"`minTimestamp` of the segment is {segment.min_timestamp}, and a record has the time {least}"
                self._note("TIMES_WRONG", problem, segment.position, segment.base)
            if greatest > segment.max_timestamp or (whole and segment.max_timestamp > max(greatest, self._claimed)):
                problem = f"`maxTimestamp` of the segment is {segment.max_timestamp}, and the greatest time of its records is {greatest}"
                self._note("TIMES_WRONG", problem, segment.position, segment.base)
        impacts = {
            "TIMES_WRONG": "a read with conditions on times may miss records; retention may take the segment at a wrong time",
            "ORDER_WRONG": "a read with conditions on times may miss records of the segment",
            "ROUTE_WRONG": "a read with a condition on the key does not find the record",
        }
        return [
            Finding(DAMAGE, condition, problem, impacts[condition], _RESTORE, topic, segment.partition, offset, file, position)
            for condition, problem, position, offset in self._found.values()
        ]
