"""The progress of real queries: read while they run, and watched until they end."""

import io
import re
import sys
from pathlib import Path

import pytest
from in_notebook import html
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import sparklog

TIME_S = 1_700_000_000


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def started(spark: SparkSession, folder: Path, name: str | None = "copy", **trigger: object) -> StreamingQuery:
    """A query that reads 400 of 1,000 records in a trigger; each of two partitions has a record every second."""
    rows = spark.range(1_000).selectExpr(
        "CAST(id AS STRING) AS value", "CAST(id % 2 AS INT) AS partition", f"timestamp_seconds({TIME_S} + id DIV 2) AS timestamp"
    )
    rows.coalesce(1).write.format("partlog").option("topic", "t").option("partitions", 2).mode("append").save(str(folder / "log"))
    log = spark.readStream.format("partlog").option("subscribe", "t").option("startingOffsets", "earliest")
    sink = log.option("maxOffsetsPerTrigger", 400).load(str(folder / "log")).writeStream.format("noop")
    sink = sink.queryName(name) if name else sink
    query = sink.option("checkpointLocation", str(folder / "checkpoint")).trigger(**trigger)  # type: ignore[call-overload]
    return query.start()  # type: ignore[no-any-return]


def test_how_far_a_query_is_behind(spark: SparkSession, tmp_path: Path) -> None:
    query = started(spark, tmp_path, processingTime="1 hour")
    while not query.recentProgress:
        query.awaitTermination(1)
    now = sparklog.progress(query)
    query.stop()
    assert (now.name, now.batch, now.rows, now.behind_offsets, now.behind_seconds) == ("copy", 0, 400, 600, 299.4)
    described = sparklog.Log(tmp_path / "log")["t"].describe()
    assert now.behind_bytes == int(0.6 * described["bytes"] / 2) * 2, "of two partitions of the same size"
    assert [(each.topic, each.partition, each.end, each.latest, each.behind) for each in now.partitions] == [
        ("t", 0, 200, 500, 300),
        ("t", 1, 200, 500, 300),
    ]
    assert f"behind by 600 offsets, {now.behind_bytes:,} bytes, 299.4 s" in str(now).splitlines()
    assert '; text-align: right">300</td>' in html(now)


@pytest.mark.parametrize(("name", "shown"), [("copy", "copy"), (None, "[0-9a-f]{8}")])
def test_a_bar_in_a_terminal_until_the_query_ends(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str | None, shown: str
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for variable, value in {"COLUMNS": "120", "TERM": "xterm"}.items():
        monkeypatch.setenv(variable, value)
    last = sparklog.progress(started(spark, tmp_path, name, availableNow=True)).watch()
    assert (last.message, last.batch, last.rows, last.behind_offsets) == ("Stopped", 2, 200, 0)
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).replace("\r", "\n").split("\n")
    assert re.fullmatch(
        shown + " ━{40} 100% batch 2, [0-9,]+ rows/s, 0 bytes behind, 0.0 s behind", [line.strip() for line in lines if line][-1]
    )


def test_a_table_in_a_notebook_until_the_query_ends(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, now: sparklog.progress) -> None:
            shown.append(html(now))

    class IPython:
        def get_ipython(self) -> object:
            return type("Shell", (), {"kernel": None})()

        class display:
            @staticmethod
            def display(*, display_id: bool) -> Handle:
                assert display_id
                return Handle()

    monkeypatch.setitem(sys.modules, "IPython", IPython())
    sparklog.progress(started(spark, tmp_path, availableNow=True)).watch()
    assert "<table " in shown[-1] and "behind by 0 offsets, 0 bytes, 0.0 s" in shown[-1]


def test_watching_raises_the_error_of_the_query_as_it_is(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    query = rows.selectExpr("IF(value > 50, raise_error('too many'), value)").writeStream.format("noop").start()
    with pytest.raises(StreamingQueryException, match=r"\[USER_RAISED_EXCEPTION\] too many"):
        sparklog.progress(query).watch()
    now = sparklog.progress(query)
    assert now.message.startswith("Terminated with exception: [USER_RAISED_EXCEPTION] too many")
    assert (now.batch, now.rows) == (4, 10)
    assert f"Query {query.id}" not in capfd.readouterr().err, "it is silent where there is no terminal"
