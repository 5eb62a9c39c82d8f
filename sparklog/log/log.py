"""A root and its topics, read without a JVM and without Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from sparklog import arguments
from sparklog.log.summary import Summary
from sparklog.log.topic import Topic
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_logs import KEPT, TopicLogs
from sparklog.show.display import SEGMENTS_SUMMED, SHOWN, Display, Displayed, counted, when

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from sparklog.verify import Report


class Log(Displayed):
    """A root: the directory, or the prefix in a bucket, that holds topics. Every call sees what is committed at that moment.

    It is like a dict of topics by name: `log["orders"]`, `"orders" in log`, `len(log)`, and iteration over the names, sorted.

    >>> log = Log("/data/events")
    >>> log.topics()
    ['orders']
    >>> log["orders"].show()
    """

    root: str
    """The absolute path, or the URL as Spark spells it."""

    def __init__(self, root: str | os.PathLike[str] | Root | TopicLogs, *, filesystem: FileSystem | None = None) -> None:
        """Opens a root: a path, `file:` and a path, `hdfs://host:port/path`, or `s3a://bucket/prefix`, for which `s3://` stands too.

        A bucket is read through `filesystem`, a FileSystem of pyarrow.fs, which has the settings. Without one, they are taken from the
        environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and others) and from what pyarrow accepts in a URL
        (`?endpoint_override=127.0.0.1:9000&scheme=http`). HDFS is read by WebHDFS, at the address that `?webhdfs=host:9870` gives, or
        the hdfs-site.xml of HADOOP_CONF_DIR, or at port 9870 of the host. CallError if there is not a root (PARTLOG_ROOT_NOT_FOUND and
        others).
        """
        self._logs = arguments.topic_logs(root, filesystem, KEPT)
        self.root = str(self._logs.root)

    def topics(self) -> list[str]:
        """The names of the topics, sorted."""
        return self._logs.root.topics()

    def topic(self, name: str) -> Topic:
        """The topic of this name. CallError PARTLOG_TOPIC_NOT_FOUND, which lists the existing ones, or PARTLOG_TOPIC_NAME_ILLEGAL."""
        return Topic(self._logs, name)

    def verify(
        self,
        topics: Sequence[str] | None = None,
        *,
        quick: bool = False,
        jobs: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Report:
        """Checks every file of these topics, by default of all, against docs/FORMAT.md, and reports what is wrong, where, what it costs and
        how to fix it. It only reads, and may run beside writers.

        * quick: only metadata and the lengths of files. By default every record batch is read and every record decoded.
        * jobs: the number of processes; by default one for each processor. A root of less than 128 MiB is checked in this process.
        * progress: called with the bytes of segments that were checked so far, and of all of them.

        CallError PARTLOG_TOPIC_NOT_FOUND for a name that has no folder. Damage is never an error here: it is in `Report.findings`.
        """
        from sparklog.verify import verify

        return verify(self._logs.root, topics, quick=quick, jobs=jobs, progress=progress)

    def summaries(self) -> Iterator[Summary]:
        """The topics in short, sorted by name. A topic that cannot be read has an `error`, and the others are still there."""
        return (Summary.of(self._logs.log(name)) for name in self.topics())

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

    def _display(self) -> Display:
        topics = self.topics()
        rows: list[list[object]] = []
        left = SEGMENTS_SUMMED
        for name in topics[:SHOWN]:
            each = Summary.of(self._logs.log(name), left)
            left -= each.segments or 0
            if each.error is not None:
                rows.append([name, each.error.condition, *[""] * 6])
                continue
            size = "" if each.bytes is None else each.bytes
            times = [when(each.min_timestamp), when(each.max_timestamp)]
            rows.append([name, each.partitions, each.offsets, size, *times, each.version, when(each.committed_at)])
        return Display(
            f"Log {self.root}",
            [counted(len(topics), "topic")],
            ["topic", "partitions", "offsets", "bytes", "from (UTC)", "to (UTC)", "version", "committed at (UTC)"],
            rows,
            more=len(topics) - len(rows),
        )
