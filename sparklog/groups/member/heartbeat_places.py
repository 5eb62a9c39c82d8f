"""The places of heartbeats: a folder beside a table on a disk, or objects beside a table in a bucket of S3."""

from __future__ import annotations

import hashlib
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sparklog.errors import SparklogError
from sparklog.store.store import is_in_bucket

if TYPE_CHECKING:
    from obstore.store import S3Store

Mark = tuple[int, int | str]
"""A mark of a member that is alive. It changes with each heartbeat, or with each commit if its heartbeats are not in their place.

It is compared. Only people read its first part: the time in nanoseconds by the clock of the place.
"""

_HEARTBEAT_MS = 5_000
_HEARTBEAT_IN_BUCKET_MS = 15_000
"""Each heartbeat is a PUT, and each check of the others a LIST. Both cost money."""


class HeartbeatPlace(ABC):
    """A place with small files, each under a name. Threads may share it. Each failure is an OSError."""

    name: str
    """Where it is, for messages."""
    calls_every_s: float
    """The least seconds between two checks of a member of its file of calls."""
    remedy: str
    """The remedy if members do not see one another's files here."""

    @abstractmethod
    def put(self, name: str, text: str) -> None:
        """Writes a file. It appears when it is complete."""

    @abstractmethod
    def touch(self, name: str) -> None:
        """Gives a file another mark. Creates it if it does not exist."""

    @abstractmethod
    def mark(self, name: str) -> Mark | None:
        """The mark of a file; None if it does not exist."""

    @abstractmethod
    def marks(self, ending: str) -> dict[str, Mark]:
        """The marks of all files whose names end so, by the name without the ending: one listing."""

    @abstractmethod
    def read(self, name: str) -> str | None:
        """The text of a file; None if it does not exist."""

    @abstractmethod
    def remove(self, names: Iterable[str]) -> None:
        """Deletes these files, as far as they exist."""


class Folder(HeartbeatPlace):
    """A folder on a disk."""

    calls_every_s = 0.1
    remedy = "Mount one folder beside the table for all members."

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)

    def put(self, name: str, text: str) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        part = self._part(name)
        part.write_text(text, encoding="utf-8")
        part.replace(self.path / name)

    def touch(self, name: str) -> None:
        (self.path / name).touch()

    def mark(self, name: str) -> Mark | None:
        try:
            return _mark((self.path / name).stat())
        except FileNotFoundError:
            return None

    def marks(self, ending: str) -> dict[str, Mark]:
        found: dict[str, Mark] = {}
        with suppress(FileNotFoundError), os.scandir(self.path) as entries:  # no member wrote a file yet
            for each in entries:
                if each.name.endswith(ending):
                    with suppress(FileNotFoundError):  # it was deleted since the listing
                        found[each.name.removesuffix(ending)] = _mark(each.stat())
        return found

    def read(self, name: str) -> str | None:
        try:
            return (self.path / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            for path in (self.path / name, self._part(name)):
                path.unlink(missing_ok=True)

    def _part(self, name: str) -> Path:
        return self.path / f".{Path(name).stem}.part"


def _mark(found: os.stat_result) -> Mark:
    return found.st_mtime_ns, found.st_ino


class Bucket(HeartbeatPlace):
    """Objects in a bucket of S3, which are reached with the settings of the table: what these leave out is from the environment."""

    calls_every_s = 1.0
    remedy = "Give all members one URL of the table, and keys with which they read and write beside it."

    def __init__(self, table: str, name: str, storage_options: Mapping[str, str]) -> None:
        """Asks nothing. CallError MEMBERS_EXTRA if obstore is not installed."""
        if find_spec("obstore") is None:
            raise SparklogError("MEMBERS_EXTRA", module="obstore", table=table)
        self.name = name
        self._options = dict(storage_options)
        self._made: S3Store | None = None

    def put(self, name: str, text: str) -> None:
        import obstore

        with self._faults():
            obstore.put(self._store, name, text.encode(), use_multipart=False)

    def touch(self, name: str) -> None:
        self.put(name, uuid.uuid4().hex)  # the ETag may be a hash of the bytes

    def mark(self, name: str) -> Mark | None:
        import obstore

        with self._faults():
            try:
                return _mark_of(obstore.head(self._store, name))
            except FileNotFoundError:
                return None

    def marks(self, ending: str) -> dict[str, Mark]:
        import obstore

        with self._faults():
            pages = obstore.list(self._store, chunk_size=1_000)
            found = [each for page in pages for each in page]
        return {each["path"].removesuffix(ending): _mark_of(each) for each in found if each["path"].endswith(ending)}

    def read(self, name: str) -> str | None:
        import obstore

        with self._faults():
            try:
                return bytes(obstore.get(self._store, name).bytes()).decode(errors="replace")
            except FileNotFoundError:
                return None

    def remove(self, names: Iterable[str]) -> None:
        import obstore

        with self._faults():
            obstore.delete(self._store, list(names))  # by one request; S3 takes absent ones for deleted

    @property
    def _store(self) -> S3Store:
        from sparklog.store.buckets import store_beside_table

        # Two threads may both make one.
        if self._made is None:
            self._made = store_beside_table(self.name, self._options)
        return self._made

    @contextmanager
    def _faults(self) -> Iterator[None]:
        from sparklog.store import objects
        from sparklog.store.store import Absent

        try:
            with objects.faults():
                yield
        except Absent:
            raise OSError("the bucket does not exist") from None


def _mark_of(found: Mapping[str, object]) -> Mark:
    """The ETag, which changes with the bytes, and the time: a listing has both."""
    import datetime

    at = found["last_modified"]
    assert isinstance(at, datetime.datetime)
    return int(at.timestamp() * 1e9), str(found["e_tag"])


def place_of(table: str, group: str, storage_options: Mapping[str, str]) -> HeartbeatPlace:
    """The place of the heartbeats of a group: `<table>.members/<hash of the group's name>`. It asks nothing.

    CallError OPTION_VALUE if the table is in a store where members were never tried; MEMBERS_EXTRA.
    """
    digest = hashlib.sha256(group.encode()).hexdigest()
    if is_in_bucket(table):
        return Bucket(table, f"{table.rstrip('/')}.members/{digest}", storage_options)
    if "://" in table:
        reason = "members need a table on a disk or in a bucket of S3, where their heartbeats are beside it"
        reason += '; give partition_assignment_strategy="exclusive" to read the group alone'
        raise SparklogError("OPTION_VALUE", option="table", value=table, reason=reason)
    # Beside the table itself, also where members name it by different links.
    return Folder(Path(f"{os.path.realpath(table)}.members") / digest)


def default_interval_ms(table: str, session_ms: int) -> int:
    """The milliseconds between heartbeats, if a program sets none: 5,000 on a disk; in a bucket 15,000, or a third of a shorter session."""
    return min(_HEARTBEAT_IN_BUCKET_MS, max(1, session_ms // 3)) if is_in_bucket(table) else _HEARTBEAT_MS
