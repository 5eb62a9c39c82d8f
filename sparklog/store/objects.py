"""The client of a store of obstore, which is the Rust crate object_store: objects in a bucket. A read asks for no length first."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sparklog.errors import SparklogError
from sparklog.store.paths import PathClient
from sparklog.store.remote import FIRST_BYTES, RemoteFile
from sparklog.store.store import Absent, Damaged, Entry, is_in_bucket

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, ObjectMeta
    from obstore.store import ObjectStore

_NAMES_OF_A_REQUEST = 1_000
_PART_BYTES = 1 << 18
"""An answer is taken by parts of so many bytes."""
_WORDS_MAX = 500
_BEFORE_ANSWER = re.compile(r"[^\"<{]*?\bstatus(?: code)?:? [0-9]{3}\b[A-Za-z ]*|[^\"<{]*")
"""The words of obstore before the body of an answer, which may have a key, or a signature."""
_OF_ANSWER = [re.compile(rf"<{name}>([^<]*)</{name}>") for name in ("Code", "Message")]
"""The elements of such a body that an error shows."""
_RANGE_WRONG = " 416 Range Not Satisfiable"
_process: int | None = None
"""The process that asked first, whose threads a fork of it does not have: a request would wait for ever."""


class ObjectClient(PathClient):
    """Asks a store of obstore.

    Args:
        store: The store. Several threads may call it.
        bucket: The first part of each path. The store leaves it out.
        options: The settings with which deltalake reaches tables in the same place.
    """

    tells_folders = True
    has_empty_folders = False
    lists_in_order = True

    def __init__(self, store: ObjectStore, bucket: str, options: Mapping[str, str]) -> None:
        self.store, self._bucket, self._options = store, bucket, dict(options)

    def storage_options(self, table: str) -> dict[str, str]:
        """Those that it was made with. deltalake finds the keys as obstore does."""
        return self._options if is_in_bucket(table) else {}

    def look(self, path: str) -> Entry | None:
        """By one request; by two if it is not an object."""
        import obstore

        if key := self._key(path):
            try:
                with faults():
                    return _entry(obstore.head(self.store, key))
            except Absent:
                pass
        return _folder(path) if self.has_folder(path) else None

    def has_folder(self, path: str) -> bool:
        """By one request."""
        return bool(next(self._pages(self._key(path)), None))

    def listed(self, path: str, *, recursive: bool) -> Iterator[tuple[str, Entry]]:
        """By one request for a thousand names. With `recursive`, folders in which an empty object may be a folder are listed again."""
        key = self._key(path)
        found = self._below(key) if recursive else self._in(key)
        return ((f"{self._bucket}/{each}", entry) for each, entry in found)

    def _in(self, key: str) -> list[tuple[str, Entry]]:
        import obstore

        try:
            with faults():
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
        # The name of an object that stands for a folder ends with a slash, which obstore leaves out. A listing of the folder above tells.
        empty = {each["path"] for each in objects if not each["size"]} - folders
        for above in {each.rpartition("/")[0] for each in empty}:
            in_it = self._in(above)
            folders |= empty & ({each for each, entry in in_it if entry.is_folder} - {each for each, entry in in_it if entry.is_file})
        found = [(each["path"], _entry(each)) for each in objects if each["size"] or each["path"] not in folders]
        return [*found, *((folder, _folder(folder)) for folder in folders)]

    def _key(self, path: str) -> str:
        return path.partition("/")[2]

    def _pages(self, key: str) -> Iterator[list[ObjectMeta]]:
        """The objects below a folder, also in its folders. A request is made when its page is asked for."""
        import obstore

        try:
            with faults():
                yield from map(list, obstore.list(self.store, key or None, chunk_size=_NAMES_OF_A_REQUEST))
        except Absent:
            return

    def opened(self, path: str) -> RemoteFile:
        """By one request, for its length."""
        import obstore

        with faults():
            return _StoredObject(self, path, obstore.head(self.store, self._key(path)))

    def begun(self, path: str, position: int) -> tuple[RemoteFile, bytes]:
        """By one request; by two if the object ends before the position."""
        try:
            found = self.asked(path, {"range": (position, position + FIRST_BYTES)})
        except OSError as error:
            if _RANGE_WRONG not in str(error):
                raise
            return super().begun(path, position)
        return _StoredObject(self, path, found.meta), _bytes(found)

    def whole(self, path: str, bytes_max: int) -> tuple[Hashable, bytes]:
        """By one request."""
        found = self.asked(path, {})
        if found.meta["size"] > bytes_max:
            raise Damaged(f"it has {found.meta['size']} bytes, more than {bytes_max}")
        return _tag(found.meta), _bytes(found)

    def reader(self, path: str) -> Callable[[int, int], bytes]:
        """By one request for each read. All are of the object that the first answer was of."""
        return _Reads(self, path).read

    def asked(self, path: str, options: GetOptions) -> GetResult:
        """The answer to a request for an object, with its length and tag. Its bytes come when they are asked for."""
        import obstore

        with faults():
            return obstore.get(self.store, self._key(path), options=options)


class _Reads:
    """Reads of one object by several threads. They are Absent as soon as another object has taken its place.

    Args:
        meta: Of the object. Without it, the object of the first answer is read.
    """

    def __init__(self, client: ObjectClient, path: str, meta: ObjectMeta | None = None) -> None:
        self._client, self._path = client, path
        self._met: dict[str, ObjectMeta] = {"first": meta} if meta else {}

    def read(self, position: int, count: int) -> bytes:
        options: GetOptions = {"range": (position, position + count)}
        known = self._met.get("first")
        if known and _has_strong_tag(known):
            options["if_match"] = known["e_tag"]
        found = self._client.asked(self._path, options)
        # Several threads may make the first request at once. One answer decides: `setdefault` is one step.
        if _identity(self._met.setdefault("first", found.meta)) != _identity(found.meta):
            raise Absent
        return _bytes(found)


class _StoredObject(RemoteFile):
    """An object that is read at positions."""

    def __init__(self, client: ObjectClient, path: str, meta: ObjectMeta) -> None:
        self._reads = _Reads(client, path, meta)
        self.size = meta["size"]
        self.tag = _tag(meta)

    def read(self, position: int, count: int) -> bytes:
        """By one request."""
        end = min(position + count, self.size)
        return self._reads.read(position, end - position) if end > position else b""

    def close(self) -> None:
        """Asks nothing."""


def _bytes(found: GetResult) -> bytes:
    """The bytes of an answer. It is not read on when it has more than it told."""
    begin, end = found.range
    parts, count = [], 0
    with faults():
        for part in found.stream(_PART_BYTES):
            parts.append(part)
            count += len(part)
            if count > end - begin:
                break
    if count != end - begin:
        had = count if count < end - begin else f"more than {end - begin}"
        raise OSError(f"the answer has {had} bytes, and it must have {end - begin}")
    return b"".join(parts)


def _has_strong_tag(meta: ObjectMeta) -> bool:
    """Whether a server can be asked for the object with this ETag alone."""
    return (meta["e_tag"] or "").strip('"') != "" and not str(meta["e_tag"]).startswith("W/")


def _identity(meta: ObjectMeta) -> Hashable:
    """Distinguishes an object from an object with other bytes."""
    return meta["e_tag"] if _has_strong_tag(meta) else _tag(meta)


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
def faults() -> Iterator[None]:
    """An exception of obstore becomes Absent, or an OSError in words without the answer's keys and signatures.

    CallError BUCKET_FORKED in a fork of a process that has used obstore.
    """
    global _process
    from obstore.exceptions import PreconditionError

    if _process not in (None, os.getpid()):
        raise SparklogError("BUCKET_FORKED")
    _process = os.getpid()
    try:
        yield
    except (Absent, Damaged):
        raise
    except (FileNotFoundError, PreconditionError):
        raise Absent from None
    except Exception as error:
        raise _error(str(error).partition("\n\nDebug source")[0]) from None


def _error(words: str) -> Exception:
    before = _BEFORE_ANSWER.match(words)
    assert before
    told = [found[1][:_WORDS_MAX] for each in _OF_ANSWER if (found := each.search(words, before.end()))]
    if told[:1] == ["NoSuchBucket"]:
        return Absent()
    shown = " ".join(": ".join([before[0].strip(" :"), *told]).split())
    if "RequestTimeTooSkewed" in words:
        shown += ". The clocks of this machine and of the server are too far apart: set them"
    if "/latest/api/token" in shown or "/latest/meta-data" in shown:
        shown += ". Give keys, for instance in the environment; pip install 'sparklog[aws]' for those of ~/.aws; for a bucket that anyone "
        shown += "may read, set AWS_SKIP_SIGNATURE=true"
    return OSError(shown)
