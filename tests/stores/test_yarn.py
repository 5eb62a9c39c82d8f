"""The guide's job on YARN."""

from pathlib import Path

import pytest
from stores.guide import submit
from stores.hdfs import Hdfs
from stores.yarn import Yarn


@pytest.mark.soak
def test_the_job_of_the_guide_on_yarn(hdfs: Hdfs, hdfs_jars: Path, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "yarn").mkdir()
    with Yarn(tmp_path / "yarn", hdfs_jars, hdfs) as yarn:
        monkeypatch.setenv("HADOOP_CONF_DIR", str(yarn.conf))
        given = {"hdfs://namenode:8020": f"{hdfs.uri}/yarn"}
        submit(repository, "spark-submit --master yarn --jars", tmp_path, given, yarn.settings)
        assert len(yarn.executors()) == 2
