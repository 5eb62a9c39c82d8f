"""Programs of this release read or leave alone all that a later release may add to a root. FORMAT.md sections 1.1, 2 and 4.3."""

import re
import struct
from pathlib import Path
from typing import Any

import pytest
from handmade import Topic, batch, batches, records
from logtool import LogTool
from planting import checked

from sparklog import Log, SparklogError

SHARED = "_shared/7/a.log"


def shared(root: Path, name: str = SHARED, topics: tuple[str, ...] = ("t", "u"), **config: str) -> list[Topic]:
    """Topics with two segments each in one file, which has other bytes before, between and behind these."""
    file = root / SHARED
    file.parent.mkdir(parents=True)
    found = []
    with file.open("wb") as out:
        for each in topics:
            topic = Topic(root, each, config=config)
            for tag in "ab":
                out.write(b"other")
                octets = batches(records(3, f"{each}{tag}"), records(2, f"{each}{tag}-"))
                segment = topic.data(octets) | {"file": name, "position": out.tell()}
                out.write(octets)
                (topic.folder / topic.data(b"")["file"]).unlink()
                topic.commit(segment)
            found.append(topic)
        out.write(b"other")
    return found


def values(root: Path, topic: str) -> list[str]:
    return [each.decode() for each in Log(root)[topic].read()["value"].to_pylist()]


def test_shared_data_files_are_read(tool: LogTool) -> None:
    shared(tool.root)
    for topic in ("t", "u"):
        expected = [f"{topic}{tag}{dash}-{number}" for tag in "ab" for dash, count in (("", 3), ("-", 2)) for number in range(count)]
        assert values(tool.root, topic) == expected
        assert [row.split(" ")[2] for row in tool.run("read", topic=topic)[:-1]] == expected
    assert checked(tool.root).findings == []
    assert Log(tool.root)["t"].segments()[0].file == SHARED


def test_no_program_of_this_release_changes_shared_data_files(tool: LogTool) -> None:
    """Neither a merge, nor expired records, nor a vacuum, nor the deletion of a topic."""
    shared(tool.root, **{"file.delete.delay.ms": "0"})
    before = (tool.root / SHARED).read_bytes()
    expected = {topic: values(tool.root, topic) for topic in "tu"}
    tool.run("publish")
    copy = tool.root / f"t-0/{0:020d}.log"
    assert copy.stat().st_ino != (tool.root / SHARED).stat().st_ino and copy.stat().st_nlink == 1
    assert {each.topic for each in checked(tool.root).findings} <= {"u"}, "only the view of the other topic is missing"
    tool.run("merge", rebatch=1 << 20)
    assert values(tool.root, "t") == expected["t"]
    assert Log(tool.root)["t"].segments()[0].file != SHARED
    tool.run("vacuum", clock=2)
    tool.run("change", what="records", topic="u", offsets="0:5")
    tool.run("vacuum", topic="u", clock=2)
    tool.run("append", topic="u", tag="A", tasks=1, records=1, partitions=1)
    for topic in "tu":
        tool.run("change", what="delete", topic=topic)
    assert (tool.root / SHARED).read_bytes() == before


@pytest.mark.parametrize(
    "name",
    [
        "_shared/a.log",
        "_shared/a/b/c.log",
        "_shared/../t.log",
        "_shared/a/..",
        "_shared/./a.log",
        "_shared/.a/a.log",
        "_shared//a.log",
        "_shared/a/",
        "/_shared/a/a.log",
        "data/../_shared/a/a.log",
        "_shared/a\\b/a.log",
        "_shared/a/é.log",
        "_shared/a/" + "b" * 129,
        "_Shared/a/a.log",
    ],
)
def test_no_other_name_leads_out_of_the_topic(tool: LogTool, name: str) -> None:
    shared(tool.root, name, ("t",))
    assert "PARTLOG_VERSION_CORRUPT" in tool.failure("read")
    with pytest.raises(SparklogError, match="PARTLOG_VERSION_CORRUPT"):
        Log(tool.root)["t"].read()


def test_metadata_of_other_programs_stays(tool: LogTool) -> None:
    tool.run("append", tag="A", tasks=1, partitions=1)
    folder = tool.root / "_partlog/t/ext"
    (folder / "more").mkdir(parents=True)
    for name in ("notes.json", "00000000000000000007.json", "more/p0-t0-0-0.log"):
        (folder / name).write_text("other")
    before = sorted(folder.rglob("*"))
    assert checked(tool.root).findings == []
    tool.run("vacuum", clock=2)
    tool.run("append", tag="B", tasks=1, partitions=1)
    tool.run("change", what="delete")
    tool.run("append", tag="C", tasks=1, partitions=1)
    assert sorted(folder.rglob("*")) == before
    assert checked(tool.root).findings == []


@pytest.mark.parametrize("name", ["pool.log", "p0-t0-0-0.log"])
def test_bytes_behind_an_index_are_ignored(tool: LogTool, name: str) -> None:
    topic = Topic(tool.root)
    one = [batch(records(1, str(number)), number) for number in range(9)]
    index = struct.pack(">ii", 8, 8 * len(one[0]))
    segment: dict[str, Any] = topic.data(b"".join(one), name=name, index=len(index))
    with (topic.folder / segment["file"]).open("ab") as out:
        out.write(index + b"more of a later release")
    topic.commit(segment)
    assert len(values(tool.root, "t")) == len(tool.run("read")) - 1 == 9
    assert {each.severity for each in checked(tool.root).findings} <= {"repairable"}, "the index is not that of our writers"


@pytest.mark.parametrize(
    "more", [b"more", b"more\n", b"[]\t00000000\n", b"x" * (5 << 10)], ids=["a part of a line", "a line", "an array", "a long line"]
)
def test_bytes_behind_the_last_line_of_a_checkpoint_are_ignored(tool: LogTool, more: bytes) -> None:
    topic = Topic(tool.root)
    for boundary in (0, 0, 2):
        topic.commit(topic.data(batch(records(2))), boundary=boundary)
    path = topic.checkpoint()
    for version in range(2):
        topic.version_file(version).unlink()
    with path.open("ab") as out:
        out.write(more)
    assert len(values(tool.root, "t")) == len(tool.run("read")) - 1 == 6


def reserved() -> dict[str, str]:
    """The features that the page reserves for later releases, and whom each binds."""
    page = (Path(__file__).parents[2] / "docs/FORMAT.md").read_text(encoding="utf-8")
    table = page.partition("These names of features are reserved:")[2].partition("\n\n##")[0]
    return dict(re.findall(r"(?m)^\| `([a-z0-9.-]+)` \| `(\w+)` \|", table))


def test_the_reserved_features_are_refused_by_name(tool: LogTool) -> None:
    assert set(reserved()) == {"transactions", "compaction", "stored", "shared-objects"}
    for name, binds in reserved().items():
        topic = Topic(tool.root, name, features=[{"name": name, "binds": binds}])
        topic.append(records(2))
        if binds == "readers":
            assert "PARTLOG_FORMAT_TOO_NEW" in (said := tool.failure("read", topic=name)) and name in said
            with pytest.raises(SparklogError, match=f"PARTLOG_FORMAT_TOO_NEW.*{name}"):
                values(tool.root, name)
        else:
            assert len(values(tool.root, name)) == len(tool.run("read", topic=name)) - 1 == 2
        said = tool.failure("append", topic=name, tag="A", tasks=1)
        assert "PARTLOG_FORMAT_TOO_NEW" in said and name in said
