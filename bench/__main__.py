"""Runs the cases, each a module of this package with a function `run(bench)`."""

from __future__ import annotations

import argparse
import importlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from bench import report
from bench.harness import Bench

DELTA = Path(__file__).parents[1] / ".tools" / "delta"
CASES = ("write", "scan", "count", "point", "decode")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("cases", nargs="*", default=CASES, metavar="CASE", help=f"of {', '.join(CASES)}; all of them without")
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--folder", type=Path, help="where the data lies, and stays; else a temporary folder")
    arguments = parser.parse_args()

    if not DELTA.exists():
        parser.error("Delta's jars are missing: make bench fetches them")

    import pyspark

    from sparklog.session import session

    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="sparklog-bench-"))
    jars = Path(pyspark.__file__).parent / "jars"
    classes = folder / "classes"
    subprocess.run(["javac", "-d", classes, "-cp", f"{jars}/*", Path(__file__).with_name("FreeSource.java")], check=True)
    spark = session(
        app_name="sparklog bench",
        **{
            "spark.master": arguments.master,
            # With Spark's default of 1 GB, Parquet's reads come to run out of direct memory.
            "spark.driver.memory": "4g",
            "spark.driver.extraClassPath": str(classes),
            "spark.jars": ",".join(map(str, sorted(DELTA.glob("*.jar")))),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.ui.enabled": False,
            "spark.ui.showConsoleProgress": False,
            "spark.sql.parquet.compression.codec": "uncompressed",
        },
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        for case in arguments.cases:
            importlib.import_module(f"bench.{case}").run(Bench(spark, folder, arguments.records, arguments.rounds))
        report.write()
    finally:
        spark.stop()
        if not arguments.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
