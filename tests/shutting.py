"""A folder that another user may not look into."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def shut(folder: Path) -> Iterator[None]:
    """Within it, a folder cannot be looked into: another user asks, as an administrator may look everywhere."""
    for each in folder.parents:
        if each.stat().st_uid == os.geteuid() and any(part.startswith("pytest-") for part in each.parts):
            each.chmod(0o755)
    before = os.geteuid()
    folder.chmod(0)
    if before == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(before)
        folder.chmod(0o755)
