"""Roots that are copied from a disk to HDFS, to S3 and back; what is copied out of a store for Kafka's tools; and the check of a store."""

import os
import runpy
import tarfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from broken_rules import changed
from handmade import Record, Topic, batch
from kinds_of_versions import KINDS
from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from stores.faults import FaultProxy
from stores.hdfs import Hdfs
from stores.s3 import S3
from stores.sessions import session
from stores.webhdfs import WebHdfs

from sparklog import Log, SparklogError

VECTORS = Path(__file__).parents[1] / "vectors"
DIGESTS = runpy.run_path(str(VECTORS / "make_root.py"))["digests"]
STOPS = ("hdfs", "s3", "disk")


@pytest.fixture(scope="module")
def spark(s3a_jars: Path, hdfs: Hdfs, s3: S3) -> Iterator[SparkSession]:
    settings = {**hdfs.settings, **s3.settings()}
    settings.pop("fs.defaultFS")
    with session(s3a_jars) as spark:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield spark


@pytest.fixture
def places(hdfs: Hdfs, s3: S3, tmp_path: Path) -> dict[str, str]:
    """By its name, a folder in each place that is empty or absent."""
    return {"hdfs": f"{hdfs.uri}/{tmp_path.name}", "s3": f"s3a://{s3.bucket}/{tmp_path.name}", "disk": str(tmp_path / "disk")}


def log(root: str, hdfs: Hdfs, s3: S3) -> Log:
    if root.startswith("hdfs:"):
        return Log(f"{root}?webhdfs={','.join(hdfs.webhdfs)}")
    return Log(root, filesystem=s3.filesystem()) if root.startswith("s3a:") else Log(root)


class Files:
    """The files of roots in each place, as programs copy them: nothing of ours takes part."""

    def __init__(self, spark: SparkSession, hdfs: Hdfs, s3: S3) -> None:
        self._spark, self._hdfs, self._s3 = spark, WebHdfs(hdfs.webhdfs), s3.filesystem(background_writes=False)

    def copy(self, source: str, to: str, topics: Sequence[str] = ("",)) -> None:
        """Copies `_partlog/` of a root, or the folders of some topics in it; several files at once, as those programs do."""
        names = [name for topic in topics for name in self._names(source, f"_partlog/{topic}".rstrip("/"))]
        assert names
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: self._write(f"{to}/{name}", self._read(f"{source}/{name}")), names))

    def _names(self, root: str, folder: str) -> list[str]:
        if root.startswith("s3a://"):
            above = root.removeprefix("s3a://")
            found = self._s3.get_file_info(fs.FileSelector(f"{above}/{folder}", recursive=True))
            return [each.path.removeprefix(f"{above}/") for each in found if each.is_file]
        if root.startswith("hdfs://"):
            path = self._spark._jvm.org.apache.hadoop.fs.Path(f"{root}/{folder}")  # type: ignore[union-attr]
            files = path.getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf()).listFiles(path, True)
            names = []
            while files.hasNext():
                names.append(str(files.next().getPath()).removeprefix(f"{root}/"))
            return names
        return [str(path.relative_to(root)) for path in Path(root, folder).rglob("*") if path.is_file()]

    def _read(self, file: str) -> bytes:
        if file.startswith("s3a://"):
            with self._s3.open_input_file(file.removeprefix("s3a://")) as content:
                return bytes(content.read())
        return self._hdfs.read(urlsplit(file).path) if file.startswith("hdfs://") else Path(file).read_bytes()

    def _write(self, file: str, content: bytes) -> None:
        if file.startswith("s3a://"):
            with self._s3.open_output_stream(file.removeprefix("s3a://")) as out:
                out.write(content)
        elif file.startswith("hdfs://"):
            self._hdfs.write(urlsplit(file).path, content)
        else:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_bytes(content)


@pytest.fixture
def files(spark: SparkSession, hdfs: Hdfs, s3: S3) -> Files:
    return Files(spark, hdfs, s3)


def digests(table: Any) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = DIGESTS(table)
    return found


def read(spark: SparkSession, root: str, hdfs: Hdfs, s3: S3) -> dict[str, dict[str, Any]]:
    """All records by both readers, which must agree; and every rule of the format holds."""
    python = log(root, hdfs, s3)
    report = python.verify()
    assert report.ok, report
    rows = spark.read.format("partlog").options(subscribe=",".join(python), includeHeaders="true").load(root).toArrow()
    in_python: dict[str, dict[str, Any]] = {}
    for name in python:
        in_python |= digests(python[name].read())
    assert digests(rows) == in_python
    return in_python


def of_a_release(spark: SparkSession, folder: Path) -> tuple[str, list[str], list[str]]:
    """The root, those of its topics that move, and those that are written on."""
    with tarfile.open(VECTORS / "root-0.1.0.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # which some releases of Python 3.10 and 3.11 do not have
        archive.extractall(folder)
    return str(folder / "log"), ["again", "cut", "expired", "grown", "merged", "once", "rebatched", "codec-zstd"], ["cut", "grown"]


def of_today(spark: SparkSession, folder: Path) -> tuple[str, list[str], list[str]]:
    """Topics with all that this release can do to them."""
    root = str(folder / "new")

    def write(topic: str, count: int, **options: str) -> None:
        columns = ["CAST(id % 7 AS STRING) AS key", "CAST(id AS STRING) AS value", "timestamp_seconds(1700000000 + id) AS timestamp"]
        columns.append("array(named_struct('key', 'h', 'value', CAST(CAST(id AS STRING) AS BINARY))) AS headers")
        rows = spark.range(count).selectExpr(*columns)
        rows.write.format("partlog").options(topic=topic, partitions="2", **options).mode("append").save(root)

    def call(text: str) -> None:
        spark.sql("CALL partlog." + text.replace("(", f"(root => '{root}', ", 1)).collect()

    for topic in ("merged", "cut", "again"):
        for _ in range(3):
            write(topic, 40, merge="false", **{"file.delete.delay.ms": "0"} if topic == "merged" else {})
    call("merge(topic => 'merged', rebatch => true)")
    call("""delete_records(topic => 'cut', offsets => '{"0":30,"1":-1}')""")
    call("add_partitions(topic => 'cut', partitions => 3)")
    call("delete_topic(topic => 'again')")
    write("again", 20, **{"compression.type": "zstd"})
    write("once", 20, txnAppId="job", txnVersion="3", **{"kafka.view": "none"})
    return root, ["merged", "cut", "again", "once"], ["merged", "cut", "again"]


@pytest.mark.parametrize("make", [of_today, pytest.param(of_a_release, marks=pytest.mark.soak)])
def test_a_root_moves_from_store_to_store(
    spark: SparkSession, hdfs: Hdfs, s3: S3, places: dict[str, str], tmp_path: Path, files: Files, make: Any
):
    """It reads the same at each stop, by both readers, and is written on there; and so it comes back."""
    source, moved, written = make(spark, tmp_path)
    files.copy(source, str(tmp_path / "start"), moved)
    source = str(tmp_path / "start")
    spark.sql(f"CALL partlog.publish(root => '{source}')").collect()
    expected = read(spark, source, hdfs, s3)
    for stop in STOPS:
        root = places[stop]
        files.copy(source, root)
        if stop == "disk":
            spark.sql(f"CALL partlog.publish(root => '{root}')").collect()
        assert read(spark, root, hdfs, s3) == expected, stop
        for name in written:
            rows = spark.range(7).selectExpr(f"CAST(concat('{stop}-', id) AS STRING) AS value")
            rows.write.format("partlog").option("topic", name).mode("append").save(root)
        before, expected = expected, read(spark, root, hdfs, s3)
        grown = sum(each["records"] for each in expected.values()) - sum(each["records"] for each in before.values())
        assert grown == 7 * len(written), stop
        source = root


@pytest.mark.parametrize("share", [16, pytest.param(1, marks=pytest.mark.soak)])
def test_readers_take_and_refuse_the_same_versions_in_each_store(
    spark: SparkSession, hdfs: Hdfs, s3: S3, places: dict[str, str], tmp_path: Path, files: Files, share: int
):
    """A share of the right and of the wrong versions of each kind; tests/contract shows all of them on a disk."""
    expected: dict[str, str] = {}
    for kind, (prepare, wrong, right) in KINDS.items():
        changes = [("ok", change) for change in (dict, *right.values())][::share]
        changes += [("VERSION_CORRUPT", each) for each in list(wrong.values())[::share]]
        for found, change in changes:
            topic = Topic(tmp_path / "versions", f"t{len(expected)}", partitions=2)
            content = changed(prepare(topic), change)
            expected[topic.name] = "TOPIC_NOT_FOUND" if (kind, found) == ("a deletion", "ok") else found
            if found == "ok":
                topic.put(content)
            else:
                topic.version_file(content["version"]).write_bytes(topic.octets(content))
    for stop in ("hdfs", "s3") if share == 1 else ("s3",):
        files.copy(str(tmp_path / "versions"), places[stop])
        python, java = dict.fromkeys(expected, "ok"), dict.fromkeys(expected, "ok")
        root = log(places[stop], hdfs, s3)
        for name in expected:
            try:
                root.topic(name).end_offsets()
            except SparklogError as error:
                python[name] = error.id
            try:
                spark.sql(f"CALL partlog.segments(root => '{places[stop]}', topic => '{name}')").collect()
            except PySparkException as error:
                java[name] = (error.getCondition() or "").removeprefix("PARTLOG_")
        assert python == expected, stop
        assert java == expected, stop


@pytest.mark.parametrize("stop", ["hdfs", "s3"])
def test_an_export_is_the_same_from_each_store(spark: SparkSession, places: dict[str, str], tmp_path: Path, files: Files, stop: str):
    """File by file the same as from a disk, also where data is longer than what is read at once."""
    topic = Topic(tmp_path / "root")
    topic.commit(topic.data(b"".join(batch([Record(os.urandom(1000)) for _ in range(100)], 100 * number) for number in range(100))))
    files.copy(str(topic.root), places[stop])
    contents = []
    for root in (str(topic.root), places[stop]):
        to = tmp_path / f"export-{len(contents)}"
        rows = spark.sql(f"CALL partlog.export(root => '{root}', topic => 't', to => '{to}')").collect()
        contents.append({str(file.relative_to(to)): file.read_bytes() for file in to.rglob("*") if file.is_file()})
        assert [(row.partition, row.start_offset, row.end_offset) for row in rows] == [(0, 0, 10_000)]
        assert sum(row.bytes for row in rows) == sum(len(each) for name, each in contents[-1].items() if "/" in name) > 8 << 20
    assert contents[0] == contents[1]
    with pytest.raises(PySparkException, match=r"CALL partlog\.export\(root => '\w+://.*', topic => 't', to => "):
        spark.sql(f"CALL partlog.publish(root => '{places[stop]}', topic => 't')").collect()


@pytest.mark.parametrize("stop", ["hdfs", "s3"])
def test_a_check_finds_nothing_and_leaves_nothing(spark: SparkSession, places: dict[str, str], stop: str):
    root = f"{places[stop]}-new/below/root"
    (row,) = spark.sql(f"CALL partlog.check_store(root => '{root}', keys => 10)").collect()
    assert (row.root, row.keys, row.winners, row.losers, row.unanswered) == (root, 10, 10, 70, 0)
    assert row.seconds > 0
    path = spark._jvm.org.apache.hadoop.fs.Path(f"{places[stop]}-new")  # type: ignore[union-attr]
    assert not path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).exists(path)


def test_a_store_that_lies_is_refused(spark: SparkSession, s3: S3, places: dict[str, str], fault_proxy: Any):
    """It tells each put that it has won."""
    proxy: FaultProxy = fault_proxy(s3.endpoint)
    proxy.inject("belie", method="PUT", times=1_000_000, status=200)
    options = s3.settings(proxy.endpoint)
    spark.conf.set("fs.s3a.endpoint", proxy.endpoint)
    try:
        with pytest.raises(PySparkException, match="of 5 files that 8 threads put at once, 5 were put by more than one") as refused:
            spark.sql(f"CALL partlog.check_store(root => '{places['s3']}', keys => 5)").collect()
    finally:
        spark.conf.set("fs.s3a.endpoint", s3.endpoint)
    assert refused.value.getCondition() == "PARTLOG_STORE_UNSAFE"
    assert proxy.endpoint in str(refused.value)
    rows = spark.range(3).selectExpr("CAST(id AS STRING) AS value")
    with pytest.raises(PySparkException) as refused:
        rows.write.format("partlog").options(**options, topic="t").mode("append").save(places["s3"])
    assert refused.value.getCondition() == "PARTLOG_STORE_UNSAFE"
    status, listed = s3.ask("GET", "")
    assert status == 200
    assert places["s3"].rpartition("/")[2] not in listed.decode()
