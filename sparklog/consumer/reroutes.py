"""The shares that wait at re-routes, so that the records of each key come in order."""

from __future__ import annotations

import logging

from sparklog.barrier import Barrier, Open, until
from sparklog.consumer import requests as ask
from sparklog.consumer.committing import Committing
from sparklog.consumer.records import TopicPartition
from sparklog.consumer.requests import Known
from sparklog.consumer.settings import Settings
from sparklog.consumer.shares import AssignedPartition, Shares
from sparklog.consumer.subscription import Subscription
from sparklog.ondisk.state import State
from sparklog.steps import Steps

_log = logging.getLogger(__name__)
_NEVER = float("-inf")


class Reroutes:
    """The re-routes that shares have not passed, by the positions of this consumer and of its group.

    The positions of the group are all of one moment, `_refreshed`. They are asked for only if a re-route depends on a partition that this
    consumer does not read. A barrier remembers re-routes that were passed, until a position may be lower than before.
    """

    def __init__(self, settings: Settings, subscription: Subscription, shares: Shares, commits: Committing) -> None:
        self._settings, self._subscription, self._shares, self._commits = settings, subscription, shares, commits
        self._barriers: dict[str, Barrier] = {}
        self._open: dict[str, Open] = {}
        """The re-routes that were not passed at the last refresh, by topic."""
        self._others: Known = {}
        """The positions of the group."""
        self._refreshed = _NEVER
        self._depends = False
        """Whether a re-route depends on those."""
        self._setbacks = 0
        """The setbacks of shares that the barriers know."""
        self._logged: set[tuple[TopicPartition, tuple[tuple[int, int], ...]]] = set()

    def forget_group(self) -> None:
        """The positions of the group are asked for again: they may have gone back."""
        self._refreshed = _NEVER

    def until(self, share: AssignedPartition) -> int:
        """The offset before which records of a share may be returned."""
        return until(self._open.get(share.partition.topic, {}), share.number)

    def refresh(self) -> Steps[None]:
        """Finds out which shares wait."""
        self._find_open()
        if self._settings.has_group and self._depends:
            now = yield from ask.Now()
            if now - self._refreshed >= self._settings.interval_s:
                self._refreshed = now
                yield from self._commits.wait()
                self._others = yield from ask.ReadCommitted()
                self._forget_passed()
                self._find_open()
        for share, donors in self._blocked():
            if (waits := (share.partition, tuple(sorted(donors.items())))) not in self._logged:
                self._logged.add(waits)
                _log.info("%s-%d waits for %s", *share.partition, ", ".join(f"partition {n} up to offset {to}" for n, to in donors.items()))

    def waits_for_others(self) -> bool:
        """Whether a share waits for a partition that this consumer does not hold."""
        held = self._shares.held
        return any(TopicPartition(share.partition.topic, donor) not in held for share, donors in self._blocked() for donor in donors)

    def waiting(self) -> Steps[dict[TopicPartition, dict[TopicPartition, int]]]:
        """For each partition that waits, the partitions that it waits for, each with the offset up to which they must be consumed."""
        yield from self._shares.resolve()
        yield from self.refresh()
        return {
            share.partition: {TopicPartition(share.partition.topic, each): offset for each, offset in donors.items()}
            for share, donors in self._blocked()
        }

    def _forget_passed(self) -> None:
        for barrier in self._barriers.values():
            barrier.forget()

    def _find_open(self) -> None:
        if self._setbacks != self._shares.setbacks:
            self._setbacks = self._shares.setbacks
            self._forget_passed()
        self._open, self._depends = {}, False
        for topic, state in self._subscription.states.items():
            if state.routing and state.routing.past:
                barrier = self._barriers.setdefault(topic, Barrier())
                if found := barrier.open(state, lambda number, state=state: self._consumed(state, number)):  # type: ignore[misc]
                    self._open[topic] = found

    def _consumed(self, state: State, number: int) -> int | None:
        """The offset up to which a partition was consumed; None if neither the consumer nor its group reads it, as far as is known."""
        partition = TopicPartition(state.topic, number)
        share = self._shares.held.get(partition)
        if share is not None and share.topic_id == state.topic_id:
            return share.position or 0
        self._depends = True
        found = self._others.get((partition, state.topic_id))
        return found.offset if found else 0 if self._subscription.is_member else None

    def _blocked(self) -> list[tuple[AssignedPartition, dict[int, int]]]:
        """The shares that wait, each with the partitions that it waits for, and the offsets up to which these must be consumed."""
        found = []
        for topic, barriers in self._open.items():
            for number, cuts in barriers.items():
                share = self._shares.held.get(TopicPartition(topic, number))
                if share is None or not share.alive or share.position is None or share.position >= self._shares.end(share):
                    continue
                waits: dict[int, int] = {}
                for cut, awaited in cuts:
                    if share.position >= cut:
                        for each, offset in awaited.items():
                            waits[each] = max(offset, waits.get(each, 0))
                if waits:
                    found.append((share, waits))
        return found
