"""Offset indexes: the index behind a segment, and the index in the Kafka view. An index is only a hint. FORMAT.md sections 4, 8 and K.2."""

from __future__ import annotations

import numpy as np

from sparklog.ondisk.root import Root
from sparklog.store.store import Absent, Damaged

_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
_BYTES_MAX = 64 * 1024 * 1024


INTERVAL_BYTES = 1 << 16
"""How far apart the entries of an index behind a segment are at least."""


def of_view(root: Root, name: str) -> bytes:
    """The entries of an index in the Kafka view; none if it cannot be read."""
    try:
        return root.store.read(name, _BYTES_MAX)
    except (Absent, Damaged, OSError):
        return b""


def look_up(data: bytes, offset: int) -> tuple[int, int] | None:
    """Offset and position of the last entry with `offset` or a lower one, both relative to the segment; None without such an entry."""
    entries = np.frombuffer(data, dtype=_ENTRY, count=len(data) // _ENTRY.itemsize)
    number = int(np.searchsorted(entries["offset"], offset, side="right")) - 1
    if number < 0:
        return None
    return int(entries["offset"][number]), int(entries["position"][number])
