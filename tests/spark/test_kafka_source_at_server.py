"""Spark's own Kafka source and sink at a server, beside the format `partlog` on the same root, in a Spark of its own.

A program has the session, since the session of the other tests has no Kafka connector.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from serve.clients import CLIENTS, of_log
from serve.serving import RunningServer, server_classpath
from verifying import faults

import sparklog

HERE = Path(__file__).resolve().parents[2]
JARS = sorted((HERE / ".tools" / "spark-kafka").glob("*.jar"))
COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp"]
RECORDS = 600
WAIT_S = 600


@pytest.mark.slow
def test_spark_reads_and_writes_through_a_server_what_partlog_does(java_classpath: str, repository: Path, tmp_path: Path) -> None:
    assert JARS, "run `make kafka`"
    with RunningServer(server_classpath(java_classpath, repository), tmp_path / "root") as server:
        path = os.pathsep.join(map(str, (HERE, HERE / "tests")))
        command = [sys.executable, "-m", "spark.test_kafka_source_at_server", server.address, str(server.root), str(tmp_path)]
        ran = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=800, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr[ran.stderr.find("Traceback") :][:4_000]
        told = json.loads(ran.stdout.splitlines()[-1])
        print(told)
    assert faults(tmp_path / "root", unfinished=True) == []


def produce(address: str, topic: str, numbers: range) -> None:
    """Sends records, and returns when all are acknowledged. The client is idempotent."""
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "partitioner": "murmur2_random", "linger.ms": 5})
    errors: list[object] = []
    for number in numbers:
        producer.produce(topic, b"%d" % number, b"key-%d" % (number % 7), on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(WAIT_S) == 0
    assert errors == [None] * len(numbers)


class Both:
    """The two ways of Spark to a topic."""

    def __init__(self, spark: SparkSession, address: str, root: str) -> None:
        self._spark, self._address, self._root = spark, address, root

    def read(self, kind: str, topic: str) -> DataFrame:
        reader = self._spark.read.format(kind).option("subscribe", topic).option("kafka.bootstrap.servers", self._address)
        return (reader.load() if kind == "kafka" else reader.load(self._root)).select(COLUMNS)

    def are_equal(self, topic: str) -> int:
        """The number of records. They are the same in both ways, and in the reader that needs no Java."""
        kafka, ours = ({tuple(row) for row in self.read(kind, topic).collect()} for kind in ("kafka", "partlog"))
        assert kafka == ours
        found = {(each.partition, each.offset, each.key, each.value) for each in of_log(Path(self._root), topic)}
        assert found == {(row[3], row[4], bytes(row[0]), bytes(row[1])) for row in ours}
        return len(ours)


def batches(both: Both, spark: SparkSession, address: str, root: str) -> None:
    """Each side writes a topic, and both read it. Filters that the source pushes down leave the same records."""
    produce(address, "visits", range(RECORDS))
    assert both.are_equal("visits") == RECORDS
    later = both.read("kafka", "visits").where("offset >= 20 and value > '3'").count()
    assert 0 < later == both.read("partlog", "visits").where("offset >= 20 and value > '3'").count()
    rows = spark.range(RECORDS).selectExpr("cast(id % 5 as string) as key", "cast(id as string) as value")
    rows.write.format("kafka").option("kafka.bootstrap.servers", address).option("topic", "by-sink").save()
    rows.write.format("partlog").option("topic", "by-sink").mode("append").save(root)
    assert both.are_equal("by-sink") == 2 * RECORDS
    values = sorted(int(each.value or b"") for each in of_log(Path(root), "by-sink"))
    assert values == sorted([*range(RECORDS), *range(RECORDS)])


def acknowledged_records_are_there(both: Both, address: str) -> None:
    for number in range(3):
        produce(address, "at-once", range(number, number + 1))
        assert [int(row.value) for row in both.read("partlog", "at-once").orderBy("timestamp").collect()] == list(range(number + 1))


def polled_after_commit(spark: SparkSession, address: str, root: str) -> list[int]:
    """Milliseconds from the return of each write of Spark until a waiting consumer has the record. The write returns after its commit."""
    topic, taken = "polled", []
    spark.createDataFrame([(b"k", b"0")], "key binary, value binary").write.format("partlog").options(topic=topic, partitions=1).mode(
        "append"
    ).save(root)
    consumer = Consumer({"bootstrap.servers": address, "group.id": topic})
    consumer.assign([TopicPartition(topic, 0, 1)])
    assert consumer.poll(2) is None
    for number in range(1, 6):
        arrived: list[float] = []

        def poll(number: int = number, arrived: list[float] = arrived) -> None:
            until = time.monotonic() + WAIT_S
            while (record := consumer.poll(1)) is None:
                assert time.monotonic() < until
            assert (record.offset(), record.value()) == (number, b"%d" % number)
            arrived.append(time.monotonic())

        waiting = threading.Thread(target=poll)
        waiting.start()
        frame = spark.createDataFrame([(b"k", b"%d" % number)], "key binary, value binary")
        frame.write.format("partlog").option("topic", topic).mode("append").save(root)
        returned = time.monotonic()
        waiting.join()
        assert arrived, "the consumer does not get a record of Spark"
        taken.append(round(1000 * (arrived[0] - returned)))
    consumer.close()
    return taken


def streams(spark: SparkSession, address: str, root: str, folder: Path) -> None:
    """Streams copy a topic exactly while clients write the topic, and after the streams began again."""
    produce(address, "orders", range(10))
    writing = threading.Thread(target=produce, args=(address, "orders", range(10, RECORDS)))
    writing.start()

    def copy(kind: str, target: str) -> None:
        source = spark.readStream.format(kind).options(subscribe="orders", startingOffsets="earliest")
        if kind == "kafka":
            source = source.option("kafka.bootstrap.servers", address).option("maxOffsetsPerTrigger", 150)
        records = (source.load() if kind == "kafka" else source.option("maxOffsetsPerTrigger", 150).load(root)).select("key", "value")
        sink = records.writeStream.format("partlog").option("topic", target).option("checkpointLocation", str(folder / target))
        sink.trigger(availableNow=True).start(root).awaitTermination()

    pairs = {"partlog": "from-partlog", "kafka": "from-kafka"}
    for kind, target in pairs.items():
        copy(kind, target)
    writing.join()
    for kind, target in pairs.items():
        copy(kind, target)
        copied = sorted(int(each.value or b"") for each in of_log(Path(root), target))
        assert copied == list(range(RECORDS)), f"{kind}: {len(copied)} records"
    back = spark.readStream.format("partlog").options(subscribe="orders", startingOffsets="earliest").load(root).select("key", "value")
    sink = back.writeStream.format("kafka").option("kafka.bootstrap.servers", address).option("topic", "to-kafka")
    sink.option("checkpointLocation", str(folder / "to-kafka")).trigger(availableNow=True).start().awaitTermination()
    ends = sparklog.Log(root).topic("to-kafka").end_offsets()
    found = CLIENTS["librdkafka"](address, "to-kafka", dict.fromkeys(ends, 0), ends)
    assert sorted(int(each.value or b"") for each in found) == list(range(RECORDS))


def main(address: str, root: str, folder: str) -> None:
    settings = {"spark.jars": ",".join(map(str, JARS)), "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    spark = sparklog.session(conf=settings)
    spark.sparkContext.setLogLevel("ERROR")
    both = Both(spark, address, root)
    batches(both, spark, address, root)
    acknowledged_records_are_there(both, address)
    streams(spark, address, root, Path(folder))
    taken = polled_after_commit(spark, address, root)
    spark.stop()
    print(json.dumps({"milliseconds from a commit of Spark to a client's poll": taken}))


if __name__ == "__main__":
    main(*sys.argv[1:])
