"""The server of a producer. The producer alone uses it, and starts it again if it dies."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import tempfile
import threading
import time
from collections.abc import Iterable

from sparklog.errors import SparklogError
from sparklog.serve.process import Server

_USER = "own"
_ITERATIONS = 4096
_STEADY_S = 10
"""A server that lived for less is started again after a pause."""
_PAUSE_S, _PAUSE_MAX_S = 1, 60


class OwnServer:
    """A server in front of a root, at one address of this machine for as long as it is used.

    Server and clients prove to each other that they know a password. So no other user of the machine writes through the server, or gets
    records at its port while it is down. The program holds the port without listening, so that no other program gets it by chance.
    """

    def __init__(self, root: str, options: Iterable[str] | None = None) -> None:
        """Starts the server, and returns when it listens. `options` and errors as of `Server`."""
        self._root, self._options = root, options
        self._port = socket.socket()
        self._port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the server sets it too, so it can listen beside this socket
        self._port.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{self._port.getsockname()[1]}"
        password = secrets.token_urlsafe(32)
        self._users = tempfile.TemporaryFile()  # noqa: SIM115 # each start of the server reads it
        self._users.write(_verifier(password))
        self._users.flush()
        # Servers of a root tell clients of each other, if their listeners have one name. This name is of this server alone.
        name = f"OWN_{secrets.token_hex(8).upper()}"
        self._arguments = (
            f"listeners={name}://{address}",
            f"listener.security.protocol.map={name}:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms=SCRAM-SHA-256",
            f"sasl.credentials.file=/dev/fd/{self._users.fileno()}",
            "connections.max.idle.ms=-1",
        )
        self.settings = {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": _USER,
            "sasl.password": password,
        }
        """By these settings a client reaches the server, and knows it."""
        self._pause_s = 0.0
        self.problem: SparklogError | OSError | None = None
        """Why the server is not started again."""
        try:
            self._start()
        except BaseException:
            self.leave_to_parent()
            raise

    def _start(self, over: threading.Event | None = None) -> None:
        self._begun = time.monotonic()
        self._users.seek(0)  # where /dev/fd shares the place in the file
        self._server = Server(self._root, self._arguments, self._options, [self._users.fileno()], over)

    @property
    def pid(self) -> int:
        """The number of the process that was started last."""
        return self._server.pid

    def keep_running(self, over: threading.Event) -> None:
        """Starts the server again if it has ended. A server that ends again and again, or does not start, is started after pauses.

        Once `over` is set, a start is not waited for: its process is killed.
        """
        if not self._server.has_ended:
            return
        lived = time.monotonic() - self._begun
        if lived >= self._pause_s:
            self._pause_s = 0 if lived > self._pause_s + _STEADY_S else min(_PAUSE_MAX_S, max(_PAUSE_S, 2 * self._pause_s))
            self._server.close()
            try:
                self._start(over)
                self.problem = None
            except (SparklogError, OSError) as error:  # OSError as of too many open files
                if not over.is_set():
                    self.problem = error

    def refusal(self, topic: str) -> str | None:
        """The newest line of the end of the server's output that says why records of a topic were not committed."""
        told = f"batches for topic {topic} under"
        return next((line for line in reversed(self._server.newest_lines()) if told in line), None)

    def close(self, patience_s: float) -> str:
        """Ends the server as `Server.close` does."""
        output = self._server.close(patience_s)
        self.leave_to_parent()
        return output

    def leave_to_parent(self) -> None:
        """Closes the files of this process."""
        self._port.close()
        self._users.close()


def _verifier(password: str) -> bytes:
    """The line of `sasl.credentials.file` for the password, by RFC 5802."""
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    parts = {"salt": salt, "stored_key": stored, "server_key": hmac.digest(salted, b"Server Key", "sha256")}
    told = ",".join(f"{name}={base64.b64encode(value).decode()}" for name, value in parts.items())
    return f"{_USER} SCRAM-SHA-256 {told},iterations={_ITERATIONS}\n".encode()
