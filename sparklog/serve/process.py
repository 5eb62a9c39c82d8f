"""A server as a process in the background."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
import weakref
from collections.abc import Collection, Iterable
from types import TracebackType

from sparklog.errors import SparklogError
from sparklog.serve.command import command, environment

_PATIENCE_S = 60
_LOOKS_S = 0.02
_LINES = 20
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
    ) -> None:
        """Starts the server, and returns when it listens.

        Args:
            root: The path or URL of the root.
            arguments: Arguments of the server. By default it takes a free port, and only this machine reaches it.
            options: Options of the JVM, as of `command`.
            inherited: Open files that the server needs, as `/dev/fd/<number>`.

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
            self.address = self._listening()
        except BaseException:
            self.close(0)
            raise

    def _listening(self) -> str:
        """Waits until the server listens, and returns its address."""
        until = time.monotonic() + _PATIENCE_S
        while True:
            ended = self.has_ended
            if found := _READY.search(self.output()):
                return found[1]
            if ended or time.monotonic() > until:
                raise SparklogError("SERVE_START", root=self._root, output=self.output(_LINES).rstrip(".") or "nothing")
            time.sleep(_LOOKS_S)

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, by itself or by a signal."""
        return self._process.poll() is not None

    def output(self, lines: int | None = None) -> str:
        """The text that the server has written, or its last lines."""
        if self._output.closed:
            return ""
        size = os.fstat(self._output.fileno()).st_size  # the server writes at the place of the file, so nothing here moves it
        text = os.pread(self._output.fileno(), size, 0).decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:]) if lines else text

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
