"""Files of a place that has paths: objects in a bucket, or files of a file system. A client makes the requests. FORMAT.md section 2.

There are no links, and in a bucket no folders: a folder exists as far as objects have its name before theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from functools import partial
from typing import TypeVar

from sparklog.store.remote import ReadAhead, RemoteFile, RemoteStore, SharedFile, required_name
from sparklog.store.requests import AT_ONCE
from sparklog.store.store import Absent, Damaged, Entry, File, below

T = TypeVar("T")

_DEPTH = 2
"""`tree` has the entries of a folder, and of the folders in it."""


class PathClient(ABC):
    """Asks a place for files and folders by their paths. Several threads may call it. Each failure that is not named is an OSError."""

    lists_in_order: bool
    """As `Store.lists_in_order`."""
    has_empty_folders = True
    """As `Store.has_empty_folders`."""
    tells_folders = False
    """Whether a folder that is read is Absent, and a file that is listed has nothing in it. Otherwise both may be an OSError."""

    @abstractmethod
    def storage_options(self, table: str) -> dict[str, str]:
        """As `Store.storage_options`."""

    @abstractmethod
    def look(self, path: str) -> Entry | None:
        """The entry of a path, with any name; None if it does not exist. By one request; in S3, by two if it is not a file."""

    def has_folder(self, path: str) -> bool:
        """As `Store.has_folder`."""
        return self.look(path) is not None

    @abstractmethod
    def listed(self, path: str, *, recursive: bool) -> Iterator[tuple[str, Entry]]:
        """The path and the entry of each file and folder in a folder; with `recursive`, of its folders too.

        It has nothing if the folder does not exist. By one request for a thousand names.
        """

    @abstractmethod
    def opened(self, path: str) -> RemoteFile:
        """Opens a file, by one request. Absent if it does not exist."""

    def begun(self, path: str, position: int) -> tuple[RemoteFile, bytes]:
        """Opens a file, with the first bytes from a position on if they came with the answer. Absent if it does not exist."""
        del position
        return self.opened(path), b""

    def whole(self, path: str, bytes_max: int) -> tuple[Hashable, bytes]:
        """The tag of a file, and its bytes. Absent if it does not exist; Damaged if it has more than `bytes_max` bytes."""
        with self.opened(path) as file:
            return file.tag, file.whole(bytes_max)

    def reader(self, path: str) -> Callable[[int, int], bytes]:
        """As `Store.reader`."""
        return SharedFile(partial(self.opened, path)).read


class PathStore(RemoteStore):
    """The files of a place whose paths begin with a base and a folder.

    Args:
        place: The beginning of the root's name, such as `s3a://bucket`; "" if the root is named by its path alone.
        base: The beginning of each path that the client is asked for, such as `bucket`, "/" or "".
        folder: The folder below both that is the root, without a slash before and after it.
        make_client: Makes the client. It can be pickled.

    Nothing is asked of a server until something is looked at.
    """

    def __init__(
        self,
        place: str,
        base: str,
        folder: str,
        make_client: Callable[[], PathClient],
        max_requests: int = AT_ONCE,
        made: PathClient | None = None,
    ) -> None:
        self.place = place
        self.max_requests = max_requests
        self._base = base
        self._folder = folder
        self._make_client = make_client
        self._made = made
        self._path_of_root = joined(base, folder)
        self.root = joined(place, folder) if place else self._path_of_root or "."

    def __reduce__(self) -> tuple[type[PathStore], tuple[object, ...]]:
        return PathStore, (self.place, self._base, self._folder, self._make_client, self.max_requests)

    @property
    def client(self) -> PathClient:
        """The client. OSError if it cannot be made; CallError OPTION_VALUE for settings of no use."""
        # Two threads may both make one.
        if self._made is None:
            self._made = self._make_client()
        return self._made

    @property
    def lists_in_order(self) -> bool:  # type: ignore[override]
        """That of the client."""
        return self.client.lists_in_order

    @property
    def has_empty_folders(self) -> bool:  # type: ignore[override]
        """That of the client."""
        return self.client.has_empty_folders

    def storage_options(self, table: str) -> dict[str, str]:
        """Those of the client."""
        return self.client.storage_options(table)

    def above(self) -> PathStore | None:
        """The store of the folder above; None at the top of the place."""
        if not self._folder:
            return None
        above = self._folder.rpartition("/")[0]
        return PathStore(self.place, self._base, above, self._make_client, self.max_requests, self._made)

    def look(self, name: str) -> Entry | None:
        """By one request; in S3, by two if it is not a file."""
        path = self._path(name)
        found = self.client.look(path)
        return found._replace(name=name.rpartition("/")[2]) if found else None

    def has_folder(self, name: str) -> bool:
        """By as many requests as the client needs."""
        return self.client.has_folder(self._path(name))

    def names(self, folder: str) -> list[str]:
        """By one request for a thousand names."""
        return [entry.name for entry in self._listed(folder)]

    def entries(self, folder: str) -> list[Entry]:
        """By the same requests."""
        return sorted(self._listed(folder))

    def tree(self, folder: str) -> dict[str, list[Entry]]:
        """By one request for a thousand names in the folder and below it."""
        found: dict[str, list[Entry]] = {"": []}
        for path, entry in self._found(folder, recursive=True):
            parts = [required_name(part, self.location(folder)) for part in path.split("/")]
            if entry.is_folder and len(parts) == 1:
                found.setdefault(path, [])
            if len(parts) <= _DEPTH:
                found.setdefault("/".join(parts[:-1]), []).append(entry._replace(name=parts[-1]))
        return {name: sorted(entries) for name, entries in found.items()}

    def open(self, name: str) -> File:
        """By one request for its length and tag, and by one request for each part that is read. Nothing keeps the file until then."""
        return self._of_file(name, lambda path: ReadAhead(self.client.opened(path)))

    def open_at(self, name: str, position: int) -> File:
        """By one request if the client needs no length. Then a read at the position takes no other request."""

        def ask(path: str) -> File:
            file, held = self.client.begun(path, position)
            return ReadAhead(file, position, held).at(position)

        return self._of_file(name, ask)

    def opened(self, name: str) -> RemoteFile:
        """By one request."""
        return self.client.opened(self._path(name))

    def read(self, name: str, bytes_max: int) -> bytes:
        """By one request if the client needs no length."""
        return self._of_file(name, lambda path: self._whole(path, bytes_max))[1]

    def read_tagged(self, name: str, bytes_max: int) -> tuple[Hashable, bytes]:
        """By the same requests. A folder may be Absent."""
        return self._whole(self._path(name), bytes_max)

    def _whole(self, path: str, bytes_max: int) -> tuple[Hashable, bytes]:
        """A file. An answer without bytes is believed only if a look says that the file is empty."""
        tag, data = self.client.whole(path, bytes_max)
        if not data and (found := self.client.look(path)) and found.bytes:
            raise OSError(f"the answer is empty, and the file has {found.bytes} bytes")
        return tag, data

    def reader(self, name: str) -> Callable[[int, int], bytes]:
        """By one request for each read if the client needs no length."""
        return self.client.reader(self._path(name))

    def _of_file(self, name: str, ask: Callable[[str], T]) -> T:
        """The answer about a path. Damaged if the path is a folder."""
        path = self._path(name)
        try:
            return ask(path)
        except (Absent, OSError) as error:
            if isinstance(error, OSError) and self.client.tells_folders:
                raise
            with suppress(OSError):  # the first error says more
                found = self.look(name)
                if found and not found.is_file:
                    raise Damaged("it is not a regular file") from None
            raise

    def _path(self, name: str) -> str:
        return joined(self._path_of_root, below(name)) if name else self._path_of_root

    def _listed(self, folder: str) -> list[Entry]:
        return [entry._replace(name=required_name(name, self.location(folder))) for name, entry in self._found(folder, recursive=False)]

    def _found(self, folder: str, *, recursive: bool) -> Iterator[tuple[str, Entry]]:
        """The path below the folder, and the entry, of each file and folder in it."""
        path = self._path(folder)
        try:
            found = self.client.listed(path, recursive=recursive)
        except OSError:
            if self.client.tells_folders:
                raise
            with suppress(OSError):  # the first error says more
                entry = self.look(folder)
                if entry and not entry.is_folder:
                    return
            raise
        within = f"{path.strip('/')}/".lstrip("/")
        for each, entry in found:
            name = each.lstrip("/")  # a file system may leave out the slash at the beginning, or add one
            if not name.startswith(within):
                raise Damaged(f"its listing has the name {each!r}, which is not in {self.location(folder)}")
            yield name.removeprefix(within), entry


def joined(*parts: str) -> str:
    """The parts with a slash between them, except for empty parts; the first part may end with a slash."""
    found = [part for part in parts if part]
    return "/".join([found[0].rstrip("/"), *found[1:]]) if len(found) > 1 else "".join(found)
