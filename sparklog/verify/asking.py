"""A store that is asked again where it could not read. The names of files that were never read are remembered: those were not checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

from sparklog.ondisk.root import Root
from sparklog.store.requests import Answer
from sparklog.store.store import Entry, File, Store

A = TypeVar("A")
B = TypeVar("B")

_WAITS_S = (0.02, 0.1, 0.4)
"""A read that fails is made again after each of these waits."""
_GIVEN_UP = 16
"""A process asks once alone, after it has given up so many reads: then the store itself does not answer."""


class AskingStore(Store):
    """The files of another store. A read that fails is made again a bounded number of times.

    `unread` has, by name, the reasons of the reads that failed each time. An exception of such a read may be lost in the decoders of
    `ondisk`, which take another file instead.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.root = store.root
        self.is_far = store.is_far
        self.has_links = store.has_links
        self.unread: dict[str, str] = {}
        self._given_up = 0

    def __reduce__(self) -> tuple[type[AskingStore], tuple[Store]]:
        return AskingStore, (self._store,)

    @property
    def lists_in_order(self) -> bool:  # type: ignore[override]
        """That of the other store."""
        return self._store.lists_in_order

    @property
    def has_empty_folders(self) -> bool:  # type: ignore[override]
        """That of the other store."""
        return self._store.has_empty_folders

    def until(self, ask: Callable[[], B], is_right: Callable[[B], bool]) -> B:
        """The first answer that does not contradict an earlier answer of the store; after some tries, the last answer."""
        found = ask()
        for wait in _WAITS_S if self.is_far else ():
            if is_right(found) or self._given_up >= _GIVEN_UP:
                break
            time.sleep(wait)
            found = ask()
        return found

    def asked(self, name: str, ask: Callable[[], B]) -> B:
        """The answer about a name. After some tries OSError, and the name is remembered."""
        waits = iter(_WAITS_S)
        while True:
            try:
                found = ask()
            except OSError as error:
                wait = None if self._given_up >= _GIVEN_UP else next(waits, None)
                if wait is None:
                    self._given_up += 1
                    self.unread[name] = str(error)
                    raise
            else:
                self.unread.pop(name, None)
                return found
            time.sleep(wait)

    def above(self) -> Store | None:
        """That of the other store."""
        return self._store.above()

    def location(self, name: str) -> str:
        """That of the other store."""
        return self._store.location(name)

    def at_once(self, ask: Callable[[A], B], each: Iterable[A]) -> Iterator[B]:
        """As the other store."""
        return self._store.at_once(ask, each)

    def begin(self, ask: Callable[[A], B], argument: A) -> Answer[B]:
        """As the other store."""
        return self._store.begin(ask, argument)

    def has_folder(self, name: str) -> bool:
        """As the other store."""
        return self.asked(name, lambda: self._store.has_folder(name))

    def look(self, name: str) -> Entry | None:
        """As the other store."""
        return self.asked(name, lambda: self._store.look(name))

    def names(self, folder: str) -> list[str]:
        """As the other store."""
        return self.asked(folder, lambda: self._store.names(folder))

    def entries(self, folder: str) -> list[Entry]:
        """As the other store."""
        return self.asked(folder, lambda: self._store.entries(folder))

    def tree(self, folder: str) -> dict[str, list[Entry]]:
        """As the other store."""
        return self.asked(folder, lambda: self._store.tree(folder))

    def tag(self, name: str) -> Hashable | None:
        """As the other store."""
        return self.asked(name, lambda: self._store.tag(name))

    def are_one(self, name: str, other: str) -> bool:
        """As the other store."""
        return self._store.are_one(name, other)

    def read(self, name: str, bytes_max: int) -> bytes:
        """As the other store."""
        return self.asked(name, lambda: self._store.read(name, bytes_max))

    def open(self, name: str) -> File:
        """As the other store."""
        return _AskingFile(self, name, self.asked(name, lambda: self._store.open(name)))

    def open_at(self, name: str, position: int) -> File:
        """As the other store."""
        return _AskingFile(self, name, self.asked(name, lambda: self._store.open_at(name, position)))


class _AskingFile(File):
    def __init__(self, store: AskingStore, name: str, file: File) -> None:
        self._store, self._name, self._file = store, name, file
        self.size = file.size

    def read(self, position: int, count: int) -> bytes:
        return self._store.asked(self._name, lambda: self._file.read(position, count))

    def close(self) -> None:
        self._file.close()


def asking(root: Root) -> AskingStore:
    """The store of a root that is being verified."""
    assert isinstance(root.store, AskingStore)
    return root.store
