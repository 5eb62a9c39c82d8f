"""Fixtures that need no Spark session: where the repository and its compiled halves are."""

import json
import os
import runpy
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from logtool import BatchTool, archive_classes, put_into_jar
from xdist.scheduler import LoadScopeScheduling

from sparklog.groups.table.lake import Lake
from sparklog.ondisk.topic_log import TopicLog

pytest_plugins = ["limits"]

OF_STORES = {
    # The first, as its session needs a JVM in which none has begun.
    "cluster": ("cluster", "servers", "python_hdfs"),
    "sessions": ("moves", "scans", "spark", "spark_faults"),
    "rest": ("contract", "kills", "races", "python_s3", "python_programs", "faults", "cut_reads", "webhdfs_answers", "yarn"),
}
"""The files of tests/stores that share servers or a JVM, and in `rest` those that any process may run, the longest first."""
FASTEST_FIRST = (
    "tests/test_tidy.py",
    "tests/test_layers.py",
    "tests/model/",
    "tests/unit/",
    "tests/cli/",
    "tests/groups/",
    "tests/contract/",
    "tests/foreign/",
    "tests/verify/",
    "tests/protocol/",
    "tests/ui/",
    "tests/kafka/",
    "tests/serve/",
    "tests/spark/",
    *(f"tests/stores/test_{name}.py" for names in OF_STORES.values() for name in names),
)
WITH_A_SPARK_OF_ITS_OWN = (
    "tests/spark/test_class_archive.py",
    "tests/spark/test_documents.py",
    "tests/spark/test_failures.py",
    "tests/spark/test_kafka_source_at_server.py",
    "tests/spark/test_notebooks.py",
    "tests/spark/test_offsets.py::test_offset_tables_with_delta_spark",
    "tests/spark/test_shell_guide.py",
    "tests/spark/test_stream_kills.py",
    "tests/test_wheel.py",
)
"""They could run beside any other test, since they start no Connect server, whose port only one can have."""


class Lanes(LoadScopeScheduling):
    """One process runs the tests that share a session, and each of the others some folders: with two processes, one runs the rest.

    Tests of sessions, servers and commands often wait, so six processes take two cores less time than two. Slow tests have processes
    of their own, and would disturb each other.

    The environment of the session is not for the JVMs of the other folders, so no process runs both. The free process takes the next file
    that starts its own Spark. So it takes each of the tests of stores, but for those that share what takes long to start.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(WITH_A_SPARK_OF_ITS_OWN):
            return nodeid.partition("::")[0]
        if nodeid.startswith("tests/stores/"):
            shared = (lane for lane in ("cluster", "sessions") for name in OF_STORES[lane] if f"/test_{name}.py::" in nodeid)
            return next(shared, nodeid.partition("::")[0])
        lanes = ("spark", "serve", "groups", "cli", "protocol") if self.numnodes > 2 else ("spark",)
        return next((lane for lane in lanes if nodeid.startswith(f"tests/{lane}/")), "log")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    return Lanes(config, log)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The tests of stores run where they are named, as `make test-stores` does: they start servers that `make test` has no need of."""
    stores = Path(__file__).parent / "stores"
    named = [(config.invocation_params.dir / argument.partition("::")[0]).resolve() for argument in config.args]
    return True if collection_path == stores and not any(path.is_relative_to(stores) for path in named) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = len(FASTEST_FIRST)
    items.sort(key=lambda item: next((i for i in range(places) if item.nodeid.startswith(FASTEST_FIRST[i])), places))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With SPARKLOG_NO_SKIPS=1, as `.ci/run` sets it, a test that is skipped has failed: a green run has then shown all."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("SPARKLOG_NO_SKIPS") == "1":
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome, report.longrepr = "failed", f"skipped, which SPARKLOG_NO_SKIPS forbids: {why.removeprefix('Skipped: ')}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Where the time went, by folder, and where it went when the last release was made, so that growth is seen."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                place = next((place for place in FASTEST_FIRST if report.nodeid.startswith(place)), "others")
                seconds[place] += report.duration
    released = json.loads((Path(__file__).parent / "seconds.json").read_text())
    tiers = released["seconds"]
    marks = config.getoption("markexpr")
    before = Counter(tiers.get(marks, {}))
    if marks == "not soak":  # `make full` runs all tiers
        for tier in tiers.values():
            before.update(tier)
    about = f" (in brackets: release {released['release']}, {released['circumstances']})" if before else ""
    terminalreporter.write_line(f"seconds by part{about}:")
    for place, taken in sorted(seconds.items()):
        beside = f"({before.get(place, 0)})" if before else ""
        terminalreporter.write_line(f"  {place:<36} {taken:>6.0f} {beside:>8}".rstrip())


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that this process loads from a listing of their folders, as opening a topic does."""
    found: list[str] = []
    load = TopicLog._load

    def counted(log: TopicLog, as_listed: bool) -> Any:
        found.append(log.topic)
        return load(log, as_listed)

    monkeypatch.setattr(TopicLog, "_load", counted)
    return found


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that this process asks offset tables, by the method of `Lake` that asks them."""
    found: list[str] = []

    def counted(name: str) -> None:
        ask = getattr(Lake, name)

        def asked(*given: Any) -> Any:
            found.append(name)
            return ask(*given)

        monkeypatch.setattr(Lake, name, asked)

    counted("_answer")  # of all rows
    counted("_added")  # of the rows since a version
    return found


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def reference(repository: Path) -> dict[str, Any]:
    """The functions of docs/make_reference.py, which is a script beside the pages."""
    return runpy.run_path(str(repository / "docs" / "make_reference.py"))


@pytest.fixture(scope="session")
def spark_jars() -> Path:
    """The folder of the jars that Spark carries."""
    import pyspark

    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"


@pytest.fixture(scope="session")
def java_classpath(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The class path of a plain JVM with our classes, our Java tests' classes and what they use without Spark."""
    folder, ours = tmp_path_factory.mktemp("java"), []
    for name in ("classes", "test-classes"):
        classes = repository / "jvm-shim" / "target" / name
        if not classes.is_dir():
            pytest.fail(f"{classes} is not there: run `make jvm-test`")
        ours.append(put_into_jar(classes, folder / f"{name}.jar"))
    # Not all of Spark's jars: a small JVM would spend a quarter of its time on looking through them. The server has the same.
    names = ("jackson-*", "zstd-jni-*", "lz4-java-*", "snappy-java-*", "slf4j-api-*", "log4j-*")
    jars = [jar for name in names for jar in sorted((repository / "jvm-shim" / "serve" / "target" / "jars").glob(f"{name}.jar"))]
    classpath = os.pathsep.join(map(str, (*ours, *jars)))
    archive_classes(classpath, folder / "root")
    return classpath


@pytest.fixture(scope="session")
def batch_tool(java_classpath: str) -> BatchTool:
    return BatchTool(java_classpath)


@pytest.fixture(scope="session")
def kafka_classpath(repository: Path) -> str:
    """The class path of Kafka's broker and tools."""
    jars = repository / ".tools" / "kafka"
    if not any(jars.glob("kafka_*.jar")):
        pytest.fail(f"{jars} has no Kafka: run `make kafka`")
    return str(jars / "*")
