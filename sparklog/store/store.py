"""The interface to every place that keeps the files of a root, for readers. The Python half of `io.sparklog.storage.LogStore`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Literal, NamedTuple, TypeVar

from sparklog.store.requests import Answer

A = TypeVar("A")
B = TypeVar("B")
F = TypeVar("F", bound="File")


class Absent(Exception):
    """The file does not exist."""


class Damaged(Exception):
    """A file, or its contents, is not as the format allows: a reason in words. Callers of this package and of `ondisk` see
    a SparklogError instead, which names the file.
    """


class Entry(NamedTuple):
    """A name in a folder, with its kind. `modified` is in seconds since 1970 by the clock of the place; `links` counts its hard links."""

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


def below(name: str) -> str:
    """The name of a file or folder, checked. ValueError if it leads out of the root, or if the place has another, shorter name."""
    if not {"", ".", ".."}.isdisjoint(name.split("/")):
        raise ValueError(f"{name!r} is not the name of a file below a root")
    return name


def is_in_bucket(url: str) -> bool:
    """Whether a path or URL is in a bucket of S3."""
    return url.lower().startswith(("s3://", "s3a://"))


class File(ABC):
    """A file that is open for reading. `size` is the number of bytes that it had when it was opened.

    A store that keeps open files readable reads one to its end after it was deleted. On others, its deletion is met at a read.
    """

    size: int

    @abstractmethod
    def read(self, position: int, count: int) -> bytes:
        """The `count` bytes from `position` on; fewer if the file ends before. Absent if it is gone, and the store does not keep it."""

    def some(self, position: int, least: int, most: int) -> bytes:
        """At least `least` and at most `most` bytes from a position on, as many as cost no more. Otherwise as `read`."""
        del least
        return self.read(position, most)

    def apart(self, position: int, count: int) -> bytes:
        """As `read`, where the file is known to have the bytes, and the next reads are elsewhere."""
        return self.read(position, count)

    @abstractmethod
    def close(self) -> None:
        """Closes the file. It cannot be read afterwards."""

    def whole(self, bytes_max: int) -> bytes:
        """All of it. Damaged if it has more than `bytes_max` bytes."""
        if self.size > bytes_max:
            raise Damaged(f"it has {self.size} bytes, more than {bytes_max}")
        return self.read(0, self.size)

    def __enter__(self: F) -> F:
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
    """The full name of the root: messages show it, and Spark finds the root by it."""
    is_far: bool = False
    """Whether each request takes long, as over a network, so that it is made before its answer is needed."""
    has_links: bool = False
    """Whether a file can have several names (hard links). Only in such a store is there a Kafka view. FORMAT.md section 8."""

    lists_in_order: bool = False
    """Whether a listing looks at names in their order. Then it may miss a name that comes or goes meanwhile, but it has all greater names
    that exist from then on.
    """
    has_empty_folders: bool = True
    """Whether a folder can be there with nothing in it. In a bucket, a folder is there only as far as objects are in it."""

    def location(self, name: str) -> str:
        """The full name of a file or folder, for messages."""
        return f"{self.root}/{name}"

    def storage_options(self, table: str) -> dict[str, str]:
        """The settings with which deltalake reaches a table at a URL as this store is reached; empty if it is of another kind."""
        del table
        return {}

    def at_once(self, ask: Callable[[A], B], each: Iterable[A]) -> Iterator[B]:
        """`ask` of each, in the order of `each`; an exception is raised in its turn. A store over a network makes several calls at once.

        There, other threads make the calls, some of them before the caller asks for their answers. On a disk, each call is made when the
        caller asks for its answer.
        """
        return map(ask, each)

    def begin(self, ask: Callable[[A], B], argument: A) -> Answer[B]:
        """A call that another thread begins soon where the store is far. On a disk it is made when its answer is asked for."""
        return Answer(ask, argument)

    @abstractmethod
    def above(self) -> Store | None:
        """A store of the folder that holds the root; None if the store cannot reach it."""

    def exists(self, name: str) -> bool:
        """Whether a name exists, as a file, a folder or anything else. OSError if it cannot be seen, which is not to be absent."""
        return self.look(name) is not None

    def has_folder(self, name: str) -> bool:
        """Whether a folder exists, by one request if it does. Where a look takes no more, another thing with the name counts too."""
        return self.exists(name)

    @abstractmethod
    def look(self, name: str) -> Entry | None:
        """The kind of a name; None if it does not exist. "" is the root itself, and only that may be reached through a link."""

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """The names in a folder, in any order; empty if the folder does not exist. Damaged if it is reached through a link."""

    @abstractmethod
    def entries(self, folder: str) -> list[Entry]:
        """The same names, sorted, each with its kind; without names that were deleted since the listing."""

    def tree(self, folder: str) -> dict[str, list[Entry]]:
        """The `entries` of each folder in a folder, by its name; "" has the entries of the folder itself."""
        found = {"": self.entries(folder)}
        folders = [entry.name for entry in found[""] if entry.is_folder]
        found.update(zip(folders, self.at_once(lambda name: self.entries(f"{folder}/{name}"), folders), strict=True))
        return found

    @abstractmethod
    def tag(self, name: str) -> Hashable | None:
        """Distinguishes a file from a later file of its name, without reading a byte of it; None if it is absent."""

    @abstractmethod
    def are_one(self, name: str, other: str) -> bool:
        """Whether both names are hard links to one file."""

    @abstractmethod
    def open(self, name: str) -> File:
        """Opens a file for reading. Absent if it does not exist; Damaged if it is not a regular file, or is reached through a link."""

    def open_at(self, name: str, position: int) -> File:
        """As `open`, for reads that begin at a position. If a read there takes a request, it is made now."""
        del position
        return self.open(name)

    def read(self, name: str, bytes_max: int) -> bytes:
        """A whole file. Damaged if it has more than `bytes_max` bytes; otherwise as `open`."""
        with self.open(name) as file:
            return file.whole(bytes_max)

    def reader(self, name: str) -> Callable[[int, int], bytes]:
        """A function from a position and a count to bytes that the file is known to have, by as few requests as possible.

        Several threads may call it. Fewer bytes, and any exception, say only that `open` is to be asked.
        """

        def read(position: int, count: int) -> bytes:
            with self.open(name) as file:
                return file.read(position, count)

        return read

    def read_tagged(self, name: str, bytes_max: int) -> tuple[Hashable, bytes]:
        """The tag of a file, taken before its bytes, and these. Absent and Damaged as `read`."""
        tag = self.tag(name)
        if tag is None:
            raise Absent
        return tag, self.read(name, bytes_max)
