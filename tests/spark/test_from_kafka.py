"""Jobs and streams of Spark's Kafka connector, as its guide shows them, with only the changes that from-kafka.md names."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sparklog

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "from-kafka.md"
SERVERS = '.option("kafka.bootstrap.servers", "host1:port1,host2:port2")'
TIME = 1_700_000_000_000

# The rest of a job after spark.read.format("kafka").option(servers) → the number of records that it must read from each topic.
READS: dict[str, tuple[str, dict[str, int]]] = {
    "one topic": ('.option("subscribe", "topic1").option("kafka.group.id", "g")', {"topic1": 120}),
    "one topic with headers": ('.option("subscribe", "topic1").option("includeHeaders", "true")', {"topic1": 120}),
    "many topics from offsets to offsets": (
        """.option("subscribe", "topic1,topic2")
        .option("startingOffsets", '{"topic1":{"0":23,"1":-2},"topic2":{"0":-2}}')
        .option("endingOffsets", '{"topic1":{"0":50,"1":-1},"topic2":{"0":-1}}')""",
        {"topic1": 27 + 60, "topic2": 30},
    ),
    "a pattern, from the earliest to the latest": (
        '.option("subscribePattern", "topic.*").option("startingOffsets", "earliest").option("endingOffsets", "latest")',
        {"topic1": 120, "topic2": 30},
    ),
    "assigned partitions": (""".option("assign", '{"topic1":[1],"topic2":[0]}')""", {"topic1": 60, "topic2": 30}),
    "by one time": (
        f'.option("subscribe", "topic1").option("startingTimestamp", "{TIME + 10}").option("endingTimestamp", "{TIME + 20}")',
        {"topic1": 20},
    ),
    "by times of partitions": (
        f""".option("subscribe", "topic1")
        .option("startingOffsetsByTimestamp", '{{"topic1":{{"0":{TIME + 10},"1":{TIME + 50}}}}}')
        .option("endingOffsetsByTimestamp", '{{"topic1":{{"0":{TIME + 15},"1":{TIME + 9_999}}}}}')""",
        {"topic1": 5 + 10},
    ),
    "by a time that a topic has not": (
        f""".option("subscribe", "topic1,topic2").option("startingTimestamp", "{TIME + 40}")
        .option("startingOffsetsByTimestampStrategy", "latest")""",
        {"topic1": 40},
    ),
    "in more tasks": ('.option("subscribe", "topic1").option("minPartitions", "8").option("failOnDataLoss", "false")', {"topic1": 120}),
    "with settings of clients": (
        """.option("subscribe", "topic2").option("kafka.group.id", "g").option("kafkaConsumer.pollTimeoutMs", "512")
        .option("kafka.security.protocol", "SSL").option("kafka.compression.type", "zstd")""",
        {"topic2": 30},
    ),
}
WRITES = {
    "topic3": 'df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").write.format("kafka")'
    + SERVERS
    + '.option("topic", "topic3").save()',
    "topic4": """df.selectExpr("'topic4' AS topic", "CAST(key AS STRING)", "CAST(value AS STRING)").write.format("kafka")"""
    + SERVERS
    + ".save()",
}

# The same for spark.readStream, of what is there when the query starts.
STREAMS: dict[str, tuple[str, dict[str, int]]] = {
    "a stream of one topic": ('.option("subscribe", "topic1")', {}),
    "a stream of one topic with headers": (
        '.option("subscribe", "topic1").option("includeHeaders", "true").option("startingOffsets", "earliest")',
        {"topic1": 120},
    ),
    "a stream of many topics": (
        """.option("subscribe", "topic1,topic2").option("startingOffsets", '{"topic1":{"0":23,"1":-1},"topic2":{"0":-2}}')""",
        {"topic1": 37, "topic2": 30},
    ),
    "a stream of a pattern, with limits": (
        """.option("subscribePattern", "topic.*").option("startingOffsets", "earliest").option("failOnDataLoss", "false")
        .option("maxOffsetsPerTrigger", "100").option("minOffsetsPerTrigger", "10").option("maxTriggerDelay", "15m")
        .option("groupIdPrefix", "p")""",
        {"topic1": 120, "topic2": 30},
    ),
    "a stream from a time": (
        f""".option("subscribe", "topic1").option("startingTimestamp", "{TIME + 10}").option("minPartitions", "4")""",
        {"topic1": 100},
    ),
}
STREAM_WRITES = {
    "topic5": 'ds = df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").writeStream.format("kafka")'
    + SERVERS
    + '.option("topic", "topic5").start()',
    "topic6": """ds = df.selectExpr("'topic6' AS topic", "CAST(key AS STRING)", "CAST(value AS STRING)").writeStream.format("kafka")"""
    + SERVERS
    + ".start()",
}


def ported(job: str) -> str:
    """A job with the changes that the page names."""
    changes = re.findall(r"^\| `(\..*)` \| `(\..*)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [change[0] for change in changes] == ['.format("kafka")', SERVERS, ".save()"]
    for old, new in changes:
        job = job.replace(old, new)
    return job


def answers(spark: SparkSession, folder: str) -> dict[str, Any]:
    """The results of all jobs on a log that is made for them."""
    root = f"{folder}/log"
    for topic, partitions, records in (("topic1", 2, 60), ("topic2", 1, 30)):
        rows = spark.range(partitions * records).selectExpr(
            "concat('k', id) AS key",
            "concat('v', id) AS value",
            f"CAST(id % {partitions} AS INT) AS partition",
            f"timestamp_millis({TIME} + CAST(id DIV {partitions} AS BIGINT)) AS timestamp",
        )
        rows.coalesce(1).write.format("partlog").option("topic", topic).option("partitions", partitions).mode("append").save(root)
    given: dict[str, Any] = {}
    for name, (options, _) in READS.items():
        names: dict[str, Any] = {"spark": spark, "root": root}
        exec(ported(f"df = (spark.read.format('kafka'){SERVERS}{options}\n.load())".replace("'kafka'", '"kafka"')), names)
        df = names["df"].selectExpr("topic", "CAST(key AS STRING)", "CAST(value AS STRING)", *names["df"].columns[3:])
        given[name] = {row["topic"]: row["count"] for row in df.groupBy("topic").count().collect()}
    spark.conf.set("spark.sql.streaming.checkpointLocation", f"{folder}/checkpoints")
    for number, (name, (options, _)) in enumerate(STREAMS.items()):
        names = {"spark": spark, "root": root}
        exec(ported(f'df = (spark.readStream.format("kafka"){SERVERS}{options}\n.load())'), names)
        query = names["df"].writeStream.format("memory").queryName(f"s{number}").trigger(availableNow=True).start()
        assert sparklog.progress(query).watch().behind_offsets == 0
        given[name] = {row["topic"]: row["count"] for row in spark.table(f"s{number}").groupBy("topic").count().collect()}
    source = spark.readStream.format("partlog").option("subscribe", "topic2").option("startingOffsets", "earliest")
    for job in STREAM_WRITES.values():
        names = {"df": source.load(root), "root": root}
        exec(ported(job), names)
        names["ds"].processAllAvailable()
        names["ds"].stop()
    spark.conf.unset("spark.sql.streaming.checkpointLocation")
    for job in WRITES.values():
        df = spark.read.format("partlog").option("subscribe", "topic2").load(root)
        exec(ported(job), {"df": df, "root": root})
    for topic in (*WRITES, *STREAM_WRITES):
        written = spark.read.format("partlog").option("subscribe", topic).load(root)
        given[topic] = sorted(row["value"] for row in written.selectExpr("CAST(value AS STRING)").collect())
    return given


EXPECTED: dict[str, Any] = {name: counts for name, (_, counts) in (READS | STREAMS).items()}
EXPECTED |= {topic: sorted(f"v{n}" for n in range(30)) for topic in (*WRITES, *STREAM_WRITES)}


def test_classic(spark: SparkSession, tmp_path: Path) -> None:
    assert answers(spark, str(tmp_path)) == EXPECTED


CONNECT = """
import json, sys, sparklog
from pyspark.sql import SparkSession
sys.path.insert(0, sys.argv[1])
import test_from_kafka
spark = sparklog.configure(SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")).getOrCreate()
print(json.dumps(test_from_kafka.answers(spark, sys.argv[2])))
"""


def test_connect_and_that_a_warning_comes_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CONNECT, str(Path(__file__).parent), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-4_000:]
    assert json.loads(ran.stdout.splitlines()[-1]) == EXPECTED
    warned = re.findall("ignores options for one: (.*)", ran.stderr)
    assert warned == [
        "`kafka.group.id`",
        "`kafka.compression.type` (give `compression.type` instead), `kafka.security.protocol`, `kafkaConsumer.pollTimeoutMs`",
        "`groupIdPrefix`",
    ]


def test_the_default_mode_refuses_a_topic_that_is_there_in_the_words_that_the_page_quotes(spark: SparkSession, tmp_path: Path) -> None:
    writer = spark.sql("SELECT 'v' AS value").write.format("partlog").option("topic", "t")
    writer.save(str(tmp_path / "log"))
    with pytest.raises(Exception, match="PARTLOG_TOPIC_EXISTS"):
        writer.save(str(tmp_path / "log"))
    assert "`TOPIC_EXISTS`" in PAGE.read_text(encoding="utf-8")
    assert spark.read.format("partlog").load(str(tmp_path / "log")).count() == 1
