"""The server that all producers of this machine and user share, for each root. It ends when no producer uses it.

Files in the user's cache have its address, its process and a password. A lock lets one program at a time look at these files, and start
a server. A program is a user of the server for as long as it has a connection to it. When that connection ends, the server has died or has
ended, and the program starts it again. `sparklog.serve.use` has the rules, and this module the files, processes and sockets.

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
import platform
import secrets
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from sparklog.errors import SparklogError
from sparklog.serve.command import command, environment, keep_archive, require
from sparklog.serve.process import Server, listening
from sparklog.serve.use import Connect, Disconnect, IsFree, Lock, Note, ReadNote, Request, Start, Steps, Use, WriteNote
from sparklog.spark import cache

_UNUSED_MS = 60_000
"""A server without a connection ends after this time. Until then the next producer finds it."""
_ARGUMENTS = ["sasl.enabled.mechanisms=SCRAM-SHA-256", "connections.max.idle.ms=-1"]
_USER = "own"
_ITERATIONS = 4096
_OF_JAVA = ("JAVA_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_CONNECT_S = 5
_DYING_S = 2
_LOOKS_S = 0.05
_STEADY_S = 10
"""A server that lived for less is started again after a pause, or by the next call of the program."""
_PAUSE_S, _PAUSE_MAX_S = 5, 60
_KEPT_S = 24 * 3600
"""Files of a server that does not run are deleted when no program has used them for this time."""
_PATIENCE_S = 60
_LINES = 8
_START = 'log=$1; shift; "$@" < /dev/null > "$log" 2>&1 & echo $!'
"""The shell ends at once. So the server is not a child of this program, and lives on when this program ends."""


class SharedServer:
    """The use of a server by this program, until it is closed. Threads may share it."""

    def __init__(self, root: str, followed: Callable[[], object] = lambda: None) -> None:
        """Uses the server of this root, and starts it if it does not run. Errors as `Server` raises them, and CallError SERVE_FOLDER.

        `followed` is called when the server has died, and was started again without a call of the program. Its address may be another.
        """
        self._root, self._folder, self._followed = root, _folder(), followed
        arguments = [*_ARGUMENTS, f"end.when.unused.ms={_UNUSED_MS}"]
        self._command = command(root, arguments)
        # An archive of classes that is made meanwhile makes no other server.
        self._name = hashlib.sha256(os.fsencode("\n".join(_started_with(command(root, arguments, ()))))).hexdigest()[:16]
        self._turn, self._over = threading.Lock(), threading.Event()
        self._use = Use(root)
        self.settings: dict[str, Any] = {}
        """By these settings a client of kafka-python reaches the server that was found last, and knows it."""
        self.serving()

    @property
    def address(self) -> str:
        """The address of the server that was found last."""
        return str(self._use.address)

    def serving(self) -> dict[str, Any]:
        """Starts the server again if it has died. Returns `settings`, which are the same if it has its address again."""
        with self._turn:
            if self._use.connection is None and not self._use.closed:
                self._run(self._use.serving())
                self.settings = _settings(self.address, self._file("password").read_text())
                threading.Thread(
                    target=self._watch, args=(self._use.connection,), name=f"sparklog-server-{self._name}", daemon=True
                ).start()
            return self.settings

    def close(self) -> None:
        """Ends the use of the server."""
        self._over.set()
        self._run(self._use.close())

    def leave_to_parent(self) -> None:
        """Ends the use in a forked process. Its parent goes on, and is the user of the server."""
        if self._use.connection:
            self._use.connection.close()
        self._use = Use(self._root, closed=True)

    def __enter__(self) -> SharedServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _watch(self, connection: socket.socket) -> None:
        """Starts the server again when the connection ends, so that records which wait are committed without a call of the program."""
        begun = time.monotonic()
        with contextlib.suppress(OSError):
            while connection.recv(1024):  # a server says nothing that it was not asked
                pass
        with self._turn:
            if not self._use.lost(connection):
                return
        connection.close()
        pause = 0.0 if time.monotonic() - begun > _STEADY_S else _PAUSE_S
        while not self._over.wait(pause):
            with contextlib.suppress(SparklogError, OSError):  # a call of the program tries again too, and has the error
                self.serving()
                self._followed()
                return
            pause = min(_PAUSE_MAX_S, max(_PAUSE_S, 2 * pause))

    def _run(self, steps: Steps[None]) -> None:
        with contextlib.ExitStack() as held, contextlib.suppress(StopIteration):
            request = next(steps)
            while True:
                try:
                    reply = self._answered(request, held)
                except SparklogError as error:
                    request = steps.throw(error)
                else:
                    request = steps.send(reply)

    def _answered(self, request: Request, held: contextlib.ExitStack) -> Any:
        match request:
            case Lock():
                held.enter_context(_locked(self._file("lock")))
            case ReadNote():
                return self._note()
            case Connect(note):
                return _connected(note)
            case IsFree(address):
                return _is_free(address)
            case Start(address):
                return self._start(address or "127.0.0.1:0")
            case WriteNote(note):
                _write(self._file("pid"), str(note.pid))
                _write(self._file("address"), note.address)
            case Disconnect(connection):
                _shut(connection)
                connection.close()
        return None

    def _file(self, kind: str) -> Path:
        return self._folder / f"{self._name}.{kind}"

    def _note(self) -> Note | None:
        try:
            return Note(self._file("address").read_text(), int(self._file("pid").read_text()))
        except (OSError, ValueError):
            return None

    def _start(self, address: str) -> Note:
        delete_old(self._folder)
        password = self._password()
        users, log = self._file("users"), self._file("log")
        _write(users, _verifier(password))
        log.unlink(missing_ok=True)
        server = [*self._command, *_listener(address, password), f"sasl.credentials.file={users}"]
        line = ["/bin/sh", "-c", _START, "sparklog-serve", str(log), *server]
        pid = int(subprocess.run(line, stdout=subprocess.PIPE, env=environment(), start_new_session=True, check=True).stdout)
        try:
            return Note(listening(self._root, log, lambda: _runs(pid)), pid)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            raise

    def _password(self) -> str:
        """All servers of these files have one password. So a client knows the server that is started again."""
        file = self._file("password")
        with contextlib.suppress(OSError):
            if kept := file.read_text():
                return kept
        made = secrets.token_urlsafe(32)
        _write(file, made)
        return made


def make_archive() -> Path:
    """Uses a server once, and keeps the classes that it loaded in an archive, in place of an earlier one. It takes some seconds.

    CallError if a package of the extra `serve` is not installed, if the archive cannot be written, or if the JVM makes no archives.
    """
    require("kafka")
    return keep_archive(_use)


def _use(scratch: Path, archive: Path) -> str:
    """A producer and a consumer use a server of their own. Its JVM writes the archive when the server ends."""
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import KafkaError

    made, users, log = secrets.token_urlsafe(32), scratch / "users", scratch / "log"
    _write(users, _verifier(made))
    arguments = [*_ARGUMENTS, *_listener("127.0.0.1:0", made), f"sasl.credentials.file={users}"]
    server = Server(str(scratch / "root"), log, arguments, [f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:cds*=off"])
    try:
        settings = _settings(server.address, made)
        with contextlib.suppress(KafkaError):  # the archive has the classes that were loaded until then
            with contextlib.closing(KafkaProducer(**settings)) as producer:
                producer.send("t", b"value", b"key").get(_PATIENCE_S)
            with contextlib.closing(KafkaConsumer("t", group_id="g", auto_offset_reset="earliest", **settings)) as consumer:
                consumer.poll(_PATIENCE_S * 1000, max_records=1)
                consumer.commit()
    finally:
        server.close(_PATIENCE_S)
    return " | ".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES:]).rstrip(".")


def _settings(address: str, password: str) -> dict[str, Any]:
    # kafka-python warns that the password goes over the network. With SCRAM it does not.
    logging.getLogger("kafka.net.sasl.scram").addFilter(_is_no_warning)
    return {
        "bootstrap_servers": address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": _USER,
        "sasl_plain_password": password,
    }


def _listener(address: str, password: str) -> list[str]:
    """The name of the listener is of this user alone: a server sends clients to listeners of its name, which must know the password."""
    name = f"OWN_{hashlib.sha256(password.encode()).hexdigest()[:16].upper()}"
    return [f"listeners={name}://{address}", f"listener.security.protocol.map={name}:SASL_PLAINTEXT"]


def _folder() -> Path:
    folder = cache.folder() / "servers"
    try:
        for made in (folder.parent.parent, folder.parent, folder):
            made.mkdir(mode=0o700, exist_ok=True, parents=made == folder.parent.parent)
        if not cache.is_ours(folder.stat()):
            raise SparklogError("SERVE_FOLDER", folder=folder, reason="others can write to it")
    except OSError as error:
        raise SparklogError("SERVE_FOLDER", folder=folder, reason=error) from None
    return folder


def _started_with(line: list[str]) -> list[str]:
    """A server on another machine, of another build, or with other settings of Java or of stores is another server."""
    files: list[Path] = []
    for each in map(Path, line[line.index("-cp") + 1].split(os.pathsep)):
        files += sorted(each.parent.glob("*.jar")) if each.name == "*" else sorted(each.glob("*.xml")) if each.is_dir() else [each]
    found = [each.stat() for each in files if each.exists()]
    variables = [name for name in sorted(os.environ) if name in _OF_JAVA or name.startswith("AWS_")]
    return [platform.node(), *line, *(f"{each.st_size} {each.st_mtime_ns}" for each in found), *(f"{v}={os.environ[v]}" for v in variables)]


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    while True:
        with file.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_at(lock.fileno(), file):
                os.utime(lock.fileno())
                yield
                return


def _is_at(opened: int, file: Path) -> bool:
    """Whether an open file has its name still: another program may have deleted the file before this one had the lock."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(opened), file.stat())
    return False


def delete_old(folder: Path) -> None:
    """Deletes the files of servers that do not run, and that no program has used for a day. Their roots may not exist any longer."""
    for file in folder.glob("*.lock"):
        with contextlib.suppress(OSError, ValueError), file.open("r+") as lock:
            if time.time() - os.fstat(lock.fileno()).st_mtime < _KEPT_S:
                continue
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            pid = file.with_suffix(".pid")
            if _is_at(lock.fileno(), file) and not (pid.exists() and _runs(int(pid.read_text()))):
                for each in sorted(folder.glob(f"{file.stem}.*"), key=lambda found: found == file):  # the lock is last
                    each.unlink(missing_ok=True)


def _connected(note: Note) -> socket.socket | None:
    if not _runs(note.pid):
        return None
    host, _, port = note.address.rpartition(":")
    try:
        connection = socket.create_connection((host, int(port)), _CONNECT_S)
    except (OSError, ValueError):
        return None
    connection.settimeout(None)  # a server says nothing for as long as it lives
    return connection


def _shut(connection: socket.socket) -> None:
    """Wakes a thread that reads, which `close` alone does not."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _is_free(address: str) -> bool:
    """Whether a server can listen there. A dying server closes its connections first: it may have its address a moment longer."""
    host, _, port = address.rpartition(":")
    until = time.monotonic() + _DYING_S
    while True:
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does: connections of the dead one may linger
            try:
                tried.bind((host, int(port)))
                tried.listen()
            except (OSError, ValueError):
                if time.monotonic() > until:
                    return False
            else:
                return True
        time.sleep(_LOOKS_S)


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
    with contextlib.suppress(OSError):  # where there is no /proc
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"  # ended, and its parent has not asked how
    return True
