"""Topics whose keys get a partition when they are first written: each has one, also where writers race, and shares say where."""

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from spark.collecting import wait_until
from verifying import faults

from sparklog import Consumer, Log, Placement, TopicPartition

Call = Callable[..., list[dict[str, Any]]]
Fails = Callable[[str, Callable[[], object]], str]


def write(spark: SparkSession, root: Path, keys: Iterable[str], value: str = "v") -> None:
    frame = spark.createDataFrame([(key, value) for key in keys], "key STRING, value STRING")
    new = {} if root.exists() else {"partitions": 4, "placement": "on_first_write"}
    frame.write.format("partlog").options(topic="t", **new).mode("append").save(str(root))


def homes(root: Path) -> dict[str, set[int]]:
    """By key, the partitions that have records of it."""
    found = defaultdict(set)
    for row in Log(root)["t"].read().to_pylist():
        found[row["key"].decode()].add(row["partition"])
    return dict(found)


def named(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number}" for number in range(count)]


def share(call: Call, root: Path, shares: Iterable[int]) -> int:
    """Shares new keys among the partitions in this way for ten minutes. It returns the end of these, in ms since 1970."""
    until = round(1000 * time.time()) + 600_000
    value = f"{Log(root)['t'].describe()['routing']['epoch']}:{until}:{','.join(map(str, shares))}"
    call("set_config", topic="'t'", config=f"map('placement.shares', '{value}')")
    return until


def test_new_keys_go_where_the_shares_say_and_stay(spark: SparkSession, tmp_path: Path, call: Call) -> None:
    root = tmp_path / "root"
    write(spark, root, named("a", 200))
    before = homes(root)
    assert {len(partitions) for partitions in before.values()} == {1}
    assert set().union(*before.values()) == {0, 1, 2, 3}
    assert Log(root)["t"].describe()["routing"]["shares"] is None
    until = share(call, root, [0, 1, 3, 0])
    routing = Log(root)["t"].describe()["routing"]
    assert (routing["shares"], routing["shares_until"]) == ([0, 1, 3, 0], until)
    forecast = {key: Log(root)["t"].partition_for(key) for key in named("b", 300)}
    write(spark, root, [*named("a", 200), *named("b", 300)])
    after = homes(root)
    assert {key: after[key] for key in before} == before
    assert {key: {home} for key, home in forecast.items()} == {key: after[key] for key in named("b", 300)}
    counts = Counter(min(after[key]) for key in named("b", 300))
    assert counts[0] + counts[3] < 8, "a few may share their slots with keys of before"
    assert 190 < counts[2] < 260
    assert faults(root) == []


def test_reads_by_key_and_grouping_are_exact(spark: SparkSession, tmp_path: Path, call: Call) -> None:
    root = tmp_path / "root"
    for number in range(4):
        write(spark, root, named(f"k{number}", 50) + named("k0", 50), str(number))
        if number == 1:
            call("add_partitions", topic="'t'", partitions=6)
    rows = spark.read.format("partlog").option("subscribe", "t").load(str(root))
    counted = {row["key"]: row["count"] for row in rows.groupBy(F.col("key").cast("string").alias("key")).count().collect()}
    expected = Counter(named("k0", 50) * 5 + [key for number in (1, 2, 3) for key in named(f"k{number}", 50)])
    assert counted == expected
    by_key = {bytes(row["key"]).decode(): row["count"] for row in rows.groupBy("key").count().collect()}
    assert by_key == expected
    assert rows.alias("one").join(rows.alias("other"), "key").count() == sum(count**2 for count in expected.values())
    topic = Log(root)["t"]
    for key in [*named("k0", 3), *named("k1", 3), *named("k3", 3), "never"]:
        assert rows.where(F.col("key") == F.lit(key).cast("binary")).count() == expected[key]
        assert topic.read(key=key).num_rows == expected[key]
        assert {row["partition"] for row in topic.read(key=key).to_pylist()} <= set(range(6))
    assert sum(row["records"] for row in topic.recent_keys().to_pylist()) == sum(expected.values())
    assert faults(root) == []


def test_writers_that_race_on_new_keys_agree(spark: SparkSession, tmp_path: Path, call: Call) -> None:
    """Two batch writers and a stream meet the same new keys while the shares change. A refused batch is written again."""
    root = tmp_path / "root"
    write(spark, root, ["first"])
    random_ = random.Random(3)
    source = tmp_path / "source"
    source.mkdir()
    query = (
        spark.readStream.schema("key STRING, value STRING")
        .json(str(source))
        .writeStream.format("partlog")
        .options(topic="t", checkpointLocation=str(tmp_path / "checkpoint"))
        .start(str(root))
    )
    refused: list[str] = []
    failed: list[BaseException] = []

    def writes(name: str) -> None:
        try:
            for number in range(8):
                while True:
                    try:
                        write(spark, root, named(f"n{number}", 60), f"{name}.{number}")
                        break
                    except PySparkException as error:
                        if error.getCondition() != "PARTLOG_ROUTING_CHANGED":
                            raise
                        refused.append(name)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=writes, args=(name,)) for name in "ab"]
    try:
        for thread in threads:
            thread.start()
        step = 0
        while any(thread.is_alive() for thread in threads):
            lines = "".join(f'{{"key": "n{step % 8}-{number}", "value": "s.{step}"}}\n' for number in range(60))
            (source / f".{step}").write_text(lines)
            (source / f".{step}").rename(source / f"{step}.json")
            share(call, root, [*(random_.randint(0, 5) for _ in range(3)), 1])
            step += 1
        for thread in threads:
            thread.join()
        total = 1 + 60 * (16 + step)
        # A query fails where a key that it wrote was bound otherwise, and a user begins it again.
        until = time.monotonic() + 120
        while sum(Log(root)["t"].end_offsets().values()) < total and query.exception() is None:
            assert time.monotonic() < until, query.lastProgress
            time.sleep(0.05)
        assert query.exception() is None or "PARTLOG_ROUTING_CHANGED" in str(query.exception())
    finally:
        query.stop()
    assert failed == []
    assert {key: len(partitions) for key, partitions in homes(root).items() if len(partitions) > 1} == {}
    counts = Counter(row["value"].decode() for row in Log(root)["t"].read().to_pylist())
    assert {f"{name}.{number}": counts[f"{name}.{number}"] for name in "ab" for number in range(8)} == dict.fromkeys(
        [f"{name}.{number}" for name in "ab" for number in range(8)], 60
    )
    assert faults(root, unfinished=True) == []


@pytest.mark.slow
def test_a_slow_partition_gets_less_of_what_is_new(spark: SparkSession, tmp_path: Path) -> None:
    """A stream writes keys that live for two epochs. One group reads all, another one does not get on in partition 1.

    Ten seconds pass from look to look, so that the rates do not depend on the machine.
    """
    root, table, source = tmp_path / "root", tmp_path / "table", tmp_path / "source"
    write(spark, root, ["first"])
    source.mkdir()
    query = (
        spark.readStream.schema("key STRING, value STRING")
        .json(str(source))
        .writeStream.format("partlog")
        .options(topic="t", checkpointLocation=str(tmp_path / "checkpoint"))
        .start(str(root))
    )
    numbers: Counter[str] = Counter()
    written = 1

    def epoch(number: int, records: int) -> None:
        """A file, which is an epoch: so many records of each key in order."""
        nonlocal written
        lines = []
        for _ in range(records):
            for key in [*named(f"e{number - 1}", 40), *named(f"e{number}", 40)]:
                numbers[key] += 1
                lines.append(f'{{"key": "{key}", "value": "{numbers[key]}"}}\n')
        (source / f".{number}").write_text("".join(lines))
        (source / f".{number}").rename(source / f"{number}.json")
        written += len(lines)
        wait_until(lambda: sum(Log(root)["t"].end_offsets().values()) == written, query)

    read: dict[str, Counter[str]] = {"fast": Counter(), "slow": Counter()}

    def poll(consumer: Consumer, group: str) -> None:
        while found := consumer.poll(max_records=1000):
            for record in (record for records in found.values() for record in records if record.key != b"first"):
                key, number = record.key.decode(), int(record.value)
                assert number == read[group][key] + 1, f"{group}: {key} at {record.partition}:{record.offset}"
                read[group][key] = number
        consumer.commit()

    groups = {group: {"group_id": group, "table": table, "auto_offset_reset": "earliest"} for group in read}
    try:
        with (
            Consumer(root, "t", **groups["fast"]) as fast,
            Consumer(root, "t", **groups["slow"]) as slow,
            Placement(root, "t", group=["fast", "slow"], table=table, refresh_s=300, clock=count(0.0, 10.0).__next__) as placement,
        ):
            poll(slow, "slow")
            slow.pause(TopicPartition("t", 1))
            for number in range(9):
                epoch(number, 5 if number else 1000)
                poll(fast, "fast")
                poll(slow, "slow")
                shares = placement.commit(spark)
                assert Log(root)["t"].describe()["routing"]["shares"] == list(shares.values())
            slow.resume(TopicPartition("t", 1))
            poll(slow, "slow")
        assert query.exception() is None
    finally:
        query.stop()
    assert read["fast"] == read["slow"] == numbers
    placed = homes(root)
    late = Counter(min(placed[key]) for number in range(2, 9) for key in named(f"e{number}", 40))
    assert late[1] < late.total() / 16, f"a quarter of an equal part at most: {late}"
    assert min(late[partition] for partition in (0, 2, 3)) > late.total() / 8, f"the others level each other: {late}"
    assert faults(root) == []


REFUSED = {
    "it must be none, or a routing epoch": ["", "1", "1:1,1,1,0", "1:9:1,1,x,0", "1:9:1000001,1,1,0", "1:9:-1,1,1,0"],
    "it would have no effect on topic t": ["0:9:1,1,1,0", "1:9:0,0,0,0", "1:9:1,1,1,1", "1:9:1,1,1", "1:9:1,1,1,0,1"],
}


def test_shares_that_have_no_effect_are_refused(spark: SparkSession, tmp_path: Path, call: Call, fails: Fails) -> None:
    root = tmp_path / "root"
    write(spark, root, named("a", 20))
    call("close_partitions", topic="'t'", partitions="array(3)")
    files = {file: file.read_bytes() for file in root.rglob("*") if file.is_file()}
    for part, values in REFUSED.items():
        for value in values:
            config = f"map('placement.shares', '{value}')"
            assert part in fails("OPTION_VALUE", lambda: call("set_config", topic="'t'", config=config)), value  # noqa: B023
    frame = spark.createDataFrame([("key", "value")], "key STRING, value STRING")
    other = frame.write.format("partlog").options(topic="t", placement="modulo").mode("append")
    assert "placement" in fails("OPTION_CONTRADICTS_TOPIC", lambda: other.save(str(root)))
    assert {file: file.read_bytes() for file in root.rglob("*") if file.is_file()} == files
    frame.write.format("partlog").options(topic="murmur", partitions=2).mode("append").save(str(root))
    shares = "map('placement.shares', '0:9:1,1')"
    assert "it would have no effect" in fails("OPTION_VALUE", lambda: call("set_config", topic="'murmur'", config=shares))


def test_created_in_sql(spark: SparkSession, tmp_path: Path) -> None:
    name = f"partlog.`{tmp_path / 'root'}`.t"
    spark.sql(f"CREATE TABLE {name} (key STRING, value STRING) TBLPROPERTIES (partitions = 3, placement = 'on_first_write')")
    assert Log(tmp_path / "root")["t"].describe()["routing"]["unbound"] == 65_536
    more = f"partlog.`{tmp_path / 'root'}`.more"
    properties = "partitions = 3, placement = 'on_first_write', 'placement.slots' = 1048576"
    spark.sql(f"CREATE TABLE {more} (key STRING, value STRING) TBLPROPERTIES ({properties})")
    spark.sql(f"INSERT INTO {more} (key, value) VALUES ('a', '1')")
    assert Log(tmp_path / "root")["more"].describe()["routing"]["unbound"] == 2**20 - 1
    spark.sql(f"INSERT INTO {name} (key, value) VALUES ('a', '1'), ('b', '2')")
    spark.sql(f"INSERT INTO {name} (key, value) VALUES ('a', '3'), ('c', '4')")
    assert Log(tmp_path / "root")["t"].describe()["routing"]["unbound"] == 65_533
    assert {row.key: row.n for row in spark.sql(f"SELECT CAST(key AS STRING) key, count(*) n FROM {name} GROUP BY 1").collect()} == {
        "a": 2,
        "b": 1,
        "c": 1,
    }
