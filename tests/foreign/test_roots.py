"""Programs that were written from docs/FORMAT.md alone agree with sparklog about roots of all kinds.

So the page says all that another program needs, and says nothing else than sparklog does.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from threading import Thread

import pytest
from foreign.batches import Refused
from foreign.key_reader import KeyReader, murmur2, murmur3
from foreign.kinds import by_hand, by_sparklog, publish
from foreign.record_reader import RecordReader
from foreign.three import answer, as_java, foreign, java, python
from foreign.writer import Record, Writer, chosen
from handmade import draw_seed, either
from logtool import LogTool

from sparklog import Log

KEYS = [b"k1", b"k4", b"k9", b"w3", b"", b"nowhere"]
MINE = [Record(b"mine", b"w%d" % number, headers=((b"a", None), (b"b", b"1"))) for number in range(20)]
MINE += [Record(None), Record(b"", b""), Record(b"last", b"\xff\0", 1_600_000_000_000), Record(b"placed", partition=0)]


@pytest.fixture(scope="module")
def roots(java_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, LogTool]:
    """Each is read only."""
    folder = tmp_path_factory.mktemp("roots")
    tools = {name: LogTool(java_classpath, folder / name) for name in ("by sparklog", "by hand")}
    by_sparklog(tools["by sparklog"])
    by_hand(Path(tools["by hand"].root))
    return tools


def copied(root: Path | str, to: Path) -> None:
    """With its hard links."""
    subprocess.run(["cp", "-a", root, to], check=True)


@pytest.mark.parametrize("made", ["by sparklog", "by hand"])
def test_three_readers_return_the_same_records(roots: dict[str, LogTool], made: str) -> None:
    tool = roots[made]
    topics = Log(tool.root).topics()
    assert RecordReader(tool.root).topics() == topics
    counted = 0
    for topic in topics:
        here = foreign(tool.root, topic)
        assert not isinstance(here, str), (topic, here)
        assert here == RecordReader(tool.root).read(topic) == python(tool.root, topic), topic
        assert as_java(here) == java(tool, topic), topic
        counted += len(here)
    print(f"{len(topics)} topics, {counted:,} records")


@pytest.mark.parametrize("made", ["by sparklog", "by hand"])
def test_key_readers_find_the_same_records(roots: dict[str, LogTool], made: str) -> None:
    root = roots[made].root
    log, reader = Log(root), KeyReader(root)
    for topic in log.topics():
        state = reader.newest(topic)
        for key in KEYS:
            found = reader.by_key(topic, key)
            assert sorted(found) == python(root, topic, key=key), (topic, key)
            if made == "by sparklog":
                assert sorted(found) == [row for row in reader.read(topic) if row.key == key], (topic, key)
            if (partition := reader.partition_for(state, key)) != 65_535:
                assert partition == log[topic].partition_for(key), (topic, key)


def test_hashes_and_the_choice_of_a_partition() -> None:
    """The examples of annex A and section A.7."""
    assert (murmur3(b"abc") - 2**32, murmur2(b"abc")) == (-1277324294, 479470107)
    assert [chosen([1, 1, 1], slot) for slot in range(8)] == [2, 2, 0, 1, 0, 1, 2, 0]


@pytest.mark.parametrize("made", ["by sparklog", "by hand"])
def test_commits_of_the_foreign_writer(roots: dict[str, LogTool], tmp_path: Path, made: str) -> None:
    """Three to each topic. All readers return their records, and `verify` finds nothing that it has not found before."""
    root = tmp_path / "root"
    copied(roots[made].root, root)
    tool = LogTool(roots[made].classpath, root)
    before = Counter(each.condition for each in Log(root).verify().findings)
    commits = 0
    for topic in Log(root).topics():
        if topic == "further":
            assert answer(lambda: Writer(root).append("further", MINE)) == "FORMAT_TOO_NEW"
            continue
        count = len(RecordReader(root).read(topic))
        for _ in range(3):
            Writer(root).append(topic, MINE)
            commits += 1
        here = foreign(root, topic)
        assert not isinstance(here, str), (topic, here)
        assert len(here) == count + 3 * len(MINE)
        assert here == python(root, topic), topic
        assert as_java(here) == java(tool, topic), topic
        assert [row.value for row in KeyReader(root).by_key(topic, b"w3")] == [b"mine"] * 3
    if made == "by sparklog":
        publish(tool)
    report = Log(root).verify()
    assert Counter(each.condition for each in report.findings) == (before if made == "by hand" else {}), report
    assert commits >= 50


def test_the_product_goes_on_after_the_foreign_writer(roots: dict[str, LogTool], tmp_path: Path) -> None:
    """A merge, a checkpoint, the Kafka view and a re-route over its versions."""
    root = tmp_path / "root"
    copied(roots["by sparklog"].root, root)
    tool = LogTool(roots["by sparklog"].classpath, root)
    for topic in ("plain", "rerouted", "bound"):
        partitions = len(RecordReader(root).newest(topic).ends)
        Writer(root).append(topic, MINE)
        tool.run("append", topic=topic, tag="N", partitions=partitions, commits=5, pace=3)
        tool.run("merge", topic=topic)
        tool.run("change", topic=topic, what="partitions", to=partitions + 2)
        Writer(root).append(topic, MINE)
        here = foreign(root, topic)
        assert here == python(root, topic)
        assert as_java(here) == java(tool, topic)
    publish(tool)
    report = Log(root).verify()
    assert report.ok, report


def test_beside_the_product(java_classpath: str, tmp_path: Path) -> None:
    """Two foreign writers and sparklog's, which merges and puts checkpoints, commit to one topic at the same time; readers read on."""
    tool, commits = LogTool(java_classpath, tmp_path / "root"), either(12, 120)
    tool.run("append", tag="J", partitions=3, placement="on_first_write")
    failed: list[BaseException] = []
    versions: list[int] = []
    unknown: list[Refused] = []

    def write(name: int) -> None:
        try:
            for number in range(commits):
                values = [Record(b"%d-%d-%d" % (name, number, each), b"m%d" % each) for each in range(5)]
                while True:
                    try:
                        versions.append(Writer(tool.root).append("t", values))
                        break
                    except Refused as refused:
                        # Another writer has bound a slot. The commit is not done: it is planned again.
                        if refused.id == "ROUTING_CHANGED":
                            continue
                        # Between the put and the look, sparklog has deleted the version before it (7.3). The records tell what happened.
                        if refused.id != "COMMIT_UNKNOWN":
                            raise
                        unknown.append(refused)
                        if values[0].value in [row.value for row in RecordReader(tool.root).read("t")]:
                            break
        except BaseException as error:
            failed.append(error)

    def read() -> None:
        try:
            before: list[object] = []
            for _ in range(commits // 2):
                rows = RecordReader(tool.root).read("t")
                assert set(before) <= set(rows)
                before = list(rows)
        except BaseException as error:
            failed.append(error)

    threads = [Thread(target=write, args=(1,)), Thread(target=write, args=(2,)), Thread(target=read)]
    for thread in threads:
        thread.start()
    tool.run(
        "append",
        tag="K",
        commits=2 * commits,
        records=5,
        partitions=3,
        merge=1 << 25,
        pace=7,
        placement="on_first_write",
        seed=draw_seed(),
        **{"file.delete.delay.ms": 0},
    )
    for thread in threads:
        thread.join()
    assert failed == []
    here = foreign(tool.root)
    assert not isinstance(here, str) and here == python(tool.root)
    assert as_java(here) == java(tool)
    mine = [row.value for row in here if (row.key or b"").startswith(b"m")]
    assert len(mine) == len(set(mine)) == 2 * commits * 5
    assert 2 * commits - len(unknown) <= len(set(versions)) == len(versions) <= 2 * commits
    assert len(here) == 10 * commits + 20 + 2 * commits * 10
    publish(tool)
    report = Log(tool.root).verify()
    # A foreign writer that slept through a clean-up put a version below the boundary, which counts for nothing: its outcome was unknown.
    late = [each for each in report.findings if each.severity == "garbage" and each.condition == "VERSION_CORRUPT"]
    assert report.findings == late[: len(unknown)] and not report.unread, report
