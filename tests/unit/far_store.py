"""A store over a network, without a network: the files of a folder, where each request is counted and takes a while."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sparklog.store.local import LocalFile, LocalStore
from sparklog.store.remote import ReadAhead, RemoteFile, RemoteStore
from sparklog.store.requests import AT_ONCE
from sparklog.store.store import Absent, Damaged, Entry, File

WAIT_S = 120


class Request(NamedTuple):
    """A request that was made: LIST, HEAD or GET, and the name. `row` counts the requests that one waited for another, up to this one."""

    call: str
    name: str
    row: int


class Asked:
    """The requests that were made at a store, in the order of their ends. Another process has its own."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self.clear()

    def bytes(self, name: str, position: int, count: int) -> None:
        """These bytes were asked for."""
        with self._lock:
            self.spans.setdefault(name, []).append((position, position + count))

    def __reduce__(self) -> tuple[type[Asked], tuple[float]]:
        return Asked, (self.delay_s,)

    def clear(self) -> None:
        self.requests: list[Request] = []
        self.spans: dict[str, list[tuple[int, int]]] = {}
        self.most_at_once = self._under_way = self._row = 0
        self._lock = threading.Lock()

    def counts(self) -> Counter[str]:
        return Counter(request.call for request in self.requests)

    def rows(self) -> int:
        """So many requests waited for one another."""
        return self._row

    @contextmanager
    def one(self, call: str, name: str) -> Iterator[None]:
        with self._lock:
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
            row = self._row + 1
        time.sleep(self.delay_s)
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1
                self._row = max(self._row, row)
                self.requests.append(Request(call, name, row))


class FarStore(RemoteStore):
    """The requests are those of a bucket: a listing of a folder is a LIST, and a file that is opened a HEAD and a GET for each read."""

    lists_in_order = True

    def __init__(self, folder: str, delay_s: float = 0.0, max_requests: int = AT_ONCE) -> None:
        self.folder = Path(folder)
        self._files = LocalStore(folder)
        self.asked = Asked(delay_s)
        self.root = f"far:{folder}"
        self.place = self.root
        self.max_requests = max_requests

    def above(self) -> None:
        return None

    def look(self, name: str) -> Entry | None:
        with self.asked.one("HEAD", name):
            return _without_links(self._files.look(name))

    def names(self, folder: str) -> list[str]:
        with self.asked.one("LIST", folder):
            return self._files.names(folder)

    def entries(self, folder: str) -> list[Entry]:
        with self.asked.one("LIST", folder):
            return [found for entry in self._files.entries(folder) if (found := _without_links(entry))]

    def tree(self, folder: str) -> dict[str, list[Entry]]:
        with self.asked.one("LIST", folder):
            return self._files.tree(folder)

    def open(self, name: str) -> File:
        return ReadAhead(self.opened(name))

    def reader(self, name: str) -> Callable[[int, int], bytes]:
        return partial(self.got, name)

    def got(self, name: str, position: int, count: int) -> bytes:
        self.asked.bytes(name, position, count)
        with self.asked.one("GET", name), self.file(name)[0] as file:
            return file.read(position, count)

    def opened(self, name: str) -> _FarFile:
        with self.asked.one("HEAD", name):
            return _FarFile(self, name)

    def file(self, name: str) -> tuple[LocalFile, Hashable]:
        tag = self._files.tag(name)
        if tag is None:
            raise Absent
        return self._files.open(name), tag


class Together(FarStore):
    """The bytes of no data file come before some of their requests are under way at once."""

    def wait_for(self, together: int) -> None:
        """Counts from now on; so many requests must come."""
        self.change, self.begun, self.together = threading.Condition(), 0, together

    def got(self, name: str, position: int, count: int) -> bytes:
        with self.change:
            self.begun += 1
            self.change.notify_all()
            assert self.change.wait_for(lambda: self.begun >= self.together, WAIT_S)
        return super().got(name, position, count)


class _FarFile(RemoteFile):
    def __init__(self, store: FarStore, name: str) -> None:
        self._store, self._name = store, name
        file, self.tag = store.file(name)
        with file:
            self.size = file.size

    def read(self, position: int, count: int) -> bytes:
        if min(position + count, self.size) <= position:
            return b""
        self._store.asked.bytes(self._name, position, min(count, self.size - position))
        with self._store.asked.one("GET", self._name):
            file, tag = self._store.file(self._name)
            with file:
                if tag != self.tag:
                    raise Absent
                return file.read(position, min(count, self.size - position))

    def close(self) -> None:
        pass


def _without_links(entry: Entry | None) -> Entry | None:
    if entry and entry.kind == "link":
        raise Damaged("a store over a network has no links")
    return entry and entry._replace(links=1)
