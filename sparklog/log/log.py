"""A root and its topics, read without a JVM and without Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from sparklog import arguments
from sparklog.log.summary import Summary, known
from sparklog.log.topic import Topic
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_logs import KEPT, TopicLogs
from sparklog.show.display import SEGMENTS_SUMMED, SHOWN, Display, Displayed, counted, when

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from sparklog.verify import Report


class Log(Displayed):
    """A root: the directory, or the prefix in a bucket, that holds topics. Every call sees the newest commit.

    A log is like a dict of topics by name: `log["orders"]`, `"orders" in log`, `len(log)`, and iteration over the sorted names. It needs no
    JVM and no Spark, and it never writes.

    Example:
        >>> log = sparklog.Log("events")
        >>> list(log), "orders" in log, len(log)
        (['orders'], True, 1)
        >>> log["orders"].end_offsets()
        {0: 5, 1: 15}
    """

    __module__ = "sparklog"

    root: str
    """The absolute path, or the URL as Spark spells it."""

    def __init__(self, root: str | os.PathLike[str] | Root | TopicLogs, *, filesystem: FileSystem | None = None) -> None:
        """Opens a root.

        Args:
            root: A path, `file:` and a path, `hdfs://host:port/path`, or `s3a://bucket/prefix`, for which `s3://` stands too. HDFS is read
                by WebHDFS: at the address in `?webhdfs=host:9870`, or in the hdfs-site.xml of HADOOP_CONF_DIR, or at port 9870 of the host.
            filesystem: A FileSystem of pyarrow.fs through which the root is read. The root may then have any scheme, such as
                `gs://bucket/prefix`, or be a path in the file system. By default, obstore reads a bucket, which `sparklog[s3]`
                installs. Keys and settings come from the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and others) and from the URL
                (`?endpoint_override=127.0.0.1:9000&scheme=http`).

        Raises:
            CallError: ROOT_NOT_FOUND if there is no root; OPTION_VALUE if a name of a store has credentials or unknown settings; S3_EXTRA.

        Example:
            >>> sparklog.Log("events").topics()
            ['orders']
        """
        self._logs = arguments.topic_logs(root, filesystem, KEPT)
        self.root = str(self._logs.root)

    def topics(self) -> list[str]:
        """Lists the topics.

        Returns:
            The names, sorted.

        Raises:
            RetryError: IO if the root cannot be read.

        Example:
            >>> log.topics()
            ['orders']
        """
        return self._logs.root.topics()

    def topic(self, name: str) -> Topic:
        """Opens a topic; `log[name]` does the same.

        Args:
            name: The name of the topic.

        Returns:
            The topic.

        Raises:
            CallError: TOPIC_NOT_FOUND, which lists the existing topics, or TOPIC_NAME_ILLEGAL.

        Example:
            >>> log.topic("orders").partitions
            2
        """
        return Topic(self._logs, name)

    def verify(
        self,
        topics: Sequence[str] | None = None,
        *,
        quick: bool = False,
        jobs: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Report:
        """Checks every file of topics against docs/FORMAT.md. It only reads, and may run beside writers.

        Args:
            topics: The names of the topics to check; by default all.
            quick: Whether only metadata and lengths of files are checked. By default every record is decoded.
            jobs: The number of processes, 1 or more; by default one for each processor. A root of less than 128 MiB takes one.
            progress: A function that is called with two numbers of bytes of segments: the checked ones so far, and all.

        Returns:
            A report with the faults: the kind of each, the place, its cost and its remedy. Damage is in `Report.findings`, and is no error.
            `Report.unread` has the files that could not be read.

        Raises:
            CallError: TOPIC_NOT_FOUND if a name has no folder.
            RetryError: IO if it cannot be seen whether there is a root.

        Example:
            >>> report = log.verify(["orders"], quick=True)
            >>> report.findings
            []
        """
        from sparklog.verify import verify

        return verify(self._logs.root, topics, quick=quick, jobs=jobs, progress=progress)

    def summaries(self) -> Iterator[Summary]:
        """Describes each topic in short.

        Returns:
            An iterator over the topics, sorted by name. A topic that cannot be read has an `error`.

        Raises:
            RetryError: IO if the root cannot be listed.

        Example:
            >>> [(each.topic, each.partitions, each.offsets) for each in log.summaries()]
            [('orders', 2, 20)]
        """
        root, logs = self._logs.root, self._logs

        def of(name: str) -> Summary | None:
            log = logs.log(name)
            found = known(log)
            return Summary.of_known(log, found) if found else None

        return filter(None, root.store.at_once(of, root.folders()))

    def __getitem__(self, name: str) -> Topic:
        return self.topic(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.topics())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._logs.root.has(name)

    def __len__(self) -> int:
        return len(self.topics())

    def __bool__(self) -> bool:
        return True

    def _display(self) -> Display:
        topics = self.topics()
        rows: list[list[object]] = []
        left = SEGMENTS_SUMMED
        logs = [self._logs.log(name) for name in topics[:SHOWN]]
        for log, found in zip(logs, self._logs.root.store.at_once(known, logs), strict=True):
            name, each = log.topic, Summary.of_known(log, found, left)
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
