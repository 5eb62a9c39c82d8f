"""The server that all producers of this machine and user share, for each root. It ends when no producer uses it.

A file in the user's cache names its address. A lock lets one program at a time look at that file, and start a server.
A program is a user of the server for as long as it has a connection to it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from sparklog.errors import SparklogError
from sparklog.serve.command import command
from sparklog.serve.process import listening
from sparklog.spark import cache

_UNUSED_MS = 60_000
"""A server without a connection ends after this time. Until then the next producer finds it."""
_ARGUMENTS = ["--listen", "127.0.0.1:0", f"end.when.unused.ms={_UNUSED_MS}", "connections.max.idle.ms=-1"]
_OF_JAVA = ("JAVA_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_CONNECT_S = 5
_START = 'log=$1; shift; "$@" < /dev/null > "$log" 2>&1 & echo $!'
"""The shell ends at once. So the server is not a child of this program, and lives on when this program ends."""


class SharedServer:
    """The use of a server by this program, until it is closed."""

    def __init__(self, root: str) -> None:
        """Uses the server of this root, and starts it if it does not run. Errors as `Server` raises them, and CallError SERVE_FOLDER."""
        folder = _folder()
        line = command(root, _ARGUMENTS)
        name = hashlib.sha256("\n".join(_started_with(line)).encode()).hexdigest()[:16]
        with _locked(folder / f"{name}.lock"):
            note = folder / f"{name}.address"
            found = _connected(note)
            if found is None:
                note.unlink(missing_ok=True)
                _start(root, line, folder / f"{name}.log", note)
                found = _connected(note)
            if found is None:
                raise SparklogError("SERVE_START", root=root, output="the server listened, and ended")
        self.address, self._connection = found

    def close(self) -> None:
        """Ends the use of the server."""
        self._connection.close()

    def __enter__(self) -> SharedServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _folder() -> Path:
    folder = cache.folder() / "servers"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not cache.is_ours(folder.stat()):
            raise SparklogError("SERVE_FOLDER", folder=folder, reason="others can write to it")
    except OSError as error:
        raise SparklogError("SERVE_FOLDER", folder=folder, reason=error) from None
    return folder


def _started_with(line: list[str]) -> list[str]:
    """A server of another build, or with other settings of Java, is another server."""
    jars = [Path(each).stat() for each in line[line.index("-cp") + 1].split(os.pathsep)]
    return [*line, *(f"{jar.st_size} {jar.st_mtime_ns}" for jar in jars), *(f"{name}={os.environ.get(name, '')}" for name in _OF_JAVA)]


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _connected(note: Path) -> tuple[str, socket.socket] | None:
    """The address, and a connection to it; None if no server listens there."""
    try:
        address = note.read_text()
        host, _, port = address.rpartition(":")
        return address, socket.create_connection((host, int(port)), _CONNECT_S)
    except (OSError, ValueError):
        return None


def _start(root: str, command: list[str], log: Path, note: Path) -> None:
    log.unlink(missing_ok=True)
    line = ["/bin/sh", "-c", _START, "sparklog-serve", str(log), *command]
    pid = int(subprocess.run(line, stdout=subprocess.PIPE, start_new_session=True, check=True).stdout)
    try:
        address = listening(root, log, lambda: _runs(pid))
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        raise
    note.with_suffix(".pid").write_text(str(pid))
    written = note.with_suffix(".new")
    written.write_text(address)
    written.replace(note)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
