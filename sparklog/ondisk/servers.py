"""The servers of a root, which answer Kafka's clients, by their signs of life. FORMAT.md section 16."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from sparklog.errors import SparklogError
from sparklog.ondisk.fields import Fields, parse
from sparklog.ondisk.names import SERVERS, server_sign_of
from sparklog.ondisk.root import Root
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


class Sign(NamedTuple):
    """The content of a sign of life. A field that the server left out is None, empty or 0."""

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
    def of(cls, content: bytes) -> Sign:
        """The sign of a file. Damaged if the content breaks a rule of the format."""
        fields = Fields(parse(content))
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
    """A server with its newest sign, and the time of this sign in ms since 1970, by the clock of the place."""

    sign: Sign
    signed: int
    is_alive: bool


class Servers(NamedTuple):
    """The servers of a root at a moment, the living first. `more` servers have older signs, and `unreadable` a damaged sign."""

    shown: list[SeenServer]
    more: int
    unreadable: int


class _Sight(NamedTuple):
    number: int
    since: float
    """When a look first found this sign, by a clock that only rises."""
    may_live: bool


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
            signs: dict[str, Sign | None] = {}
            for _ in range(_LOOKS):  # A server that has made its next sign deletes the earlier one, maybe before it is read.
                newest = self._newest()
                chosen = sorted(newest, key=lambda each: newest[each][1].modified, reverse=True)[:_SERVERS_MAX]
                unread = [each for each in chosen if each not in signs]
                signs |= self._read({each: newest[each][1].name for each in unread})
                if signs.keys() >= set(chosen):
                    break
            servers = []
            sights = {}
            for identity in chosen:
                sign = signs.get(identity)
                if sign:
                    number, entry = newest[identity]
                    sights[identity] = sight = self._sight(identity, number, entry, sign.session_ms / 1_000, asked)
                    is_alive = sight.may_live and asked - sight.since < sign.session_ms / 1_000
                    servers.append(SeenServer(sign, round(entry.modified * 1_000), is_alive))
            self._sights, self._looked = sights, asked
        servers.sort(key=lambda each: (not each.is_alive, each.sign.listeners, -each.signed))
        return Servers(servers, len(newest) - len(chosen), sum(signs.get(each, each) is None for each in chosen))

    def _newest(self) -> dict[str, tuple[int, Entry]]:
        """The newest sign of each server by its identity, with its number."""
        try:
            entries = self._root.store.entries(SERVERS)
        except (OSError, Damaged) as error:
            raise SparklogError("IO", file=self._root.store.location(SERVERS), cause=error) from None
        found = sorted((*sign, entry) for entry in entries if (sign := server_sign_of(entry.name)))
        return {identity: (number, entry) for identity, number, entry in found}

    def _read(self, names: dict[str, str]) -> dict[str, Sign | None]:
        """The signs in files, by identity: None for a damaged file. A file that is gone is left out."""
        read: Iterable[Sign | type[Absent] | None] = self._root.store.at_once(self._read_one, names.values())
        return {identity: sign for identity, sign in zip(names, read, strict=True) if not isinstance(sign, type)}

    def _read_one(self, name: str) -> Sign | type[Absent] | None:
        try:
            return Sign.of(self._root.store.read(f"{SERVERS}/{name}", _BYTES_MAX))
        except Absent:
            return Absent
        except (OSError, Damaged):
            return None

    def _sight(self, identity: str, number: int, entry: Entry, session_s: float, now: float) -> _Sight:
        before = self._sights.get(identity)
        if before and before.number == number:
            return before
        has_changed = before is not None and now - self._looked < session_s
        return _Sight(number, now, has_changed or abs(time.time() - entry.modified) < session_s)


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
