"""A plugin of pytest: no test waits for ever, and each can interrupt the processes that it starts."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest


def pytest_configure() -> None:
    """A script's background job ignores SIGINT, and so would all that is started from it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _children() -> set[int]:
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # the thread has ended
            found |= set(map(int, (thread / "children").read_text().split()))
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Shortly before a test's time is up, the processes that it started are killed, so that whatever waits for them goes on and fails.

    pytest-timeout alone would raise an error in a `with` block of a process, whose end then waits for the process.
    """
    marker = item.get_closest_marker("timeout")
    limit_s = float(marker.args[0] if marker else item.config.getoption("timeout") or item.config.getini("timeout") or 0)
    before = _children()

    def kill() -> None:
        for process in _children() - before:
            os.kill(process, signal.SIGKILL)

    timer = threading.Timer(0.9 * limit_s, kill)
    timer.daemon = True
    if limit_s:
        timer.start()
    try:
        return (yield)
    finally:
        timer.cancel()
