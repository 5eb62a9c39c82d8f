"""Output of a consumer to a Delta table: each record is in it once, whichever members read it."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from sparklog.consumer.consumer import Consumer
from sparklog.consumer.records import TopicPartition
from sparklog.consumer.shares import AssignedPartition
from sparklog.errors import GenerationFencedError, SparklogError
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.table import places

if TYPE_CHECKING:
    from deltalake import DeltaTable

_log = logging.getLogger(__name__)


class DeltaOutput:
    """Writes the records of a consumer to a Delta table, with the offsets in the same commit: each record is there once.

    Delta keeps, for each partition, the offset up to which the table has its records: as the version of an application with the id
    `<group>/<topic id>/<partition>`. A write is refused if another member has written the partition since this one read it. Then, and after
    a kill, the consumer goes on where the table is. The group's positions follow the table, and never lead it.

    Example:
        >>> import pyarrow as pa
        >>> from sparklog.consumer import DeltaOutput
        >>> output = DeltaOutput("sales", consumer)
        >>> while batches := output.poll(200):
        ...     output.write(pa.Table.from_batches(batches.values()).select(["partition", "offset", "value"]))
        >>> import deltalake
        >>> deltalake.DeltaTable("sales").to_pyarrow_table().num_rows
        7
    """

    def __init__(self, path: str | os.PathLike[str], consumer: Consumer, *, storage_options: Mapping[str, str] | None = None) -> None:
        """Opens the output; the first write creates the table.

        Args:
            path: The path of the table, or its URL.
            consumer: The consumer, with a group and `enable_auto_commit=False`.
            storage_options: The options with which deltalake reaches a URL.

        Raises:
            CallError: GROUP_REQUIRED if the consumer has no group; OPTION_CONFLICT if it commits by itself; TABLE_IN_ROOT if the table is
                in a root, or the consumer's root in it; OPTION_VALUE if deltalake would take the path for another one.

        Example:
            >>> from sparklog.consumer import DeltaOutput
            >>> output = DeltaOutput("sales", consumer)
        """
        group = consumer._core.settings.group
        if group is None:
            raise SparklogError("GROUP_REQUIRED", call="DeltaOutput()", missing="group_id")
        if consumer._core.settings.auto_commits:
            reason = "positions follow the output; give the consumer enable_auto_commit=False"
            raise SparklogError("OPTION_CONFLICT", options="DeltaOutput and enable_auto_commit", reason=reason)
        self.path, self._consumer, self._group = places.delta_table(path, consumer._root, "output"), consumer, group
        self._storage_options = dict(storage_options or {})
        self._read: dict[TopicPartition, _Part] = {}
        """The records that are to be written."""

    def poll(self, timeout_ms: float = 0, max_records: int | None = None) -> dict[TopicPartition, pa.RecordBatch]:
        """Returns the next records that the table does not have, as `Consumer.poll_batches`.

        Positions move when the rows are written: records of the last call come again if they were not. They may be written until another
        call returns. A `seek` of the program counts, but not to records that the table has.

        Args:
            timeout_ms: Milliseconds to wait for records, 0 or more; default 0.
            max_records: The most records to return, 1 or more; by default only bytes limit them, as in `Consumer.poll_batches`.

        Returns:
            The records by partition; empty if none came within the timeout.

        Raises:
            CallError: TOPIC_NOT_FOUND if a topic was deleted and the consumer has no `partition_assignment_strategy`.
            DataError: BATCH_CORRUPT or SEGMENT_CORRUPT if a file is damaged.
            GenerationFencedError: If another consumer took the group.
            RetryError: MEMBER_TOPIC_GONE, once, if a topic of a member was deleted.

        Example:
            >>> batches = output.poll(1_000)
            >>> sorted((each.partition, batch.num_rows) for each, batch in batches.items())
            [(0, 2), (1, 5)]
        """
        self._consumer._core.shares.last = []
        try:
            return self._next(timeout_ms, max_records)
        except BaseException:
            self._consumer._core.shares.take_back()
            raise

    def _next(self, timeout_ms: float, max_records: int | None) -> dict[TopicPartition, pa.RecordBatch]:
        shares = self._consumer._core.shares
        while True:
            found = self._consumer.poll_batches(timeout_ms, max_records)  # a callback may write the records of the last poll in it
            read: dict[TopicPartition, _Part] = {}
            for partition, batch in found.items():
                share, begin = shares.held[partition], int(batch.column("offset")[0].as_py())
                assert share.position is not None
                read[partition] = _Part(f"{self._group}/{share.topic_id}/{partition.partition}", share, begin, share.position)
                shares.seek(share, begin)
            table = self._table() if found else None
            written: list[OffsetCommit] = []
            for partition, part in list(read.items()):
                part.version = None if table is None else table.transaction_version(part.application)
                if part.version is not None and part.version > part.begin:
                    shares.seek(part.share, part.version)
                    written.append(part.share.commit(part.version))
                    del found[partition], read[partition]
            self._follow(written)
            if found or not written:
                self._read = read
                return found

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Appends rows, made of the records of the last `poll`, and commits its offsets; these are committed without rows, too.

        All rows of a poll are written in one call, which `on_revoke` may make too. A call that failed may be repeated.

        Args:
            rows: The rows. The first call gives the table its schema.

        Raises:
            CallError: OUTPUT_NOT_READ if rows are given and the records of the last poll are written already, or the poll returned no
                records.
            RetryError: OUTPUT_FENCED if another member has written any of the partitions since. Nothing was written, and the next `poll`
                goes on where the table is.

        Example:
            >>> batches = output.poll(1_000)
            >>> output.write(next(iter(batches.values())).select(["partition", "offset"]))
            >>> output.poll()
            {}
        """
        self._consumer._require_open("write")
        if not self._read:
            if rows.num_rows:
                raise SparklogError("OUTPUT_NOT_READ", table=self.path, group=self._group)
            return
        given = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        table = self._table() or self._created(given.schema)
        if not self._has_written(table, given):
            for (topic, number), part in self._read.items():
                if part.is_strayed(self._table() or table):
                    root = self._consumer.root
                    raise SparklogError("OUTPUT_FENCED", table=self.path, topic=topic, partition=number, root=root, group=self._group)
        shares = self._consumer._core.shares
        for partition, part in self._read.items():
            if shares.held.get(partition) is part.share and part.share.position == part.begin:
                shares.seek(part.share, part.end)
        self._follow([part.share.commit(part.end) for part in self._read.values()])
        self._read = {}

    def _follow(self, commits: list[OffsetCommit]) -> None:
        """Commits the positions of the group where the table is."""
        try:
            if commits:
                self._consumer._shell.run(self._consumer._core.commits.commit(commits))
        except SparklogError as error:  # the next owner of a partition finds its offset in the table; a topic that is gone needs none
            if not isinstance(error, GenerationFencedError) and error.id not in (
                "TOPIC_NOT_FOUND",
                "TOPIC_RECREATED",
                "GROUP_OF_OTHER_TOPIC",
            ):
                raise
            _log.warning("The rows are in %s, and the positions of group %s were not committed: %s", self.path, self._group, error)

    def _has_written(self, table: DeltaTable, rows: pa.Table) -> bool:
        """Writes rows, from the very snapshot that shows that no other member has written. False if one has."""
        import deltalake

        parts = self._read.values()
        if all(part.version == part.end for part in parts):
            return True  # by an earlier call, which could not commit the positions
        if any(part.is_strayed(table) for part in parts):
            return False
        try:
            self._append(table, rows, {part.application: part.end for part in parts})
        except deltalake.exceptions.CommitFailedError:
            now = self._table()
            if now is None or not any(part.is_strayed(now) for part in parts):
                raise
            # Its answer may have been lost: then the rows are there, and the next poll goes on after them.
            return False
        for part in parts:
            part.version = part.end
        return True

    def _append(self, table: DeltaTable, rows: pa.Table, versions: Mapping[str, int]) -> None:
        """Appends rows in one commit, with these versions of applications, which have none that the snapshot does not show."""
        import deltalake

        transactions = [deltalake.Transaction(*each) for each in versions.items()]
        properties = deltalake.CommitProperties(app_transactions=transactions)
        deltalake.write_deltalake(table, rows, mode="append", commit_properties=properties)

    def _table(self) -> DeltaTable | None:
        import deltalake

        try:
            return deltalake.DeltaTable(self.path, storage_options=self._storage_options)
        except deltalake.exceptions.TableNotFoundError:
            return None

    def _created(self, schema: pa.Schema) -> DeltaTable:
        import deltalake

        return deltalake.DeltaTable.create(self.path, schema, mode="ignore", storage_options=self._storage_options)


@dataclass
class _Part:
    """The records of a partition that were read, from `begin` to `end`, with their application and its last known version."""

    application: str
    share: AssignedPartition
    begin: int
    end: int
    version: int | None = None

    def is_strayed(self, table: DeltaTable) -> bool:
        """Whether another member has written the partition since."""
        return table.transaction_version(self.application) != self.version
