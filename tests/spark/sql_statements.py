"""Tables of what SQL and DataFrames do with topics, and the answer to each statement. As a program, it makes them over Spark Connect."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, functions

import sparklog

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")

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
    ("SELECT count(DISTINCT 1), count(1), count(DISTINCT 'x') FROM {c}.orders", [[1, 4, 1]]),
    ("SELECT partition > -1, count(DISTINCT 1) FROM {c}.orders GROUP BY partition", [[True, 1], [True, 1]]),
    ("SELECT count(DISTINCT 1), count(1), count(NULL) FROM {c}.plain", [[0, 0, 0]]),
    ("SELECT version, operation, records FROM {c}.orders.commits", [[0, "create", 0], [1, "write", 3], [2, "write", 1]]),
    ("SELECT sum(end_offset) FROM {c}.orders.partitions", [[4]]),
    ("SELECT sum(records) FROM {c}.topics.orders.segments", [[4]]),
    ("SELECT count(*) FROM {c}.orders VERSION AS OF 1", [[3]]),
    ("SELECT count(*) FROM {c}.orders FOR VERSION AS OF 0", [[0]]),
    ("SELECT count(*) FROM {c}.orders TIMESTAMP AS OF now()", [[4]]),
    ("SELECT count(*) FROM {c}.orders FOR SYSTEM_VERSION AS OF 1", [[3]]),
    ("SELECT count(*) FROM {c}.orders FOR SYSTEM_TIME AS OF now()", [[4]]),
    ("SELECT count(*) FROM {c}.orders WITH ('startingOffsets' = 'earliest')", [[4]]),
    ("SELECT count(*) FROM {c}.orders TABLESAMPLE (100 PERCENT)", [[4]]),
    ("SELECT a.value FROM {c}.orders a JOIN {c}.orders VERSION AS OF 1 b ON a.key = b.key WHERE a.key > 'b'", [["3"]]),
    ("DESCRIBE NAMESPACE {c}.topics", [["Catalog Name", "{c}"], ["Namespace Name", "topics"], ["Location", "{root}"]]),
    ("SHOW COLUMNS IN {c}.orders", [[each] for each in COLUMNS]),
    ("SHOW TABLES IN {c} LIKE 'o*'", [["topics", "orders", False]]),
    ("SHOW TABLE EXTENDED IN {c} LIKE 'o*'", None),
    ("SHOW TBLPROPERTIES {c}.orders ('key.type')", [["key.type", "string"]]),
    ("SHOW TBLPROPERTIES {c}.orders ('partitions')", [["partitions", "2"]]),
    ("DESCRIBE EXTENDED {c}.orders", None),
    ("DESCRIBE {c}.orders key", None),
    ("EXPLAIN SELECT * FROM {c}.orders", None),
    ("INSERT INTO {c}.plain (value) VALUES ('x')", []),
    ("INSERT INTO {c}.plain BY NAME SELECT 'y' AS value", []),
    ("INSERT INTO {c}.plain (key, value) SELECT key, value FROM {c}.orders", []),
    ("BEGIN INSERT INTO {c}.plain (value) VALUES ('p'); INSERT INTO {c}.plain (value) VALUES ('q'); END", None),
    ("SELECT count(*), count(key) FROM {c}.plain", [[8, 4]]),
    ("CACHE TABLE {c}.plain", []),
    ("INSERT INTO {c}.plain (value) VALUES ('z')", []),
    ("SELECT count(*) FROM {c}.plain", [[9]]),
    ("REFRESH TABLE {c}.plain", []),
    ("UNCACHE TABLE {c}.plain", []),
    ("CREATE TEMPORARY VIEW {c}_t AS SELECT key, value FROM {c}.orders", []),
    ("SELECT value FROM {c}_t WHERE key = 'b'", [["2"]]),
    ("DROP VIEW {c}_t", []),
    ("CREATE VIEW spark_catalog.default.{c}_p AS SELECT key, value FROM {c}.orders", []),
    ("SELECT value FROM spark_catalog.default.{c}_p WHERE key = 'b'", [["2"]]),
    ("DROP VIEW spark_catalog.default.{c}_p", []),
    ("CREATE TABLE IF NOT EXISTS {c}.orders", []),
    ("DROP TABLE IF EXISTS {c}.nothing", []),
    ("SELECT {c}.murmur3_partition('a', 1)", [[0]]),
    ("SELECT {c}.topics.murmur3_partition('a', 1)", [[0]]),
    ("SELECT partlog.`{root}`.murmur3_partition('a', 1)", [[0]]),
    ("USE partlog.`{root}`", []),
    ("SELECT murmur3_partition('a', 1), count(*) FROM orders", [[0, 4]]),
    ("CALL topics('{root}')", None),
    ("SHOW PROCEDURES", None),
    ("USE {c}.orders", []),
    ("SELECT murmur3_partition('a', 1), count(*) FROM commits", [[0, 3]]),
    ("USE spark_catalog.default", []),
    ("CREATE TABLE partlog.`{root}`.{c}_typed USING partlog AS SELECT 'k' AS key, 'v' AS value", []),
    ("SELECT key, value FROM partlog.`{root}`.{c}_typed", [["k", "v"]]),
    ("DROP TABLE partlog.`{root}`.{c}_typed", []),
    ("SHOW PROCEDURES IN {c}", None),
    ("CALL {c}.topics('{root}')", None),
]

# Statements that are refused, with the condition.
REFUSED = [
    ("CREATE TABLE {c}.orders", "PARTLOG_TOPIC_EXISTS"),
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
    ("CREATE TABLE {c}.orders AS SELECT 'a' AS value", "PARTLOG_TOPIC_EXISTS"),
    ("CREATE TABLE {c}.__consumer_offsets", "PARTLOG_TOPIC_OF_SERVER"),
    ("CREATE TABLE {c}.__consumer_offsets AS SELECT 'a' AS value", "PARTLOG_TOPIC_OF_SERVER"),
    ("CREATE TABLE {c}.bad AS SELECT 1 AS value", "PARTLOG_COLUMN_TYPE"),
    ("CREATE OR REPLACE TABLE {c}.orders AS SELECT 'a' AS value", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("REPLACE TABLE {c}.orders AS SELECT 'a' AS value", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("INSERT OVERWRITE {c}.orders (value) VALUES ('a')", "PARTLOG_SAVE_MODE"),
    ("INSERT INTO {c}.orders VALUES ('a', '1')", "PARTLOG_COLUMN_REQUIRED"),
    ("INSERT INTO {c}.orders WITH ('topic' = 'x') (value) VALUES ('a')", "PARTLOG_OPTION_CONFLICT"),
    ("UPDATE {c}.orders SET value = 'x'", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("MERGE INTO {c}.orders t USING {c}.plain s ON t.key = s.key WHEN MATCHED THEN UPDATE SET *", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("DELETE FROM {c}.orders WHERE key = 'a'", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("DELETE FROM {c}.orders WHERE offset > 5", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("DELETE FROM {c}.orders WHERE timestamp < now()", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("TRUNCATE TABLE {c}.orders.commits", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("DELETE FROM {c}.orders.commits WHERE version = 0", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("DELETE FROM {c}.orders.commits", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("TRUNCATE TABLE partlog.`{root}`", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("DELETE FROM partlog.`{root}` WHERE partition = 0", "PARTLOG_STATEMENT_UNSUPPORTED"),
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
    ("MERGE INTO {c}.orders t USING {c}.plain s ON t.offset = s.offset WHEN MATCHED THEN DELETE", None),
    ("INSERT OVERWRITE {c}.orders PARTITION (partition = 0) (value) VALUES ('a')", None),
    ("INSERT INTO {c}.orders REPLACE WHERE partition = 0 VALUES ('a', 'b')", None),
    ("INSERT INTO {c}.nothing (value) VALUES ('a')", "TABLE_OR_VIEW_NOT_FOUND"),
    ("CREATE TABLE {c}.bad LIKE {c}.orders", None),
    ("CREATE TABLE {c}.bad (key STRING DEFAULT 'x')", None),
    ("CREATE TABLE {c}.bad (key STRING) CLUSTER BY (key)", None),
    ("CREATE TABLE {c}.bad (key STRING, CONSTRAINT c CHECK (key > 'a'))", None),
    ("CREATE EXTERNAL TABLE {c}.bad (key STRING)", None),
    ("CREATE TABLE {c}.orders.commits", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    ("CREATE TABLE {c}.nothing.commits", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("CREATE TABLE {c}.bad OPTIONS (topic 'x') AS SELECT 'a' AS value", "PARTLOG_OPTION_CONFLICT"),
    ("CREATE TABLE {c}.bad OPTIONS (path '/elsewhere') AS SELECT 'a' AS value", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("CREATE TABLE {c}.bad OPTIONS (topic 'bad')", "PARTLOG_OPTION_UNKNOWN"),
    ("CREATE TABLE {c}.bad OPTIONS (startingOffsets 'latest') AS SELECT 'a' AS value", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("CREATE TABLE {c}.bad AS SELECT 'a' COLLATE UTF8_LCASE AS key, 'b' AS value", "PARTLOG_COLUMN_TYPE"),
    ("CREATE TABLE {c}.orders.other", None),
    ("INSERT INTO {c}.orders.commits (version) VALUES (1)", None),
    ("ALTER TABLE {c}.orders ALTER COLUMN key TYPE BINARY", None),
    ("ALTER TABLE {c}.orders CLUSTER BY (key)", None),
    ("ALTER TABLE {c}.orders ADD PARTITION (partition = 5)", None),
    ("SELECT * FROM {c}.orders CHANGES FROM VERSION 0", None),
    ("SELECT * FROM {c}.orders VERSION AS OF 0 WITH ('startingOffsets' = 'earliest')", None),
    ("DESCRIBE HISTORY {c}.orders", None),
    ("MSCK REPAIR TABLE {c}.orders", None),
    ("LOAD DATA INPATH '{root}' INTO TABLE {c}.orders", None),
    ("ALTER NAMESPACE {c}.topics SET PROPERTIES ('a' = 'b')", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("COMMENT ON NAMESPACE {c}.topics IS 'x'", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("DROP VIEW {c}.orders", None),
    ("CALL {c}.nothing('{root}')", "PARTLOG_PROCEDURE_NOT_FOUND"),
    ("CREATE TABLE spark_catalog.default.{c} USING partlog OPTIONS (path '{root}', topic 'sc') AS SELECT 'a' AS value", None),
    ("CREATE TABLE spark_catalog.default.{c} (value STRING) USING partlog OPTIONS (path '{root}', topic 'sc')", None),
    ("USE {c}.nothing", "SCHEMA_NOT_FOUND"),  # the last one: Spark has changed its current catalog
]


def contents(root: Path) -> dict[str, bytes]:
    return {str(each.relative_to(root)): each.read_bytes() if each.is_file() else b"" for each in sorted(root.rglob("*"))}


def refused(action: Callable[[], object]) -> str | None:
    """The condition of an error that there must be."""
    with pytest.raises(PySparkException) as caught:
        action()
    return caught.value.getCondition()


def statements(spark: SparkSession, catalog: str, root: Path) -> None:
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
    assert not wrong, wrong
    spark.catalog.setCurrentCatalog("spark_catalog")
    made = spark.sql(told("SHOW CREATE TABLE {c}.orders")).first()[0]
    config = sparklog.Log(root).topic("orders").config
    spark.sql(told("DROP TABLE {c}.orders PURGE"))
    spark.sql(made)
    assert sparklog.Log(root).topic("orders").config == config
    spark.sql(told("ALTER TABLE {c}.orders SET TBLPROPERTIES ('partitions' = '4', 'retention.ms' = '5')"))
    assert sparklog.Log(root).topic("orders").config == config | {"partitions": "4", "retention.ms": "5"}
    spark.sql(told("ALTER TABLE {c}.orders UNSET TBLPROPERTIES ('retention.ms')"))
    assert sparklog.Log(root).topic("orders").config["retention.ms"] == "-1"
    spark.sql(told("ALTER TABLE {c}.orders SET TBLPROPERTIES ('key.type' = 'binary')"))
    assert dict(spark.table(told("{c}.orders")).dtypes)["key"] == "binary"
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
        spark.catalog.setCurrentCatalog("partlog")
        assert spark.sql(told("SELECT count(*) FROM `{root}`.copy")).first()[0] == 0
        assert spark.sql(told("SELECT count(*) FROM `{root}` WITH ('subscribe' = 'copy')")).first()[0] == 0
        assert refused(lambda: spark.catalog.listTables()) == "PARTLOG_CATALOG_WITHOUT_ROOT"
        assert refused(lambda: spark.sql("SHOW TABLES").collect()) == "PARTLOG_CATALOG_WITHOUT_ROOT"
        assert refused(lambda: spark.sql("SELECT * FROM copy").collect()) == "PARTLOG_CATALOG_WITHOUT_ROOT"
        assert spark.sql("SHOW NAMESPACES").collect() == []
    finally:
        spark.catalog.setCurrentCatalog("spark_catalog")


def frames(spark: SparkSession, catalog: str, root: Path) -> None:
    """Tables of the catalog, by the methods of DataFrames."""
    sparklog.attach(spark, catalog, root)
    row = spark.sql("SELECT 'k' AS key, 'v' AS value")
    t, u = f"{catalog}.t", f"{catalog}.u"
    row.write.saveAsTable(t)
    log = sparklog.Log(root)
    row.writeTo(u).option("partitions", 3).create()
    before = contents(root)
    writer = row.write
    for action, condition in [
        (lambda: writer.saveAsTable(t), "PARTLOG_TOPIC_EXISTS"),
        (lambda: row.write.mode("overwrite").saveAsTable(t), "PARTLOG_STATEMENT_UNSUPPORTED"),
        (lambda: row.write.insertInto(t, overwrite=True), "PARTLOG_SAVE_MODE"),
        (lambda: row.writeTo(u).create(), "PARTLOG_TOPIC_EXISTS"),
        (lambda: row.writeTo(u).replace(), "PARTLOG_STATEMENT_UNSUPPORTED"),
        (lambda: row.writeTo(u).createOrReplace(), "PARTLOG_STATEMENT_UNSUPPORTED"),
        (lambda: row.writeTo(u).overwrite(functions.lit(True)), "PARTLOG_SAVE_MODE"),
        (lambda: row.writeTo(u).overwritePartitions(), None),
        (lambda: row.writeTo(f"{catalog}.nothing").append(), "TABLE_OR_VIEW_NOT_FOUND"),
        (lambda: spark.table(f"{catalog}.nothing").collect(), "TABLE_OR_VIEW_NOT_FOUND"),
        (lambda: row.selectExpr("1 AS value").writeTo(f"{catalog}.bad").create(), "PARTLOG_COLUMN_TYPE"),
        (lambda: row.writeTo(f"{catalog}.bad").partitionedBy(functions.col("key")).create(), "PARTLOG_STATEMENT_UNSUPPORTED"),
        (lambda: row.writeTo(f"{catalog}.bad").tableProperty("nope", "1").create(), "PARTLOG_OPTION_UNKNOWN"),
        (lambda: row.selectExpr("raise_error('x') AS value").writeTo(f"{catalog}.bad").create(), None),
    ]:
        found = refused(action)
        assert condition in (None, found), (condition, found)
        assert contents(root) == before, condition
    row.write.mode("ignore").saveAsTable(t)
    assert contents(root) == before
    row.write.mode("append").saveAsTable(t)
    row.write.mode("append").saveAsTable(f"{catalog}.new")
    row.write.insertInto(t)
    row.writeTo(u).append()
    assert {name: sum(log.topic(name).end_offsets().values()) for name in log.topics()} == {"new": 1, "t": 3, "u": 2}
    assert len(log.topic("u").end_offsets()) == 3
    assert spark.read.option("versionAsOf", 0).table(t).count() == 1
    assert spark.read.option("timestampAsOf", "2100-01-01").table(t).count() == 3


def streams(spark: SparkSession, catalog: str, root: Path) -> None:
    """Streams from a table, and into one that is there or not."""
    sparklog.attach(spark, catalog, root)
    spark.sql(f"CREATE TABLE {catalog}.a (key STRING, value STRING) TBLPROPERTIES ('partitions' = '1')")
    spark.sql(f"INSERT INTO {catalog}.a (key, value) VALUES ('a', '1'), ('b', '2')")
    for times in (1, 2):
        source = spark.readStream.option("startingOffsets", "earliest").table(f"{catalog}.a").select("key", "value")
        query = source.writeStream.option("checkpointLocation", f"{root}-checkpoint-{times}").trigger(availableNow=True)
        query.toTable(f"{catalog}.b").awaitTermination()
        rows = spark.table(f"{catalog}.b").selectExpr("string(key) AS key", "string(value) AS value").collect()
        assert sorted(map(tuple, rows)) == sorted([("a", "1"), ("b", "2")] * times)


NEW, KEPT, REFUSES, OVERWRITES = "new", "kept", "PARTLOG_TOPIC_EXISTS", "PARTLOG_SAVE_MODE"
OF_ROOT = "PARTLOG_TOPIC_REQUIRED"

# By mode, what a save does where there is no root, where the root has another topic, and where it has this one: first with the topic
# as an option, then as a column.
SAVES = {
    None: ((NEW, NEW, REFUSES), (NEW, OF_ROOT, OF_ROOT)),
    "error": ((NEW, NEW, REFUSES), (NEW, OF_ROOT, OF_ROOT)),
    "errorifexists": ((NEW, NEW, REFUSES), (NEW, OF_ROOT, OF_ROOT)),
    "ignore": ((NEW, NEW, KEPT), (NEW, KEPT, KEPT)),
    "append": ((NEW, NEW, NEW), (NEW, NEW, NEW)),
    "overwrite": ((OVERWRITES, OVERWRITES, OVERWRITES), (OVERWRITES, OVERWRITES, OVERWRITES)),
}


def saves(spark: SparkSession, folder: Path) -> None:
    """Each mode of `save` in a session that has nothing but the jar."""
    row = spark.sql("SELECT 'k' AS key, 'v' AS value")
    wrong = []
    for mode, by_place in SAVES.items():
        for column, outcomes in enumerate(by_place):
            for place, expected in zip((None, "other", "t"), outcomes, strict=True):
                root = folder / f"{mode}-{column}-{place}"
                if place:
                    row.write.format("partlog").option("topic", place).mode("append").save(str(root))
                before = contents(root)
                frame = row.selectExpr("*", "'t' AS topic") if column else row
                writer = frame.write.format("partlog").options(
                    **({} if column else {"topic": "t"}), **({} if place == "t" else {"partitions": 3})
                )
                try:
                    (writer if mode is None else writer.mode(mode)).save(str(root))
                    found = KEPT if contents(root) == before else NEW
                except PySparkException as error:
                    found = str(error.getCondition())
                if found == NEW:
                    ends = sparklog.Log(root).topic("t").end_offsets()
                    found = found if sum(ends.values()) == 1 + (place == "t") and (len(ends) == 3 or place == "t") else str(ends)
                elif contents(root) != before or root.exists() != bool(place):
                    found += ", and the root has changed"
                if found != expected:
                    wrong.append((mode, column, place, found, expected))
    assert not wrong, wrong


if __name__ == "__main__":
    from spark import sql_targets

    session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
    statements(session, "cat_connect", Path(sys.argv[2], "statements"))
    sql_targets.views(session, "cat_connect_views", Path(sys.argv[2], "views"))
    frames(session, "cat_connect_frames", Path(sys.argv[2], "frames"))
    streams(session, "cat_connect_streams", Path(sys.argv[2], "streams"))
    session.conf.unset("spark.sql.catalog.partlog")
    SAVES["errorifexists"] = (("UNSUPPORTED_OPERATION",) * 3,) * 2  # the client of Connect knows it as error only
    saves(session, Path(sys.argv[2], "saves"))
