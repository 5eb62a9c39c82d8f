"""Tables of Spark's own catalog, created with USING partlog: their descriptions, and the errors that SQL users see."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import sparklog


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A table of topic t with 4 partitions and one record."""
    spark.sql(f"CREATE TABLE tables_t USING partlog OPTIONS (path '{tmp_path}/log', topic 't', partitions 4)")
    spark.sql("INSERT INTO tables_t (key, value) VALUES ('a', 'b')")
    yield "tables_t"
    spark.sql("DROP TABLE IF EXISTS tables_t")


def described(spark: SparkSession, table: str) -> dict[str, str]:
    rows = spark.sql(f"DESCRIBE EXTENDED {table}").collect()
    names = [row["col_name"] for row in rows]
    return {row["col_name"]: row["data_type"] for row in rows[names.index("# Detailed Table Information") + 1 :]}


def properties(spark: SparkSession, table: str) -> dict[str, str]:
    return {row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}


def test_a_table_describes_itself(spark: SparkSession, table: str, tmp_path: Path) -> None:
    location = f"file:{tmp_path}/log"
    assert properties(spark, table) == {"path": location, "topic": "t", "partitions": "4"}
    about = described(spark, table)
    assert (about["Type"], about["Provider"], about["Location"]) == ("EXTERNAL", "partlog", location)
    assert about["Table Properties"] == f"[partitions=4,path={location},topic=t]"
    made = spark.sql(f"SHOW CREATE TABLE {table}").first()[0]
    assert "USING partlog" in made
    assert f"LOCATION '{location}'" in made
    assert "'topic' = 't'" in made
    spark.sql(f"DROP TABLE {table}")
    assert sparklog.Log(tmp_path / "log").topic("t").end_offsets() != {}


@pytest.mark.parametrize("place", ["none", "empty", "root"])
def test_a_table_describes_itself_before_its_topic_is_there(
    spark: SparkSession, fails: Callable[..., str], tmp_path: Path, place: str
) -> None:
    root = tmp_path / place
    if place != "none":
        root.mkdir()
    if place == "root":
        spark.sql("SELECT 'a' AS value").write.format("partlog").option("topic", "another").mode("append").save(str(root))
    spark.sql(f"CREATE TABLE tables_early USING partlog OPTIONS (path '{root}', topic 't')")
    try:
        assert described(spark, "tables_early")["Provider"] == "partlog"
        condition = {"none": "ROOT_NOT_FOUND", "empty": "ROOT_WITHOUT_LOG", "root": "TOPIC_NOT_FOUND"}[place]
        fails(condition, lambda: spark.table("tables_early").count())
        fails(condition, lambda: spark.table("tables_early").select("value").collect())
    finally:
        spark.sql("DROP TABLE tables_early")


def test_altering_it(spark: SparkSession, table: str, fails: Callable[..., str], tmp_path: Path) -> None:
    insert = f"INSERT INTO {table} (key, value) VALUES ('a', 'b')"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('partitions' = '16')")
    assert properties(spark, table)["partitions"] == "16"
    said = fails("OPTION_CONTRADICTS_TOPIC", lambda: spark.sql(insert))
    assert "Option `partitions` is 16, but topic t" in said
    assert "It comes from the table or view; remove it there, for example with ALTER TABLE … UNSET TBLPROPERTIES ('partitions')." in said
    own = fails("OPTION_CONTRADICTS_TOPIC", lambda: spark.sql(insert.replace(table, f"{table} WITH ('partitions' = '9')")))
    assert "Leave the option out." in own
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('partitions')")
    assert "partitions" not in properties(spark, table)
    spark.sql(insert)
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('topics' = 'x')")
    assert "Did you mean `topic`?" in fails("OPTION_UNKNOWN", lambda: spark.table(table).count())
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('topics')")
    spark.sql(f"COMMENT ON TABLE {table} IS 'all payments'")
    assert spark.table(table).count() == 2
    spark.sql(f"ALTER TABLE {table} SET LOCATION '{tmp_path}/other'")
    spark.sql(insert)
    assert spark.table(table).count() == 1
    assert described(spark, table)["Location"] == f"{tmp_path}/other"


def test_headers_are_a_matter_of_the_table(spark: SparkSession, table: str, fails: Callable[..., str]) -> None:
    """A table's columns are known before the options of a read are."""

    def refused(value: str) -> str:
        as_sql = fails("OPTION_VALUE", lambda: spark.sql(f"SELECT * FROM {table} WITH ('includeHeaders' = '{value}')").collect())
        as_table = fails("OPTION_VALUE", lambda: spark.read.option("includeHeaders", value).table(table).collect())
        assert as_sql == as_table
        return as_sql

    assert "this one has the column headers; name the columns you want in place of *" in refused("false")
    assert spark.read.option("includeHeaders", "true").table(table).columns[-1] == "headers"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('includeHeaders' = 'false')")
    assert spark.table(table).columns[-1] == "timestampType"
    assert len(spark.sql(f"SELECT * FROM {table}").first()) == 7
    assert "this one has no column headers; give the table another option" in refused("true")
    assert spark.sql(f"SELECT count(*) FROM {table} WITH ('includeHeaders' = 'false', 'startingOffsets' = 'earliest')").first()[0] == 1


def test_views_and_settings_of_the_session_say_which_columns_there_are(spark: SparkSession, table: str, tmp_path: Path) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW tables_v USING partlog OPTIONS (path '{tmp_path}/log', includeHeaders 'false', topic 't')")
    setting = "spark.datasource.partlog.includeHeaders"
    try:
        assert len(spark.sql("SELECT * FROM tables_v").first()) == 7
        spark.conf.set(setting, "false")
        assert len(spark.read.format("partlog").load(f"{tmp_path}/log").first()) == 7
        assert len(spark.read.format("partlog").option("includeHeaders", True).load(f"{tmp_path}/log").first()) == 8
        assert len(spark.table(table).first()) == 8
    finally:
        spark.conf.unset(setting)
        spark.sql("DROP VIEW tables_v")


def test_sql_users_are_told_in_sql(spark: SparkSession, table: str, fails: Callable[..., str]) -> None:
    said = fails("COLUMN_REQUIRED", lambda: spark.sql(f"INSERT INTO {table} VALUES ('a', 'b')"))
    assert "col1, col2" in said
    assert "In SQL, name the columns: INSERT INTO t (key, value) VALUES …." in said
    overwrite = fails("SAVE_MODE", lambda: spark.sql(f"INSERT OVERWRITE {table} (key, value) VALUES ('a', 'b')"))
    assert "in SQL with INSERT INTO." in overwrite
    for call, name in (("partlog.tidy('x')", "tidy"), ("partlog.system.publish(root => 'x')", "system.publish")):
        text = fails("PROCEDURE_NOT_FOUND", lambda call=call: spark.sql(f"CALL {call}"))
        assert f"The catalog partlog does not have a procedure {name}. Call one of these procedures: topics, segments, " in text


@pytest.mark.parametrize("name", ["u#1", "u?2", "u%41", "u 3"])
def test_a_location_is_taken_as_it_stands(spark: SparkSession, tmp_path: Path, name: str) -> None:
    for clause in (f"OPTIONS (topic 't') LOCATION '{tmp_path}/{name}'", f"OPTIONS (topic 't', path '{tmp_path}/{name}')"):
        spark.sql(f"CREATE TABLE tables_odd USING partlog {clause}")
        try:
            spark.sql("INSERT INTO tables_odd (value) VALUES ('x')")
        finally:
            spark.sql("DROP TABLE tables_odd")
    assert [folder.name for folder in tmp_path.iterdir()] == [name]
    assert sum(sparklog.Log(tmp_path / name).topic("t").end_offsets().values()) == 2
