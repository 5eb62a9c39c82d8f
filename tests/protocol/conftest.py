"""Fixtures of the tests that break the commit protocol."""

from collections.abc import Callable
from pathlib import Path

import pytest
from logtool import LogTool, commits


@pytest.fixture
def tool(java_classpath: str, tmp_path: Path) -> LogTool:
    return LogTool(java_classpath, tmp_path / "root")


@pytest.fixture
def committed(tool: LogTool) -> Callable[[], dict[str, int]]:
    return lambda: commits(tool.read())
