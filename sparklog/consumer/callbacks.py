"""The callbacks of the program: which one is running, and the errors that they raised."""

from __future__ import annotations

from collections.abc import Iterable

from sparklog.consumer import requests as ask
from sparklog.consumer.records import TopicPartition
from sparklog.errors import SparklogError
from sparklog.steps import Steps


class Callbacks:
    """Notifies the program. An error of a callback is kept until the poll round is done: its first error then reaches the caller.

    `event` is empty unless a callback of an event is running. While it runs, no error of callbacks is raised.
    """

    def __init__(self) -> None:
        self.event = ""
        """The event of the callback that is running."""
        self._errors: list[BaseException] = []

    def require_outside(self) -> None:
        """CallError CONSUMER_IN_CALLBACK."""
        if self.event:
            raise SparklogError("CONSUMER_IN_CALLBACK", event=self.event)

    def notify(self, event: str, partitions: Iterable[TopicPartition]) -> Steps[None]:
        """The program learns of an event."""
        if not (named := sorted(partitions)):
            return
        outer, self.event = self.event, event
        try:
            raised = yield from ask.Notify(event, named)
        finally:
            self.event = outer
        if raised is not None:
            self.keep([raised])

    def keep(self, errors: Iterable[BaseException]) -> None:
        """Keeps errors of callbacks."""
        self._errors += errors

    def raise_first(self) -> None:
        """Raises the first error that was kept."""
        if self._errors and not self.event:
            first, self._errors = self._errors[0], []
            raise first
