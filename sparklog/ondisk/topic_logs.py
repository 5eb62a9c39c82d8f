"""The commit logs of a root's topics, each opened once, however many parts of a program ask for it."""

from __future__ import annotations

from sparklog.errors import SparklogError
from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog


class TopicLogs:
    """Keeps the commit log of each topic that was asked for, with the newest state that is known of it. Threads may share it."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self._logs: dict[str, TopicLog] = {}

    def log(self, topic: str) -> TopicLog:
        """The commit log of a topic, which need not exist. The name must be legal."""
        return self._logs.get(topic) or self._logs.setdefault(topic, TopicLog(self.root, topic))

    def find(self, topic: str) -> State | None:
        """The newest state of a topic; None if the topic does not exist. Cheap if nothing was committed since the last call."""
        try:
            return self.log(topic).newest()
        except SparklogError as error:
            if error.id != "TOPIC_NOT_FOUND":
                raise
            return None

    def forget(self, topic: str) -> None:
        """Keeps no more of a topic that was deleted."""
        self._logs.pop(topic, None)
