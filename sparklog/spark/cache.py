"""The folder of this user for files that can be made again: archives of classes, and the addresses of servers."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def folder() -> Path:
    """`sparklog` in XDG_CACHE_HOME, or in ~/.cache. It need not exist."""
    # A relative path is to be ignored, says the standard that the variable is from.
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if Path(given).is_absolute() else Path(os.path.expanduser("~"), ".cache")) / "sparklog"  # noqa: PTH111


def is_ours(found: os.stat_result) -> bool:
    """Whether only this user can write to a file or folder."""
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
