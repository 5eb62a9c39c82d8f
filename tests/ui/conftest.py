"""The web page of real roots: its answers, and the page itself in a real browser."""

import queue
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import heartbeats
import machine
import pytest
import uvicorn
from owners import Own
from starlette.testclient import TestClient
from ui.browser import Browser
from ui.hostile_root import HOSTILE, hostile_root

from sparklog.groups import OffsetTable
from sparklog.ui import application, server


@pytest.fixture(scope="session")
def made_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "root"
    hostile_root(path)
    return path


@pytest.fixture
def root(made_root: Path, tmp_path: Path) -> Path:
    """A copy of the root that tests/ui/hostile_root.py makes."""
    return Path(shutil.copytree(made_root, tmp_path / "root"))


@pytest.fixture
def server_heartbeats(root: Path) -> None:
    """Heartbeats of a server with hostile clients, which is alive, and of a server that is silent."""
    client = heartbeats.content()["clients"][0]
    names = [client | {"name": name, "software": name, "connections": 1 + number} for number, name in enumerate(reversed(HOSTILE))]
    heartbeats.put(root, "a", 9, heartbeats.content(session=600_000, clients=names[::-1], others=3))
    heartbeats.put(root, "b", 4, heartbeats.content(node=8, program=HOSTILE[0]), age_s=100)


@pytest.fixture
def table(root: Path) -> OffsetTable:
    """An offset table with two groups, one of which has a hostile name."""
    table = OffsetTable(root, root.parent / "offsets")
    for name in ("billing", HOSTILE[1]):
        own = Own(table, name)
        for offset in (1, 5, 9):
            own.to({"t": {0: offset, 1: offset}}, metadata=HOSTILE[0])
    return table


def client_of(root: Path, table: str | None = None) -> TestClient:
    return TestClient(application(root, table), base_url="http://127.0.0.1", raise_server_exceptions=False)


@pytest.fixture
def client(root: Path) -> TestClient:
    """Asks the page of the root without a browser."""
    return client_of(root)


@pytest.fixture
def client_with_groups(root: Path, table: OffsetTable) -> TestClient:
    return client_of(root, table.path)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Starts a server in a thread, and returns its URL. The servers of test_command.py are processes."""
    servers: list[uvicorn.Server] = []
    threads: list[threading.Thread] = []
    begin = uvicorn.Server.__init__

    def made(self: uvicorn.Server, config: uvicorn.Config) -> None:
        begin(self, config)
        servers.append(self)

    monkeypatch.setattr(uvicorn.Server, "__init__", made)

    def start(root: Path, table: str | None = None) -> str:
        urls: queue.Queue[str] = queue.Queue()
        threads.append(threading.Thread(target=server.serve, args=(root, table), kwargs={"port": 0, "ready": urls.put}, daemon=True))
        threads[-1].start()
        url = urls.get(timeout=600)
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url), url
        return url.rstrip("/")

    yield start
    for each in servers:
        each.should_exit = True
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture(scope="session")
def window() -> Iterator[Browser]:
    there = machine.browser()
    if there is None:
        pytest.skip(machine.NO_BROWSER)
    found = Browser(*there)
    yield found
    found.quit()


@pytest.fixture
def browser(window: Browser, serve: Callable[..., str]) -> Iterator[Browser]:
    """The window, which leaves the last page before its server ends: the next test would find the complaint of a tail that broke off."""
    yield window
    window.driver.get("about:blank")
    window.complaints()
    window.hosts()
