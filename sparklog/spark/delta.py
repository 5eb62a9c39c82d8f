"""Delta in a Spark session: its jars, and the settings that it needs."""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Iterable
from pathlib import Path

from sparklog.errors import SparklogError

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
EXTENSIONS = "spark.sql.extensions"
CATALOG = ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
NOT_NEEDED = "com.*:*,commons-*:*,io.airlift:*,javax.*:*,org.*:*"
"""Packages that Delta depends on and Spark has: patterns of packages that need not be downloaded, for spark.jars.excludes."""
_JAR = re.compile(r"delta-spark_[\d.]+_[\d.]+-([^/,]+?)\.jar")
_PACKAGE = re.compile(r"io\.delta:delta-spark_[\d.]+_[\d.]+:([^,]+)")


def package(spark: str, given: Iterable[str]) -> str:
    """The name of Delta's package at Maven Central, of the version of the installed wheel; empty if it is among the given lists.

    `spark` is the minor version of Spark; the lists have jars and packages. CallError if the wheel is not installed; UpgradeError if Delta
    is given in another version.
    """
    version = _wheel()
    found = next((match for text in given for match in (_JAR.search(text), _PACKAGE.search(text)) if match), None)
    if found is not None:
        _require_same(found[0], found[1])
        return ""
    if version is None:
        raise SparklogError("DELTA_EXTRA", module="delta-spark")
    return f"io.delta:delta-spark_{spark}_2.13:{version}"


def package_in(packages: str) -> str | None:
    """Delta's package in a list of packages."""
    found = _PACKAGE.search(packages)
    return found[0] if found else None


def jars_in(folder: str | os.PathLike[str]) -> str:
    """All jars of a folder, with commas. CallError if Delta's is not there; UpgradeError if it is not of the wheel's version."""
    jars = sorted(str(jar.absolute()) for jar in Path(folder).glob("*.jar"))
    ours = next((match for jar in jars if (match := _JAR.search(jar))), None)
    if ours is None:
        raise SparklogError("DELTA_JARS", folder=os.fspath(folder))
    _require_same(ours[0], ours[1])
    return ",".join(jars)


def with_extension(extensions: str) -> str:
    """The list of extensions, with Delta's extension."""
    given = [each.strip() for each in extensions.split(",") if each.strip()]
    return ",".join([*given, *([] if EXTENSION in given else [EXTENSION])])


def _wheel() -> str | None:
    try:
        return importlib.metadata.version("delta-spark")
    except importlib.metadata.PackageNotFoundError:
        return None


def _require_same(jar: str, version: str) -> None:
    if (wheel := _wheel()) not in (None, version):
        raise SparklogError("DELTA_VERSION", jar=jar, found=wheel)
