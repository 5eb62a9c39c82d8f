"""Clients of other languages: kcat by librdkafka, and franz-go and sarama, which are written in Go."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from serve.clients import Read, of_log
from serve.serving import RunningServer

import sparklog
from sparklog.groups import TopicGroups

WAIT_S = 600
GO_CLIENTS = Path(__file__).parents[2] / ".tools" / "go-clients" / "go-clients"
RECORDS = 200
FORMAT = r"%p %o %T %k %s\n"


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (Debian: apt-get install kcat)")
def test_kcat_writes_and_reads_a_topic(server: RunningServer) -> None:
    def kcat(*words: str, given: str = "") -> str:
        command = ["kcat", "-q", "-b", server.address, *words]
        return subprocess.run(command, input=given, capture_output=True, encoding="utf-8", timeout=WAIT_S, check=True).stdout

    lines = [f"key-{number % 7}:{number}" for number in range(RECORDS)]
    keyed = ("-K:", "-X", "partitioner=murmur2_random", "-X", "enable.idempotence=true", "-z", "snappy")
    kcat("-P", "-t", "by-kcat", *keyed, given="\n".join(lines))
    expected = of_log(server.root, "by-kcat")
    assert sorted(int(each.value or b"") for each in expected) == list(range(RECORDS))
    for each in expected:
        assert sparklog.partition_for(each.key or b"", 8, "murmur2") == each.partition
    found = [line.split(" ") for line in kcat("-C", "-t", "by-kcat", "-e", "-f", FORMAT).splitlines()]
    read = [Read(int(line[0]), int(line[1]), int(line[2]), line[3].encode(), line[4].encode()) for line in found]
    assert sorted(read) == sorted(expected)
    listed = json.loads(kcat("-L", "-J", "-t", "by-kcat"))
    assert [broker["name"] for broker in listed["brokers"]] == [server.address]
    assert len(listed["topics"][0]["partitions"]) == 8


if GO_CLIENTS.exists():  # `make test-slow` builds the program where Go 1.26 or later is

    @pytest.mark.slow
    @pytest.mark.parametrize("client", ["franz-go", "sarama"])
    def test_a_program_in_go_writes_and_reads_a_topic(server: RunningServer, client: str) -> None:
        topic, group = f"by-{client}", f"readers-of-{client}"
        command = [GO_CLIENTS, client, server.address, topic, group, str(RECORDS)]
        ran = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=WAIT_S, check=False)
        assert ran.returncode == 0, ran.stderr
        lines = map(json.loads, ran.stdout.splitlines())
        read = [Read(one["partition"], one["offset"], one["timestamp"], one["key"].encode(), one["value"].encode()) for one in lines]
        assert sorted(read) == sorted(of_log(server.root, topic))
        assert sorted(int(each.value or b"") for each in read) == list(range(RECORDS))
        if client == "franz-go":  # sarama takes another hash by default
            for each in read:
                assert sparklog.partition_for(each.key or b"", 8, "murmur2") == each.partition
        ends = {number: end for number, end in sparklog.Log(server.root).topic(topic).end_offsets().items() if end}
        assert {each.partition: each.offset for each in TopicGroups(server.root).group(group).positions()} == ends
