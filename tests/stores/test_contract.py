"""The promises of a store, which Maven runs in Java against the real servers."""

import os
import shlex
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from pathlib import Path

from stores.faults import Fault, FaultProxy
from stores.hdfs import Hdfs
from stores.s3 import S3


def run(repository: Path, tests: dict[str, int], servers: dict[str, tuple[str, dict[str, str]]], jars: Sequence[Path] = ()) -> None:
    """Runs tests of Java, each with more cases than a number.

    They find `servers`, by name a URI and settings, by system properties: one of the name, and one for each setting.
    """
    properties = [f"-D{name}={uri}" for name, (uri, _) in servers.items()]
    properties += [f"-D{name}.{key}={value}" for name, (_, settings) in servers.items() for key, value in settings.items()]
    properties.append(f"-Dmaven.test.additionalClasspath={','.join(map(str, jars))}")
    maven = [*shlex.split(os.environ.get("MVN", "mvn -q -B")), "-f", str(repository / "jvm-shim" / "connector.xml")]
    ran = subprocess.run(
        [*maven, "surefire:test", f"-Dtest={','.join(tests)}", *properties], capture_output=True, text=True, timeout=540, check=False
    )
    assert ran.returncode == 0, ran.stdout[-8_000:]
    for test, cases in tests.items():
        report = ElementTree.parse(
            repository / "jvm-shim" / "target" / "surefire-reports" / f"TEST-io.sparklog.storage.{test}.xml"
        ).getroot()
        assert int(report.attrib["tests"]) - int(report.attrib["skipped"]) > cases, report.attrib


def test_the_contract_holds_in_hdfs(hdfs: Hdfs, repository: Path):
    run(repository, {"HdfsStoreTest": 20, "HdfsRequestsTest": 4}, {"stores.hdfs": (f"{hdfs.uri}/contract", hdfs.settings)})


def test_the_contract_holds_in_s3_by_few_requests_and_where_some_go_wrong(
    s3: S3, repository: Path, fault_proxy: Callable[[str], FaultProxy]
):
    """One in twenty does, in a way that the client may repeat: the server has not carried it out, or its answer is late."""
    jars = sorted((repository / ".tools" / "s3a").glob("*.jar"))
    assert jars, "run `make s3`"
    counting, faulty = fault_proxy(s3.endpoint), fault_proxy(s3.endpoint)
    faulty.inject_at_random(0.05, [Fault("cut"), Fault("answer", status=503), Fault("delay", seconds=0.1)], seed=28)
    servers = {
        "stores.s3": (f"s3a://{s3.bucket}/contract", s3.settings()),
        "stores.s3faults": (f"s3a://{s3.bucket}/contract-over-faults", s3.settings(faulty.endpoint)),
        "stores.s3proxy": (f"s3a://{s3.bucket}/requests", s3.settings(counting.endpoint)),
    }
    run(repository, {"S3StoreTest": 20, "S3OverFaultsTest": 20, "S3RequestsTest": 15, "S3ReadsTest": 0}, servers, jars)
    assert sum(request.fault is not None for request in faulty.requests) > 20
