"""A fixture for pytest: a server for Kafka's clients, without a broker and without a container. The extra `serve` brings it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest


class PartlogBroker(NamedTuple):
    """A server for Kafka's clients, in front of a root."""

    root: Path
    """The folder of the root, for `sparklog.Log` and `format("partlog")`."""
    address: str
    """`host:port`, for `bootstrap_servers`."""


@pytest.fixture(scope="session")
def partlog_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PartlogBroker]:
    """A server for Kafka's clients, in front of a root in a temporary folder.

    All tests of a process share it, so tests use topics of their own. It ends with the process, also if the process is killed. Each worker
    of pytest-xdist starts one.
    """
    from sparklog.serve.process import Server

    root = tmp_path_factory.mktemp("partlog") / "root"
    with Server(str(root)) as server:
        yield PartlogBroker(root, server.address)
