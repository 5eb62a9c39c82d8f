"""A root and its topics, read without a JVM and without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sparklog.display import SEGMENTS_SUMMED, SHOWN, Display, when
from sparklog.errors import SparklogError
from sparklog.ondisk import commitlog
from sparklog.ondisk.commitlog import CommitLog
from sparklog.ondisk.root import local, require
from sparklog.ondisk.totals import Totals
from sparklog.topic import Topic


class Log:
    """A root: the directory that holds topics. Every call sees what is committed at that moment.

    It is like a dict of topics by name: `log["orders"]`, `"orders" in log`, `len(log)`, and iteration over the names, sorted.

    >>> log = Log("/data/events")
    >>> log.topics()
    ['orders']
    >>> log["orders"].show()
    """

    root: str
    """The absolute path."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Opens a root: a path, or `file:` and a path. CallError if there is not a root (PARTLOG_ROOT_NOT_FOUND and others)."""
        self.root = local(os.fspath(root))
        require(self.root)

    def topics(self) -> list[str]:
        """The names of the topics, sorted."""
        return commitlog.topics(self.root)

    def topic(self, name: str) -> Topic:
        """The topic of this name. CallError PARTLOG_TOPIC_NOT_FOUND, which lists the existing ones, or PARTLOG_TOPIC_NAME_ILLEGAL."""
        return Topic(self.root, name)

    def __getitem__(self, name: str) -> Topic:
        return self.topic(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.topics())

    def __contains__(self, name: object) -> bool:
        return name in self.topics()

    def __len__(self) -> int:
        return len(self.topics())

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return self._display().text()

    def _repr_html_(self) -> str:
        return self._display().html()

    def _display(self) -> Display:
        topics = self.topics()
        rows: list[list[object]] = []
        left = SEGMENTS_SUMMED
        for name in topics[:SHOWN]:
            try:
                log = CommitLog(self.root, name)
                state = log.newest()
                totals = Totals.of_partitions(log, state, left)
            except SparklogError as error:
                rows.append([name, error.condition, *[""] * 6])
            else:
                sums: list[object] = [""] * 3
                if totals is not None:
                    total = Totals.together(totals)
                    left -= total.segments
                    sums = [total.bytes, when(total.min_timestamp), when(total.max_timestamp)]
                rows.append([name, state.partitions, sum(state.ends) - sum(state.starts), *sums, state.version, when(state.time)])
        return Display(
            f"Log {self.root}",
            [f"{len(topics)} topics" if len(topics) != 1 else "1 topic"],
            ["topic", "partitions", "offsets", "bytes", "from (UTC)", "to (UTC)", "version", "committed at (UTC)"],
            rows,
            more=len(topics) - len(rows),
        )
