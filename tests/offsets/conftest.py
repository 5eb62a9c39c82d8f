"""A root with a topic made by hand, and an offset table beside it."""

from pathlib import Path

import pytest
from handmade import Topic, sample

from sparklog.offsets import OffsetTable


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """Topic `t` of two partitions, with offsets 0 to 24 and 0 to 9."""
    return sample(tmp_path / "root")


@pytest.fixture
def table(topic: Topic, tmp_path: Path) -> OffsetTable:
    return OffsetTable(tmp_path / "offsets", topic.root)
