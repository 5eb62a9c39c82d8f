"""What names a root, and what stands there instead of one. FORMAT.md section 1."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sparklog.errors import SparklogError
from sparklog.ondisk.names import COMMITS, is_topic

# Files by which a Kafka broker's directory is known.
_BROKERS = (
    "meta.properties",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


def local(root: str) -> str:
    """The absolute path that `root` names: a path, or `file:` and a path, taken as it stands, as the Java half takes it. `..` is resolved
    by text, as Spark does it, and not by where a link leads.

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
            raise _bad(root, "after file: there must be an absolute path")
    if path == "~" or path.startswith("~/"):
        raise _bad(root, f"only a shell makes a home directory of ~; write {Path(path).expanduser()}")
    if "\0" in path:
        raise _bad(root, f"Nul character not allowed: {path}")
    # POSIX leaves two slashes at the beginning to the system; here they are one, as in Java.
    return re.sub("^//", "/", os.path.normpath(Path(path).absolute()))


def require(root: str) -> None:
    """Sees that there is a root at a path.

    CallError ROOT_NOT_A_DIRECTORY, ROOT_NOT_FOUND; for a directory that is there and is not a root, ROOT_WITHOUT_LOG,
    PARTITION_DIRECTORY, BROKER_DIRECTORY.
    """
    here = Path(root)
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
    raise SparklogError("ROOT_WITHOUT_LOG", root=here)


def _bad(root: str, reason: str) -> SparklogError:
    return SparklogError("OPTION_VALUE", option="path", value=root, reason=reason)
