"""A Spark session that has the connector."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.spark import archive, java
from sparklog.spark import delta as deltas
from sparklog.spark.installed import require_pyspark
from sparklog.spark.launch import Launch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BUILT_FOR = "4.2"
_JAR = Path(__file__).parent.parent / "jars" / "sparklog.jar"
_NOWHERE = "/partlog/asks/whether/the/connector/is/here"
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

_STATIC = r"jars|jars\.packages|sql\.extensions|pyspark\.python|driver\.defaultJavaOptions"

# The value that this module gave PYSPARK_PYTHON in this process.
_chosen_python: str | None = None


def session(
    *, app_name: str | None = None, delta: bool | str | os.PathLike[str] = False, conf: Mapping[str, object] | None = None
) -> SparkSession:
    """Returns the running Spark session if there is one, otherwise a new one; either has the connector.

    Args:
        app_name: The name of the application of a new session.
        delta: Whether the session has Delta too; or the folder of Delta's jars, as in `configure`. Default False.
        conf: Settings of Spark by their full names, as in `session(conf={"spark.sql.shuffle.partitions": 8})`. A running session takes
            those that can change at run time, and a warning names the others. Without `spark.master`, a new session runs on all cores of
            this machine.

    Returns:
        The session.

    Raises:
        CallError: SPARK_EXTRA if PySpark is not installed; CONNECTOR_MISSING or CONNECTOR_NOT_GIVEN if Spark was started without the
            connector; JAVA_NEEDED if Java is missing or too old; SESSION_SETTING. With `delta` also DELTA_EXTRA if the wheel of delta-spark
            is not installed; DELTA_JARS if the folder does not have Delta's jar; DELTA_MISSING if Spark was started without Delta.
        UpgradeError: SPARK_VERSION if PySpark has another version; DELTA_VERSION if jar and wheel of Delta have different versions.

    Example:
        >>> spark = sparklog.session()
        >>> rows = spark.createDataFrame([("ann", "1")], "key STRING, value STRING")
        >>> rows.write.format("partlog").option("topic", "visits").mode("append").save("my-log")
        >>> spark.read.format("partlog").option("subscribe", "visits").load("my-log").count()
        1
    """
    require_pyspark()
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    settings = {} if conf is None else dict(arguments.mapping("conf", conf))
    builder = SparkSession.builder
    if app_name is not None:
        builder.appName(app_name)
    for name, value in settings.items():
        if not isinstance(name, str) or not name.startswith("spark."):
            raise SparklogError("SESSION_SETTING", name=name)
        builder.config(name, cast(str, value))
    earlier = running_session()
    try:
        with warnings.catch_warnings():
            # With a Connect server in this process, Spark sets static settings a second time, and warns that it cannot.
            warnings.filterwarnings("ignore", rf"Failed to set spark\.({_STATIC}) ", UserWarning)
            spark = configure(builder, delta=delta).getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() == "JAVA_GATEWAY_EXITED" and (problem := java.problem()):
            raise SparklogError("JAVA_NEEDED", program="Spark", problem=problem) from None
        if error.getCondition() == "JAVA_GATEWAY_EXITED" and (package := _delta_asked_for(builder)):
            raise SparklogError("DELTA_DOWNLOAD", package=package) from error
        raise
    try:
        _require_connector(spark)
        if delta:
            _require_delta(spark)
    except BaseException:
        if spark is not earlier:
            spark.stop()
        raise
    if earlier is not None and (late := [name for name, value in settings.items() if not _is_in_force(spark, name, value)]):
        names = ", ".join(sorted(late))
        warnings.warn(
            f"Spark is running already and does not take these settings any more: {names}. Give them to its first session.", stacklevel=2
        )
    return spark


def configure(builder: SparkSession.Builder, *, delta: bool | str | os.PathLike[str] = False) -> SparkSession.Builder:
    """Sets up a builder, so that its session has the connector. A second call changes nothing.

    It makes the settings of `python -m sparklog conf` that the user has not made. It adds the jar to the jars in the builder, in
    PYSPARK_SUBMIT_ARGS or in spark-defaults.conf. Python workers run this interpreter, unless `spark.pyspark.python` or PYSPARK_PYTHON
    names another. Where PySpark reads only PYSPARK_SUBMIT_ARGS or PYSPARK_PYTHON, it changes that variable for this process. The JVM uses
    the archive of classes that `sparklog class-archive` made, if it fits. If something else starts Spark (spark-submit, a Connect server),
    that provides jars and Python.

    Args:
        builder: The builder, such as `SparkSession.builder`.
        delta: Whether the session has Delta too. With True, Delta's jar may be given as Spark's other jars and packages are; if it is not,
            Spark gets it from Maven Central, in the version of the installed wheel of delta-spark. A path is a folder that has all jars of
            Delta: then nothing is downloaded. Default False.

    Returns:
        The builder.

    Raises:
        CallError: SPARK_EXTRA if PySpark is not installed; CONNECTOR_MISSING if a session without the connector is running; DELTA_EXTRA if
            the wheel of delta-spark is not installed; DELTA_JARS if the folder does not have Delta's jar; DELTA_MISSING if a session
            without Delta is running.
        UpgradeError: SPARK_VERSION if PySpark has another version; DELTA_VERSION if jar and wheel of Delta have different versions.

    Example:
        >>> from pyspark.sql import SparkSession
        >>> spark = sparklog.configure(SparkSession.builder.appName("orders")).getOrCreate()
    """
    _require_spark_version()
    options = _options_of(builder)
    running = running_session()
    for name, value in SETTINGS.items():
        if name not in options and not _is_set(name, running, options):
            builder.config(name, value)
    if running is not None:
        _require_connector(running)
        if delta:
            _require_delta(running)
        return builder
    if delta and not _is_remote(options):
        name = deltas.EXTENSIONS
        builder.config(name, deltas.with_extension(str(options.get(name) or _from_outside(name) or "")))
        if deltas.CATALOG[0] not in options and _from_outside(deltas.CATALOG[0]) is None:
            builder.config(*deltas.CATALOG)
    if not _is_started_elsewhere(options):
        _require_home()
        if delta:
            _add_delta(builder, options, delta)
        builder.config("spark.jars", Launch().add("spark.jars", options.get("spark.jars"), jar()))
        _choose_python(builder, options)
        _share_classes(builder, options)
    return builder


def jar() -> str:
    """Returns the path of the connector's jar, for `--jars` and `spark.jars` of a Spark that something else starts.

    `python -m sparklog jar` prints it.

    Returns:
        The absolute path.

    Raises:
        CallError: JAR_MISSING if the jar does not exist. A wheel contains it, and in a checkout `make jar` builds it.

    Example:
        >>> sparklog.jar().endswith("sparklog.jar")
        True
    """
    if not _JAR.is_file():
        raise SparklogError("JAR_MISSING", jar=_JAR)
    return str(_JAR)


def _options_of(builder: SparkSession.Builder) -> Mapping[str, object]:
    options = getattr(builder, "_options", None)
    if not isinstance(options, dict):
        raise TypeError(f"configure() takes a SparkSession.builder, not {type(builder).__name__}")
    return options


def _is_in_force(spark: SparkSession, name: str, value: object) -> bool:
    """Whether a running session has a setting as it was asked for, or takes it. A builder drops settings that a session does not take."""
    from pyspark.errors import PySparkException

    asked = str(value).lower() if isinstance(value, bool) else str(value)
    context = getattr(spark, "_sc", None)  # a session of Connect has no SparkContext, and refuses settings itself
    found = None if context is None else context.getConf().get(name)
    if context is None or found == asked:
        return True
    if found is not None and not name.startswith("spark.sql."):
        return False  # a session takes some of these, such as spark.master, and nothing comes of it
    try:
        spark.conf.set(name, asked)
    except PySparkException:
        return False
    return True


def _require_spark_version() -> None:
    require_pyspark()
    import pyspark

    if not pyspark.__version__.startswith(f"{_BUILT_FOR}."):
        raise SparklogError("SPARK_VERSION", found=pyspark.__version__, expected=_BUILT_FOR)


def _require_home() -> None:
    """CallError if SPARK_HOME leads PySpark to a place without Spark."""
    home = os.environ.get("SPARK_HOME")
    if home and not any(Path(home, "bin", name).is_file() for name in ("spark-submit", "spark-submit.cmd")):
        raise SparklogError("SPARK_HOME", home=home, version=_BUILT_FOR)


def running_session() -> SparkSession | None:
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
    """CallError if the session does not have the connector."""
    if _has_format(spark, "partlog"):
        return
    connect = type(spark).__module__.startswith("pyspark.sql.connect.") and "SPARK_LOCAL_REMOTE" not in os.environ
    if connect or _LAUNCHER & os.environ.keys():
        raise SparklogError("CONNECTOR_NOT_GIVEN", jar=_JAR)
    raise SparklogError("CONNECTOR_MISSING", jar=_JAR)


def _require_delta(spark: SparkSession) -> None:
    """CallError if the session does not have Delta: the jar, the extension and the catalog."""
    if deltas.EXTENSION not in str(spark.conf.get(deltas.EXTENSIONS, "")):
        problem = f"{deltas.EXTENSIONS} does not name {deltas.EXTENSION}"
    elif spark.conf.get(deltas.CATALOG[0], None) is None:
        problem = f"{deltas.CATALOG[0]} is not set"
    elif not _has_format(spark, "delta"):
        problem = "Delta's jar is missing"
    else:
        return
    raise SparklogError("DELTA_MISSING", problem=problem)


def _delta_asked_for(builder: SparkSession.Builder) -> str | None:
    """The package of Delta that Spark was to download, if any."""
    return deltas.package_in(str(_options_of(builder).get("spark.jars.packages", "")))


def _has_format(spark: SparkSession, format: str) -> bool:
    """Whether the session has a data source that it can use. Probes with a read, which works in classic and Connect sessions."""
    from pyspark.errors import PySparkException

    try:
        _ = spark.read.format(format).load(_NOWHERE).schema
    except Exception as error:
        # Classic PySpark raises DATA_SOURCE_NOT_FOUND as a bare Py4JJavaError, which has no condition.
        condition = error.getCondition() if isinstance(error, PySparkException) else "DATA_SOURCE_NOT_FOUND"
        if condition in ("DATA_SOURCE_NOT_FOUND", "PARTLOG_CONNECTOR_MISSING"):
            return False
        if condition is None or not condition.startswith(("PARTLOG_", "DELTA_", "PATH_NOT_FOUND")):
            raise
    return True


def _is_started_elsewhere(options: Mapping[str, object]) -> bool:
    return _is_remote(options) or _SUBMITTED in os.environ


def _is_remote(options: Mapping[str, object]) -> bool:
    return str(options.get("spark.remote") or os.environ.get("SPARK_REMOTE", "")).startswith("sc://")


def _is_set(name: str, running: SparkSession | None, options: Mapping[str, object]) -> bool:
    """Whether the user made a setting outside the builder."""
    if running is not None:
        return running.conf.get(name, None) is not None
    # A server answers only after there is a session.
    return not _is_remote(options) and _from_outside(name) is not None


def _from_outside(name: str) -> str | None:
    """A setting that is made outside the builder, of a session that is not running yet; None if it is not made."""
    from pyspark import SparkConf, SparkContext

    if _SUBMITTED in os.environ:
        SparkContext._ensure_initialized()  # so that the next line sees what spark-submit was given
        return SparkConf().get(name)
    return Launch().get(name)


def _add_delta(builder: SparkSession.Builder, options: Mapping[str, object], delta: bool | str | os.PathLike[str]) -> None:
    launch = Launch()
    if not isinstance(delta, bool):
        builder.config("spark.jars", launch.add("spark.jars", options.get("spark.jars"), deltas.jars_in(delta)))
        return
    lists = ("spark.jars", "spark.jars.packages")
    given = [str(each) for name in lists for each in (options.get(name), launch.get(name)) if each]
    if package := deltas.package(_BUILT_FOR, given):
        packages = launch.add(lists[1], options.get(lists[1]), package)
        builder.config(lists[1], packages)
        excludes = "spark.jars.excludes"
        if packages == package and excludes not in options and launch.get(excludes) is None:
            builder.config(excludes, deltas.NOT_NEEDED)


def _choose_python(builder: SparkSession.Builder, options: Mapping[str, object]) -> None:
    key = "spark.pyspark.python"
    named = options.get(key) or Launch().get(key)
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


def _share_classes(builder: SparkSession.Builder, options: Mapping[str, object]) -> None:
    launch = Launch()
    given, more = (str(options.get(name) or launch.get(name) or "") for name in (archive.SETTING, "spark.driver.extraJavaOptions"))
    if words := archive.java_options(_JAR, (given, more)):
        builder.config(archive.SETTING, f"{words} {given}".rstrip())
