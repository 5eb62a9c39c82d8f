"""The promises of a store, which Maven runs in Java against the real servers."""

import os
import shlex
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

from stores.hdfs import Hdfs
from stores.s3 import S3


def run(repository: Path, test: str, store: str, uri: str, settings: dict[str, str], jars: Sequence[Path] = ()) -> None:
    """Runs a test of Java, which finds the server by system properties: the store's name, and one for each setting."""
    properties = [f"-D{store}={uri}", *(f"-D{store}.{key}={value}" for key, value in settings.items())]
    properties.append(f"-Dmaven.test.additionalClasspath={','.join(map(str, jars))}")
    maven = [*shlex.split(os.environ.get("MVN", "mvn -q -B")), "-f", str(repository / "jvm-shim" / "pom.xml")]
    ran = subprocess.run([*maven, "test", f"-Dtest={test}", *properties], capture_output=True, text=True, timeout=540, check=False)
    assert ran.returncode == 0, ran.stdout[-8_000:]
    report = ElementTree.parse(repository / "jvm-shim" / "target" / "surefire-reports" / f"TEST-io.sparklog.storage.{test}.xml").getroot()
    assert int(report.attrib["tests"]) - int(report.attrib["skipped"]) > 20, report.attrib


def test_the_contract_holds_in_hdfs(hdfs: Hdfs, repository: Path):
    run(repository, "HdfsStoreTest", "stores.hdfs", f"{hdfs.uri}/contract", hdfs.settings)


def test_the_contract_holds_in_s3(s3: S3, repository: Path):
    jars = sorted((repository / ".tools" / "s3a").glob("*.jar"))
    assert jars, "run `make s3`"
    run(repository, "S3StoreTest", "stores.s3", f"s3a://{s3.bucket}/contract", s3.settings(), jars)
