"""A root and a door for the tests of this folder."""

from collections.abc import Generator
from pathlib import Path

import pytest
from door.serving import Door, archive_classes_of_door, door_classpath
from logtool import LogTool


@pytest.fixture(scope="session")
def serve_classpath(java_classpath: str, spark_jars: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    classpath = door_classpath(java_classpath, spark_jars, repository)
    archive_classes_of_door(classpath, tmp_path_factory.mktemp("archive"))
    return classpath


@pytest.fixture(scope="session")
def door(serve_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Door]:
    """The door that tests share. Its root has the topic `t`, with 4 partitions and 80 records. Tests add other topics."""
    root = tmp_path_factory.mktemp("door") / "root"
    LogTool(serve_classpath, root).run("append", tag="A", topic="t", commits=4, tasks=2, records=10)
    with Door(serve_classpath, root) as serving:
        yield serving
