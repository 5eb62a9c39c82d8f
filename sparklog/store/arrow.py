"""Files of any `pyarrow.fs.FileSystem`: objects in a bucket of S3 or another store, or files of HDFS. FORMAT.md section 2.

There are no links, and in a bucket no folders: a folder exists as far as objects have its name before theirs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from sparklog.errors import SparklogError
from sparklog.store.remote import ReadAhead, RemoteFile, RemoteStore, required_name
from sparklog.store.requests import AT_ONCE
from sparklog.store.store import Absent, Damaged, Entry, File, below

if TYPE_CHECKING:
    from pyarrow import fs

_DEPTH = 2
"""`tree` has the entries of a folder, and of the folders in it."""
_WITHOUT_ORDER = ("--x-s3", "--xa-s3")
"""The names of directory buckets of S3 (Express One Zone), and of access points to them, end so. Their listings are in no order."""
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_FSSPEC = "py::fsspec+"
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


class ArrowStore(RemoteStore):
    """The files of a FileSystem of pyarrow whose paths begin with a base and a folder.

    Args:
        place: The beginning of the root's name, such as `s3a://bucket`; "" if the root is named by its path alone.
        base: The beginning of each path in the FileSystem, such as `bucket`, "/" or "".
        folder: The folder below both that is the root, without a slash before and after it.
        filesystem: The FileSystem. Without it, the place is a bucket of S3, `settings` are parameters of a URL as pyarrow takes them
            (`endpoint_override=127.0.0.1:9000&scheme=http`), and other settings come from the environment.

    Nothing is asked of a server until something is looked at.
    """

    def __init__(
        self,
        place: str,
        base: str,
        folder: str,
        filesystem: fs.FileSystem | None = None,
        settings: str = "",
        max_requests: int = AT_ONCE,
    ) -> None:
        self.place = place
        self.max_requests = max_requests
        self._base = base
        self._folder = folder
        self._given = filesystem
        self._settings = settings
        self._made: fs.FileSystem | None = None
        self._path_of_root = _joined(base, folder)
        self.root = _joined(place, folder) if place else self._path_of_root or "."

    def __reduce__(self) -> tuple[type[ArrowStore], tuple[Any, ...]]:
        return ArrowStore, (self.place, self._base, self._folder, self._given, self._settings, self.max_requests)

    @property
    def lists_in_order(self) -> bool:  # type: ignore[override]
        """True for S3, but for its directory buckets."""
        bucket = self._path_of_root.partition("/")[0]
        return self.filesystem.type_name == "s3" and not bucket.endswith(_WITHOUT_ORDER)

    @property
    def filesystem(self) -> fs.FileSystem:
        """The FileSystem through which objects are read. OSError if it cannot be made; CallError OPTION_VALUE for settings of no use."""
        # Two threads may both make one.
        if self._made is None:
            _allow_at_once(self.max_requests)
            self._made = self._given or self._by_settings()
        return self._made

    def fresh(self) -> fs.FileSystem:
        """The FileSystem, without the listings that a file system of fsspec keeps: names that came since are not in them."""
        from pyarrow.fs import SubTreeFileSystem

        within = self.filesystem
        while isinstance(within, SubTreeFileSystem):
            within = within.base_fs
        if within.type_name.startswith(_FSSPEC):
            with _faults():
                within.handler.fs.invalidate_cache()
        return self.filesystem

    def _by_settings(self) -> fs.FileSystem:
        try:
            return _filesystem(self._base, self._settings)
        except pa.ArrowInvalid as error:
            reason = f"{error}; give settings that pyarrow takes in a URL, such as endpoint_override, scheme and region"
            raise SparklogError("OPTION_VALUE", option="path", value=f"{self.root}?{self._settings}", reason=reason) from None

    def storage_options(self, table: str) -> dict[str, str]:
        """Those of a table in a bucket, from the settings that the FileSystem would give another process."""
        from pyarrow.fs import S3FileSystem

        if not table.lower().startswith(("s3://", "s3a://")) or not isinstance(self.filesystem, S3FileSystem):
            return {}
        _, (settings,) = self.filesystem.__reduce__()
        scheme, address = settings["scheme"] or "https", settings["endpoint_override"]
        options = {
            "aws_access_key_id": settings["access_key"],
            "aws_secret_access_key": settings["secret_key"],
            "aws_session_token": settings["session_token"],
            "aws_region": settings["region"],
            "aws_endpoint_url": address and (address if "://" in address else f"{scheme}://{address}"),
            "aws_allow_http": "true" if scheme == "http" or address.startswith("http://") else "",
            "aws_skip_signature": "true" if settings["anonymous"] else "",
            "aws_virtual_hosted_style_request": "true" if settings["force_virtual_addressing"] else "",
        }
        return {name: value for name, value in options.items() if value}

    def above(self) -> ArrowStore | None:
        """The store of the folder above; None at the top of the bucket or FileSystem."""
        if not self._folder:
            return None
        above = self._folder.rpartition("/")[0]
        return ArrowStore(self.place, self._base, above, self._given, self._settings, self.max_requests)

    def look(self, name: str) -> Entry | None:
        """By one request; in S3, by two if it is not a file."""
        path, files = self._path(name), self.fresh()
        with _faults():
            found = _entry(files.get_file_info(path))
        return found._replace(name=name.rpartition("/")[2]) if found else None

    def names(self, folder: str) -> list[str]:
        """By one request for a thousand names."""
        return [entry.name for entry in self._listed(folder)]

    def entries(self, folder: str) -> list[Entry]:
        """By the same requests."""
        return sorted(self._listed(folder))

    def tree(self, folder: str) -> dict[str, list[Entry]]:
        """By one request for a thousand names in the folder and below it."""
        found: dict[str, list[Entry]] = {"": []}
        for path, entry in self._infos(folder, recursive=True):
            parts = [required_name(part, self.location(folder)) for part in path.split("/")]
            if entry.is_folder and len(parts) == 1:
                found.setdefault(path, [])
            if len(parts) <= _DEPTH:
                found.setdefault("/".join(parts[:-1]), []).append(entry._replace(name=parts[-1]))
        return {name: sorted(entries) for name, entries in found.items()}

    def open(self, name: str) -> File:
        """By one request for its length and tag, and by one request for each part that is read. Nothing keeps the file until then."""
        try:
            return ReadAhead(self.opened(name))
        except (Absent, OSError):
            found = self.look(name)
            if found and not found.is_file:
                raise Damaged("it is not a regular file") from None
            raise

    def opened(self, name: str) -> _Object:
        """By one request."""
        return _Object(self, self._path(name))

    def _path(self, name: str) -> str:
        return _joined(self._path_of_root, below(name)) if name else self._path_of_root

    def _listed(self, folder: str) -> list[Entry]:
        return [entry._replace(name=required_name(name, self.location(folder))) for name, entry in self._infos(folder, recursive=False)]

    def _infos(self, folder: str, *, recursive: bool) -> Iterator[tuple[str, Entry]]:
        """The path below the folder, and the entry, of each object and folder in it."""
        from pyarrow.fs import FileSelector

        path, files = self._path(folder), self.fresh()
        try:
            with _faults():
                found = files.get_file_info(FileSelector(path, allow_not_found=True, recursive=recursive))
        except OSError:
            entry = self.look(folder)
            if entry and not entry.is_folder:
                return
            raise
        within = f"{path.strip('/')}/".lstrip("/")
        for info in found:
            name = info.path.lstrip("/")  # a FileSystem may leave out the slash at the beginning, or add one
            if not name.startswith(within):
                raise Damaged(f"its listing has the name {info.path!r}, which is not in {self.location(folder)}")
            if entry := _entry(info):
                yield name.removeprefix(within), entry


class _Object(RemoteFile):
    """An object that is read at positions. Absent if it does not exist."""

    def __init__(self, store: ArrowStore, path: str) -> None:
        self._store = store
        self._path = path
        self._tag: Hashable = None
        files = store.fresh()
        try:
            with _faults():
                self._file = files.open_input_file(path)
                self.size = self._file.size()
        except (FileNotFoundError, NotADirectoryError):
            raise Absent from None

    @property
    def tag(self) -> Hashable:  # type: ignore[override]
        """The ETag or generation and the time; or the time, by one request; or a hash of the bytes, where files have neither.

        An ETag alone may be a hash of the bytes.
        """
        if self._tag is None:
            self._tag = self._found_tag()
        return self._tag

    def _found_tag(self) -> Hashable:
        files = self._store.fresh()
        with _faults():
            told = {name.lower(): value for name, value in self._told().items()}
            known = tuple(told[name] for name in ("etag", "generation", "last-modified") if name in told)
            if known:
                return *known, self.size
            modified = files.get_file_info(self._path).mtime_ns
        return modified or hashlib.sha256(self.read(0, self.size)).digest(), self.size

    def _told(self) -> Mapping[str, object]:
        try:
            return self._file.metadata() or {}
        except NotImplementedError:
            return {}

    def read(self, position: int, count: int) -> bytes:
        """By one request."""
        end = min(position + count, self.size)
        if end <= position:
            return b""
        try:
            with _faults():
                found = self._file.read_at(end - position, position)
        except OSError:
            # The error of a read does not tell that the object is gone.
            _Object(self._store, self._path).close()
            raise
        assert isinstance(found, bytes)
        return found

    def close(self) -> None:
        """Asks nothing of the server."""
        self._file.close()


def _allow_at_once(requests: int) -> None:
    """Pyarrow lists folders with threads of its own: eight, if neither the program nor ARROW_IO_THREADS has set another number."""
    if "ARROW_IO_THREADS" not in os.environ and pa.io_thread_count() < requests:
        pa.set_io_thread_count(requests)


def _filesystem(bucket: str, settings: str) -> fs.FileSystem:
    """A FileSystem by the settings and the environment. pyarrow itself does not know the variables for the server's address."""
    from pyarrow.fs import FileSystem, S3FileSystem

    endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)
    if settings or not (endpoint or any(os.environ.get(name) for name in _REGIONS)):
        # This asks AWS for the region of the bucket, if no setting tells it.
        return FileSystem.from_uri(f"s3://{bucket}?{settings}")[0]
    scheme, _, address = (endpoint or "").rpartition("://")
    return S3FileSystem(endpoint_override=address or None, scheme=scheme or None)


def _joined(*parts: str) -> str:
    """The parts with a slash between them, except for empty parts; the first part may end with a slash."""
    found = [part for part in parts if part]
    return "/".join([found[0].rstrip("/"), *found[1:]]) if len(found) > 1 else "".join(found)


def _entry(info: fs.FileInfo) -> Entry | None:
    from pyarrow.fs import FileType

    if info.type == FileType.NotFound:
        return None
    if info.type == FileType.Directory:
        return Entry(info.base_name, "folder", 0, 0.0, 1)
    kind: Literal["file", "other"] = "file" if info.type == FileType.File else "other"
    return Entry(info.base_name, kind, info.size or 0, (info.mtime_ns or 0) / 1e9, 1)


@contextmanager
def _faults() -> Iterator[None]:
    """An exception of pyarrow, or of a file system in Python, that is no OSError becomes one."""
    try:
        yield
    except OSError:
        raise
    except pa.ArrowException as error:
        raise OSError(str(error)) from None
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
