"""Batches that decompress to more than the process may hold, where a configuration allows them. FORMAT.md section 10."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from handmade import TIME, Record, Topic, batch
from logtool import LogTool

pytestmark = pytest.mark.slow

CODECS = {"gzip": 1, "zstd": 4}
ZSTD = CODECS["zstd"]
READ = """
import resource, sys
from sparklog import CallError, Log
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ask, log = sys.argv[2], Log(sys.argv[1])
try:
    if ask == "verify":
        print(*(f"{each.condition} {each.topic} {each.byte}" for each in log.verify().findings))
    else:
        print(sum(part.column("value").nbytes for part in log.topic("t").scan(columns=["value"])))
except CallError as error:
    print(error.id, error.parameters["limit"], error.parameters["byte"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def zeros(count: int, codec: str = "zstd") -> bytes:
    """Compressed, and never whole in memory."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as out:
        for _ in range(count >> 20):
            out.write(bytes(1 << 20))
    return sink.getvalue().to_pybytes()


def read(root: Path, limit: int, ask: str = "scan") -> tuple[str, int]:
    """The output of a process with this limit, and the KiB of memory that reading took."""
    environment = os.environ | {"SPARKLOG_MAX_BATCH_BYTES": str(limit)}
    done = subprocess.run([sys.executable, "-c", READ, root, ask], env=environment, capture_output=True, text=True, check=True)
    found, memory = done.stdout.splitlines()
    return found, int(memory)


def test_a_batch_that_takes_all_memory_is_refused(tmp_path: Path) -> None:
    """Some 32 KB make 1 GiB: the configuration, which may be forged, allows that."""
    topic = Topic(tmp_path, config={"max.message.bytes": str(1 << 30)})
    bomb = batch([Record(b"v")], payload=zeros(1 << 30), attributes=ZSTD)
    assert len(bomb) < 200_000
    topic.commit(topic.data(bomb))
    found, memory = read(tmp_path, 64 << 20)
    assert found == f"BATCH_TOO_LARGE {64 << 20} 0"
    assert memory < 160 << 10


def test_verify_goes_on_behind_a_batch_that_takes_all_memory(tmp_path: Path) -> None:
    topic = Topic(tmp_path, config={"max.message.bytes": str(1 << 30)})
    topic.commit(topic.data(batch([Record(b"v")], payload=zeros(1 << 30), attributes=ZSTD)))
    other = Topic(tmp_path, name="u")
    other.commit(other.data(batch([Record(b"v")])))
    file = other.data_file(0)
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    found, memory = read(tmp_path, 64 << 20, "verify")
    assert "BATCH_TOO_LARGE t 0" in found and "BATCH_CORRUPT u 0" in found
    assert memory < 160 << 10


@pytest.mark.parametrize("packed", [{"payload": zeros(1 << 20), "attributes": ZSTD}, {}], ids=["compressed", "plain"])
def test_a_limit_that_is_no_number_is_refused(tmp_path: Path, packed: dict[str, Any]) -> None:
    topic = Topic(tmp_path)
    topic.commit(topic.data(batch([Record(b"v")], **packed)))
    environment = os.environ | {"SPARKLOG_MAX_BATCH_BYTES": "1g"}
    done = subprocess.run([sys.executable, "-c", READ, tmp_path, "scan"], env=environment, capture_output=True, text=True, check=False)
    assert "SPARKLOG_MAX_BATCH_BYTES` has the value 1g: it must be a number of bytes" in done.stderr


def test_a_large_record_is_read_where_the_process_may_hold_it(tmp_path: Path) -> None:
    topic = Topic(tmp_path, config={"max.message.bytes": str(256 << 20)})
    value = bytes(80 << 20)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(Record(value).encoded(0, Record(b"").timestamp))
    topic.commit(topic.data(batch([Record(b"v")], payload=sink.getvalue().to_pybytes(), attributes=ZSTD)))
    found, _ = read(tmp_path, 100 << 20)
    assert int(found) >= 80 << 20
    assert read(tmp_path, 64 << 20)[0] == f"BATCH_TOO_LARGE {64 << 20} 0"


@pytest.fixture
def small(java_classpath: str, tmp_path: Path) -> LogTool:
    """A connector whose process has 256 MiB: a quarter of them is its limit, and the least limit that there is."""
    return LogTool(java_classpath, tmp_path, java=("-Xmx256m", "-Dorg.apache.logging.log4j.level=WARN"))


def refused(tool: LogTool, *words: str, **arguments: object) -> str:
    """The error that ends a command."""
    process = tool.start(*words, topic="t", **arguments)
    _, error = process.communicate(timeout=600)
    assert process.returncode == 1, error
    assert "OutOfMemory" not in error
    return error


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_takes_all_memory_is_refused_by_the_connector(tmp_path: Path, small: LogTool, codec: str) -> None:
    topic = Topic(tmp_path, config={"max.message.bytes": str(1 << 30)})
    topic.commit(topic.data(batch([Record(b"v")], payload=zeros(1 << 30, codec), attributes=CODECS[codec])))
    file = topic.data_file(0)
    for arguments in ({}, {"startingTimestamp": TIME}):
        error = refused(small, "read", **arguments)
        assert "[PARTLOG_BATCH_TOO_LARGE] Topic t, partition 0: the records of the batch at byte 0 of " + str(file) in error
        assert f"take more than {64 << 20} bytes when decompressed" in error
        assert "more memory" in error


def test_zstd_that_takes_all_memory_is_refused_where_there_is_little(java_classpath: str, tmp_path: Path) -> None:
    """A buffer of the least limit takes half of this memory, so that a second one beside it would not fit."""
    topic = Topic(tmp_path, config={"max.message.bytes": str(1 << 30)})
    topic.commit(topic.data(batch([Record(b"v")], payload=zeros(1 << 30), attributes=ZSTD)))
    smallest = LogTool(java_classpath, tmp_path, java=("-Xmx128m", "-XX:+UseSerialGC", "-Dorg.apache.logging.log4j.level=WARN"))
    assert "[PARTLOG_BATCH_TOO_LARGE]" in refused(smallest, "read")


def test_a_batch_that_is_not_compressed_is_refused_before_it_is_read(tmp_path: Path, small: LogTool) -> None:
    topic = Topic(tmp_path, config={"max.message.bytes": str(1 << 30)})
    topic.commit(topic.data(batch([Record(bytes(100 << 20))])))
    assert "PARTLOG_BATCH_TOO_LARGE" in refused(small, "read")


def test_merging_leaves_a_batch_that_takes_all_memory(tmp_path: Path, small: LogTool) -> None:
    """Only where batches are written again are they decompressed."""
    topic = Topic(tmp_path, config={"max.message.bytes": str(1 << 30)})
    for number in range(5):
        payload = zeros(1 << 30) if number == 2 else None
        topic.commit(topic.data(batch([Record(b"v%d" % number)], payload=payload, attributes=ZSTD if payload else 0)))
    *log, merged = small.run("merge", topic="t", rebatch=4 << 20)
    assert merged.startswith("merged 4 into 2 ")
    assert sum("PARTLOG_BATCH_TOO_LARGE" in line for line in log) == 1
    assert "damaged" not in "".join(log)


def test_a_large_record_is_read_by_the_connector_in_little_memory(tmp_path: Path, small: LogTool) -> None:
    """Just below the default of the limit; it is in the key, since the tool makes text of a value."""
    topic = Topic(tmp_path, config={"max.message.bytes": str(64 << 20)})
    record = Record(b"small", key=bytes((64 << 20) - 1000))
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(record.encoded(0, record.timestamp))
    topic.commit(topic.data(batch([record], payload=sink.getvalue().to_pybytes(), attributes=ZSTD)))
    assert small.read() == {0: ["small"]}
