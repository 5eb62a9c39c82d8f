"""Runs the cases. Each is the function `run(bench, …)` of a module of this package."""

from __future__ import annotations

import argparse
import importlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import distance, distance_table, index, report, stores
from bench.harness import Bench

TOOLS = Path(__file__).parents[1] / ".tools"
DELTA, S3A = TOOLS / "delta", TOOLS / "s3a"
# A case is a module, and the arguments that its `run` takes after `bench`.
CASES: dict[str, tuple[str, Callable[[argparse.Namespace], list[object]]]] = {
    "write": ("write", lambda _: []),
    "scan": ("scan", lambda _: []),
    "count": ("count", lambda _: []),
    "point": ("point", lambda _: []),
    "flights": ("events", lambda given: ["flights", given.codecs.split(",")]),
    "small": ("events", lambda given: ["small", given.codecs.split(",")]),
    "commits": ("commits", lambda given: [given.writes]),
    "decode": ("decode", lambda _: []),
    "stream": ("stream", lambda _: []),
    "tidy": ("tidy", lambda _: []),
    "tracked": ("tracked", lambda _: []),
    "consume": ("consume", lambda _: []),
    "client-cpu": ("client_cpu", lambda _: []),
    "consumer-calls": ("consumer_calls", lambda given: [given.before]),
    "verify": ("verify", lambda _: []),
    "members": ("members", lambda _: []),
    "slots-routing": ("slots", lambda _: ["routing"]),
    "slots-write": ("slots", lambda _: ["write"]),
    "slots-topics": ("slots", lambda _: ["topics"]),
    "slots-bindings": ("slots", lambda _: ["bindings"]),
    "by-key-8": ("by_key", lambda given: [8, given.cores.split(",")]),
    "by-key-64": ("by_key", lambda given: [64, given.cores.split(",")]),
    "many-keys": ("many_keys", lambda _: []),
    "producers": ("producers", lambda _: []),
    "server": ("server", lambda _: []),
    "server-hour": ("server", lambda given: [given.minutes]),
    "stores": ("stores", lambda _: []),
    "distance-python": ("distance", lambda given: ["python", given.delays]),
    "distance-spark": ("distance", lambda given: ["spark", given.delays]),
    "distance-streams": ("distance", lambda given: ["streams", given.delays]),
    "distance-bytes": ("distance", lambda given: ["bytes", given.delays]),
    "distance-server": ("server_far", lambda given: [given.delays]),
    "index-write": ("index", lambda _: ["write"]),
    "index-read": ("index", lambda _: ["read"]),
    "index-scan": ("index", lambda _: ["scan"]),
}
STORES = tuple(case for case, (module, _) in CASES.items() if module in ("stores", "distance", "server_far", "index"))
"""The cases that need servers."""
ASKED_FOR = (*STORES, "server-hour")
"""The cases that run only if they are named."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    all_but = [case for case in CASES if case not in ASKED_FOR]
    one_of = f"one of {', '.join(CASES)}; default: all but server-hour, and {', '.join(STORES)}, which make bench-stores runs"
    parser.add_argument("cases", nargs="*", default=all_but, metavar="CASE", help=one_of)
    fewer = f"{distance.RECORDS:,}, {distance.ROUNDS} and {distance.SECONDS:g} in the cases distance"
    parser.add_argument("--records", type=int, help=f"default: 10,000,000; the defaults of this and the next two are {fewer}")
    parser.add_argument("--rounds", type=int, help="default: 5")
    more = "rounds are added until a comparison has taken this long; below 6, the warm-up is shorter too; default: 40"
    parser.add_argument("--seconds", type=float, help=more)
    parser.add_argument("--codecs", default="none,snappy,zstd", help="the codecs of the cases flights and small")
    parser.add_argument("--writes", type=int, default=1000, help="the number of writes in the case commits")
    parser.add_argument("--cores", default="fewer,more", help="whether the cases by-key have fewer cores than partitions, more, or both")
    parser.add_argument("--minutes", type=int, default=60, help="how long the case server-hour takes; up to 10 it is noted each minute")
    parser.add_argument("--before", type=Path, help="the folder of an earlier version, to be measured beside this one in consumer-calls")
    delayed = "the milliseconds by which the cases distance delay each request"
    parser.add_argument("--delays", type=int, nargs="+", default=distance.DELAYS_MS, help=delayed)
    parser.add_argument("--only", default="", help="a pattern of the calls that the cases distance measure; default: all of them")
    parser.add_argument("--discard", action="store_true", help="only print; do not change results.ndjson and its pages")
    parser.add_argument("--beside", default="", help="what else the machine does, to be kept with the figures")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--folder", type=Path, help="a folder in which the data is kept; default: a temporary folder")
    arguments = parser.parse_args()

    if unknown := set(arguments.cases) - set(CASES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; the cases are {', '.join(CASES)}")
    if not DELTA.exists():
        parser.error("Delta's jars are missing: make bench fetches them")

    in_stores = not set(STORES).isdisjoint(arguments.cases)
    if in_stores and not stores.places():
        parser.error(f"{', '.join(STORES)} need servers: make bench-stores starts them")

    import pyspark

    from sparklog.spark.session import session

    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="sparklog-bench-"))
    jars = Path(pyspark.__file__).parent / "jars"
    classes = folder / "classes"
    sources = [Path(__file__).with_name(f"{name}.java") for name in ("FreeSource", "StoreFloor")]
    subprocess.run(["javac", "-d", classes, "-cp", f"{jars}/*", *sources], check=True)
    patched = [index.patch(classes)] if any(CASES[case][0] == "index" for case in arguments.cases) else [str(classes)]
    spark = session(
        app_name="sparklog bench",
        conf={
            "spark.master": arguments.master,
            # With Spark's default of 1 GB, reads of Parquet run out of direct memory in the end.
            "spark.driver.memory": "4g",
            "spark.driver.extraClassPath": ":".join([*patched, *([f"{S3A}/*"] if in_stores else [])]),
            "spark.jars": ",".join(map(str, sorted(DELTA.glob("*.jar")))),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.ui.enabled": False,
            "spark.ui.showConsoleProgress": False,
            "spark.sql.parquet.compression.codec": "uncompressed",
            **(stores.settings() if in_stores else {}),
        },
    )
    spark.sparkContext.setLogLevel("ERROR")
    process = spark.sparkContext._gateway.proc  # type: ignore[union-attr] # the JVM that PySpark started
    measured: list[dict[str, object]] = []
    try:
        for case in arguments.cases:
            module, besides = CASES[case]
            usual = (distance.RECORDS, distance.ROUNDS, distance.SECONDS) if module == "distance" else (10_000_000, 5, 40.0)
            given = (arguments.records, arguments.rounds, arguments.seconds)
            records, rounds, seconds = (default if each is None else each for each, default in zip(given, usual, strict=True))
            kept = (not arguments.discard, arguments.beside, measured)
            bench = Bench(spark, folder, int(records), int(rounds), seconds, [process.pid], *kept, arguments.only)
            importlib.import_module(f"bench.{module}").run(bench, *besides(arguments))
        if any(CASES[case][0] == "distance" for case in arguments.cases):
            distance_table.show(measured)
        if not arguments.discard:
            report.write()
    finally:
        spark.stop()
        if not arguments.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
