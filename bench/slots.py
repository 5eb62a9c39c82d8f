"""Slots: routing by a table beside hashing modulo the number of partitions; topics that were re-routed often, or that bind slots."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark

from bench.harness import PARTITIONS, Bench, topic_options, write_to
from sparklog import Log
from sparklog.spark.session import jar

REROUTES = 1_000
SLOTS = 65_536
SLOTS_MAX = 2**20
NEW_KEYS = 11_000
"""They have about 10,000 slots that no key of before has."""
ROUNDS = 7
VERSIONS_OF_A_CHECKPOINT = 100
ROWS = 10_000
MODULO, TABLE = "modulo", "by table"

Ask = Callable[[str], str]


def run(bench: Bench, what: str) -> None:
    {"routing": _routing, "write": _writes, "topics": _topics, "bindings": _bindings}[what](bench)


def _routing(bench: Bench) -> None:
    with _alone(bench) as ask:
        ask(f"keys {bench.records}")
        sides = {TABLE: lambda: ask("table"), MODULO: lambda: ask("modulo")}
        bench.compare("routing keys of 16 bytes, one thread, 8 partitions", TABLE, sides)


def _topics(bench: Bench) -> None:
    rows = bench.spark.range(ROWS).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
    with _alone(bench) as ask:
        for made, number in (("reroute", REROUTES), ("slots", SLOTS)):
            root = Path(bench.path("rerouted"))
            bench.remove(root.name)
            rows.write.format("partlog").options(topic="t", partitions=PARTITIONS).mode("append").save(str(root))
            assert int(ask(f"{made} {root} t {number}")) == number
            what = f"{REROUTES:,} re-routes" if made == "reroute" else f"{SLOTS:,} slots and one re-route"
            bench.note(f"a topic of {PARTITIONS} partitions with {what}", **_figures(root, ask))
            bench.remove(root.name)


def _bindings(bench: Bench) -> None:
    """Writes whose keys are all new, each beside a write of the same keys again, in a topic with as many slots as there can be."""
    root = Path(bench.path("bound"))
    bench.remove(root.name)
    times: dict[bool, list[float]] = {True: [], False: []}
    options: dict[str, str | int] = {"topic": "t", "partitions": PARTITIONS, "placement": "on_first_write", "placement.slots": SLOTS_MAX}
    bound = bytes_of_a_version = 0
    for number in range(-2, ROUNDS):
        rows = bench.spark.range((number + 2) * NEW_KEYS, (number + 3) * NEW_KEYS).selectExpr(
            "CAST(id AS STRING) AS key", "'value' AS value"
        )
        for binds in (True, False):
            began = time.perf_counter()
            rows.write.format("partlog").options(**options).mode("append").save(str(root))
            if number >= 0:
                times[binds].append(1000 * (time.perf_counter() - began))
            if binds:
                newest = max((root / "_partlog" / "t").glob("*.json"))
                routing = json.loads(newest.read_text().splitlines()[0])["routing"]
                bound, bytes_of_a_version = sum(len(each) - 1 for each in routing["moved"]), newest.stat().st_size
    ms = {binds: round(statistics.median(taken)) for binds, taken in times.items()}
    bench.note(
        f"a write of {NEW_KEYS:,} records whose keys are new, to {PARTITIONS} partitions",
        **{"slots bound": bound, "bytes of its version": bytes_of_a_version, "ms": ms[True], "ms of the same keys again": ms[False]},
    )
    for number in range(VERSIONS_OF_A_CHECKPOINT):
        config = f"map('segment.ms', '{number + 1}')"
        bench.spark.sql(f"CALL partlog.set_config(root => '{root}', topic => 't', config => {config})").collect()
    with _alone(bench) as ask:
        bench.note(f"a topic of {PARTITIONS} partitions with {SLOTS_MAX:,} slots that are bound at first use", **_figures(root, ask))
    bench.remove(root.name)


def _writes(bench: Bench) -> None:
    """Each write creates both topics. One has moved slots away and back, so each partition has its share of them."""
    roots = {TABLE: "write-by-table", MODULO: "write-modulo"}
    no_rows = bench.data().limit(0)

    def clear() -> None:
        for root in roots.values():
            bench.remove(root)
            no_rows.write.format("partlog").options(**topic_options("none")).mode("append").save(bench.path(root))
        for weight in (3, 1):
            call = f"""CALL partlog.reroute(root => '{bench.path(roots[TABLE])}', topic => 't', weights => '{{"0":{weight}}}')"""
            bench.spark.sql(call).collect()
        os.sync()

    sides = {side: write_to(bench, bench.data(), "partlog", "none", root) for side, root in roots.items()}
    bench.compare("write, uncompressed, where keys go", TABLE, sides, before=clear)
    for root in roots.values():
        bench.remove(root)


def _figures(root: Path, ask: Ask) -> dict[str, object]:
    """The newest checkpoint, and loads of the newest state: of it and of the versions after it."""
    micros, heap, epoch = map(int, ask(f"load {root} t").split())
    newest = max((root / "_partlog" / "t").glob("*.checkpoint-*"))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        routing = Log(root)["t"].describe()["routing"]
        times.append(time.perf_counter() - began)
        assert routing["epoch"] == epoch
    return {
        "slots": routing["slots"],
        "bytes of a checkpoint": newest.stat().st_size,
        "bytes of the heap": heap,
        "ms to load": round(micros / 1000, 1),
        "ms to load in Python": round(1000 * statistics.median(times), 1),
    }


@contextlib.contextmanager
def _alone(bench: Bench) -> Iterator[Ask]:
    """Asks a JVM without Spark, which is kept for all rounds."""
    jars = Path(pyspark.__file__).parent / "jars"
    command = ["java", "-Xmx1g", "-cp", f"{jar()}:{jars}/*", str(Path(__file__).with_name("RoutingAlone.java"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        requests, answers = process.stdin, process.stdout
        bench.processes.append(process.pid)

        def ask(what: str) -> str:
            print(what, file=requests, flush=True)
            answer = answers.readline()
            assert answer, f"no answer to {what}"
            return answer

        yield ask
        bench.processes.remove(process.pid)
        requests.close()
