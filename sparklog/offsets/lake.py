"""The table through `deltalake`, without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from sparklog.errors import SparklogError
from sparklog.offsets.rows import SCHEMA, require_schema

if TYPE_CHECKING:
    from deltalake import DeltaTable

PROPERTIES = {
    "delta.checkpointInterval": "100",
    # The history of a group is in its rows. So Delta's own may be short, and 10,000 commits leave few files behind.
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}
_CURRENT = (
    'row_number() OVER (PARTITION BY "group", topic, "partition" ORDER BY generation DESC, "offset" DESC, committed_at DESC, metadata) = 1'
)


class Lake:
    """Reads and writes the table with deltalake. CallError if that is not installed."""

    def __init__(self, path: str, storage_options: Mapping[str, str] | None) -> None:
        try:
            import deltalake
        except ImportError:
            raise SparklogError("OFFSETS_EXTRA", module="deltalake") from None
        self._delta = deltalake
        self._path = path
        self._storage_options = dict(storage_options or {})
        self._open: DeltaTable | None = None

    def rows(self, group: str | None = None, *, current: bool, generation: int | None = None) -> pa.Table:
        """The rows of a group, or of all; of a generation, or of all; in the order in which they were committed.

        With `current`, only the greatest (generation, offset) of each group, topic and partition.
        """
        table = self._table()
        if table is None:
            return SCHEMA.empty_table()
        columns = ", ".join(f'"{name}"' for name in SCHEMA.names)
        query = f"SELECT {columns} FROM offsets WHERE true"
        if group is not None:
            query += f' AND "group" = {_literal(group)}'
        if generation is not None:
            query += f" AND generation = {generation:d}"
        if current:
            query += f" QUALIFY {_CURRENT}"
        query += ' ORDER BY committed_at, generation, topic, "partition", "offset"'
        with self._faults():
            found = self._delta.QueryBuilder().register("offsets", table).execute(query).read_all()
            return pa.table(found).cast(SCHEMA)

    def append(self, rows: pa.Table, claim: tuple[str, int] | None = None) -> bool:
        """Adds rows in one commit.

        With `claim`, an application's id and a version of it, only if no commit had this version of it or a later one: False otherwise.
        """
        properties = None
        table = self._table()
        with self._faults():
            if table is None:
                table = self._create()
            if claim is not None:
                if (table.transaction_version(claim[0]) or 0) >= claim[1]:
                    return False
                properties = self._delta.CommitProperties(app_transactions=[self._delta.Transaction(*claim)])
            try:
                self._delta.write_deltalake(table, rows, mode="append", commit_properties=properties)
            except self._delta.exceptions.CommitFailedError as error:
                if claim is None or "oncurrent transaction" not in str(error):
                    raise
                return False
        return True

    def _table(self) -> DeltaTable | None:
        """The table as it is now; None if it does not exist."""
        with self._faults():
            try:
                if self._open is None:
                    opened = self._delta.DeltaTable(self._path, storage_options=self._storage_options)
                    require_schema(self._path, {field.name: field.type.type for field in opened.schema().fields})
                    self._open = opened
                else:
                    self._open.update_incremental()
            except self._delta.exceptions.TableNotFoundError:
                return None
        return self._open

    def _create(self) -> DeltaTable:
        # If another writer creates it first, this one takes that table.
        self._delta.DeltaTable.create(
            self._path, SCHEMA, mode="ignore", configuration=dict(PROPERTIES), storage_options=self._storage_options
        )
        table = self._table()
        assert table is not None
        return table

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except SparklogError:
            raise
        except (self._delta.exceptions.DeltaError, OSError, ValueError) as error:
            raise SparklogError("OFFSETS_TABLE", table=self._path, cause=error) from error


def _literal(text: str) -> str:
    """The text as a literal of SQL, in which only the quote has a meaning."""
    return "'" + text.replace("'", "''") + "'"
