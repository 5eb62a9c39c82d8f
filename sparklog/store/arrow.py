"""The client of any `pyarrow.fs.FileSystem`: of S3 or another store of objects, or of HDFS."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from sparklog.store.paths import PathClient
from sparklog.store.remote import RemoteFile
from sparklog.store.store import Absent, Entry, is_in_bucket

if TYPE_CHECKING:
    from pyarrow import fs

WITHOUT_ORDER = ("--x-s3", "--xa-s3")
"""The names of directory buckets of S3 (Express One Zone), and of access points to them, end so. Their listings are in no order."""
OF_BUCKETS = ("s3", "gcs", "abfs")
"""The FileSystems, by `type_name`, whose paths begin with a bucket or a container."""
_FSSPEC = "py::fsspec+"


class ArrowClient(PathClient):
    """Asks a FileSystem. `bucket` is the beginning of its paths up to the first slash. It is asked for so many requests at once."""

    def __init__(self, filesystem: fs.FileSystem, bucket: str, max_requests: int) -> None:
        _allow_at_once(max_requests)
        self.filesystem = filesystem
        self.lists_in_order = filesystem.type_name == "s3" and not bucket.endswith(WITHOUT_ORDER)
        self.has_empty_folders = filesystem.type_name not in OF_BUCKETS

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

    def storage_options(self, table: str) -> dict[str, str]:
        """Those of a table in a bucket, from the settings that the FileSystem would give another process."""
        from pyarrow.fs import S3FileSystem

        if not is_in_bucket(table) or not isinstance(self.filesystem, S3FileSystem):
            return {}
        _, (settings,) = self.filesystem.__reduce__()
        return options_of_bucket(
            settings["region"],
            settings["endpoint_override"],
            settings["scheme"],
            access_key_id=settings["access_key"],
            secret_access_key=settings["secret_key"],
            session_token=settings["session_token"],
            skip_signature="true" if settings["anonymous"] else "",
            virtual_hosted_style_request="true" if settings["force_virtual_addressing"] else "",
        )

    def look(self, path: str) -> Entry | None:
        """By one request; in S3, by two if it is not a file."""
        files = self.fresh()
        with _faults():
            return _entry(files.get_file_info(path))

    def listed(self, path: str, *, recursive: bool) -> Iterator[tuple[str, Entry]]:
        """By one request for a thousand names."""
        from pyarrow.fs import FileSelector

        files = self.fresh()
        with _faults():
            found = files.get_file_info(FileSelector(path, allow_not_found=True, recursive=recursive))
        return ((info.path, entry) for info in found if (entry := _entry(info)))

    def opened(self, path: str) -> RemoteFile:
        """By one request, for its length."""
        return _Object(self, path)


def options_of_bucket(region: str, address: str, scheme: str, **more: str) -> dict[str, str]:
    """The settings of a bucket by their names in the Rust crate object_store, which deltalake and obstore use; without empty ones.

    The address of the server may have a scheme before it.
    """
    scheme = scheme or "https"
    options = {
        "region": region,
        "endpoint_url": address and (address if "://" in address else f"{scheme}://{address}"),
        "allow_http": "true" if scheme == "http" or address.startswith("http://") else "",
        **more,
    }
    return {f"aws_{name}": value for name, value in options.items() if value}


class _Object(RemoteFile):
    """An object that is read at positions. Absent if it does not exist."""

    def __init__(self, client: ArrowClient, path: str) -> None:
        self._client = client
        self._path = path
        self._tag: Hashable = None
        files = client.fresh()
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
        files = self._client.fresh()
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
            _Object(self._client, self._path).close()
            raise
        assert isinstance(found, bytes)
        if len(found) != end - position:
            raise OSError(f"the answer has {len(found)} bytes, and it must have {end - position}")
        return found

    def close(self) -> None:
        """Asks nothing of the server."""
        self._file.close()


def _allow_at_once(requests: int) -> None:
    """Pyarrow lists folders with threads of its own: eight, if neither the program nor ARROW_IO_THREADS has set another number."""
    if "ARROW_IO_THREADS" not in os.environ and pa.io_thread_count() < requests:
        pa.set_io_thread_count(requests)


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
