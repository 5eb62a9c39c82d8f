"""The command that starts a server: its Java, its class path and its arguments."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from sparklog.errors import SparklogError
from sparklog.spark import archive, java
from sparklog.spark.session import jar

_MAIN = "io.sparklog.serve.Serve"
_IN_STORES = re.compile("(hdfs|viewfs|s3a):", re.IGNORECASE)
"""Roots that a server opens by Hadoop. A server of a root on a disk has no jar of Hadoop: the JVM starts faster."""
_HEAP = "-Xmx512m"

_ARCHIVE = "serve"
"""The name of the archive of classes."""


def command(root: str, arguments: Iterable[str], options: Iterable[str] | None = None) -> list[str]:
    """The command that serves a root, for `subprocess` or `exec`.

    Args:
        root: The path or URL of the root.
        arguments: Arguments of the server, such as `--listen` and an address.
        options: Options of the JVM that make an archive of classes. By default it uses the archive that `sparklog class-archive --serve`
            made, if it fits.

    Returns:
        The program and its arguments. JAVA_TOOL_OPTIONS can give the JVM more options, such as `-Xmx2g`. For roots in HDFS and S3,
        HADOOP_CONF_DIR names the folder of core-site.xml, and HADOOP_CLASSPATH more jars.

    Raises:
        CallError: SERVE_EXTRA if a package of the extra `serve` is not installed; SERVE_STORES_EXTRA if the root is in HDFS or S3, and
            the package of the extra `serve-stores` is not; JAR_MISSING; JAVA_NEEDED; OPTION_VALUE if the name of the root is not UTF-8.
    """
    try:
        os.fsencode(root).decode()
    except UnicodeDecodeError:
        shown = os.fsencode(root).decode(errors="backslashreplace")
        raise SparklogError("OPTION_VALUE", option="root", value=shown, reason="Java opens no name that is not UTF-8: rename it") from None
    jars = _jars()
    if options is None:
        found = None if archive.is_off([]) else archive.kept(_ARCHIVE, lambda: archive.digest(jars))
        options = [] if found is None else archive.options(found)
    # An archive fits a class path that begins with its own, so one archive serves roots in all stores.
    path = [*map(str, jars), *(_for_stores(root) if _IN_STORES.match(root) else [])]
    return [java.program(), _HEAP, *options, "-cp", os.pathsep.join(path), _MAIN, root, *arguments]


def environment() -> dict[str, str]:
    """The environment of a server. A JVM reads names of files in the encoding of its locale, and loses all other characters."""
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    return {**os.environ} if "utf" in locale.lower() else {**os.environ, "LC_ALL": "C.UTF-8"}


def keep_archive(use: Callable[[Path, Path], str]) -> Path:
    """Keeps an archive of the classes of a server that `use` runs, as `archive.keep` says. CallError as of `command`."""
    return archive.keep(_ARCHIVE, archive.digest(_jars()), use)


def drop_archive() -> list[Path]:
    """Deletes the archive that fits, and returns it in a list, which is empty without one. CallError as of `command`."""
    return archive.drop(_ARCHIVE, archive.digest(_jars()))


def _jars() -> list[Path]:
    """The class path of a server, all of it from the two wheels: a Spark that is installed too changes nothing."""
    require("sparklog_serve")
    from sparklog_serve import JARS

    if problem := java.problem():
        raise SparklogError("JAVA_NEEDED", program="A server for Kafka's clients", problem=problem)
    return [*sorted(JARS.glob("*.jar")), Path(jar())]


def require(module: str) -> None:
    """CallError SERVE_EXTRA if a package of the extra `serve` is not installed."""
    if importlib.util.find_spec(module) is None:
        raise SparklogError("SERVE_EXTRA", module=module)


def _for_stores(root: str) -> list[str]:
    """More of the class path. Variables of Hadoop's own commands name the folder of the settings of stores, and more jars."""
    from sparklog_serve import STORES

    jars = sorted(map(str, STORES.glob("*.jar")))
    if not jars:
        raise SparklogError("SERVE_STORES_EXTRA", root=root)
    given = (os.environ.get("HADOOP_CONF_DIR", ""), *os.environ.get("HADOOP_CLASSPATH", "").split(os.pathsep))
    return [*jars, *filter(None, given)]
