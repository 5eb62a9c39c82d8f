"""Files on a mounted disk. Only regular files below the root are read, and no link is followed. FORMAT.md section 2."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Literal

from sparklog.store.store import Absent, Damaged, Entry, File, Store, below

# Not every system has all of these. With O_NONBLOCK, a pipe in place of a file does not make the reader wait.
_READ = os.O_RDONLY
for _flag in ("O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW", "O_BINARY"):
    _READ |= getattr(os, _flag, 0)


class LocalStore(Store):
    """The files below a path, which must be absolute."""

    has_links = True

    def __init__(self, root: str) -> None:
        self.root = root
        self._prefix = root if root.endswith("/") else f"{root}/"

    def location(self, name: str) -> str:
        """The path."""
        return self._path(name) if name else self.root

    def above(self) -> LocalStore | None:
        """The store of the folder above; None at the top of the file system."""
        folder = str(Path(self.root).parent)
        return None if folder == self.root else LocalStore(folder)

    def look(self, name: str) -> Entry | None:
        """By one stat. A link that leads nowhere exists."""
        try:
            return _entry(name.rpartition("/")[2], os.lstat(self._path(name)) if name else Path(self.root).stat())
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return None
            raise

    def names(self, folder: str) -> list[str]:
        """By one listing."""
        try:
            with os.scandir(self._path_without_links(folder, of_folder=True)) as found:
                return [each.name for each in found]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def entries(self, folder: str) -> list[Entry]:
        """By one listing, and a stat for each name."""
        entries = []
        try:
            with os.scandir(self._path_without_links(folder, of_folder=True)) as found:
                for each in found:
                    try:
                        entries.append(_entry(each.name, each.stat(follow_symlinks=False)))
                    except FileNotFoundError:
                        continue
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(entries)

    def tag(self, name: str) -> tuple[int, ...] | None:
        """Inode, length and time."""
        try:
            status = os.lstat(self._path(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def are_one(self, name: str, other: str) -> bool:
        """Whether both have one inode."""
        try:
            return os.path.samestat(os.lstat(self._path(name)), os.lstat(self._path(other)))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def open(self, name: str) -> LocalFile:
        """Keeps a file descriptor until it is closed."""
        path = self._path_without_links(name)
        try:
            descriptor = os.open(path, _READ)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise Damaged("a symbolic link is in its place") from None
            if error.errno == errno.ENOTDIR:
                raise Damaged("a folder above it is not a folder") from None
            if error.errno == errno.ENOENT:
                raise Absent from None
            raise
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise Damaged("it is not a regular file")
        return LocalFile(descriptor, status.st_size)

    def _path(self, name: str) -> str:
        return self._prefix + below(name)

    def _path_without_links(self, name: str, *, of_folder: bool = False) -> str:
        """The path of a name. Damaged if a folder above it, or the folder itself, is a symbolic link."""
        if not name:
            return self.root
        path = self._path(name)
        at = len(self._prefix)
        while (at := path.find("/", at)) > 0:
            _require_no_link(path[:at])
            at += 1
        if of_folder:
            _require_no_link(path)
        return path


class LocalFile(File):
    """A file that is read at positions."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self.size = size

    def read(self, position: int, count: int) -> bytes:
        """By `pread`."""
        pieces = []
        while count and (piece := os.pread(self._descriptor, count, position)):
            pieces.append(piece)
            position += len(piece)
            count -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self._descriptor)


def _require_no_link(folder: str) -> None:
    try:
        mode = os.lstat(folder).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISLNK(mode):
        raise Damaged(f"a symbolic link is in place of the folder {folder}")


def _entry(name: str, status: os.stat_result) -> Entry:
    kind: Literal["file", "folder", "link", "other"] = "other"
    if stat.S_ISREG(status.st_mode):
        kind = "file"
    elif stat.S_ISDIR(status.st_mode):
        kind = "folder"
    elif stat.S_ISLNK(status.st_mode):
        kind = "link"
    return Entry(name, kind, status.st_size, status.st_mtime, status.st_nlink)
