"""Writes a root with everything that the format of this release has, for later releases to read and to continue.

`python tests/vectors/make_root.py` needs an environment with the release and its jar. It writes `root-<release>.tar.gz`, with the root in
`log/`, the checkpoints of its queries and an offset commit table beside it, and `root-<release>.json`: what readers must find in it.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import sparklog
from sparklog.groups import OffsetTable

FOLDER = Path(__file__).parent
GROUP = "billing"
SINK, COPY = "epochs", "copied"
"""The topics that queries write: from a source of numbers, and from the topic `many`."""


def digests(table: pa.Table) -> dict[str, dict[str, Any]]:
    """The offsets of each partition, and a SHA-256 of all that its records hold, in the order of their offsets."""
    found: dict[str, dict[str, Any]] = {}
    hashes: dict[str, Any] = {}
    columns = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")
    for row in sorted(table.select(columns).to_pylist(), key=lambda row: (row["topic"], row["partition"], row["offset"])):
        place = f"{row['topic']}-{row['partition']}"
        digest = hashes.setdefault(place, hashlib.sha256())
        headers = None if row["headers"] is None else [[each["key"], _hex(each["value"])] for each in row["headers"]]
        time = row["timestamp"] and round(row["timestamp"].timestamp() * 1000)
        digest.update(json.dumps([row["offset"], time, row["timestampType"], _hex(row["key"]), _hex(row["value"]), headers]).encode())
        digest.update(b"\n")
        of = found.setdefault(place, {"first": row["offset"], "records": 0})
        of["last"], of["records"], of["sha256"] = row["offset"], of["records"] + 1, digest.hexdigest()
    return found


def _hex(octets: bytes | None) -> str | None:
    return None if octets is None else octets.hex()


def run_query(spark: SparkSession, folder: Path, topic: str) -> None:
    """Runs the query that writes the topic to the end of what there is, from its checkpoint in the folder."""
    if topic == SINK:
        rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load().selectExpr("CAST(value AS STRING) AS value")
    else:
        given = {"subscribe": "many", "startingOffsets": "earliest"}
        rows = spark.readStream.format("partlog").options(**given).load(f"{folder}/log").select("key", "value", "timestamp")
    options = {"topic": topic, "partitions": 2, "checkpointLocation": f"{folder}/checkpoints/{topic}"}
    writer = rows.writeStream.format("partlog").options(**options).trigger(availableNow=True)
    writer.start(f"{folder}/log").awaitTermination()


class _Writer:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.root = spark, folder, f"{folder}/log"

    def rows(self, start: int, count: int) -> DataFrame:
        """Keys that are null, repeated and binary; values that are null and empty; headers; times that fall."""
        return self.spark.range(start, start + count, 1, 1).selectExpr(
            "CASE WHEN id % 7 = 0 THEN NULL WHEN id % 7 = 1 THEN X'00FF80' ELSE CAST(concat('key ', id % 11) AS BINARY) END AS key",
            "CASE WHEN id % 13 = 0 THEN NULL WHEN id % 13 = 1 THEN X'' ELSE CAST(concat('value ', id, ' grüße') AS BINARY) END AS value",
            "CASE WHEN id % 5 = 0 THEN array(named_struct('key', 'trace', 'value', CAST(CAST(id AS STRING) AS BINARY)),"
            " named_struct('key', 'trace', 'value', CAST(NULL AS BINARY))) END AS headers",
            "timestamp_millis(1700000000000 + id * 1000 - (id % 3) * 1500) AS timestamp",
        )

    def write(self, topic: str, start: int, count: int, columns: tuple[str, ...] = (), **options: object) -> None:
        rows = self.rows(start, count).selectExpr("*", *columns)
        given = {"topic": topic, "partitions": 2, **{name.replace("_", "."): value for name, value in options.items()}}
        rows.write.format("partlog").options(**given).mode("append").save(self.root)

    def call(self, procedure: str, **arguments: str) -> None:
        given = "".join(f", {name} => {value}" for name, value in arguments.items())
        self.spark.sql(f"CALL partlog.{procedure}(root => '{self.root}'{given})").collect()


def write_root(spark: SparkSession, folder: Path) -> None:
    to = _Writer(spark, folder)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        to.write(f"codec-{codec}", 0, 120, compression_type=codec, batch_size=1000)
        to.write(f"codec-{codec}", 120, 40)
    to.write("murmur2", 0, 50, partitioner="murmur2", message_timestamp_type="LogAppendTime")
    to.write("chosen", 0, 50, columns=("CAST(length(value) % 2 AS INT) AS partition",))
    for number in range(8):
        to.write("merged", 50 * number, 50, merge="false")
    to.call("merge", topic="'merged'")
    to.write("merged", 400, 20)
    for number in range(4):
        to.write("rebatched", 20 * number, 20, merge="false", batch_size=200)
    to.call("merge", topic="'rebatched'", rebatch="true")
    to.write("cut", 0, 100)
    to.call("delete_records", topic="'cut'", offsets="""'{"0":17,"1":3}'""")
    to.write("grown", 0, 60)
    to.call("add_partitions", topic="'grown'", partitions="3")
    to.write("grown", 60, 60, partitions=3)
    for number in range(3):
        to.write("expired", 40 * number, 40, merge="false", segment_bytes=2048)
    to.call("expire", topic="'expired'", retention_bytes="3000")
    to.write("again", 0, 10)
    to.call("delete_topic", topic="'again'")
    to.write("again", 100, 10)
    to.write("gone", 0, 10)
    to.call("delete_topic", topic="'gone'")
    for view in ("merged", "none"):
        to.write(f"view-{view}", 0, 20, kafka_view=view)
    to.write("configured", 0, 20, index_interval_bytes=64, batch_size=300)
    to.call("set_config", topic="'configured'", config="map('segment.bytes', '4096', 'max.message.bytes', '2000')")
    to.write("configured", 20, 20)
    for _ in range(2):  # the second one is skipped
        to.write("once", 0, 20, txnAppId="job", txnVersion=7)
    for number in range(104):
        to.write("many", 3 * number, 3)
    for topic in (SINK, SINK, COPY):
        run_query(spark, folder, topic)
    with sparklog.Consumer(to.root, "many", group_id=GROUP, table=str(folder / "offsets"), auto_offset_reset="earliest") as consumer:
        consumer.poll(max_records=100)
        consumer.commit()


def main() -> None:
    spark = sparklog.session(app_name="golden root", conf={"spark.sql.session.timeZone": "UTC"})
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_root(spark, folder)
        log = sparklog.Log(folder / "log")
        assert log.verify().ok, log.verify()
        positions = {
            str(each.partition): each.offset for each in OffsetTable(str(folder / "log"), str(folder / "offsets")).positions(GROUP)
        }
        topics = {}
        for name in log:
            topic = log[name]
            topics[name] = {"starts": topic.start_offsets(), "ends": topic.end_offsets(), "records": digests(topic.read())}
        release = f"root-{sparklog.__version__}"
        with tarfile.open(FOLDER / f"{release}.tar.gz", "w:gz") as archive:
            for part in sorted(folder.iterdir()):
                archive.add(part, part.name, filter=_owned_by_none)
        (FOLDER / f"{release}.json").write_text(json.dumps({"positions": positions, "topics": topics}, indent=1, sort_keys=True) + "\n")
    spark.stop()


def _owned_by_none(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main()
