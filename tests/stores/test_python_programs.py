"""The programs that read roots, on a real S3 server: the command line, the page, consumers, and offset tables beside a root."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from handmade import records
from owners import Own
from pyarrow import fs
from stores.buckets import copied, environment

from sparklog import Consumer, SparklogError
from sparklog.groups import OffsetTable
from sparklog.ondisk.root import Root

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_command_line(s3, topic):
    url = copied(s3, topic.root)

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "sparklog", *words]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY, env={**os.environ, **environment(s3)})
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    assert [each["topic"] for each in json.loads(run("topics", url, "--json"))] == ["t"]
    assert len(run("cat", url.replace("s3a", "s3"), "t").splitlines()) == 40
    assert json.loads(run("describe", url, "t", "--json"))["root"] == url
    table = f"{url}-offsets"
    Own(OffsetTable(url, table, filesystem=s3.filesystem()), "g", {"t": {0: 3}})
    assert "moved" in run("reset", url, "g", "--table", table, "--to-latest", "--topic", "t", "--execute", "--force")
    assert [each["group"] for each in json.loads(run("groups", url, "--table", table, "--json"))] == ["g"]
    metrics = run("metrics", url, "--table", table)
    assert 'partlog_partition_end_offset{partition="0",topic="t"}' in metrics and 'partlog_topic_unused_bytes{topic="t"} 0.0' in metrics
    assert 'partlog_group_partition_lag{group="g",home="table",partition="0",topic="t"} 0.0' in metrics
    refused = subprocess.run(
        [sys.executable, "-m", "sparklog", "topics", f"s3a://{s3.bucket}/nothing"],
        **{"capture_output": True, "text": True, "check": False, "cwd": REPOSITORY, "env": {**os.environ, **environment(s3)}},
    )
    assert (refused.returncode != 0, "PARTLOG_ROOT_NOT_FOUND" in refused.stderr) == (True, True)


def test_the_page(s3, topic):
    from starlette.testclient import TestClient

    from sparklog.ui.server import application

    url = copied(s3, topic.root)
    with TestClient(application(url, filesystem=s3.filesystem()), base_url="http://127.0.0.1") as client:
        assert client.get("/api/about").json()["root"] == url
        assert client.get("/api/topics/t").status_code == 200


def test_a_consumer_follows_and_keeps_its_group_on_the_same_store(s3, topic, fault_proxy):
    proxy = fault_proxy(s3.endpoint)
    url, files = copied(s3, topic.root), s3.filesystem(proxy.endpoint)
    # Not through the proxy, which is in this process: a query of deltalake lets no other thread run.
    options = Root.at(url, s3.filesystem()).store.storage_options(f"{url}-offsets")
    of = OffsetTable(url, f"{url}-offsets", filesystem=files, storage_options=options)
    with Consumer(url, "t", group_id="g", table=of, filesystem=files, auto_offset_reset="earliest", consumer_timeout_ms=3000) as consumer:
        assert len([next(consumer) for _ in range(40)]) == 40
        consumer.commit()
        topic.append(records(3, "later"))
        fs.copy_files(str(topic.root), url.removeprefix("s3a://"), destination_filesystem=files)
        assert len(list(consumer)) == 3
        proxy.clear()
        assert consumer.poll(1000) == {}
        assert proxy.count(".json$")["HEAD"] <= 13, "a look each 100 ms costs a request, and one more each second"
    assert sum(each.offset for each in of.positions("g")) == 43
    assert of.summaries("g")[0].lag == 0


def test_a_table_is_beside_the_root_and_not_in_it(s3, topic):
    url, files = copied(s3, topic.root), s3.filesystem()
    for table in (f"{url}/offsets", url, url.replace("s3a", "s3"), f"s3a://{s3.bucket}"):
        with pytest.raises(SparklogError, match="PARTLOG_TABLE_IN_ROOT"):
            OffsetTable(url, table, filesystem=files)


_OWNER = """
import sys
import sparklog
from sparklog.errors import SparklogError
from sparklog.groups import OffsetTable
table = OffsetTable(sys.argv[2], sys.argv[1])
table.exists()
print("ready", flush=True)
sys.stdin.readline()
won = []
for number in range(int(sys.argv[3])):
    try:
        won.append(table.generations.claim("g", "begin", lambda _: [], after=number))
    except SparklogError as error:
        assert error.id == "GENERATION_FENCED", error
print(*won)
"""


def test_two_processes_race_for_each_generation_of_a_group(s3, topic):
    url, rounds = copied(s3, topic.root), 8
    env = {**os.environ, **environment(s3)}
    command = [sys.executable, "-c", _OWNER, f"{url}-offsets", url, str(rounds)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racing = [subprocess.Popen(command, **pipes, cwd=REPOSITORY, env=env) for _ in range(2)]
    assert [process.stdout.readline() for process in racing] == ["ready\n"] * 2
    for process in racing:
        process.stdin.write("\n")
        process.stdin.flush()
    won = [list(map(int, process.communicate(timeout=300)[0].split())) for process in racing]
    assert [process.returncode for process in racing] == [0, 0]
    assert sorted(won[0] + won[1]) == list(range(1, rounds + 1)), "each generation has one owner"
    assert len(OffsetTable(url, f"{url}-offsets", filesystem=s3.filesystem()).lake.rows("g", current=False)) == rounds
