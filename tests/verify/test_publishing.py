"""Files of a new commit that the Kafka view lacks are looked at for a while, and then reported with advice to wait."""

import time
from pathlib import Path

import pytest
from handmade import batches, identity, records, stamped
from logtool import LogTool
from planting import Unrouted, publish

from sparklog import Log
from sparklog.ondisk.root import Root
from sparklog.verify import verify


def now(seconds: int = 0) -> int:
    return int(time.time() * 1000) + seconds * 1000


def said(root: Path) -> list[tuple[str, str | None, bool]]:
    """The faults, and whether a writer may be at work on them."""
    findings = verify(Root.at(str(root)), jobs=1, settles_s=()).findings
    return [(each.condition, each.file, each.fix.startswith("verify again in a minute")) for each in findings]


def missing(base: int, at_work: bool) -> list[tuple[str, str, bool]]:
    return [("VIEW_MISSING", f"t-0/{base:020d}{suffix}", at_work) for suffix in (".index", ".log", ".timeindex")]


@pytest.mark.parametrize("age", [-50, 0, 50])
def test_a_commit_that_is_not_in_the_view(tmp_path: Path, age: int) -> None:
    topic = Unrouted(tmp_path)
    topic.append(records(3))
    publish(topic, batches(records(3)), 0)
    topic.append(records(4))
    topic.commit(topic.data(batches(records(2))), time=now(-age))
    assert said(tmp_path) == [*missing(3, False), *missing(7, True)], "the writer of the one before is done, or has died"
    publish(topic, stamped(batches(records(2)), 7), 7)
    assert said(tmp_path) == missing(3, False)


def test_a_view_that_lags_is_no_damage(tmp_path: Path) -> None:
    """A writer that does not publish, beside one that did. A topic of such a writer alone has no view, and nothing is wrong."""
    for name in ("t", "alone"):
        topic = Unrouted(tmp_path, name)
        topic.append(records(3))
        topic.append(records(4))
    publish(Unrouted(tmp_path), batches(records(3)), 0)
    report = verify(Root.at(str(tmp_path)), jobs=1, settles_s=())
    assert {(each.severity, each.topic) for each in report.findings} == {("repairable", "t")}
    assert (report.summary(), report.status) == ("3 repairable", 1)


@pytest.mark.parametrize("age", [-70, 70])
def test_an_older_commit(tmp_path: Path, age: int) -> None:
    topic = Unrouted(tmp_path)
    topic.append(records(3))
    publish(topic, batches(records(3)), 0)
    topic.commit(topic.data(batches(records(2))), time=now(-age))
    assert said(tmp_path) == missing(3, False)


def test_a_merge_that_is_not_in_the_view(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    segments = [topic.append(records(size)) for size in (3, 4, 5)]
    octets = [batches(records(3)), stamped(batches(records(4)), 3), stamped(batches(records(5)), 7)]
    for segment, bytes_ in zip(segments, octets, strict=True):
        publish(topic, bytes_, segment["base"])
    merged = topic.data(octets[0] + octets[1], base=0, end=7)
    topic.commit(merged, operation="merge", removed=segments[:2], time=now())
    # A shorter `.log` and another `.timeindex` at offset 0, and three files of the segment at offset 3.
    of_merge = said(tmp_path)
    assert len(of_merge) == 5
    assert all(at_work for _, _, at_work in of_merge)
    index = tmp_path / "t-0" / f"{7:020d}.index"
    index.write_bytes(b"12345678")
    other = ("INDEX_WRONG", "t-0/00000000000000000007.index", False)
    assert sorted(said(tmp_path), key=str) == sorted([*of_merge, other], key=str), "the merge does not touch that one"


@pytest.mark.parametrize(("age", "at_work"), [(0, True), (70, False)])
def test_a_deletion_that_is_not_done(tmp_path: Path, age: int, at_work: bool) -> None:
    topic = Unrouted(tmp_path)
    topic.append(records(3))
    publish(topic, batches(records(3)), 0)
    topic.put(topic.deletion(time=now(-age)))
    of_deletion = {(condition, told) for condition, _, told in said(tmp_path) if condition != "CHECKPOINT_MISSING"}
    assert of_deletion == {("VIEW_STRAY", at_work), ("MARKER_MISSING", at_work)}


@pytest.mark.parametrize(("age", "at_work"), [(0, True), (70, False)])
def test_a_vacuum_that_is_not_done(tmp_path: Path, age: int, at_work: bool) -> None:
    topic = Unrouted(tmp_path)
    topic.append(records(3))
    orphan = topic.folder / f"data/{0:020d}-{identity('somebody')}/t3-4.log"
    orphan.parent.mkdir()
    orphan.touch()
    topic.commit(operation="vacuum", horizon=1, time=now(-age))
    topic.commit(topic.data(batches(records(2))), time=now())
    assert said(tmp_path) == [("ORPHAN", str(orphan.relative_to(tmp_path)), at_work)]


@pytest.mark.slow
def test_a_writer_that_stands_still(tool: LogTool, tmp_path: Path) -> None:
    release = tmp_path / "release"
    tool.run("append", tag="A")
    writer = tool.start("append", tag="B", stop="publish.log:pause", release=release)
    try:
        log = Log(tool.root)
        while log["t"].commits(1)[-1].version < 1:
            time.sleep(0.05)
        findings = log.verify().findings
        assert {each.condition for each in findings} == {"VIEW_MISSING"}
        assert all("at work" in each.fix for each in findings)
    finally:
        release.touch()
        writer.communicate(timeout=300)
    assert log.verify().ok


def test_a_writer_that_takes_some_seconds(tool: LogTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit in motion is looked at again, and is not a fault if it is done by then."""
    release = tmp_path / "release"
    tool.run("append", tag="A")
    writer = tool.start("append", tag="B", stop="publish.log:pause", release=release)
    slept = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            release.touch()
            writer.communicate(timeout=300)

    try:
        log = Log(tool.root)
        while log["t"].commits(1)[-1].version < 1:
            time.sleep(0.05)
        monkeypatch.setattr("sparklog.verify.run.time.sleep", sleep)
        assert log.verify().ok
        assert len(slept) >= 3
    finally:
        release.touch()
        writer.communicate(timeout=300)
