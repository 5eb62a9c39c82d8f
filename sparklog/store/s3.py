"""Objects in a bucket of S3, or of a server that speaks its protocol, through `pyarrow.fs`. FORMAT.md section 2.

There are no folders and no links: a folder exists as far as objects have its name before theirs.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
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
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


class S3Store(RemoteStore):
    """The objects of a bucket whose keys begin with a prefix and a slash; with all, if the prefix is empty.

    `filesystem` is a FileSystem of pyarrow that has the bucket. Without it, `settings` are parameters of a URL, as pyarrow takes them
    (`endpoint_override=127.0.0.1:9000&scheme=http`). Other settings come from the environment. Nothing is asked of the server until
    something is looked at.
    """

    lists_in_order = True

    def __init__(
        self, bucket: str, prefix: str, settings: str = "", filesystem: fs.FileSystem | None = None, max_requests: int = AT_ONCE
    ) -> None:
        self._bucket = bucket
        self._prefix = prefix
        self._settings = settings
        self._given = filesystem
        self._base = f"{bucket}/{prefix}".rstrip("/")
        self.root = f"s3a://{self._base}"
        self.place = f"s3a://{bucket}"
        self.max_requests = max_requests

    def __reduce__(self) -> tuple[type[S3Store], tuple[Any, ...]]:
        return S3Store, (self._bucket, self._prefix, self._settings, self._given, self.max_requests)

    @functools.cached_property
    def filesystem(self) -> fs.FileSystem:
        """The FileSystem through which objects are read. OSError if it cannot be made; CallError OPTION_VALUE for settings of no use."""
        try:
            return self._given or _filesystem(self._bucket, self._settings)
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

    def above(self) -> S3Store | None:
        """The store of the prefix above; None if this one has the whole bucket."""
        prefix = self._prefix.rpartition("/")[0]
        return S3Store(self._bucket, prefix, self._settings, self._given, self.max_requests) if self._prefix else None

    def look(self, name: str) -> Entry | None:
        """By one request if it is a file, by two if not."""
        with _faults():
            found = _entry(self.filesystem.get_file_info(self._path(name)))
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
        """By one request for its length and tag, and by one request for each part that is read. Nothing keeps the object until then."""
        try:
            return ReadAhead(self.opened(name))
        except Absent:
            found = self.look(name)
            if found and found.is_folder:
                raise Damaged("it is not a regular file") from None
            raise

    def opened(self, name: str) -> _Object:
        """By one request."""
        return _Object(self.filesystem, self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._base}/{below(name)}" if name else self._base

    def _listed(self, folder: str) -> list[Entry]:
        return [entry._replace(name=required_name(name, self.location(folder))) for name, entry in self._infos(folder, recursive=False)]

    def _infos(self, folder: str, *, recursive: bool) -> Iterator[tuple[str, Entry]]:
        """The path below the folder, and the entry, of each object and folder in it."""
        from pyarrow.fs import FileSelector

        path = self._path(folder)
        with _faults():
            found = self.filesystem.get_file_info(FileSelector(path, allow_not_found=True, recursive=recursive))
        for info in found:
            if entry := _entry(info):
                yield info.path.removeprefix(f"{path}/"), entry


class _Object(RemoteFile):
    """An object that is read at positions. Absent if it does not exist."""

    def __init__(self, filesystem: fs.FileSystem, path: str) -> None:
        self._filesystem = filesystem
        self._path = path
        try:
            with _faults():
                self._file = filesystem.open_input_file(path)
                self.size = self._file.size()
                told = self._file.metadata() or {}
        except FileNotFoundError:
            raise Absent from None
        # The ETag alone may be a hash of the bytes, and another file can have equal bytes.
        self.tag = told.get("ETag"), told.get("Last-Modified"), self.size

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
            _Object(self._filesystem, self._path).close()
            raise
        assert isinstance(found, bytes)
        return found

    def close(self) -> None:
        """Asks nothing of the server."""
        self._file.close()


def _filesystem(bucket: str, settings: str) -> fs.FileSystem:
    """A FileSystem by the settings and the environment. pyarrow itself does not know the variables for the server's address."""
    from pyarrow.fs import FileSystem, S3FileSystem

    endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)
    if settings or not (endpoint or any(os.environ.get(name) for name in _REGIONS)):
        # This asks AWS for the region of the bucket, if no setting tells it.
        return FileSystem.from_uri(f"s3://{bucket}?{settings}")[0]
    scheme, _, address = (endpoint or "").rpartition("://")
    return S3FileSystem(endpoint_override=address or None, scheme=scheme or None)


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
    """An exception of pyarrow within that is no OSError becomes one."""
    try:
        yield
    except pa.ArrowException as error:
        raise OSError(str(error)) from None
