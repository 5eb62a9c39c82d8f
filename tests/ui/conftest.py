"""The web page of real roots: its answers, and the page itself in a real browser."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import machine
import pytest
from starlette.testclient import TestClient
from ui.browser import Browser
from ui.hostile_root import HOSTILE, hostile_root

from sparklog.offsets import OffsetTable
from sparklog.ui import application


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
def table(root: Path) -> OffsetTable:
    """An offset table with two groups, one of which has a hostile name."""
    table = OffsetTable(root.parent / "offsets", root)
    for name in ("billing", HOSTILE[1]):
        generation = table.begin(name)
        for offset in (1, 5, 9):
            table.append(name, generation, {"t": {0: offset, 1: offset}}, metadata=HOSTILE[0])
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
def serve(repository: Path) -> Iterator[Callable[..., str]]:
    """Starts the server in a process of its own, and returns its URL."""
    processes: list[subprocess.Popen[str]] = []

    def start(root: Path, table: str | None = None) -> str:
        script = (
            "import sys; from sparklog.ui import serve; "
            "serve(sys.argv[1], sys.argv[2] or None, port=0, ready=lambda url: print(url, flush=True))"
        )
        command = [sys.executable, "-c", script, str(root), table or ""]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=repository)
        processes.append(process)
        assert process.stdout
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url), url
        return url.rstrip("/")

    yield start
    for process in processes:
        process.terminate()
        assert process.wait(timeout=60) == 0 or process.returncode < 0
        if process.stdout:
            process.stdout.close()


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
