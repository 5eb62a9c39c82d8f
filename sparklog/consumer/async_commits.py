"""Commits that a consumer does not wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from sparklog.consumer.records import OffsetAndMetadata
from sparklog.consumer.requests import Ats, Committed, Refused


class AsyncCommits:
    """Commits in a thread of its own, one after another in the order in which they were asked for. One thread calls it.

    `ended` is called with each commit and how it ended, in the calling thread, before its callback is.
    """

    def __init__(self, commit: Callable[[Ats], Refused], ended: Callable[[Ats, Refused | BaseException], None]) -> None:
        self._commit, self._ended = commit, ended
        self._executor: ThreadPoolExecutor | None = None
        self._asked: deque[tuple[Future[None], Ats, list[Refused], Committed | None]] = deque()

    def ask(self, ats: Ats, callback: Committed | None) -> Future[None]:
        """Begins a commit. `callback` is called by `tell` or `settle`, once it is known how it ended."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "commits of a consumer")
        refused: list[Refused] = []
        found = self._executor.submit(self._committing, ats, refused)
        self._asked.append((found, ats, refused, callback))
        return found

    def _committing(self, ats: Ats, refused: list[Refused]) -> None:
        refused.append(self._commit(ats))
        for error in refused[0].values():
            raise error

    def tell(self) -> None:
        """Calls the callbacks of commits that have ended."""
        while self._asked and self._asked[0][0].done():
            found, ats, refused, callback = self._asked.popleft()
            error = found.exception()
            self._ended(ats, refused[0] if refused else error or {})
            if callback is not None:
                callback({partition: OffsetAndMetadata(at.offset, at.metadata) for partition, at in ats.items()}, error)

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
