"""The names of roots, and directories that are not roots. FORMAT.md section 1."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sparklog.errors import SparklogError
from sparklog.ondisk.names import COMMITS, is_topic

# Each of these files shows that a directory belongs to a Kafka broker.
_BROKERS = (
    "meta.properties",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


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


def holding(path: str) -> str | None:
    """The root that this absolute path names, or that it is in; None if there is none."""
    return next((str(each) for each in (Path(path), *Path(path).parents) if os.path.lexists(each / COMMITS)), None)


def require(root: str) -> None:
    """Checks that the directory at a path is a root.

    CallError ROOT_NOT_A_DIRECTORY, ROOT_NOT_FOUND; for a directory that is not a root, ROOT_WITHOUT_LOG, PARTITION_DIRECTORY,
    LOG_DIRECTORY or BROKER_DIRECTORY. RetryError IO if it cannot be read.
    """
    here = Path(root)
    try:
        _require(here)
    except OSError as error:
        raise SparklogError("IO", file=here, cause=error) from None


def _require(here: Path) -> None:
    if not here.is_dir():
        raise SparklogError("ROOT_NOT_A_DIRECTORY" if here.exists() else "ROOT_NOT_FOUND", root=here)
    if os.path.lexists(here / COMMITS):
        return
    for file in _BROKERS:
        for folder, name in ((here, file), (here.parent, f"../{file}")):
            if os.path.lexists(folder / file):
                raise SparklogError("BROKER_DIRECTORY", root=here, file=name, limit="reading it is not supported yet")
    topic, _, partition = here.name.rpartition("-")
    if re.fullmatch("0|[1-9][0-9]{0,3}", partition) and is_topic(topic) and os.path.lexists(here.parent / COMMITS / topic):
        raise SparklogError("PARTITION_DIRECTORY", root=here, partition=partition, topic=topic, above=here.parent)
    if within := next((each for each in (here, *here.parents) if each.name == COMMITS), None):
        raise SparklogError("LOG_DIRECTORY", root=here, above=within.parent)
    raise SparklogError("ROOT_WITHOUT_LOG", root=here)


def _invalid_path(root: str, reason: str) -> SparklogError:
    return SparklogError("OPTION_VALUE", option="path", value=root, reason=reason)
