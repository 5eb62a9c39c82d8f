"""A write of two tasks, and the steps of its commit: before its version file is there, and after."""

from typing import Any

import pytest

RECORDS = 400
# Task 0 writes files of its own and is published by stamping; task 1 travels to the driver and is published by copying.
LARGE = {"records": RECORDS, "big": 10_000, "tasks": 2}
WHOLE = LARGE["records"] * LARGE["tasks"]

NOT_DONE = ["task.write", "task.sync", "task.done", "commit.pool", "commit.read", "commit.put", "commit.link"]
DONE = [
    "commit.linked",
    "commit.synced",
    "commit.look",
    "commit.done",
    "publish.stamp",
    "publish.index",
    "publish.log",
    "publish.done",
]
_QUICK = {"task.write", "commit.put", "commit.link", "commit.linked", "publish.log"}


def step(name: str, *before: object) -> Any:
    """A parameter of a test that stops at a step: the steps around the version file are in `make test`, the others in `make full`."""
    return pytest.param(*before, name, marks=[] if name in _QUICK else [pytest.mark.slow], id="-".join([*map(str, before), name]))
