"""A server as a process in the background."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Collection, Iterable
from types import TracebackType

from sparklog.errors import SparklogError
from sparklog.serve.command import command, environment

_PATIENCE_S = 60
_LOOKS_S = 0.02
_LINES = 20
_NEWEST_BYTES = 1 << 16
_READY = re.compile(r"^Serving .* at (\S+:[0-9]+)$", re.MULTILINE)


class Server:
    """A server in front of a root, which this program started, and ends.

    The server ends with this program too, however the program ends: its standard input is a pipe, which the program alone keeps open. Its
    output is in a file without a name, which is gone with the last of both processes.

    Example:
        >>> with Server("my-log") as server:
        ...     print(server.address)
        127.0.0.1:40513
    """

    def __init__(
        self,
        root: str,
        arguments: Iterable[str] = ("--listen", "127.0.0.1:0"),
        options: Iterable[str] | None = None,
        inherited: Collection[int] = (),
        over: threading.Event | None = None,
    ) -> None:
        """Starts the server, and returns when it listens.

        Args:
            root: The path or URL of the root.
            arguments: Arguments of the server. By default it takes a free port, and only this machine reaches it.
            options: Options of the JVM, as of `command`.
            inherited: Open files that the server needs, as `/dev/fd/<number>`.
            over: If it is set before the server listens, the server is killed, and SERVE_START raised.

        Raises:
            CallError: SERVE_EXTRA; JAVA_NEEDED; SERVE_START if the server does not start.
        """
        line = command(root, (*arguments, "--end-with-input"), options)
        self._root = root
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 # open for as long as the server
        self._process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=self._output, stderr=self._output, env=environment(), pass_fds=tuple(inherited)
        )
        _OPEN.add(self)
        try:
            self.address = self._listening(over or threading.Event())
        except BaseException:
            self.close(0)
            raise

    def _listening(self, over: threading.Event) -> str:
        """Waits until the server listens, and returns its address."""
        until = time.monotonic() + _PATIENCE_S
        while True:
            ended = self.has_ended
            if found := _READY.search(self.output()):
                return found[1]
            if ended or over.is_set() or time.monotonic() > until:
                told = "\n".join(self.newest_lines()[-_LINES:]).rstrip(".")
                raise SparklogError("SERVE_START", root=self._root, output=told or "nothing")
            over.wait(_LOOKS_S)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, by itself or by a signal."""
        return self._process.poll() is not None

    def output(self) -> str:
        """The text that the server has written."""
        return "" if self._output.closed else self._read(os.fstat(self._output.fileno()).st_size)

    def newest_lines(self) -> list[str]:
        """The last lines that the server has written, in at most 64 KiB."""
        return [] if self._output.closed else self._read(_NEWEST_BYTES).splitlines()

    def _read(self, most: int) -> str:
        file = self._output.fileno()
        at = max(0, os.fstat(file).st_size - most)
        return os.pread(file, most, at).decode(errors="replace")  # it moves no place in the file: the server writes there

    def close(self, patience_s: float = 30) -> str:
        """Ends the server, and returns its output. It answers the requests that it has, for at most `patience_s` seconds."""
        self._process.terminate()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        output = self.output()
        self._release()
        return output

    def _release(self) -> None:
        self._output.close()
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
