"""The server that all producers of this machine and user share, for each root. It ends when no producer uses it.

Files in the user's cache have its address, its process and a password. A lock lets one program at a time look at these files, and start
a server. A program is a user of the server for as long as it has a connection to it.

Server and producer prove to each other that they know the password. So no other user of the machine writes through the server. And no other
user gets records, who listens at the port of a server that has died.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import hmac
import logging
import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from sparklog.errors import SparklogError
from sparklog.serve.command import command
from sparklog.serve.process import listening
from sparklog.spark import cache

_UNUSED_MS = 60_000
"""A server without a connection ends after this time. Until then the next producer finds it."""
_ARGUMENTS = [
    "sasl.enabled.mechanisms=SCRAM-SHA-256",
    f"end.when.unused.ms={_UNUSED_MS}",
    "connections.max.idle.ms=-1",
]
_USER = "own"
_ITERATIONS = 4096
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
                made, users = secrets.token_urlsafe(32), note.with_suffix(".users")
                _write(note.with_suffix(".password"), made)
                _write(users, _verifier(made))
                _start(root, [*line, *_listener(), f"sasl.credentials.file={users}"], folder / f"{name}.log", note)
                found = _connected(note)
            if found is None:
                raise SparklogError("SERVE_START", root=root, output="the server listened, and ended")
            password = note.with_suffix(".password").read_text()
        self.address, self._connection = found
        # kafka-python warns that the password goes over the network. With SCRAM it does not.
        logging.getLogger("kafka.net.sasl.scram").addFilter(_is_no_warning)
        self.settings: dict[str, Any] = {
            "bootstrap_servers": self.address,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_plain_username": _USER,
            "sasl_plain_password": password,
        }
        """By these settings a client of kafka-python reaches the server, and knows it."""

    def close(self) -> None:
        """Ends the use of the server."""
        self._connection.close()

    def __enter__(self) -> SharedServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _listener() -> list[str]:
    """A listener with a name of its own: servers send clients to listeners of one name, and another server has another password."""
    name = f"OWN_{secrets.token_hex(8).upper()}"
    return [f"listeners={name}://127.0.0.1:0", f"listener.security.protocol.map={name}:SASL_PLAINTEXT"]


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
    """The address, and a connection to it; None if the server does not run, or does not listen there."""
    try:
        if not _runs(int(note.with_suffix(".pid").read_text())):
            return None
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
    _write(note.with_suffix(".pid"), str(pid))
    _write(note, address)


def _write(file: Path, text: str) -> None:
    """Replaces a file that only this user can read."""
    written = file.with_name(f"{file.name}.new")
    written.unlink(missing_ok=True)
    written.touch(0o600)
    written.write_text(text)
    written.replace(file)


def _is_no_warning(record: logging.LogRecord) -> bool:
    return "in the clear" not in record.msg


def _verifier(password: str) -> str:
    """The line of `sasl.credentials.file` for the password, by RFC 5802."""
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    parts = {"salt": salt, "stored_key": stored, "server_key": hmac.digest(salted, b"Server Key", "sha256")}
    told = ",".join(f"{name}={base64.b64encode(value).decode()}" for name, value in parts.items())
    return f"{_USER} SCRAM-SHA-256 {told},iterations={_ITERATIONS}\n"


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):  # a process of another user has the number of ours, which has ended
        return False
    return True
