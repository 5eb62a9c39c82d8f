"""Merging: beside a plain copy of the same bytes; of very many segments; and what a scan gains when tiny batches are written again."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from bench.harness import Bench, Side, topic_options
from bench.scan import values
from sparklog import Log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SEGMENT_BYTES = 8 << 20
TINY_SEGMENTS = 20_000
TINY_SEGMENT_BYTES = 1 << 10
SINGLE_RECORDS = 2_000_000


def run(bench: Bench) -> None:
    _compare(bench, "segments of 8 MiB", _written(bench, bench.data(), "middling", {"segment.bytes": str(SEGMENT_BYTES)}))
    rows = bench.data().limit(TINY_SEGMENTS * 8).coalesce(1)
    tiny = _written(bench, rows, "tiny", {"segment.bytes": str(TINY_SEGMENT_BYTES), "batch.size": str(TINY_SEGMENT_BYTES)})
    _compare(bench, "segments of 1 KiB", tiny)
    _rebatch(bench)


def _written(bench: Bench, rows: DataFrame, name: str, options: dict[str, str]) -> Path:
    """A topic that no commit has merged, and that may have large segments from now on."""
    root = Path(bench.path(name))
    if not root.exists():
        rows.write.format("partlog").options(**topic_options("none"), **options, merge=False).mode("append").save(str(root))
        _call(bench, "set_config", root, "config => map('segment.bytes', '1073741824')")
    return root


def _call(bench: Bench, procedure: str, root: Path, *more: str) -> None:
    arguments = ", ".join([f"root => '{root}'", "topic => 't'", *more])
    bench.spark.sql(f"CALL partlog.{procedure}({arguments})").collect()


def _compare(bench: Bench, case: str, made: Path) -> None:
    """A merge of everything, and `cp` of the data files with a sync. Each merge has a copy of its own."""
    about = Log(made)["t"].describe()
    numbers = itertools.count()
    copy = made

    def before() -> None:
        nonlocal copy
        bench.remove(copy.name) if copy != made else None
        bench.remove("copied")
        copy = made.with_name(f"{made.name}-{next(numbers)}")
        subprocess.run(["cp", "--archive", made, copy], check=True)
        os.sync()

    def cp() -> None:
        subprocess.run(["cp", "--recursive", copy / "_partlog" / "t" / "data", bench.path("copied")], check=True)
        subprocess.run(["sync", "--file-system", bench.path("copied")], check=True)

    sides: dict[str, Side] = {"CALL partlog.merge": lambda: _call(bench, "merge", copy), "cp and sync": cp}
    bench.compare(f"merge of {about['segments']:,} {case}", "CALL partlog.merge", sides, before=before, records=about["records"])
    before()
    _call(bench, "merge", copy)
    merged = Log(copy)["t"].describe()
    bench.note(f"merge of {case}", bytes=about["bytes"], segments=about["segments"], left=merged["segments"])
    bench.remove(copy.name)


def _rebatch(bench: Bench) -> None:
    """A log of one record a batch, the same merged, the same rebatched, and one that was written in bulk."""
    rows = bench.data().limit(SINGLE_RECORDS)
    single = _written(bench, rows, "single", {"batch.size": "1"})
    roots = {"one record a batch": single, "written in bulk": _written(bench, rows, "bulk", {})}
    for name, argument in {"merged": "rebatch => false", "rebatched": "rebatch => true"}.items():
        roots[name] = single.with_name(name)
        subprocess.run(["cp", "--archive", single, roots[name]], check=True)
        _call(bench, "merge", roots[name], argument)
    readers = {name: bench.spark.read.format("partlog").option("includeHeaders", False).load(str(root)) for name, root in roots.items()}
    records = {rows.count() for rows in readers.values()}
    assert len(records) == 1
    scans = {name: values(rows) for name, rows in readers.items()}
    bench.compare("scan after rebatching, sum(length(value))", "rebatched", scans, records=records.pop())
    bench.note("bytes of a topic", **{name: Log(root)["t"].describe()["bytes"] for name, root in roots.items()})
