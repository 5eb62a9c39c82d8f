"""Kafka Streams and a worker of Kafka Connect keep their own topics at a server, and go on from these topics after they began again."""

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from logtool import SHORT_LIVED
from ports import free_address
from serve.clients import of_log
from serve.serving import RunningServer

import sparklog

pytestmark = pytest.mark.slow

WAIT_S = 600
WORDS = ["log", "topic", "offset", "log", "segment"]


@pytest.fixture(scope="module")
def java(repository: Path) -> list[str]:
    jars = repository / ".tools" / "streams"
    assert any(jars.glob("kafka-streams-*.jar")), "run `make streams`"
    return ["java", *SHORT_LIVED, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{jars}/*"]


def until(asked: Callable[[], object], what: str, process: "subprocess.Popen[str]", log: Path) -> None:
    end = time.monotonic() + WAIT_S
    while not asked():
        assert process.poll() is None, log.read_text(encoding="utf-8")[-4_000:]
        assert time.monotonic() < end, what + log.read_text(encoding="utf-8")[-4_000:]
        time.sleep(0.2)


def test_streams_repartitions_counts_and_restores(server: RunningServer, java: list[str], repository: Path, tmp_path: Path) -> None:
    admin = KafkaAdminClient(bootstrap_servers=server.address)
    admin.create_topics([NewTopic("words", 2, 1), NewTopic("counts", 2, 1)])
    admin.close()
    sent: Counter[str] = Counter()

    def send(words: list[str]) -> None:
        producer = KafkaProducer(bootstrap_servers=server.address)
        for number, word in enumerate(words):
            producer.send("words", word.encode(), b"%d" % number)
        producer.close()
        sent.update(words)

    def counted() -> dict[str, int]:
        return {(each.key or b"").decode(): int(each.value or b"") for each in of_log(server.root, "counts")}

    def run(name: str) -> int:
        """The number of records that were restored. It ends when the counts are right."""
        log = tmp_path / f"{name}.log"
        program = repository / "tests" / "serve" / "streams" / "WordCount.java"
        command = [*java, str(program), server.address, "words", "counts", str(tmp_path / name)]
        with (
            log.open("w") as out,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out, encoding="utf-8") as process,
        ):
            try:
                until(lambda: counted() == sent, f"{counted()} are not {sent}", process, log)
                return int(process.communicate(timeout=WAIT_S)[0].split()[-1])
            finally:
                process.kill()

    send(WORDS * 20)
    assert run("first") == 0
    send(WORDS * 3)
    assert run("second") >= len(set(WORDS))
    [changelog] = [name for name in sparklog.Log(server.root).topics() if name.endswith("-changelog")]
    assert sparklog.Log(server.root).topic(changelog).config["cleanup.policy"] == "compact"
    assert [name for name in sparklog.Log(server.root).topics() if name.endswith("-repartition")]


class Worker:
    """A distributed worker of Kafka Connect, by its own HTTP interface."""

    def __init__(self, java: list[str], address: str, folder: Path) -> None:
        self._at = f"http://{free_address()}"
        text = "org.apache.kafka.connect.storage.StringConverter"
        settings = {"bootstrap.servers": address, "group.id": "connect", "listeners": self._at, "plugin.discovery": "only_scan"}
        settings |= {"key.converter": text, "value.converter": text, "offset.flush.interval.ms": "200"}
        for kind in ("config", "offset", "status"):
            settings |= {f"{kind}.storage.topic": f"connect-{kind}", f"{kind}.storage.replication.factor": "1"}
        file = folder / "worker.properties"
        file.write_text("\n".join(f"{key}={value}" for key, value in settings.items()), encoding="utf-8")
        self._command = [*java, "org.apache.kafka.connect.cli.ConnectDistributed", str(file)]
        self._log = folder / "worker.log"

    def ask(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._at + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)

    @contextmanager
    def running(self) -> Iterator[Callable[[Callable[[], object], str], None]]:
        """Gives a function that waits for something while the worker runs."""
        with self._log.open("a") as out, subprocess.Popen(self._command, stdout=out, stderr=out, encoding="utf-8") as process:

            def wait(asked: Callable[[], object], what: str) -> None:
                until(asked, what, process, self._log)

            try:
                wait(self._answers, "the worker does not answer")
                yield wait
            finally:
                process.kill()

    def _answers(self) -> bool:
        try:
            return isinstance(self.ask("/connectors"), list)
        except (urllib.error.URLError, OSError):
            return False


def test_a_worker_of_connect_keeps_connectors_and_positions(server: RunningServer, java: list[str], tmp_path: Path) -> None:
    """A file goes into a topic and out into another file, each line once, also over a worker that is killed."""
    admin = KafkaAdminClient(bootstrap_servers=server.address)
    admin.create_topics([NewTopic("lines", 1, 1)])
    admin.close()
    source, target = tmp_path / "source.txt", tmp_path / "target.txt"
    worker = Worker(java, server.address, tmp_path)
    lines = [f"line {number}" for number in range(40)]

    def copied() -> list[str]:
        return target.read_text(encoding="utf-8").splitlines() if target.exists() else []

    def positions() -> set[int]:
        return {json.loads(each.value or b"{}").get("position") for each in of_log(server.root, "connect-offset")}

    source.write_text("".join(f"{line}\n" for line in lines[:25]), encoding="utf-8")
    with worker.running() as wait:
        file = "org.apache.kafka.connect.file.FileStream"
        reader = {"connector.class": f"{file}SourceConnector", "file": str(source), "topic": "lines"}
        writer = {"connector.class": f"{file}SinkConnector", "file": str(target), "topics": "lines"}
        for name, config in {"reader": reader, "writer": writer}.items():
            assert worker.ask("/connectors", {"name": name, "config": config})["name"] == name
        wait(lambda: copied() == lines[:25], "the lines are not copied")
        wait(lambda: source.stat().st_size in positions(), "the position of the source is not stored")
    with source.open("a", encoding="utf-8") as more:
        more.writelines(f"{line}\n" for line in lines[25:])
    with worker.running() as wait:
        assert sorted(worker.ask("/connectors")) == ["reader", "writer"]
        wait(lambda: len(of_log(server.root, "lines")) >= 40, "the worker does not go on")
        wait(lambda: set(copied()) == set(lines), "the lines are not copied after a restart")
    assert [(each.value or b"").decode() for each in of_log(server.root, "lines")] == lines
    for kind in ("config", "offset", "status"):
        assert sparklog.Log(server.root).topic(f"connect-{kind}").config["cleanup.policy"] == "compact"
