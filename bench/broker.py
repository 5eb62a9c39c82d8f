"""A broker of Kafka for a benchmark: one process, with its log on the same disk."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import KafkaError

JARS = Path(__file__).parents[1] / ".tools" / "kafka"
_START_S = 60
_JAVA = ["java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{JARS}/*"]
_CLUSTER = "c9Uau9icSBmvDvtokvlNaA"


@contextlib.contextmanager
def broker(folder: Path, topic: str, partitions: int) -> Iterator[tuple[str, int]]:
    """A broker with an empty topic: its address, and its process id. It ends with the block."""
    folder.mkdir()
    client, controller = _free_port(), _free_port()
    config = folder / "server.properties"
    config.write_text(
        f"""
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{client}
controller.listener.names=CONTROLLER
log.dirs={folder}/log
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
"""
    )
    with (folder / "said.txt").open("wb") as said:
        format_ = [*_JAVA, "kafka.tools.StorageTool", "format", "--standalone", "-t", _CLUSTER, "-c", str(config)]
        subprocess.run(format_, stdout=said, stderr=said, check=True)
        process = subprocess.Popen([*_JAVA, "kafka.Kafka", str(config)], stdout=said, stderr=said)
        try:
            _create(f"127.0.0.1:{client}", topic, partitions)
            yield f"127.0.0.1:{client}", process.pid
        finally:
            process.kill()
            process.wait()


def _create(address: str, topic: str, partitions: int) -> None:
    until = time.monotonic() + _START_S
    while True:
        try:
            admin = KafkaAdminClient(bootstrap_servers=address)
            admin.create_topics([NewTopic(topic, partitions, 1)])
            admin.close()
            return
        except KafkaError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
