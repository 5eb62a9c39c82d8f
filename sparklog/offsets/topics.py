"""The topics of the root that positions are in."""

from __future__ import annotations

import dataclasses
import os
import threading
from pathlib import Path

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.offsets.rows import Position
from sparklog.ondisk.root import holding, local, require
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog


class Topics:
    """The topics of a root, or of none: then every look at one is a CallError that names the table."""

    def __init__(self, root: str | os.PathLike[str] | None, table: str) -> None:
        self.root = None if root is None else local(os.fspath(root))
        if self.root is not None:
            require(self.root)
        _require_apart(table, self.root)
        self._table = table
        self._logs: dict[str, TopicLog] = {}
        self._lock = threading.Lock()

    def log(self, topic: str) -> TopicLog:
        """The commit log of a topic, for the caller alone."""
        if self.root is None:
            raise SparklogError("OFFSETS_ROOT", table=self._table)
        return TopicLog(self.root, arguments.topic(topic))

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

    def noted(self, position: Position) -> Position:
        """The position, with a `note` if its topic was created again or deleted."""
        if self.root is None:
            return position
        state = self.find_state(position.topic)
        if state is None:
            return dataclasses.replace(position, note="the topic does not exist")
        if state.topic_id != position.topic_id:
            return dataclasses.replace(position, note=f"the topic was created again, with the id {state.topic_id}")
        return position

    def find(self, topic: str) -> TopicLog | None:
        """The commit log of a topic, for the caller alone; None if the topic does not exist."""
        return self.log(topic) if self.find_state(topic) else None


def _require_apart(table: str, root: str | None) -> None:
    """CallError if the table is in a root, this one or another, or this root in the table; links on the way count too."""
    if "://" in table:
        return
    real = os.path.realpath(table)
    found = holding(table) or holding(real)
    if found is None and root is not None and real in (os.path.realpath(root), *map(str, Path(os.path.realpath(root)).parents)):
        found = root
    if found is not None:
        raise SparklogError("OFFSETS_IN_ROOT", table=table, root=found, example=f"{os.path.realpath(found).rstrip('/')}-offsets")
