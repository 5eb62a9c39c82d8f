"""The guide's job on a cluster whose executors share no folder with the driver."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from stores.cluster import HOSTS, SparkCluster
from stores.guide import submit
from stores.hdfs import Hdfs


@pytest.fixture(scope="module")
def driver_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("driver")


@pytest.fixture(scope="module")
def own_cluster(driver_folder: Path, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """Its executors see neither the driver's folders nor the package sparklog with its jar."""
    with SparkCluster(tmp_path_factory.mktemp("cluster"), hidden=[driver_folder, repository / "sparklog"]) as cluster:
        yield cluster


def test_the_job_of_the_guide_by_spark_submit(own_cluster: SparkCluster, driver_folder: Path, hdfs: Hdfs, repository: Path):
    given = {"spark://master:7077": own_cluster.url, "hdfs://namenode:8020": hdfs.uri}
    submit(repository, "spark-submit --master spark://", driver_folder, given, own_cluster.settings)
    for name in HOSTS:
        assert list((own_cluster.folder / name).glob("app-*/*/sparklog.jar")), f"the executor of {name} was sent the jar"
        # As a process of the worker sees it.
        seen = Path(f"/proc/{own_cluster.daemons[name].pid}/root")
        for folder in (driver_folder, repository / "sparklog") if own_cluster.hides else ():
            assert list(folder.iterdir())
            assert not list((seen / folder.relative_to("/")).iterdir())
