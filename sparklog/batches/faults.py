"""Exceptions of the modules of this package among themselves. Its callers see a SparklogError instead, which names the file."""

from __future__ import annotations

from sparklog.store.store import Damaged


class TooLarge(Damaged):
    """A batch that the format allows, and that decompresses to more than `limit` bytes, which this process may not hold."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"it decompresses to more than {limit} bytes, the limit of this process")
        self.limit = limit


class TooNew(Exception):
    """A file that a later version of the format wrote, as a reason in words."""


class Unreadable(Exception):
    """A checkpoint that is damaged, deleted or cannot be opened. The same state must be found without it."""


class Vanished(Unreadable):
    """A checkpoint that is absent."""


class Unanswered(Unreadable):
    """A checkpoint that the store could not read, and that may be whole."""
