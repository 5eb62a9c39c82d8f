"""Checks segments with Kafka's own tools."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Checked:
    """The findings of Kafka's DumpLogSegments in segments: the numbers of batches and records, and every line that reports a fault."""

    batches: int
    records: int
    complaints: list[str]


def check_segments(kafka: str, segments: list[Path], records: int | None = None) -> Checked:
    """Runs Kafka's DumpLogSegments over segments (`.log` files with their indexes beside them): deep iteration and all index checks.

    `kafka` is a Java class path with Kafka's tools. `records`, if given, is the number of records that must be found. The tool reads
    copies, because it can shorten an index that it opens. Its output is parsed, because it exits with status 0 whatever it finds.
    """
    complaints: list[str] = []
    batches = found = 0
    with tempfile.TemporaryDirectory() as folder:
        copies = [_copied(segment, Path(folder)) for segment in segments]
        logs = ",".join(map(str, copies))
        indexes = ",".join(str(copy.with_suffix(kind)) for copy in copies for kind in (".index", ".timeindex"))
        # It must exceed the largest batch: the tool stops at a larger one.
        largest = str(max((segment.stat().st_size for segment in segments), default=0) + 1)
        for flags in (
            ["--deep-iteration", "--files", logs],
            ["--verify-index-only", "--files", indexes],
            ["--index-sanity-check", "--files", indexes],
        ):
            java = ["java", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", kafka]
            tool = [*java, "org.apache.kafka.tools.DumpLogSegments"]
            with (
                tempfile.TemporaryFile("w+") as errors,
                subprocess.Popen([*tool, "--max-message-size", largest, *flags], stdout=subprocess.PIPE, stderr=errors, text=True) as ran,
            ):
                assert ran.stdout
                for line in ran.stdout:  # A line a record: too many to keep.
                    line = line.rstrip("\n")
                    if line.startswith("baseOffset: "):
                        batches += 1
                        if not line.endswith("isvalid: true"):
                            complaints.append(line)
                    elif line.startswith("| offset: "):
                        found += 1
                    elif not re.match(r"Dumping |Log starting offset: \d+$|.* passed sanity check\.$|.* is empty\.$", line):
                        complaints.append(line)
                if ran.wait() != 0:
                    complaints.append(f"it exited with status {ran.returncode}")
                errors.seek(0)
                complaints += _complaints(errors.read())
    if records is not None and found != records:
        complaints.append(f"it found {found} records, not {records}")
    return Checked(batches, found, complaints)


def _copied(segment: Path, folder: Path) -> Path:
    target = folder / segment.parent.name / segment.name
    target.parent.mkdir(exist_ok=True)
    for kind in (".log", ".index", ".timeindex"):
        shutil.copyfile(segment.with_suffix(kind), target.with_suffix(kind))
    return target


def _complaints(errors: str) -> list[str]:
    """The lines of standard error that report a fault.

    For every segment that does not begin at offset 0, the tool reports that −1 is followed by the segment's base offset, since it starts
    from −1.
    """
    lines = [line for line in errors.splitlines() if line.strip() and not re.match(r"\s*-1 is followed by \d+", line)]
    return [] if all(line.startswith("Non-consecutive offsets in ") for line in lines) else lines
