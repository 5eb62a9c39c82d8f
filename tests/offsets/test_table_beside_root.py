"""A table lies outside of every root, and no root in a table: neither must find files of the other."""

import os
from pathlib import Path

import pytest
from handmade import sample

import sparklog
from sparklog.offsets import OffsetTable, write_delta


@pytest.fixture
def links(topic, tmp_path: Path) -> Path:
    """A folder with links to a root and into it, and the root of another log beside it."""
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "to-root").symlink_to(topic.root)
    (folder / "into-root").symlink_to(topic.root / "_partlog")
    (folder / "up").symlink_to(tmp_path)
    sample(tmp_path / "other")
    (topic.root / "out").symlink_to(tmp_path / "elsewhere")
    return folder


def test_a_table_in_a_root_is_refused(topic, tmp_path, links):
    root = topic.root
    for path in (
        root,
        root / "offsets",
        root / "_partlog" / "offsets",
        f"file:{root}/offsets",
        links / "to-root" / "offsets",
        links / "into-root" / "offsets",
        links / "up" / "root" / "x" / "offsets",
        tmp_path / "x" / ".." / "root" / "offsets",
        root / "out",
        tmp_path / "other" / "offsets",
        tmp_path,  # the root is in it
        links / "up",
    ):
        for opened in (root, links / "to-root"):
            calls = [
                lambda path=path, opened=opened: OffsetTable(path, opened),
                lambda path=path, opened=opened: sparklog.Consumer(opened, "t", group="g", table=path),
                lambda path=path, opened=opened: write_delta(
                    path=tmp_path / "out", table=path, root=opened, checkpoint=tmp_path / "c", group="g"
                ),
            ]
            for call in calls:
                with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_IN_ROOT"):
                    call()
    with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_IN_ROOT"):
        OffsetTable(root / "offsets")
    assert not list(tmp_path.rglob("_delta_log"))


def test_a_table_beside_a_root_is_not(topic, tmp_path, links, monkeypatch):
    for path in (tmp_path / "root-offsets", tmp_path / "rootoffsets", links / "offsets", links / "up" / "offsets"):
        OffsetTable(path, topic.root).begin("g")
        assert OffsetTable(path).groups() == ["g"]
    monkeypatch.chdir(topic.root)
    OffsetTable(os.path.join("..", "by-name"), topic.root).begin("g")  # noqa: PTH118 # as a user writes it
    assert (tmp_path / "by-name" / "_delta_log").is_dir()
    with pytest.raises(sparklog.CallError, match=rf"for example in {topic.root}-offsets: "):
        OffsetTable("offsets", topic.root)
