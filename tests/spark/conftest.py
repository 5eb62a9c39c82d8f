"""One Spark session for all tests that need one, and what JVMs of their own get."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from logtool import SHORT_LIVED
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark.collecting import Stream
from spark.epochs import Sink
from spark.first_use import connect_server
from spark.running_jvm import running_jvm
from verifying import faults

import sparklog


@pytest.fixture(scope="session", autouse=True)
def short_lived(repository: Path) -> Iterator[None]:
    """A JVM that a test starts lives for seconds. That of the session lives for minutes, but each test lets it do something else. Neither
    gains from the second compiler what this takes, a third of all time.

    The archive of classes, which `make` keeps, saves a Spark a third of its start. A JVM ignores one that does not fit it, and would say
    so on standard output.

    Spark takes settings from the properties of its JVM unless it is given others.
    """
    settings = {
        "spark.ui.enabled": "false",
        # For a worker in Python to say that it is there. On a machine that is busy, 15 s can be too short.
        "spark.python.authenticate.socketTimeout": "300s",
    }
    # With the first compiler alone, Java reserves 48 MB for compiled code, which many tests fill: then it compiles the same code again.
    options = " ".join([*SHORT_LIVED, "-XX:ReservedCodeCacheSize=256m", *(f"-D{key}={value}" for key, value in settings.items())])
    archive = repository / ".tools" / "spark.jsa"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(
            "JAVA_TOOL_OPTIONS", f"{options} -XX:SharedArchiveFile={archive} -Xlog:disable" if archive.is_file() else options
        )
        environment.setenv("SPARK_AUTH_SOCKET_TIMEOUT", "300")
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        # By default Spark starts a process for each file of a checkpoint: half of the time of a small trigger. A Spark that a test starts
        # keeps that default.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    session = sparklog.session(app_name="sparklog tests", conf=settings)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect(spark: SparkSession) -> str:
    """Where clients of Spark Connect find the server that the JVM of `spark` has: they are processes, but need no Spark of their own."""
    return connect_server(spark)


@pytest.fixture(scope="session")
def jvm_for_programs() -> Iterator[dict[str, str]]:
    """The environment in which programs share a JVM. Those that show how Spark starts, or what an end of its JVM leaves, have their own."""
    with running_jvm() as environment:
        yield environment


@pytest.fixture(scope="session")
def fails() -> Callable[[str, Callable[[], object]], str]:
    """Runs something that must fail with a condition `PARTLOG_…`, and gives the text of its error."""

    def run(condition: str, action: Callable[[], object]) -> str:
        with pytest.raises(PySparkException) as caught:
            action()
        assert caught.value.getCondition() == f"PARTLOG_{condition}", str(caught.value)[:2000]
        assert f"[PARTLOG_{condition}]" in str(caught.value)
        return str(caught.value)

    return run


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Iterator[Stream]:
    """A query that is not started yet; at the end, all queries are stopped, and what they wrote is verified."""
    yield Stream(spark, tmp_path / "root", tmp_path)
    for query in spark.streams.active:
        query.stop()
    assert faults(tmp_path / "root", unfinished=True) == []


@pytest.fixture
def sink(spark: SparkSession, tmp_path: Path) -> Iterator[Sink]:
    """A root, and queries from one checkpoint that write to it epoch by epoch. In the end the root is verified."""
    yield Sink(spark, tmp_path)
    assert faults(tmp_path / "root", unfinished=True) == []


@pytest.fixture
def call(spark: SparkSession, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Calls a procedure on the root of `stream` and `sink` with named arguments, which are SQL; gives its rows."""

    def run(procedure: str, **arguments: object) -> list[dict[str, Any]]:
        given = "".join(f", {name} => {value}" for name, value in arguments.items())
        return [row.asDict() for row in spark.sql(f"CALL partlog.{procedure}(root => '{tmp_path}/root'{given})").collect()]

    return run
