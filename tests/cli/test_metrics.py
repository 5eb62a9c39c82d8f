"""`sparklog metrics`: its output as Prometheus' own parser reads it, its cost, and the endpoint."""

import math
import os
import re
import signal
import time

import httpx
import pytest
from coordinated import position, topic_of_groups
from handmade import Topic, batches, records
from owners import Own
from prometheus_client.parser import text_string_to_metric_families

from sparklog import Log
from sparklog.groups import OffsetTable, rows
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_logs import TopicLogs
from sparklog.store.local import LocalStore

DAY_S = 86_400
LABELS = ("group", "topic", "partition", "kind", "name", "condition")


def parsed(text: str) -> dict[str, float]:
    """The samples of a text, each under its name and the values of its labels, such as `partlog_partition_end_offset t 0`."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation.endswith(".") and family.type == "gauge", family
        for sample in family.samples:
            key = " ".join([sample.name, *(sample.labels[label] for label in LABELS if label in sample.labels)])
            assert key not in found and not math.isnan(sample.value)
            found[key] = sample.value
    return found


@pytest.fixture
def table(topic, tmp_path):
    """Group `g` of topic `t`, which has read all of partition 1 and 20 of 25 of partition 0."""
    table = OffsetTable(topic.root, tmp_path / "offsets")
    Own(table, "g", {"t": {0: 20, 1: 10}}).end()
    return table


def test_numbers_are_those_of_the_log_and_the_table(run, topic, table):
    before = time.time()
    found = parsed(run("metrics", topic.root, "--table", table.path))
    about = Log(topic.root)["t"].describe()
    assert len(about["partitions"]) == 2
    for each in about["partitions"]:
        for name, metric in {
            "start": "start_offset",
            "end": "end_offset",
            "records": "records",
            "bytes": "bytes",
            "segments": "segments",
        }.items():
            assert found[f"partlog_partition_{metric} t {each['partition']}"] == each[name]
        assert found[f"partlog_partition_small_segments t {each['partition']}"] == each["segments"]
    assert found["partlog_topic_partitions t"] == 2
    assert found["partlog_topic_version t"] == about["version"] == 1
    assert found["partlog_topic_last_commit_timestamp_seconds t"] == about["committed_at"] / 1000
    assert (found["partlog_topic_versions_since_checkpoint t"], found["partlog_topic_version_files t"]) == (2, 2)
    assert (found["partlog_topic_expired_bytes t"], found["partlog_topic_unused_bytes t"]) == (0, 0)
    lag = {f"partlog_group_partition_lag g t {each['partition']}": each["records"] for each in table.lag("g").to_pylist()}
    assert lag == {"partlog_group_partition_lag g t 0": 5, "partlog_group_partition_lag g t 1": 0}
    assert lag.items() <= found.items()
    assert found["partlog_group_partition_offset g t 0"] == 20
    assert (found["partlog_group_running g"], found["partlog_group_unknown_partitions g"]) == (0, 0)
    assert before - 60 < found["partlog_group_last_commit_timestamp_seconds g"] <= time.time()
    assert not any(name.startswith("partlog_unreadable") for name in found)
    assert not any(name.startswith("partlog_group") for name in parsed(run("metrics", topic.root)))


def test_positions_without_a_lag(run, topic, table):
    """A partition without a position has its records as lag, and no offset; a topic that was created again has neither."""
    wide = Topic(topic.root, "wide", partitions=3)
    wide.append(records(4), 2)
    Own(table, "h", {"wide": {0: 0}}).end()
    topic.delete()
    topic.append(records(3))
    found = parsed(run("metrics", topic.root, "--table", table.path))
    assert found["partlog_group_partition_lag h wide 2"] == 4
    assert "partlog_group_partition_offset h wide 2" not in found
    assert found["partlog_group_unknown_partitions g"] == 2
    assert not any(name.startswith(("partlog_group_partition_lag g", "partlog_group_partition_offset g")) for name in found)


def test_upkeep_that_is_behind(run, tmp_path):
    """A topic without writers keeps expired records. A writer that died leaves a file."""
    topic = Topic(tmp_path / "root", config={"retention.ms": str(DAY_S * 1000)})
    topic.append(records(5))
    expired = Log(topic.root)["t"].describe()["bytes"]
    topic.commit(topic.data(batches(records(2, timestamp=int(time.time() * 1000)))))
    left = topic.folder / "data" / f"{2:020d}-{'A' * 20}_Q" / "pool.log"
    left.parent.mkdir()
    left.write_bytes(b"x" * 1000)
    found = parsed(run("metrics", topic.root))
    assert found["partlog_topic_expired_bytes t"] == expired > 0
    assert found["partlog_topic_unused_bytes t"] == 0, "a write may still run"
    os.utime(left, (time.time() - DAY_S - 60,) * 2)
    assert parsed(run("metrics", topic.root))["partlog_topic_unused_bytes t"] == 1000
    sized = Topic(tmp_path / "root", "sized", config={"retention.bytes": "0"})
    sizes = []
    for _ in range(3):
        sized.append(records(5))
        sizes.append(Log(topic.root)["sized"].describe()["bytes"])
    compacted = Topic(tmp_path / "root", "compacted", config={**sized.config, "cleanup.policy": "compact"})
    for _ in range(3):
        compacted.append(records(5))
    found = parsed(run("metrics", topic.root))
    assert found["partlog_topic_expired_bytes sized"] == sizes[1], "the last segment stays"
    assert found["partlog_topic_expired_bytes compacted"] == 0, "retention does not count there"


def test_what_cannot_be_read_is_named_and_the_rest_is_there(run, topic, table):
    broken = Topic(topic.root, "broken")
    broken.append(records(3))
    Own(table, "h", {"broken": {0: 1}}).end()
    broken.version_file(0).write_text("{")
    found = parsed(run("metrics", topic.root, "--table", table.path))
    assert found["partlog_unreadable topic broken PARTLOG_VERSION_CORRUPT"] == 1
    assert found["partlog_unreadable group h PARTLOG_VERSION_CORRUPT"] == 1
    assert found["partlog_partition_end_offset t 0"] == 25
    assert found["partlog_group_partition_lag g t 0"] == 5


def test_a_group_with_a_damaged_state_is_named_and_the_others_are_there(run, topic, table):
    own = Own(table, "h", {"t": {0: 1}})
    damaged = rows.note("h", own.generation, "begin", {"members": [{"id": 7}]})
    assert table.generations.commit("h", table.generations.last("h") + 1, own.generation, [damaged])
    found = parsed(run("metrics", topic.root, "--table", table.path))
    assert found["partlog_unreadable group h PARTLOG_GROUP_STATE"] == 1
    assert found["partlog_group_partition_lag g t 0"] == 5
    listed = run("groups", "list", topic.root, "--table", table.path)
    assert "PARTLOG_GROUP_STATE" in listed and " g " in listed.replace("\n", " ")
    assert "PARTLOG_GROUP_STATE" in run("groups", "reset", topic.root, "h", "-t", table.path, "--to-latest", "--execute", status=3)


def test_an_endpoint_forgets_topics_that_were_deleted(topic):
    from sparklog.prometheus import Exporter

    logs = TopicLogs(Root.at(str(topic.root)))
    metrics = Exporter(logs)
    for number in range(5):
        brief = Topic(topic.root, f"brief-{number}")
        brief.append(records(1))
        assert f'end_offset{{partition="0",topic="brief-{number}"}} 1' in metrics.text().decode()
        brief.delete()
    metrics.text()
    assert logs.kept == ["t"]


def test_groups_of_both_homes_are_told_apart(run, topic, table):
    topic_of_groups(topic.root, position("g", "t", 0, 3), position("g", "gone", 0, 3))
    found = run("metrics", topic.root, "--table", table.path)
    assert 'partlog_group_partition_lag{group="g",home="table",partition="0",topic="t"} 5.0' in found
    assert 'partlog_group_partition_lag{group="g",home="topic",partition="0",topic="t"} 22.0' in found
    assert 'partlog_group_unknown_partitions{group="g",home="topic"} 1.0' in found
    assert 'home="topic"' in run("metrics", topic.root)


def test_a_damaged_topic_of_groups_is_named_and_the_groups_of_the_table_are_there(run, topic, table):
    topic_of_groups(topic.root, position("mail", "t", 0, 3)).version_file(0).write_text("{")
    found = parsed(run("metrics", topic.root, "--table", table.path))
    assert found["partlog_unreadable groups __consumer_offsets PARTLOG_VERSION_CORRUPT"] == 1
    assert found["partlog_group_partition_lag g t 0"] == 5


def test_names_of_groups_are_escaped(run, topic, table):
    hostile = 'a"b\\c\nd{}=,ü\x1b'
    Own(table, hostile, {"t": {0: 1}}).end()
    found = parsed(run("metrics", topic.root, "--table", table.path))
    assert found[f"partlog_group_partition_lag {hostile} t 0"] == 24


def test_a_second_answer_opens_nothing_but_new_versions(topic, monkeypatch):
    """After the first answer, a topic costs two listings, and an open for each new version. No data file is ever opened."""
    from sparklog.prometheus import Exporter

    opened, listed = [], []
    for name, calls in {"open": opened, "names": listed, "entries": listed}.items():
        real = getattr(LocalStore, name)
        monkeypatch.setattr(LocalStore, name, lambda self, file, real=real, calls=calls: calls.append(file) or real(self, file))
    metrics = Exporter(topic.root)
    first = parsed(metrics.text().decode())
    assert [file for file in opened if file.endswith(".log")] == []
    opened.clear()
    listed.clear()
    assert parsed(metrics.text().decode()) == first
    assert (opened, sorted(listed)) == ([], ["_partlog", "_partlog/t", "_partlog/t/data"])
    topic.append(records(1))
    listed.clear()
    assert parsed(metrics.text().decode())["partlog_partition_end_offset t 0"] == 26
    assert [file.rpartition("/")[2] for file in opened] == [topic.version_file(2).name]


def test_wrong_calls(run, topic, tmp_path):
    assert "PARTLOG_ROOT_NOT_FOUND" in run("metrics", tmp_path / "typo", status=2)
    assert "PARTLOG_OFFSETS_TABLE_NOT_FOUND" in run("metrics", topic.root, "--table", tmp_path / "typo", status=2)
    assert "PARTLOG_ROOT_NOT_FOUND" in run("metrics", tmp_path / "typo", "--listen", "0", status=2)
    for wrong in ("host", "host:", "127.0.0.1:x", "a b:1", "::1:9308"):
        assert "is not an address" in " ".join(run("metrics", topic.root, "--listen", wrong, status=2).replace("│", " ").split())
    assert "from 0 to 65535" in run("metrics", topic.root, "--listen", "99999", status=2)
    said = run("metrics", topic.root, "--listen", "0.0.0.0:0", status=2)
    assert "everybody who reaches this address could read the names and numbers" in said


@pytest.mark.parametrize("address", ["0", "localhost:0", "[::1]:0"])
def test_the_endpoint(start, topic, table, address):
    """It answers on this machine, follows the log, obeys the rules of the page, and has no other path."""
    process = start("metrics", topic.root, "--table", table.path, "--listen", address)
    try:
        line = process.stdout.readline().decode()
        found = re.match(r"(http://(127\.0\.0\.1|\[::1\]):\d+/metrics) has the metrics of ", line)
        assert found, (line, process.communicate())
        answer = httpx.get(found[1], timeout=60)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=")
        assert parsed(answer.text)["partlog_group_partition_lag g t 0"] == 5
        topic.append(records(7), 0)
        assert parsed(httpx.get(found[1], timeout=60).text)["partlog_group_partition_lag g t 0"] == 12
        assert httpx.post(found[1], timeout=60).status_code == 405
        assert httpx.get(found[1], headers={"host": "evil.example"}, timeout=60).status_code == 421
        assert httpx.get(found[1], headers={"origin": "http://evil.example"}, timeout=60).status_code == 403
        assert httpx.get(found[1].replace("/metrics", "/api/topics"), timeout=60).status_code == 404
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == (b"", b"")
        assert process.returncode == 130
    finally:
        process.kill()
        process.communicate()


def test_an_error_while_it_serves_is_a_status(topic, tmp_path):
    """Prometheus shows the target as down then."""
    from starlette.testclient import TestClient

    from sparklog.prometheus import Exporter
    from sparklog.ui.metrics import application

    client = TestClient(application(Exporter(topic.root, tmp_path / "typo")), base_url="http://127.0.0.1")
    answer = client.get("/metrics")
    assert answer.status_code == 404 and "OFFSETS_TABLE_NOT_FOUND" in answer.text
