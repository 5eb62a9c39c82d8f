"""A root with a topic made by hand, and an offset table beside it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from groups.member_world import Process, Thread, group
from groups.programs import World
from handmade import Topic, sample

from sparklog.groups import OffsetTable


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """Topic `t` of two partitions, with offsets 0 to 24 and 0 to 9."""
    return sample(tmp_path / "root")


@pytest.fixture
def table(topic: Topic, tmp_path: Path) -> OffsetTable:
    return OffsetTable(topic.root, tmp_path / "offsets")


@pytest.fixture(params=[pytest.param(Thread, id="threads"), pytest.param(Process, id="processes", marks=pytest.mark.soak)])
def four(tmp_path, request):
    """A topic of four partitions with 20 records each."""
    yield from group(tmp_path, request.param)


@pytest.fixture
def threads(tmp_path):
    """The same, only with members in this process."""
    yield from group(tmp_path, Thread)


@pytest.fixture
def processes(tmp_path):
    """The same, only with processes."""
    yield from group(tmp_path, Process)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for each in made.members.values():
        each.heartbeater.stop(5)
