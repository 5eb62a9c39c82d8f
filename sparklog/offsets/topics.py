"""The topics of the root that positions are in."""

from __future__ import annotations

import os
import threading

from sparklog.errors import SparklogError
from sparklog.ondisk import names
from sparklog.ondisk.commitlog import CommitLog
from sparklog.ondisk.root import local, require
from sparklog.ondisk.state import State
from sparklog.topic import Topic


class Topics:
    """The topics of a root, or of none: then every look at one is a CallError that names the table."""

    def __init__(self, root: str | os.PathLike[str] | None, table: str) -> None:
        self.root = None if root is None else local(os.fspath(root))
        if self.root is not None:
            require(self.root)
        self._table = table
        self._logs: dict[str, CommitLog] = {}
        self._lock = threading.Lock()

    def log(self, topic: str) -> CommitLog:
        """The commit log of a topic, for the caller alone."""
        if self.root is None:
            raise SparklogError("OFFSETS_ROOT", table=self._table)
        if not isinstance(topic, str) or not names.is_topic(topic):
            Topic(self.root, topic)  # says what is wrong with the name
        return CommitLog(self.root, topic)

    def state(self, topic: str) -> State:
        """The newest state of a topic. Cheap if nothing was committed since the last call."""
        with self._lock:
            if topic not in self._logs:
                self._logs[topic] = self.log(topic)
            return self._logs[topic].newest()

    def find_state(self, topic: str) -> State | None:
        """The newest state of a topic; None if the topic does not exist."""
        try:
            return self.state(topic)
        except SparklogError as error:
            if error.id != "TOPIC_NOT_FOUND":
                raise
            return None

    def find(self, topic: str) -> CommitLog | None:
        """The commit log of a topic, for the caller alone; None if the topic does not exist."""
        return self.log(topic) if self.find_state(topic) else None
