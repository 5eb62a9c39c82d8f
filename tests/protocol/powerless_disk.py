"""A disk whose power can be cut: a file system on a loop device, over an image that a FUSE server in this process keeps.

The server sees each write and each flush that the kernel sends to the disk, in order. So it knows, at any moment, what a real disk with a
volatile cache must still have after a power loss (all that was written before the last flush), and what it may have: any of the later
writes, any part of them by sectors, in any order. A device-mapper or a copy of the image file could only show the writes in order.
"""

import ctypes
import os
import random
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from disks import formatted, mounted

SECTOR_BYTES = 512
_WRITE_BYTES_MAX = 1 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)

# Requests and answers of the kernel's FUSE protocol, version 7.31 (linux/fuse.h).
_REQUEST = struct.Struct("<IIQQIIIHH")
_ANSWER = struct.Struct("<IiQ")
_GETATTR, _OPEN, _READ, _WRITE, _STATFS, _RELEASE, _FSYNC, _FLUSH, _INIT, _FORGET = 3, 14, 15, 16, 17, 18, 20, 25, 26, 2
_FILE_MODE = 0o100600
_DIRECT_IO = 1
_BIG_WRITES, _MAX_PAGES = 1 << 5, 1 << 22


class PowerlessDisk:
    """A disk with a volatile cache, as the file `device`."""

    def __init__(self, image: Path, device: Path) -> None:
        """`image` is what it holds at first; `device` is an empty file, over which it is mounted."""
        self.device = device
        self.flushes = 0
        self._bytes = image.stat().st_size
        self._now = os.memfd_create("now")
        """With all writes."""
        self._kept = os.memfd_create("kept")
        """With the writes before the last flush."""
        with image.open("rb") as file:
            _copy(file.fileno(), self._now)
            _copy(file.fileno(), self._kept)
        self._cached: list[tuple[int, bytes]] = []
        """The writes since, in order: position and bytes."""
        self._lock = threading.Lock()
        self._kernel = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self._kernel},rootmode={_FILE_MODE:o},user_id=0,group_id=0,allow_other".encode()
        if _LIBC.mount(b"powerless", str(device).encode(), b"fuse", 0, options) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(device))
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self, image: Path, chance: random.Random) -> str:
        """Makes `image` what a power loss at this moment may leave on the disk, and says what it kept of the writes in the cache."""
        with image.open("wb") as file:
            left = file.fileno()
            with self._lock:
                _copy(self._kept, left)
                cached = list(self._cached)
            how = chance.choice(["nothing", "all", "a first part", "some writes", "some sectors"])
            if how == "nothing":
                cached = []
            elif how == "a first part":
                cached = cached[: chance.randint(0, len(cached))]
            elif how == "some writes":
                cached = [write for write in cached if chance.random() < 0.5]
            for position, octets in cached:
                for at in range(0, len(octets), SECTOR_BYTES):
                    if how != "some sectors" or chance.random() < 0.5:
                        os.pwrite(left, octets[at : at + SECTOR_BYTES], position + at)
        return how

    def close(self) -> None:
        """Unmounts it. Disks that were mounted on it must be unmounted already."""
        subprocess.run(["umount", str(self.device)], check=True)
        for file in (self._kernel, self._now, self._kept):
            os.close(file)

    def _serve(self) -> None:
        while True:
            try:
                request = os.read(self._kernel, _WRITE_BYTES_MAX + 4096)
            except OSError:
                return  # It is unmounted.
            _, what, unique, *_ = _REQUEST.unpack_from(request)
            if what == _FORGET:
                continue
            answer = self._answer(what, memoryview(request)[_REQUEST.size :])
            error = 0 if answer is not None else -38  # ENOSYS: the kernel does without.
            answer = answer or b""
            os.write(self._kernel, _ANSWER.pack(_ANSWER.size + len(answer), error, unique) + answer)

    def _answer(self, what: int, body: memoryview) -> bytes | None:
        if what == _INIT:
            pages = _WRITE_BYTES_MAX // 4096
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 1 << 17, _BIG_WRITES | _MAX_PAGES, 16, 12, _WRITE_BYTES_MAX, 1, pages, 0, 0)
        if what == _GETATTR:
            return struct.pack("<QII6Q10I", 3600, 0, 0, 1, self._bytes, 0, 0, 0, 0, 0, 0, 0, _FILE_MODE, 1, 0, 0, 0, 4096, 0)
        if what == _OPEN:
            return struct.pack("<QII", 0, _DIRECT_IO, 0)
        if what == _READ:
            position, size = struct.unpack_from("<8xQI", body)
            return os.pread(self._now, size, position)
        if what == _WRITE:
            position, size = struct.unpack_from("<8xQI", body)
            octets = bytes(body[40 : 40 + size])
            with self._lock:
                os.pwrite(self._now, octets, position)
                self._cached.append((position, octets))
            return struct.pack("<II", size, 0)
        if what == _FSYNC:
            with self._lock:
                for position, octets in self._cached:
                    os.pwrite(self._kept, octets, position)
                self._cached.clear()
                self.flushes += 1
            return b""
        if what == _STATFS:
            return struct.pack("<5Q3I4x24x", self._bytes // 4096, 0, 0, 1, 0, 4096, 255, 4096)
        return b"" if what in (_RELEASE, _FLUSH) else None


def _copy(source: int, target: int) -> None:
    """Copies a file, and leaves out its holes."""
    end = os.fstat(source).st_size
    os.ftruncate(target, end)
    at = 0
    while at < end:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError:
            return  # The rest is a hole.
        hole = os.lseek(source, at, os.SEEK_HOLE)
        while at < hole:
            at += os.pwrite(target, os.pread(source, min(1 << 20, hole - at), at), at)


@contextmanager
def powerless(file_system: str, mebibytes: int, folder: Path) -> Iterator[tuple[PowerlessDisk, Path]]:
    """A disk that can lose its power, and the place below `folder` where it is mounted."""
    image = formatted(file_system, mebibytes, folder / "image")
    device = folder / "device"
    device.touch()
    disk = PowerlessDisk(image, device)
    image.unlink()
    try:
        with mounted(file_system, device, folder / "disk") as place:
            yield disk, place
    finally:
        disk.close()
        device.unlink()
