"""The table through `deltalake`, without a JVM."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from sparklog.errors import SparklogError
from sparklog.offsets.rows import PROPERTIES, SCHEMA, application, require_schema, select

if TYPE_CHECKING:
    from deltalake import DeltaTable


class Lake:
    """An `Engine` that is deltalake. CallError if that is not installed."""

    def __init__(self, path: str, storage_options: Mapping[str, str] | None) -> None:
        try:
            import deltalake
        except ImportError:
            raise SparklogError("OFFSETS_EXTRA", module="deltalake") from None
        self._delta = deltalake
        self._path = path
        self._storage_options = dict(storage_options or {})
        # To look after each commit for log files that are due takes longer than the commit, and the longer, the more there were.
        self._after_commit = deltalake.PostCommitHookProperties(cleanup_expired_logs=False)
        self._open: DeltaTable | None = None
        self._used_by: int | None = None
        """The process that used it first."""
        # Between the look at the newest number and the commit of the next one, no other thread may bring the table up to date: the
        # commit would not conflict with what that thread saw.
        self._lock = threading.RLock()

    def exists(self) -> bool:
        with self._faults():
            return self._table() is not None

    def rows(self, group: str | None = None, *, current: bool) -> pa.Table:
        query = select("offsets", '"', None if group is None else _literal(group), current=current)
        with self._faults():
            table = self._table()
            if table is None:
                return SCHEMA.empty_table()
            found = self._delta.QueryBuilder().register("offsets", table).execute(query).read_all()
            return pa.table(found).cast(SCHEMA)

    def last(self, group: str) -> int:
        with self._faults():
            table = self._table()
            return 0 if table is None else table.transaction_version(application(group)) or 0

    def append(self, rows: pa.Table, group: str, number: int) -> bool:
        with self._faults():
            table = self._table() or self._create()
            if (table.transaction_version(application(group)) or 0) >= number:
                return False
            properties = self._delta.CommitProperties(app_transactions=[self._delta.Transaction(application(group), number)])
            try:
                self._delta.write_deltalake(
                    table, rows, mode="append", commit_properties=properties, post_commithook_properties=self._after_commit
                )
            except self._delta.exceptions.CommitFailedError as error:
                if "oncurrent transaction" not in str(error):
                    raise
                return False
        return True

    def maintain(self) -> dict[str, int]:
        with self._faults():
            table = self._table()
            if table is None:
                return {"joined": 0, "deleted": 0}
            joined = table.optimize.compact()["numFilesRemoved"]
            table.create_checkpoint()
            table.cleanup_metadata()
            return {"joined": joined, "deleted": len(table.vacuum(dry_run=False))}

    def _table(self) -> DeltaTable | None:
        """The table as it is now; None if it does not exist."""
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
        if self._used_by not in (None, os.getpid()):  # its lock may be held for ever by a thread that the fork did not copy
            raise SparklogError("OFFSETS_FORKED", table=self._path)
        self._used_by = os.getpid()
        try:
            with self._lock:
                yield
        except SparklogError:
            raise
        except BaseException as error:
            # A query whose files are gone fails with a plain Exception. A panic of deltalake's Rust is not even an Exception.
            known = type(error) is Exception or type(error).__name__ == "PanicException"
            if not known and not isinstance(error, self._delta.exceptions.DeltaError | OSError | ValueError):
                raise
            if "Forked process" in str(error):
                raise SparklogError("OFFSETS_FORKED", table=self._path) from error
            raise SparklogError("OFFSETS_TABLE", table=self._path, cause=error) from error


def _literal(text: str) -> str:
    """The text as a literal of SQL, in which only the quote has a meaning."""
    return "'" + text.replace("'", "''") + "'"
