"""The store of a root by its name. `io.sparklog.storage.Stores` understands the same names in the same way. FORMAT.md section 1."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sparklog.errors import SparklogError
from sparklog.store.local import LocalStore
from sparklog.store.store import Store


def open_store(root: str) -> Store:
    """The store of a root, which need not be there. CallError as `local`."""
    return LocalStore(local(root))


def local(root: str) -> str:
    """The absolute path of a root, which is given as a path or as `file:` and a path.

    The path is used literally: nothing in it is decoded or expanded. `..` is resolved in the text, not by following links. The connector
    finds the same root by the same name.

    CallError ROOT_REQUIRED, STORE_UNSUPPORTED, OPTION_VALUE.
    """
    if not root.strip():
        raise SparklogError("ROOT_REQUIRED")
    path = root
    if uri := re.fullmatch("([a-zA-Z][a-zA-Z0-9+.-]*):(?://([^/]*))?(.*)", root, re.DOTALL):
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
    # POSIX lets the system decide what two slashes at the beginning mean. Here they are one slash, as in Java.
    return re.sub("^//", "/", os.path.normpath(Path(path).absolute()))


def _invalid_path(root: str, reason: str) -> SparklogError:
    return SparklogError("OPTION_VALUE", option="path", value=root, reason=reason)
