"""Slots that are moved by SQL and by a shell, given as numbers or as keys, beside writes and reads."""

import json
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
from sparklog.router import Router

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


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., str]:
    """Runs a command of the shell that must end with a status, and gives its output: on standard error if the status is not 0."""

    def command(*words: object, status: int = 0) -> str:
        capfdbinary.readouterr()
        ended = main(list(map(str, words)))
        out, err = (each.decode() for each in capfdbinary.readouterr())
        assert ended == status, out + err
        return err if status else out

    return command


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("'a', 2", [b"a"]),
        ("X'00ff', 2", [b"\x00\xff"]),
        ("'b', 2, 'a', 2", [b"a", b"b"]),
        ("X'00', 2, X'', 2", [b"", b"\x00"]),
        ("cast('a' AS BINARY), 2", [b"a"]),
    ],
)
def test_a_key_is_text_or_bytes_or_several(spark: SparkSession, root: Path, call: Call, words: str, keys: list[bytes]) -> None:
    write(spark, root, keys, partitions=3)
    topic = Log(root)["t"]
    homes = [topic.partition_for(key) for key in keys]
    slots = [Router(3, "murmur3", [0] * 4098).slot(key) for key in keys]
    shown = [f"X'{key.hex()}'" if key in (b"\x00", b"\x00\xff") else key.decode() for key in keys]
    told = call("move_slots", topic="'t'", moves=f"map({words})", dry_run="true")
    expected = [("t", slot, name, home, 2, 1, 0, 0) for name, slot, home in zip(shown, slots, homes, strict=True)]
    assert [tuple(row.values()) for row in told] == expected
    assert topic.describe()["routing"] is None
    assert call("move_slots", topic="'t'", moves=f"map({words})") == told
    write(spark, root, keys)
    for key, home in zip(keys, homes, strict=True):
        assert topic.partition_for(key) == 2
        assert partitions_of(spark, root, key) == sorted([home, 2])
    back = ", ".join(f"{slot}, {home}" for slot, home in dict(zip(slots, homes, strict=True)).items())
    moved = call("move_slots", topic="'t'", moves=f"map({back})")
    assert sorted(tuple(row.values()) for row in moved) == sorted(
        ("t", slot, None, 2, home, None, 1, 2 if home == 2 else 1) for slot, home in zip(slots, homes, strict=True)
    )
    assert [topic.partition_for(key) for key in keys] == homes
    assert faults(root) == []


def test_moves_that_are_suggested_are_made(spark: SparkSession, root: Path, call: Call, run: Callable[..., str]) -> None:
    """By SQL, and by a shell, which changes nothing before it is told to."""
    write(spark, root, [b"key-%d" % (number % 7) for number in range(700)], partitions=4)
    topic = Log(root)["t"]
    moves = topic.suggest_moves()
    assert moves
    told = json.loads(run("suggest-moves", root, "t", "--json"))
    assert told == {"executed": False, **moves.as_dict()}
    assert "Nothing was changed (add --execute to do it)" in run("suggest-moves", root, "t", "--max-moves", 2)
    assert topic.describe()["routing"] is None
    rows = call("move_slots", topic="'t'", moves=moves.sql, dry_run="true")
    assert {row["slot"]: row["partition_after"] for row in rows} == moves
    assert json.loads(run("suggest-moves", root, "t", "--execute", "--json")) == {**told, "executed": True}
    assert not topic.suggest_moves()
    assert len(topic.describe()["routing"]["reroutes"]) == 1
    assert json.loads(run("suggest-moves", root, "t", "--execute", "--json"))["moves"] == []
    assert len(topic.describe()["routing"]["reroutes"]) == 1
    assert faults(root) == []


def test_the_keys_that_go_along_are_told(spark: SparkSession, root: Path, call: Call) -> None:
    """Those of the newest records of the slot's partition whose slot is the same, and how many records they have there."""
    slot = Router(2, "murmur3", [0] * 4096).slot
    keys = [b"key-%d" % number for number in range(40_000)]
    busy = next(key for key in keys if slot(key) % 2 == 0)
    others = [key for key in keys if slot(key) == slot(busy) and key != busy][:3]
    assert len(others) == 3
    write(spark, root, [busy] * 50 + others * 2 + keys[:9], partitions=2)
    [row] = call("move_slots", topic="'t'", moves=f"map('{busy.decode()}', 1)")
    known = (slot(busy), busy.decode(), 0, 1, 50 + keys[:9].count(busy), 3, 6)
    assert tuple(row.values()) == ("t", *known)
    write(spark, root, [busy] * 5 + others)
    both = f"map('{busy.decode()}', 0, '{others[0].decode()}', 0)"
    rows = call("move_slots", topic="'t'", moves=both, dry_run="true")
    assert {row["key"]: (row["records"], row["other_keys"], row["other_records"]) for row in rows} == {
        busy.decode(): (5, 2, 2),
        others[0].decode(): (1, 2, 2),
    }
    # The partition of the other key is read too, and has older records of the busy one.
    idle = next(key for key in keys if slot(key) % 2 == 0 and slot(key) != slot(busy))
    write(spark, root, [idle] * 4)
    rows = call("move_slots", topic="'t'", moves=f"map('{busy.decode()}', 0, '{idle.decode()}', 0)", dry_run="true")
    told = {row["key"]: (row["partition_before"], row["records"], row["other_keys"], row["other_records"]) for row in rows}
    assert told == {busy.decode(): (1, 5, 3, 3), idle.decode(): (0, 4 + keys[:9].count(idle), 0, 0)}


def test_two_keys_of_a_slot_move_to_one_partition(
    spark: SparkSession, root: Path, call: Call, fails: Callable[[str, Callable[[], object]], str]
) -> None:
    slot = Router(2, "murmur3", [0] * 4096).slot
    one, *others = (f"key-{number}" for number in range(40_000))
    other = next(key for key in others if slot(key.encode()) == slot(one.encode()))
    write(spark, root, [one.encode()], partitions=2)
    told = fails("ARGUMENT_VALUE", lambda: call("move_slots", topic="'t'", moves=f"map('{one}', 0, '{other}', 1)"))
    assert f"another key of slot {slot(one.encode())} moves to partition 0: name one partition for both" in told
    assert [row["key"] for row in call("move_slots", topic="'t'", moves=f"map('{one}', 1, '{other}', 1)")] == sorted([one, other])


def test_a_move_that_cannot_be_is_refused_before_records_are_read(
    spark: SparkSession, root: Path, call: Call, fails: Callable[[str, Callable[[], object]], str]
) -> None:
    write(spark, root, [b"a"], partitions=3)
    home = Log(root)["t"].partition_for("a")
    closed = (home + 1) % 3
    call("close_partitions", topic="'t'", partitions=f"array({closed})")
    [data] = [file for file in (root / "_partlog" / "t" / "data").rglob("*") if file.is_file()]
    data.write_bytes(b"")
    fails("PARTITION_CLOSED", lambda: call("move_slots", topic="'t'", moves=f"map('a', {closed})"))
    fails("PARTITION_NOT_FOUND", lambda: call("move_slots", topic="'t'", moves="map('a', 3)"))
    fails("SEGMENT_CORRUPT", lambda: call("move_slots", topic="'t'", moves=f"map('a', {(home + 2) % 3})"))
    assert Log(root)["t"].partition_for("a") == home


def test_the_command_line_takes_any_key(spark: SparkSession, root: Path) -> None:
    """A key in a shell is bytes, of UTF-8 or not."""
    write(spark, root, [b"a", b"\xff"], partitions=3)
    topic = Log(root)["t"]
    keys = ["--key", "a", "--key", os.fsdecode(b"\xff"), "--key=--key"]
    assert main(["move-keys", str(root), "t", *keys, "--partition", "2", "--dry-run"]) == 0
    assert topic.describe()["routing"] is None
    assert main(["move-keys", str(root), "t", *keys, "--partition", "2"]) == 0
    assert [topic.partition_for(key) for key in (b"a", b"\xff", b"--key")] == [2, 2, 2]
    assert main(["move-slots", str(root), "t", "--moves", f"{Router(3, 'murmur3', [0] * 4098).slot(b'a')}:0"]) == 0
    assert [topic.partition_for(key) for key in (b"a", b"\xff", b"--key")] == [0, 2, 2]


def test_spark_refuses_what_is_no_key_and_no_slot(spark: SparkSession, root: Path, call: Call) -> None:
    write(spark, root, [b"a"], partitions=3)
    for words in ("7", "array(7)", "'7:1'", "array('a')", "map('a', 'b')", "map(array('a'), 1)"):
        with pytest.raises(PySparkException) as error:
            call("move_slots", topic="'t'", moves=words)
        assert "DATATYPE_MISMATCH" in str(error.value), words
    assert Log(root)["t"].describe()["routing"] is None


def test_a_slot_without_a_partition_cannot_move(
    spark: SparkSession, root: Path, call: Call, fails: Callable[[str, Callable[[], object]], str]
) -> None:
    """In a topic that places keys when they are written, the first record decides; a slot moves after that."""
    write(spark, root, [b"first"], partitions=3, placement="on_first_write")
    told = fails("ARGUMENT_VALUE", lambda: call("move_slots", topic="'t'", moves="map('k', 0)"))
    assert "has no partition yet, and gets one with the first record of its keys: write that first" in told
    write(spark, root, [b"k"] * 2)
    for partition in (0, 2, 1):
        assert call("move_slots", topic="'t'", moves=f"map('k', {partition})")[0]["partition_after"] == partition
        write(spark, root, [b"k"])
    assert sorted(set(partitions_of(spark, root, b"k"))) == [0, 1, 2]
    assert faults(root) == []


def test_grouping_and_joins_are_exact(spark: SparkSession, root: Path, call: Call) -> None:
    """A topic is grouped by key without a shuffle until its first re-route, and with one after that."""
    keys = [f"k{number}".encode() for number in range(50)]
    write(spark, root, keys * 3, partitions=3)
    log = spark.read.format("partlog").option("subscribe", "t")
    counted = log.load(str(root)).groupBy("key").count()
    assert "Exchange" not in counted._jdf.queryExecution().executedPlan().toString()
    call("move_slots", topic="'t'", moves="map('k1', 1, 'k2', 1, 'k3', 1)")
    assert "Exchange" in log.load(str(root)).groupBy("key").count()._jdf.queryExecution().executedPlan().toString()
    write(spark, root, keys * 2)
    rows = log.load(str(root))
    assert {row["count"] for row in rows.groupBy("key").count().collect()} == {5}
    assert rows.join(rows.groupBy("key").count(), "key").count() == 250
    assert faults(root) == []


@pytest.mark.slow
def test_ten_thousand_keys_in_one_call(spark: SparkSession, root: Path, call: Call) -> None:
    write(spark, root, [b"a"], partitions=3)
    names = [f"key-{number}" for number in range(1, 10_001)]
    rows = call("move_slots", topic="'t'", moves=f"map_from_arrays(split('{','.join(names)}', ','), array_repeat(1, 10000))")
    assert len(rows) == 10_000
    assert {row["partition_after"] for row in rows} == {1}
    topic = Log(root)["t"]
    assert {topic.partition_for(name) for name in names[:100]} == {1}
    assert len(topic.describe()["routing"]["reroutes"]) == 1
    assert faults(root) == []
