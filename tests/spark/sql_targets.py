"""Statements that change a table: by its own names they do, and through a view or another name for a part of it they are refused."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from spark.sql_statements import contents, refused

import sparklog

# Views of the topic `orders`, whose conditions the scan takes over, in part or not at all; `{c}_part` is one of them.
VIEWS = [
    ("TEMPORARY VIEW {c}_all", "SELECT * FROM {c}.orders"),
    ("TEMPORARY VIEW {c}_part", "SELECT * FROM {c}.orders WHERE partition = 0"),
    ("TEMPORARY VIEW {c}_below", "SELECT key, value, partition, offset FROM {c}.orders WHERE offset < 1"),
    ("TEMPORARY VIEW {c}_key", "SELECT * FROM {c}.orders WHERE key = 'a'"),
    ("TEMPORARY VIEW {c}_rest", "SELECT * FROM {c}.orders WHERE partition = 0 AND length(value) < 2"),
    ("TEMPORARY VIEW {c}_first", "SELECT * FROM {c}.orders LIMIT 1"),
    ("TEMPORARY VIEW {c}_moved", "SELECT key, value, partition, offset + 1 AS offset FROM {c}.orders"),
    ("TEMPORARY VIEW {c}_both", "SELECT * FROM {c}.orders UNION ALL SELECT * FROM {c}.plain"),
    ("TEMPORARY VIEW {c}_joined", "SELECT a.* FROM {c}.orders a JOIN {c}.orders b ON a.key = b.key"),
    ("TEMPORARY VIEW {c}_last", "SELECT partition, max(offset) AS offset FROM {c}.orders GROUP BY partition"),
    ("TEMPORARY VIEW {c}_past", "SELECT * FROM {c}.orders VERSION AS OF 1"),
    ("TEMPORARY VIEW {c}_some", "SELECT * FROM {c}.orders WITH ('minPartitions' = '4')"),
    ("TEMPORARY VIEW {c}_rooted", "SELECT * FROM partlog.`{root}` WHERE topic = 'orders'"),
    ("TEMPORARY VIEW {c}_again", "SELECT * FROM {c}_part"),
    ("GLOBAL TEMPORARY VIEW {c}_global", "SELECT * FROM {c}.orders WHERE partition = 0"),
    ("VIEW spark_catalog.default.{c}_kept", "SELECT * FROM {c}.orders WHERE partition = 0"),
]

# Statements that change their target, and the condition with which each is refused for a view.
THROUGH_VIEWS = [
    ("DELETE FROM {v}", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("DELETE FROM {v} WHERE partition = 1", "PARTLOG_STATEMENT_UNSUPPORTED"),
    ("UPDATE {v} SET partition = 0", "UNSUPPORTED_FEATURE.TABLE_OPERATION"),
    ("MERGE INTO {v} a USING {c}.plain b ON a.offset = b.offset WHEN MATCHED THEN DELETE", "UNSUPPORTED_FEATURE.TABLE_OPERATION"),
    ("TRUNCATE TABLE {v}", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
    ("INSERT INTO {v} (value) VALUES ('x')", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
    ("INSERT OVERWRITE {v} (value) VALUES ('x')", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
    ("ALTER TABLE {v} SET TBLPROPERTIES ('retention.ms' = '1')", "EXPECT_TABLE_NOT_VIEW.USE_ALTER_VIEW"),
]

# Other names for a part of a topic.
OTHER_NAMES = [
    "WITH part AS (SELECT * FROM {c}.orders WHERE partition = 0) DELETE FROM part",
    "WITH orders AS (SELECT * FROM {c}.plain) DELETE FROM orders",
    "WITH first AS (SELECT * FROM {c}.orders LIMIT 1) DELETE FROM first",
]

# Names of the table itself: each of these deletes one more record of partition 0.
OWN_NAMES = [
    "DELETE FROM {c}.orders WHERE partition = 0 AND offset < 1",
    "DELETE FROM {c}.topics.orders WHERE partition = 0 AND offset < 2",
    "DELETE FROM partlog.`{root}`.orders WHERE partition = 0 AND offset < 3",
    "DELETE FROM {c}.orders AS o WHERE o.partition = 0 AND o.offset < 4",
    "DELETE FROM IDENTIFIER('{c}.orders') WHERE partition = 0 AND offset < 5",
    "EXECUTE IMMEDIATE 'DELETE FROM {c}.orders WHERE partition = 0 AND offset < ?' USING 6",
    "WITH orders AS (SELECT * FROM {c}.orders) DELETE FROM {c}.orders WHERE partition = 0 AND offset < 7",
    "BEGIN DECLARE n INT DEFAULT 8; DELETE FROM {c}.orders WHERE partition = 0 AND offset < n; END",
]


def views(spark: SparkSession, catalog: str, root: Path) -> None:
    """A statement changes only the table that it names: through a view, records would go that the view does not have."""
    sparklog.attach(spark, catalog, root)

    def told(sql: str, view: str = "") -> str:
        return sql.replace("{c}", catalog).replace("{root}", str(root)).replace("{v}", view)

    for topic in ("orders", "plain"):
        spark.sql(told(f"CREATE TABLE {{c}}.{topic} (key STRING, value STRING) TBLPROPERTIES ('partitions' = '2')"))
        rows = "SELECT 'a' AS key, CAST(id AS STRING) AS value, CAST(id % 2 AS INT) AS partition FROM range(40)"
        spark.sql(told(f"INSERT INTO {{c}}.{topic} (key, value, partition) {rows}"))
    names = []
    for view, query in VIEWS:
        spark.sql(told(f"CREATE {view} AS {query}"))
        names.append(told(view.split()[-1] if "GLOBAL" not in view else "global_temp.{c}_global"))
    frame = spark.table(told("{c}.orders")).where("partition = 0")
    frame.createOrReplaceTempView(told("{c}_frame"))
    before = contents(root)
    wrong = []

    def refuse(condition: str, sql: str, **given: Any) -> None:
        found = refused(lambda: spark.sql(sql, **given).collect())
        if found != condition or contents(root) != before:
            wrong.append((sql, found))

    for view in [*names, told("{c}_frame")]:
        # The rest of the statements is refused by what the name is, before a plan is made.
        for sql, condition in THROUGH_VIEWS if view.endswith(("_part", "_rest", "_kept")) else THROUGH_VIEWS[:2]:
            refuse(condition, told(sql, view))
    for sql in OTHER_NAMES:
        refuse("PARTLOG_STATEMENT_UNSUPPORTED", told(sql))
    refuse("PARTLOG_STATEMENT_UNSUPPORTED", "DELETE FROM {frame} WHERE partition = 1", frame=frame)
    assert not wrong, wrong
    spark.sql(told("CACHE TABLE {c}.orders"))
    with pytest.raises(Exception, match="INTERNAL_ERROR"):  # Spark's: the cache takes the place of the topic
        spark.sql(told("DELETE FROM {c}_part"))
    spark.sql(told("UNCACHE TABLE {c}.orders"))
    assert contents(root) == before
    for deleted, sql in enumerate(OWN_NAMES, start=1):
        spark.sql(told(sql)).collect()
        assert sparklog.Log(root).topic("orders").start_offsets() == {0: deleted, 1: 0}, sql
        assert spark.table(told("{c}.orders")).count() == 40 - deleted, sql
    spark.sql("DELETE FROM IDENTIFIER(:t) WHERE offset < :n", args={"t": told("{c}.orders"), "n": 9})
    assert sparklog.Log(root).topic("orders").start_offsets() == {0: 9, 1: 9}
    spark.sql(told("DROP VIEW spark_catalog.default.{c}_kept"))
    for view, _ in VIEWS:
        if "TEMPORARY" in view and "GLOBAL" not in view:
            spark.catalog.dropTempView(told(view.split()[-1]))
