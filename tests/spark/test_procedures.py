"""The procedures of the catalog: `CALL partlog.…`."""

import datetime
import json
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


@pytest.fixture
def call(spark: SparkSession, root: Path) -> Call:
    """Calls a procedure on the root with named arguments, which are SQL; gives its rows."""

    def run(procedure: str, **arguments: object) -> list[dict[str, Any]]:
        given = "".join(f", {name} => {value}" for name, value in arguments.items())
        return [row.asDict() for row in spark.sql(f"CALL partlog.{procedure}(root => '{root}'{given})").collect()]

    return run


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
    assert "publish(root, topic => NULL): Makes the Kafka view right" in described


BAD = [
    ("topics", "root => ''", "ARGUMENT_VALUE", "Argument `root` of the procedure topics has the value '': it is empty."),
    (
        "topics",
        "root => NULL",
        "ARGUMENT_VALUE",
        "has the value NULL: it must have a value. Correct the value. The procedure is topics(root).",
    ),
    ("topics", "root => '~/x'", "ARGUMENT_VALUE", "Argument `root` of the procedure topics has the value ~/x: only a shell makes"),
    ("topics", "root => 's3://b/x'", "STORE_UNSUPPORTED", "the scheme s3"),
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
    assert "It is done for these topics: a, c." in said
    assert {file.parent.name for file in root.glob("?-*/*.log")} == {"a-0", "a-1", "c-0", "c-1"}
    fails("VERSION_CORRUPT", lambda: spark.sql(f"CALL partlog.publish('{root}', 'b')"))
