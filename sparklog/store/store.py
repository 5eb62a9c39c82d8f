"""The interface to every place that keeps the files of a root, for readers. The Python half of `io.sparklog.storage.LogStore`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Literal, NamedTuple


class Absent(Exception):
    """The file does not exist."""


class Damaged(Exception):
    """A file, or its contents, is not as the format allows: a reason in words. Callers of this package and of `ondisk` see
    a SparklogError instead, which names the file.
    """


class Entry(NamedTuple):
    """A name in a folder, with what it is. `modified` is in seconds since 1970 by the clock of the place; `links` counts its hard links."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    bytes: int
    modified: float
    links: int

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.kind == "file"

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, and not a link to one."""
        return self.kind == "folder"


class File(ABC):
    """A file that is open for reading. `size` is the number of bytes that it had when it was opened."""

    size: int

    @abstractmethod
    def read(self, position: int, count: int) -> bytes:
        """The `count` bytes from `position` on; fewer if the file ends before."""

    @abstractmethod
    def close(self) -> None:
        """Closes the file. It cannot be read afterwards."""

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Store(ABC):
    """A place that keeps the files of one root.

    Names are relative to the root and have slashes; `sparklog.ondisk.names` builds them. A name that leads out of the root is a fault
    of the program: ValueError. Every failure that is not named here is an OSError. Several threads may call a store at once, and it can be
    pickled.
    """

    root: str
    """The full name of the root: messages show it."""

    def location(self, name: str) -> str:
        """The full name of a file or folder, for messages."""
        return f"{self.root}/{name}"

    @abstractmethod
    def above(self) -> Store | None:
        """A store of the folder that holds the root; None if there is none."""

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Whether a name exists, as a file, a folder or anything else. False also if that cannot be told."""

    @abstractmethod
    def look(self, name: str) -> Entry | None:
        """The kind of a name; None if it does not exist. "" is the root itself, and only that may be reached through a link."""

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """The names in a folder, in any order; empty if there is no such folder. Damaged if it is reached through a link."""

    @abstractmethod
    def entries(self, folder: str) -> list[Entry]:
        """The same names, sorted, each with what it is; without those that were deleted since the listing."""

    @abstractmethod
    def tag(self, name: str) -> Hashable | None:
        """Distinguishes a file from one that takes its place later, without reading a byte of it; None if it is absent."""

    @abstractmethod
    def are_one(self, name: str, other: str) -> bool:
        """Whether both names are hard links to one file. False also if that cannot be told."""

    @abstractmethod
    def open(self, name: str) -> File:
        """Opens a file for reading. Absent if it does not exist; Damaged if it is not a regular file, or is reached through a link."""

    def read(self, name: str, bytes_max: int) -> bytes:
        """A whole file. Damaged if it has more than `bytes_max` bytes; otherwise as `open`."""
        with self.open(name) as file:
            if file.size > bytes_max:
                raise Damaged(f"it has {file.size} bytes, more than {bytes_max}")
            return file.read(0, file.size)
