"""Files, opened so that nothing but a regular file of a bounded size is ever read."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from sparklog.ondisk.layout import Damaged

# Where the system has them: a pipe in place of a file must not make us wait.
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class Absent(Exception):
    """No such file."""


class File:
    """A file that is read at positions. OSError where the system fails, Damaged where the file is not what it should be."""

    def __init__(self, path: Path, *, follow_link: bool = True) -> None:
        try:
            self._descriptor = os.open(path, _READ if follow_link else _READ | _NO_LINK)
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


def read_whole(path: Path, bytes_max: int) -> bytes:
    with File(path) as file:
        if file.bytes > bytes_max:
            raise Damaged(f"it has {file.bytes} bytes, more than {bytes_max}")
        return file.read(0, file.bytes)
