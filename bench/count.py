"""`count(*)` of a topic: from what is committed, without opening a segment."""

from __future__ import annotations

from bench.harness import Bench, log_and_copy


def run(bench: Bench) -> None:
    log, copy = log_and_copy(bench, "none")
    assert log.count() == copy.count() == bench.records
    bench.compare("count(*)", "partlog", {"partlog": lambda: log.count() and None, "parquet": lambda: copy.count() and None})
