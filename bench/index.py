"""The cost of the index behind a segment for a write, and its gain for reads within large segments in S3 and HDFS.

The servers are those of `bench.stores`. Readers ask through a proxy that delays each request by 30 ms, and counts it.
Spark's client of HDFS does not speak HTTP: the servers count its requests, and nothing delays them. Nor are those of Python to a DataNode.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pyspark

from bench.harness import Bench
from bench.stores import HDFS, S3, places, remove
from sparklog import Log
from sparklog.spark.session import jar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from stores.faults import FaultProxy

SOURCE = Path(__file__).parents[1] / "jvm-shim" / "src" / "main" / "java" / "io" / "sparklog" / "log" / "SegmentBuilder.java"
SWITCH = "bench.without.index"
"""A property of the JVM: with it, the patched connector makes no index."""
PATCH = {
    "    index.batch(": f'    if (!Boolean.getBoolean("{SWITCH}")) index.batch(',
    "return Stores.hasLinks(store) ?": f'return Boolean.getBoolean("{SWITCH}") || Stores.hasLinks(store) ?',
}
SPARK_JARS = Path(pyspark.__file__).parent / "jars" / "*"
RECORDS = 520_000
"""Their values have 1,000 bytes: a segment of 512 MiB."""
PAIRED_RECORDS = 130_000
WANTED = 1_000
SEGMENTS = 4
"""That a scan reads."""
BATCHES = {"16 KiB": 1 << 14, "256 KiB": 1 << 18}
SIDES = {"with an index": False, "without an index": True}
DELAY_S = 0.03


def patch(classes: Path) -> str:
    """Compiles the class `SegmentBuilder` with a switch for the index, and returns a class path that begins with this class."""
    text = SOURCE.read_text(encoding="utf-8")
    for was, now in PATCH.items():
        assert text.count(was) == 1, was
        text = text.replace(was, now)
    patched = classes / SOURCE.name
    patched.write_text(text, encoding="utf-8")
    subprocess.run(["javac", "-nowarn", "-d", classes, "-cp", f"{jar()}:{SPARK_JARS}", patched], check=True)
    return f"{classes}:{jar()}"


def run(bench: Bench, what: str) -> None:
    {"write": _writes, "read": _ranges, "scan": _scans}[what](bench)


def _writes(bench: Bench) -> None:
    """Pairs of writes of a smaller segment, and the CPU time that the index of a large one takes by itself."""
    root = f"{places()[S3]}/index"
    for size, batch_bytes in BATCHES.items():
        sides = {side: partial(_write, bench, root, batch_bytes, PAIRED_RECORDS, 1, without) for side, without in SIDES.items()}
        bench.compare(
            f"S3: write of one segment, batches of {size}",
            "with an index",
            sides,
            before=lambda: remove(bench, root),
            records=PAIRED_RECORDS,
        )
        command = ["java", "-cp", f"{jar()}:{SPARK_JARS}", str(Path(__file__).with_name("IndexAlone.java")), str(batch_bytes)]
        batches, index_bytes, micros = map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
        bench.note(
            f"S3: the index of a segment of 512 MiB by itself, batches of {size}",
            **{"batches": batches, "index bytes": index_bytes, "CPU ms": round(micros / 1000, 2), "load": _load()},
        )
    remove(bench, root)


def _ranges(bench: Bench) -> None:
    """A thousand records in the middle of a segment."""
    middle = f"{WANTED:,} records in the middle of a segment of 512 MiB"
    for name, place in places().items():
        by_spark = _range_by_spark_in_hdfs if name == HDFS else _range_by_spark_in_s3
        root = f"{place}/index"
        for size, batch_bytes in BATCHES.items():
            for side, without in SIDES.items():
                remove(bench, root)
                _write(bench, root, batch_bytes, RECORDS, 1, without)
                bench.note(f"{name}: Spark, {middle}, batches of {size}, {side}", **by_spark(bench, root))
                bench.note(f"{name}: Python, {middle}, batches of {size}, {side}", **_range_by_python(name, root))
        remove(bench, root)


def _scans(bench: Bench) -> None:
    """All records of a few segments: how many tasks run at once, and pairs of scans."""
    roots = {side: f"{places()[S3]}/index-{'without' if without else 'with'}" for side, without in SIDES.items()}
    case = f"S3: scan of {SEGMENTS} segments of 512 MiB"
    for side, root in roots.items():
        remove(bench, root)
        _write(bench, root, BATCHES["256 KiB"], RECORDS, SEGMENTS, SIDES[side])
        bench.note(f"{case}, {side}", **_scan(bench, root))
    sides = {side: partial(_scan, bench, root) for side, root in roots.items()}
    bench.compare(case, "with an index", sides, records=RECORDS * SEGMENTS)
    for root in roots.values():
        remove(bench, root)


def _write(bench: Bench, root: str, batch_bytes: int, records: int, segments: int, without: bool) -> None:
    """Writes a topic whose partitions have one segment each."""
    jvm = bench.spark._jvm
    assert jvm
    jvm.java.lang.System.setProperty(SWITCH, str(without).lower())
    rows = bench.spark.range(0, records * segments, numPartitions=segments)
    rows = rows.selectExpr("lpad(CAST(id AS STRING), 1000, 'x') AS value", f"CAST(id DIV {records} AS INT) AS partition")
    options: dict[str, str | int] = {
        "topic": "t",
        "partitions": segments,
        "batch.size": batch_bytes,
        "compression.type": "none",
        "merge": "false",
    }
    rows.write.format("partlog").options(**options).mode("append").save(root)


def _range_by_spark_in_s3(bench: Bench, root: str) -> dict[str, object]:
    with _proxy(os.environ["STORES_S3"]) as proxy:
        return _measured(proxy, lambda: _spark(bench, root, proxy, WANTED).selectExpr("hash(value)").collect())


def _range_by_spark_in_hdfs(bench: Bench, root: str) -> dict[str, object]:
    """The process has written the topic, so it asks for no state of it again."""
    before = _told_by_hdfs()
    began = time.perf_counter()
    rows = _spark(bench, root, None, WANTED).selectExpr("hash(value)").collect()
    seconds = time.perf_counter() - began
    assert len(rows) == WANTED
    requests, read = (after - first for after, first in zip(_told_by_hdfs(), before, strict=True))
    return {"requests": requests, "bytes read": read, "s": round(seconds, 2), "load": _load()}


def _range_by_python(name: str, root: str) -> dict[str, object]:
    with _proxy(os.environ["STORES_WEBHDFS"].partition(",")[0] if name == HDFS else os.environ["STORES_S3"]) as proxy:

        def read() -> object:
            address = proxy.endpoint.partition("//")[2]
            log = Log(f"{root}?webhdfs={address}") if name == HDFS else Log(root, filesystem=_filesystem(address))
            return log["t"].read(0, RECORDS // 2, RECORDS // 2 + WANTED, columns=["value"])

        return _measured(proxy, read)


def _scan(bench: Bench, root: str) -> dict[str, object]:
    with _proxy(os.environ["STORES_S3"]) as proxy:
        rows = _spark(bench, root, proxy).selectExpr("sum(length(value))")
        with _sampled(bench) as at_once:
            figures = _measured(proxy, rows.collect)
        tasks = _spark(bench, root, proxy).rdd.getNumPartitions()
        return {"tasks": tasks, "tasks at once, on average": round(statistics.mean(at_once), 1), **figures}


def _spark(bench: Bench, root: str, proxy: FaultProxy | None, wanted: int = 0) -> DataFrame:
    """The topic, or as many records from the middle of partition 0 on."""
    options = {"subscribe": "t", **({"fs.s3a.endpoint": proxy.endpoint} if proxy else {})}
    if wanted:
        start = RECORDS // 2
        options = {key: value for key, value in options.items() if key != "subscribe"} | {
            "assign": json.dumps({"t": [0]}),
            "startingOffsets": json.dumps({"t": {"0": start}}),
            "endingOffsets": json.dumps({"t": {"0": start + wanted}}),
        }
    return bench.spark.read.format("partlog").options(**options).load(root)


def _measured(proxy: FaultProxy, ask: Callable[[], Any]) -> dict[str, object]:
    """The requests of a read, and the bytes of data files that it asks for; `ask` returns its rows.

    A NameNode tells a reader the address of a DataNode, which the reader then asks at once: such a request counts twice.
    """
    began = time.perf_counter()
    rows = ask()
    seconds = time.perf_counter() - began
    assert len(rows) in (1, WANTED)
    data = [request.span for request in proxy.requests if request.method == "GET" and request.key.endswith(".log") and request.span]
    told = sum("noredirect=true" in request.query for request in proxy.requests)
    read = sum(end - first for first, end in data)
    return {"requests": len(proxy.requests) + told, "bytes read": read, "s": round(seconds, 2), "load": _load()}


@contextmanager
def _proxy(target: str) -> Iterator[FaultProxy]:
    """A proxy of its own for each read: a process that has not met its address keeps no state of the root."""
    from stores.faults import FaultProxy

    with FaultProxy(target) as proxy:
        proxy.inject("delay", times=1 << 30, seconds=DELAY_S)
        yield proxy


@contextmanager
def _sampled(bench: Bench) -> Iterator[list[int]]:
    """Fills in how many tasks run, ten times a second while there is a stage that has some."""
    tracker, done, found = bench.spark.sparkContext.statusTracker(), threading.Event(), list[int]()

    def sample() -> None:
        while not done.wait(0.1):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            if running := sum(stage.numActiveTasks for stage in stages if stage):
                found.append(running)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def _told_by_hdfs() -> tuple[int, int]:
    """The reading requests to the servers, and the bytes that the DataNode has sent. The servers renew these numbers each 10 s."""
    time.sleep(11)
    name_node = os.environ["STORES_WEBHDFS"].partition(",")[0]
    (live,) = json.loads(_bean(name_node, "NameNode", "NameNodeInfo")["LiveNodes"]).values()
    names, data = _bean(name_node, "NameNode", "NameNodeActivity"), _bean(live["infoAddr"], "DataNode", "DataNodeActivity-*")
    requests = names["GetBlockLocations"] + names["FileInfoOps"] + names["GetListingOps"] + data["ReadBlockOpNumOps"]
    return requests, data["BytesRead"]


def _bean(address: str, service: str, name: str) -> dict[str, Any]:
    with urlopen(f"http://{address}/jmx?qry=Hadoop:service={service},name={name}", timeout=30) as answer:
        return dict(json.load(answer)["beans"][0])


def _filesystem(address: str) -> Any:
    from pyarrow.fs import S3FileSystem

    told = json.loads(os.environ["STORES_S3_SETTINGS"])
    keys = {"access_key": told["fs.s3a.access.key"], "secret_key": told["fs.s3a.secret.key"], "region": told["fs.s3a.endpoint.region"]}
    return S3FileSystem(**keys, endpoint_override=address, scheme="http")


def _load() -> float:
    return round(os.getloadavg()[0], 1)
