"""`CALL partlog.export`: the files of a topic as a Kafka broker keeps them; and `CALL partlog.check_store` on a disk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bench.dump_log import check_segments
from sparklog import Log

Call = Callable[..., list[dict[str, Any]]]
Fails = Callable[..., str]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def save(spark: SparkSession, root: Path, count: int, size: int = 10, **options: object) -> None:
    rows = spark.range(0, count, 1, 2).selectExpr(
        f"rpad(CAST(id AS STRING), {size}, 'x') AS value",
        "CAST(id % 3 AS INT) AS partition",
        "timestamp_seconds(1700000000 + id) AS timestamp",
    )
    rows.write.format("partlog").options(topic="orders", **options).mode("append").save(str(root))


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def of_segments(contents: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in contents.items() if name.endswith((".log", ".index", ".timeindex"))}


def test_it_has_the_bytes_of_the_view_and_is_a_copy(
    spark: SparkSession, root: Path, call: Call, tmp_path: Path, kafka_classpath: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments of one batch and of many, in files of their own and in shared ones; some longer than what is copied at once."""
    save(spark, root, 6_000, 1_000, partitions=4, **{"batch.size": 20_000, "compression.type": "none", "kafka.view": "all"})
    save(spark, root, 30)
    call("merge", topic="'orders'")
    save(spark, root, 300, merge="false")
    to = tmp_path / "a" / "copy"
    rows = call("export", topic="'orders'", to=f"'{to}'")
    copied = files(to)
    view = {name: content for folder in root.glob("orders-*") for name, content in of_segments(files(root)).items() if folder.name in name}
    assert len(view) > 9
    assert {name: content for name, content in of_segments(copied).items() if not name.startswith("orders-3/")} == view
    assert copied["log-start-offset-checkpoint"] == b"0\n4\norders 0 0\norders 1 0\norders 2 0\norders 3 0\n"
    assert copied["orders-0/leader-epoch-checkpoint"] == b"0\n1\n0 0\n"
    assert all(file.stat().st_nlink == 1 for file in to.rglob("*") if file.is_file())
    assert [(row["partition"], row["start_offset"], row["end_offset"]) for row in rows] == [
        (number, 0, end) for number, end in Log(root)["orders"].end_offsets().items()
    ]
    for row in rows:
        written = files(Path(row["folder"]))
        assert (row["files"], row["bytes"]) == (len(written), sum(map(len, written.values())))
        assert row["segments"] == sum(name.endswith(".log") for name in written) - (row["partition"] == 3)
    assert [each.name for each in to.parent.iterdir()] == ["copy"]
    monkeypatch.delenv("JAVA_TOOL_OPTIONS")  # a JVM says that it has found some
    logs = sorted(to.glob("*/*.log"))
    assert check_segments(kafka_classpath, logs, 6_330).complaints == []


def test_offsets_stay_where_records_are_deleted(spark: SparkSession, root: Path, call: Call, tmp_path: Path) -> None:
    save(spark, root, 30, partitions=3, **{"kafka.view": "none"})
    call("delete_records", topic="'orders'", offsets="""'{"0":4,"1":-1}'""")
    (tmp_path / "copy").mkdir()  # empty
    rows = call("export", topic="'orders'", to=f"'file:{tmp_path}/copy'")
    assert [(row["start_offset"], row["end_offset"], row["segments"]) for row in rows] == [(4, 10, 1), (10, 10, 0), (0, 10, 1)]
    copied = files(tmp_path / "copy")
    assert copied["log-start-offset-checkpoint"] == b"0\n3\norders 0 4\norders 1 10\norders 2 0\n"
    assert copied[f"orders-1/{10:020d}.log"] == b""
    assert copied["orders-1/leader-epoch-checkpoint"] == b"0\n0\n"
    assert sorted(name for name in copied if name.endswith(".log")) == [
        f"orders-{n}/{base:020d}.log" for n, base in ((0, 0), (1, 10), (2, 0))
    ]


def test_targets_that_are_refused(spark: SparkSession, root: Path, call: Call, fails: Fails, tmp_path: Path) -> None:
    save(spark, root, 3, partitions=3)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept").write_text("")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(root)
    (tmp_path / "other" / "_partlog").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    for to, words in {
        tmp_path / "full": "it is not empty: it holds kept",
        tmp_path / "file": "it is a file",
        root: f"it lies in the root {root}",
        root / "orders-0" / "x": f"it lies in the root {root}",
        root / "_partlog" / "x": f"it lies in the root {root}",
        tmp_path / "link" / "x": f"it lies in the root {root}",
        tmp_path / "other" / "x": f"it lies in the root {tmp_path}/other",
        "s3a://bucket/x": "it is not on a disk",
        "hdfs://host/x": "it is not on a disk",
    }.items():
        said = fails("EXPORT_TARGET", lambda: call("export", topic="'orders'", to=f"'{to}'"))  # noqa: B023
        assert f"Topic orders under {root} cannot be exported to {to}: {words}" in said
    assert "a home directory" in fails("ARGUMENT_VALUE", lambda: call("export", topic="'orders'", to="'~/x'"))
    fails("TOPIC_NOT_FOUND", lambda: call("export", topic="'oders'", to=f"'{tmp_path}/new'"))
    assert sorted(tmp_path.rglob("*")) == before


def test_damage_leaves_nothing(spark: SparkSession, root: Path, call: Call, fails: Fails, tmp_path: Path) -> None:
    save(spark, root, 300, partitions=3, **{"kafka.view": "none"})
    (data,) = (root / "_partlog" / "orders" / "data").rglob("*.log")
    content = bytearray(data.read_bytes())
    content[17] ^= 1  # of the checksum of the first batch
    data.write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    said = fails("SEGMENT_CORRUPT", lambda: call("export", topic="'orders'", to=f"'{tmp_path}/copy'"))
    assert str(data) in said
    assert sorted(tmp_path.rglob("*")) == before


def test_a_disk_is_a_safe_store_and_a_check_leaves_nothing(spark: SparkSession, root: Path, call: Call, tmp_path: Path) -> None:
    for at in (root, root / "deep" / "er"):
        (row,) = spark.sql(f"CALL partlog.check_store(root => '{at}', keys => 20)").collect()
        assert row.asDict() | {"seconds": 0} == {"root": str(at), "keys": 20, "winners": 20, "losers": 140, "unanswered": 0, "seconds": 0}
        assert row.seconds > 0
        assert list(tmp_path.iterdir()) == []
    save(spark, root, 3, partitions=3)
    before = sorted(tmp_path.rglob("*"))
    assert call("check_store", keys=3)[0]["winners"] == 3
    assert sorted(tmp_path.rglob("*")) == before
