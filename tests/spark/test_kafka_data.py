"""The page on moving data from Kafka and back, block by block, beside a broker with Spark's own Kafka connector."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from serve.clients import kafka_python_member

import sparklog
from bench.broker import JARS, broker
from sparklog.groups import OffsetTable

HERE = Path(__file__).resolve().parents[2]
PAGE = (HERE / "docs" / "guide" / "kafka-data.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^(?:## (.*?)|# .*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CONNECTOR = HERE / ".tools" / "spark-kafka"
PARTITIONS = 3
EXPIRED = {0: 4, 1: 0, 2: 7}
"""The records of each partition that Kafka has deleted before the topic is copied."""
BEGIN = 1_700_000_000_000
PRODUCE = """
from test_kafka_data import produce
produce(servers["kafka.bootstrap.servers"], range(60, 90))
"""

Read = list[tuple[int, int, int, bytes | None, bytes | None, list[tuple[str, bytes]]]]


def produce(servers: str, numbers: range) -> None:
    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=50)
    for number in numbers:
        key = None if number % 9 == 0 else b"customer-%d" % (number % 7)
        value = None if number % 10 == 5 and key else b"%d" % number
        producer.send("orders", value, key, [("trace", b"%d" % number)], partition=number % PARTITIONS, timestamp_ms=BEGIN + 1_000 * number)
    producer.close()


def read(servers: str, topic: str) -> Read:
    """All records of a topic of a broker, by partition and offset."""
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign(places)
    ends = consumer.end_offsets(places)
    found: Read = []
    until = time.monotonic() + 120
    while any(consumer.position(place) < ends[place] for place in places):
        assert time.monotonic() < until
        for records in consumer.poll(1_000).values():
            found += [(each.partition, each.offset, each.timestamp, each.key, each.value, list(each.headers)) for each in records]
    consumer.close()
    return sorted(found, key=lambda record: record[:2])


def here(root: Path) -> Read:
    rows = sparklog.Log(root)["orders"].read().to_pylist()
    found = [
        (
            row["partition"],
            row["offset"],
            int(row["timestamp"].timestamp() * 1_000),
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"] or ()],
        )
        for row in rows
    ]
    return sorted(found, key=lambda record: record[:2])


def commit(servers: str, positions: dict[int, int]) -> None:
    """Commits positions of the group `billing` in Kafka, as its consumer would."""
    consumer = kafka_python_member(
        "orders", bootstrap_servers=servers, group_id="billing", enable_auto_commit=False, auto_offset_reset="earliest"
    )
    while len(consumer.assignment()) < PARTITIONS:
        consumer.poll(200)
    for number, offset in positions.items():
        consumer.seek(TopicPartition("orders", number), offset)
    consumer.commit()
    consumer.close()


@pytest.mark.slow
def test_the_page(tmp_path: Path, kafka_classpath: str) -> None:
    folder, commands = tmp_path / "folder", tmp_path / "bin"
    folder.mkdir()
    commands.mkdir()
    kafka_tool = f'exec java -cp "{JARS}/*" org.apache.kafka.tools.consumer.group.ConsumerGroupCommand "$@"'
    for name, line in {"sparklog": f'exec "{sys.executable}" -m sparklog "$@"', "kafka-consumer-groups.sh": kafka_tool}.items():
        (commands / name).write_text(f"#!/bin/sh\n{line}\n")
        (commands / name).chmod(0o755)
    with broker(tmp_path / "kafka", "orders", PARTITIONS) as (servers, _):
        produce(servers, range(60))
        admin = KafkaAdminClient(bootstrap_servers=servers)
        admin.delete_records({TopicPartition("orders", number): offset for number, offset in EXPIRED.items()})
        admin.create_topics([NewTopic("orders-back", PARTITIONS, 1)])
        admin.close()
        commit(servers, {0: 10, 1: 3, 2: 20})
        run(folder, commands, servers)
        theirs, back = read(servers, "orders"), read(servers, "orders-back")
    ours = here(folder / "my-log")
    assert len(ours) == 90 - sum(EXPIRED.values())
    assert [(number, offset - EXPIRED[number], *rest) for number, offset, *rest in theirs] == [tuple(record) for record in ours]
    moved = {each.partition: each.offset for each in OffsetTable(folder / "my-log", folder / "my-offsets").positions("billing")}
    assert moved == {0: 6, 1: 3, 2: 13}

    def without_times(records: Read) -> list[tuple[object, ...]]:
        return [(number, *rest) for number, _, _, *rest in records]

    assert without_times(back) == without_times(ours)
    assert min(record[2] for record in back) > max(record[2] for record in ours), "Spark's sink gives each record the time of its write"

    with broker(tmp_path / "another", "orders", PARTITIONS, folder / "orders-in-kafka") as (servers, _):
        assert read(servers, "orders") == ours


def run(folder: Path, commands: Path, servers: str) -> None:
    """The blocks of the page as one program: Python as it stands, commands in a terminal. Kafka gets more records before the cut over."""
    jars = ",".join(str(jar) for jar in sorted(CONNECTOR.glob("*.jar")))
    assert jars, f"{CONNECTOR} is empty: run `make kafka`"
    packages = '"spark.jars.packages": connector'
    assert packages in PAGE
    program = ["from terminal import paste"]
    for title, body in SECTIONS:
        program += [PRODUCE] * (title == "Cut over")
        for kind, block in BLOCK.findall(body):
            given = block.replace(packages, f'"spark.jars": "{jars}"').replace("broker:9092", servers)
            program.append(given if kind == "python" else f"paste({given!r})")
    assert len(program) == 2 + len(BLOCK.findall(PAGE))
    (folder.parent / "program.py").write_text("\n".join(program), encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": f"{commands}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(map(str, (HERE, HERE / "tests", Path(__file__).parent))),
    }
    command = [sys.executable, str(folder.parent / "program.py")]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[ran.stderr.find("Traceback") :][:4_000]  # Kafka's clients print their settings
