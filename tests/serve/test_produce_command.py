"""`sparklog produce` through the server that producers share."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from handmade import Record, Topic
from serve.serving import end_shared_servers

import sparklog
from sparklog.cli import lines, served

WAIT_S = 600


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache of the test alone. The server that is left is ended."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield
    end_shared_servers(tmp_path / "cache")


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "sparklog", "produce", *map(str, words)]


@pytest.mark.usefixtures("cache")
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


@pytest.mark.usefixtures("cache")
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


@pytest.mark.usefixtures("cache")
def test_records_that_the_storage_refuses_end_the_command_with_the_answer_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kafka-python would send them again for two minutes, and say nothing."""
    monkeypatch.setattr(served, "_STORAGE_S", 1)
    Topic(tmp_path / "log", "orders").append([Record(b"0")])
    topic = served.ServedTopic(str(tmp_path / "log"), "orders", {})
    topic.write([lines.Record(b"1")])
    data = tmp_path / "log" / "_partlog" / "orders" / "data"
    data.rename(data.with_name("kept"))
    data.touch()
    with pytest.raises(sparklog.RetryError, match=r"SERVE_REFUSED.*all records: \[Error 56\] KafkaStorageError"):
        topic.write([lines.Record(b"2")])
    topic.close(0)


def test_spark_writes_where_it_alone_can(tmp_path: Path) -> None:
    root = tmp_path / "log"
    Topic(root, "plain").append([Record(b"0")])
    Topic(root, "slots", config={"placement": "on_first_write"}).append([Record(b"0")])
    assert served.opening(str(root), "plain", {})
    assert served.opening(str(root), "new", {"partitions": "3"})
    assert served.opening(str(tmp_path / "new-root"), "new", {})
    assert served.opening(str(root), "slots", {}) is None
    assert served.opening(str(root), "plain", {"partitions": "3"}) is None  # it tells whether the topic has other options
    assert served.opening(str(root), "new", {"placement": "on_first_write"}) is None
    assert served.opening(str(root), "new", {"partitions": "0"}) is None
    assert served.opening(str(root), "new", {"unknown": "x"}) is None
    assert not served.is_sendable(lines.Record(None))
    assert not served.is_sendable(lines.Record(b"x" * (1 << 20)))
    assert not served.is_sendable(lines.Record(b"x", headers=[{"key": "a", "value": None}]))
    assert served.is_sendable(lines.Record(b"x", headers=[{"key": "a", "value": b""}]))
