"""A Spark session that has the connector."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sparklog.errors import SparklogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BUILT_FOR = "4.2"
_JAR = Path(__file__).parent / "jars" / "sparklog.jar"
_NOWHERE = "/partlog/asks/whether/the/connector/is/here"
_JAVA = 17
# spark-submit sets the first for the Python that it runs; the shell `pyspark` sets the second.
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
_LAUNCHER = {_SUBMITTED, "OLD_PYTHONSTARTUP"}

# Settings that a session gets besides the jar, unless the user has set them.
SETTINGS = {
    "spark.sql.catalog.partlog": "io.sparklog.catalog.PartlogCatalog",
    # SPARK-58241: Spark 4.2.0 waits forever for a plain Python UDF over columnar input, be it of a log or of a Parquet file. The JVM
    # still sends the schema of the input where the worker expects the number of UDFs. This setting makes nothing slower: only
    # sources with columns of Arrow's own gain from columnar input, and neither this source nor Spark's have such columns.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
}

# The value that this module gave PYSPARK_PYTHON in this process.
_chosen_python: str | None = None


def session(*, app_name: str | None = None, **conf: object) -> SparkSession:
    """The running Spark session if there is one, otherwise a new one; either has the connector.

    `conf` holds settings of Spark by their full names: `session(**{"spark.sql.shuffle.partitions": 8})`. Like
    `SparkSession.builder`, it applies settings that can change at run time to a running session. Without `spark.master`, a
    new session runs on all cores of this machine. CallError if Spark was started without the connector; UpgradeError if
    Java is missing or too old, or PySpark has the wrong version.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    if app_name is not None:
        builder.appName(app_name)
    for name, value in conf.items():
        if not name.startswith("spark."):
            raise SparklogError("SESSION_SETTING", name=name)
        builder.config(name, cast(str, value))
    earlier = _running_session()
    try:
        with warnings.catch_warnings():
            # With a Connect server in this process, Spark sets static settings a second time, and warns that it cannot.
            warnings.filterwarnings("ignore", r"Failed to set spark\.(jars|pyspark\.python) ", UserWarning)
            spark = configure(builder).getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() == "JAVA_GATEWAY_EXITED" and (problem := _problem_of_java()):
            raise SparklogError("JAVA_NEEDED", problem=problem) from None
        raise
    try:
        _require_connector(spark)
    except BaseException:
        if spark is not earlier:
            spark.stop()
        raise
    return spark


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """The builder, set up so that its session has the connector. Calling it again is harmless.

    It adds `SETTINGS` that the user has not set, and adds the jar to the jars that are set in the builder, in
    PYSPARK_SUBMIT_ARGS or in spark-defaults.conf. Python workers run this interpreter unless `spark.pyspark.python` or
    PYSPARK_PYTHON names another. Where PySpark reads only PYSPARK_SUBMIT_ARGS or PYSPARK_PYTHON, it changes that variable
    for this process. If something else starts Spark (spark-submit, a Connect server), that provides jars and Python.
    CallError if a session without the connector is running; UpgradeError if PySpark has the wrong version.
    """
    _require_spark_version()
    options = _options_of(builder)
    running = _running_session()
    for name, value in SETTINGS.items():
        if name not in options and not _is_set(name, running, options):
            builder.config(name, value)
    if running is not None:
        _require_connector(running)
    elif not _is_started_elsewhere(options):
        _add_jar(builder, options)
        _choose_python(builder, options)
    return builder


def jar() -> str:
    """The path of the connector's jar, for `--jars` and `spark.jars` of a Spark that something else starts.

    `python -m sparklog jar` prints it. CallError if the jar does not exist: a wheel contains it, and in a checkout
    `make jar` builds it.
    """
    if not _JAR.is_file():
        raise SparklogError("JAR_MISSING", jar=_JAR)
    return str(_JAR)


def _options_of(builder: SparkSession.Builder) -> Mapping[str, object]:
    options = getattr(builder, "_options", None)
    if not isinstance(options, dict):
        raise TypeError(f"configure() takes a SparkSession.builder, not {type(builder).__name__}")
    return options


def _require_spark_version() -> None:
    import pyspark

    if not pyspark.__version__.startswith(f"{_BUILT_FOR}."):
        raise SparklogError("SPARK_VERSION", found=pyspark.__version__, expected=_BUILT_FOR)


def _running_session() -> SparkSession | None:
    """The session that getOrCreate() would return, of any thread; None if its context was stopped."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        session = SparkSession.active()
    except PySparkRuntimeError:
        return None
    context = getattr(session, "_sc", None)  # a session of Connect has none
    return None if context is not None and context._jsc is None else session


def _require_connector(spark: SparkSession) -> None:
    """CallError if the session does not have the connector. Probes with a read, which works in classic and Connect sessions."""
    from pyspark.errors import PySparkException

    try:
        _ = spark.read.format("partlog").load(_NOWHERE).schema
        return
    except Exception as error:
        # Classic PySpark raises DATA_SOURCE_NOT_FOUND as a bare Py4JJavaError, which has no condition.
        condition = error.getCondition() if isinstance(error, PySparkException) else "DATA_SOURCE_NOT_FOUND"
        if condition is not None and condition.startswith("PARTLOG_"):
            return
        if condition != "DATA_SOURCE_NOT_FOUND":
            raise
    # Raised outside of the `except`, so that it does not carry Spark's error with its 200 lines of stack trace.
    connect = type(spark).__module__.startswith("pyspark.sql.connect.") and "SPARK_LOCAL_REMOTE" not in os.environ
    if connect or _LAUNCHER & os.environ.keys():
        raise SparklogError("CONNECTOR_NOT_GIVEN", jar=_JAR)
    raise SparklogError("CONNECTOR_MISSING", jar=_JAR)


def _is_started_elsewhere(options: Mapping[str, object]) -> bool:
    return _is_remote(options) or _SUBMITTED in os.environ


def _is_remote(options: Mapping[str, object]) -> bool:
    return str(options.get("spark.remote") or os.environ.get("SPARK_REMOTE", "")).startswith("sc://")


def _is_set(name: str, running: SparkSession | None, options: Mapping[str, object]) -> bool:
    """Whether the user made a setting outside the builder."""
    from pyspark import SparkConf, SparkContext

    if running is not None:
        return running.conf.get(name, None) is not None
    if _is_remote(options):
        return False  # the server answers only after there is a session
    if _SUBMITTED in os.environ:
        SparkContext._ensure_initialized()  # so that the next line sees what spark-submit was given
        return SparkConf().contains(name)
    arguments = _SubmitArguments(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    return name in arguments.settings() or name in _spark_defaults(arguments)


def _problem_of_java() -> str | None:
    """Why Spark cannot start with the Java that it would use, in words; None if that Java is new enough."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return f"JAVA_HOME is {home}, but {java} cannot be run" if home else "there is none on the PATH, and JAVA_HOME is not set"
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is not None and int(version[1]) >= _JAVA:
        return None
    return f"{shutil.which(java) or java} is of version {version[1] if version else 'unknown'}"


def _add_jar(builder: SparkSession.Builder, options: Mapping[str, object]) -> None:
    arguments = _SubmitArguments(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    inherited = arguments.jars() or _spark_defaults(arguments).get("spark.jars", "")
    jars = _merged(str(options.get("spark.jars") or inherited), arguments.jars(), jar())
    builder.config("spark.jars", jars)
    if arguments.jars():
        # PySpark puts these arguments after the builder's settings, and the last one wins.
        os.environ["PYSPARK_SUBMIT_ARGS"] = arguments.with_jars(jars)


def _choose_python(builder: SparkSession.Builder, options: Mapping[str, object]) -> None:
    key = "spark.pyspark.python"
    arguments = _SubmitArguments(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    named = options.get(key) or arguments.settings().get(key) or _spark_defaults(arguments).get(key)
    global _chosen_python
    if os.environ.get("PYSPARK_PYTHON") == _chosen_python:
        # This module set it for an earlier session, which must not decide about this one.
        os.environ.pop("PYSPARK_PYTHON", None)
    if named is None and "PYSPARK_PYTHON" not in os.environ:
        named = sys.executable
        builder.config(key, named)
    if named and "PYSPARK_PYTHON" not in os.environ:
        # Only spark-submit reads the setting; a session that Python starts uses the variable.
        os.environ["PYSPARK_PYTHON"] = _chosen_python = str(named)


def _merged(*lists: str) -> str:
    """Comma-separated lists of jars as one, each jar once."""
    jars: dict[str, str] = {}
    for jar in ",".join(lists).split(","):
        if jar := jar.strip():
            jars.setdefault(os.path.realpath(re.sub("^file:(//)?", "", jar)), jar)
    return ",".join(jars.values())


class _SubmitArguments:
    """The jars and settings in PYSPARK_SUBMIT_ARGS."""

    def __init__(self, line: str) -> None:
        self._words: list[str] = []
        for word in shlex.split(line):
            joined = re.fullmatch("(--(?:jars|conf|properties-file))=(.*)", word, re.DOTALL)
            self._words += joined.groups() if joined else [word]

    def jars(self) -> str:
        """The jars, comma-separated; --jars takes precedence over --conf."""
        return self._last("--jars") or self.settings().get("spark.jars", "")

    def settings(self) -> dict[str, str]:
        """The settings given with --conf."""
        pairs = (value.partition("=") for name, value in self._pairs() if name in ("--conf", "-c"))
        return {key.strip(): value.strip() for key, _, value in pairs}

    def properties_file(self) -> str | None:
        """The file given with --properties-file."""
        return self._last("--properties-file")

    def with_jars(self, jars: str) -> str:
        """The line with these jars in place of its own."""
        return shlex.join(["--jars", jars, *_without_jars(self._words)])

    def _pairs(self) -> Iterable[tuple[str, str]]:
        return zip(self._words, self._words[1:], strict=False)

    def _last(self, wanted: str) -> str | None:
        return next((value for name, value in reversed(list(self._pairs())) if name == wanted), None)


def _without_jars(words: list[str]) -> list[str]:
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        value = next(rest, "") if word in ("--jars", "--conf", "-c") else None
        if value is None:
            kept.append(word)
        elif word != "--jars" and value.partition("=")[0].strip() != "spark.jars":
            kept += [word, value]
    return kept


def _spark_defaults(arguments: _SubmitArguments) -> dict[str, str]:
    """The settings in spark-defaults.conf: lines of a name and a value, separated by blanks, `=` or `:`."""
    import pyspark

    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    directory = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf")
    file = Path(arguments.properties_file() or directory / "spark-defaults.conf")
    if not file.is_file():
        return {}
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    settings = (re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!")
    return {setting[0]: setting[1] for setting in settings if len(setting) == 2}
