"""A topic made by hand, and the same topic through `sparklog.Log`."""

from pathlib import Path

import pytest
from handmade import Topic, sample

import sparklog


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    return sample(tmp_path)


@pytest.fixture
def log(topic: Topic) -> sparklog.Topic:
    return sparklog.Log(topic.root).topic("t")
