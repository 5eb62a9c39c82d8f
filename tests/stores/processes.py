"""Servers as processes of this machine: each in a folder of its own, on free ports of loopback, gone when the test process is gone."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

START_S = 120.0
"""How long a server may take until it answers. They take seconds; a machine that does other work at the same time takes longer."""

# It kills what it was told of when its parent has ended, however that ended. A process that the parent forked can keep the pipe open.
_WATCH = """
import os, select, signal, sys
parent, living, text = int(sys.argv[1]), set(), b""
ended = False
while not ended:
    ended = os.getppid() != parent
    while select.select([0], [], [], 0 if ended else 0.2)[0]:
        if not (read := os.read(0, 4096)):
            ended = True
            break
        *lines, text = (text + read).split(b"\\n")
        for line in lines:
            (living.add if line[:1] == b"+" else living.discard)(int(line[1:]))
for pid in living:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


class _Watchdog:
    """A process beside this one that ends our servers if we are killed.

    PR_SET_PDEATHSIG would not do: it acts when the thread ends that started the server, and tests restart servers from threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def add(self, pid: int) -> None:
        with self._lock:
            self._living.add(pid)
            self._tell([f"+{pid}"])

    def remove(self, pid: int) -> None:
        with self._lock:
            self._living.discard(pid)
            self._tell([f"-{pid}"])

    def _tell(self, lines: list[str]) -> None:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-c", _WATCH, str(os.getpid())]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
            lines = [f"+{pid}" for pid in self._living]
        assert self._process.stdin
        self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        self._process.stdin.flush()


_WATCHDOG = _Watchdog()


class Daemon:
    """One process of a server. Its output is in `log`, which goes on over restarts."""

    def __init__(self, name: str, command: Sequence[str | Path], folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._command = [str(word) for word in command]
        self._folder = folder
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        """Whether it was started, and neither stopped nor killed since."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """The id of the process that runs."""
        assert self._process, f"{self.name} does not run"
        return self._process.pid

    def start(self) -> None:
        """Starts the process, and does not wait until it answers."""
        assert self._process is None, f"{self.name} runs already"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl+C is for the tests, which then stop their servers
            )
        _WATCHDOG.add(self._process.pid)

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP, say, so that clients wait for it."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, and waits until the process has ended."""
        self.signal(signal.SIGKILL)
        self._ended(None)

    def stop(self) -> None:
        """Ends the process, if it runs: by SIGTERM, and after ten seconds by SIGKILL."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._ended(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def _ended(self, limit_s: float | None) -> None:
        assert self._process
        self._process.wait(limit_s)
        _WATCHDOG.remove(self._process.pid)
        self._process = None

    def wait_until(self, answers: Callable[[], bool]) -> None:
        """Waits until `answers` is true; OSError and ValueError count as false. AssertionError with the end of the log if it never is."""
        deadline = time.monotonic() + START_S
        while not _is_true(answers):
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                end = self.log.read_text(errors="replace")[-4000:]
                raise AssertionError(
                    f"{self.name} {'ended' if ended else f'does not answer after {START_S:.0f} s'}; {self.log} ends:\n{end}"
                )
            time.sleep(0.05)


_S = TypeVar("_S", bound="Servers")


class Servers(ABC):
    """Daemons, by their names, that start together when it is entered, and stop when it is left."""

    daemons: dict[str, Daemon]

    @abstractmethod
    def start_all(self) -> None:
        """Starts the daemons, and waits until they answer."""

    def stop(self) -> None:
        """Stops the daemons that run, the last of them first."""
        for daemon in reversed(self.daemons.values()):
            daemon.stop()

    def kill(self, name: str) -> None:
        """SIGKILL in whatever the daemon does."""
        self.daemons[name].kill()

    @property
    def pids(self) -> list[int]:
        """The ids of the daemons' processes that run."""
        return [daemon.pid for daemon in self.daemons.values() if daemon.runs]

    def __enter__(self: _S) -> _S:
        try:
            self.start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def _is_true(answers: Callable[[], bool]) -> bool:
    try:
        return answers()
    except (OSError, ValueError):
        return False


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and it has not ended: one that only its parent has not heard of does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> list[int]:
    """The ids of the living processes that a process has started."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            found += map(int, (thread / "children").read_text().split())
    return [each for each in found if is_alive(each)]


def json_at(url: str) -> Any:
    """The JSON that an address of a server answers. OSError if it does not answer."""
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


def is_listening(host: str, port: int) -> bool:
    """Whether a connection is accepted."""
    with socket.create_connection((host, port), timeout=5):
        return True
