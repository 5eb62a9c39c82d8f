"""The servers of the tests of stores. A server that is not there skips its tests, and says what fetches it."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from handmade import Topic, records, sample
from logtool import SHORT_LIVED
from stores.buckets import environment
from stores.cluster import SparkCluster
from stores.faults import FaultProxy
from stores.hdfs import Hdfs
from stores.processes import Servers, is_alive
from stores.roots import classpath
from stores.s3 import S3

_S = TypeVar("_S", bound=Servers)


def _fetched(jars: Path, names: str, target: str) -> Path:
    """The folder, which must have jars of these names."""
    if not any(jars.glob(names)):
        pytest.fail(f"{jars} has no {names}: run `make {target}`")
    return jars


@contextmanager
def _running(servers: _S) -> Iterator[_S]:
    """Nothing of them runs in the end."""
    with servers:
        yield servers
        pids = servers.pids
        assert pids and all(map(is_alive, pids)), "a test has left a server dead"
    assert not any(map(is_alive, pids))


@pytest.fixture(scope="session", autouse=True)
def short_lived() -> Iterator[None]:
    """Each JVM of the tests, also of those servers, executors and drivers that others start, lives for minutes at most."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_TOOL_OPTIONS", " ".join(SHORT_LIVED))
        yield


@pytest.fixture(scope="session")
def hdfs_jars(repository: Path) -> Path:
    """The folder of the jars of HDFS."""
    return _fetched(repository / ".tools" / "hdfs", "hadoop-hdfs-3*.jar", "hdfs")


@pytest.fixture(scope="session")
def s3a_jars(repository: Path) -> Path:
    """The folder of the jars of Hadoop's S3A, which Spark does not carry."""
    return _fetched(repository / ".tools" / "s3a", "hadoop-aws-*.jar", "s3")


@pytest.fixture(scope="session")
def s3_program(repository: Path) -> Path:
    """The program of the S3 server."""
    program = repository / ".tools" / "versitygw" / "versitygw"
    if not program.exists() and not shutil.which("go"):
        pytest.skip("no S3 server: Go builds versitygw, and there is no Go")
    if not program.exists():
        pytest.fail(f"{program} is not there: run `make s3`")
    return program


@pytest.fixture(scope="session")
def hdfs(hdfs_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """One NameNode and one DataNode, for tests that kill neither."""
    with _running(Hdfs(tmp_path_factory.mktemp("hdfs"), hdfs_jars)) as server:
        yield server


@pytest.fixture(scope="session")
def hdfs_ha(hdfs_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """Two NameNodes and two DataNodes. A test that kills one starts it again."""
    with _running(Hdfs(tmp_path_factory.mktemp("hdfs-ha"), hdfs_jars, ha=True)) as server:
        yield server


@pytest.fixture(scope="session")
def s3(s3_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """One S3 server with one bucket. A test that kills it starts it again."""
    with _running(S3(tmp_path_factory.mktemp("s3"), s3_program)) as server:
        yield server


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A Spark cluster with two workers. A test that kills one starts it again."""
    with _running(SparkCluster(tmp_path_factory.mktemp("spark"))) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def jvm(java_classpath: str, spark_jars: Path, s3a_jars: Path) -> str:
    """The class path of a plain JVM with our classes and tests, and with the clients of HDFS and S3."""
    return classpath(java_classpath, spark_jars, sorted(s3a_jars.glob("*.jar")))


@pytest.fixture
def settings_in_environment(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python finds the S3 server by the names that AWS's own programs read."""
    for name, value in environment(s3).items():
        monkeypatch.setenv(name, value)


class Reach:
    """How Python reaches the S3 server: by obstore, with settings in the environment, or by a FileSystem of pyarrow."""

    def __init__(self, client: str, environment: pytest.MonkeyPatch) -> None:
        self.client, self._environment = client, environment

    def __call__(self, s3: S3, endpoint: str | None = None) -> dict[str, Any]:
        """The arguments of Log and Consumer beside the root, from now on."""
        if self.client == "pyarrow":
            return {"filesystem": s3.filesystem(endpoint)}
        for name, value in environment(s3, endpoint).items():
            self._environment.setenv(name, value)
        return {}

    def reads(self, files: int, *, absent: int = 0) -> Counter[str]:
        """The requests for files that are read at once, and for files that are found absent by a read."""
        if self.client == "pyarrow":
            return Counter(HEAD=files + absent, GET=files)
        return Counter(GET=files + absent)


@pytest.fixture(params=["pyarrow", "obstore"])
def reach(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Reach:
    """One of the two clients."""
    return Reach(request.param, monkeypatch)


@pytest.fixture
def fault_proxy() -> Iterator[Callable[[str], FaultProxy]]:
    """Makes proxies in front of servers that stop when the test ends."""
    with ExitStack() as stack:
        yield lambda target: stack.enter_context(FaultProxy(target))


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    """A topic made by hand: with a checkpoint, and a version after it."""
    topic = sample(tmp_path / "root")
    topic.checkpoint()
    topic.append(records(5, "after"))
    return topic
