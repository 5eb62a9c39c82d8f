"""`count(*)` of a topic, which is answered from its state without opening a segment."""

from __future__ import annotations

from bench.harness import Bench, log_and_copies


def run(bench: Bench) -> None:
    readers = log_and_copies(bench, "none")
    assert {rows.count() for rows in readers.values()} == {bench.records}
    bench.compare("count(*)", "partlog", {name: rows.count for name, rows in readers.items()})
