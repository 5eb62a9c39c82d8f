"""Kafka's own tools work at a server as they do at a broker."""

import json
import re
import uuid
from pathlib import Path

import pytest
from serve.clients import of_log
from serve.kafka_tools import run_tool, run_tool_to_its_end
from serve.serving import RunningServer

import sparklog
from sparklog.groups import TopicGroups

RECORDS = 400


@pytest.fixture
def topic() -> str:
    """A name that no other test has."""
    return f"tools-{uuid.uuid4().hex[:8]}"


@pytest.mark.slow
def test_lines_of_a_console_pass_through_a_topic(server: RunningServer, topic: str) -> None:
    """The lines are records of the log. A group reads each of them once, and again after its positions were reset."""
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    run_tool(server.address, "kafka-console-producer", "--topic", topic, *keyed, given="ann:1\nbob:2\nann:3\n")
    assert sorted((each.key, each.value) for each in of_log(server.root, topic)) == [(b"ann", b"1"), (b"ann", b"3"), (b"bob", b"2")]

    def lines(protocol: str) -> list[str]:
        group = ("--group", topic, "--command-property", f"group.protocol={protocol}")
        shown = ("--formatter-property", "print.key=true", "--formatter-property", "print.offset=true")
        words = ("--topic", topic, "--from-beginning", "--max-messages", 3, *shown, *group)
        return sorted(run_tool(server.address, "kafka-console-consumer", *words).splitlines())

    expected = ["Offset:0\tann\t1", "Offset:0\tbob\t2", "Offset:1\tann\t3"]
    assert lines("classic") == expected
    assert sum(each.offset for each in TopicGroups(server.root).group(topic).positions()) == 3
    reset = ("--group", topic, "--topic", topic, "--reset-offsets", "--to-earliest", "--execute")
    assert topic in run_tool(server.address, "kafka-consumer-groups", *reset)
    assert sum(each.offset for each in TopicGroups(server.root).group(topic).positions()) == 0
    assert lines("consumer") == expected


@pytest.mark.slow
def test_groups_are_listed_and_described(server: RunningServer, topic: str) -> None:
    run_tool(server.address, "kafka-console-producer", "--topic", topic, given="1\n2\n3\n")
    read = ("--topic", topic, "--from-beginning", "--group", topic, "--max-messages", 3)
    run_tool(server.address, "kafka-console-consumer", *read)
    assert topic in run_tool(server.address, "kafka-consumer-groups", "--list").split()
    assert re.search(rf"^{topic} +Classic +consumer *$", run_tool(server.address, "kafka-groups", "--list"), re.MULTILINE)
    described = run_tool(server.address, "kafka-consumer-groups", "--describe", "--group", topic)
    rows = [line.split() for line in described.splitlines() if line.startswith(topic)]
    ends = sparklog.Log(server.root).topic(topic).end_offsets()
    assert {int(row[2]): (int(row[3]), int(row[4]), int(row[5])) for row in rows} == {number: (end, end, 0) for number, end in ends.items()}
    states = run_tool(server.address, "kafka-consumer-groups", "--describe", "--state", "--group", topic)
    assert server.address in states
    assert " Empty " in states


@pytest.mark.slow
def test_a_topic_is_created_described_changed_and_deleted(server: RunningServer, topic: str) -> None:
    made = ("--topic", topic, "--partitions", 3, "--replication-factor", 1, "--config", "retention.ms=86400000")
    run_tool(server.address, "kafka-topics", "--create", *made)
    again = run_tool_to_its_end(server.address, "kafka-topics", "--create", *made)
    assert again.returncode != 0
    assert "TopicExistsException" in again.stdout + again.stderr
    described = run_tool(server.address, "kafka-topics", "--describe", "--topic", topic)
    assert re.search(r"TopicId: [\w-]{22}\b", described)
    assert "PartitionCount: 3" in described
    assert described.count("Partition: ") == 3
    entity = ("--entity-type", "topics", "--entity-name", topic)
    run_tool(server.address, "kafka-configs", *entity, "--alter", "--add-config", "retention.ms=5000,cleanup.policy=compact")
    assert "retention.ms=5000 " in run_tool(server.address, "kafka-configs", *entity, "--describe")
    run_tool(server.address, "kafka-configs", *entity, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms=-1 " in run_tool(server.address, "kafka-configs", *entity, "--describe", "--all")
    grown = run_tool_to_its_end(server.address, "kafka-topics", "--alter", "--topic", topic, "--partitions", 5)
    assert grown.returncode != 0
    assert "CALL partlog.rebuild" in grown.stdout + grown.stderr
    run_tool(server.address, "kafka-topics", "--delete", "--topic", topic)
    assert topic not in run_tool(server.address, "kafka-topics", "--list").split()
    assert topic not in sparklog.Log(server.root)


def events(said: str, name: str) -> list[dict[str, object]]:
    """The lines of a kind that one of Kafka's verifiable programs prints."""
    return [each for each in map(json.loads, filter(lambda line: line.startswith("{"), said.splitlines())) if each["name"] == name]


@pytest.mark.slow
def test_what_a_verifiable_producer_sends_a_verifiable_consumer_gets(server: RunningServer, topic: str, tmp_path: Path) -> None:
    sent = run_tool(server.address, "kafka-verifiable-producer", "--topic", topic, "--max-messages", RECORDS, "--throughput", -1)
    places = {(each["partition"], each["offset"]): each["value"] for each in events(sent, "producer_send_success")}
    assert [each["acked"] for each in events(sent, "tool_data")] == [RECORDS]
    assert {(each.partition, each.offset): (each.value or b"").decode() for each in of_log(server.root, topic)} == places
    read = ("--topic", topic, "--group-id", topic, "--max-messages", RECORDS, "--reset-policy", "earliest", "--verbose")
    got = run_tool(server.address, "kafka-verifiable-consumer", *read)
    assert sorted(str(each["value"]) for each in events(got, "record_data")) == sorted(map(str, places.values()))
    assert len(events(got, "offsets_committed")) >= 1

    [(partition, last)] = [(number, end) for number, end in sparklog.Log(server.root).topic(topic).end_offsets().items() if end]
    order = tmp_path / "records.json"
    order.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": partition, "offset": last - 5}]}))
    assert f"low_watermark: {last - 5}" in run_tool(server.address, "kafka-delete-records", "--offset-json-file", order)

    def offsets(time: str) -> dict[int, int]:
        lines = run_tool(server.address, "kafka-get-offsets", "--topic", topic, "--time", time).split()
        return {int(number): int(offset) for _, number, offset in (line.split(":") for line in lines)}

    assert offsets("earliest")[partition] == last - 5
    assert offsets("latest") == sparklog.Log(server.root).topic(topic).end_offsets()
    assert len(of_log(server.root, topic)) == 5


@pytest.mark.slow
def test_the_programs_that_measure_a_broker_measure_a_server(server: RunningServer, topic: str) -> None:
    load = ("--topic", topic, "--num-records", 5_000, "--record-size", 100, "--throughput", -1)
    assert "5000 records sent" in run_tool(server.address, "kafka-producer-perf-test", *load)
    assert len(of_log(server.root, topic)) == 5_000
    line = run_tool(server.address, "kafka-consumer-perf-test", "--topic", topic, "--num-records", 5_000).splitlines()[-1]
    assert line.split(", ")[4] == "5000"
    directories = json.loads(run_tool(server.address, "kafka-log-dirs", "--describe", "--topic-list", topic).splitlines()[-1])
    [folder] = directories["brokers"][0]["logDirs"]
    assert folder["logDir"] == str(server.root)
    assert {each["partition"] for each in folder["partitions"]} == {f"{topic}-{number}" for number in range(8)}
    assert sum(each["size"] for each in folder["partitions"]) > 5_000 * 100


@pytest.mark.slow
def test_transactions_are_refused_at_once(server: RunningServer, topic: str) -> None:
    """Both tools say so, in place of a repetition until their time ends."""
    asked = run_tool_to_its_end(server.address, "kafka-transactions", "list")
    assert asked.returncode != 0
    assert "LIST_TRANSACTIONS" in asked.stdout + asked.stderr
    load = ("--topic", topic, "--num-records", 10, "--record-size", 10, "--throughput", -1, "--transactional-id", "t")
    sent = run_tool_to_its_end(server.address, "kafka-producer-perf-test", *load)
    assert sent.returncode != 0
    assert "TransactionalIdAuthorizationException" in sent.stdout + sent.stderr
