"""A broker of Kafka for a benchmark: one process, with its log on the same disk."""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import KafkaError

JARS = Path(__file__).parents[1] / ".tools" / "kafka"
_START_S = 60
_JAVA = ["java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{JARS}/*"]
_CLUSTER = "c9Uau9icSBmvDvtokvlNaA"


@contextlib.contextmanager
def broker(folder: Path, topic: str, partitions: int, view: Path | None = None) -> Iterator[tuple[str, int]]:
    """A broker with a topic: its address, and its process id. It ends with the block.

    The topic is empty, or has copies of the segments and indexes in `view`, a folder with a folder `<topic>-<partition>` for each partition
    that has records. The broker is stopped while these take the place of its own, and takes them as they are.
    """
    folder.mkdir()
    client, controller = _free_ports(2)
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
log.retention.ms=-1
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
"""
    )
    address = f"127.0.0.1:{client}"
    with (folder / "said.txt").open("ab") as said:
        format_ = [*_JAVA, "kafka.tools.StorageTool", "format", "--standalone", "-t", _CLUSTER, "-c", str(config)]
        subprocess.run(format_, stdout=said, stderr=said, check=True)
        with _running(config, said) as process:
            _create(address, topic, partitions)
            if view is None:
                yield address, process.pid
                return
            process.terminate()
            process.wait(_START_S)
        for partition in range(partitions):
            _place(view / f"{topic}-{partition}", folder / "log" / f"{topic}-{partition}")
        with _running(config, said) as process:
            _wait(address)
            yield address, process.pid


@contextlib.contextmanager
def _running(config: Path, said: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([*_JAVA, "kafka.Kafka", str(config)], stdout=said, stderr=said)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _place(view: Path, log: Path) -> None:
    if view.is_dir():
        for old in [*log.glob("*.log"), *log.glob("*.index"), *log.glob("*.timeindex"), *log.glob("*.snapshot")]:
            old.unlink()
        for file in view.iterdir():
            shutil.copy(file, log)


def _create(address: str, topic: str, partitions: int) -> None:
    _wait(address)
    until = time.monotonic() + _START_S
    while True:
        try:
            with contextlib.closing(KafkaAdminClient(bootstrap_servers=address)) as admin:
                admin.create_topics([NewTopic(topic, partitions, 1)])
            return
        except KafkaError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def _wait(address: str) -> None:
    """Waits until a broker listens. kafka-python leaves sockets open that could not connect, so the first look is without it."""
    host, port = address.split(":")
    until = time.monotonic() + _START_S
    while True:
        try:
            socket.create_connection((host, int(port))).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def _free_ports(count: int) -> list[int]:
    """Ports that are free, below those that the system gives to connections: one of the broker's own could take it."""
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randrange(15_000, 32_000)
        if port in found:
            continue
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found
