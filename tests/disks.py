"""Small disks of their own, for tests that fill them or cut their power."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import machine
import pytest


def needs_disk(file_system: str) -> pytest.MarkDecorator:
    """Marks a test that mounts disks of its own: it runs where the machine lets it."""
    missing = None
    if os.geteuid() != 0:
        missing = "only root mounts disks"
    elif not os.access("/dev/fuse", os.W_OK) or not os.access("/dev/loop-control", os.W_OK):
        missing = "there is no /dev/fuse, or no /dev/loop-control"
    elif machine.mkfs(file_system) is None:
        missing = f"mkfs.{file_system} is not installed (Debian: apt-get install {machine.MAKERS[file_system]})"
    return pytest.mark.skipif(missing is not None, reason=missing or "")


@contextmanager
def mounted(file_system: str, device: Path, folder: Path) -> Iterator[Path]:
    """A device or an image, mounted at the new folder `folder`, also where another copy of it is mounted elsewhere."""
    folder.mkdir()
    options = "loop,nouuid" if file_system == "xfs" else "loop"
    subprocess.run(["mount", "-t", file_system, "-o", options, str(device), str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


def formatted(file_system: str, mebibytes: int, image: Path) -> Path:
    """A new file `image` with an empty file system in it."""
    with image.open("wb") as file:
        file.truncate(mebibytes << 20)
    subprocess.run([str(machine.mkfs(file_system)), "-q", str(image)], check=True)
    return image
