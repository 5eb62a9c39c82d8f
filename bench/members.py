"""Members of a group: what an idle one does to the disk, how long a commit of one takes beside others, and how large the table becomes."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sparklog
from bench.harness import Bench
from sparklog.offsets import OffsetTable
from sparklog.offsets.rows import table_of

MEMBERS = (1, 10, 50)
PARTITIONS = 200
SECONDS = 30.0
COMMITS = 100_000
_IDLE = """
import sys, time
from sparklog import Consumer
consumer = Consumer(sys.argv[1], "t", group="idle", table=sys.argv[2], assignor="sticky")
consumer.poll(1_000)
print("begins", flush=True)
until = time.monotonic() + float(sys.argv[3])
while time.monotonic() < until:
    consumer.poll(1_000)
"""


def run(bench: Bench) -> None:
    root = bench.path("members-log")
    rows = bench.data().limit(PARTITIONS * 100)
    rows.write.format("partlog").option("topic", "t").option("partitions", PARTITIONS).mode("overwrite").save(root)
    for case, figures in measured(Path(root)).items():
        bench.note(f"members: {case}", **figures)
    bench.remove("members-log")


def measured(root: Path, seconds: float = SECONDS, commits: int = COMMITS) -> dict[str, dict[str, float]]:
    """The figures by case, of a topic `t` that has records in each of its partitions."""
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, dict[str, float]] = {}
        if shutil.which("strace"):
            found["system calls on files of one that is idle, a minute"] = idle(root, Path(folder), 60)
        found["a poll that finds nothing"] = empty_polls(root, Path(folder))
        for count in MEMBERS:
            found[f"a commit of one of {count}, each once a second"] = latencies(root, Path(folder), count, seconds)
        found[f"a table of {commits:,} commits"] = grown(root, Path(folder), commits)
        return found


def idle(root: Path, folder: Path, seconds: float) -> dict[str, float]:
    """The calls by name, of a minute, in which its own looks at the log count too."""
    trace = folder / "trace"
    command = ["strace", "-f", "-qq", "-e", "trace=%file,getdents64,fsync", "-o", str(trace)]
    script = [sys.executable, "-c", _IDLE, str(root), str(folder / "idle"), str(seconds)]
    with subprocess.Popen([*command, *script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "begins\n"
        before = trace.stat().st_size
        assert process.wait() == 0
    with trace.open("rb") as file:
        file.seek(before)
        calls = Counter(found[1].decode() for line in file if (found := re.match(rb"\d+ +(\w+)\(", line)))
    return {name: count for name, count in calls.most_common() if count > seconds / 30}


@contextmanager
def members(root: Path, table: Path, count: int) -> Iterator[list[sparklog.Consumer]]:
    """So many members that share the topic, each polled by a thread of its own until it has its part."""
    given = {"group": "g", "table": table, "assignor": "sticky", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    made = [sparklog.Consumer(root, "t", **given) for _ in range(count)]  # type: ignore[arg-type] # the types differ by argument
    least = PARTITIONS // count
    try:
        while any(len(each.assignment()) not in (least, least + 1) for each in made):
            for each in made:
                each.poll(0)
        yield made
    finally:
        for each in made:
            each.close(autocommit=False)


def empty_polls(root: Path, folder: Path) -> dict[str, float]:
    with members(root, folder / "polls", 1) as (one,):
        one.seek_to_end()
        one.commit()
        took = []
        for _ in range(2_000):
            began = time.perf_counter()
            one.poll(0)
            took.append(1e6 * (time.perf_counter() - began))
    return _told(took, "µs")


def latencies(root: Path, folder: Path, count: int, seconds: float) -> dict[str, float]:
    """Each member commits a new position once a second."""
    took: list[float] = []

    def commits(one: sparklog.Consumer) -> None:
        partition, until, offset = min(one.assignment()), time.monotonic() + seconds, 0
        while (now := time.monotonic()) < until:
            offset = offset % 100 + 1
            if offset == 1:
                one.poll(0)
            began = time.perf_counter()
            one.commit({partition: offset})
            took.append(1e3 * (time.perf_counter() - began))
            time.sleep(max(0.0, now + 1 - time.monotonic()))

    with members(root, folder / f"commits-{count}", count) as made:
        threads = [threading.Thread(target=commits, args=(each,)) for each in made]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    return {**_told(took, "ms"), "commits a second": round(len(took) / seconds, 1)}


def grown(root: Path, folder: Path, commits: int) -> dict[str, float]:
    """A table with the rows of so many commits, of which the last thousand were made one by one, and the others in bulk."""
    import deltalake

    table = OffsetTable(folder / "grown", root)
    generation = table.begin("g")
    state = table.topics.state("t")
    (first,) = table.topics.placed("g", {"t": {0: 0}})
    single = min(1_000, commits // 2)
    for bulk in range(100):
        numbers = range(2 + bulk * (commits - single) // 100, 2 + (bulk + 1) * (commits - single) // 100)
        rows = [vars(first) | {"generation": generation, "seq": number, "partition": number % 200} for number in numbers]
        deltalake.write_deltalake(table.path, table_of(type(first)(**row) for row in rows), mode="append")
    for number in range(single):
        table.append("g", generation, {"t": {number % 200: min(number // 200 + 1, state.ends[number % 200])}})
    before = _bytes(table.path)
    began = time.perf_counter()
    table.maintain()
    upkeep = time.perf_counter() - began
    began = time.perf_counter()
    assert len(OffsetTable(table.path).positions("g")) == PARTITIONS
    look = time.perf_counter() - began
    rows_bytes = sum(Path(path.removeprefix("file://")).stat().st_size for path in deltalake.DeltaTable(table.path).file_uris())
    return {
        "rows": deltalake.DeltaTable(table.path).count(),
        "bytes of rows after maintenance": rows_bytes,
        "bytes on disk before it": before,
        "maintenance, s": round(upkeep, 2),
        "positions of a group, s": round(look, 3),
    }


def _bytes(folder: str) -> int:
    return sum(each.stat().st_size for each in Path(folder).rglob("*") if each.is_file())


def _told(took: list[float], unit: str) -> dict[str, float]:
    ordered = sorted(took)
    return {f"median, {unit}": round(statistics.median(ordered), 1), f"p99, {unit}": round(ordered[int(0.99 * (len(ordered) - 1))], 1)}
