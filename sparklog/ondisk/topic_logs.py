"""The commit logs of a root's topics, each opened once, however many parts of a program ask for it."""

from __future__ import annotations

import threading
from collections.abc import Collection

from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog

KEPT = 32
"""The most topics that a log or the page keeps. A kept topic has the lines of its segments in memory, and may hold a checkpoint open."""


class TopicLogs:
    """Opens the topics of a root: nothing else does. It keeps the commit log of each topic, with its newest known state.

    Threads may share it.
    """

    def __init__(self, root: Root, most: int | None = None) -> None:
        """Keeps the topics that were asked for last, at most this number; None keeps all."""
        self.root = root
        self._most = most
        self._logs: dict[str, TopicLog] = {}
        self._lock = threading.Lock()

    @property
    def kept(self) -> list[str]:
        """The topics that it keeps, in the order in which they were asked for last."""
        with self._lock:
            return list(self._logs)

    def __reduce__(self) -> tuple[type[TopicLogs], tuple[Root, int | None]]:
        return TopicLogs, (self.root, self._most)

    def log(self, topic: str) -> TopicLog:
        """The commit log of a topic, which need not exist. The name must be legal."""
        with self._lock:
            found = self._logs[topic] = self._logs.pop(topic) if topic in self._logs else TopicLog(self.root, topic)
            if self._most is not None and len(self._logs) > self._most:
                del self._logs[next(iter(self._logs))]
        return found

    def find(self, topic: str) -> State | None:
        """The newest state of a topic; None if the topic does not exist. Cheap if nothing was committed since the last call."""
        return self.log(topic).find()

    def keep(self, topics: Collection[str]) -> None:
        """Keeps these topics alone, so that deleted topics cost nothing."""
        with self._lock:
            self._logs = {name: log for name, log in self._logs.items() if name in topics}

    def forget(self, topic: str) -> None:
        """Keeps no more of a topic that was deleted."""
        with self._lock:
            self._logs.pop(topic, None)
