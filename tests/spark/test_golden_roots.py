"""Roots that earlier releases wrote: this one reads them, and goes on where they stopped."""

import json
import runpy
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import sparklog
from sparklog import Log
from sparklog.groups import OffsetTable

VECTORS = Path(__file__).parents[1] / "vectors"
RELEASES = sorted(VECTORS.glob("root-*.tar.gz"))


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(VECTORS / "make_root.py"))


def test_there_is_a_root_of_the_first_release() -> None:
    assert "root-0.1.0.tar.gz" in [release.name for release in RELEASES]


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_a_root_of_an_earlier_release(spark: SparkSession, tmp_path: Path, script: dict[str, Any], release: Path) -> None:
    with tarfile.open(release) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # which some releases of Python 3.10 and 3.11 do not have
        archive.extractall(tmp_path)
    expected = json.loads((VECTORS / release.name.replace("tar.gz", "json")).read_text())
    root = str(tmp_path / "log")

    def in_spark(topics: list[str]) -> dict[str, Any]:
        rows = spark.read.format("partlog").options(subscribe=",".join(topics), includeHeaders="true").load(root)
        found: dict[str, Any] = script["digests"](rows.toArrow())
        return found

    log = Log(root)
    assert list(log) == sorted(expected["topics"])
    assert log.verify().ok, log.verify()
    every = {place: digest for topic in expected["topics"].values() for place, digest in topic["records"].items()}
    assert in_spark(list(log)) == every
    for name, topic in expected["topics"].items():
        assert script["digests"](log[name].read()) == topic["records"]
        assert {str(key): offset for key, offset in log[name].start_offsets().items()} == topic["starts"]
        assert {str(key): offset for key, offset in log[name].end_offsets().items()} == topic["ends"]
    positions = OffsetTable(root, str(tmp_path / "offsets")).positions(script["GROUP"])
    assert {str(each.partition): each.offset for each in positions} == expected["positions"]

    written_once = log["once"].end_offsets()
    again = spark.range(20).selectExpr("CAST(id AS STRING) AS value").write.format("partlog")
    again.options(topic="once", txnAppId="job", txnVersion=7).mode("append").save(root)
    assert log["once"].end_offsets() == written_once, "the write was made by the earlier release"
    before = {name: log[name].end_offsets() for name in log}
    for topic in (script["SINK"], script["COPY"]):
        script["run_query"](spark, tmp_path, topic)
    grown = {name: sum(log[name].end_offsets().values()) - sum(before[name].values()) for name in log}
    assert grown == {name: 10 * (name == script["SINK"]) for name in log}, "each query went on behind its last epoch"

    with sparklog.Consumer(root, "many", group_id=script["GROUP"], table=str(tmp_path / "offsets")) as consumer:
        rest = sum(len(records) for records in consumer.poll(max_records=10_000).values())
        consumer.commit()
    assert rest == sum(expected["topics"]["many"]["ends"].values()) - sum(expected["positions"].values())

    value = "CAST(repeat(concat('x', id), 30) AS STRING) AS value"
    for name in log:
        spark.range(50).selectExpr("CAST(id AS STRING) AS key", value).write.format("partlog").option("topic", name).mode("append").save(
            root
        )
    for procedure in ("merge", "expire", "vacuum", "publish"):
        spark.sql(f"CALL partlog.{procedure}(root => '{root}')").collect()
    spark.sql(f"CALL partlog.merge(root => '{root}', topic => 'codec-lz4', rebatch => true)").collect()

    for name, topic in expected["topics"].items():
        records = log[name].read()
        is_old = [
            row["offset"] < topic["ends"].get(str(row["partition"]), 0) for row in records.select(["partition", "offset"]).to_pylist()
        ]
        old = records.filter(pa.array(is_old, pa.bool_()))
        assert script["digests"](old) == topic["records"], f"{name} keeps its records"
        added = 50 + 10 * (name == script["SINK"])
        assert sum(log[name].end_offsets().values()) == sum(topic["ends"].values()) + added
    assert log.verify().ok, log.verify()
