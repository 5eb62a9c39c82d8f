"""Carries out the requests of a consumer's core: files, time, the group's table, and the program's callbacks. It decides nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sparklog.consumer import requests as ask
from sparklog.consumer.async_commits import AsyncCommits
from sparklog.consumer.core import Core
from sparklog.consumer.groups import ConsumerGroup
from sparklog.consumer.metrics import ConsumerMetrics
from sparklog.consumer.records import TopicPartition
from sparklog.consumer.requests import FetchReply, Refused
from sparklog.consumer.topic_reads import TopicReads
from sparklog.errors import SparklogError
from sparklog.groups.commits import OffsetCommit
from sparklog.ondisk.prefetch import Prefetch, Span
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_logs import TopicLogs
from sparklog.ondisk.watch import Pace, TopicWatch
from sparklog.steps import Request, Steps, T, run

if TYPE_CHECKING:
    from sparklog.groups import OffsetTable

_log = logging.getLogger(__name__)


class Shell:
    """Runs the calls of one consumer. `tells` calls the program's callback of an event; `dual` is a second table for the commits."""

    def __init__(
        self,
        core: Core,
        logs: TopicLogs,
        group: ConsumerGroup,
        tells: Callable[[str, list[TopicPartition]], object],
        dual: OffsetTable | None,
        fetch_bytes: int,
        pace: Pace,
    ) -> None:
        self._core, self._logs, self._tells, self._dual = core, logs, tells, dual
        self.group = group
        self._topics: dict[str, TopicReads] = {}
        self._watch = TopicWatch(logs.root.store, pace)
        self._prefetch = Prefetch(logs.root.store, fetch_bytes)
        self.async_commits = AsyncCommits(self._commit, core.commits.ended)
        self.metrics = ConsumerMetrics()

    @property
    def group(self) -> ConsumerGroup:
        """The group of the consumer."""
        return self._group

    @group.setter
    def group(self, group: ConsumerGroup) -> None:
        self._group = group
        self._core.shares.is_committed = group.is_committed

    def run(self, steps: Steps[T]) -> T:
        """Carries out the requests of a call, until the call has its answer."""
        return run(steps, self.reply)

    def finds_nothing(self) -> bool:
        """Whether a call that does not wait would find nothing. It costs less than the call."""
        return self._core.finds_nothing(time.monotonic(), self._peeked if self._logs.root.store.is_far else self._asked)

    def topic(self, name: str) -> TopicReads:
        """A topic in its newest state, which the core then knows too. CallError TOPIC_NOT_FOUND, TOPIC_NAME_ILLEGAL."""
        found = self._asked(name, surely=True)
        if isinstance(found, SparklogError):
            self._core.shares.saw(name, found)
            raise found
        self._core.shares.saw(name, found)
        return self._topics[name]

    def _asked(self, name: str, *, surely: bool = False) -> State | SparklogError:
        try:
            topic = self._topics.get(name)
            if topic is None:
                topic = self._topics[name] = TopicReads(self._logs, name, self._prefetch)
            elif surely:
                topic.ask()
            else:
                topic.refresh()
            return topic.state
        except SparklogError as error:
            self._forget(name, error)
            return error

    def _forget(self, name: str, error: SparklogError) -> None:
        if error.id == "TOPIC_NOT_FOUND" and self._topics.pop(name, None) is not None:
            self._logs.forget(name)

    def _peeked(self, name: str) -> State | None:
        topic = self._topics.get(name)
        return None if topic is None or self._watch.is_due(name) else topic.state

    # ---- requests

    def reply(self, request: Request[Any]) -> object:
        """Carries out a request. `made` makes the type checker compare the type of the reply."""
        match request:
            case ask.Now():
                return request.made(time.monotonic())
            case ask.Wait():
                time.sleep(request.seconds)
            case ask.ListTopics():
                return request.made(self._logs.root.topics(request.wanted))
            case ask.RefreshTopics():
                return request.made(self._refresh(request))
            case ask.News():
                return request.made(self._news(request))
            case ask.Fetch():
                return request.made(self._fetch(request))
            case ask.Expect():
                self._prefetch.want(span for each in request.fetches for span in self._spans(each))
            case ask.Notify():
                return request.made(self._tell(request))
            case ask.PollGroup():
                return request.made(self.group.poll())
            case ask.Take():
                return request.made(self.group.take())
            case ask.Release():
                return request.made(self._release(request))
            case ask.Join():
                self.group.join(request.topics, request.pattern, request.shares, request.commits)
            case ask.Leave():
                self.group.leave(for_good=request.for_good)
            case ask.IsLive():
                return request.made(self.group.is_live())
            case ask.ReadCommitted():
                return request.made(self.group.positions())
            case ask.CommitSync():
                return request.made(self._commit(request.commits))
            case ask.CommitAsync():
                return request.made(self.async_commits.ask(request.commits, request.callback))
            case ask.AwaitCommits():
                return request.made(self.async_commits.end() if request.end else self.async_commits.settle())
            case ask.NotifyCommits():
                return request.made(self.async_commits.tell())
            case ask.Beat():
                self.group.beat()
            case _:
                raise AssertionError(request)
        return None

    def _refresh(self, request: ask.RefreshTopics) -> dict[str, State | SparklogError]:
        names = list(request.topics)
        found = self._logs.root.store.at_once(lambda name: self._asked(name, surely=request.surely), names)
        return dict(zip(names, found, strict=True))

    def _news(self, request: ask.News) -> dict[str, State | SparklogError]:
        known = {name: topic.newest for name in request.topics if (topic := self._topics.get(name))}
        found = self._watch.news(known, idle=request.idle)
        for name, each in found.items():
            if isinstance(each, SparklogError):
                self._forget(name, each)
        states = {name: topic.state for name, topic in known.items()}
        return states | found | {name: self._asked(name) for name in request.topics if name not in known}

    def _fetch(self, request: ask.Fetch) -> FetchReply:
        topic = self._topics.get(request.partition.topic)
        if topic is None or topic.state.topic_id != request.topic_id:
            return FetchReply([], request.offset, None if topic is None else topic.state)
        part = topic.part(request.partition.partition, request.offset, request.bytes_max)
        return FetchReply(part.batches, part.offset, topic.state)

    def _spans(self, fetch: ask.Fetch) -> Iterator[Span]:
        topic = self._topics.get(fetch.partition.topic)
        if topic is None or topic.state.topic_id != fetch.topic_id:
            return iter(())
        return topic.spans(fetch.partition.partition, fetch.offset, fetch.bytes_max)

    def _tell(self, request: ask.Notify) -> BaseException | None:
        try:
            self.metrics.rebalances.add(len(request.partitions))
            self._tells(request.event, request.partitions)
        except BaseException as error:
            return error
        return None

    def _release(self, request: ask.Release) -> ask.View:
        view = self.group.release(request.shares, request.commits)
        self._follow(request.commits)
        return view

    def _commit(self, commits: list[OffsetCommit]) -> Refused:
        began = time.monotonic()
        try:
            refused = self.group.commit(commits)
        except BaseException:
            self.metrics.failed_commits += 1
            raise
        self.metrics.failed_commits += bool(refused)
        self.metrics.commits.add(1000 * (time.monotonic() - began))
        self._follow([each for each in commits if each.place not in refused])
        return refused

    def _follow(self, commits: list[OffsetCommit]) -> None:
        """Writes the commits of the first table to the second table. A failure there is logged."""
        if self._dual is None or self.group.name is None or not commits:
            return
        try:
            self._dual.generations.follow(self.group.name, self._dual.topics.rows(self.group.name, commits))
        except SparklogError as error:
            _log.warning("Positions of group %s are not in the second table %s: %s", self.group.name, self._dual.path, error)
