"""The integration tests of kafka-python, as its authors wrote them, at a server. `make kafka-python-suite` runs them.

A test of the suite that fails here must be in `EXPECTED`, with its reason, and a test there must fail. The page docs/reference/protocol.md
has the reasons.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import kafka

from sparklog.serve.process import Server

EXPECTED = {
    "test_create_describe_delete_acls": "ACLs do not exist. Rights belong to listeners.",
    "test_elect_leaders": "No partition has a leader that must be elected.",
    "test_alter_replica_log_dirs": "Replicas do not exist.",
    "test_describe_metadata_quorum": "A quorum does not exist.",
    "test_alter_partition_reassignments": "Replicas do not exist.",
    "test_list_partition_reassignments": "Replicas do not exist.",
    "test_transactional_producer_messages": "Transactions do not exist.",
    "test_transactional_producer_offsets": "Transactions do not exist.",
}
WITHOUT = ("test_sasl_integration.py", "test_ssl_integration.py")
"""These configure a broker of their own. The tests of this folder have passwords and TLS."""
SERVICE = """
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    close = open


SpawnedService = None
"""
"""A module that the suite imports and the archive lacks."""


def fetch(folder: Path) -> Path:
    """The folder of the source archive of the version that is installed."""
    named = f"kafka-python=={kafka.__version__}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(folder), named]
    subprocess.run(pip, check=True)
    [archive] = folder.glob("kafka_python-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    suite = folder / archive.name.removesuffix(".tar.gz")
    (suite / "test" / "__init__.py").touch()
    (suite / "test" / "service.py").write_text(SERVICE, encoding="utf-8")
    return suite


def outcomes(suite: Path, address: str, report: Path) -> dict[str, str]:
    """Runs the suite. For each test, how it ended: passed, failed or skipped."""
    environment = {"KAFKA_URI": f"kafka://{address}", "KAFKA_VERSION": "4.3", "KAFKA_ROOT": str(suite), "PYTHONPATH": str(suite)}
    pytest = [sys.executable, "-m", "pytest", "-q", "--tb=short", "--show-capture=no", "-p", "no:cacheprovider", "--timeout", "200"]
    left_out = [f"--ignore=test/integration/{name}" for name in WITHOUT]
    command = [*pytest, *left_out, "--junitxml", str(report), "test/integration"]
    subprocess.run(command, cwd=suite, env=os.environ | environment, timeout=1_800, check=False)
    kinds = {"failure": "failed", "error": "failed", "skipped": "skipped"}
    cases = ElementTree.parse(report).iter("testcase")
    return {case.get("name", ""): next((kinds[child.tag] for child in case if child.tag in kinds), "passed") for case in cases}


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        suite = fetch(folder)
        # The suite has members with a session timeout of 3 s.
        settings = ("--listen", "127.0.0.1:0", "group.min.session.timeout.ms=1000")
        with Server(str(folder / "root"), settings) as server:
            found = outcomes(suite, server.address, folder / "report.xml")
    failed = {test for test, outcome in found.items() if outcome == "failed"}
    for test in sorted(failed & EXPECTED.keys()):
        print(f"{test} fails: {EXPECTED[test]}")
    wrong = [f"{test} fails, and no reason is known" for test in sorted(failed - EXPECTED.keys())]
    wrong += [f"{test} passes, or does not exist: remove its reason" for test in sorted(EXPECTED.keys() - failed)]
    print("\n".join(wrong))
    print(f"{sum(outcome == 'passed' for outcome in found.values())} passed, {len(failed)} failed")
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main())
