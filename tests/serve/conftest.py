"""A root and a server for the tests of this folder."""

from collections.abc import Generator
from pathlib import Path

import pytest
from logtool import LogTool
from serve.serving import RunningServer, archive_classes_of_server, server_classpath


@pytest.fixture(scope="session")
def serve_classpath(java_classpath: str, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    classpath = server_classpath(java_classpath, repository)
    archive_classes_of_server(classpath, tmp_path_factory.mktemp("archive"))
    return classpath


@pytest.fixture(scope="session")
def server(serve_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[RunningServer]:
    """The server that tests share. Its root has the topic `t`, with 4 partitions and 80 records. Tests add other topics."""
    root = tmp_path_factory.mktemp("server") / "root"
    LogTool(serve_classpath, root).run("append", tag="A", topic="t", commits=4, tasks=2, records=10)
    with RunningServer(serve_classpath, root) as serving:
        yield serving
