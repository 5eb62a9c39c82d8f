"""The Delta table of positions, through `deltalake`: the only code that reads or writes it."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from sparklog.errors import SparklogError
from sparklog.groups.rows import PROPERTIES, SCHEMA, require_schema

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.fs import DeltaStorageHandler


_TRIES = 10_000
"""The most retries of a commit. Only commits that do not conflict are tried again."""

COMPACTIONS = 4
"""Files are joined so often at most if other commits are first each time; the next upkeep tries again."""

_READ_ON = 100
"""At most this many versions are read one by one. A query over all rows is quicker than more of them."""

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet")

_used_by: int | None = None
"""The process that used deltalake here first, whose threads a fork of it does not have."""


class Refresh(NamedTuple):
    """The rows of a group at a version of the table, in any order; −1 if the table does not exist."""

    version: int
    rows: pa.Table
    """All current rows, or the rows that were added since an earlier refresh."""
    is_whole: bool
    """Whether they are all current rows."""


class _Mark(NamedTuple):
    """Tells a table from another table in its place: another table has another file of the version."""

    version: int
    sha256: bytes
    """The hash of the file of the version."""


@dataclass(frozen=True)
class Upkeep:
    """The number of files of a table, and of commits since its last checkpoint, which is None if the table is not on a disk."""

    files: int
    commits: int | None


class Lake:
    """A Delta table of positions. One that does not exist has no rows, and the first `append` creates it.

    CallError if deltalake is not installed, or OFFSETS_TABLE_REPLACED once another table is at its path. RetryError OFFSETS_TABLE if the
    table cannot be read or written.
    """

    def __init__(self, path: str, storage_options: Mapping[str, str] | None) -> None:
        try:
            import deltalake
        except ImportError:
            raise SparklogError("OFFSETS_EXTRA", module="deltalake") from None
        self._delta = deltalake
        self._path = path
        self.storage_options = dict(storage_options or {})
        """The settings with which the table is reached, and the heartbeats beside it."""
        # To look after each commit for log files that are due takes longer than the commit, and the longer, the more there were.
        self._after_commit = deltalake.PostCommitHookProperties(cleanup_expired_logs=False)
        self._open: DeltaTable | None = None
        self._mark: _Mark | None = None
        self._files: DeltaStorageHandler | None = None
        """The files of a table at a URL."""
        self._numbers: tuple[int, dict[str, int]] = (-1, {})
        """A version of the open table, and the versions of applications in it that were asked for."""
        # No other thread may bring the table up to date between the look at the newest number and the commit of the next number. Otherwise
        # the commit would not conflict with the versions that the thread saw.
        self._lock = threading.RLock()

    def exists(self) -> bool:
        """Whether there is a Delta table."""
        with self._faults():
            return self._table() is not None

    def rows(self, group: str | None = None, *, current: bool) -> pa.Table:
        """The rows of a group, or of all, in the order in which they were committed.

        With `current`, only the greatest (generation, offset) of each group, topic and partition.
        """
        return self._found(_select(group, current=current))

    def refresh(self, group: str, since: int | None = None) -> Refresh:
        """The current rows of a group; with the version of an earlier refresh, only the rows that were added since.

        If Delta's log does not have each change, all current rows are returned nevertheless. Such a change is missing after a clean-up of a
        version in between, a deletion of its file, or a deletion of rows by hand.
        """
        with self._faults():
            table = self._table()
            if table is None:
                return Refresh(-1, SCHEMA.empty_table(), True)
            added = None if since is None else self._added(table, group, since)
            return Refresh(table.version(), self._answer(table, _select(group, current=True)) if added is None else added, added is None)

    def note(self, group: str, number: int) -> pa.Table:
        """The note that a commit of a group wrote; no row if it wrote none. It opens no other file of the table."""
        return self._found(_select(group, where=f'"partition" = -1 AND seq = {number}'))

    def last(self, group: str) -> int:
        """The number of the newest commit of a group; 0 if it has none."""
        with self._faults():
            table = self._table()
            return 0 if table is None else self._number(table, group)

    def versions(self, members: Iterable[str]) -> dict[str, int]:
        """How often each of these members committed or was fenced."""
        with self._faults():
            table = self._table()
            return {member: 0 if table is None else self._of(table, _member(member)) for member in members}

    def append(self, rows: pa.Table, group: str, number: int | None, versions: Mapping[str, int], seen: int | None = None) -> int | None:
        """Adds rows in one commit, which has this number among the commits of the group; None if one has it already, or a greater one.

        A commit without a number is a member's. It is refused, with None, if the group's newest number is not `seen`. It has
        the version after the given version of each member: None if the member no longer has this version. Delta lets only one commit have a
        number or a version. Which one it was is read from the table, not from the error of a commit that failed. Returns the version of the
        table that the commit made.
        """
        with self._faults():
            table = self._table() or self._create()
            if not self._are_free(table, group, number, versions) or seen not in (None, self._number(table, group)):
                return None
            taken = {_member(member): version + 1 for member, version in versions.items()}
            taken |= {} if number is None else {_application(group): number}
            transactions = [self._delta.Transaction(*each) for each in taken.items()]
            properties = self._delta.CommitProperties(max_commit_retries=_TRIES, app_transactions=transactions)
            try:
                self._delta.write_deltalake(
                    table,
                    self._with_all_columns(rows, table),
                    mode="append",
                    commit_properties=properties,
                    post_commithook_properties=self._after_commit,
                )
            except self._delta.exceptions.CommitFailedError as error:
                now = self._table()
                # Another program created the table at the same time: then the schema is written twice, which changes nothing.
                is_created_twice = any(words in str(error) for words in ("Metadata changed", "Protocol changed"))
                if now is None or (self._are_free(now, group, number, versions) and not is_created_twice):
                    raise
                # The commit that was first may be this one, whose answer was lost: then its rows count, and adding them again is safe.
                return None
            self._mark = self._marked(table) or self._mark
            return int(table.version())

    def maintain(self) -> dict[str, int]:
        """Joins small files, writes a checkpoint, and deletes files that were replaced long ago; never a file that may still be committed.

        Other threads may use the table meanwhile. Where files could not be joined, the rest is tried before that error is raised. Returns
        how many files it joined, and how many it deleted.
        """
        with self._named():
            if not self.exists():
                return {"joined": 0, "deleted": 0}
            table = self._delta.DeltaTable(self._path, storage_options=self.storage_options)
            try:
                joined = self._joined(table)
            except Exception:
                with suppress(Exception):  # the next upkeep tries the rest again
                    self._cleaned(table)
                raise
            return {"joined": joined, "deleted": self._cleaned(table)}

    def _cleaned(self, table: DeltaTable) -> int:
        """Writes a checkpoint and deletes files that were replaced long ago, and returns how many."""
        table.update_incremental()
        table.create_checkpoint()
        table.cleanup_metadata()
        return len(table.vacuum(dry_run=False))

    def _joined(self, table: DeltaTable) -> int:
        """Joins small files, and returns how many."""
        # deltalake gives a compaction up after 15 other commits were first, and has no setting for that.
        for number in range(1, COMPACTIONS + 1):
            try:
                return int(table.optimize.compact()["numFilesRemoved"])
            except self._delta.exceptions.CommitFailedError:
                if number == COMPACTIONS:
                    raise
                table.update_incremental()
        raise AssertionError

    def upkeep(self) -> Upkeep | None:
        """How far upkeep is behind; None if the table does not exist."""
        with self._faults():
            table = self._table()
            if table is None:
                return None
            if "://" in self._path:
                return Upkeep(len(table.file_uris()), None)
            found = (_CHECKPOINT.fullmatch(each.name) for each in Path(self._path, "_delta_log").iterdir())
            last = max((int(each[1]) for each in found if each), default=0)
            return Upkeep(len(table.file_uris()), int(table.version()) - last)

    def _found(self, query: str) -> pa.Table:
        """The rows that a query of `_select` finds."""
        with self._faults():
            table = self._table()
            return SCHEMA.empty_table() if table is None else self._answer(table, query)

    def _answer(self, table: DeltaTable, query: str) -> pa.Table:
        return pa.table(self._delta.QueryBuilder().register("offsets", table).execute(query).read_all()).cast(SCHEMA)

    def _added(self, table: DeltaTable, group: str, since: int) -> pa.Table | None:
        """The rows of a group that versions after this one added, maybe some twice; None if the log does not tell, or rows were deleted."""
        until = table.version()
        if not 0 <= until - since <= _READ_ON:
            return None
        try:
            # A compaction changes no data, so its files are not among the changes. The version `since` is read again: this fails if the
            # table was removed, which deltalake does not notice.
            found = pa.table(table.load_cdf(since, until, predicate=f'"group" = {_literal(group)}'))
        except Exception:  # The query over all rows finds the rows, or fails with the same cause.
            return None
        kinds = found["_change_type"].unique().to_pylist()
        return found.select(SCHEMA.names).cast(SCHEMA) if set(kinds) <= {"insert"} else None

    def _table(self) -> DeltaTable | None:
        """The table as it is now; None if it does not exist."""
        try:
            if self._open is None:
                opened = self._delta.DeltaTable(self._path, storage_options=self.storage_options)
                require_schema(self._path, {field.name: (field.type.type, field.nullable) for field in opened.schema().fields})
                self._open = opened
            else:
                self._require_same(self._open)
                self._open.update_incremental()
            if self._mark is None or self._mark.version != int(self._open.version()):
                self._mark = self._marked(self._open) or self._mark
        except self._delta.exceptions.TableNotFoundError as error:
            if "Unknown scheme" in str(error):
                raise SparklogError("OFFSETS_STORE", table=self._path) from error
            return None
        return self._open

    def _marked(self, table: DeltaTable) -> _Mark | None:
        """The mark of an open table, by the file that is there now. None if the file cannot be read."""
        version = int(table.version())
        try:
            return _Mark(version, hashlib.sha256(self._bytes(f"_delta_log/{version:020}.json")).digest())
        except OSError:
            return None

    def _bytes(self, name: str) -> bytes:
        """A file of the table. deltalake reads it at a URL, by a HEAD and a GET."""
        if "://" not in self._path:
            return Path(self._path, name).read_bytes()
        if self._files is None:
            from deltalake.fs import DeltaStorageHandler

            self._files = DeltaStorageHandler(self._path, self.storage_options)
        return bytes(self._files.open_input_file(name).read())

    def _require_same(self, table: DeltaTable) -> None:
        """CallError OFFSETS_TABLE_REPLACED if another table has its place: an open table does not notice that, and takes its versions."""
        mark = self._marked(table)
        if mark == self._mark:
            return
        if mark is None or self._mark is None or mark.version != self._mark.version:
            self._numbers = -1, {}
            # The file may have been cleaned up, or belong to a commit whose answer was lost.
            try:
                now = self._delta.DeltaTable(self._path, storage_options=self.storage_options)
            except self._delta.exceptions.TableNotFoundError:
                return  # it may come again
            if now.metadata().id == table.metadata().id and now.version() >= table.version():
                return
        raise SparklogError("OFFSETS_TABLE_REPLACED", table=self._path)

    def _are_free(self, table: DeltaTable, group: str, number: int | None, versions: Mapping[str, int]) -> bool:
        """Whether no commit has the number, or the next version of any of these."""
        seen = {member: self._of(table, _member(member)) for member in versions}
        return (number is None or self._number(table, group) < number) and seen == versions

    def _number(self, table: DeltaTable, group: str) -> int:
        return self._of(table, _application(group))

    def _of(self, table: DeltaTable, application: str) -> int:
        """The version of an application. deltalake opens each file of Delta's log since the last checkpoint to find it."""
        version = int(table.version())
        if self._numbers[0] != version:
            self._numbers = version, {}
        known = self._numbers[1]
        if application not in known:
            known[application] = table.transaction_version(application) or 0
        return known[application]

    def _with_all_columns(self, rows: pa.Table, table: DeltaTable) -> pa.Table:
        """The rows, with nulls in the columns that another version of sparklog gave the table."""
        for field in pa.schema(table.schema().to_arrow()):
            if field.name not in SCHEMA.names:
                rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        return rows

    def _create(self) -> DeltaTable:
        # If another writer creates it first, this one takes that table.
        self._delta.DeltaTable.create(
            self._path, SCHEMA, mode="ignore", configuration=dict(PROPERTIES), storage_options=self.storage_options
        )
        table = self._table()
        assert table is not None
        return table

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """One thread at a time uses the open table, and errors are named."""
        with self._named(), self._lock:
            yield

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors of deltalake become errors of the table."""
        global _used_by
        # Its lock may be held for ever by a thread that the fork did not copy; and deltalake would print a panic, with its trace.
        if _used_by not in (None, os.getpid()):
            raise SparklogError("OFFSETS_FORKED", table=self._path)
        _used_by = os.getpid()
        try:
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


def _application(group: str) -> str:
    """The id of an application under which Delta keeps the number of a group's newest commit, as the version of its transactions."""
    return f"sparklog.offsets/{group}"


def _member(member: str) -> str:
    """The id of an application whose version counts how often a member committed or was fenced."""
    return f"sparklog.members/{member}"


def _select(group: str | None, *, current: bool = False, where: str = "true") -> str:
    """The query for the rows of a group, or of all, in the table `offsets`: as `Lake.rows` returns them."""
    found = "offsets" if group is None else f'(SELECT * FROM offsets WHERE "group" = {_literal(group)} AND {where}) AS found'
    if current:
        rank = 'PARTITION BY "group", topic, "partition"'
        rank += ' ORDER BY generation DESC, "offset" DESC, seq DESC NULLS LAST, committed_at DESC, metadata DESC NULLS LAST'
        found = f"(SELECT *, row_number() OVER ({rank}) AS place FROM {found}) AS ranked WHERE place = 1"
    order = 'seq NULLS FIRST, committed_at, generation, topic, "partition", "offset"'
    columns = ", ".join(f'"{name}"' for name in SCHEMA.names)
    return f"SELECT {columns} FROM {found} ORDER BY {order}"


def _literal(text: str) -> str:
    """The text as a literal of SQL, in which only the quote has a meaning."""
    return "'" + text.replace("'", "''") + "'"
