"""Spark for the commands that change a log: started without a word, and with the connector's errors as ours."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparklog.errors import SparklogError, declared
from sparklog.spark.literals import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHOWN = 20
"""The most lines of Spark's own output that are shown if it does not start."""


def start(cores: int = 2) -> SparkSession:
    """A session on this machine that prints nothing and leaves no files; the running one if there is one."""
    import sparklog

    settings = {
        "spark.master": f"local[{cores}]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir(), f"sparklog-{os.getpid()}")),  # nothing is ever put there
    }
    with _quietly():
        return sparklog.session(app_name="sparklog", conf=settings)


@contextmanager
def errors() -> Iterator[None]:
    """An error of the connector within becomes a SparklogError."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        raise _ours(error) from None


def call(session: SparkSession, procedure: str, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a procedure.

    An argument is a text, a number, a truth value, a timedelta, a list of numbers, or a dict of texts, of numbers, or of numbers by bytes.
    """
    given = ", ".join(f"{name} => {literal(value)}" for name, value in arguments.items())
    with errors():
        return [row.asDict() for row in session.sql(f"CALL partlog.{procedure}({given})").collect()]


def create(session: SparkSession, root: str, topic: str, config: Mapping[str, str], *, if_not_exists: bool) -> bool:
    """Creates a topic, which gets these options. False if it exists, and CallError TOPIC_EXISTS without `if_not_exists`."""
    name = ".".join(f"`{part.replace('`', '``')}`" for part in (root, topic))
    properties = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in config.items())
    try:
        with errors():
            session.sql(f"CREATE TABLE partlog.{name}" + (f" TBLPROPERTIES ({properties})" if properties else ""))
    except SparklogError as error:
        if error.id != "TOPIC_EXISTS" or not if_not_exists:
            raise
        return False
    return True


@contextmanager
def _quietly() -> Iterator[None]:
    """Keeps the output of the JVM, then and later, in a file without a name, which is shown only if Spark does not start."""
    shown = sys.stderr.isatty()
    if shown:
        sys.stderr.write("Starting Spark …")
        sys.stderr.flush()
    sys.stdout.flush()
    with tempfile.TemporaryFile() as kept:
        ours = [os.dup(number) for number in (1, 2)]
        try:
            for number in (1, 2):
                os.dup2(kept.fileno(), number)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                yield
        except BaseException as error:
            os.dup2(ours[1], 2)
            if not isinstance(error, SparklogError | KeyboardInterrupt):
                kept.seek(0)
                print(*kept.read().decode(errors="replace").splitlines()[-_SHOWN:], sep="\n", file=sys.stderr)
            raise
        finally:
            for number, fd in zip((1, 2), ours, strict=True):
                os.dup2(fd, number)
                os.close(fd)
            if shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()


def _ours(error: Any) -> Exception:
    id = (error.getCondition() or "").removeprefix("PARTLOG_")
    parameters = error.getMessageParameters() or {}
    if id == "ARGUMENT_VALUE":
        # The argument is an argument of a procedure, and the remedy is its signature in SQL.
        name = parameters["argument"]
        option = name.upper() if name in ("root", "topic") else "--" + name.replace("_", "-")
        return SparklogError("OPTION_VALUE", option=option, value=parameters["value"], reason=parameters["reason"])
    if id in declared() and declared()[id].parameters() == parameters.keys():
        return SparklogError(id, **parameters)
    assert isinstance(error, Exception)
    return error
