"""The use of a shared server by one program: which server runs, and when another is started.

It has no file, process, socket, thread or clock. Its steps are generators of requests, which the caller answers.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sparklog.errors import SparklogError

T = TypeVar("T")


class Note(NamedTuple):
    """A server, as the program that started it has written it down for other programs."""

    address: str
    pid: int


class Lock(NamedTuple):
    """Lets no other program look at the note and start a server, until these steps have ended."""


class ReadNote(NamedTuple):
    """Reply: the note; None if no server was started, or if the note cannot be read."""


class Connect(NamedTuple):
    """Reply: a connection; None if the process does not run, or does not listen at the address."""

    note: Note


class IsFree(NamedTuple):
    """Reply: whether a server can listen at the address."""

    address: str


class Start(NamedTuple):
    """Starts a server at an address; None for any. Reply: its note, when it listens. CallError SERVE_START if it does not start."""

    address: str | None


class WriteNote(NamedTuple):
    note: Note


class Disconnect(NamedTuple):
    connection: Any


Request: TypeAlias = Lock | ReadNote | Connect | IsFree | Start | WriteNote | Disconnect
Steps: TypeAlias = Generator[Request, Any, T]


@dataclass
class Use:
    """One program uses the server of a root. The program is a user of the server for as long as it has the connection."""

    root: str
    address: str | None = None
    connection: Any = None
    note: Note | None = None
    gone: Note | None = None
    """A server that surely runs no longer. Its process may be there for a moment still, and another program may listen at its address."""
    closed: bool = False

    def serving(self) -> Steps[None]:
        """Finds the server of the root, or starts it, unless this program is connected to one. CallError SERVE_START.

        A server that has died is started again at its address. Its clients reach the new server, and send again the records that were not
        acknowledged. If another program listens at that address now, the new server gets another address.
        """
        if self.connection is not None or self.closed:
            return
        yield Lock()
        note = yield ReadNote()
        connection = (yield Connect(note)) if note and note != self.gone else None
        if connection is None:
            kept = note.address if note and (yield IsFree(note.address)) else None
            try:
                note = yield Start(kept)
            except SparklogError:
                if kept is None:
                    raise
                note = yield Start(None)  # another program may have taken the address meanwhile
            yield WriteNote(note)
            connection = yield Connect(note)
            if connection is None:
                raise SparklogError("SERVE_START", root=self.root, output="the server listened, and ended")
        self.note, self.address, self.connection = note, note.address, connection
        if self.closed:  # by another thread, while this thread started the server
            yield Disconnect(connection)

    def lost(self, connection: Any) -> bool:
        """A connection has ended. Returns whether another server must be found."""
        if connection is not self.connection or self.closed:
            return False
        self.connection, self.gone = None, self.note
        return True

    def close(self) -> Steps[None]:
        """Ends the use of the server."""
        self.closed = True
        if self.connection is not None:
            yield Disconnect(self.connection)
