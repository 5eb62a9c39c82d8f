"""Output to Delta and the offsets that belong to it, from the function of `foreachBatch`."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups.rows import require_group
from sparklog.groups.table import places
from sparklog.groups.table.offset_table import OffsetTable
from sparklog.groups.table.owner import Owner
from sparklog.queries import reads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_delta(
    path: str | os.PathLike[str],
    *,
    table: str | os.PathLike[str],
    group: str,
    root: str | os.PathLike[str],
    checkpoint: str | os.PathLike[str],
    **options: Any,
) -> WriteDelta:
    """Makes a function for `foreachBatch` that appends each micro-batch to a Delta table, and then commits its end offsets to a group.

    One commit of the Delta table holds a micro-batch, the query's id and its number (`txnAppId`, `txnVersion`). Delta skips a micro-batch
    that it has. The offsets are a commit of their own after that. So a kill between the two leaves the group one micro-batch behind the
    output, never ahead. When the query starts again, Spark repeats the micro-batch, Delta skips it, and the offsets follow. After every
    restart each record is in the output once.

    The query fails if the offsets cannot be committed: with GenerationFencedError if another owner took the group. It looks for that before
    it writes a micro-batch too; another owner that comes while the micro-batch is written shows after it. The group's generation begins
    before the first micro-batch of a run is written. A new checkpoint is a new query: it reads and writes the same records again.

    Args:
        path: The Delta table of the output, which the first micro-batch creates: outside of every root, and named as an offset table may
            be.
        table: The path of the offset table.
        group: The name of the group.
        root: The root whose topics count, as in `track`.
        checkpoint: The query's own `checkpointLocation`, as a path that this process can read.
        **options: Options of Delta's writer.

    Returns:
        The function.

    Raises:
        CallError: TABLE_IN_ROOT; OPTION_VALUE if deltalake would take a path for another one; OFFSETS_EXTRA if deltalake is not installed.

    Example:
        >>> from sparklog.groups import write_delta
        >>> write = write_delta("output", table="offsets", group="archive", root="events", checkpoint="checkpoint")
        >>> spark = sparklog.session(delta=True)
        >>> orders = spark.readStream.format("partlog").option("startingOffsets", "earliest").load("events").select("partition", "value")
        >>> query = orders.writeStream.foreachBatch(write).option("checkpointLocation", "checkpoint").trigger(availableNow=True).start()
        >>> query.awaitTermination()
        >>> spark.read.format("delta").load("output").count(), [each.offset for each in table.positions("archive")]
        (20, [5, 15])
    """
    opened = OffsetTable(root, table)  # reports wrong arguments at once
    # Spark takes scheme:/path too.
    places.delta_table(re.sub("^([a-zA-Z][a-zA-Z0-9+.-]*):/(?!/)", r"\1:///", arguments.path("path", path)), opened.topics.root, "output")
    require_group(group)
    return WriteDelta(
        opened,
        arguments.path("path", path),
        arguments.path("table", table),
        arguments.path("root", root),
        arguments.path("checkpoint", checkpoint),
        group,
        options,
    )


class WriteDelta:
    """The function for a query. Spark Connect sends it to the server, which opens the offset table and its topics again, once."""

    def __init__(self, opened: OffsetTable, path: str, table: str, root: str, checkpoint: str, group: str, options: dict[str, Any]) -> None:
        self._opened: OffsetTable | None = opened
        self._path, self._table, self._root, self._checkpoint = path, table, root, checkpoint
        self._group = group
        self._options = options
        self._owner: Owner | None = None

    def __call__(self, rows: DataFrame, epoch: int) -> None:
        """Writes a micro-batch, and commits its offsets.

        After OFFSETS_TABLE_REPLACED, the next call opens the table that is there then, and begins a generation of the group in it.
        """
        try:
            self._write(rows, epoch)
        except SparklogError as error:
            if error.id == "OFFSETS_TABLE_REPLACED":
                self._opened = self._owner = None
            raise

    def _write(self, rows: DataFrame, epoch: int) -> None:
        if self._opened is None:
            self._opened = OffsetTable(self._root, self._table)
        read = reads.of_checkpoint(self._checkpoint, epoch, self._opened.topics)
        if self._owner is None:
            self._owner = Owner(self._opened, self._group)
        self._owner.require()
        once = {"txnAppId": read.query_id, "txnVersion": str(epoch)}
        rows.write.format("delta").mode("append").options(**self._options, **once).save(self._path)
        if read.commits:
            self._owner.commit(read.commits, query_id=read.query_id, epoch=read.epoch)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None, "_owner": None}
