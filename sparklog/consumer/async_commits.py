"""Commits that a consumer does not wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait

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

    def tell(self) -> list[BaseException]:
        """Calls the callbacks of commits that have ended, and returns the errors that these raised."""
        raised: list[BaseException] = []
        while self._asked and self._asked[0][0].done():
            found, ats, refused, callback = self._asked.popleft()
            error = CancelledError() if found.cancelled() else found.exception()  # the program has the future, and may cancel it
            self._ended(ats, refused[0] if refused else error or {})
            if callback is not None:
                try:
                    callback({partition: OffsetAndMetadata(at.offset, at.metadata) for partition, at in ats.items()}, error)
                except BaseException as its:
                    raised.append(its)
        return raised

    def settle(self) -> list[BaseException]:
        """Waits until all have ended, so that a later commit comes after them. Returns the errors of their callbacks."""
        raised: list[BaseException] = []
        while self._asked:
            wait([self._asked[0][0]])
            raised += self.tell()
        return raised

    def end(self) -> list[BaseException]:
        """As `settle`, and ends the thread."""
        raised = self.settle()
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None
        return raised
