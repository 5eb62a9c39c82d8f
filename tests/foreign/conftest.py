"""Fixtures of the tests of the foreign programs."""

from pathlib import Path

import pytest
from logtool import LogTool


@pytest.fixture
def tool(java_classpath: str, tmp_path: Path) -> LogTool:
    return LogTool(java_classpath, tmp_path / "root")
