"""Roots that tests have written, checked as they left them."""

import os
from collections.abc import Sequence
from pathlib import Path

from sparklog.ondisk.root import Root
from sparklog.verify import Finding, verify

UNFINISHED = {"VIEW_MISSING", "VIEW_STRAY", "VIEW_WRONG", "INDEX_WRONG", "MARKER_MISSING", "CHECKPOINT_MISSING", "ORPHAN"}
"""Findings after a writer was killed before it did all that follows a commit."""


def roots_below(folder: Path) -> list[Path]:
    """The roots in a folder, and in the folders below it."""
    found = []
    for here, folders, _ in os.walk(folder):
        if "_partlog" in folders:
            found.append(Path(here))
            folders.clear()
    return found


def faults(root: Path | str, unfinished: bool = False, settles_s: Sequence[float] = (0.1, 0.4)) -> list[Finding]:
    """The faults of a root, in a folder or at a URL. With `unfinished`, without what may be left when a writer is killed after a commit."""
    at = Root.at(str(root))
    if not at.store.exists("_partlog"):
        return []
    findings = verify(at, jobs=1, settles_s=settles_s).findings
    return [each for each in findings if not unfinished or each.condition not in UNFINISHED]
