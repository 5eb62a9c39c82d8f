"""Roots, their topics, and directories that are not roots. FORMAT.md section 1."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from sparklog.errors import SparklogError
from sparklog.ondisk.names import COMMITS, NOTE_OF_PROBE, checkpoint_version_of, deleted_version_of, is_topic, topic_folder, version_of
from sparklog.store.store import Damaged, Store
from sparklog.store.stores import open_store

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

# Each of these files shows that a directory belongs to a Kafka broker.
_BROKERS = (
    "meta.properties",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


class Root:
    """A root: the store that keeps its files, and the topics in it. As a string it is its full name, which messages show."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @classmethod
    def at(cls, name: str, filesystem: FileSystem | None = None) -> Root:
        """The root of this name, which need not be there. CallError ROOT_REQUIRED, STORE_UNSUPPORTED, OPTION_VALUE.

        `filesystem` is a FileSystem of pyarrow, through which the root is read.
        """
        return cls(open_store(name, filesystem))

    @classmethod
    def holding(cls, path: str) -> Root | None:
        """The root that this absolute path or URL names, or that it is in; None without such a name.

        RetryError IO if that cannot be seen.
        """
        store: Store | None = open_store(path)
        while store:
            found = cls(store)
            if found.exists():
                return found
            store = store.above()
        return None

    def __str__(self) -> str:
        return self.store.root

    def __repr__(self) -> str:
        return f"Root({self.store.root!r})"

    def exists(self) -> bool:
        """Whether there is a root. RetryError IO if that cannot be seen, as while a server cannot be reached, or without permission."""
        try:
            return self.store.has_folder(COMMITS)
        except OSError as error:
            raise SparklogError("IO", file=self, cause=error) from None

    def require(self) -> None:
        """Checks that there is a root.

        CallError ROOT_NOT_A_DIRECTORY, ROOT_NOT_FOUND; for a directory that is not a root, ROOT_WITHOUT_LOG, PARTITION_DIRECTORY,
        LOG_DIRECTORY or BROKER_DIRECTORY. RetryError IO if it cannot be read.
        """
        if self.exists():
            return
        try:
            found = self.store.look("")
        except OSError as error:
            raise SparklogError("IO", file=self, cause=error) from None
        if not found and not self.store.has_empty_folders:
            self._require_listings()
        if not found or not found.is_folder:
            raise SparklogError("ROOT_NOT_A_DIRECTORY" if found else "ROOT_NOT_FOUND", root=self)
        raise self._other_directory()

    def _require_listings(self) -> None:
        """RetryError IO if the store lists nothing below the root, and has a file there: a page of a proxy may look like an empty listing.

        Programs that write leave the file (FORMAT.md annex J), and a copy of a root may not have it.
        """
        if is_seen(self.store, NOTE_OF_PROBE):
            cause = f"the store lists nothing there, and it has {NOTE_OF_PROBE}: the answer was not a listing"
            raise SparklogError("IO", file=self, cause=cause)

    def _other_directory(self) -> SparklogError:
        """The error for a directory without a log: it may belong to a root, or to a broker."""
        above = self.store.above()
        for file in _BROKERS if self.store.has_links else ():  # A broker's files are on a disk.
            for store, name in ((self.store, file), (above, f"../{file}")):
                if is_seen(store, file):
                    return SparklogError("BROKER_DIRECTORY", root=self, file=name, limit="reading it is not supported yet")
        topic, _, partition = str(self).rpartition("/")[2].rpartition("-")
        if above and re.fullmatch("0|[1-9][0-9]{0,3}", partition) and is_topic(topic) and is_seen(above, topic_folder(topic)):
            return SparklogError("PARTITION_DIRECTORY", root=self, partition=partition, topic=topic, above=above.root)
        within, found, _ = f"{self}/".rpartition(f"/{COMMITS}/")
        if found:
            return SparklogError("LOG_DIRECTORY", root=self, above=within or "/")
        return SparklogError("ROOT_WITHOUT_LOG", root=self)

    def topics(self, wanted: Callable[[str], bool] = lambda _: True) -> list[str]:
        """The topics of the root with wanted names, sorted. It lists the root, and the folder of each wanted name."""
        folders = list(filter(wanted, self.folders()))
        return [name for name, holds in zip(folders, self.store.at_once(self._may_hold, folders), strict=True) if holds]

    def folders(self) -> list[str]:
        """The names that have a folder, sorted: all topics, and deleted topics."""
        return sorted(filter(is_topic, self.names(COMMITS)))

    def has(self, topic: str) -> bool:
        """Whether `topics` has this name. It lists the folder of the topic alone."""
        try:
            return is_topic(topic) and holds_topic(self.names_of(topic))
        except SparklogError:
            return topic in self.folders()

    def _may_hold(self, topic: str) -> bool:
        """Whether the folder of a topic holds one. True if it cannot be listed: opening it says why, and the others are still there."""
        try:
            return holds_topic(self.names_of(topic))
        except SparklogError:
            return True

    def names_of(self, topic: str) -> list[str]:
        """The names in the folder of a topic; empty if the folder does not exist.

        A listing may miss names that come or go meanwhile. A slow listing can miss every version, if writers replace all files meanwhile.
        So a listing without a version is made again, unless it has no name and the store lists names in order (FORMAT.md section K.1).
        """
        names = self.names(topic_folder(topic))
        is_absent = not names and self.store.lists_in_order
        return names if _committed(names) or is_absent else self.names(topic_folder(topic))

    def names(self, folder: str) -> list[str]:
        """The names in a folder below the root; empty if the folder does not exist."""
        try:
            return self.store.names(folder)
        except (OSError, Damaged) as error:
            raise SparklogError("IO", file=self.store.location(folder), cause=error) from None


def is_seen(store: Store | None, name: str) -> bool:
    """Whether a name is seen to exist, only to explain an error: False also if that cannot be told."""
    try:
        return store is not None and store.exists(name)
    except OSError:
        return False


def _committed(names: list[str]) -> list[int]:
    """The versions that names tell of, be it of a version file or of a checkpoint."""
    return [version for name in names for version in (version_of(name), checkpoint_version_of(name)) if version is not None]


def holds_topic(names: list[str]) -> bool:
    """Whether a version or checkpoint in the names is later than the last deletion. One that is under way is not seen here."""
    deleted = [version for name in names if (version := deleted_version_of(name)) is not None]
    return max(_committed(names), default=-1) > max(deleted, default=-1)
