"""An archive of the classes that a program of Java loads for its first use: with it, a session starts in 40 % less processor time.

There is one only where the user had it made (`sparklog class-archive`). Its name has a key of all its inputs, so an archive that does not
fit is not found. Its name also has its size, since a JVM crashes on an archive that lost its end. Here are the rules of all archives, and
the archive of Spark.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from sparklog.errors import SparklogError
from sparklog.spark import cache, java
from sparklog.spark.installed import require_pyspark

SETTING = "spark.driver.defaultJavaOptions"
"""Spark puts the options of this setting before the options of spark.driver.extraJavaOptions, which belong to the user."""
_SPARK = "spark"
_SWITCH = "SPARKLOG_CLASS_ARCHIVE"
_SET_ELSEWHERE = ("PYSPARK_SUBMIT_ARGS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_OF_ARCHIVES = re.compile("-XX:SharedArchiveFile|-XX:ArchiveClassesAtExit|-Xshare:")
# The JVM reads a colon as the end of a path, and Spark's launcher the other two as quotes.
_UNUSABLE = re.compile("[:\"'\\\\]")
_KEPT = 3
_LINES = 8
_PATIENCE_S = 600


def find(jar: Path) -> Path | None:
    """The archive that fits this Java, PySpark and connector, if it is there, is whole, and only this user can write to it."""
    return kept(_SPARK, lambda: _key(jar))


def kept(name: str, key: Callable[[], str]) -> Path | None:
    """The archive of this name and key, if it is there, is whole, and only this user can write to it."""
    try:
        return next((each for each in _archives(cache.folder(), name, key()) if _is_safe(each)), None)
    except OSError:
        return None


def is_off(given: Iterable[str]) -> bool:
    """Whether the user wants no archive, or names one in these options of a JVM, or in the environment."""
    return os.environ.get(_SWITCH) == "off" or any(
        map(_OF_ARCHIVES.search, [*given, *(os.environ.get(name, "") for name in _SET_ELSEWHERE)])
    )


def java_options(jar: Path, given: Iterable[str]) -> str | None:
    """The options with which the JVM of a session uses its archive; None without an archive, and if options already name an archive."""
    archive = None if is_off(given) else find(jar)
    return None if archive is None else " ".join(f'"{each}"' if str(archive) in each else each for each in options(archive))


def options(archive: Path) -> list[str]:
    """The options with which a JVM uses an archive."""
    # The JVM would warn on standard output of an archive that it does not use.
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds*=off"]


def make(jar: Path) -> Path:
    """Uses Spark once, and keeps the classes that it loaded in an archive, in place of an earlier one. It takes about a minute.

    CallError if PySpark is not installed, if the archive cannot be written, if that use of Spark fails, or if the JVM makes no archives.
    """
    require_pyspark()
    return keep(_SPARK, _key(jar), _use_spark)


def keep(name: str, key: str, use: Callable[[Path, Path], str]) -> Path:
    """Makes an archive, and keeps it in place of an earlier one.

    `use` gets an empty folder and the file of the archive. It runs a program of Java that writes the file, and returns the end of the
    output of that program. CallError if the archive cannot be written, or was not made.
    """
    folder = cache.folder()
    if not folder.is_absolute() or _UNUSABLE.search(str(folder)):
        raise SparklogError(
            "CLASS_ARCHIVE_FOLDER", folder=folder, reason="its path is not absolute, or has a colon, a quote or a backslash"
        )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not cache.is_ours(folder.stat()):
            raise SparklogError("CLASS_ARCHIVE_FOLDER", folder=folder, reason="others can write to it")
        with tempfile.TemporaryDirectory(prefix="making-", dir=folder) as scratch:
            made = Path(scratch, f"{name}.jsa")
            said = use(Path(scratch), made)
            if not made.is_file():
                raise SparklogError("CLASS_ARCHIVE_JVM", output=said)
            made.chmod(0o600)
            with made.open("rb") as written:
                os.fsync(written.fileno())
            archive = folder / f"{name}-{key}-{made.stat().st_size}.jsa"
            made.replace(archive)
            _tidy(archive)
    except OSError as error:
        raise SparklogError("CLASS_ARCHIVE_FOLDER", folder=folder, reason=error.strerror or error) from error
    return archive


def delete(jar: Path) -> list[Path]:
    """Deletes the archive that fits, and returns it in a list, which is empty without one."""
    require_pyspark()
    return drop(_SPARK, _key(jar))


def drop(name: str, key: str) -> list[Path]:
    """Deletes the archives of this name and key, and returns them."""
    archives = _archives(cache.folder(), name, key)
    for each in archives:
        each.unlink(missing_ok=True)
    return archives


def _archives(folder: Path, name: str, key: str = "*") -> list[Path]:
    """Archives in the folder, the newest first."""
    return sorted(folder.glob(f"{name}-{key}-*.jsa"), key=lambda each: each.lstat().st_mtime_ns, reverse=True)


def _tidy(made: Path) -> None:
    """Deletes earlier archives of the same key, and all but the newest of others. A JVM that has one mapped keeps it."""
    same, _, _ = made.stem.rpartition("-")
    others = [each for each in _archives(made.parent, same.partition("-")[0]) if each != made]
    earlier = [each for each in others if each.stem.startswith(f"{same}-")]
    for each in earlier + [each for each in others if each not in earlier][_KEPT - 1 :]:
        each.unlink(missing_ok=True)


def _is_safe(archive: Path) -> bool:
    found = archive.lstat()
    whole = archive.stem.rpartition("-")[2] == str(found.st_size)
    return (
        whole
        and stat.S_ISREG(found.st_mode)
        and cache.is_ours(found)
        and cache.is_ours(archive.parent.stat())
        and not _UNUSABLE.search(str(archive))
    )


def _key(jar: Path) -> str:
    """A digest of all that an archive depends on. The JVM uses an archive only with the Java and the class path of its making.

    Each version of sparklog has a connector of its own.
    """
    import pyspark

    jars = sorted((Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars").iterdir())
    return digest([*jars, jar], pyspark.__version__)


def digest(jars: Iterable[Path], *more: str) -> str:
    """A digest of this Java, of the jars of a class path, and of more."""
    parts = "\n".join([*_java(), *more, *map(_as_it_is, jars)])
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def _java() -> Iterator[str]:
    program = java.program()
    found = Path(shutil.which(program) or program).resolve()
    release = found.parent.parent / "release"
    yield _as_it_is(found)
    yield release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""


def _as_it_is(file: Path) -> str:
    found = file.stat()
    return f"{file} {found.st_size} {found.st_mtime_ns}"


def _use_spark(scratch: Path, archive: Path) -> str:
    """Uses Spark once, and returns the end of its output. That comes with the end of the JVM, which outlives Python to write the file."""
    elsewhere = ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "SPARK_LOCAL_REMOTE")
    # Sessions of this process, or of a Spark that runs elsewhere, have no part in it.
    environment = {name: value for name, value in os.environ.items() if name not in elsewhere} | {_SWITCH: "off"}
    process = subprocess.Popen(
        [sys.executable, "-m", "sparklog.spark.first_use", str(scratch), f'"-XX:ArchiveClassesAtExit={archive}"'],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=_PATIENCE_S)
    except BaseException as ended:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        printed, _ = process.communicate()
        if not isinstance(ended, subprocess.TimeoutExpired):
            raise
        printed += f"It did not end within {_PATIENCE_S} seconds."
    # An error is one line in a shell.
    said = " | ".join([line.strip() for line in printed.splitlines() if line.strip()][-_LINES:]).rstrip(".")
    if process.returncode:
        raise SparklogError("CLASS_ARCHIVE_USE", output=said)
    return said
