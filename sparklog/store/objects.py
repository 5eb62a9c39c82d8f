"""The client of a store of obstore, which is the Rust crate object_store: objects in a bucket. It asks for no length before it reads."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sparklog.store.arrow import is_in_bucket
from sparklog.store.paths import PathClient
from sparklog.store.remote import FIRST_BYTES, RemoteFile
from sparklog.store.store import Absent, Damaged, Entry

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, ObjectMeta
    from obstore.store import ObjectStore

_NAMES_OF_A_REQUEST = 1_000
_WORDS_MAX = 500
_ANSWER = re.compile(r"<\?xml.*?<Code>(.*?)</Code>\s*<Message>(.*?)</Message>.*", re.DOTALL)
"""The answer of S3 to a request that failed. The other elements may have a key, or a signature."""
_process: int | None = None
"""The process that made a client first, whose threads a fork of it does not have: a request would wait for ever."""


class ObjectClient(PathClient):
    """Asks a store of obstore.

    Args:
        store: The store. Several threads may call it.
        bucket: The first part of each path. The store leaves it out.
        options: The settings with which deltalake reaches tables in the same place.
        lists_in_order: As `Store.lists_in_order`.
    """

    def __init__(self, store: ObjectStore, bucket: str, options: Mapping[str, str], *, lists_in_order: bool) -> None:
        global _process
        assert can_be_used()
        _process = os.getpid()
        self.store, self._bucket = store, bucket
        self._options = dict(options)
        self.lists_in_order = lists_in_order

    def is_usable(self) -> bool:
        """Whether this process made it, and not a process from which this process was forked."""
        return can_be_used()

    def storage_options(self, table: str) -> dict[str, str]:
        """Those that it was made with. deltalake finds the keys as obstore does."""
        return self._options if is_in_bucket(table) else {}

    def look(self, path: str) -> Entry | None:
        """By one request; by two if it is not an object."""
        import obstore

        if key := self._key(path):
            try:
                with _faults():
                    return _entry(obstore.head(self.store, key))
            except Absent:
                pass
        return _folder(path) if self.has_folder(path) else None

    def has_folder(self, path: str) -> bool:
        """By one request."""
        return bool(next(self._pages(self._key(path)), None))

    def listed(self, path: str, *, recursive: bool) -> Iterator[tuple[str, Entry]]:
        """By one request for a thousand names; with `recursive`, also by two for each empty object that may stand for an empty folder."""
        key = self._key(path)
        found = self._below(key) if recursive else self._in(key)
        return ((f"{self._bucket}/{each}", entry) for each, entry in found)

    def _in(self, key: str) -> list[tuple[str, Entry]]:
        import obstore

        try:
            with _faults():
                found = obstore.list_with_delimiter(self.store, key or None)
        except Absent:
            return []
        objects = [(each["path"], _entry(each)) for each in found["objects"] if each["path"] != key]
        return [*objects, *((each, _folder(each)) for each in found["common_prefixes"])]

    def _below(self, key: str) -> list[tuple[str, Entry]]:
        objects = [each for page in self._pages(key) for each in page if each["path"] != key]
        folders: set[str] = set()
        for each in objects:
            _add_above(each["path"], key, folders)
        # The name of an object that stands for a folder ends with a slash, which obstore leaves out.
        for each in objects:
            if not each["size"] and each["path"] not in folders and self._is_folder(each["path"]):
                folders.add(each["path"])
        found = [(each["path"], _entry(each)) for each in objects if each["size"] or each["path"] not in folders]
        return [*found, *((folder, _folder(folder)) for folder in folders)]

    def _is_folder(self, key: str) -> bool:
        found = self.look(f"{self._bucket}/{key}")
        return found is not None and found.is_folder

    def _key(self, path: str) -> str:
        return path.partition("/")[2]

    def _pages(self, key: str) -> Iterator[list[ObjectMeta]]:
        """The objects below a folder, also in its folders. A request is made when its page is asked for."""
        import obstore

        try:
            with _faults():
                yield from map(list, obstore.list(self.store, key or None, chunk_size=_NAMES_OF_A_REQUEST))
        except Absent:
            return

    def opened(self, path: str) -> RemoteFile:
        """By one request, for its length."""
        import obstore

        key = self._key(path)
        with _faults():
            return _StoredObject(self.store, key, obstore.head(self.store, key))

    def begun(self, path: str, position: int) -> tuple[RemoteFile, bytes]:
        """By one request, unless the object ends before the position."""
        key = self._key(path)
        try:
            with _faults():
                found = _asked(self.store, key, {"range": (position, position + FIRST_BYTES)})
                return _StoredObject(self.store, key, found.meta), _bytes(found)
        except OSError:
            return super().begun(path, position)

    def whole(self, path: str, bytes_max: int) -> tuple[Hashable, bytes]:
        """By one request."""
        with _faults():
            found = _asked(self.store, self._key(path), {})
            if found.meta["size"] > bytes_max:
                raise Damaged(f"it has {found.meta['size']} bytes, more than {bytes_max}")
            return _tag(found.meta), _bytes(found)

    def reader(self, path: str) -> Callable[[int, int], bytes]:
        """By one request for each read. All are of the object that the first read has met."""
        met: GetOptions = {}
        key = self._key(path)

        def read(position: int, count: int) -> bytes:
            with _faults():
                found = _asked(self.store, key, {**met, "range": (position, position + count)})
                met["if_match"] = found.meta["e_tag"]
                return _bytes(found)

        return read


class _StoredObject(RemoteFile):
    """An object that is read at positions. It is Absent as soon as another object has taken its place."""

    def __init__(self, store: ObjectStore, key: str, meta: ObjectMeta) -> None:
        self.store, self._key, self._e_tag = store, key, meta["e_tag"]
        self.size = meta["size"]
        self.tag = _tag(meta)

    def read(self, position: int, count: int) -> bytes:
        """By one request."""
        end = min(position + count, self.size)
        if end <= position:
            return b""
        with _faults():
            return _bytes(_asked(self.store, self._key, {"range": (position, end), "if_match": self._e_tag}))

    def close(self) -> None:
        """Asks nothing."""


def can_be_used() -> bool:
    """Whether obstore can be used in this process: not after a fork of a process that has used it."""
    return _process in (None, os.getpid())


def _asked(store: ObjectStore, key: str, options: GetOptions) -> GetResult:
    """The answer to a request for an object, with its length and tag. Its bytes come when they are asked for."""
    import obstore

    return obstore.get(store, key, options=options)


def _bytes(found: GetResult) -> bytes:
    begin, end = found.range
    read = bytes(found.bytes())
    if len(read) != end - begin:
        raise OSError(f"the answer has {len(read)} bytes, and it must have {end - begin}")
    return read


def _tag(meta: ObjectMeta) -> Hashable:
    """The ETag, the time and the length. An ETag alone may be a hash of the bytes."""
    return meta["e_tag"], meta["version"], meta["last_modified"].isoformat(), meta["size"]


def _entry(meta: ObjectMeta) -> Entry:
    return Entry(meta["path"].rpartition("/")[2], "file", meta["size"], meta["last_modified"].timestamp(), 1)


def _add_above(key: str, top: str, folders: set[str]) -> None:
    """Adds the folders above an object, up to the top or to a known folder."""
    while (key := key.rpartition("/")[0]) not in folders and len(key) > len(top):
        folders.add(key)


def _folder(path: str) -> Entry:
    return Entry(path.rpartition("/")[2], "folder", 0, 0.0, 1)


@contextmanager
def _faults() -> Iterator[None]:
    """An exception of obstore becomes Absent, or an OSError in words without the answer's keys and signatures."""
    from obstore.exceptions import PreconditionError

    try:
        yield
    except (Absent, Damaged):
        raise
    except (FileNotFoundError, PreconditionError):
        raise Absent from None
    except Exception as error:
        words = str(error).partition("\n\nDebug source")[0]
        if "<Code>NoSuchBucket</Code>" in words:
            raise Absent from None
        words = " ".join(_ANSWER.sub(r"\1: \2", words).partition("<?xml")[0].split())[:_WORDS_MAX]
        if "/latest/api/token" in words or "/latest/meta-data" in words:
            words += ". Give keys, for instance in the environment; for a bucket that anyone may read, set AWS_SKIP_SIGNATURE=true there"
        raise OSError(words) from None
