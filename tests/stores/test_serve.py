"""Two servers for Kafka's clients in front of a root in S3 and in HDFS, as a user starts them. One of them is killed."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import confluent_kafka
import pytest
from serve.clients import while_coordinators_change
from stores.buckets import unique
from stores.hdfs import Hdfs, write_settings
from stores.s3 import S3

from sparklog import Log
from sparklog.serve.process import Server

RECORDS = 200
WAIT_S = 600


def killed_in_between(root: str, seen_as: str, folder: Path) -> None:
    """A producer and a member of a group go on with the other server. Nothing is lost, doubled or out of order."""
    values = [f"{number:04d}" for number in range(2 * RECORDS)]
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(root)) for number in range(2)]
        addresses = ",".join(each.address for each in servers)
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": addresses, "enable.idempotence": True, "topic.metadata.refresh.interval.ms": 2000}
        )
        member = confluent_kafka.Consumer(
            {"bootstrap.servers": addresses, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        stack.callback(member.close)
        member.subscribe(["visits"])

        def send(some: list[str]) -> None:
            for value in some:
                producer.produce("visits", value, partition=0)
            assert producer.flush(WAIT_S) == 0

        def read(count: int) -> list[str]:
            found: dict[int, str] = {}  # by offset: a member that loses its partition for a moment reads records again
            for _ in range(4 * WAIT_S):
                found |= {each.offset(): (each.value() or b"").decode() for each in member.consume(RECORDS, 0.5) if each.error() is None}
                if len(found) == count:
                    return [found[offset] for offset in sorted(found)]
            pytest.fail(f"{len(found)} of {count} records")

        send(values[:RECORDS])
        assert read(RECORDS) == values[:RECORDS]
        while_coordinators_change(lambda: member.commit(asynchronous=False))
        os.kill(servers[0].pid, signal.SIGKILL)
        send(values[RECORDS:])
        assert read(RECORDS) == values[RECORDS:]
    there = Log(seen_as)["visits"].read()
    assert [each.decode() for each in there["value"].to_pylist()] == values
    assert Log(seen_as).verify().ok


@pytest.mark.usefixtures("settings_in_environment")
def test_in_s3(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings(tmp_path / "core-site.xml", s3.settings())
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    root = f"s3a://{s3.bucket}/{unique()}"
    killed_in_between(root, root, tmp_path)


def test_in_hdfs(hdfs: Hdfs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(hdfs.conf))
    root = f"{hdfs.uri}/{unique()}"
    killed_in_between(root, f"{root}?webhdfs={hdfs.webhdfs[0]}", tmp_path)
