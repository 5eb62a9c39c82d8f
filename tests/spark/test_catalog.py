"""Topics as tables of a catalog: what each statement does, and that one which is refused changes no byte, classic and over Connect."""

import datetime
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from logtool import LogTool
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark import sql_statements, sql_targets

import sparklog


@pytest.mark.slow
def test_every_statement(spark: SparkSession, tmp_path: Path) -> None:
    sql_statements.statements(spark, "cat_classic", tmp_path / "root")


@pytest.mark.slow
def test_a_statement_changes_the_table_that_it_names_and_not_one_below_a_view(spark: SparkSession, tmp_path: Path) -> None:
    sql_targets.views(spark, "cat_views", tmp_path / "root")


def test_tables_of_dataframes(spark: SparkSession, tmp_path: Path) -> None:
    sql_statements.frames(spark, "cat_frames", tmp_path / "root")


def test_streams(spark: SparkSession, tmp_path: Path) -> None:
    sql_statements.streams(spark, "cat_streams", tmp_path / "root")


@pytest.mark.slow
def test_save_modes_in_another_session_with_nothing_but_the_jar(spark: SparkSession, tmp_path: Path) -> None:
    other = spark.newSession()
    other.conf.unset("spark.sql.catalog.partlog")
    sql_statements.saves(other, tmp_path)


@pytest.mark.slow
def test_all_of_this_over_connect(connect: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, sql_statements.__file__, connect, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(sql_statements.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])},
    )
    assert ran.returncode == 0, ran.stderr[-4000:]


def test_a_time_travel_reads_the_same_after_merges_and_rebatching(spark: SparkSession, tmp_path: Path) -> None:
    sparklog.attach(spark, "cat_past", tmp_path / "root")
    spark.sql("CREATE TABLE cat_past.t TBLPROPERTIES ('partitions' = '1')")
    for value in "abc":
        spark.sql(f"INSERT INTO cat_past.t WITH ('merge' = 'false') (value) VALUES ('{value}')")
    past = spark.sql("SELECT CAST(value AS STRING) FROM cat_past.t VERSION AS OF 2")
    before = past.collect()
    assert [row[0] for row in before] == ["a", "b"]
    spark.sql(f"CALL partlog.merge(root => '{tmp_path}/root', topic => 't')")
    assert spark.sql("SELECT CAST(value AS STRING) FROM cat_past.t VERSION AS OF 2").collect() == before
    spark.sql("CALL cat_past.merge(root => '{root}', topic => 't', rebatch => true)".replace("{root}", f"{tmp_path}/root"))
    spark.sql("ALTER TABLE cat_past.t SET TBLPROPERTIES ('partitions' = '3')")
    assert spark.sql("SELECT CAST(value AS STRING) FROM cat_past.t VERSION AS OF 2").collect() == before


def test_a_version_without_records_of_a_partition_is_read_when_later_ones_there_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    sparklog.attach(spark, "cat_empty", tmp_path / "root")
    spark.sql("CREATE TABLE cat_empty.t (value STRING) TBLPROPERTIES ('partitions' = '2')")
    spark.sql("INSERT INTO cat_empty.t (value, partition) VALUES ('a', 0)")
    kept = spark.sql("SELECT value FROM cat_empty.t VERSION AS OF 1")
    spark.sql("INSERT INTO cat_empty.t (value, partition) VALUES ('b', 1)")
    spark.sql("DELETE FROM cat_empty.t WHERE partition = 1 AND offset < 1")
    assert kept.collect() == spark.sql("SELECT value FROM cat_empty.t VERSION AS OF 1").collect() == [("a",)]


def test_a_version_that_was_cleaned_up_is_refused_by_name(
    spark: SparkSession, fails: Callable[..., str], java_classpath: str, tmp_path: Path
) -> None:
    LogTool(java_classpath, tmp_path / "root").run("append", tag="a", commits=40, tasks=1, records=1, pace=5)
    sparklog.attach(spark, "cat_cleaned", tmp_path / "root")
    versions = spark.sql("SELECT version, committed_at FROM cat_cleaned.t.commits ORDER BY version").collect()
    oldest = versions[0]
    assert 0 < oldest.version < versions[-1].version
    assert spark.sql(f"SELECT count(*) FROM cat_cleaned.t VERSION AS OF {oldest.version}").first()[0] == oldest.version + 1
    for version in (0, oldest.version - 1):
        said = fails("VERSION_UNREADABLE", lambda: spark.sql(f"SELECT * FROM cat_cleaned.t VERSION AS OF {version}"))  # noqa: B023
        assert f"cannot be read as of version {version}: the files of this version were cleaned up" in said
    before = oldest.committed_at - datetime.timedelta(milliseconds=1)
    said = fails("VERSION_UNREADABLE", lambda: spark.sql(f"SELECT * FROM cat_cleaned.t TIMESTAMP AS OF '{before}'"))
    assert f"the oldest version whose file is there, version {oldest.version}, is younger" in said


def test_a_typed_view_follows_a_live_topic(spark: SparkSession, tmp_path: Path) -> None:
    """SQL alone, as the guide has it: a view that is made before the records come."""
    sparklog.attach(spark, "cat_live", tmp_path / "root")
    spark.sql("CREATE TABLE cat_live.orders (key STRING, value STRING)")
    spark.sql(
        "CREATE TEMPORARY VIEW cat_live_sales AS SELECT key AS customer, data.* FROM "
        "(SELECT key, from_json(value, 'item STRING, cents INT') AS data FROM cat_live.orders)"
    )
    for cents in (250, 400):
        spark.sql(f"""INSERT INTO cat_live.orders (key, value) VALUES ('ann', '{{"item": "tea", "cents": {cents}}}')""")
        rows = spark.sql("SELECT customer, sum(cents) FROM cat_live_sales GROUP BY customer").collect()
        assert [tuple(row) for row in rows] == [("ann", {250: 250, 400: 650}[cents])]
    spark.catalog.dropTempView("cat_live_sales")


def test_a_cached_table_is_refreshed_by_statements_under_its_own_name(spark: SparkSession, tmp_path: Path) -> None:
    sparklog.attach(spark, "cat_cached", tmp_path / "root")
    table = "cat_cached.t"
    spark.sql(f"CREATE TABLE {table} TBLPROPERTIES ('partitions' = '1')")
    spark.sql(f"INSERT INTO {table} BY NAME SELECT CAST(id AS STRING) AS value FROM range(5)")
    spark.sql(f"CACHE TABLE {table}")
    assert spark.table(table).count() == 5
    other = spark.table(f"partlog.`{tmp_path}/root`.t")
    for statement, rows in [
        (f"DELETE FROM {table} WHERE offset < 2", 3),
        (f"INSERT INTO {table} BY NAME SELECT 'more' AS value", 4),
        (f"INSERT INTO {table} BY NAME SELECT value FROM {table}", 8),
        (f"DELETE FROM {table} WHERE partition = 0 AND offset < 9", 1),
        (f"TRUNCATE TABLE {table}", 0),
        (f"INSERT INTO {table} BY NAME SELECT 'again' AS value", 1),
        (f"DELETE FROM {table}", 0),
    ]:
        spark.sql(statement)
        assert spark.table(table).count() == other.count() == rows, statement
    assert "Scan In-memory table" in spark.sql(f"EXPLAIN SELECT * FROM {table}").first()[0]
    spark.sql(f"UNCACHE TABLE {table}")


def test_a_temporary_view_is_made_again_after_a_change_of_types(spark: SparkSession, tmp_path: Path) -> None:
    """As the guide says; a view of Spark's catalog goes on."""
    sparklog.attach(spark, "cat_typed", tmp_path / "root")
    spark.sql("CREATE TABLE cat_typed.t AS SELECT CAST('v' AS BINARY) AS value")
    views = {"cat_typed_v": "TEMPORARY VIEW", "spark_catalog.default.cat_typed_v": "VIEW"}
    try:
        for name, kind in views.items():
            spark.sql(f"CREATE {kind} {name} AS SELECT value FROM cat_typed.t")
        spark.sql("ALTER TABLE cat_typed.t SET TBLPROPERTIES ('value.type' = 'string')")
        assert sql_statements.refused(lambda: spark.table("cat_typed_v").collect()) == "CANNOT_UP_CAST_DATATYPE"
        assert [bytes(row.value) for row in spark.table("spark_catalog.default.cat_typed_v").collect()] == [b"v"]
        spark.sql("CREATE OR REPLACE TEMPORARY VIEW cat_typed_v AS SELECT value FROM cat_typed.t")
        assert [row.value for row in spark.table("cat_typed_v").collect()] == ["v"]
    finally:
        spark.catalog.dropTempView("cat_typed_v")
        spark.sql("DROP VIEW IF EXISTS spark_catalog.default.cat_typed_v")


def test_attach_refuses_a_name_with_another_meaning(spark: SparkSession, tmp_path: Path) -> None:
    sparklog.attach(spark, "cat_name", tmp_path / "one")
    for name in ("cat_name", "partlog", "spark_catalog"):
        with pytest.raises(sparklog.CallError, match="CATALOG_TAKEN"):
            sparklog.attach(spark, name, tmp_path / "two")


# A statement that is refused, the error, and what its text says; `{c}` is a catalog and `{root}` its root.
SAID = [
    (
        "SELECT * FROM {c}.t VERSION AS OF 1",
        "OFFSETS_OUT_OF_RANGE",
        ["`VERSION AS OF 1` asks for offset 0 of topic t, partition 0", "holds offsets 2 to 3", "ask for a later one"],
    ),
    ("SELECT * FROM {c}.t TIMESTAMP AS OF '{then}'", "OFFSETS_OUT_OF_RANGE", ["`TIMESTAMP AS OF 2", "without a version"]),
    ("INSERT INTO {c}.narrow SELECT * FROM {c}.wide", "PARTITION_OUT_OF_RANGE", ["partition 7 of topic narrow", "SELECT key, value, …"]),
    ("INSERT OVERWRITE {c}.t (value) VALUES ('x')", "SAVE_MODE", ["for topic t under {root}", "and INSERT OVERWRITE", "TRUNCATE TABLE"]),
    ("CREATE TABLE {c}.bad (x INT)", "COLUMN_UNKNOWN", ["that partlog can write: value, key, headers, partition, topic, timestamp, each"]),
    ("CREATE TABLE {c}.`a/b`", "STATEMENT_UNSUPPORTED", ["a name with a slash is that of a root", "{c}.`a/b`.orders"]),
    (
        "ALTER TABLE {c}.t ADD COLUMN x INT",
        "STATEMENT_UNSUPPORTED",
        ["ADD COLUMN x is not", "Put the field into the value", "from_json(value, 'x INT')"],
    ),
    ("ALTER TABLE {c}.t DROP COLUMN headers", "STATEMENT_UNSUPPORTED", ["DROP COLUMN headers is not", "in a view"]),
    ("ALTER TABLE {c}.t RENAME COLUMN key TO k", "STATEMENT_UNSUPPORTED", ["RENAME COLUMN key is not", "in a view"]),
    ("ALTER TABLE {c}.t SET LOCATION '/x'", "STATEMENT_UNSUPPORTED", ["SET LOCATION '/x' is not", "CREATE TABLE … AS SELECT"]),
    ("DELETE FROM {c}.t WHERE timestamp < now()", "STATEMENT_UNSUPPORTED", ["partition = 0 AND offset < 100", "'retention.ms'"]),
    ("COMMENT ON TABLE {c}.t IS 'x'", "STATEMENT_UNSUPPORTED", ["sets or unsets the comment", "does not keep one"]),
    ("ALTER TABLE {c}.t CLUSTER BY (key)", "STATEMENT_UNSUPPORTED", ["(ClusterBy)", "SET TBLPROPERTIES"]),
]


def test_a_refusal_says_what_to_do_instead(spark: SparkSession, fails: Callable[..., str], tmp_path: Path) -> None:
    root = tmp_path / "root"
    sparklog.attach(spark, "cat_said", root)
    for topic, partitions in {"t": 1, "wide": 8, "narrow": 2}.items():
        spark.sql(f"CREATE TABLE cat_said.{topic} TBLPROPERTIES ('partitions' = '{partitions}')")
    spark.sql("INSERT INTO cat_said.wide (value, partition) VALUES ('w', 7)")
    for value in "abc":
        spark.sql(f"INSERT INTO cat_said.t (value) VALUES ('{value}')")
    committed = spark.sql("SELECT committed_at FROM cat_said.t.commits WHERE version = 1").first()[0]
    spark.sql("DELETE FROM cat_said.t WHERE offset < 2")
    names = {"c": "cat_said", "root": root, "then": committed.isoformat(sep=" ")}
    for sql, condition, words in SAID:
        said = fails(condition, lambda: spark.sql(sql.format(**names)).collect())  # noqa: B023
        assert [each for each in words if each.format(**names) not in said] == [], said


def test_a_catalog_whose_root_is_not_there_yet_is_empty(spark: SparkSession, fails: Callable[..., str], tmp_path: Path) -> None:
    """A root that a statement names must be there, and so must a topic that is read."""
    sparklog.attach(spark, "cat_fresh", tmp_path / "root")
    assert spark.sql("SHOW TABLES IN cat_fresh").collect() == []
    assert spark.sql("SHOW TABLES IN cat_fresh.topics").collect() == []
    assert spark.catalog.listTables("cat_fresh") == []
    assert [row[0] for row in spark.sql("SHOW NAMESPACES IN cat_fresh").collect()] == ["topics"]
    fails("ROOT_NOT_FOUND", lambda: spark.sql(f"SHOW TABLES IN partlog.`{tmp_path}/root`").collect())
    assert sql_statements.refused(lambda: spark.sql("SELECT * FROM cat_fresh.t").collect()) == "TABLE_OR_VIEW_NOT_FOUND"
    assert not (tmp_path / "root").exists()
    spark.sql("CREATE TABLE cat_fresh.t")
    assert [row.tableName for row in spark.sql("SHOW TABLES IN cat_fresh").collect()] == ["t"]
    (tmp_path / "file").touch()
    sparklog.attach(spark, "cat_file", tmp_path / "file")
    fails("ROOT_NOT_A_DIRECTORY", lambda: spark.sql("SHOW TABLES IN cat_file").collect())


def test_a_null_needs_no_type(spark: SparkSession, tmp_path: Path) -> None:
    """A row of VALUES whose NULL has no other type: a tombstone, or the choice that is left to the partitioner and the clock."""
    sparklog.attach(spark, "cat_null", tmp_path / "root")
    spark.sql("CREATE TABLE cat_null.t (key STRING, value STRING) TBLPROPERTIES ('partitions' = '2')")
    spark.sql("INSERT INTO cat_null.t (key, value) VALUES ('tomb', NULL)")
    spark.sql("INSERT INTO cat_null.t (key, value, headers, partition, timestamp) VALUES (NULL, 'v', NULL, NULL, NULL)")
    spark.range(3).selectExpr("'x' AS key", "NULL AS value").coalesce(1).orderBy("key").writeTo("cat_null.t").append()
    rows = spark.sql("SELECT key, value, headers, timestamp > '2020-01-01' FROM cat_null.t ORDER BY key").collect()
    assert [tuple(row) for row in rows] == [(None, "v", None, True), ("tomb", None, None, True), *[("x", None, None, True)] * 3]
    spark.sql("CREATE TABLE cat_null.u AS SELECT 'a' AS key, NULL AS value")
    assert [tuple(row) for row in spark.sql("SELECT key, value FROM cat_null.u").collect()] == [("a", None)]


def test_a_procedure_is_described_without_links(spark: SparkSession) -> None:
    lines = [row[0] for row in spark.sql("DESCRIBE PROCEDURE partlog.set_config").collect()]
    assert "'The topic options to change: `map('retention.ms', '3600000')`.'" in lines[-1]


def test_a_view_of_sparks_catalog_is_for_each_session_that_attaches(spark: SparkSession, tmp_path: Path) -> None:
    sparklog.attach(spark, "cat_viewed", tmp_path / "root")
    spark.sql("CREATE TABLE cat_viewed.t AS SELECT '1' AS value")
    spark.sql("CREATE VIEW spark_catalog.default.cat_view AS SELECT CAST(value AS INT) AS n FROM cat_viewed.t")
    try:
        other = spark.newSession()
        with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
            other.table("spark_catalog.default.cat_view").collect()
        sparklog.attach(other, "cat_viewed", tmp_path / "root")
        assert [row.n for row in other.table("spark_catalog.default.cat_view").collect()] == [1]
    finally:
        spark.sql("DROP VIEW spark_catalog.default.cat_view")
