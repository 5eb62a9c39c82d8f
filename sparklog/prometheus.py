"""The numbers of a root and its groups in Prometheus' text form. Needs `pip install 'sparklog[cli]'`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups.all_groups import AllGroups
from sparklog.groups.topic.topic_groups import TOPIC, TopicGroups
from sparklog.ondisk.config import retention
from sparklog.ondisk.names import checkpoint_version_of, topic_file, version_of
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.version import Segment
from sparklog.store.store import Damaged

try:
    from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
    from prometheus_client.core import GaugeMetricFamily
except ModuleNotFoundError as error:
    raise SparklogError("CLI_EXTRA", module=error.name) from None

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from sparklog.groups import OffsetTable
    from sparklog.groups.snapshots import GroupSnapshot

CONTENT_TYPE = CONTENT_TYPE_LATEST
"""The content type of a text."""
_SMALL_BYTES = 4 << 20
"""A merge after a commit joins segments below this size when eight are neighbours."""
_DAY_S = 24 * 60 * 60
_TOPIC, _PARTITION, _GROUP = ("topic",), ("topic", "partition"), ("group", "home")
_GAUGES = {
    "partlog_topic_partitions": (_TOPIC, "Number of partitions."),
    "partlog_topic_version": (_TOPIC, "Newest version. Its rate is the rate of commits."),
    "partlog_topic_last_commit_timestamp_seconds": (_TOPIC, "Time of the newest commit, by the clock of its writer."),
    "partlog_topic_versions_since_checkpoint": (_TOPIC, "Versions after the newest checkpoint. Writers make one every 100 versions."),
    "partlog_topic_version_files": (_TOPIC, "Version files. Writers delete old ones with each checkpoint."),
    "partlog_topic_expired_bytes": (_TOPIC, "Bytes that retention.ms and retention.bytes let go, and that are not deleted yet."),
    "partlog_topic_unused_bytes": (
        _TOPIC,
        "Bytes in data folders without a live segment, in files older than a day. A vacuum deletes them.",
    ),
    "partlog_partition_start_offset": (_PARTITION, "Log start offset."),
    "partlog_partition_end_offset": (_PARTITION, "End offset. Its rate is the rate of written records."),
    "partlog_partition_records": (_PARTITION, "Records in live segments."),
    "partlog_partition_bytes": (_PARTITION, "Bytes of live segments, without the Kafka view."),
    "partlog_partition_segments": (_PARTITION, "Live segments."),
    "partlog_partition_small_segments": (_PARTITION, "Live segments below 4 MiB. Merges after commits keep them few."),
    "partlog_group_partition_offset": ((*_GROUP, *_PARTITION), "Committed position of a group."),
    "partlog_group_partition_lag": ((*_GROUP, *_PARTITION), "Records that a group has not read; without a position, all records."),
    "partlog_group_unknown_partitions": (_GROUP, "Positions whose topic was deleted, or created again."),
    "partlog_group_last_commit_timestamp_seconds": (
        _GROUP,
        "Time of the newest position of a group. A program that commits nothing repeats a position each minute.",
    ),
    "partlog_group_running": (_GROUP, "1 if a consumer, a tracker or a member runs the group."),
    "partlog_unreadable": (("kind", "name", "condition"), "1 for each topic or group that cannot be read, with the error."),
}
"""By name of a metric, its labels and its help."""


class Exporter:
    """Reads the numbers of a root and of its groups, in an offset table and in the root.

    It only reads. It opens no data file but the files of `__consumer_offsets`, and of them only the parts that came since the last text.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        table: str | os.PathLike[str] | None = None,
        *,
        filesystem: FileSystem | None = None,
    ) -> None:
        """Opens a root, and keeps the state of each topic for the next call of `text`.

        Args:
            root: The root, as for `Log`.
            table: The path of an offset table; None for metrics without its groups.
            filesystem: As for `Log`.

        Raises:
            CallError: If the root does not exist.
        """
        self._logs = arguments.topic_logs(root, filesystem)
        self._in_topic = TopicGroups(self._logs)
        self._table = table

    def text(self) -> bytes:
        """The numbers of now, in Prometheus' text form. A topic or a group that cannot be read is in `partlog_unreadable`.

        Raises:
            CallError: If the root or the table does not exist.
            RetryError: If the root or the table cannot be read.
        """
        found = _Samples()
        self._logs.root.require()
        names = self._logs.root.folders()
        self._logs.keep(names)
        for samples in self._logs.root.store.at_once(self._of_folder, names):
            found.add(samples)
        errors: list[SparklogError] = []
        for group in AllGroups(self._opened_table(), self._in_topic if TOPIC in names else None).snapshots(errors.append):
            found.add(_of_group(group))
        found.add(("partlog_unreadable", ("groups", TOPIC, each.condition), 1) for each in errors)
        return generate_latest(found)

    def _of_folder(self, name: str) -> list[_Sample]:
        """The samples of a topic; empty if it was deleted."""
        try:
            log = self._logs.log(name)
            if state := log.find(as_listed=True):
                return list(_of_topic(log, state))
            self._logs.forget(name)
            return []
        except SparklogError as error:
            return [("partlog_unreadable", ("topic", name, error.condition), 1)]

    def _opened_table(self) -> OffsetTable | None:
        """The table, opened for one text: another table may have its place by the next one."""
        if self._table is None:
            return None
        from sparklog.groups import OffsetTable

        return OffsetTable(self._logs, self._table)


_Sample = tuple[str, tuple[str, ...], float]
"""The name of a metric, the values of its labels, and its value."""


class _Samples:
    """Samples by metric, as prometheus_client collects them."""

    def __init__(self) -> None:
        self._families = {name: GaugeMetricFamily(name, help, labels=labels) for name, (labels, help) in _GAUGES.items()}

    def add(self, samples: Iterable[_Sample]) -> None:
        for name, labels, value in samples:
            self._families[name].add_metric(labels, value)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The metrics that have samples."""
        return (each for each in self._families.values() if each.samples)


def _of_topic(log: TopicLog, state: State) -> Iterator[_Sample]:
    live = [list(log.segments(state, partition)) for partition in range(state.partitions)]
    names = log.root.names_of(log.topic)
    checkpoint = max((version for name in names if (version := checkpoint_version_of(name)) is not None), default=-1)
    numbers = {
        "partitions": state.partitions,
        "version": state.version,
        "last_commit_timestamp_seconds": state.time / 1000,
        "versions_since_checkpoint": max(0, state.version - checkpoint),
        "version_files": sum(version_of(name) is not None for name in names),
        "expired_bytes": sum(_expired(state, segments, time.time() * 1000) for segments in live),
        "unused_bytes": _unused(log, live),
    }
    for name, value in numbers.items():
        yield f"partlog_topic_{name}", (log.topic,), value
    for partition, segments in enumerate(live):
        numbers = {
            "start_offset": state.starts[partition],
            "end_offset": state.ends[partition],
            "records": sum(each.records for each in segments),
            "bytes": sum(each.bytes for each in segments),
            "segments": len(segments),
            "small_segments": sum(each.bytes < _SMALL_BYTES for each in segments),
        }
        for name, value in numbers.items():
            yield f"partlog_partition_{name}", (log.topic, str(partition)), value


def _expired(state: State, segments: list[Segment], now_ms: float) -> int:
    """The bytes of the first segments of a partition that its retention lets go. FORMAT.md section 12."""
    keeps_ms, keeps_bytes = retention(state.config)
    left, expired = sum(each.bytes for each in segments), 0
    for each in segments:
        beyond = keeps_bytes >= 0 and each is not segments[-1] and left - each.bytes >= keeps_bytes
        old = keeps_ms >= 0 and 0 <= each.max_timestamp < now_ms - keeps_ms
        if not (beyond or old):
            break
        left -= each.bytes
        expired += each.bytes
    return expired


def _unused(log: TopicLog, live: list[list[Segment]]) -> int:
    """The bytes of old files in the data folders that hold no live segment. It lists the data folder, and each of these folders."""
    used = {each.file.split("/")[1] for segments in live for each in segments}
    store, now = log.root.store, time.time()
    found = 0
    for name in log.root.names(topic_file(log.topic, "data")):
        if name not in used:
            folder = topic_file(log.topic, f"data/{name}")
            try:
                found += sum(each.bytes for each in store.entries(folder) if each.is_file and now - each.modified > _DAY_S)
            except Damaged:  # a link, or a file in the place of a folder, which `sparklog verify` names
                continue
            except OSError as error:
                raise SparklogError("IO", file=store.location(folder), cause=error) from None
    return found


def _of_group(group: GroupSnapshot) -> list[_Sample]:
    name = group.name
    of = (name, group.home)
    try:
        summary, unread = group.summary, group.unread()
        if summary.error is not None and summary.error.id == "GROUP_STATE":
            raise summary.error
    except SparklogError as error:
        return [("partlog_unreadable", ("group", name, error.condition), 1)]
    found: list[_Sample] = [
        ("partlog_group_running", of, summary.running),
        ("partlog_group_unknown_partitions", of, sum(each.records is None for each in unread)),
    ]
    if summary.committed_at is not None:
        found.append(("partlog_group_last_commit_timestamp_seconds", of, summary.committed_at.timestamp()))
    for each in unread:
        place = (*of, each.topic, str(each.partition))
        if each.records is not None:
            found.append(("partlog_group_partition_lag", place, each.records))
            if each.offset is not None:
                found.append(("partlog_group_partition_offset", place, each.offset))
    return found
