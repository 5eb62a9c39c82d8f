"""How the progress of a streaming query is read and shown, from what Spark reported."""

import io
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from in_notebook import html

import sparklog
from sparklog.spark.progress import Progress

REPORTED = json.loads((Path(__file__).parents[1] / "vectors" / "progress.json").read_text())


def shown(case: str, message: str = "Waiting for data to arrive") -> Progress:
    """The answer of `sparklog.progress` for a query that reported this."""
    report = REPORTED.get(case)
    last = None if report is None else SimpleNamespace(json=json.dumps(report))
    return sparklog.progress(SimpleNamespace(name=report and report["name"], id="1234", lastProgress=last, status={"message": message}))


RATE = "RatePerMicroBatchStream[rowsPerBatch={}, numPartitions=2, startTimestamp=1700000000000, advanceMsPerBatch=1000]"


@pytest.mark.parametrize(
    ("case", "lines"),
    [
        ("not begun", ["Query 1234: Waiting for data to arrive"]),
        (
            "rate",
            [
                "Query plain: Waiting for data to arrive",
                "batch 5 at 2026-11-22 15:21:56.030 UTC took 0.225 s",
                "1,000 rows, 4,444 a second, 5,747 a second arrived",
                f"from {RATE.format(1000)}",
                "to NoopTable",
            ],
        ),
        (
            "files",
            [
                "Query 1234: Waiting for data to arrive",
                "batch 0 at 2026-11-22 15:21:58.893 UTC took 1.163 s",
                "10 rows, 9 a second",
                "from FileStreamSource[file:/tmp/tmpj2g0duiy/in]",
                "to FileSink[file:/tmp/tmpj2g0duiy/out]",
            ],
        ),
        (
            "stateful",
            [
                "Query m: Waiting for data to arrive",
                "batch 6 at 2026-11-22 15:22:06.151 UTC took 0.406 s",
                "100 rows, 246 a second, 211 a second arrived",
                "watermark 2023-11-14 22:12:25 UTC",
                "state of 1 rows in 1,296 bytes of memory",
                f"from {RATE.format(100)}",
                "to MemorySink",
            ],
        ),
        (
            "waiting",
            [
                "Query empty: Waiting for data to arrive",
                "batch 1 at 2026-11-22 15:22:28 UTC took 0.006 s",
                "0 rows, 0 a second",
                "from FileStreamSource[file:/tmp/tmpj2g0duiy/in]",
                "to MemorySink",
            ],
        ),
        (
            "two",
            [
                "Query two: Waiting for data to arrive",
                "batch 28 at 2026-11-22 15:22:36.140 UTC took 0.121 s",
                "15 rows, 124 a second, 115 a second arrived",
                f"from {RATE.format(10)}",
                f"from {RATE.format(5)}",
                "to MemorySink",
            ],
        ),
    ],
)
def test_what_any_stream_reports_is_shown_and_the_rest_is_left_out(case, lines):
    now = shown(case)
    assert str(now).splitlines() == lines
    assert now.partitions == [] and (now.behind_offsets, now.behind_bytes, now.behind_seconds) == (None, None, None)


@pytest.mark.parametrize(
    ("case", "batch", "rates", "root"),
    [
        ("partlog", "batch 1 at 2026-11-22 16:41:32 UTC took 0.671 s", (446, 86), "/tmp/tmptv6v4od3/log"),
        ("partlog over Connect", "batch 1 at 2026-11-22 16:42:00 UTC took 0.351 s", (850, 204), "/tmp/tmpgf5b32pv/log"),
    ],
)
def test_how_far_a_stream_of_a_log_is_behind_in_all_and_in_each_partition(case, batch, rates, root):
    now = shown(case)
    assert str(now).splitlines() == [
        "Query copy: Waiting for data to arrive",
        batch,
        f"300 rows, {rates[0]} a second, {rates[1]} a second arrived",
        "behind by 1,400 offsets, 18,008 bytes, 349.3 s",
        f"from partlog[subscribe=orders,returns] {root}",
        f"to partlog {root}",
        "",
        "topic    partition  start  end  latest  behind",
        "orders           0     75  150     500     350",
        "orders           1     75  150     500     350",
        "returns          0     75  150     500     350",
        "returns          1     75  150     500     350",
    ]
    assert (now.rows, now.behind_offsets, now.behind_bytes, now.behind_seconds) == (300, 1_400, 18_008, 349.3)
    assert [each.behind for each in now.partitions] == 4 * [350]
    assert '; text-align: left">returns</td>' in html(now)


def test_offsets_that_are_not_like_those_of_kafka_are_left_out(monkeypatch):
    report = REPORTED["partlog"]
    for offsets in (None, 7, "7", "{", [1], {"logOffset": 0}, {"t": {"x": 1}}, {"t": {"0": "1"}}):
        sources = [source | {"endOffset": offsets} for source in report["sources"]]
        monkeypatch.setitem(REPORTED, "odd", report | {"sources": sources})
        assert shown("odd").partitions == []


def test_two_sources_with_a_topic_of_the_same_name_are_told_apart(monkeypatch):
    report = REPORTED["partlog"]
    monkeypatch.setitem(REPORTED, "twice", report | {"sources": 2 * report["sources"]})
    now = shown("twice")
    assert (now.behind_offsets, now.behind_bytes, now.behind_seconds) == (2_800, 36_016, 349.3)
    assert str(now).splitlines()[-9] == "source  topic    partition  start  end  latest  behind"
    assert str(now).splitlines()[-1] == "     1  returns          1     75  150     500     350"


def test_the_words_of_a_failure_are_one_line():
    assert str(shown("not begun", "Terminated with exception: [A] b\n\tat c" + 300 * "d")).count("\n") == 0
    assert "<b>" not in html(shown("not begun", "<b>"))


def test_a_partition_that_nothing_was_read_of_is_behind() -> None:
    """A topic that the query found a moment ago stands in the newest offsets alone."""
    source = {"endOffset": {"t": {"0": 4}}, "latestOffset": {"t": {"0": 5}, "u": {"1": 7}}}
    progress = Progress(SimpleNamespace(name="q", id="1"), {"sources": [source]}, "")
    assert [(each.topic, each.partition, each.end, each.behind) for each in progress.partitions] == [("t", 0, 4, 1), ("u", 1, 0, 7)]
    assert progress.behind_offsets == 8
    first = Progress(SimpleNamespace(name="q", id="1"), {"sources": [source | {"endOffset": None}]}, "")
    assert first.behind_offsets is None


@pytest.mark.parametrize("rich", [True, False])
@pytest.mark.parametrize(
    ("case", "bar"),
    [
        ("partlog", r"copy ━{7}[╺╸ ]*━{32}  18% batch 1, 446 rows/s, 18,008 bytes behind, 349.3 s behind"),
        ("rate", r"plain ━{40}  batch 5, 4,444 rows/s"),
        ("not begun", r"1234 ━{40}  before its first batch"),
    ],
)
def test_the_line_in_a_terminal(case, bar, rich, monkeypatch):
    """Without rich there is none."""
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    for name, value in {"COLUMNS": "120", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    if not rich:
        monkeypatch.setitem(sys.modules, "rich", None)
    now = shown(case)
    now._query.awaitTermination = lambda _: True
    assert now.watch().rows == now.rows
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).replace("\r", "\n").split("\n")
    assert re.fullmatch(bar if rich else "", "".join(line.strip() for line in lines[-2:])), lines
