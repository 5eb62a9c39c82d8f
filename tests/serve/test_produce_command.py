"""`sparklog produce` writes through a server."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from broken_bindings import Bound
from handmade import Record, Topic
from serve.serving import RunningServer

import sparklog
from sparklog.arguments import named_root
from sparklog.cli import lines, served

WAIT_S = 600


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "sparklog", "produce", *map(str, words)]


def test_keys_are_where_spark_would_put_them(tmp_path: Path) -> None:
    text = "".join(f"customer-{number % 7}:{number}\n" for number in range(1_000))
    words = (tmp_path / "log", "orders", "-K", ":", "-X", "partitions=3", "-X", "retention.ms=86400000", "-X", "compression.type=zstd")
    ran = subprocess.run(command(*words), input=text, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("1,000 records to orders\n"), ran.stdout
    topic = sparklog.Topic(tmp_path / "log", "orders")
    about = topic.describe()
    wanted = {"partitioner": "murmur3", "kafka.view": "merged", "retention.ms": "86400000", "compression.type": "zstd"}
    assert about["config"] == {**about["config"], **wanted}
    rows = topic.read().to_pylist()
    assert {row["partition"] for row in rows} <= {0, 1, 2}
    assert all(row["partition"] == sparklog.partition_for(row["key"], 3) for row in rows)
    for partition in range(3):  # in the order of the lines
        numbers = [int(row["value"]) for row in rows if row["partition"] == partition]
        assert numbers == sorted(numbers)
    assert sorted(int(row["value"]) for row in rows) == list(range(1_000))


def test_a_line_is_committed_while_the_next_one_is_awaited(tmp_path: Path) -> None:
    root = tmp_path / "log"
    Topic(root, "orders").append([Record(b"0")])
    topic = sparklog.Topic(root, "orders")
    times = []
    with subprocess.Popen(command(root, "orders"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        for number in range(2, 8):
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            begun = time.monotonic()
            while topic.read().num_rows < number:
                assert process.poll() is None
                assert time.monotonic() - begun < WAIT_S
                time.sleep(0.001)
            times.append(time.monotonic() - begun)
        process.stdin.close()
        assert process.stdout is not None
        assert process.stdout.read().startswith("6 records to orders\n")
    print(f"visible after {times[0]:.1f} s, then after {', '.join(f'{each * 1000:.0f}' for each in times[1:])} ms")


def test_records_that_the_storage_refuses_end_the_command_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "_TIMEOUT_MS", 4_000)
    Topic(tmp_path / "log", "orders").append([Record(b"0")])
    topic = served.ServedTopic(named_root(tmp_path / "log"), "orders", {})
    data = tmp_path / "log" / "_partlog" / "orders" / "data"
    data.rename(data.with_name("kept"))
    data.touch()
    deadline, said = time.monotonic() + WAIT_S, ""
    while not re.search("not committed.*COMMIT_FAILED", said):  # on a busy machine the first may fail before the server answers
        assert time.monotonic() < deadline, said
        with pytest.raises(sparklog.UnknownOutcomeError, match="SEND_FAILED") as failed:
            topic.write([lines.Record(b"1")])
        said = str(failed.value)
    topic.close(0)


def test_a_server_that_runs_is_used_if_it_is_of_the_root(serve_classpath: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the server of another root at an old address, nor a server that asks for a password or may only be read."""
    root = tmp_path / "log"
    Topic(root, "orders").append([Record(b"0")])
    with RunningServer(serve_classpath, root, ("--read-only",)), RunningServer(serve_classpath, root) as server:
        until_seen(root, 2)
        with monkeypatch.context() as patch:
            patch.setenv("JAVA_HOME", "/nowhere")  # so that it starts none
            ran = subprocess.run(command(root, "orders"), input="1\n", capture_output=True, text=True, check=False)
            assert (ran.returncode, ran.stderr) == (0, "")
        heartbeats = {each.name: each.read_bytes() for each in (root / "_servers").glob("*-*.json")}
    with RunningServer(serve_classpath, tmp_path / "strange", ("--listen", server.address)):
        for name, content in heartbeats.items():
            (root / "_servers" / name).write_bytes(content)
        ran = subprocess.run(command(root, "orders"), input="2\n", capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")
    assert sparklog.Topic(root, "orders").read()["value"].to_pylist() == [b"0", b"1", b"2"]
    assert sparklog.Log(tmp_path / "strange").topics() == []


def test_keys_whose_slots_spark_places_are_refused(tmp_path: Path) -> None:
    Bound(Topic(tmp_path / "log", "slots", partitions=2)).begin({})
    topic = served.ServedTopic(named_root(tmp_path / "log"), "slots", {})
    with pytest.raises(sparklog.CallError, match=r"SEND_REFUSED.*write keys with Spark"):
        topic.write([lines.Record(b"1", b"key")])
    assert [each.offset for each in topic.write([lines.Record(b"1")])] == [0]
    topic.close()


def until_seen(root: Path, servers: int) -> None:
    until = time.monotonic() + WAIT_S
    while len(list((root / "_servers").glob("*-*.json"))) < servers:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_options_are_checked_before_a_server_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    root = named_root(tmp_path / "log")
    Topic(tmp_path / "log", "old", partitions=2, config={"retention.ms": "1000"}).append([Record(b"0")], 0)
    for name, config, told in (
        ("new", {"partitons": "4"}, "OPTION_UNKNOWN.*Did you mean `partitions`"),
        ("new", {"partitions": "0"}, "OPTION_VALUE.*partitions"),
        ("new", {"placement": "on_first_write"}, "OPTION_VALUE.*sparklog create"),
        ("old", {"partitions": "3"}, "OPTION_CONTRADICTS_TOPIC.*has 2"),
        ("old", {"compression.type": "zstd"}, "OPTION_CONTRADICTS_TOPIC"),
        ("old", {"partitions": "2", "retention.ms": "01000", "compression.type": "NONE"}, "JAVA_NEEDED"),
    ):
        with pytest.raises(sparklog.CallError, match=told):
            served.ServedTopic(root, name, config)
