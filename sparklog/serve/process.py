"""A server as a process in the background."""

from __future__ import annotations

import os
import re
import subprocess
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

from sparklog.errors import SparklogError
from sparklog.serve.command import command, environment

_PATIENCE_S = 60
_LOOKS_S = 0.02
_LINES = 20
_READY = re.compile(r"^Serving .* at (\S+:[0-9]+)$", re.MULTILINE)


class Server:
    """A server in front of a root, which this program started, and ends.

    The server ends with this program too, however the program ends: its standard input is a pipe, which the program alone keeps open.

    Example:
        >>> with Server("my-log", Path("server.log")) as server:
        ...     print(server.address)
        127.0.0.1:40513
    """

    def __init__(
        self, root: str, log: Path, arguments: Iterable[str] = ("--listen", "127.0.0.1:0"), options: Iterable[str] | None = None
    ) -> None:
        """Starts the server, and returns when it listens.

        Args:
            root: The path or URL of the root.
            log: A file for the output of the server.
            arguments: Arguments of the server. By default it takes a free port, and only this machine reaches it.
            options: Options of the JVM, as of `command`.

        Raises:
            CallError: SERVE_EXTRA; JAVA_NEEDED; SERVE_START if the server does not start.
        """
        line = command(root, (*arguments, "--end-with-input"), options)
        with log.open("wb") as out:
            self._process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=out, stderr=out, env=environment())
        _OPEN.add(self)
        try:
            self.address = listening(root, log, lambda: self._process.poll() is None)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def close(self, patience_s: float = 30) -> None:
        """Ends the server. It answers the requests that it has, for at most `patience_s` seconds."""
        self._process.terminate()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._release()

    def _release(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


_OPEN: weakref.WeakSet[Server] = weakref.WeakSet()


def _release_all() -> None:
    """A forked process has the pipes of its parent too, and may live for longer."""
    for server in _OPEN:
        server._release()


os.register_at_fork(after_in_child=_release_all)


def listening(root: str, log: Path, runs: Callable[[], bool]) -> str:
    """Waits until a server that writes to `log` listens, and returns its address. CallError SERVE_START if it ends, or takes too long."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        ended = not runs()
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        if found := _READY.search(said):
            return found[1]
        if ended or time.monotonic() > until:
            raise SparklogError("SERVE_START", root=root, output="\n".join(said.splitlines()[-_LINES:]).rstrip(".") or "nothing")
        time.sleep(_LOOKS_S)
