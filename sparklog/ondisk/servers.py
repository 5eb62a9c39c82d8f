"""The servers of a root, which answer Kafka's clients, by their heartbeats. FORMAT.md annex G."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from enum import Enum
from typing import NamedTuple

from sparklog.errors import SparklogError
from sparklog.ondisk.fields import Fields, parse
from sparklog.ondisk.names import SERVERS, server_heartbeat_of
from sparklog.ondisk.root import Root
from sparklog.ondisk.version import summed_line
from sparklog.store.store import Absent, Damaged, Entry

_BYTES_MAX = 64 << 10
_SERVERS_MAX = 50
_LISTENERS_MAX = 64
_CLIENTS_MAX = 50
_TEXT_MAX = 1_024
_INT32_MAX = 2**31 - 1
_SESSION_MS = (100, 600_000)
_LOOKS = 3


class Listener(NamedTuple):
    """Where clients reach a server."""

    name: str
    host: str
    port: int
    kind: str


class ConnectedClient(NamedTuple):
    """A client that was connected, with the number of its connections. The client chooses `name` and `software`."""

    listener: str
    name: str
    software: str
    host: str
    connections: int


class Heartbeat(NamedTuple):
    """The content of a heartbeat. A field that the server left out is None, empty or 0."""

    node: int
    session_ms: int
    listeners: tuple[Listener, ...]
    since: int | None
    """The time at which the server began, in ms since 1970 by its clock."""
    program: str
    clients: tuple[ConnectedClient, ...]
    others: int
    """The number of connections of other clients."""

    @classmethod
    def of(cls, content: bytes) -> Heartbeat:
        """The heartbeat of a file. Damaged if the content breaks a rule of the format."""
        fields = Fields(parse(summed_line(content)[0]))
        fields.integer("format", 1, _INT32_MAX)  # each format has the fields below
        listeners = fields.value("listeners")
        if type(listeners) is not dict or not 1 <= len(listeners) <= _LISTENERS_MAX:
            raise Damaged(f"`listeners` is not an object of 1 to {_LISTENERS_MAX} listeners")
        clients = fields.array("clients", _CLIENTS_MAX) if "clients" in fields else []
        return cls(
            fields.integer("node", 0, _INT32_MAX),
            fields.integer("session", *_SESSION_MS),
            tuple(_listener(name, Fields(listeners[name])) for name in sorted(listeners)),
            fields.integer("since") if "since" in fields else None,
            _text(fields.string("program"), "program") if "program" in fields else "",
            tuple(_client(Fields(each)) for each in clients),
            fields.integer("others", 0, _INT32_MAX) if "others" in fields else 0,
        )


class SeenServer(NamedTuple):
    """A server with its newest heartbeat, and the time of this heartbeat in ms since 1970, by the clock of the place."""

    heartbeat: Heartbeat
    written: int
    is_alive: bool


class Servers(NamedTuple):
    """The servers of a root at a moment, the living first. `more` servers have older heartbeats. The heartbeats of
    `unreadable` servers are damaged, or the store refuses to read them.
    """

    shown: list[SeenServer]
    more: int
    unreadable: int


class _Sight(NamedTuple):
    number: int
    since: float
    """When a look first found this heartbeat, by a clock that only rises."""
    may_live: bool


class _Unread(Enum):
    GONE = "The file does not exist."
    UNREADABLE = "The file is damaged, or the store refuses to read it."


class _File(NamedTuple):
    """A heartbeat that a listing has."""

    number: int
    entry: Entry


class ServerLooks:
    """Looks at the servers of a root, from several threads. A look knows the changes since the last look, also if a clock is wrong.

    `clock` is in seconds, and only rises.
    """

    def __init__(self, root: Root, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._clock = clock
        self._lock = threading.Lock()
        self._sights: dict[str, _Sight] = {}
        self._looked = 0.0

    def look(self) -> Servers:
        """The servers of now. RetryError IO if their folder cannot be listed."""
        with self._lock:
            asked = self._clock()
            heartbeats: dict[str, tuple[_File, Heartbeat | _Unread]] = {}
            for _ in range(_LOOKS):  # A server that has made its next heartbeat deletes the earlier one, maybe before it is read.
                files = self._files()
                chosen = sorted(files, key=lambda each: files[each][0].entry.modified, reverse=True)[:_SERVERS_MAX]
                heartbeats |= self._heartbeats({each: files[each] for each in chosen if each not in heartbeats})
                if heartbeats.keys() >= set(chosen):
                    break
            servers = []
            sights = {}
            unreadable = 0
            for identity in (each for each in chosen if each in heartbeats):
                file, heartbeat = heartbeats[identity]
                if isinstance(heartbeat, Heartbeat):
                    sights[identity] = sight = self._sight(identity, file, heartbeat.session_ms / 1_000, asked)
                    is_alive = sight.may_live and asked - sight.since < heartbeat.session_ms / 1_000
                    servers.append(SeenServer(heartbeat, round(file.entry.modified * 1_000), is_alive))
                else:
                    unreadable += 1
                    if identity in self._sights:  # so that the next heartbeat is a change
                        sights[identity] = self._sights[identity]
            self._sights, self._looked = sights, asked
        servers.sort(key=lambda each: (not each.is_alive, each.heartbeat.listeners, -each.written))
        return Servers(servers, len(files) - len(chosen), unreadable)

    def _files(self) -> dict[str, list[_File]]:
        """The two newest heartbeats of each server by its identity, the newest first. A server that lives has one or two."""
        try:
            entries = self._root.store.entries(SERVERS)
        except (OSError, Damaged) as error:
            raise SparklogError("IO", file=self._root.store.location(SERVERS), cause=error) from None
        files: dict[str, list[_File]] = {}
        for identity, number, entry in sorted((*heartbeat, entry) for entry in entries if (heartbeat := server_heartbeat_of(entry.name))):
            files[identity] = [_File(number, entry), *files.get(identity, [])[:1]]
        return files

    def _heartbeats(self, files: dict[str, list[_File]]) -> dict[str, tuple[_File, Heartbeat | _Unread]]:
        """The newest heartbeat of each server that can be read. A server creates and writes its next heartbeat, and then deletes the last.

        A server is left out if a file that is needed is gone.
        """
        found = self._read({identity: newest[0] for identity, newest in files.items()})
        earlier = {each: files[each][1] for each in found if found[each][1] is _Unread.UNREADABLE and len(files[each]) > 1}
        found |= self._read(earlier)
        return {identity: each for identity, each in found.items() if each[1] is not _Unread.GONE}

    def _read(self, files: dict[str, _File]) -> dict[str, tuple[_File, Heartbeat | _Unread]]:
        read = self._root.store.at_once(self._read_one, [file.entry.name for file in files.values()])
        return {identity: (file, heartbeat) for (identity, file), heartbeat in zip(files.items(), read, strict=True)}

    def _read_one(self, name: str) -> Heartbeat | _Unread:
        try:
            return Heartbeat.of(self._root.store.read(f"{SERVERS}/{name}", _BYTES_MAX))
        except Absent:
            return _Unread.GONE
        except (OSError, Damaged):
            return _Unread.UNREADABLE

    def _sight(self, identity: str, file: _File, session_s: float, now: float) -> _Sight:
        before = self._sights.get(identity)
        if before and before.number == file.number:
            return before
        has_changed = before is not None and now - self._looked < session_s
        return _Sight(file.number, now, has_changed or abs(time.time() - file.entry.modified) < session_s)


def addresses(root: Root, kinds: Collection[str]) -> list[str]:
    """Where clients reach the servers of a root that are alive, at listeners of these kinds: `host:port`."""
    try:
        seen = ServerLooks(root).look().shown
    except SparklogError:
        return []
    return [f"{each.host}:{each.port}" for server in seen if server.is_alive for each in server.heartbeat.listeners if each.kind in kinds]


def cluster(root: Root) -> str | None:
    """The id of the cluster that servers of a root tell clients; None if it cannot be read."""
    try:
        return Fields(parse(root.store.read(f"{SERVERS}/cluster.json", _BYTES_MAX))).string("cluster")
    except (OSError, Damaged):
        return None


def _listener(name: str, fields: Fields) -> Listener:
    host = _text(fields.string("host"), "host")
    if not host.strip():
        raise Damaged("`host` is empty")
    return Listener(_text(name, "listeners"), host, fields.integer("port", 1, 65_535), _text(fields.string("kind"), "kind"))


def _client(fields: Fields) -> ConnectedClient:
    listener, name, software, host = (_text(fields.string(each), each) for each in ConnectedClient._fields[:-1])
    return ConnectedClient(listener, name, software, host, fields.integer("connections", 1, _INT32_MAX))


def _text(text: str, name: str) -> str:
    if len(text) > _TEXT_MAX:
        raise Damaged(f"`{name}` has {len(text)} characters, more than {_TEXT_MAX}")
    return text
