"""Files that no version names, topics beside damaged ones, and what is not where it belongs, on roots that are written by hand."""

import os
import time
from pathlib import Path

import pytest
from handmade import batch, batches, identity, records, stamped
from planting import Unrouted, checked, found, only, publish

from sparklog import Log
from sparklog.ondisk.root import Root
from sparklog.verify import verify


def test_horizon_and_orphans(tmp_path: Path) -> None:
    """A file that no version names is garbage only where no writer can commit it any more."""
    topic = Unrouted(tmp_path)
    for _ in range(3):
        topic.append(records(2))

    def orphan(version: int) -> Path:
        path = topic.folder / f"data/{version:020d}-{identity('somebody')}/t3-4.log"
        path.parent.mkdir()
        path.write_bytes(b"123")
        return path

    paths = [orphan(version) for version in (0, 1, 3)]
    report = checked(tmp_path)
    assert report.ok
    assert [(each.what, each.files, each.bytes) for each in report.waiting if each.what == "unnamed"] == [("unnamed", 3, 9)]
    topic.commit(operation="vacuum", horizon=1)
    assert [each.file for each in checked(tmp_path).findings] == [str(paths[0].relative_to(tmp_path))]
    late = orphan(5)
    fixes = {each.file: each.fix for each in checked(tmp_path).findings}
    assert fixes.keys() == {str(path.relative_to(tmp_path)) for path in (paths[0], late)}
    assert "partlog.vacuum" in fixes[str(paths[0].relative_to(tmp_path))]
    assert "if version 4 was ever committed" in fixes[str(late.relative_to(tmp_path))], "vacuum leaves it"


def test_what_waits_for_its_deletion(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path, starts=[70])
    first, second = topic.append(records(5)), topic.append(records(3))
    pieces = [topic.data_file(0).read_bytes(), topic.data_file(1).read_bytes()]
    merged = topic.data(stamped(b"".join(pieces), 70, 75), base=70, end=78)
    topic.commit(merged, operation="merge", removed=[first, second])
    assert [(each.what, each.files) for each in checked(tmp_path).waiting if each.what != "view"] == [("removed", 2)]
    assert found(tmp_path) == []
    topic.data_file(2).write_bytes(stamped(b"".join(pieces), 70, 5))
    assert found(tmp_path) == [("repairable", "STAMP_WRONG")], "a merged segment has absolute offsets throughout"
    topic.data_file(0).unlink()
    assert "SEGMENT_MISSING" not in {condition for _, condition in found(tmp_path)}


@pytest.mark.parametrize(("hours", "expected"), [(23.9, []), (24.1, [("garbage", "LEFTOVER")])])
def test_a_temporary_file_may_be_a_day_old(tmp_path: Path, hours: float, expected: list[tuple[str, str]]) -> None:
    topic = Unrouted(tmp_path)
    topic.append(records(5))
    file = topic.folder / "tmp" / "left"
    file.parent.mkdir()
    file.touch()
    os.utime(file, (0, time.time() - hours * 3600))
    assert found(tmp_path) == expected
    assert [each.what for each in checked(tmp_path).waiting] == (["view"] if expected else ["temporary", "view"])


def test_two_segments_of_the_same_bytes(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    segment = topic.append(records(5))
    topic.commit(segment | {"base": 5, "end": 10})
    assert found(tmp_path) == [("damage", "SEGMENT_TWICE")]


def test_an_epoch_that_is_there_twice(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    for epoch in (1, 2, 2):
        topic.commit(topic.data(batch(records(2))), query={"id": "q", "epoch": epoch, "input": None})
    finding = only(tmp_path)
    assert (finding.condition, finding.file) == ("EPOCH_TWICE", "_partlog/t/00000000000000000002.json")


def test_a_damaged_topic_among_good_ones(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        topic = Unrouted(tmp_path, name)
        for _ in range(3):
            topic.append(records(4))
    broken = Unrouted(tmp_path, "b")
    broken.version_file(1).write_bytes(b"{}")
    data = next((tmp_path / "_partlog/b/data").glob("*2-*/*"))
    data.write_bytes(data.read_bytes()[:-1] + b"?")
    report = checked(tmp_path)
    assert {each.topic for each in report.findings} == {"b"}
    assert {each.condition for each in report.findings} == {"VERSION_CORRUPT", "BATCH_CORRUPT"}, "its data is checked too"
    assert report.checked.segments == 8, "those of version 1 are not known"


def test_several_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(70):
        topic = Unrouted(tmp_path, f"t{number}")
        for _ in range(16):
            topic.append(records(2))
    (tmp_path / "_partlog/t7").joinpath(f"{3:020d}.json").write_bytes(b"")
    alone, together = (verify(Root.at(str(tmp_path)), jobs=jobs, settles_s=()) for jobs in (1, 3))
    assert alone.findings == together.findings != []
    assert alone.checked == together.checked
    calls: list[tuple[int, int]] = []
    Log(tmp_path).verify(["t1", "t2"], progress=lambda done, total: calls.append((done, total)))
    assert calls[0][0] == 0 and calls[-1][0] == calls[-1][1] > 0


def test_a_second_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault that is gone at the second look is not reported; one that is there both times is."""
    topic = Unrouted(tmp_path)
    for _ in range(2):
        topic.append(records(4))
    for version in (0, 1):
        topic.data_file(version).rename(f"{topic.data_file(version)}-")
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if topic.data_file(0).with_name("pool.log-").exists():
            topic.data_file(0).with_name("pool.log-").rename(topic.data_file(0))

    monkeypatch.setattr(time, "sleep", sleep)
    findings = [each for each in Log(tmp_path).verify().findings if each.condition == "SEGMENT_MISSING"]
    assert [each.offset for each in findings] == [4]
    assert len(slept) > 1


def test_what_is_committed_between_looks_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that has moved is looked at once more, with what is new in it."""
    topic = Unrouted(tmp_path)
    topic.append(records(4))
    topic.data_file(0).unlink()

    def sleep(seconds: float) -> None:
        if len(topic.versions) == 1:
            topic.append(records(4))
            topic.data_file(1).write_bytes(b"")

    monkeypatch.setattr(time, "sleep", sleep)
    findings = Log(tmp_path).verify().findings
    assert {(each.condition, each.offset) for each in findings} == {
        ("SEGMENT_MISSING", 0),
        ("SEGMENT_CORRUPT", 4),
        ("BATCH_CORRUPT", 4),
    }


def test_a_view_of_the_topic_before(tmp_path: Path) -> None:
    """A file beyond the end was committed and is lost, unless it is of a deleted topic, whose view was not emptied so far."""
    topic = Unrouted(tmp_path)
    topic.append(records(3))
    topic.append(records(4))
    lost = topic.version_file(1).read_bytes()
    publish(topic, batches(records(3)), 0)
    publish(topic, stamped(batches(records(4)), 3), 3)
    assert found(tmp_path) == []
    topic.version_file(1).unlink()
    assert ("damage", "COMMIT_LOST") in found(tmp_path)
    topic.version_file(1).write_bytes(lost)
    topic.delete()
    assert set(found(tmp_path)) == {("repairable", "VIEW_STRAY")}
    topic.append(records(1))
    assert {condition for _, condition in found(tmp_path)} == {"VIEW_STRAY", "VIEW_WRONG", "INDEX_WRONG"}


def test_a_topic_whose_versions_are_all_gone(tmp_path: Path) -> None:
    """Its data files say that the view is its own, and not that of another program."""
    topic = Unrouted(tmp_path)
    publish(topic, batches(records(3)), 0)
    (topic.folder / "tmp").mkdir(parents=True)
    assert checked(tmp_path).ok, "another program's: no writer has written to the topic"
    for size in (3, 4):
        topic.append(records(size))
    publish(topic, stamped(batches(records(4)), 3), 3)
    (tmp_path / "t-0" / f"{9:020d}.log").write_bytes(b"what nobody has published")
    for version in (0, 1):
        topic.version_file(version).unlink()
    findings = checked(tmp_path).findings
    assert [(each.severity, each.condition, each.partition, each.offset) for each in findings] == [
        ("damage", "COMMIT_LOST", 0, 0),
        ("damage", "COMMIT_LOST", 0, 3),
    ]
    assert [(each.what, each.files) for each in checked(tmp_path).waiting] == [("unnamed", 2)]


def test_names_that_could_harm_a_terminal(tmp_path: Path) -> None:
    """Every name is told in words that a terminal shows as they are."""
    topic = Unrouted(tmp_path)
    topic.append(records(3))
    (tmp_path / "t-0").mkdir()
    (topic.folder / "tmp").mkdir()
    folders = (topic.folder, topic.folder / "data", topic.data_file(0).parent, tmp_path / "_partlog")
    for folder in (*folders, topic.folder / "tmp", tmp_path / "t-0"):
        for name in (b"a\nb", b"\x1b[31mred", b"\xff\xfe", "\u202eevil".encode(), b"x" * 255, b"00000000000000000000.json\n"):
            (folder / os.fsdecode(name)).touch()
    report = checked(tmp_path)
    said = str(report)
    assert not [each for each in said if not each.isprintable() and each != "\n"]
    assert len(said.splitlines()) == 4 * len(report.findings) + 1 + len(report.about()) + len(report.findings)
    assert report.json().isascii()
    assert {each.condition for each in report.findings} == {"UNKNOWN_FILE", "VIEW_MISSING"}
    assert len([each for each in report.findings if each.condition == "UNKNOWN_FILE"]) == 6 * len(folders)


def test_folders_of_another_kind(tmp_path: Path) -> None:
    Unrouted(tmp_path / "a").append(records(3))
    for kind in ("link", "file"):
        for place in ("_partlog", "_partlog/t", "_partlog/t/data", "_partlog/t/data/*", "t-0"):
            root = tmp_path / f"{kind}-{place.replace('/', '-').replace('*', 'x')}"
            topic = Unrouted(root)
            segment = topic.append(records(3))
            (root / "t-0").mkdir()
            [path] = root.glob(place)
            path.rename(tmp_path / f"moved-{root.name}")
            if kind == "file":
                path.write_bytes(b"")
            else:
                path.symlink_to(tmp_path / f"moved-{root.name}")
            findings = checked(root).findings
            named = {each.file for each in findings}
            assert named & {str(path.relative_to(root)), f"_partlog/t/{segment['file']}"}, (root.name, findings)
            expected = {"t-0": "repairable"}.get(place, "garbage" if (kind, place) == ("file", "_partlog/t") else "damage")
            assert expected in {each.severity for each in findings}, (root.name, findings)


def test_what_may_not_be_read(tmp_path: Path) -> None:
    """Another user asks, as an administrator may read everything. The rest is still checked."""
    for name in ("a", "b", "c", "d"):
        topic = Unrouted(tmp_path, name)
        topic.append(records(3))
    (tmp_path / "_partlog/a" / f"{0:020d}.json").chmod(0)
    next((tmp_path / "_partlog/b/data").glob("*/*.log")).chmod(0)
    (tmp_path / "_partlog/c").chmod(0)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder.name.startswith(("pytest", "popen", tmp_path.name)):
            folder.chmod(0o755)
    before = os.geteuid()
    seen = []
    try:
        for mode in (0o755, 0o311):
            tmp_path.chmod(mode)
            if before == 0:
                os.seteuid(65534)
            seen.append(checked(tmp_path))
            os.seteuid(before)
    finally:
        os.seteuid(before)
        tmp_path.chmod(0o755)
        (tmp_path / "_partlog/c").chmod(0o755)
    (readable, unlisted) = seen
    assert readable.findings == unlisted.findings == [], "nothing is known of what was not read"
    assert [(each.topic, each.what) for each in readable.unread] == [("a", "version"), ("b", "segment"), ("c", "folder")]
    assert unlisted.unread == [unlisted.unread[0], *readable.unread], "what has a name that is known is checked nevertheless"
    assert (unlisted.unread[0].topic, unlisted.unread[0].file) == (None, ".")
    assert (readable.ok, readable.status) == (False, 6)
    assert readable.summary() == "could not be checked: 1 folder, 1 version, 1 segment"
