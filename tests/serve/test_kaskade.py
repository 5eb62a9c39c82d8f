"""Kaskade, a page of Kafka in a terminal, shows a root as it shows a broker."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.structs import OffsetAndMetadata
from serve.clients import kafka_python_member
from serve.serving import RunningServer

WAIT_S = 600


def shown(repository: Path, address: str, topic: str) -> dict[str, list[dict[str, Any]]]:
    """The cells of Kaskade's page of topics, and of its pages of one topic."""
    python = repository / ".tools" / "kaskade" / "bin" / "python"
    assert python.exists(), "run `make kaskade`"
    command = [python, repository / "tests" / "serve" / "kaskade_pages.py", address, topic]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=WAIT_S, check=False)
    assert ran.returncode == 0, ran.stderr[-4_000:]
    return json.loads(ran.stdout)


@pytest.mark.slow
def test_pages_show_topics_and_groups_with_lag(serve_classpath: str, repository: Path, tmp_path: Path) -> None:
    with RunningServer(serve_classpath, tmp_path / "root") as server:
        admin = KafkaAdminClient(bootstrap_servers=server.address)
        admin.create_topics([NewTopic("orders", 2, 1), NewTopic("events", 3, 1)])
        producer = KafkaProducer(bootstrap_servers=server.address)
        for number in range(12):
            producer.send("orders", b"%d" % number, partition=number % 3 // 2)
        producer.close()
        consumer = kafka_python_member(
            "orders", bootstrap_servers=server.address, group_id="readers", client_id="reader-1", enable_auto_commit=False
        )
        while len(consumer.assignment()) < 2:
            consumer.poll(100)
        consumer.commit({TopicPartition("orders", number): OffsetAndMetadata(3, "", -1) for number in range(2)})
        pages = shown(repository, server.address, "orders")

        topics = {row.pop("Name"): list(row.values()) for row in pages["topics"]}
        del topics["__consumer_offsets"]
        #                           partitions, replicas, in sync, groups, members, records, lag
        assert topics == {"orders": ["2", "1", "1", "1", "1", "≈12", "≈6"], "events": ["3", "1", "1", "0", "0", "≈0", "≈0"]}
        assert [(row["ID"], row["Earliest"], row["End"], row["Records"]) for row in pages["partitions"]] == [
            ("0", "0", "8", "8"),
            ("1", "0", "4", "4"),
        ]
        [group] = pages["groups"]
        coordinator, node = group.pop("Coordinator").split("/")
        assert coordinator == server.address
        assert {row["Leader"] for row in pages["partitions"]} == {node}
        assert list(group.values()) == ["readers", "stable", "range", "2", "1", "6"]
        assert [list(row.values()) for row in pages["group-offsets"]] == [["readers", "0", "3", "8", "5"], ["readers", "1", "3", "4", "1"]]
        [member] = pages["group-members"]
        assert member.pop("Member ID").startswith("reader-1-")
        assert list(member.values()) == ["readers", "reader-1", "/127.0.0.1", "[0, 1]"]
        consumer.close()

        [group] = shown(repository, server.address, "orders")["groups"]
        assert (group["State"], group["Members"], group["Lag"]) == ("empty", "0", "6")
        admin.close()
