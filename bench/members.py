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
from sparklog.groups import OffsetTable
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.rows import table_of
from sparklog.groups.table.owner import Owner

MEMBERS = (1, 10, 50)
PARTITIONS = 200
SECONDS = 10.0
COMMITS = 100_000
SINGLE = 1_000
"""The last commits to the large table, which are made one by one."""
SINGLE_S = 20.0
POLLS = 2_000
_JOINED = """
import sys, time
from sparklog import Consumer
consumer = Consumer(sys.argv[1], "t", group_id="idle", table=sys.argv[2])
consumer.poll(1_000)
print("begins", flush=True)
"""
_IDLE = """
until = time.monotonic() + 60
while time.monotonic() < until:
    consumer.poll(1_000)
"""
_POLLS = f"""
for _ in range({POLLS}):
    consumer.poll(0)
"""


def run(bench: Bench) -> None:
    root = bench.path("members-log")
    rows = bench.data().limit(PARTITIONS * 100)
    rows.write.format("partlog").option("topic", "t").option("partitions", PARTITIONS).mode("append").save(root)
    for case, figures in measured(Path(root)):
        bench.note(f"members: {case}", **figures)
    bench.remove("members-log")


def measured(
    root: Path, seconds: float = SECONDS, commits: int = COMMITS, single_s: float = SINGLE_S
) -> Iterator[tuple[str, dict[str, float]]]:
    """The cases and their figures as they come, of a topic `t` that has records in each of its partitions."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if shutil.which("strace"):
            yield "system calls on files of one that is idle, a minute", calls(root, folder, _IDLE)
            yield f"system calls on files of {POLLS:,} polls that find nothing", calls(root, folder, _POLLS)
        yield "a poll that finds nothing", empty_polls(root, folder)
        for count in MEMBERS:
            yield f"a commit of one of {count}, each once a second", latencies(root, folder, count, seconds)
        yield f"commits one by one for {single_s:.0f} s, each of a position", one_by_one(root, folder, single_s)
        yield f"a table of {commits:,} commits, the last {SINGLE:,} one by one, the others in bulk", grown(root, folder, commits)


def calls(root: Path, folder: Path, then: str) -> dict[str, float]:
    """The calls by name of what a member does in a process of its own once it has joined. Rare ones, fewer than three, are left out."""
    trace = folder / "trace"
    command = ["strace", "-f", "-qq", "-e", "trace=%file,getdents64,fsync", "-o", str(trace)]
    script = [sys.executable, "-c", _JOINED + then, str(root), str(folder / "idle")]
    with subprocess.Popen([*command, *script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "begins\n"
        before = trace.stat().st_size
        assert process.wait() == 0
    with trace.open("rb") as file:
        file.seek(before)
        counted = Counter(found[1].decode() for line in file if (found := re.match(rb"\d+ +(\w+)\(", line)))
    return {name: count for name, count in counted.most_common() if count > 2}


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
        for _ in range(POLLS):
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


def one_by_one(root: Path, folder: Path, seconds: float) -> dict[str, float]:
    """How long commits of one owner take, in ms, made for the given seconds in a table that maintains itself."""
    table = OffsetTable(root, folder / "one-by-one")
    owner, state, until = Owner(table, "g"), table.topics.state("t"), time.monotonic() + seconds
    took: list[float] = []
    while (now := time.monotonic()) < until:
        partition = len(took) % PARTITIONS
        owner.commit([OffsetCommit("t", partition, state.topic_id, min(len(took) // PARTITIONS + 1, state.ends[partition]))])
        took.append(1e3 * (time.monotonic() - now))
    tenth = len(took) // 10
    told: dict[str, float] = {"commits": len(took), "median of the first tenth, ms": round(statistics.median(took[:tenth]), 1)}
    return {**told, "median of the last tenth, ms": round(statistics.median(took[-tenth:]), 1), **_told(took, "ms"), **_kept(table)}


def grown(root: Path, folder: Path, commits: int) -> dict[str, float]:
    """A table with the rows of the given number of commits. The last ones were made one by one; the others in a hundred large commits."""
    import deltalake

    table = OffsetTable(root, folder / "grown")
    owner, state = Owner(table, "g"), table.topics.state("t")
    (first,) = table.topics.rows("g", [OffsetCommit("t", 0, state.topic_id, 0)])
    in_bulk = max(0, commits - SINGLE)
    for bulk in range(100):
        numbers = range(2 + bulk * in_bulk // 100, 2 + (bulk + 1) * in_bulk // 100)
        rows = [vars(first) | {"generation": owner.generation, "seq": number, "partition": number % PARTITIONS} for number in numbers]
        deltalake.write_deltalake(table.path, table_of(type(first)(**row) for row in rows), mode="append")
    for number in range(min(SINGLE, commits)):
        partition = number % PARTITIONS
        owner.commit([OffsetCommit("t", partition, state.topic_id, min(number // PARTITIONS + 1, state.ends[partition]))])
    return _kept(table)


def _kept(table: OffsetTable) -> dict[str, float]:
    """The size of a table, and the cost of its maintenance and of a look-up."""
    import deltalake

    before = _bytes(table.path)
    began = time.perf_counter()
    table.maintain()
    upkeep = time.perf_counter() - began
    began = time.perf_counter()
    assert OffsetTable(None, table.path).positions("g")
    look = time.perf_counter() - began
    opened = deltalake.DeltaTable(table.path)
    return {
        "rows": opened.count(),
        "bytes of rows after maintenance": sum(Path(path.removeprefix("file://")).stat().st_size for path in opened.file_uris()),
        "bytes on disk before it": before,
        "files of Delta's log": len(list(Path(table.path, "_delta_log").iterdir())),
        "maintenance, s": round(upkeep, 2),
        "positions of a group, s": round(look, 3),
    }


def _bytes(folder: str) -> int:
    return sum(each.stat().st_size for each in Path(folder).rglob("*") if each.is_file())


def _told(took: list[float], unit: str) -> dict[str, float]:
    ordered = sorted(took)
    return {f"median, {unit}": round(statistics.median(ordered), 1), f"p99, {unit}": round(ordered[int(0.99 * (len(ordered) - 1))], 1)}
