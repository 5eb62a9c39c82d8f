"""Commits that a consumer does not wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait

from sparklog.consumer.records import OffsetAndMetadata, TopicPartition
from sparklog.consumer.requests import Committed, Refused
from sparklog.groups.commits import OffsetCommit


class AsyncCommits:
    """Commits in a thread of its own, one after another in the order in which they were asked for. One thread calls it.

    `ended` is called with the error of each commit, in the calling thread, before its callback is.
    """

    def __init__(self, commit: Callable[[list[OffsetCommit]], Refused], ended: Callable[[BaseException | None], None]) -> None:
        self._commit, self._ended = commit, ended
        self._executor: ThreadPoolExecutor | None = None
        self._asked: deque[tuple[Future[None], list[OffsetCommit], Committed | None]] = deque()

    def ask(self, commits: list[OffsetCommit], callback: Committed | None) -> Future[None]:
        """Begins a commit. `callback` is called by `tell` or `settle`, once it is known how it ended."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "commits of a consumer")
        found = self._executor.submit(self._committing, commits)
        self._asked.append((found, commits, callback))
        return found

    def _committing(self, commits: list[OffsetCommit]) -> None:
        for error in self._commit(commits).values():
            raise error

    def tell(self) -> list[BaseException]:
        """Calls the callbacks of commits that have ended, and returns the errors that these raised."""
        raised: list[BaseException] = []
        while self._asked and self._asked[0][0].done():
            found, commits, callback = self._asked.popleft()
            error = CancelledError() if found.cancelled() else found.exception()  # the program has the future, and may cancel it
            self._ended(error)
            if callback is not None:
                try:
                    callback({TopicPartition(*each.place): OffsetAndMetadata(each.offset, each.metadata) for each in commits}, error)
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
