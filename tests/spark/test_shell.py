"""Commands that change a log: the dry run of each, what it then does, and `produce`. Most use the session of the tests; some are run
by the installed command, which starts Spark itself."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from verifying import faults

import sparklog
from sparklog.__main__ import main

COMMAND = str(Path(sys.executable).parent / "sparklog")
Run = Callable[..., str]


@pytest.fixture
def run(spark: SparkSession, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Runs a command that must end with a status, and gives what it printed: on standard error too if that is not 0."""

    def command(*words: object, status: int = 0) -> str:
        capfdbinary.readouterr()
        ended = main(list(map(str, words)))
        out, err = (each.decode() for each in capfdbinary.readouterr())
        assert ended == status, out + err
        assert status or not err, err
        return out if status == 0 else out + err

    return command


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def lines(tmp_path: Path, *texts: bytes) -> Path:
    file = tmp_path / "lines"
    file.write_bytes(b"".join(text + b"\n" for text in texts))
    return file


def contents(root: Path) -> dict[str, bytes]:
    """All files below a root, byte for byte."""
    return {str(file.relative_to(root)): file.read_bytes() for file in sorted(root.rglob("*")) if file.is_file()}


def wait_for(process: "subprocess.Popen[bytes]", root: Path, records: int) -> None:
    """Waits until topic `t` has this number of records."""
    ends = time.monotonic() + 120
    while True:
        with contextlib.suppress(sparklog.CallError):  # there is no root, or no topic
            if len(read(root, "t")) >= records:
                return
        assert time.monotonic() < ends and process.poll() is None
        time.sleep(0.1)


def read(root: Path, topic: str) -> list[tuple[Any, ...]]:
    """All that a producer gives of each record, by partition and offset."""
    found = sparklog.Log(root).topic(topic).read()
    times = found["timestamp"].cast(pa.int64()).to_pylist()
    columns = [found[name].to_pylist() for name in ("partition", "offset", "key", "value", "headers")]
    return list(zip(*columns, times, strict=True))


@pytest.mark.slow
def test_upkeep(run: Run, root: Path, tmp_path: Path) -> None:
    def would(*words: object) -> list[dict[str, Any]]:
        """The rows of a dry run, which leaves the root byte for byte, and those of the same with --execute, which are equal."""
        before = contents(root)
        said = json.loads(run(*words, "--json"))
        assert said["executed"] is False and contents(root) == before
        assert "dry run" in run(*words) and "--execute" in run(*words) and contents(root) == before
        done = json.loads(run(*words, "--execute", "--json"))
        assert done["executed"] is True and contents(root) != before
        assert done["rows"] == said["rows"]
        return list(done["rows"])

    for number in range(3):
        file = lines(tmp_path, *(b"%d-%d" % (number, each) for each in range(10)))
        said = run("produce", root, "t", file, "-p", number % 2, "-X", "partitions=2", "-X", "file.delete.delay.ms=0")
    assert said.splitlines()[0] == "10 records to t"
    assert said.splitlines()[-1].split() == ["0", "10", "19", "10"]
    log = sparklog.Log(root)
    assert json.loads(run("merge", root, "--dry-run", "--json"))["executed"] is False
    (merged,) = json.loads(run("merge", root, "t", "--rebatch", "--batch-size", "1m", "--json"))["rows"]
    assert (merged["batches_after"], merged["segments_after"]) == (2, 2)
    assert json.loads(run("config", root, "t", "--add", "retention.ms=7d,compression.type=zstd", "--json")) == [
        {"topic": "t", "key": "compression.type", "before": "none", "after": "zstd"},
        {"topic": "t", "key": "retention.ms", "before": "-1", "after": "604800000"},
    ]
    run("retention", root, "t", "--ms", -1, "--bytes", "10g")
    assert [each["value"] for each in json.loads(run("retention", root, "t", "--json"))] == ["-1", str(10 << 30)]
    added = json.loads(run("add-partitions", root, "t", "--partitions", 3, "--json"))
    assert added["executed"] is True and {each["partitions_after"] for each in added["rows"]} == {3}
    rows = would("delete-records", root, "t", "--offsets", "0:4,1:-1", "--keep", "1:7")
    assert [(each["start_after"], each["kept"]) for each in rows] == [(4, None), (7, 7)]
    assert log.topic("t").start_offsets() == {0: 4, 1: 7, 2: 0}
    run("produce", root, "t", lines(tmp_path, b"new"), "-p", 0)
    time.sleep(0.01)
    assert sum(each["records_deleted"] for each in would("expire", root, "t", "--retention-ms", "1ms")) >= 16
    dead = root / "_partlog" / "t" / "data" / f"{1:020}-{'B' * 21}A"  # what a writer left that died before its commit
    dead.mkdir()
    (dead / "pool.log").write_bytes(b"x" * 100)
    for path in (dead / "pool.log", dead):
        os.utime(path, (time.time() - 7_300, time.time() - 7_300))
    assert [each["files"] for each in json.loads(run("vacuum", root, "--json"))["rows"]] == [0]
    assert [(each["files"], each["bytes"]) for each in would("vacuum", root, "--older-than", "1h")] == [(1, 100)]
    assert not dead.exists()
    (view,) = json.loads(run("publish", root, "--json"))
    assert view["topic"] == "t"
    assert faults(root, unfinished=True) == []
    (gone,) = would("delete-topic", root, "t")
    assert gone["topic"] == "t" and log.topics() == []
    told = run("delete-topic", root, "u", status=2)
    assert "PARTLOG_TOPIC_NOT_FOUND" in told


def test_create(run: Run, root: Path) -> None:
    """A root whose path has signs that SQL gives a meaning, and options that have them."""
    root = root / "it's `a` \\root"
    said = json.loads(run("create", root, "t.x", "--partitions", 3, "-X", "retention.ms=7d", "-X", "key.type=string", "--json"))
    assert said == {"topic": "t.x", "created": True, "partitions": 3}
    topic = sparklog.Log(root)["t.x"]
    assert {key: topic.config[key] for key in ("partitions", "retention.ms", "key.type")} == {
        "partitions": "3",
        "retention.ms": str(7 * 86_400_000),
        "key.type": "string",
    }
    assert (topic.end_offsets(), len(topic.commits())) == ({0: 0, 1: 0, 2: 0}, 1)
    assert sparklog.Consumer(root, "t.x").poll() == {}
    assert run("create", root, "u") == "Topic u with 8 partitions was created\n"
    before = contents(root)
    assert run("create", root, "u", "-X", "partitions=9", "--if-not-exists") == "Topic u with 8 partitions exists already\n"
    for words, condition in (
        (["u"], "TOPIC_EXISTS"),
        (["v", "-X", "partitons=4"], "OPTION_UNKNOWN"),
        (["v", "-X", "partitions=0"], "OPTION_VALUE"),
        (["v", "-X", "it's\\=1"], "OPTION_UNKNOWN"),
        (["v", "-X", "compression.type=o'x"], "OPTION_VALUE"),
    ):
        assert f"PARTLOG_{condition}" in run("create", root, *words, status=2)
    assert contents(root) == before
    assert faults(root) == []


def test_a_topic_that_another_creates_first_is_told_of(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("create", root, "t")
    monkeypatch.setattr("sparklog.cli.upkeep._exists", lambda *_: False)
    assert "[PARTLOG_TOPIC_EXISTS]" in run("create", root, "t", status=2)
    assert json.loads(run("create", root, "t", "--if-not-exists", "--json"))["created"] is False


def test_an_input_without_lines_makes_a_topic_as_one_with_lines(run: Run, root: Path, tmp_path: Path) -> None:
    empty = lines(tmp_path)
    for words in (["-X", "partitons=4"], ["-X", "partitions=0"]):
        assert "PARTLOG_OPTION_" in run("produce", root, "t", empty, *words, status=2)
    assert run("produce", root, "t", empty, "-X", "partitions=4") == "0 records to t\n"
    topic = sparklog.Log(root)["t"]
    assert (topic.partitions, topic.end_offsets()) == (4, dict.fromkeys(range(4), 0))
    assert run("produce", root, "t", empty, "-X", "partitions=4") == "0 records to t\n"
    assert "PARTLOG_OPTION_CONTRADICTS_TOPIC" in run("produce", root, "t", empty, "-X", "partitions=3", status=2)
    assert len(topic.commits()) == 1


def test_what_the_connector_refuses(run: Run, root: Path, tmp_path: Path) -> None:
    run("produce", root, "t", lines(tmp_path, b"a"), "-X", "partitions=2")
    before = contents(root)
    for words, condition in (
        (["config", root, "t", "--add", "retention.mss=1"], "OPTION_UNKNOWN"),
        (["config", root, "t", "--add", "compression.type=rar"], "OPTION_VALUE"),
        (["add-partitions", root, "t", "--partitions", "1"], "OPTION_VALUE] Option `--partitions"),
        (["delete-records", root, "t", "--offsets", "7:1"], "PARTITION_NOT_FOUND"),
        (["delete-records", root, "t", "--offsets", '{"x":1}'], "OPTION_VALUE] Option `--offsets"),
        (["export", root, "t", "--to", ""], "OPTION_VALUE] Option `--to"),
        (["produce", root, "t", tmp_path / "lines", "-X", "partitions=3"], "OPTION_CONTRADICTS_TOPIC"),
        (["produce", root, "t", tmp_path / "lines", "-p", "9"], "PARTITION_OUT_OF_RANGE"),
    ):
        told = run(*words, status=2)
        assert f"[PARTLOG_{condition}" in told and "Traceback" not in told and "JVM stacktrace" not in told and "=>" not in told, told
        assert words[0] != "produce" or f"Lines 1 to 1 of {tmp_path}/lines are not committed." in told
    assert contents(root) == before


def test_cat_into_produce_copies(run: Run, root: Path, spark: SparkSession, tmp_path: Path) -> None:
    """Keys, values, nulls, bytes that are not text, headers, partitions, times and their order."""
    spark.sql("""
        SELECT * FROM VALUES
          (X'ff00', X'80', 0, timestamp_millis(1),
           array(named_struct('key', 'a', 'value', X'ff'), named_struct('key', 'a', 'value', NULL))),
          (NULL, NULL, 2, timestamp_millis(1700000000002), NULL),
          (X'', X'', 2, timestamp_millis(1700000000001), array(named_struct('key', '', 'value', X''))),
          (CAST('schlüssel' AS BINARY), CAST('{"a":"\\\\n"}' AS BINARY), 1, timestamp_millis(5), NULL)
        AS t(key, value, partition, timestamp, headers)""").coalesce(1).write.format("partlog").options(topic="t", partitions=3).mode(
        "append"
    ).save(str(root))
    many = [b'{"value":"%d","partition":%d,"timestamp":%d}' % (number, number % 3, 10_000 - number) for number in range(500)]
    run("produce", root, "t", lines(tmp_path, *many), "--json")
    (tmp_path / "printed").write_text(run("cat", root, "t", "--json"), encoding="ascii")
    said = run("produce", root, "copy", tmp_path / "printed", "--json", "-X", "partitions=3")
    assert "504 records to copy\n" in said
    assert read(root, "copy") == read(root, "t")
    assert [row[4] for row in read(root, "copy")[:1]] == [[{"key": "a", "value": b"\xff"}, {"key": "a", "value": None}]]
    assert faults(root, unfinished=True) == []


@pytest.mark.parametrize("when", ["now", pytest.param("next_write", marks=pytest.mark.slow)])
def test_keys_go_to_their_slots(run: Run, root: Path, tmp_path: Path, when: str) -> None:
    """The server takes a key in the partition of its slot, also if a re-route waits for the first of these lines."""
    keyed = lines(tmp_path, *(b"k%d:%d" % (number % 50, number) for number in range(200)))
    run("produce", root, "t", keyed, "-K", ":", "-X", "partitions=2")
    run("add-partitions", root, "t", "--partitions", 5, "--when", when)
    assert run("produce", root, "t", keyed, "-K", ":").startswith("200 records to t\n")
    topic = sparklog.Log(root)["t"]
    placed = {each["key"]: each["partition"] for each in topic.read().to_pylist()}  # a later record of a key is in the later partition
    assert topic.partitions == 5 and max(placed.values()) > 1
    assert all(topic.partition_for(key) == partition for key, partition in placed.items() if partition > 1)
    for key in placed:
        numbers = [int(each["value"]) for each in topic.read(key=key, partition=topic.partition_for(key)).to_pylist()]
        assert numbers[-4:] == sorted(numbers[-4:]) and len(numbers) >= 4
    assert faults(root, unfinished=True) == []


def test_a_line_that_is_wrong_ends_it_and_those_before_are_committed(run: Run, root: Path, tmp_path: Path) -> None:
    file = lines(tmp_path, *[b'{"value":"%d"}' % number for number in range(7)], b'{"value":7}', b'{"value":"8"}')
    told = run("produce", root, "t", file, "--json", "-X", "partitions=1", status=2)
    assert f"Line 8 of {file} is not a record for topic t under {root}: 'value' must be text or null" in told
    assert "The lines before it are committed: 7 records." in told
    assert [row[3] for row in read(root, "t")] == [b"%d" % number for number in range(7)]


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., "subprocess.Popen[bytes]"]:
    """Starts the installed command in an empty folder."""
    folder = tmp_path / "empty"
    folder.mkdir()

    def command(*words: object) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [COMMAND, *map(str, words)], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    return command


@pytest.mark.slow
def test_the_command_itself(start: Callable[..., "subprocess.Popen[bytes]"], root: Path, tmp_path: Path) -> None:
    """It prints nothing but its answer, and leaves no file where it runs."""
    with start("produce", root, "t", "-K", r"\t", "-Z", "-X", "partitions=1") as process:
        out, err = process.communicate(b"k\tv\n\xff\t\nno key\r\n\tlast", timeout=120)
    assert (process.returncode, err) == (0, b""), err
    assert out.splitlines()[0] == b"4 records to t"
    assert [row[2:4] for row in read(root, "t")] == [(b"k", b"v"), (b"\xff", None), (None, b"no key\r"), (None, b"last")]
    before = contents(root)
    with start("delete-topic", root, "t") as process:
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, b""), err
    assert b"add --execute" in out and contents(root) == before
    assert list((tmp_path / "empty").iterdir()) == []


def test_an_interrupt_commits_what_was_read(start: Callable[..., "subprocess.Popen[bytes]"], root: Path) -> None:
    with start("produce", root, "t", "-X", "partitions=1") as process:
        assert process.stdin is not None
        process.stdin.write(b"1\n2\n3\n")
        process.stdin.flush()
        wait_for(process, root, 3)
        process.stdin.write(b"4\n5\nhalf a li")
        process.stdin.flush()
        while int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)), sys.byteorder):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (130, b"")
    assert out.splitlines()[0] == b"5 records to t"
    assert [row[3] for row in read(root, "t")] == [b"1", b"2", b"3", b"4", b"5"]


def test_without_java(start: Callable[..., "subprocess.Popen[bytes]"], root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with start("produce", root, "t") as process:
        out, err = process.communicate(b"a\n", timeout=120)
    assert process.returncode == 2 and not root.exists()
    assert b"Lines 1 to 1 of standard input are not committed.\n[PARTLOG_JAVA_NEEDED]" in err
    assert out == b"0 records to t\n"
