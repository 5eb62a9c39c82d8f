"""`make test`, `make test-slow` and `make full`: the tests of Python, and beside them those of Java, whose output waits in a file.

The first argument is the tier: `quick`, `slow` for the tests that are marked so in either language, or `full` for both in one run, which
starts and collects once. The others are arguments of pytest.
The last lines say what failed, and the very last one how the whole ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import machine

TIERS = {
    "quick": ("not slow and not soak", "-DexcludedGroups=slow"),
    "slow": ("slow and not soak", "-Dgroups=slow"),
    "full": ("not soak", ""),
}
"""The marks that pytest selects, and the tags that Maven selects."""
LINE_CHARACTERS = 300
LAST_LINES = 30


@dataclass(frozen=True)
class Report:
    """The tests that failed or were skipped, from JUnit's XML."""

    failed: tuple[str, ...]
    """A line of each: its name, and the first line of what it said."""
    skipped: tuple[str, ...]
    """The reason of each."""

    @classmethod
    def of(cls, files: Iterable[Path]) -> Report:
        failed, skipped = [], []
        for file in files:
            for case in ElementTree.parse(file).iter("testcase"):
                for child in case:
                    said = next(iter((child.get("message") or child.text or "").strip().splitlines()), "")
                    if child.tag in ("failure", "error"):
                        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
                        failed.append(f"FAILED {name}: {said}"[:LINE_CHARACTERS])
                    elif child.tag == "skipped" and child.get("type") != "pytest.xfail":
                        skipped.append(said)
        return cls(tuple(failed), tuple(skipped))


def run(java: list[str], log: Path, java_reports: Path, pytest: list[str], python_report: Path) -> int:
    """Runs both; 0 if both passed, 130 if the user interrupted them, else 1.

    `java` must end with a line that says how many tests passed; its output goes to `log`, and its reports into a folder.
    """
    log.parent.mkdir(exist_ok=True)
    python_report.unlink(missing_ok=True)
    # Ctrl+C reaches pytest by itself, which ends in order; unlike SIG_IGN, a handler is not inherited by it.
    interrupts: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with log.open("w") as out:
        beside = subprocess.Popen(java, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    try:
        with subprocess.Popen(pytest) as ahead:
            try:
                python_status = ahead.wait()
            finally:
                ahead.terminate()
        signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
        if interrupts:
            return 130
        java_status = beside.wait()
    finally:
        if beside.poll() is None:
            os.killpg(beside.pid, signal.SIGTERM)
            beside.wait()
    return tell(python_status, python_report, java_status, log, java_reports)


def tell(python_status: int, python_report: Path, java_status: int, log: Path, java_reports: Path) -> int:
    """Prints how it ended; the status of the whole."""
    python = Report.of([python_report] if python_report.exists() else [])
    java = Report.of(sorted(java_reports.glob("*.xml")) if java_status else [])
    lines = log.read_text(errors="replace").splitlines()
    if java_status:
        print(
            f"Java tests that failed; all that they said is in {log}:" if java.failed else f"The Java tests did not end; {log} ends with:"
        )
        for line in java.failed or lines[-LAST_LINES:]:
            print(f"  {line}")
    else:
        print("".join(lines[-1:]))
    ended = [_ended("Python", python_status, python.failed), _ended("Java", java_status, java.failed)]
    failed = ", ".join(each for each in ended if each)
    skipped = [f"{count} skipped: {reason}" for reason, count in Counter(python.skipped).most_common()]
    print("; ".join([f"FAILED: {failed}" if failed else "All tests passed", *skipped]), flush=True)
    return 1 if failed else 0


def _ended(language: str, status: int, failed: Sequence[str]) -> str:
    if status == 0:
        return ""
    return f"{len(failed)} in {language}" if failed else f"{language} ended with status {status}"


def main(tier: str, *given: str) -> int:
    os.environ.update(machine.temporary_folders())
    tools = Path(".tools")
    report = tools / "pytest.xml"
    marks, tags = TIERS[tier]
    lanes = ["--numprocesses", "6" if tier == "quick" else "2", "--dist", "loadscope"]
    pytest = [sys.executable, "-m", "pytest", "-m", marks, *lanes, "--junitxml", str(report), *given]
    java = ["make", "--no-print-directory", "jvm-test", f"JVM_ARGS={tags}"]
    return run(java, tools / "jvm-test.log", Path("jvm-shim/target/surefire-reports"), pytest, report)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
