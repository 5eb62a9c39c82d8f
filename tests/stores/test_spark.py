"""The connector on roots that are not on a disk: batch, streams and procedures, and settings whose values are shown nowhere."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from stores.hdfs import Hdfs
from stores.s3 import S3
from stores.sessions import session

import sparklog

SECRET = "marked-secret-4711"
ROWS = 20_000
PARTITIONS = 4


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def spark(events: Path, s3a_jars: Path) -> Iterator[SparkSession]:
    logged = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{events}",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    with session(s3a_jars, **logged) as spark:
        yield spark
    logs = [file.read_text() for file in events.iterdir()]
    assert logs
    assert not [log for log in logs if SECRET in log], "the event log shows a secret"


class Place:
    """A folder in a store, and how Spark reaches it."""

    def __init__(self, spark: SparkSession, name: str, uri: str, settings: dict[str, str], needed: dict[str, str]) -> None:
        self.spark, self.name, self.uri, self.settings, self.needed = spark, name, uri, settings, needed

    def root(self, name: str) -> str:
        return f"{self.uri}/{name}"

    def write(self, frame: DataFrame, root: str, **options: str) -> None:
        frame.write.format("partlog").options(**self.settings, **{"topic": "t", "partitions": str(PARTITIONS)} | options).mode(
            "append"
        ).save(root)

    def read(self, root: str, **options: str) -> DataFrame:
        return self.spark.read.format("partlog").options(**self.settings, **{"subscribe": "t"} | options).load(root)

    def numbers(self, count: int, first: int = 0) -> DataFrame:
        return self.spark.range(first, first + count, numPartitions=3).selectExpr(
            "CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value"
        )

    def call(self, text: str) -> list[dict[str, object]]:
        return [row.asDict() for row in self.spark.sql(f"CALL partlog.{text}").collect()]


@pytest.fixture(scope="module", params=["hdfs", "s3"])
def place(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[Place]:
    server: Hdfs | S3 = request.getfixturevalue(request.param)
    if isinstance(server, Hdfs):
        uri, settings = server.uri, {key: value for key, value in server.settings.items() if key != "fs.defaultFS"}
    else:
        uri, settings = f"s3a://{server.bucket}", server.settings()
    for key, value in settings.items():
        spark.conf.set(key, value)  # CALL takes no options
    yield Place(
        spark, request.param, f"{uri}/spark", {"fs.marked.key": SECRET}, {key: settings[key] for key in settings if key.startswith("fs.")}
    )
    for key in settings:
        spark.conf.unset(key)


def assert_dense(frame: DataFrame, expected: range) -> None:
    """Each of these numbers once, and offsets without a gap from 0 in each partition."""
    rows = frame.selectExpr("partition", "offset", "CAST(CAST(value AS STRING) AS INT) AS number").collect()
    assert sorted(row.number for row in rows) == list(expected)
    for partition in range(PARTITIONS):
        offsets = sorted(row.offset for row in rows if row.partition == partition)
        assert offsets == list(range(len(offsets))), f"partition {partition}"


def test_a_batch_is_written_and_read(place: Place):
    root = place.root("batch")
    place.write(place.numbers(ROWS), root)
    place.write(place.numbers(10, first=ROWS), root)  # what travels to the driver
    assert_dense(place.read(root), range(ROWS + 10))
    assert place.read(root).count() == ROWS + 10
    assert place.read(root).where("offset < 2").count() == 2 * PARTITIONS


def test_a_root_may_be_spelt_in_several_ways(place: Place):
    root = place.root("spelt")
    doubled = f"{place.uri}//spelt//"
    place.numbers(3).write.format("partlog").options(**place.settings, topic="t").save(doubled)
    assert place.read(root).count() == 3
    place.spark.sql(f"CREATE TABLE partlog.`{root}`.u LOCATION '{doubled}'")
    assert {row["topic"] for row in place.call(f"topics(root => '{doubled}')")} == {"t", "u"}


def test_a_stream_is_copied(place: Place, tmp_path: Path):
    source, copy = place.root("stream"), place.root("copy")
    stream = (
        place.spark.readStream.format("partlog").options(**place.settings).option("subscribe", "t").option("startingOffsets", "earliest")
    )
    for batch in range(2):
        place.write(place.numbers(1_000, first=1_000 * batch), source)
        query = (
            stream.option("maxOffsetsPerTrigger", "700")
            .load(source)
            .select("key", "value")
            .writeStream.format("partlog")
            .options(**place.settings, topic="t", partitions=str(PARTITIONS), checkpointLocation=place.root("checkpoint"))
            .trigger(availableNow=True)
            .start(copy)
        )
        query.awaitTermination(120)
        assert query.exception() is None
    assert_dense(place.read(copy), range(2_000))


def test_procedures_change_a_topic(place: Place):
    root = place.root("procedures")
    for batch in range(4):
        place.write(place.numbers(100, first=100 * batch), root, merge="false")
    before = place.call(f"merge(root => '{root}', topic => 't')")[0]
    assert before["segments_after"] < before["segments_before"], before
    assert_dense(place.read(root), range(400))
    place.call(f"set_config(root => '{root}', topic => 't', config => map('retention.ms', '1000000000000'))")
    place.call(f"vacuum(root => '{root}', older_than => INTERVAL '7' DAY)")
    assert place.call(f"topics(root => '{root}')")[0]["topic"] == "t"
    assert_dense(place.read(root), range(400))
    place.call(f"delete_topic(root => '{root}', topic => 't', dry_run => false)")
    assert place.call(f"topics(root => '{root}')") == []
    place.write(place.numbers(10), root)
    assert_dense(place.read(root), range(10))


def test_a_catalog_reaches_its_root_by_its_own_settings(place: Place):
    """The session has none of them. Another one has no catalog of this root, and knows the root by the options of its saves."""
    spark, root = place.spark.newSession(), place.root("catalog")
    for key, value in place.needed.items():
        spark.conf.set(f"spark.sql.catalog.events.{key}", value)
    sparklog.attach(spark, "events", root)
    spark.sql("CREATE TABLE events.t (key STRING, value STRING) TBLPROPERTIES ('partitions' = '2')")
    for value in "ab":
        spark.sql(f"INSERT INTO events.t (key, value) VALUES ('k', '{value}')")
    assert [row.value for row in spark.table("events.t").orderBy("offset").collect()] == ["a", "b"]
    assert [row.value for row in spark.sql("SELECT value FROM events.t VERSION AS OF 1").collect()] == ["a"]
    spark.sql("CREATE TABLE events.u AS SELECT key, value FROM events.t")
    assert [row.tableName for row in spark.sql("SHOW TABLES IN events").collect()] == ["t", "u"]
    assert spark.sql("SELECT max(end_offset) FROM events.u.partitions").first()[0] == 2
    spark.sql("ALTER TABLE events.t SET TBLPROPERTIES ('partitions' = '3')")
    spark.sql("TRUNCATE TABLE events.t")
    assert spark.table("events.t").count() == 0
    shown = [
        str(row)
        for table in ("DESCRIBE EXTENDED", "SHOW TBLPROPERTIES", "SHOW CREATE TABLE")
        for row in spark.sql(f"{table} events.t").collect()
    ]
    assert not [text for text in shown if any(f"{value}" in text for key, value in place.needed.items() if "secret" in key or "key" in key)]
    spark.sql("DROP TABLE events.t")
    other, row = place.spark.newSession(), "SELECT 'v' AS value"
    saves = other.sql(row).write.format("partlog").options(**place.needed, topic="saved", partitions="3")
    saves.save(root)
    with pytest.raises(PySparkException) as there:
        saves.save(root)
    assert there.value.getCondition() == "PARTLOG_TOPIC_EXISTS"
    saves.mode("ignore").save(root)
    other.sql(f"{row}, 'by_column' AS topic").write.format("partlog").options(**place.needed).mode("ignore").save(place.root("columns"))
    assert spark.table("events.saved").count() == 1
    assert spark.sql("SELECT count(*) FROM events.saved.partitions").first()[0] == 3
    if place.name == "s3":
        with pytest.raises(PySparkException):
            other.sql(f"SELECT * FROM partlog.`{root}`.saved").collect()  # what a save was given stays with it


def test_the_guide_runs_as_it_stands(place: Place, repository: Path):
    page = (repository / "docs" / "guide" / "stores.md").read_text()
    marked, example = {"hdfs": ("", "hdfs://namenode:8020"), "s3": (" s3", "s3a://bucket")}[place.name]
    blocks = re.findall(rf"^```python{marked}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert blocks
    assert example in blocks[0]
    exec("\n".join(blocks).replace(example, place.uri), {})


def test_there_is_no_kafka_view(place: Place):
    root = place.root("view")
    place.write(place.numbers(10), root)
    with pytest.raises(PySparkException) as refused:
        place.call(f"publish(root => '{root}', topic => 't')")
    assert refused.value.getCondition() == "PARTLOG_VIEW_UNSUPPORTED"


def test_a_reader_goes_on_while_files_are_replaced_and_deleted(place: Place):
    root = place.root("replaced")
    for batch in range(6):
        place.write(place.numbers(500, first=500 * batch), root, merge="false", **{"file.delete.delay.ms": "0"})
    planned = place.read(root)
    planned.explain()
    place.call(f"merge(root => '{root}', topic => 't')")
    assert_dense(planned, range(3_000))


def test_no_value_of_a_setting_is_shown(place: Place, capfd: pytest.CaptureFixture[str]):
    root = place.root("secret")
    shown: list[str] = []
    place.write(place.numbers(10), root)
    frame = place.read(root)
    for mode in ("simple", "extended", "codegen", "cost", "formatted"):
        frame.explain(mode)
    place.spark.sql(f"CREATE TABLE secrets USING partlog OPTIONS (path '{root}', subscribe 't', `fs.marked.key` '{SECRET}')")
    for statement in ("DESCRIBE EXTENDED secrets", "SHOW TBLPROPERTIES secrets", "EXPLAIN EXTENDED SELECT * FROM secrets"):
        shown += [str(row) for row in place.spark.sql(statement).collect()]
    place.spark.sql("DROP TABLE secrets")
    failures: list[Callable[[], object]] = [
        lambda: place.read(place.root("absent")).collect(),
        lambda: place.read(root, startingOffset="1").collect(),
        lambda: place.write(place.numbers(10), root, batch="1"),
        lambda: place.write(place.numbers(10).selectExpr("value", "1 AS nonsense"), root),
        lambda: place.read("gs://bucket/log").collect(),
        lambda: place.read("hdfs://no-such-host.invalid:1/log").collect(),
    ]
    if place.name == "s3":
        failures.append(lambda: place.read(root, **{"fs.s3a.secret.key": SECRET}).collect())
    for fail in failures:
        with pytest.raises(PySparkException) as failed:
            fail()
        shown.append(f"{failed.value} {failed.value.__cause__!r}")
    out, err = capfd.readouterr()
    shown += [out, err]
    assert not [text for text in shown if SECRET in text]
    assert len(failures) < len(shown)
