"""The metrics page of a server, as Prometheus' own parser reads it."""

import re
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from pathlib import Path

import httpx
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata
from logtool import LogTool, small_jvm
from prometheus_client.parser import text_string_to_metric_families
from serve.serving import RunningServer

WAIT_S = 600
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "monitoring.md"


@pytest.fixture(scope="module")
def metered(serve_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[RunningServer]:
    """A server with a page. Its topic `t` has 80 records in 4 partitions. The first test is about the clients of a new server."""
    root = tmp_path_factory.mktemp("metered") / "root"
    LogTool(serve_classpath, root).run("append", tag="A", topic="t", commits=4, tasks=2, records=10)
    with RunningServer(serve_classpath, root, ("metrics.address=127.0.0.1:0",)) as server:
        yield server


def page(server: RunningServer) -> dict[str, float]:
    """The samples of a server by their names and the values of their labels, such as `partlog_partition_end_offset t 0`."""
    answer = httpx.get(f"http://{server.metrics}/metrics", timeout=WAIT_S)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {}
    for family in text_string_to_metric_families(answer.text):
        assert family.documentation.endswith("."), family
        for sample in family.samples:
            found[" ".join([sample.name, *sample.labels.values()])] = sample.value
    return found


def until(server: RunningServer, condition: Callable[[dict[str, float]], bool]) -> dict[str, float]:
    """The first page of a server that fulfils a condition."""
    end = time.monotonic() + WAIT_S
    while not condition(found := page(server)):
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


def test_numbers_are_those_of_the_clients(metered: RunningServer) -> None:
    before = page(metered)
    assert before["partlog_server_connections"] == before["partlog_server_commits_total"] == 0
    assert not [name for name in before if name.startswith("partlog_group")]  # and no topic of groups was made for the page
    assert sum(value for name, value in before.items() if name.startswith("partlog_partition_end_offset t ")) == 80

    producer = KafkaProducer(bootstrap_servers=metered.address, client_id="till")
    for number in range(3):
        producer.send("t", b"x" * 1000, partition=number).get(60)
    consumer = KafkaConsumer(bootstrap_servers=metered.address, group_id="mail", client_id="mailer", auto_offset_reset="none")
    partition = TopicPartition("t", 0)
    consumer.assign([partition])
    end = consumer.end_offsets([partition])[partition]
    consumer.commit({partition: OffsetAndMetadata(end - 5, "", -1)})
    # One look at the groups serves the pages of a second.
    found = until(metered, lambda found: found.get("partlog_group_partition_offset mail topic t 0") == end - 5)
    assert found["partlog_group_partition_lag mail topic t 0"] == 5
    assert found["partlog_group_partition_lag mail topic t 3"] == found["partlog_partition_end_offset t 3"]
    assert found["partlog_topic_version t"] >= before["partlog_topic_version t"] + 3  # a merge makes a version too
    assert found["partlog_server_commits_total"] == 3
    assert found["partlog_server_request_seconds_count Produce"] == found["partlog_server_request_seconds_bucket Produce +Inf"] == 3
    assert 0 < found["partlog_server_request_seconds_sum Produce"] < 60
    assert 3_000 < found["partlog_server_request_bytes_total Produce"] < 4_000
    assert 0 < found["partlog_server_response_bytes_total Produce"] < 1_000
    names = {name.split()[2] for name in found if name.startswith("partlog_server_clients PLAINTEXT ")}
    assert names == {"till", "mailer"}
    assert found["partlog_server_connections"] == sum(v for n, v in found.items() if n.startswith("partlog_server_clients "))
    consumer.close()
    producer.close()
    # The server sees the end of a connection a moment later.
    closed = until(metered, lambda found: found["partlog_server_connections"] == 0)
    assert not [name for name in closed if name.startswith("partlog_server_clients")]
    assert closed["partlog_server_connections_total PLAINTEXT"] >= found["partlog_server_connections"]


def test_errors_are_counted_by_name(metered: RunningServer) -> None:
    admin = KafkaAdminClient(bootstrap_servers=metered.address)
    with pytest.raises(Exception, match="TopicAlreadyExists"):
        admin.create_topics(["t"])
    admin.close()
    assert page(metered)["partlog_server_errors_total CreateTopics TOPIC_ALREADY_EXISTS"] == 1


def test_memory_is_that_of_requests_that_are_read(metered: RunningServer) -> None:
    limit = page(metered)["partlog_server_request_memory_limit_bytes"]
    host, _, port = metered.address.rpartition(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall((10_000_000).to_bytes(4, "big") + b"\0" * 100)
        # It is taken in steps, as bytes come.
        until(metered, lambda found: found["partlog_server_request_memory_bytes"] == 65_536)
    assert limit > 100_000_000


@pytest.mark.parametrize(("method", "path", "host", "status"), [
    ("GET", "/metrics", "attacker.example", 421),
    ("GET", "/metrics", "localhost:1", 200),
    ("POST", "/metrics", "127.0.0.1", 405),
    ("GET", "/", "127.0.0.1", 404),
])  # fmt: skip
def test_the_page_answers_for_addresses_and_reads_only(metered: RunningServer, method: str, path: str, host: str, status: int) -> None:
    assert httpx.request(method, f"http://{metered.metrics}{path}", headers={"Host": host}, timeout=WAIT_S).status_code == status


@pytest.mark.parametrize(
    ("address", "error"), [("0.0.0.0:0", "SERVE_UNPROTECTED"), ("127.0.0.1", "OPTION_VALUE"), ("{taken}", "SERVE_ADDRESS")]
)
def test_a_page_that_cannot_be_served_ends_the_start(serve_classpath: str, tmp_path: Path, address: str, error: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        asked = address.format(taken=taken.getsockname()[1])
        command = [*small_jvm(serve_classpath), "io.sparklog.serve.Serve", str(tmp_path / "root"), "--listen", "127.0.0.1:0"]
        done = subprocess.run([*command, f"metrics.address={asked}"], capture_output=True, encoding="utf-8", timeout=600)
    assert (done.returncode, done.stderr.split()[0]) == (2, f"[PARTLOG_{error}]"), done.stderr


def test_the_guide_has_each_metric(metered: RunningServer) -> None:
    told = set(
        re.findall(r"^# TYPE (partlog_server_\w+)", httpx.get(f"http://{metered.metrics}/metrics", timeout=WAIT_S).text, re.MULTILINE)
    )
    assert set(re.findall(r"^\| `(partlog_server_\w+)", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)) == told
