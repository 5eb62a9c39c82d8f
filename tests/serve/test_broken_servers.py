"""Servers that are broken on purpose: the checks of the workload name each fault, and find no fault in servers that lose answers alone."""

import itertools
import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from handmade import seeded
from logtool import LogTool, put_into_jar
from serve.histories import Fault, Place, summary
from serve.workload import Fleet, Group, Producer, history, until

PLACES = [Place("t", partition) for partition in range(2)]
RUN_S = 8
PATIENCE_S = 120
"""On a busy machine a run may be too short for its fault."""
CATCH_UP_S = 20
COMPILED_S = 120
SELDOM = "io.sparklog.kit.OneInTwenty.isNow()"


class Edit(NamedTuple):
    """Java in a method of the server, and the Java that stands in its place."""

    method: str
    text: str
    other: str


class Break(NamedTuple):
    edit: Edit
    kind: str
    """The beginning of the kind of a fault that the history must have."""


LOST_ANSWER = Edit(
    "serve/records/ProduceHandler.told",
    "return answer.setBaseOffset(",
    f"if ({SELDOM}) {{ return answer.setErrorCode(Errors.REQUEST_TIMED_OUT.code()); }} return answer.setBaseOffset(",
)
"""A client sends the batch again. This is right: the outcome of a commit may be unknown."""

BREAKS = {
    "a batch is acknowledged before its commit fails": Break(
        Edit(
            "commits/GroupCommit.next",
            "return Optional.of(next);",
            f"settled(); if ({SELDOM}) {{ throw new IOException(); }} return Optional.of(next);",
        ),
        "lost",
    ),
    "a batch that is sent again is appended again": Break(
        Edit(
            "commits/GroupCommit.decision",
            "default -> { return decision; }",
            "default -> { return new Sequences.Decision(Sequences.Verdict.NEW, base); }",
        ),
        "doubled",
    ),
    "the batches of a commit are appended backwards": Break(
        Edit("commits/GroupCommit.plan", "placed.sort(", "java.util.Collections.reverse(placed); placed.sort("),
        "reordered",
    ),
    "a fetch skips a batch": Break(
        Edit(
            "serve/records/fetch/PartitionReads.read",
            "List<PartitionCursor.Batches> batches = cursor.next(bytesMax);",
            """List<PartitionCursor.Batches> first = cursor.next(1);
        List<PartitionCursor.Batches> batches = cursor.next(bytesMax);
        batches = batches.isEmpty() ? first : batches;""",
        ),
        "unseen",
    ),
    "a fetch is refused although its offset is there": Break(
        Edit("read/PartitionCursor.requireInRange", "position > state.end(partition)", f"position > state.end(partition) || {SELDOM}"),
        "non-monotonic poll",
    ),
}


def changed(classpath: str, folder: Path, *edits: Edit) -> str:
    """The class path with edits, each of another class."""
    connector = Path(__file__).parents[2] / "jvm-shim"
    for edit in edits:
        sources = (connector / "serve" if edit.method.startswith("serve/") else connector) / "src" / "main" / "java"
        command = ["java", f"-Dsparklog.sources={sources}", "-cp", classpath, "io.sparklog.kit.MutatedClasses", str(folder)]
        subprocess.run([*command, *edit], check=True, timeout=COMPILED_S)
    return f"{put_into_jar(folder, folder.with_suffix('.jar'))}{os.pathsep}{classpath}"


def faults(classpath: str, folder: Path, *edits: Edit) -> list[Fault]:
    """The faults that the checks find after some seconds of two servers, which lose answers and have the edits."""
    root, chance = folder / "root", seeded()
    LogTool(classpath, root).run("append", tag="first", topic="t", partitions=len(PLACES), kafka_view="none")
    with Fleet(changed(classpath, folder / "changed", LOST_ANSWER, *edits), root, 2) as fleet:
        producers = [Producer(fleet.addresses, f"p{number}", PLACES, 0.01, chance.randrange(2**32)) for number in range(3)]
        groups = [Group(fleet.addresses, "classic", "classic", ["t"], chance)]
        time.sleep(RUN_S)
        assert until(lambda: all(producer.acknowledged for producer in producers), PATIENCE_S), "the run shows nothing"
        sends = [send for producer in producers for send in producer.end()]
        found = history(root, ["t"], sends, groups, CATCH_UP_S)
    assert found.groups["classic"], "the run shows nothing"
    return found.faults()


@pytest.mark.slow
def test_servers_that_lose_answers_alone_have_no_fault(serve_classpath: str, tmp_path: Path) -> None:
    found = faults(serve_classpath, tmp_path)
    assert not found, summary(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", BREAKS)
def test_the_fault_of_a_broken_server_is_named(serve_classpath: str, tmp_path: Path, name: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    for number in itertools.count():
        (folder := tmp_path / str(number)).mkdir()
        found = faults(serve_classpath, folder, BREAKS[name].edit)
        print(summary(found))
        if any(fault.kind.startswith(BREAKS[name].kind) for fault in found):
            return
        assert time.monotonic() < deadline
