"""Commits to a topic that knows many producers, beside a topic that knows few: what a server's commits pay for each producer."""

from __future__ import annotations

import statistics
import subprocess
from pathlib import Path

import pyspark

from bench.harness import Bench
from sparklog.spark.session import jar

PRODUCERS = (1_000, 500_000)
ROUND_S = 10
ROUNDS = 5


def run(bench: Bench) -> None:
    root = bench.path("producers")
    bench.remove("producers")
    jars = Path(pyspark.__file__).parent / "jars"
    program = ["java", "-Xmx2g", "-cp", f"{jar()}:{jars}/*", str(Path(__file__).with_name("ProducersAlone.java"))]
    words = [str(root), str(ROUND_S), str(ROUNDS), *map(str, PRODUCERS)]
    lines = subprocess.run([*program, *words], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    rates = [[float(line.split()[1]) for line in lines if line.startswith(f"{each} ")] for each in PRODUCERS]
    figures = {
        f"commits a second, {each:,} producers": round(statistics.median(rate), 1) for each, rate in zip(PRODUCERS, rates, strict=True)
    }
    few, many = rates
    ratio = statistics.median(one / other for one, other in zip(few, many, strict=True))
    bench.note("commits of one batch to a topic that knows its producers", **figures, **{"few to many, by rounds": round(ratio, 2)})
    bench.remove("producers")
