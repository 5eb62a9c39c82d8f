"""The offset index of a segment in the Kafka view. It is only a hint. FORMAT.md sections 8 and 9."""

from __future__ import annotations

import numpy as np

from sparklog.ondisk.root import Root
from sparklog.store.store import Absent, Damaged

_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
_BYTES_MAX = 64 * 1024 * 1024


def look_up(root: Root, name: str, offset: int) -> tuple[int, int] | None:
    """Offset and position of the last entry with `offset` or a lower one, both relative to the segment; None if there is no such entry."""
    try:
        data = root.store.read(name, _BYTES_MAX)
    except (Absent, Damaged, OSError):
        return None
    entries = np.frombuffer(data, dtype=_ENTRY, count=len(data) // _ENTRY.itemsize)
    number = int(np.searchsorted(entries["offset"], offset, side="right")) - 1
    if number < 0:
        return None
    return int(entries["offset"][number]), int(entries["position"][number])
