"""Commits that a consumer does not wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from sparklog.consumer.records import OffsetAndMetadata, TopicPartition

Offsets = dict[TopicPartition, OffsetAndMetadata]
Committed = Callable[[Offsets, BaseException | None], object]
"""Is called with the offsets of a commit, and its error; None if it was made."""
Given = Mapping[TopicPartition, tuple[str, OffsetAndMetadata]]


class Beside:
    """Commits in a thread of its own, one after another in the order in which they were asked for. One thread calls it."""

    def __init__(self, commit: Callable[[Given], None]) -> None:
        self._commit = commit
        self._executor: ThreadPoolExecutor | None = None
        self._asked: deque[tuple[Future[None], Offsets, Committed | None]] = deque()

    def ask(self, offsets: Given, callback: Committed | None) -> Future[None]:
        """Begins a commit. `callback` is called by `tell` or `settle`, once it is known how it ended."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "commits of a consumer")
        found = self._executor.submit(self._commit, offsets)
        self._asked.append((found, {partition: value for partition, (_, value) in offsets.items()}, callback))
        return found

    @property
    def is_idle(self) -> bool:
        """Whether no commit is on its way."""
        return not self._asked

    def tell(self) -> None:
        """Calls what is to be called after commits that have ended."""
        while self._asked and self._asked[0][0].done():
            found, offsets, callback = self._asked.popleft()
            if callback is not None:
                callback(offsets, found.exception())

    def settle(self) -> None:
        """Waits until all have ended, so that a later commit comes after them."""
        while self._asked:
            self._asked[0][0].exception()
            self.tell()

    def end(self) -> None:
        """Waits until all have ended, and ends the thread."""
        self.settle()
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None
