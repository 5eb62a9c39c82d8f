"""The command that starts a server: its Java, its class path and its arguments."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from sparklog.errors import SparklogError
from sparklog.spark import archive, java
from sparklog.spark.installed import require_pyspark
from sparklog.spark.session import jar

_MAIN = "io.sparklog.serve.Serve"
_OF_SPARK = (
    "commons-lang3-",
    "hadoop-client-",
    "jackson-annotations-",
    "jackson-core-",
    "jackson-databind-",
    "jcl-over-slf4j-",
    "log4j-",
    "lz4-java-",
    "netty-",
    "slf4j-api-",
    "snappy-java-",
    "zstd-jni-",
)
"""The jars of PySpark that a server needs too. A class path of all jars would take a second longer to start."""
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
        The program and its arguments. JAVA_TOOL_OPTIONS can give the JVM more options, such as `-Xmx2g`. HADOOP_CONF_DIR names the folder
        of core-site.xml for roots in HDFS and S3, and HADOOP_CLASSPATH more jars.

    Raises:
        CallError: SERVE_EXTRA if a package of the extra `serve` is not installed; CONNECTOR_MISSING; JAVA_NEEDED; OPTION_VALUE if the
            name of the root is not UTF-8.
    """
    try:
        os.fsencode(root).decode()
    except UnicodeDecodeError:
        shown = os.fsencode(root).decode(errors="backslashreplace")
        raise SparklogError("OPTION_VALUE", option="root", value=shown, reason="Java opens no name that is not UTF-8: rename it") from None
    jars = _jars()
    making = bool(options)
    if options is None:
        found = None if archive.is_off([]) else archive.kept(_ARCHIVE, lambda: archive.digest(jars))
        options = [] if found is None else archive.options(found)
    # A JVM makes no archive of the classes of folders, and Hadoop's settings are in one.
    path = os.pathsep.join([*map(str, jars), *([] if making else _of_hadoop())])
    return [java.program(), _HEAP, *options, "-cp", path, _MAIN, root, *arguments]


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
    """The class path of a server."""
    require("sparklog_serve")
    require_pyspark()
    from sparklog_serve import JARS

    if problem := java.problem():
        raise SparklogError("JAVA_NEEDED", program="A server for Kafka's clients", problem=problem)
    return [*sorted(Path(JARS).glob("*.jar")), Path(jar()), *_of_spark()]


def require(module: str) -> None:
    """CallError SERVE_EXTRA if a package of the extra `serve` is not installed."""
    if importlib.util.find_spec(module) is None:
        raise SparklogError("SERVE_EXTRA", module=module)


def _of_hadoop() -> list[str]:
    """More of the class path, by the variables of Hadoop's own commands: the folder of the settings of stores, and jars."""
    given = (os.environ.get("HADOOP_CONF_DIR", ""), *os.environ.get("HADOOP_CLASSPATH", "").split(os.pathsep))
    return [each for each in given if each]


def _of_spark() -> list[Path]:
    spec = importlib.util.find_spec("pyspark")
    package = Path(os.environ.get("SPARK_HOME") or (spec.submodule_search_locations or [""])[0] if spec else "")
    return sorted(each for each in (package / "jars").glob("*.jar") if each.name.startswith(_OF_SPARK))
