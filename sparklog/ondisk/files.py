"""Files below a root. Only regular files are read, and only up to a bounded size. FORMAT.md section 2."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from sparklog.ondisk.faults import Absent, Damaged

# Not every system has all of these. With O_NONBLOCK, a pipe in place of a file does not make the reader wait.
_READ = os.O_RDONLY
for _flag in ("O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW", "O_BINARY"):
    _READ |= getattr(os, _flag, 0)


class File:
    """A file that is read at positions. Its constructor raises Absent if the file does not exist, Damaged if it is not a regular file, and
    OSError if the system fails.
    """

    def __init__(self, root: str, name: str) -> None:
        path = path_without_links(root, name)
        try:
            self._descriptor = os.open(path, _READ)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise Damaged("a symbolic link is in its place") from None
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                raise Absent from None
            raise
        status = os.fstat(self._descriptor)
        self.bytes = status.st_size
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise Damaged("it is not a regular file")

    def read(self, position: int, size: int) -> bytes:
        """The `size` bytes from `position` on; fewer if the file ends before."""
        pieces = []
        while size and (piece := os.pread(self._descriptor, size, position)):
            pieces.append(piece)
            position += len(piece)
            size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Closes the file. It cannot be read afterwards."""
        os.close(self._descriptor)

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_whole(root: str, name: str, bytes_max: int) -> bytes:
    """All bytes of a file below the root. Damaged if it has more than `bytes_max`; Absent if it does not exist."""
    with File(root, name) as file:
        if file.bytes > bytes_max:
            raise Damaged(f"it has {file.bytes} bytes, more than {bytes_max}")
        return file.read(0, file.bytes)


def path_without_links(root: str, name: str) -> Path:
    """The path of a name below the root, given with slashes. Damaged if one of its folders is a symbolic link."""
    *folders, _ = name.split("/")
    folder = Path(root)
    for part in folders:
        folder /= part
        if folder.is_symlink():
            raise Damaged(f"a symbolic link is in place of the folder {folder}")
    return Path(root, name)
