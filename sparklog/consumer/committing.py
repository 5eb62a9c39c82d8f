"""The commits of a consumer to its group."""

from __future__ import annotations

import logging
from concurrent.futures import Future

from sparklog.consumer import requests as ask
from sparklog.consumer.callbacks import Callbacks
from sparklog.consumer.requests import Committed, Known, Refused
from sparklog.consumer.settings import Settings
from sparklog.consumer.shares import Shares
from sparklog.errors import GenerationFencedError, SparklogError
from sparklog.groups.commits import OffsetCommit
from sparklog.steps import R, Request, Steps

_log = logging.getLogger(__name__)
_ENDS = ("GENERATION_FENCED", "INSTANCE_FENCED", "OFFSETS_TABLE_REPLACED")
"""The errors after which a member cannot go on: its group is another's, or is gone."""


class Committing:
    """Commits the positions of shares.

    * Commits are made in the order of the calls: a commit that is waited for begins when `in_flight` is 0.
    * A commit names the topic id and the epoch of its share: the group refuses a commit of a share that was lost and taken again.
    * The group remembers its positions (`Shares.is_committed`), and nothing here does.
    * Once `is_fenced`, its group takes no later commit of this consumer.
    """

    def __init__(self, settings: Settings, shares: Shares, callbacks: Callbacks) -> None:
        self._settings, self._shares, self._callbacks = settings, shares, callbacks
        self.in_flight = 0
        """The number of asynchronous commits that have not ended, as far as is known."""
        self.is_fenced = False
        """Whether others ended the membership for good."""
        self._tried: float | None = None
        """When it committed last by itself, or first could have."""

    def request(self, request: Request[R]) -> Steps[R]:
        """A request to the group outside of a poll round, which notices that the membership ended. The next round handles that."""
        try:
            return (yield from request)
        except SparklogError as error:
            self.notice(error)
            raise

    def notice(self, error: BaseException | None) -> None:
        """Notices an error that ends the membership."""
        if self._shares.are_of_member and isinstance(error, SparklogError) and error.id in _ENDS:
            self.is_fenced = True

    # ---- calls of the program

    def commit(self, commits: list[OffsetCommit] | None = None) -> Steps[None]:
        """Commits these positions, or all. Each partition is taken by itself: the error names a partition that could not be committed."""
        commits = yield from self._to_commit(commits)
        yield from self.wait()
        refused = yield from self.make(commits)
        for error in refused.values():
            raise error
        self._callbacks.raise_first()

    def commit_async(self, commits: list[OffsetCommit] | None, callback: Committed | None) -> Steps[Future[None]]:
        """Begins to commit these positions, or all, and does not wait for it."""
        commits = yield from self._to_commit(commits)
        self.in_flight += 1
        return (yield from ask.CommitAsync(commits, callback))

    def committed(self) -> Steps[Known]:
        """The offsets that the group has committed, by partition and topic id."""
        yield from self.wait()
        found = yield from ask.ReadCommitted()
        self._callbacks.raise_first()
        return found

    def _to_commit(self, commits: list[OffsetCommit] | None) -> Steps[list[OffsetCommit]]:
        if commits is None:
            yield from self._shares.resolve()
            return self._shares.commits(self._shares.held)
        return commits

    # ---- commits that others ask for

    def make(self, commits: list[OffsetCommit]) -> Steps[Refused]:
        """Commits these positions, if there are any."""
        return (yield from self.request(ask.CommitSync(commits))) if commits else {}

    def make_due(self, now: float, *, at_once: bool = False) -> Steps[None]:
        """Commits the positions that are not committed, if that is due or asked for; and now and then says that the consumer is there.

        A commit that fails is tried again after an interval. GenerationFencedError if the group is another's.
        """
        if not self._settings.has_group:
            return
        self._tried = now if self._tried is None else self._tried
        try:
            if self._settings.commit_s is not None and (at_once or now - self._tried >= self._settings.commit_s):
                yield from self.wait()
                self._tried = now
                refused = yield from self.make(self._shares.not_committed(self._shares.held))
                for error in [each for each in refused.values() if each.id == "MEMBER_FENCED"][:1]:
                    self.warn(error)
            if not self.in_flight:
                yield from ask.Beat()
        except GenerationFencedError:
            raise
        except SparklogError as error:
            self.warn(error)

    def wait(self, *, end: bool = False) -> Steps[None]:
        """Waits for the asynchronous commits. The errors of their callbacks are kept until the poll round is done."""
        raised = yield from ask.AwaitCommits(end)
        self._callbacks.keep(raised)
        self.in_flight = 0

    def notify(self) -> Steps[None]:
        """Calls the callbacks of asynchronous commits that have ended."""
        if self.in_flight:
            self._callbacks.keep((yield from ask.NotifyCommits()))

    def ended(self, error: BaseException | None) -> None:
        """An asynchronous commit has ended, and raised an error if one is given."""
        self.in_flight -= 1
        self.notice(error)

    def warn(self, error: SparklogError) -> None:
        """Logs that a commit failed which the program did not ask for."""
        _log.warning("The positions of group %s could not be committed: %s", self._settings.group, error)
