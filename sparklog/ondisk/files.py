"""Files below a root, opened so that nothing but a regular file of a bounded size is ever read. FORMAT.md section 2."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from sparklog.ondisk.faults import Absent, Damaged

# Where the system has them: a pipe in place of a file must not make us wait.
_READ = os.O_RDONLY
for _flag in ("O_CLOEXEC", "O_NONBLOCK", "O_NOFOLLOW", "O_BINARY"):
    _READ |= getattr(os, _flag, 0)


class File:
    """A file that is read at positions. OSError where the system fails, Damaged where the file is not what it should be."""

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
            raise Damaged("it is no file")

    def read(self, position: int, size: int) -> bytes:
        """So many bytes, fewer only where the file ends."""
        pieces = []
        while size and (piece := os.pread(self._descriptor, size, position)):
            pieces.append(piece)
            position += len(piece)
            size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_whole(root: str, name: str, bytes_max: int) -> bytes:
    with File(root, name) as file:
        if file.bytes > bytes_max:
            raise Damaged(f"it has {file.bytes} bytes, more than {bytes_max}")
        return file.read(0, file.bytes)


def path_without_links(root: str, name: str) -> Path:
    """Where a name below the root is, given with slashes. Damaged where a link in place of a folder leads elsewhere."""
    *folders, _ = name.split("/")
    folder = Path(root)
    for part in folders:
        folder /= part
        if folder.is_symlink():
            raise Damaged(f"a symbolic link is in place of the folder {folder}")
    return Path(root, name)
