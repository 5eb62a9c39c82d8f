"""Topics as tables of a catalog: what each statement does, and that one which is refused changes no byte, classic and over Connect."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import sparklog

PREPARED = [
    "CREATE TABLE {c}.orders (key STRING, value STRING) TBLPROPERTIES ('partitions' = '2')",
    "INSERT INTO {c}.orders (key, value) VALUES ('a', '1'), ('b', '2'), ('c', '3')",
    "INSERT INTO {c}.orders WITH ('txnAppId' = 'j', 'txnVersion' = '1') (key, value) VALUES ('d', '4')",
    "INSERT INTO {c}.orders WITH ('txnAppId' = 'j', 'txnVersion' = '1') (key, value) VALUES ('d', '4')",
    "CREATE TABLE {c}.plain",
]

# Statements that answer, with their rows, or None where these are not compared.
WORK = [
    ("SHOW NAMESPACES IN {c}", [["topics"]]),
    ("SHOW TABLES IN {c}", [["topics", "orders", False], ["topics", "plain", False]]),
    ("SHOW TABLES IN partlog.`{root}`", [["`{root}`", "orders", False], ["`{root}`", "plain", False]]),
    ("SHOW TABLES IN {c}.orders", [["orders", each, False] for each in ("commits", "partitions", "segments")]),
    ("SELECT count(*) FROM {c}.orders", [[4]]),
    ("SELECT count(*) FROM {c}.topics.orders", [[4]]),
    ("SELECT count(*) FROM partlog.`{root}`.orders", [[4]]),
    ("SELECT topic, count(*) FROM partlog.`{root}` GROUP BY topic", [["orders", 4]]),
    ("SELECT value FROM {c}.orders WHERE key = 'b'", [["2"]]),
    ("SELECT max(key), min(value), count(DISTINCT key) FROM {c}.orders", [["d", "1", 4]]),
    ("SELECT version, operation, records FROM {c}.orders.commits", [[0, "create", 0], [1, "write", 3], [2, "write", 1]]),
    ("SELECT sum(end_offset) FROM {c}.orders.partitions", [[4]]),
    ("SELECT sum(records) FROM {c}.topics.orders.segments", [[4]]),
    ("SELECT count(*) FROM {c}.orders VERSION AS OF 1", [[3]]),
    ("SELECT count(*) FROM {c}.orders FOR VERSION AS OF 0", [[0]]),
    ("SELECT count(*) FROM {c}.orders TIMESTAMP AS OF now()", [[4]]),
    ("DESCRIBE NAMESPACE {c}.topics", None),
    ("SHOW COLUMNS IN {c}.orders", None),
    ("SHOW TABLE EXTENDED IN {c} LIKE 'o*'", None),
    ("CREATE TABLE IF NOT EXISTS {c}.orders", []),
    ("DROP TABLE IF EXISTS {c}.nothing", []),
    ("SELECT {c}.murmur3_partition('a', 1)", [[0]]),
    ("SHOW PROCEDURES IN {c}", None),
    ("CALL {c}.topics('{root}')", None),
]

# Statements that are refused, with the condition.
REFUSED = [
    ("CREATE TABLE {c}.orders", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    ("CREATE TABLE {c}.bad (key STRING NOT NULL)", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("CREATE TABLE {c}.bad (key STRING COMMENT 'x')", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("CREATE TABLE {c}.bad (user STRING)", "PARTLOG_COLUMN_UNKNOWN"),
    ("CREATE TABLE {c}.bad (key INT)", "PARTLOG_COLUMN_TYPE"),
    ("CREATE TABLE {c}.bad (key STRING) TBLPROPERTIES ('key.type' = 'binary')", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("CREATE TABLE {c}.bad TBLPROPERTIES ('partitons' = '4')", "PARTLOG_OPTION_UNKNOWN"),
    ("CREATE TABLE {c}.bad TBLPROPERTIES ('batch.size' = '4000')", "PARTLOG_OPTION_UNKNOWN"),
    ("CREATE TABLE {c}.bad TBLPROPERTIES ('partitions' = '0')", "PARTLOG_OPTION_VALUE"),
    ("CREATE TABLE {c}.bad (key STRING) PARTITIONED BY (key)", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("CREATE TABLE {c}.bad COMMENT 'x'", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("CREATE TABLE {c}.bad LOCATION '/elsewhere'", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("CREATE TABLE {c}.`bad name!`", "PARTLOG_TOPIC_NAME_ILLEGAL"),
    ("CREATE TABLE {c}.orders AS SELECT 'a' AS value", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    ("CREATE TABLE {c}.bad AS SELECT 1 AS value", "PARTLOG_COLUMN_TYPE"),
    ("CREATE OR REPLACE TABLE {c}.orders AS SELECT 'a' AS value", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("REPLACE TABLE {c}.orders AS SELECT 'a' AS value", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("INSERT OVERWRITE {c}.orders (value) VALUES ('a')", "PARTLOG_SAVE_MODE"),
    ("INSERT INTO {c}.orders VALUES ('a', '1')", "PARTLOG_COLUMN_REQUIRED"),
    ("INSERT INTO {c}.orders WITH ('topic' = 'x') (value) VALUES ('a')", "PARTLOG_OPTION_CONFLICT"),
    ("UPDATE {c}.orders SET value = 'x'", "UNSUPPORTED_FEATURE.TABLE_OPERATION"),
    ("DELETE FROM {c}.orders WHERE key = 'a'", None),
    ("DELETE FROM {c}.orders WHERE offset > 5", None),
    ("DELETE FROM {c}.orders WHERE timestamp < now()", None),
    ("TRUNCATE TABLE {c}.orders.commits", None),
    ("ALTER TABLE {c}.orders SET TBLPROPERTIES ('partitions' = '1')", "PARTLOG_OPTION_VALUE"),
    ("ALTER TABLE {c}.orders SET TBLPROPERTIES ('retention.ms' = '1', 'partitions' = '1')", "PARTLOG_OPTION_VALUE"),
    ("ALTER TABLE {c}.orders SET TBLPROPERTIES ('nope' = '1')", "PARTLOG_OPTION_UNKNOWN"),
    ("ALTER TABLE {c}.orders UNSET TBLPROPERTIES ('retention.ms', 'nope')", "PARTLOG_OPTION_UNKNOWN"),
    ("ALTER TABLE {c}.orders UNSET TBLPROPERTIES ('partitions')", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("COMMENT ON TABLE {c}.orders IS 'x'", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("ALTER TABLE {c}.orders ADD COLUMN x INT", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("ALTER TABLE {c}.orders DROP COLUMN headers", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("ALTER TABLE {c}.orders RENAME TO {c}.other", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("ALTER TABLE {c}.orders SET LOCATION '/x'", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("DROP TABLE {c}.nothing", "TABLE_OR_VIEW_NOT_FOUND"),
    ("DROP TABLE {c}.orders.commits", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("DROP TABLE partlog.`{root}`", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("CREATE NAMESPACE {c}.x", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("DROP NAMESPACE {c}.topics CASCADE", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("SELECT * FROM {c}.nothing", "TABLE_OR_VIEW_NOT_FOUND"),
    ("SELECT * FROM partlog.`{root}`.nothing", "TABLE_OR_VIEW_NOT_FOUND"),
    ("SELECT * FROM partlog.`{root}x`", "PARTLOG_ROOT_NOT_FOUND"),
    ("SELECT * FROM partlog.orders", "PARTLOG_CATALOG_WITHOUT_ROOT"),
    ("SHOW TABLES IN partlog", "PARTLOG_CATALOG_WITHOUT_ROOT"),
    ("SELECT * FROM {c}.orders WITH ('subscribe' = 'plain')", "PARTLOG_OPTION_CONFLICT"),
    ("SELECT * FROM {c}.orders VERSION AS OF 99", "PARTLOG_VERSION_UNREADABLE"),
    ("SELECT * FROM {c}.orders VERSION AS OF 'x'", "PARTLOG_VERSION_UNREADABLE"),
    ("SELECT * FROM {c}.orders TIMESTAMP AS OF '2001-01-01'", "PARTLOG_VERSION_UNREADABLE"),
    ("SELECT * FROM {c}.orders.commits VERSION AS OF 0", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("ANALYZE TABLE {c}.orders COMPUTE STATISTICS", "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"),
    ("SHOW PARTITIONS {c}.orders", "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED"),
    ("CREATE VIEW {c}.v AS SELECT 1", "MISSING_CATALOG_ABILITY.VIEWS"),
]


def contents(root: Path) -> dict[str, bytes]:
    return {str(each.relative_to(root)): each.read_bytes() if each.is_file() else b"" for each in sorted(root.rglob("*"))}


def refused(action: Callable[[], object]) -> str | None:
    """The condition of an error that there must be."""
    with pytest.raises(PySparkException) as caught:
        action()
    return caught.value.getCondition()


def check(spark: SparkSession, catalog: str, root: Path) -> None:
    """All statements of this page, in one session."""
    sparklog.attach(spark, catalog, root)
    sparklog.attach(spark, catalog, str(root))
    wrong = []

    def told(sql: str) -> str:
        return sql.replace("{c}", catalog).replace("{root}", str(root))

    for sql in PREPARED:
        spark.sql(told(sql)).collect()
    for sql, rows in WORK:
        found = [list(row) for row in spark.sql(told(sql)).collect()]
        if rows is not None and sorted(found, key=str) != json.loads(told(json.dumps(sorted(rows, key=str)))):
            wrong.append((sql, found))
    for sql, condition in REFUSED:
        before = contents(root)
        try:
            rows = spark.sql(told(sql)).collect()
            wrong.append((sql, f"was not refused: {rows}"))
        except PySparkException as error:
            if condition is not None and error.getCondition() != condition:
                wrong.append((sql, error.getCondition(), str(error)[:200]))
        if contents(root) != before:
            wrong.append((sql, "the root has changed"))
    assert wrong == []
    made = spark.sql(told("SHOW CREATE TABLE {c}.orders")).first()[0]
    config = sparklog.Log(root).topic("orders").config
    spark.sql(told("DROP TABLE {c}.orders PURGE"))
    spark.sql(made)
    assert sparklog.Log(root).topic("orders").config == config
    spark.sql(told("ALTER TABLE {c}.orders SET TBLPROPERTIES ('partitions' = '4', 'retention.ms' = '5')"))
    assert sparklog.Log(root).topic("orders").config == config | {"partitions": "4", "retention.ms": "5"}
    spark.sql(told("ALTER TABLE {c}.orders UNSET TBLPROPERTIES ('retention.ms')"))
    assert sparklog.Log(root).topic("orders").config["retention.ms"] == "-1"
    spark.sql(told("CREATE TABLE {c}.copy TBLPROPERTIES ('partitions' = '1') AS SELECT CAST(id AS STRING) AS value FROM range(6)"))
    assert [each.operation for each in sparklog.Log(root).topic("copy").commits()] == ["write"]
    assert sparklog.Log(root).topic("copy").config["value.type"] == "string"
    spark.sql(told("DELETE FROM {c}.copy WHERE partition = 0 AND offset < 2"))
    assert sparklog.Log(root).topic("copy").start_offsets() == {0: 2}
    assert refused(spark.sql(told("SELECT * FROM {c}.copy VERSION AS OF 0")).collect) == "PARTLOG_OFFSETS_OUT_OF_RANGE"
    spark.sql(told("TRUNCATE TABLE {c}.copy"))
    assert spark.table(told("{c}.copy")).count() == 0
    assert [each.name for each in spark.catalog.listTables(catalog)] == ["copy", "orders", "plain"]
    assert spark.catalog.tableExists(told("{c}.copy"))
    assert not spark.catalog.tableExists(told("{c}.nothing"))
    assert [each.name for each in spark.catalog.listColumns(told("{c}.copy"))][:2] == ["key", "value"]
    spark.catalog.setCurrentCatalog(catalog)
    try:
        assert [each.name for each in spark.catalog.listTables()] == ["copy", "orders", "plain"]
        assert spark.sql("SELECT murmur3_partition('a', 1)").first()[0] == 0
        assert spark.sql("SELECT count(*) FROM copy").first()[0] == 0
    finally:
        spark.catalog.setCurrentCatalog("spark_catalog")


def test_every_statement(spark: SparkSession, tmp_path: Path) -> None:
    check(spark, "cat_classic", tmp_path / "root")


def test_every_statement_over_connect(connect: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, __file__, connect, str(tmp_path / "root")], capture_output=True, text=True, timeout=200, check=False
    )
    assert ran.returncode == 0, ran.stderr[-4000:]


def rows(spark: SparkSession, columns: str = "'k' AS key, 'v' AS value") -> SparkSession:
    return spark.sql(f"SELECT {columns}").write


def test_save_modes_with_nothing_but_the_jar(spark: SparkSession, tmp_path: Path) -> None:
    """In a session that never heard of a catalog."""
    other = spark.newSession()
    other.conf.unset("spark.sql.catalog.partlog")
    root = str(tmp_path / "root")

    def save(mode: str, topic: str, at: str = root) -> int:
        writer = rows(other).format("partlog").option("topic", topic).option("partitions", 3).mode(mode)
        writer.save(at)
        return sum(sparklog.Log(at).topic(topic).end_offsets().values())

    assert save("errorifexists", "a") == 1
    assert len(sparklog.Log(root).topic("a").end_offsets()) == 3
    assert "key.type" not in sparklog.Log(root).topic("a").config
    before = contents(Path(root))
    assert refused(lambda: save("error", "a")) == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert save("ignore", "a") == 1
    assert refused(lambda: save("overwrite", "a")) == "PARTLOG_SAVE_MODE"
    assert contents(Path(root)) == before
    assert save("append", "a") == 2
    assert save("append", "b") == 1
    assert save("ignore", "c") == 1
    assert save("ignore", "c", str(tmp_path / "new")) == 1
    of_rows = rows(other, "'v' AS value, 'd' AS topic").format("partlog")
    assert refused(lambda: of_rows.save(root)) == "TABLE_OR_VIEW_ALREADY_EXISTS"
    of_rows.save(str(tmp_path / "third"))
    assert sparklog.Log(tmp_path / "third").topics() == ["d"]


def test_tables_of_dataframes(spark: SparkSession, tmp_path: Path) -> None:
    sparklog.attach(spark, "cat_frames", tmp_path / "root")
    rows(spark).saveAsTable("cat_frames.t")
    log = sparklog.Log(tmp_path / "root")
    assert refused(lambda: rows(spark).saveAsTable("cat_frames.t")) == "TABLE_OR_VIEW_ALREADY_EXISTS"
    rows(spark).mode("ignore").saveAsTable("cat_frames.t")
    rows(spark).mode("append").saveAsTable("cat_frames.t")
    assert refused(lambda: rows(spark).mode("overwrite").saveAsTable("cat_frames.t")) == "PARTLOG_STATEMENT_UNSUPPORTED"
    spark.sql("SELECT 'k' AS key, 'v' AS value").writeTo("cat_frames.u").option("partitions", 3).create()
    spark.sql("SELECT 'k' AS key, 'v' AS value").writeTo("cat_frames.u").append()
    assert {name: sum(log.topic(name).end_offsets().values()) for name in log.topics()} == {"t": 2, "u": 2}
    assert len(log.topic("u").end_offsets()) == 3
    assert spark.read.option("versionAsOf", 0).table("cat_frames.t").count() == 1
    with pytest.raises(PySparkException):
        spark.sql("SELECT raise_error('x') AS value").writeTo("cat_frames.failed").create()
    assert log.topics() == ["t", "u"]


def test_streams(spark: SparkSession, tmp_path: Path) -> None:
    sparklog.attach(spark, "cat_streams", tmp_path / "root")
    spark.sql("CREATE TABLE cat_streams.a (key STRING, value STRING) TBLPROPERTIES ('partitions' = '1')")
    spark.sql("INSERT INTO cat_streams.a (key, value) VALUES ('a', '1'), ('b', '2')")
    source = spark.readStream.option("startingOffsets", "earliest").table("cat_streams.a").select("key", "value")
    query = source.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    query.toTable("cat_streams.b").awaitTermination()
    assert sorted(map(tuple, spark.table("cat_streams.b").select("key", "value").collect())) == [("a", "1"), ("b", "2")]


def test_a_time_travel_reads_the_same_after_a_merge(spark: SparkSession, tmp_path: Path) -> None:
    sparklog.attach(spark, "cat_past", tmp_path / "root")
    spark.sql("CREATE TABLE cat_past.t TBLPROPERTIES ('partitions' = '1')")
    for value in "abc":
        spark.sql(f"INSERT INTO cat_past.t WITH ('merge' = 'false') (value) VALUES ('{value}')")
    past = spark.sql("SELECT CAST(value AS STRING) FROM cat_past.t VERSION AS OF 2")
    before = past.collect()
    assert [row[0] for row in before] == ["a", "b"]
    spark.sql(f"CALL partlog.merge(root => '{tmp_path}/root', topic => 't')")
    spark.sql("ALTER TABLE cat_past.t SET TBLPROPERTIES ('partitions' = '3')")
    assert spark.sql("SELECT CAST(value AS STRING) FROM cat_past.t VERSION AS OF 2").collect() == before


def test_attach_refuses_a_name_with_another_meaning(spark: SparkSession, tmp_path: Path) -> None:
    sparklog.attach(spark, "cat_name", tmp_path / "one")
    for name in ("cat_name", "partlog", "spark_catalog"):
        with pytest.raises(sparklog.CallError, match="CATALOG_TAKEN"):
            sparklog.attach(spark, name, tmp_path / "two")


if __name__ == "__main__":
    session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
    check(session, "cat_connect", Path(sys.argv[2]))
