"""Kafka's own tools take the files of offsets that groups are exported to, and groups take those of Kafka's tools."""

import subprocess
from pathlib import Path

import pytest
from handmade import Topic, records
from kafka import KafkaConsumer as Reference
from kafka import KafkaProducer, TopicPartition
from logtool import SHORT_LIVED
from owners import Own

from bench.broker import JARS, broker
from sparklog.groups import OffsetTable

COUNTS = [25, 10]


def tool(name: str, address: str, *arguments: object) -> str:
    """Runs a tool of Kafka's against a broker, and gives what it prints."""
    java = ["java", *SHORT_LIVED, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{JARS}/*", f"org.apache.kafka.tools.{name}"]
    command = [*java, "--bootstrap-server", address, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.slow
def test_files_of_offsets_go_both_ways(tmp_path: Path) -> None:
    topic = Topic(tmp_path / "root", "t", partitions=2)
    for partition, count in enumerate(COUNTS):
        topic.append(records(count), partition)
    table = OffsetTable(topic.root, tmp_path / "table")
    Own(table, "g", {"t": {0: 17, 1: 4}}).end()
    csv, json = tmp_path / "offsets.csv", tmp_path / "offsets.json"
    csv.write_text(table.export("g", "csv"))
    json.write_text(table.export("g", "json"))
    with broker(tmp_path / "kafka", "t", 2) as (address, _):
        producer = KafkaProducer(bootstrap_servers=address)
        for partition, count in enumerate(COUNTS):
            for number in range(count):
                producer.send("t", str(number).encode(), partition=partition)
        producer.close()

        groups = ["consumer.group.ConsumerGroupCommand", address, "--group", "g"]
        tool(*groups, "--reset-offsets", "--from-file", csv, "--execute")
        described = tool(*groups, "--describe", "--offsets").split("\n")
        at = {tuple(line.split()[1:6]) for line in described if line.startswith("g ")}
        assert at == {("t", "0", "17", "25", "8"), ("t", "1", "4", "10", "6")}
        lag = {(row["topic"], row["partition"]): (row["offset"], row["end"], row["records"]) for row in table.lag("g").to_pylist()}
        assert lag == {("t", 0): (17, 25, 8), ("t", 1): (4, 10, 6)}

        # The export of Kafka's tool, with the group in each line if it is of several, moves the group here.
        exported = tool(*groups, "--reset-offsets", "--topic", "t", "--shift-by", "-2", "--export", "--dry-run")
        table.load("g", exported, "csv")
        assert {each.partition: each.offset for each in table.positions("g")} == {0: 15, 1: 2}

        tool("DeleteRecordsCommand", address, "--offset-json-file", json)
        consumer = Reference(bootstrap_servers=address)
        assert consumer.beginning_offsets([TopicPartition("t", 0), TopicPartition("t", 1)]) == {("t", 0): 17, ("t", 1): 4}
        consumer.close()
