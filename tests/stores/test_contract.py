"""The promises of a store, which Maven runs in Java against the real servers."""

import os
import shlex
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from pathlib import Path

from stores.faults import FaultProxy
from stores.hdfs import Hdfs
from stores.s3 import S3


def run(repository: Path, tests: dict[str, int], servers: dict[str, tuple[str, dict[str, str]]], jars: Sequence[Path] = ()) -> None:
    """Runs tests of Java, each with more cases than a number.

    They find `servers`, by name a URI and settings, by system properties: one of the name, and one for each setting.
    """
    properties = [f"-D{name}={uri}" for name, (uri, _) in servers.items()]
    properties += [f"-D{name}.{key}={value}" for name, (_, settings) in servers.items() for key, value in settings.items()]
    properties.append(f"-Dmaven.test.additionalClasspath={','.join(map(str, jars))}")
    maven = [*shlex.split(os.environ.get("MVN", "mvn -q -B")), "-f", str(repository / "jvm-shim" / "pom.xml")]
    ran = subprocess.run(
        [*maven, "test", f"-Dtest={','.join(tests)}", *properties], capture_output=True, text=True, timeout=540, check=False
    )
    assert ran.returncode == 0, ran.stdout[-8_000:]
    for test, cases in tests.items():
        report = ElementTree.parse(
            repository / "jvm-shim" / "target" / "surefire-reports" / f"TEST-io.sparklog.storage.{test}.xml"
        ).getroot()
        assert int(report.attrib["tests"]) - int(report.attrib["skipped"]) > cases, report.attrib


def test_the_contract_holds_in_hdfs(hdfs: Hdfs, repository: Path):
    run(repository, {"HdfsStoreTest": 20}, {"stores.hdfs": (f"{hdfs.uri}/contract", hdfs.settings)})


def test_the_contract_holds_in_s3_by_few_requests(s3: S3, repository: Path, fault_proxy: Callable[[str], FaultProxy]):
    jars = sorted((repository / ".tools" / "s3a").glob("*.jar"))
    assert jars, "run `make s3`"
    proxied = s3.settings(fault_proxy(s3.endpoint).endpoint)
    servers = {"stores.s3": (f"s3a://{s3.bucket}/contract", s3.settings()), "stores.s3proxy": (f"s3a://{s3.bucket}/requests", proxied)}
    run(repository, {"S3StoreTest": 20, "S3RequestsTest": 15}, servers, jars)
