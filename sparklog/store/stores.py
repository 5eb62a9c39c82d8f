"""The store of a root by its name. `io.sparklog.storage.Stores` understands the same names in the same way. FORMAT.md section 1."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sparklog.errors import SparklogError
from sparklog.store.local import LocalStore
from sparklog.store.requests import AT_ONCE, AT_ONCE_MAX
from sparklog.store.store import Store

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_AT_ONCE = "max_requests"
_AUTHORITY = re.compile("[a-zA-Z0-9._-]+(:[0-9]{1,5})?")
_CONTAINER = re.compile("[a-zA-Z0-9._$-]+(@[a-zA-Z0-9._-]+(:[0-9]{1,5})?)?")
_WITHOUT_AUTHORITY = ("hdfs", "viewfs", "webhdfs")
"""The file systems of these schemes have paths that begin at the top of one server."""
_URI = re.compile("([a-zA-Z][a-zA-Z0-9+.-]*):(?://([^/]*))?(.*)", re.DOTALL)


def open_store(root: str, filesystem: FileSystem | None = None) -> Store:
    """The store of a root, which need not be there.

    The root is a path, `file:` and a path, or a URL: `s3a://bucket/prefix`, `s3://bucket/prefix` or `hdfs://host:port/path`. In a URL,
    settings of the store may follow a `?`; each store has `max_requests`, the number of requests at once.
    `filesystem` is a FileSystem of pyarrow through which the root is read. Then the URL may have any scheme, or the root is a path in the
    file system. CallError as `local`.
    """
    if filesystem is not None:
        return _given(root, filesystem)
    uri = _URI.fullmatch(root)
    scheme = uri[1].lower() if uri else "file"
    if scheme in ("s3", "s3a") and uri:
        return _bucket(root, uri[2] or "", uri[3], None)
    if scheme == "hdfs" and uri:
        return _hdfs(root, uri[2] or "", uri[3])
    return LocalStore(local(root))


def _given(root: str, filesystem: FileSystem) -> Store:
    """The store of a root in a FileSystem of pyarrow. A file system on a disk is read as a disk, where no link is followed."""
    from pyarrow.fs import FileSystem, LocalFileSystem, SubTreeFileSystem

    from sparklog.store.arrow import OF_BUCKETS

    if not isinstance(filesystem, FileSystem):
        # Not its text: it may be a dict of settings.
        raise TypeError(f"`filesystem` is of type {type(filesystem).__name__}; it must be a pyarrow.fs.FileSystem")
    if not root.strip():
        raise SparklogError("ROOT_REQUIRED")
    uri = _URI.fullmatch(root)
    scheme, authority, rest = (uri[1].lower(), uri[2] or "", uri[3]) if uri else ("file", "", root)
    if scheme in ("s3", "s3a"):
        return _bucket(root, authority, rest, filesystem)
    if scheme != "file":
        path, settings, at_once = _settings(root, rest)
        allowed = _CONTAINER if scheme.startswith(("abfs", "wasb")) else _AUTHORITY
        is_default = scheme == "viewfs" and not authority and rest.startswith("/")  # the default mount table has no name
        if not is_default and not allowed.fullmatch(authority):
            raise _invalid_path(root, f"after {scheme}:// there must be the name of a bucket, container or server, without credentials")
        if settings:
            raise _invalid_path(root, f"{_AT_ONCE} is the only setting of a root that is read through `filesystem`")
        base = "/" if scheme in _WITHOUT_AUTHORITY else authority.partition("@")[0]
        return _through(filesystem, f"{scheme}://{authority or '/'}", base, _normal(root, path), at_once)
    if filesystem.type_name in OF_BUCKETS:
        reason = f"it reads buckets, and the root {root} names none; the root must be a URL, such as s3a://bucket/prefix"
        raise SparklogError("OPTION_VALUE", option="filesystem", value=type(filesystem).__name__, reason=reason)
    if authority not in ("", "localhost"):
        raise SparklogError("STORE_UNSUPPORTED", root=root, where=f"on the host {authority}")
    on_disk, within = rest, filesystem
    while isinstance(within, SubTreeFileSystem):
        on_disk, within = f"{within.base_path}/{_normal(root, on_disk)}", within.base_fs
    if isinstance(within, LocalFileSystem):
        return LocalStore(local(on_disk))
    return _through(filesystem, "", "/" if rest.startswith("/") else "", _normal(root, rest), AT_ONCE)


def _through(filesystem: FileSystem, place: str, base: str, path: str, max_requests: int) -> Store:
    from sparklog.store.arrow import ArrowClient
    from sparklog.store.paths import PathStore

    return PathStore(place, base, path.lstrip("/"), partial(ArrowClient, filesystem, base, max_requests), max_requests)


def _hdfs(root: str, authority: str, rest: str) -> Store:
    if not _AUTHORITY.fullmatch(authority):
        raise _invalid_path(root, "after hdfs:// there must be the host of a NameNode, and its port, or the name of a service")
    path, settings, at_once = _settings(root, rest)
    from sparklog.store import hdfs

    try:
        addresses = hdfs.addresses(authority, settings)
    except ValueError as error:
        raise _invalid_path(root, str(error)) from None
    except OSError as error:
        raise SparklogError("IO", file=root, cause=error) from None
    return hdfs.HdfsStore(authority, _normal(root, path), addresses, hdfs.user(), at_once)


def _settings(root: str, rest: str) -> tuple[str, str, int]:
    """The path of a URL; the settings after it, without `max_requests`; and `max_requests`. CallError OPTION_VALUE."""
    path, _, settings = rest.partition("?")
    pairs = [pair for pair in settings.split("&") if pair]
    given = [pair.partition("=")[2] for pair in pairs if pair.partition("=")[0] == _AT_ONCE]
    if wrong := [each for each in given if not re.fullmatch("[1-9][0-9]{0,3}", each) or int(each) > AT_ONCE_MAX]:
        reason = f"the number of requests at once must be from 1 to {AT_ONCE_MAX}"
        raise SparklogError("OPTION_VALUE", option=_AT_ONCE, value=wrong[0], reason=reason)
    return path, "&".join(pair for pair in pairs if pair.partition("=")[0] != _AT_ONCE), int(given[-1]) if given else AT_ONCE


def _normal(root: str, path: str) -> str:
    """The path in a URL, as Hadoop reads it. CallError OPTION_VALUE."""
    if "\0" in path:
        raise _invalid_path(root, f"Nul character not allowed: {path}")
    return os.path.normpath(f"/{path.lstrip('/')}")


def _bucket(root: str, bucket: str, rest: str, filesystem: FileSystem | None) -> Store:
    # A key and a secret, which no message must show: "key:secret@bucket", where the secret may have a slash.
    if "@" in bucket or ":" in bucket:
        reason = "after s3a:// there must be the name of a bucket alone, without credentials or a port; settings of the store have these"
        raise _invalid_path("s3a://…", f"{reason}: the environment (AWS_…), or `filesystem`")
    if not bucket or not re.fullmatch("[a-zA-Z0-9._-]+", bucket):
        raise _invalid_path(root, "after s3a:// there must be the name of a bucket")
    path, settings, at_once = _settings(root, rest)
    place, folder = f"s3a://{bucket}", _normal(root, path)
    if filesystem is not None:
        return _through(filesystem, place, bucket, folder, at_once)
    from sparklog.store.buckets import client_of_bucket
    from sparklog.store.paths import PathStore

    return PathStore(place, bucket, folder.lstrip("/"), partial(client_of_bucket, f"{bucket}{folder}", settings), at_once)


def local(root: str) -> str:
    """The absolute path of a root, which is given as a path or as `file:` and a path.

    The path is used literally: nothing in it is decoded or expanded. `..` is resolved in the text, not by following links. The connector
    finds the same root by the same name.

    CallError ROOT_REQUIRED, STORE_UNSUPPORTED, OPTION_VALUE.
    """
    if not root.strip():
        raise SparklogError("ROOT_REQUIRED")
    path = root
    if uri := _URI.fullmatch(root):
        scheme, host, path = uri.groups()
        if scheme.lower() != "file":
            raise SparklogError("STORE_UNSUPPORTED", root=root, where=f"in a store of the scheme {scheme}")
        if host not in (None, "", "localhost"):
            raise SparklogError("STORE_UNSUPPORTED", root=root, where=f"on the host {host}")
        if not path.startswith("/"):
            raise _invalid_path(root, "after file: there must be an absolute path")
    if path == "~" or path.startswith("~/"):
        raise _invalid_path(root, f"only a shell makes a home directory of ~; write {Path(path).expanduser()}")
    if "\0" in path:
        raise _invalid_path(root, f"Nul character not allowed: {path}")
    # POSIX lets the system decide what two slashes at the beginning mean. Here they are one slash, like in Java.
    return re.sub("^//", "/", os.path.normpath(Path(path).absolute()))


def _invalid_path(root: str, reason: str) -> SparklogError:
    return SparklogError("OPTION_VALUE", option="path", value=root, reason=reason)
