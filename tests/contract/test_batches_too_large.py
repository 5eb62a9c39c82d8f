"""Batches that decompress to more than the process may hold, where a configuration allows them. FORMAT.md section 10."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from handmade import Record, Topic, batch

ZSTD = 4
READ = """
import resource, sys
from sparklog import CallError, Log
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ask, log = sys.argv[2], Log(sys.argv[1])
try:
    if ask == "verify":
        print(len(list(log.verify())))
    else:
        print(sum(part.column("value").nbytes for part in log.topic("t").scan(columns=["value"])))
except CallError as error:
    print(error.id, error.parameters["limit"], error.parameters["byte"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def zeros(count: int) -> bytes:
    """Compressed, and never whole in memory."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        for _ in range(count >> 20):
            out.write(bytes(1 << 20))
    return sink.getvalue().to_pybytes()


def read(root: Path, limit: int, ask: str = "scan") -> tuple[str, int]:
    """What a process with this limit prints, and the KiB of memory that reading took."""
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
    for ask in ("scan", "verify"):
        found, memory = read(tmp_path, 64 << 20, ask)
        assert found == f"BATCH_TOO_LARGE {64 << 20} 0"
        assert memory < 160 << 10


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
