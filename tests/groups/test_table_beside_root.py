"""A table lies outside of every root, and no root in a table: neither must find files of the other."""

import os
from pathlib import Path

import pyarrow as pa
import pytest
from handmade import sample
from owners import Own
from shutting import shut

import sparklog
from sparklog.consumer import DeltaOutput
from sparklog.groups import OffsetTable, write_delta
from sparklog.groups.table import places
from sparklog.ondisk.root import Root


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


def consumer(root: Path) -> sparklog.Consumer:
    """It begins its generation, so the offset table is made."""
    given = {"enable_auto_commit": False, "partition_assignment_strategy": "exclusive"}
    return sparklog.Consumer(root, "t", group_id="g", table=root.resolve().parent / "offsets", **given)


def test_a_table_in_a_root_is_refused(topic, tmp_path, links):
    """A table of offsets or of output: its VACUUM deletes files in its folder that it does not know."""
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
                lambda path=path, opened=opened: OffsetTable(opened, path),
                lambda path=path, opened=opened: sparklog.Consumer(opened, "t", group_id="g", table=path),
                lambda path=path, opened=opened: sparklog.Consumer(opened, "t", group_id="g", table=tmp_path / "offsets", dual_table=path),
                lambda path=path, opened=opened: write_delta(
                    path=tmp_path / "out", table=path, root=opened, checkpoint=tmp_path / "c", group="g"
                ),
                lambda path=path, opened=opened: write_delta(
                    path=path, table=tmp_path / "offsets", root=opened, checkpoint=tmp_path / "c", group="g"
                ),
                lambda path=path, opened=opened: DeltaOutput(path, consumer(opened)),
            ]
            for call in calls:
                with pytest.raises(sparklog.CallError, match="PARTLOG_TABLE_IN_ROOT"):
                    call()
    with pytest.raises(sparklog.CallError, match="PARTLOG_TABLE_IN_ROOT"):
        OffsetTable(None, root / "offsets")
    in_bucket = Root.at("s3a://bucket/log")
    for place in (
        "s3://bucket/log/out",
        "S3n://bucket/log/out",
        "https://bucket.s3.eu-west-1.amazonaws.com/log/out",
        "https://bucket.s3.amazonaws.com/log",
        "https://s3.eu-west-1.amazonaws.com/bucket/log/out",
        "https://s3-eu-west-1.amazonaws.com/bucket",
    ):
        with pytest.raises(sparklog.CallError, match="PARTLOG_TABLE_IN_ROOT"):
            places.require_apart(place, in_bucket, "offsets")
    for place in (
        "https://other.s3.eu-west-1.amazonaws.com/log/out",
        "https://s3.amazonaws.com/bucket/logs",
        "https://example.com/bucket/log",
    ):
        places.require_apart(place, in_bucket, "offsets")
    assert list(tmp_path.rglob("_delta_log")) == [tmp_path / "offsets" / "_delta_log"]


def test_a_table_beside_a_root_is_not(topic, tmp_path, links, monkeypatch):
    for path in (tmp_path / "root-offsets", tmp_path / "rootoffsets", links / "offsets", links / "up" / "offsets"):
        Own(OffsetTable(topic.root, path), "g")
        assert OffsetTable(None, path).groups() == ["g"]
    monkeypatch.chdir(topic.root)
    Own(OffsetTable(topic.root, os.path.join("..", "by-name")), "g")  # noqa: PTH118 # as a user writes it
    assert (tmp_path / "by-name" / "_delta_log").is_dir()
    with pytest.raises(sparklog.CallError, match=rf"for example in {topic.root}-offsets\. "):
        OffsetTable(topic.root, "offsets")


def test_output_beside_a_root_is_written(topic, tmp_path, links):
    """Under its own name: deltalake would take the state of another table for that of `sales%41`."""
    for path in (tmp_path / "sales", links / "up" / "sales-too", f"file:{tmp_path}/sales-3"):
        with consumer(topic.root) as one:
            output = DeltaOutput(path, one)
            one.seek_to_beginning()
            output.write(pa.Table.from_batches(output.poll(1000).values()).select(["partition", "offset"]))
    assert {each.parent.name for each in tmp_path.rglob("_delta_log")} == {"offsets", "sales", "sales-too", "sales-3"}
    for path in (tmp_path / "sales%41", "s3://bucket/sales%41", "s3://KEY:SECRET@bucket/sales", ""):
        for call in (
            lambda path=path: DeltaOutput(path, consumer(topic.root)),
            lambda path=path: write_delta(path=path, table=tmp_path / "offsets", root=topic.root, checkpoint=tmp_path / "c", group="g"),
        ):
            with pytest.raises(sparklog.CallError, match=r"PARTLOG_OPTION_VALUE.*`path`") as raised:
                call()
            assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize(
    ("table", "root", "apart"),
    [
        ("s3://bucket/logs/x/table", "s3a://bucket/logs/x", False),
        ("S3A://bucket/logs/x", "s3a://bucket/logs/x", False),
        ("s3://bucket", "s3a://bucket/logs/x", False),
        ("s3://bucket/logs/", "s3a://bucket/logs/x", False),
        ("s3://bucket/logs/xy", "s3a://bucket/logs/x", True),
        ("s3://bucket/logs/X", "s3a://bucket/logs/x", True),
        ("s3://other/logs/x", "s3a://bucket/logs/x", True),
        ("hdfs://host/logs/x/table", "hdfs://host:8020/logs/x?webhdfs=h:1", False),
        ("hdfs://host:8020/logs", "hdfs://host/logs/x?webhdfs=h:1", False),
        ("hdfs://other/logs/x", "hdfs://host/logs/x?webhdfs=h:1", True),
        ("gs://bucket/logs/x", "s3a://bucket/logs/x", True),
        ("s3://bucket/x", "/data/x", True),
        ("/data/x", "s3a://bucket/x", True),
    ],
)
def test_a_table_and_a_root_at_urls_are_told_apart_by_their_names(table, root, apart):
    """Nothing is asked there."""
    if apart:
        assert places.delta_table(table, Root.at(root), "output") == table
        return
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_TABLE_IN_ROOT.*, for example in .*-output\. "):
        places.delta_table(table, Root.at(root), "output")


def test_a_table_whose_folders_cannot_be_seen_is_not_called_apart(tmp_path):
    """It may be in a root."""
    within = sample(tmp_path / "shut" / "root").root / "table"
    with shut(tmp_path / "shut"), pytest.raises(sparklog.RetryError, match=r"PARTLOG_IO.*Permission denied"):
        OffsetTable(None, within)
    with pytest.raises(sparklog.CallError, match="PARTLOG_TABLE_IN_ROOT"):
        OffsetTable(None, within)
