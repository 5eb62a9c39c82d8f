"""Stores that are asked over a network: each request takes long, and none keeps a file for a reader."""

from __future__ import annotations

import os
import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TypeVar

from sparklog.store.requests import AT_ONCE, Answer, requests_of
from sparklog.store.store import Absent, Damaged, File, Store

A = TypeVar("A")
B = TypeVar("B")

FIRST_BYTES = 1 << 18
"""The least that `ReadAhead` asks for."""
_MOST_BYTES = 1 << 23


class RemoteFile(File):
    """A file that is asked for at each read."""

    tag: Hashable
    """Distinguishes it from another file of its name."""


class RemoteStore(Store):
    """A store without links. An open file is looked up again at each read."""

    is_far = True
    place: str
    """The bucket or the NameNode: stores with equal places share the threads of their requests."""
    max_requests: int = AT_ONCE
    """How many requests a process has under way at the place."""

    def at_once(self, ask: Callable[[A], B], each: Iterable[A]) -> Iterator[B]:
        """Up to `max_requests` calls at once."""
        return requests_of(self.place, self.max_requests).in_order(ask, each)

    def begin(self, ask: Callable[[A], B], argument: A) -> Answer[B]:
        """By a thread that `at_once` uses too."""
        return requests_of(self.place, self.max_requests).begin(ask, argument)

    @abstractmethod
    def opened(self, name: str) -> RemoteFile:
        """Opens a file, as `open`, to be read without reading ahead. A folder may be Absent."""

    def open_at(self, name: str, position: int) -> File:
        """By opening it, and by one request."""
        return ReadAhead(self.opened(name)).at(position)

    def tag(self, name: str) -> Hashable | None:
        """By opening it."""
        try:
            with self.opened(name) as file:
                return file.tag
        except Absent:
            return None

    def are_one(self, name: str, other: str) -> bool:
        """False."""
        return False

    def reader(self, name: str) -> Callable[[int, int], bytes]:
        """By opening it once, where the store must know the length of a file before it reads."""
        return SharedFile(partial(self.opened, name)).read

    def read_tagged(self, name: str, bytes_max: int) -> tuple[Hashable, bytes]:
        """By opening it once, which tells also that it is absent."""
        with self.opened(name) as file:
            return file.tag, file.whole(bytes_max)


class SharedFile:
    """A file that several threads read. The first read opens it."""

    def __init__(self, opened: Callable[[], RemoteFile]) -> None:
        self._opened, self._process = opened, os.getpid()
        self._lock = threading.Lock()
        self._file: RemoteFile | None = None

    def read(self, position: int, count: int) -> bytes:
        if os.getpid() != self._process:
            # A fork may copy a lock that a thread holds.
            with self._opened() as file:
                return file.read(position, count)
        with self._lock:
            self._file = self._file or self._opened()
        return self._file.read(position, count)


class ReadAhead(File):
    """Reads more than it is asked for: the more, the longer it was read from front to back. So no byte of such a read is asked for twice.

    It holds up to 8 MiB, and the bytes of the request.
    """

    def __init__(self, file: File, at: int = 0, held: bytes = b"") -> None:
        self._file = file
        self._at, self._held = at, held
        self._ahead = FIRST_BYTES
        self.size = file.size

    def read(self, position: int, count: int) -> bytes:
        """From the held bytes, or by one request."""
        end = min(position + count, self.size)
        if end <= position:
            return b""
        if position < self._at or end > self._at + len(self._held):
            self._request(position, end)
        return self._held[position - self._at : end - self._at]

    def _request(self, position: int, end: int) -> None:
        goes_on = self._at <= position <= self._at + len(self._held) + self._ahead
        kept = self._held[position - self._at :] if goes_on else b""
        self._ahead = min(2 * self._ahead, _MOST_BYTES) if goes_on and self._held else FIRST_BYTES
        begin = position + len(kept)
        read = self._file.read(begin, min(max(end - begin, self._ahead), self.size - begin))
        self._at, self._held = position, kept + read

    def at(self, position: int) -> ReadAhead:
        """Itself, with bytes from a position on, by one request if it has none. If they cannot be read, a later read meets that again."""
        with suppress(Absent, OSError):
            self.read(position, 1)
        return self

    def close(self) -> None:
        """Closes the file."""
        self._held = b""
        self._file.close()


def required_name(name: str, folder: str) -> str:
    """A name that a listing has of a folder. Damaged if it is not a name: it would lead elsewhere, or nowhere."""
    if name in ("", ".", "..") or re.search("[/\0]", name):
        raise Damaged(f"its listing has the name {name!r}, which no file or folder in {folder} can have")
    return name
