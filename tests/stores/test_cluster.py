"""A cluster whose executors share no folder with the driver: the guide's job, classic and over Connect, and what goes wrong on clusters."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ports import HOST, free_port
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from stores.cluster import HOSTS, SparkCluster
from stores.guide import PRINTED, guide_job, quiet_s3a, redacted, submit
from stores.hdfs import Hdfs
from stores.processes import children
from stores.programs import CALLS, SHOWN
from stores.s3 import S3
from stores.sessions import session

import sparklog
from sparklog import Log
from sparklog.store.stores import open_store

SECRET = S3.secret_key
MARKED = "marked-option-4712"
PARTITIONS = 4
CATALOG = "io.sparklog.catalog.PartlogCatalog"
IN_BOTH = [
    ("hdfs", "classic"),
    ("s3", "connect"),
    pytest.param("hdfs", "connect", marks=pytest.mark.soak),
    pytest.param("s3", "classic", marks=pytest.mark.soak),
]
SHOWN_IN = [("s3", "connect"), *(pytest.param(name, "classic", marks=pytest.mark.soak) for name in ("hdfs", "s3"))]
# Not Spark itself at DEBUG: it logs values of settings then.
LOGGING = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex
logger.sparklog.name = io.sparklog
logger.sparklog.level = debug
logger.s3a.name = org.apache.hadoop.fs.s3a
logger.s3a.level = debug
"""


@dataclass
class Driver:
    """The session, the cluster that it runs on, and what they leave behind."""

    spark: SparkSession
    cluster: SparkCluster
    folder: Path
    connect: str

    def end_of(self, attempt: int) -> str:
        """Why an attempt of a task has ended, as the event log has it, whose buffer is flushed when a job ends."""
        (log,) = (self.folder / "events").iterdir()
        deadline = time.monotonic() + 60
        while True:
            self.spark.range(1).collect()
            events = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
            for event in events:
                if event["Event"] == "SparkListenerTaskEnd" and event["Task Info"]["Task ID"] == attempt:
                    return str(event["Task End Reason"]["Reason"])
            assert time.monotonic() < deadline, f"attempt {attempt} has not ended"
            time.sleep(0.5)

    def run(self, mode: str, program: str, *arguments: str, folder: Path) -> str:
        """Runs a program, classic or as a client of Connect, and returns what it has shown."""
        if mode == "classic":
            with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as shown:
                patch.setattr(sys, "argv", ["program.py", *arguments])
                exec(program, {})
            return shown.getvalue()
        (folder / "program.py").write_text(program)
        command = [sys.executable, "program.py", *arguments]
        env = {**os.environ, "SPARK_REMOTE": self.connect}
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout + done.stderr


@dataclass
class Place:
    """A folder in a store: its name for Spark, and what Python needs beside it, which knows no setting of Hadoop."""

    name: str
    uri: str
    query: str = ""
    filesystem: Any = None

    def log(self, root: str) -> Log:
        return Log(f"{root}{self.query}", filesystem=self.filesystem)

    def files(self, root: str, topic: str) -> dict[str, str]:
        """The data files of a topic, live or not: the names, and where they are below the root."""
        store, data = open_store(f"{root}{self.query}", self.filesystem), f"_partlog/{topic}/data"
        return {name: f"{data}/{folder}/{name}" for folder in store.names(data) for name in store.names(f"{data}/{folder}")}


@pytest.fixture(scope="module")
def driver_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    for name in ("events", "tmp", "home", "local", "work"):
        (folder / name).mkdir()
    return folder


@pytest.fixture(scope="module")
def own_cluster(driver_folder: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """Its executors see neither the driver's folders nor the package sparklog with its jar."""
    with SparkCluster(tmp_path_factory.mktemp("cluster"), hidden=[driver_folder, repository / "sparklog"]) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def driver(own_cluster: SparkCluster, driver_folder: Path, hdfs_ha: Hdfs, s3: S3, s3a_jars: Path, repository: Path) -> Iterator[Driver]:
    port = free_port()
    logging = driver_folder / "log4j2.properties"
    logging.write_text(LOGGING.format(file=driver_folder / "driver.log") + quiet_s3a(repository))
    stores = {**s3.settings(), **{name: value for name, value in hdfs_ha.settings.items() if name != "fs.defaultFS"}}
    settings = {
        **own_cluster.settings,
        **{f"spark.hadoop.{name}": value for name, value in stores.items()},
        "spark.sql.catalog.hdfs": CATALOG,
        "spark.sql.catalog.hdfs.root": f"{hdfs_ha.uri}/cluster/catalog",
        "spark.sql.catalog.s3": CATALOG,
        "spark.sql.catalog.s3.root": f"s3a://{s3.bucket}/cluster/catalog",
        **{f"spark.sql.catalog.s3.{name}": value for name, value in s3.settings().items()},
        "spark.master": own_cluster.url,
        "spark.executor.extraClassPath": f"{s3a_jars}/*",
        "spark.local.dir": str(driver_folder / "local"),
        "spark.driver.extraJavaOptions": " ".join(
            (f"-Djava.io.tmpdir={driver_folder}/tmp", f"-Duser.home={driver_folder}/home", f"-Dlog4j2.configurationFile={logging}")
        ),
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": str(port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{driver_folder}/events",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.redaction.string.regex": redacted(repository),
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.5",
        "spark.speculation.quantile": "0.5",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(driver_folder / "work")
        with session(s3a_jars, **settings) as spark:
            yield Driver(spark, own_cluster, driver_folder, f"sc://{HOST}:{port}")
    # Event log, logs of driver, executors, master and workers, and all that is in the stores.
    folders = [driver_folder, own_cluster.folder, hdfs_ha.conf.parent, s3.objects]
    assert places_of("partlog", [driver_folder / "events"])
    assert places_of("org.apache.hadoop.fs.s3a.S3AFileSystem", [driver_folder / "driver.log"])
    assert places_of("Transfer failure of block", [driver_folder / "driver.log"]) == []
    assert places_of("Closing output stream statistics while", [driver_folder / "driver.log"]) == []
    assert places_of(SECRET, folders) == []
    assert places_of(MARKED, folders) == []


def places_of(word: str, folders: list[Path]) -> list[str]:
    """The files below these folders that have it, with what stands before it."""
    found = []
    for file in (file for folder in folders for file in (folder, *folder.rglob("*")) if file.is_file()):
        content = file.read_bytes()
        if (at := content.find(word.encode())) >= 0:
            found.append(f"{file}: {content[max(0, at - 200) : at + 60]!r}")
    return found


@pytest.fixture
def place(request: pytest.FixtureRequest, driver: Driver, hdfs_ha: Hdfs, s3: S3) -> Place:
    if request.param == "hdfs":
        return Place("hdfs", f"{hdfs_ha.uri}/cluster", query=f"?webhdfs={','.join(hdfs_ha.webhdfs)}")
    return Place("s3", f"s3a://{s3.bucket}/cluster", filesystem=s3.filesystem())


def read(driver: Driver, root: str, topic: str) -> DataFrame:
    return driver.spark.read.format("partlog").option("subscribe", topic).load(root)


def assert_dense(driver: Driver, place: Place, root: str, topic: str, count: int) -> None:
    """The numbers below `count`, each once, and offsets without a gap from 0 in each partition, also as Python reads them."""
    rows = read(driver, root, topic).selectExpr("partition", "offset", "CAST(CAST(value AS STRING) AS INT) AS number").collect()
    assert sorted(row.number for row in rows) == list(range(count))
    for partition in range(PARTITIONS):
        offsets = sorted(row.offset for row in rows if row.partition == partition)
        assert offsets == list(range(len(offsets))), f"partition {partition}"
    found = place.log(root)[topic].read(columns=["partition", "offset", "value"]).to_pylist()
    assert sorted((row["partition"], row["offset"], int(row["value"])) for row in found) == sorted(map(tuple, rows))


def test_the_job_of_the_guide_by_spark_submit(own_cluster: SparkCluster, driver_folder: Path, hdfs: Hdfs, repository: Path):
    """The first test: it needs the cores that the session of the others takes."""
    given = {"spark://master:7077": own_cluster.url, "hdfs://namenode:8020": hdfs.uri}
    submit(repository, "spark-submit --master spark://", driver_folder, given, own_cluster.settings)
    for name in HOSTS:
        assert list((own_cluster.folder / name).glob("app-*/*/sparklog.jar")), f"the executor of {name} was sent the jar"
        # As a process of the worker sees it.
        seen = Path(f"/proc/{own_cluster.daemons[name].pid}/root")
        for folder in (driver_folder, repository / "sparklog") if own_cluster.hides else ():
            assert list(folder.iterdir())
            assert not list((seen / folder.relative_to("/")).iterdir())


def test_executors_have_the_jar_from_the_driver_and_nothing_else_of_it(driver: Driver):
    def seen(paths: list[Path]) -> list[list[Path]]:
        task = driver.spark.sparkContext.parallelize(range(8), 8)
        return task.map(lambda _: [path for path in paths if path.exists()]).collect()

    theirs = [driver.folder / "tmp", driver.folder / "work", Path(sparklog.jar())]
    assert all(path.exists() for path in theirs)
    if not driver.cluster.hides:
        pytest.skip("Linux does not let this user hide folders: unshare --map-root-user is refused")
    assert seen(theirs) == 8 * [[]]
    for name in HOSTS:
        assert list((driver.cluster.folder / name).glob("app-*/*/sparklog.jar")), f"an executor of {name} has the jar"


@pytest.mark.parametrize(("place", "mode"), IN_BOTH, indirect=["place"])
def test_a_batch_a_stream_and_procedures(driver: Driver, place: Place, mode: str, repository: Path, tmp_path: Path):
    """The guide's job, and procedures."""
    root = f"{place.uri}/{mode}"
    shown = driver.run(mode, f"{guide_job(repository)}\n", root, folder=tmp_path)
    assert PRINTED in shown, shown
    driver.run(mode, CALLS, f"{root}-calls", folder=tmp_path)
    for topic in ("orders", "copy"):
        assert_dense(driver, place, root, topic, 10_000)
    assert_dense(driver, place, f"{root}-calls", "called", 400)
    for each in (root, f"{root}-calls"):
        assert place.log(each).verify().findings == []


def rows_of(driver: Driver, count: int, key: Column) -> DataFrame:
    rows = driver.spark.range(0, count, numPartitions=PARTITIONS).selectExpr("CAST(id AS STRING) AS value")
    return rows.select(key.alias("key"), "value")


def save(rows: DataFrame, root: str) -> None:
    """As files of one partition each, that are begun while the task runs, and not merged."""
    options = {"topic": "t", "partitions": str(PARTITIONS), "write.buffer.bytes": str(1 << 20), "merge": "false"}
    rows.write.format("partlog").options(**options).mode("append").save(root)


def stopping(stopped: Path, count: int, seconds: float) -> Column:
    """The values, padded. The first attempt that comes near the end tells which process it is, and waits there."""

    def padded(value: str) -> str:
        context = TaskContext.get()
        assert context
        if int(value) == count - 50 and context.attemptNumber() == 0:
            stopped.with_suffix(".new").write_text(f"{os.getppid()} {context.taskAttemptId()}")
            stopped.with_suffix(".new").rename(stopped)
            time.sleep(seconds)
        return value.zfill(3000)

    return F.udf(padded, useArrow=False)("value")


def stop_of(stopped: Path, place: Place, root: str) -> tuple[int, int, list[str]]:
    """Waits until the attempt waits: its process, its id, and the data files that it has begun, which S3 does not show."""
    deadline = time.monotonic() + 60
    while not stopped.exists():
        assert time.monotonic() < deadline, "no task has come so far"
        time.sleep(0.02)
    process, attempt = (int(word) for word in stopped.read_text().split())
    # The rows before the one that it waits at are on their way to the file.
    while not (begun := files_of(attempt, place.files(root, "t"))) and place.name == "hdfs":
        assert time.monotonic() < deadline, "the attempt has begun no file"
    return process, attempt, begun


def files_of(attempt: int, names: Iterable[str]) -> list[str]:
    """The data files that an attempt of the last task has written."""
    return [name for name in names if f"-t{PARTITIONS - 1}-{attempt}-" in name]


@pytest.mark.parametrize("place", ["hdfs", "s3"], indirect=True)
def test_an_executor_is_killed_in_mid_write(driver: Driver, place: Place, tmp_path: Path):
    root, count, stopped = f"{place.uri}/killed", 4_000, tmp_path / "stopped"

    def kill() -> int:
        daemon, attempt, begun = stop_of(stopped, place, root)
        assert bool(begun) == (place.name == "hdfs"), "in S3 a file is there when it is complete"
        (executor,) = (pid for name in HOSTS for pid in driver.cluster.executors(name) if daemon in children(pid))
        os.kill(executor, signal.SIGKILL)
        return attempt

    with ThreadPoolExecutor() as pool:
        killing = pool.submit(kill)
        save(rows_of(driver, count, stopping(stopped, count, 60)), root)
        attempt = killing.result()
    assert_dense(driver, place, root, "t", count)
    assert place.log(root).verify().findings == []
    assert "ExecutorLostFailure" in driver.end_of(attempt)


@pytest.mark.parametrize("place", ["hdfs", "s3"], indirect=True)
def test_of_two_attempts_of_a_task_at_once_one_is_read(driver: Driver, place: Place, tmp_path: Path):
    """Spark begins the second one on the other worker while the first waits, and ends the first."""
    root, count, stopped = f"{place.uri}/speculated", 4_000, tmp_path / "stopped"
    with ThreadPoolExecutor() as pool:
        looking = pool.submit(stop_of, stopped, place, root)
        save(rows_of(driver, count, stopping(stopped, count, 60)), root)
        _, attempt, begun = looking.result()
    assert bool(begun) == (place.name == "hdfs"), "in S3 a file is there when it is complete"
    assert_dense(driver, place, root, "t", count)
    read = [segment.file for segment in place.log(root)["t"].segments()]
    assert [name for name in read if f"-t{PARTITIONS - 1}-" in name]
    assert files_of(attempt, read) == []
    assert place.log(root).verify().findings == []
    assert driver.end_of(attempt) == "TaskKilled"


@pytest.mark.parametrize(("place", "mode"), SHOWN_IN, indirect=["place"])
def test_no_value_of_a_setting_is_shown(driver: Driver, place: Place, mode: str, tmp_path: Path):
    """Neither the key of the session and of the catalog, by which all this works, nor one that a read or write names."""
    shown = driver.run(mode, SHOWN, f"{place.uri}/shown-{mode}", MARKED, place.name, folder=tmp_path)
    assert "PARTLOG_" in shown
    assert places_of("PARTLOG_", [driver.folder / "driver.log"])
    assert [word for word in (SECRET, MARKED) if word in shown] == []
