"""Commits of a topic, and a list of them that shows itself as a table in a terminal and in a notebook."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from sparklog import arguments
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.version import Version
from sparklog.show.display import SHOWN, Display, Displayed, counted, moment, readable, when

_SHOWN_OF_TEXTS = 60
"""The most characters of a writer and of a query in a table."""


@dataclass(frozen=True)
class Commit:
    """A version of a topic: its commit, the time, and the program that made it.

    `records`, `bytes` and `segments` count the additions of the version; `removed` is the number of segments that it removed.
    `start_offsets` and `end_offsets` are those after the version, by partition, of the partitions where the version changed them.
    `query` and `epoch` are None unless the write was part of a query or had a `txnAppId`. `input` identifies the records of the epoch, in
    16 hex digits: with the same input it is the same epoch. It is None where that is not known.
    """

    version: int
    time: datetime.datetime
    operation: str
    writer: str
    txn: str
    query: str | None
    epoch: int | None
    input: str | None
    records: int
    bytes: int
    segments: int
    removed: int
    start_offsets: dict[int, int] = field(repr=False)
    end_offsets: dict[int, int] = field(repr=False)

    @classmethod
    def of(cls, version: Version) -> Commit:
        """The commit that made a version."""
        return cls(
            version=version.version,
            time=moment(version.time),
            operation=version.operation,
            writer=version.writer,
            txn=version.txn,
            query=version.query.id if version.query else None,
            epoch=version.query.epoch if version.query else None,
            input=version.query.input if version.query else None,
            records=sum(segment.records for segment in version.added),
            bytes=sum(segment.bytes for segment in version.added),
            segments=len(version.added),
            removed=len(version.removed),
            start_offsets=dict(version.starts),
            end_offsets=dict(version.ends),
        )


class Commits(Displayed, list[Commit]):
    """A list of commits, the newest last, that shows itself as a table."""

    @classmethod
    def of(cls, log: TopicLog, limit: int | None = None) -> Commits:
        """The commits of a topic whose version files exist; with a limit, at most that number of the newest."""
        return cls(map(Commit.of, log.history(None if limit is None else arguments.count("limit", limit))))

    def _display(self) -> Display:
        return self.display()

    def display(self, most: int | None = SHOWN, of: str = "") -> Display:
        """The table of the newest ones, at most that many; `of` begins its title."""
        title = of + counted(len(self), "commit")
        shown = self if most is None else self[-most:]
        if len(shown) < len(self):
            title += f", of which the newest {len(shown)}"
        columns = ["version", "committed at (UTC)", "operation", "records", "bytes", "segments", "removed"]
        columns += ["writer", "query", "epoch", "input"]
        rows = [
            [
                each.version,
                when(each.time),
                each.operation,
                each.records,
                each.bytes,
                each.segments,
                each.removed,
                readable(each.writer, _SHOWN_OF_TEXTS),
                readable(each.query or "", _SHOWN_OF_TEXTS),
                "" if each.epoch is None else each.epoch,
                each.input or "",
            ]
            for each in shown
        ]
        return Display(title, [], columns, rows)
