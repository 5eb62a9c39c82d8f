"""The newest state of a topic, for a process that asks again and again."""

from __future__ import annotations

import time

from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog

_ASK_S = 1.0


class NewestState:
    """The newest state of a topic that is known."""

    state: State

    def __init__(self, log: TopicLog) -> None:
        """CallError TOPIC_NOT_FOUND."""
        self._log = log
        self.ask()

    def look(self) -> None:
        """Takes the newest state. CallError TOPIC_NOT_FOUND.

        It costs one stat if nothing was committed. Once a second it costs two stats. Then a process that slept while versions were put and
        deleted finds out; a single stat does not show this (FORMAT.md section 9).
        """
        if time.monotonic() - self._asked >= _ASK_S or self._log.is_followed(self.state):
            self.ask()

    def ask(self) -> None:
        """Takes the newest state, also if versions were put and deleted since the last call. CallError TOPIC_NOT_FOUND."""
        self._asked = -_ASK_S  # until it answers: a topic that does not exist is asked for in each call
        self.state = self._log.newest()
        self._asked = time.monotonic()
