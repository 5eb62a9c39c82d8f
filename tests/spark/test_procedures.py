"""The procedures of the catalog: `CALL partlog.…`."""

import datetime
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from sparklog import Log

Call = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def save(rows: DataFrame, root: Path, topic: str = "orders", **options: object) -> None:
    rows.write.format("partlog").options(topic=topic, **options).mode("append").save(str(root))


def numbers(spark: SparkSession, count: int, partitions: int = 2) -> DataFrame:
    """Records 0, 1, … in turn in each partition, a second apart."""
    return spark.range(0, count, 1, 1).selectExpr(
        "CAST(id AS STRING) AS value", f"CAST(id % {partitions} AS INT) AS partition", "timestamp_seconds(1700000000 + id) AS timestamp"
    )


def moment(second: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(1_700_000_000 + second, datetime.timezone.utc).astimezone().replace(tzinfo=None)


def test_topics_and_segments(spark: SparkSession, root: Path, call: Call) -> None:
    save(numbers(spark, 10), root, partitions=2)
    save(numbers(spark, 5), root)
    save(numbers(spark, 0, 1), root, topic="empty", partitions=3)
    orders = Log(root)["orders"]
    segments = call("segments", topic="'orders'")
    assert [[row[name] for name in ("topic", "partition", "base_offset", "end_offset", "records")] for row in segments] == [
        ["orders", 0, 0, 5, 5],
        ["orders", 0, 5, 8, 3],
        ["orders", 1, 0, 5, 5],
        ["orders", 1, 5, 7, 2],
    ]
    assert [(row["min_timestamp"], row["max_timestamp"]) for row in segments] == [
        (moment(0), moment(8)),
        (moment(0), moment(4)),
        (moment(1), moment(9)),
        (moment(1), moment(3)),
    ]
    batches = [(batch.partition, batch.base_offset, batch.bytes, batch.position) for number in (0, 1) for batch in orders.batches(number)]
    assert [(row["partition"], row["base_offset"], row["bytes"], row["position"]) for row in segments] == batches
    assert [(row["batches"], row["dense"], row["routed"], row["ordered"]) for row in segments] == [(1, True, False, True)] * 4
    assert all(Path(row["file"]).is_file() and Path(row["file"]).is_relative_to(root) for row in segments)
    table = spark.table(f"partlog.`{root}`.orders.segments")
    assert [{"topic": "orders", **row.asDict()} for row in table.collect()] == segments, "the table has the rows of the procedure"
    empty, row = call("topics")
    assert row == {
        "topic": "orders",
        "topic_id": topic_id(root, "orders"),
        "partitions": 2,
        "records": 15,
        "segments": 4,
        "batches": 4,
        "bytes": sum(each["bytes"] for each in segments),
        "min_timestamp": moment(0),
        "max_timestamp": moment(9),
        "version": 1,
        "committed_at": orders.commits()[-1].time.astimezone().replace(tzinfo=None),
    }
    assert list(empty.values())[2:10] == [3, 0, 0, 0, 0, None, None, 0]
    assert call("segments", topic="'empty'") == []


def topic_id(root: Path, topic: str) -> str:
    newest = max((root / "_partlog" / topic).glob("*.json"))
    return str(json.loads(newest.read_text().splitlines()[0])["topicId"])


def test_what_the_catalog_says_of_them(spark: SparkSession) -> None:
    declared = json.loads((Path(__file__).parents[2] / "sparklog" / "spec" / "procedures.json").read_text())["procedures"]
    listed = [row["procedure_name"] for row in spark.sql("SHOW PROCEDURES IN partlog").collect()]
    assert listed == [procedure["name"] for procedure in declared]
    described = "\n".join(row[0] for row in spark.sql("DESCRIBE PROCEDURE partlog.publish").collect())
    print(described)
    assert "publish(root, topic => NULL): Make the Kafka view right" in described


BAD = [
    ("topics", "root => ''", "ARGUMENT_VALUE", "Argument `root` of the procedure topics has the value '': it must not be empty."),
    (
        "topics",
        "root => NULL",
        "ARGUMENT_VALUE",
        "has the value NULL: it must have a value. Call the procedure as topics(root).",
    ),
    ("topics", "root => '~/x'", "ARGUMENT_VALUE", "Argument `root` of the procedure topics has the value ~/x: only a shell makes"),
    ("topics", "root => 's3://b/x'", "STORE_UNSUPPORTED", "S3 (s3a://…). Spark does not take s3://"),
    ("topics", "root => '{root}/none'", "ROOT_NOT_FOUND", "/none"),
    ("segments", "root => '{root}', topic => ''", "TOPIC_NAME_ILLEGAL", "it is empty"),
    ("segments", "root => '{root}', topic => 'a/b'", "TOPIC_NAME_ILLEGAL", "'a/b'"),
    ("segments", "root => '{root}', topic => NULL", "ARGUMENT_VALUE", "`topic`"),
    ("segments", "root => '{root}', topic => 'oders'", "TOPIC_NOT_FOUND", "Existing topics: orders."),
    ("publish", "root => '{root}', topic => 'oders'", "TOPIC_NOT_FOUND", "Existing topics: orders."),
]


def test_a_bad_argument_is_refused_and_changes_nothing(spark: SparkSession, root: Path, fails: Callable[..., str]) -> None:
    save(numbers(spark, 4), root, partitions=2)
    before = contents(root)
    for procedure, arguments, condition, words in BAD:
        said = fails(condition, lambda: spark.sql(f"CALL partlog.{procedure}({arguments.format(root=root)})"))  # noqa: B023
        assert words in said, said
    assert contents(root) == before


def contents(root: Path) -> dict[Path, bytes]:
    return {file.relative_to(root): file.read_bytes() for file in root.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("arguments", "condition"),
    [
        ("", "REQUIRED_PARAMETER_NOT_FOUND"),
        ("root => '{root}', topik => 'orders'", "UNRECOGNIZED_PARAMETER_NAME"),
        ("'{root}', 'orders', 3", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"),
        ("'{root}', map(1, 2)", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"),
    ],
)
def test_spark_refuses_what_is_not_an_argument(spark: SparkSession, root: Path, arguments: str, condition: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        spark.sql(f"CALL partlog.publish({arguments.format(root=root)})")
    assert caught.value.getCondition() == condition


def test_one_topic_that_fails_does_not_stop_the_others(spark: SparkSession, root: Path, fails: Callable[..., str]) -> None:
    for topic in ("a", "b", "c"):
        save(numbers(spark, 4), root, topic=topic, partitions=2)
    [version] = root.glob("_partlog/b/*.json")
    version.write_bytes(version.read_bytes()[:-1])
    for file in root.glob("?-*/*"):
        file.unlink()
    said = fails("CALL_INCOMPLETE", lambda: spark.sql(f"CALL partlog.publish('{root}')"))
    assert f"The procedure publish failed for these topics under the root {root}: b. The first error: [PARTLOG_VERSION_CORRUPT]" in said
    assert "The procedure is done for these topics: a, c." in said
    assert {file.parent.name for file in root.glob("?-*/*.log")} == {"a-0", "a-1", "c-0", "c-1"}
    fails("VERSION_CORRUPT", lambda: spark.sql(f"CALL partlog.publish('{root}', 'b')"))


def test_records_are_deleted(spark: SparkSession, root: Path, call: Call, fails: Callable[..., str]) -> None:
    for _ in range(3):
        save(numbers(spark, 20), root, partitions=2)
    told = call("delete_records", topic="'orders'", offsets='\'{"0":12,"1":-1}\'', dry_run="true")
    assert Log(root)["orders"].start_offsets() == {0: 0, 1: 0}
    done = call("delete_records", topic="'orders'", offsets='\'{"0":12,"1":-1}\'')
    assert done == told
    assert done == [
        {"topic": "orders", "partition": 0, "start_before": 0, "start_after": 12, "end_offset": 30, "records_deleted": 12, "kept": None},
        {"topic": "orders", "partition": 1, "start_before": 0, "start_after": 30, "end_offset": 30, "records_deleted": 30, "kept": None},
    ]
    rows = spark.read.format("partlog").option("subscribe", "orders").load(str(root)).select("partition", "offset").collect()
    assert sorted(map(tuple, rows)) == [(0, offset) for offset in range(12, 30)]
    assert [(row["partition"], row["base_offset"]) for row in call("segments", topic="'orders'")] == [(0, 10), (0, 20)]
    assert [(row["records"], row["version"]) for row in call("topics")] == [(18, 3)]
    assert [commit.operation for commit in Log(root)["orders"].commits()] == ["write", "write", "write", "delete-records"]
    again = call("delete_records", topic="'orders'", offsets="'{\"0\":3}'")
    assert [(row["start_before"], row["start_after"], row["records_deleted"]) for row in again] == [(12, 12, 0)]
    assert call("topics")[0]["version"] == 3
    said = fails("OFFSETS_OUT_OF_RANGE", lambda: call("delete_records", topic="'orders'", offsets="'{\"0\":31}'"))
    assert "which holds offsets 12 to 30" in said


def test_what_a_group_needs_is_kept(spark: SparkSession, root: Path, call: Call, fails: Callable[..., str]) -> None:
    for _ in range(3):
        for topic in ("orders", "other"):
            save(numbers(spark, 20), root, topic=topic, partitions=2)
    keep = f"'{json.dumps({'orders': {0: 17, 1: 0}, 'other': {1: 30}})}'"
    kept = call("delete_records", topic="'orders'", offsets='\'{"0":25,"1":-1}\'', keep=keep, dry_run="true")
    assert [(row["start_after"], row["records_deleted"], row["kept"]) for row in kept] == [(17, 17, 17), (0, 0, 0)]
    assert call("delete_records", topic="'orders'", offsets='\'{"0":25,"1":-1}\'', keep=keep) == kept
    assert [row["records_deleted"] for row in call("expire")] == [0] * 4
    assert "Existing topics: orders, other." in fails(
        "TOPIC_NOT_FOUND", lambda: call("expire", keep='\'{"oders":{"0":17}}\'', retention_bytes=0)
    )
    told = call("expire", keep=keep, retention_bytes=0, dry_run="true")
    assert [(row["topic"], row["partition"], row["start_after"], row["kept"]) for row in told] == [
        ("orders", 0, 17, 17),
        ("orders", 1, 0, 0),
        ("other", 0, 20, None),
        ("other", 1, 20, 30),
    ]
    assert call("expire", keep=keep, retention_bytes=0) == told
    assert call("expire", topic="'orders'", keep="'{\"1\":15}'", retention_ms=1000)[1]["start_after"] == 10


def test_partitions_and_configuration(spark: SparkSession, root: Path, call: Call, fails: Callable[..., str]) -> None:
    save(numbers(spark, 20), root, partitions=2)
    table = call("add_partitions", topic="'orders'", partitions=4, dry_run="true")
    assert call("add_partitions", topic="'orders'", partitions=4) == table
    assert [(row["partition"], row["slots_before"], row["slots_after"], row["moved"]) for row in table] == [
        (0, 2048, 1024, 1024),
        (1, 2048, 1024, 1024),
        (2, 0, 1024, 1024),
        (3, 0, 1024, 1024),
    ]
    assert {(row["topic"], row["partitions_before"], row["partitions_after"]) for row in table} == {("orders", 2, 4)}
    again = call("add_partitions", topic="'orders'", partitions=4)
    assert [(row["slots_before"], row["moved"]) for row in again] == [(1024, 0)] * 4, "it is done, and may be repeated"
    fails("ARGUMENT_VALUE", lambda: call("add_partitions", topic="'orders'", partitions=3))
    save(numbers(spark, 20, 4), root, partitions=4)
    assert Log(root)["orders"].end_offsets() == {0: 15, 1: 15, 2: 5, 3: 5}
    assert [row["routed"] for row in call("segments", topic="'orders'")] == [False] * 6
    changes = "map('compression.type', 'ZSTD', 'retention.ms', '9000000000000')"
    assert call("set_config", topic="'orders'", config=changes) == [
        {"topic": "orders", "key": "compression.type", "before": "none", "after": "zstd"},
        {"topic": "orders", "key": "retention.ms", "before": "-1", "after": "9000000000000"},
    ]
    save(numbers(spark, 4, 4), root)
    assert {batch.codec for number in range(4) for batch in Log(root)["orders"].batches(number)} == {"none", "zstd"}
    assert "CALL partlog.add_partitions" in fails(
        "OPTION_VALUE", lambda: call("set_config", topic="'orders'", config="map('partitions', '8')")
    )
    assert call("topics")[0]["version"] == 4


def test_a_topic_is_deleted_and_created_again(spark: SparkSession, root: Path, call: Call, fails: Callable[..., str]) -> None:
    save(numbers(spark, 20), root, partitions=2)
    id = topic_id(root, "orders")
    told = call("delete_topic", topic="'orders'", dry_run="true")
    assert [list(row.values())[:5] for row in told] == [["orders", id, 2, 20, 2]] and told[0]["bytes"] > 0
    assert call("delete_topic", topic="'orders'") == told
    assert call("topics") == [] and Log(root).topics() == []
    assert list(root.rglob("*.log")) == []
    assert "Existing topics: none." in fails("TOPIC_NOT_FOUND", lambda: call("segments", topic="'orders'"))
    assert [row["records"] for row in call("delete_topic", topic="'orders'")] == [0]
    save(numbers(spark, 5, 1), root, partitions=1)
    assert [(row["partitions"], row["records"]) for row in call("topics")] == [(1, 5)]
    assert topic_id(root, "orders") != id


def test_small_segments_are_merged_and_old_ones_expire(spark: SparkSession, root: Path, call: Call) -> None:
    for number in range(3):
        save(numbers(spark, 1_000), root, partitions=2, **{"batch.size": 100})
        save(numbers(spark, number, 1), root, topic="other", partitions=1)
    planned = spark.read.format("partlog").option("subscribe", "orders").load(str(root)).select("partition", "offset", "value")
    before = sorted(map(tuple, planned.collect()))
    told = call("merge", topic="'orders'", dry_run="true")
    assert sorted(map(tuple, planned.collect())) == before
    [row] = call("merge", topic="'orders'")
    assert [row] == told
    assert (row["segments_before"], row["segments_after"], row["batches_after"]) == (6, 2, row["batches_before"])
    assert row["bytes_before"] == row["bytes_after"] == row["bytes_merged"]
    assert [each["batches_after"] for each in call("merge", rebatch="true", dry_run="true")] == [None, None]
    [smaller] = call("merge", topic="'orders'", rebatch="true", batch_size=4_000)
    assert 2 < smaller["batches_after"] < smaller["batches_before"] / 8
    assert 3_000 < max(batch.bytes for number in (0, 1) for batch in Log(root)["orders"].batches(number)) <= 4_000
    orders, other = call("merge", rebatch="true")
    assert (orders["batches_before"], orders["batches_after"]) == (smaller["batches_after"], 2)
    assert orders["bytes_after"] < row["bytes_before"] / 2
    assert (other["segments_before"], other["segments_after"]) == (2, 1)
    assert sorted(map(tuple, planned.collect())) == before
    assert len(list(root.glob("orders-*/*.log"))) == 2

    save(numbers(spark, 10), root)
    call("set_config", topic="'orders'", config="map('retention.ms', '1000')")
    told = call("expire", dry_run="true")
    assert [(each["topic"], each["partition"], each["start_before"], each["start_after"], each["records_deleted"]) for each in told] == [
        ("orders", 0, 0, 1_505, 1_505),
        ("orders", 1, 0, 1_505, 1_505),
        ("other", 0, 0, 0, 0),
    ]
    assert call("expire") == told
    assert [each["records"] for each in call("topics")] == [0, 3]
    assert [each["records_deleted"] for each in call("expire", topic="'orders'")] == [0, 0]
    assert len(list(root.glob("orders-*/*.log"))) == 0


CONNECT = """
import sys, sparklog
from pyspark.sql import SparkSession
server, root = sys.argv[1:]
spark = sparklog.configure(SparkSession.builder.remote(server)).getOrCreate()
for call in sys.stdin.read().splitlines():
    try:
        print([tuple(row) for row in spark.sql(f"CALL partlog.{call}", args={"root": root}).collect()])
    except Exception as error:
        print(error.getCondition())
"""


def test_connect(spark: SparkSession, connect: str, root: Path) -> None:
    save(numbers(spark, 20), root, partitions=2)
    calls = {
        "topics(:root)": None,
        "segments(root => :root, topic => 'orders')": None,
        "publish(:root)": "[('orders', 0)]",
        "publish(:root, 'oders')": "PARTLOG_TOPIC_NOT_FOUND",
        "delete_records(:root, 'orders', '{\"0\":4}')": "[('orders', 0, 0, 4, 10, 4, None)]",
        "delete_records(:root, 'orders', '{\"0\":-1}', keep => '{\"0\":5}')": "[('orders', 0, 4, 5, 10, 1, 5)]",
        "delete_records(:root, 'orders', '0')": "PARTLOG_ARGUMENT_VALUE",
        "merge(:root, rebatch => true, batch_size => 100000)": None,
        "merge(:root, batch_size => 100000)": "PARTLOG_ARGUMENT_VALUE",
        "expire(:root, dry_run => true)": None,
        "vacuum(:root)": "[('orders', 0, 0, 0, 0)]",
        "vacuum(:root, older_than => INTERVAL '59' MINUTE)": "PARTLOG_ARGUMENT_VALUE",
        "vacuum(:root, 'orders', INTERVAL '2' HOUR, true)": "[('orders', 0, 0, 0, 0)]",
        "add_partitions(topic => 'orders', root => :root, partitions => 3)": (
            "[('orders', 2, 3, 0, 2048, 1366, 682), ('orders', 2, 3, 1, 2048, 1365, 683), ('orders', 2, 3, 2, 0, 1365, 1365)]"
        ),
        "close_partitions(:root, 'orders', array(1, 2))": "[('orders', 0, 1, 1366, 4096, 2730), ('orders', 1, 0, 1365, 0, 1365), "
        "('orders', 2, 0, 1365, 0, 1365)]",
        "reroute(:root, 'orders', '{\"1\":2}')": "PARTLOG_ARGUMENT_VALUE",
        "set_config(:root, 'orders', map('retention.bytes', '1000000'))": "[('orders', 'retention.bytes', '-1', '1000000')]",
        "set_config(:root, 'orders', map('retention', '1'))": "PARTLOG_OPTION_UNKNOWN",
        "delete_topic(root => :root, topic => 'orders', dry_run => true)": None,
        "delete_topic(:root, 'orders')": None,
    }
    command = [sys.executable, "-c", CONNECT, connect, str(root)]
    ran = subprocess.run(command, input="\n".join(calls), capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    said = dict(zip(calls, ran.stdout.splitlines(), strict=True))
    assert {call: answer for call, answer in said.items() if calls[call]} == {call: answer for call, answer in calls.items() if answer}
    assert all(answer.startswith("[('orders', ") for call, answer in said.items() if not calls[call])
    assert Log(root).topics() == []
