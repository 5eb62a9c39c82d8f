"""The command that starts a server: its Java, its class path and its arguments."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

from sparklog.errors import SparklogError
from sparklog.spark import java
from sparklog.spark.installed import require_pyspark
from sparklog.spark.session import jar

_MAIN = "io.sparklog.door.Serve"
_OF_SPARK = (
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


def command(root: str, arguments: Iterable[str]) -> list[str]:
    """The command that serves a root, for `subprocess` or `exec`.

    Args:
        root: The path or URL of the root.
        arguments: Arguments of the server, such as `--listen` and an address.

    Returns:
        The program and its arguments. JAVA_TOOL_OPTIONS can give the JVM more options, such as `-Xmx2g`.

    Raises:
        CallError: SERVE_EXTRA if a package of the extra `serve` is not installed; CONNECTOR_MISSING.
        UpgradeError: JAVA_NEEDED.
    """
    require("sparklog_serve")
    require_pyspark()
    from sparklog_serve import JARS

    if problem := java.problem():
        raise SparklogError("JAVA_NEEDED", problem=problem)
    jars = [*sorted(Path(JARS).glob("*.jar")), Path(jar()), *_of_spark()]
    path = os.pathsep.join(map(str, jars))
    return [java.program(), _HEAP, "-cp", path, _MAIN, root, *arguments]


def require(module: str) -> None:
    """CallError SERVE_EXTRA if a package of the extra `serve` is not installed."""
    if importlib.util.find_spec(module) is None:
        raise SparklogError("SERVE_EXTRA", module=module)


def _of_spark() -> list[Path]:
    spec = importlib.util.find_spec("pyspark")
    package = Path(os.environ.get("SPARK_HOME") or (spec.submodule_search_locations or [""])[0] if spec else "")
    return sorted(each for each in (package / "jars").glob("*.jar") if each.name.startswith(_OF_SPARK))
