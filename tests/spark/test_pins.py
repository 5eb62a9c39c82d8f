"""Keys that are pinned to partitions by SQL, and what is written and read by them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from verifying import faults

from sparklog import Log
from sparklog.__main__ import main

Call = Callable[..., list[dict[str, Any]]]


def write(spark: SparkSession, root: Path, keys: list[bytes], **options: object) -> None:
    frame = spark.createDataFrame([(key, str(number)) for number, key in enumerate(keys)], "key BINARY, value STRING").coalesce(1)
    frame.write.format("partlog").options(topic="t", **options).mode("append").save(str(root))


def partitions_of(spark: SparkSession, root: Path, key: bytes) -> list[int]:
    """The partitions that a read by key finds records in, by offset of each; as Python finds them, too."""
    rows = spark.read.format("partlog").option("subscribe", "t").load(str(root)).where(F.col("key") == F.lit(key))
    found = sorted(row.partition for row in rows.collect())
    assert found == sorted(Log(root)["t"].read(key=key)["partition"].to_pylist())
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where `call` takes its root."""
    return tmp_path / "root"


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("'a'", [b"a"]),
        ("X'00ff'", [b"\x00\xff"]),
        ("array('b', 'a', 'b')", [b"a", b"b"]),
        ("array(X'00', X'')", [b"", b"\x00"]),
        ("cast('a' AS BINARY)", [b"a"]),
    ],
)
def test_a_key_is_text_or_bytes_or_several(spark: SparkSession, root: Path, call: Call, words: str, keys: list[bytes]) -> None:
    write(spark, root, keys, partitions=3)
    homes = [Log(root)["t"].partition_for(key) for key in keys]
    shown = [f"X'{key.hex()}'" if key in (b"\x00", b"\x00\xff") else key.decode() for key in keys]
    told = call("pin", topic="'t'", key=words, partition=2, dry_run="true")
    assert [tuple(row.values()) for row in told] == [("t", name, home, 2, True) for name, home in zip(shown, homes, strict=True)]
    assert Log(root)["t"].pins() == {}
    assert call("pin", topic="'t'", key=words, partition=2) == told
    assert Log(root)["t"].pins() == dict.fromkeys(keys, 2)
    write(spark, root, keys)
    for key, home in zip(keys, homes, strict=True):
        assert Log(root)["t"].partition_for(key) == 2
        assert partitions_of(spark, root, key) == sorted([home, 2])
    ended = call("unpin", topic="'t'", key=words)
    assert [tuple(row.values()) for row in ended] == [("t", name, 2, home, False) for name, home in zip(shown, homes, strict=True)]
    assert Log(root)["t"].pins() == {}
    assert faults(root) == []


def test_the_command_line_takes_any_key(spark: SparkSession, root: Path) -> None:
    """A key in a shell is bytes, of UTF-8 or not."""
    write(spark, root, [b"a", b"\xff"], partitions=3)
    keys = ["--key", "a", "--key", os.fsdecode(b"\xff"), "--key=--key"]
    assert main(["pin", str(root), "t", *keys, "--partition", "2", "--dry-run"]) == 0
    assert Log(root)["t"].pins() == {}
    assert main(["pin", str(root), "t", *keys, "--partition", "2"]) == 0
    assert Log(root)["t"].pins() == {b"a": 2, b"\xff": 2, b"--key": 2}
    assert main(["unpin", str(root), "t", "--key", os.fsdecode(b"\xff")]) == 0
    assert Log(root)["t"].pins() == {b"a": 2, b"--key": 2}


def test_spark_refuses_what_is_no_key(spark: SparkSession, root: Path, call: Call) -> None:
    write(spark, root, [b"a"], partitions=3)
    for words in ("7", "array(7)", "map('a', 1)", "array(array('a'))"):
        with pytest.raises(PySparkException) as error:
            call("pin", topic="'t'", key=words, partition=2)
        assert "DATATYPE_MISMATCH" in str(error.value), words
    assert Log(root)["t"].pins() == {}


def test_a_key_is_pinned_before_its_first_record(spark: SparkSession, root: Path, call: Call) -> None:
    """In a topic that places keys when they are written, a pin decides, and uses no slot; when it ends, the next record decides."""
    write(spark, root, [b"first"], partitions=3, partitioner="lag_aware")
    topic = Log(root)["t"]
    unbound = topic.describe()["routing"]["unbound"]
    for partition in (0, 2, 1):
        assert call("pin", topic="'t'", key="'k'", partition=partition)[0]["partition_after"] == partition
        write(spark, root, [b"k"] * 2)
    assert partitions_of(spark, root, b"k") == [0, 0, 1, 1, 2, 2]
    assert topic.describe()["routing"]["unbound"] == unbound
    assert [tuple(row.values()) for row in call("unpin", topic="'t'", key="'k'")] == [("t", "k", 1, None, False)]
    call("set_fill", topic="'t'", fill="""'{"2":1}'""", valid_for="'10 minutes'")
    write(spark, root, [b"k"])
    assert topic.describe()["routing"]["unbound"] == unbound - 1
    assert partitions_of(spark, root, b"k") == [0, 0, 1, 1, 2, 2, 2]
    assert faults(root) == []


def test_grouping_and_joins_are_exact(spark: SparkSession, root: Path, call: Call) -> None:
    """Spark knows slots, and no pins: records of before them are still grouped without a shuffle, later ones with one."""
    keys = [f"k{number}".encode() for number in range(50)]
    write(spark, root, keys * 3, partitions=3)
    log = spark.read.format("partlog").option("subscribe", "t")
    counted = log.load(str(root)).groupBy("key").count()
    assert "Exchange" not in counted._jdf.queryExecution().executedPlan().toString()
    call("pin", topic="'t'", key="array('k1', 'k2', 'k3')", partition=1)
    assert "Exchange" not in log.load(str(root)).groupBy("key").count()._jdf.queryExecution().executedPlan().toString()
    write(spark, root, keys * 2)
    rows = log.load(str(root))
    assert {row["count"] for row in rows.groupBy("key").count().collect()} == {5}
    assert rows.join(rows.groupBy("key").count(), "key").count() == 250
    assert faults(root) == []


def test_ten_thousand_keys_in_one_call(spark: SparkSession, root: Path, call: Call) -> None:
    write(spark, root, [b"a"], partitions=3)
    names = [f"key-{number}" for number in range(1, 10_001)]
    rows = call("pin", topic="'t'", key=f"split('{','.join(names)}', ',')", partition=1)
    assert len(rows) == 10_000
    assert {row["partition_after"] for row in rows} == {1}
    pins = Log(root)["t"].pins()
    assert (len(pins), set(pins.values())) == (10_000, {1})
    call("unpin", topic="'t'", key=f"split('{','.join(names[:-1])}', ',')")
    assert Log(root)["t"].pins() == {b"key-10000": 1}
    assert faults(root) == []
