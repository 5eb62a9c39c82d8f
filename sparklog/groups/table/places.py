"""Where a Delta table of ours may be, and how it may be named: offsets, and output that has its offsets with it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from sparklog import arguments, shown
from sparklog.errors import SparklogError
from sparklog.ondisk.root import Root
from sparklog.store.stores import local

_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://([^/]*)(.*)", re.DOTALL)
_HOST_OF_S3 = re.compile(r"(?:(.+)\.)?s3[.-](?:.+\.)?amazonaws\.com(?:\.cn)?(?::[0-9]+)?")
"""The address of a bucket at AWS. Without a name before it, the bucket is the first part of the path."""
_ODD = re.compile(r"%[0-9a-fA-F]{2}|[\\\[\]^|\x00-\x1f\x7f]")
"""In a path, what deltalake finds again at another place, or not at all."""
_ODD_IN_URL = re.compile(rf"{_ODD.pattern}|[?#]|(?<=/)\.{{0,2}}(?=/)|(?<=/)\.{{1,2}}$")


def delta_table(path: str | os.PathLike[str], root: Root | None, use: str) -> str:
    """The path of a Delta table for a use, `offsets` or `output`, as `named` gives it. CallError as `named` and `require_apart`."""
    found = named(path)
    require_apart(found, root, use)
    return found


def named(path: str | os.PathLike[str]) -> str:
    """The path of a table as deltalake takes it: an absolute path, like the path of a root, or an unchanged URL.

    CallError OPTION_VALUE if it is empty, which would be the working directory, has what deltalake reads as something else, or has
    credentials.
    """
    text = arguments.path("path", path)
    if not text:
        raise _refused(text, "it is empty; give the folder of the table, or its URL")
    url = _url(text)
    if url is None:
        text = local(text)
    elif shown.name(text) != text:
        raise _refused(text, "a URL of a table has neither credentials nor settings; give them as `storage_options`, or in the environment")
    if odd := (_ODD if url is None else _ODD_IN_URL).search(text if url is None else url.path):
        what = f"deltalake takes {odd[0] or '//'!r} in a path for something else"
        raise _refused(
            text, f"{what}; give a path without %41 and the like, \\, [, ], ^, |, or controls, and a URL without ?, #, .. and //"
        )
    return text


def require_apart(table: str, root: Root | None, use: str) -> None:
    """CallError TABLE_IN_ROOT if a table is in a root, this one or another, or this root in the table; links on the way count too.

    A table at a URL is compared with a root at a URL by their names alone: nothing is asked there. RetryError IO if a folder above a table
    on a disk cannot be seen.
    """
    if (url := _url(table)) is not None:
        place, ours = url.place(), None if root is None else _url(str(root))
        if root is not None and ours is not None and (place.startswith(ours.place()) or ours.place().startswith(place)):
            raise SparklogError("TABLE_IN_ROOT", table=table, root=root, example=f"{root}-{use}")
        return
    path = local(table)
    real = os.path.realpath(path)
    found = Root.holding(path) or Root.holding(real)
    if found is None and root is not None and root.store.has_links:
        ours_real = os.path.realpath(str(root))
        found = root if real in (ours_real, *map(str, Path(ours_real).parents)) else None
    if found is not None:
        raise SparklogError("TABLE_IN_ROOT", table=table, root=found, example=f"{os.path.realpath(str(found)).rstrip('/')}-{use}")


class _Url(NamedTuple):
    scheme: str
    host: str
    path: str

    def place(self) -> str:
        """A text that is the same for the same place.

        It ends with a slash: so the text of a folder begins the texts of all places in it.
        """
        scheme, path = self.scheme.lower(), self.path.rstrip("/")
        if scheme in ("https", "http") and (found := _HOST_OF_S3.fullmatch(self.host.lower())):
            return f"s3a://{found[1]}{path}/" if found[1] else f"s3a:/{path}/"
        scheme = "s3a" if scheme in ("s3", "s3n") else scheme
        host = self.host.partition(":")[0] if scheme == "hdfs" else self.host  # the port of a NameNode may be left out
        return f"{scheme}://{host}{path}/"


def _url(path: str) -> _Url | None:
    """The parts of a URL; None if it is a path, or `file:` and a path."""
    found = _URL.fullmatch(path)
    return None if found is None or found[1].lower() == "file" else _Url(*found.groups())


def _refused(path: str, reason: str) -> SparklogError:
    # Not as repr shows it: a name must be distinct from the text around it, so that its secrets can be hidden.
    return SparklogError("OPTION_VALUE", option="path", value=path if path.isprintable() and path else repr(path), reason=reason)
