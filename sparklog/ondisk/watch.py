"""The newest states of topics, for a process that asks again and again, and when it looks at each topic."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass

from sparklog.errors import SparklogError
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.store.requests import Answer
from sparklog.store.store import Store

_ASK_S = 1.0
_ASK_FAR_S = 60.0
_SLEPT_S = 10.0
"""In a store over a network, a process that did not look for so long may have slept."""
_IDLE_FAR_S = 1.0
_BUSY_S = 0.05
"""If no thread of the store begins a look within this time, the program's thread looks."""


class NewestState:
    """The newest state of a topic that is known."""

    state: State

    def __init__(self, log: TopicLog, clock: Callable[[], float] = time.monotonic) -> None:
        """CallError TOPIC_NOT_FOUND."""
        self.log = log
        self.asks = 0
        self._clock = clock
        self._looked = 0.0
        self.ask()

    def find(self) -> State:
        """The newest state, by one stat if nothing was committed. It is not known yet: another thread may find it.

        Now and then it costs two stats. Then a process that slept while versions were put and deleted finds out; a single stat does not
        show this (FORMAT.md section 9). That is once a second on a disk; in a store over a network once a minute, and after a long pause.

        CallError TOPIC_NOT_FOUND.
        """
        now, far = self._clock(), self.log.root.store.is_far
        slept, self._looked = far and now - self._looked >= _SLEPT_S, now
        if slept or now - self._asked >= (_ASK_FAR_S if far else _ASK_S) or self.log.is_followed(self.state):
            return self._newest()
        return self.state

    def look(self) -> None:
        """Takes the newest state, as `find` finds it. CallError TOPIC_NOT_FOUND."""
        self.asks += 1
        self.state = self.find()

    def ask(self) -> None:
        """Takes the newest state, also if versions were put and deleted since the last call. CallError TOPIC_NOT_FOUND."""
        self.asks += 1
        self.state = self._newest()

    def _newest(self) -> State:
        self._asked = -_ASK_FAR_S  # until it answers: a topic that does not exist is asked for in each call
        found = self.log.newest()
        self._asked = self._looked = self._clock()
        return found


class Pace:
    """When a process looks at each topic: it waits the longer, the more looks found nothing. It has no clock.

    While the process has records to work on, looks at a topic are `interval_s` apart. If it has none, looks begin `interval_s` apart, and
    the time doubles with each look that finds nothing, up to `idle_s`, which may be shorter.
    """

    def __init__(self, interval_s: float, idle_s: float) -> None:
        self._interval_s, self._idle_s = interval_s, idle_s
        self._looked: dict[str, tuple[float, float]] = {}
        """By topic, the time of the last look, and the wait after it."""

    @classmethod
    def of(cls, store: Store, interval_s: float, idle_s: float | None = None) -> Pace:
        """By default a process without records looks at a topic in each call on a disk, and once a second in a store over a network."""
        return cls(interval_s, (_IDLE_FAR_S if store.is_far else 0.0) if idle_s is None else idle_s)

    def is_due(self, topic: str, now: float, *, idle: bool) -> bool:
        """Whether the process is to look at a topic now. A topic that it did not look at is due."""
        looked, pause = self._looked.get(topic, (0.0, None))
        return pause is None or now - looked >= (pause if idle else max(pause, self._interval_s))

    def looked(self, topic: str, now: float, *, changed: bool) -> None:
        """A look at a topic has ended."""
        pause = self._looked.get(topic, (0.0, 0.0))[1]
        self._looked[topic] = now, min(self._idle_s, self._interval_s if changed or not pause else 2 * pause)


@dataclass(slots=True)
class _Look:
    """A look that is under way. It does not count if the topic was asked for since."""

    topic: NewestState
    asks: int
    answer: Answer[State]

    def is_ready(self) -> bool:
        """Whether it has ended, or no thread makes it, as after a fork, or with one request at once. Then the program's thread makes it."""
        return self.answer.is_there() or not self.answer.has_thread()


class TopicWatch:
    """Looks at topics again and again, at several at once where the store is far. News of one topic do not wait for looks at others.

    One thread uses it.
    """

    def __init__(self, store: Store, pace: Pace, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._pace, self._clock = store, pace, clock
        self._under_way: dict[str, _Look] = {}

    def is_due(self, name: str) -> bool:
        """Whether `news` would look at a topic, or has news of it."""
        look = self._under_way.get(name)
        return look.is_ready() if look else self._pace.is_due(name, self._clock(), idle=True)

    def news(self, topics: Mapping[str, NewestState], *, idle: bool) -> dict[str, State | SparklogError]:
        """Begins the looks that are due. Returns, by topic, the states that are others now, and the errors.

        `idle`: the process has nothing else to do. Then the call waits for news, as long as a look is under way.
        """
        now = self._clock()
        due = [name for name in topics if name not in self._under_way and self._pace.is_due(name, now, idle=idle)]
        found: dict[str, State | SparklogError] = {}
        if not self._store.is_far:
            for name in due:
                self._take(found, name, topics[name], topics[name].find)
            return found
        for name in [name for name, look in self._under_way.items() if topics.get(name) is not look.topic]:
            self._under_way.pop(name).answer.drop()
        for name in due:
            self._under_way[name] = _Look(topics[name], topics[name].asks, self._store.begin(_find, topics[name]))
        self._take_ended(found)
        while idle and self._under_way and not found:
            wait([look.answer.future for look in self._under_way.values()], _BUSY_S, FIRST_COMPLETED)
            self._take_ended(found)
            waiting = next((name for name, look in self._under_way.items() if look.answer.waits_for_others()), None)
            if waiting is not None and not found:
                # All threads of the store are busy.
                self._take_one(found, waiting)
        return found

    def _take_ended(self, found: dict[str, State | SparklogError]) -> None:
        for name in [name for name, look in self._under_way.items() if look.is_ready()]:
            self._take_one(found, name)

    def _take_one(self, found: dict[str, State | SparklogError], name: str) -> None:
        look = self._under_way.pop(name)
        self._take(found, name, look.topic, look.answer.result, look.asks)

    def _take(
        self, found: dict[str, State | SparklogError], name: str, topic: NewestState, find: Callable[[], State], asks: int | None = None
    ) -> None:
        """Takes what a look found, unless the topic was asked for since."""
        try:
            state = find()
            if asks in (None, topic.asks) and state is not topic.state:
                topic.state = found[name] = state
        except SparklogError as error:
            if asks in (None, topic.asks):
                found[name] = error
        self._pace.looked(name, self._clock(), changed=name in found)


def _find(topic: NewestState) -> State:
    return topic.find()
