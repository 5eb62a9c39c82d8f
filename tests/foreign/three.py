"""Three readers, asked for a topic: the foreign one, sparklog's in Python and sparklog's in Java."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from foreign.batches import Refused, Row
from foreign.key_reader import KeyReader
from foreign.record_reader import RecordReader
from logtool import LogTool

from sparklog import Log, SparklogError


def answer(call: Callable[[], Any]) -> Any:
    """The answer of a call, or the id of the error with which it refuses."""
    try:
        return call()
    except (Refused, SparklogError) as error:
        return error.id


TIMES = (-62_135_424_000_000, 253_402_250_399_999)
"""The first and the last ms that Python and Spark can show. sparklog shows times beyond as these."""


def shown(rows: list[Row]) -> list[Row]:
    """As sparklog shows them. Names of headers are texts there."""
    found = []
    for row in rows:
        headers = tuple((name.decode(errors="replace").encode(), value) for name, value in row.headers)
        found.append(row._replace(time=min(max(row.time, TIMES[0]), TIMES[1]), headers=headers))
    return found


def foreign(root: Path | str, topic: str = "t") -> list[Row] | str:
    """All records, or the id of an error: by a key reader, which checks more, and by a record reader where keys are of a later release."""
    found = answer(lambda: shown(KeyReader(root).read(topic)))
    return answer(lambda: shown(RecordReader(root).read(topic))) if found == "FORMAT_TOO_NEW" else found


def python(root: Path | str, topic: str = "t", **what: Any) -> list[Row] | str:
    return answer(lambda: rows_of(Log(root)[topic].read(**what)))


def java(tool: LogTool, topic: str = "t") -> list[tuple[int, int, str]] | str:
    """Partition, offset and value. Values of `Writes` lose their padding, null is an empty text."""
    status, out, err = tool.ended("read", topic=topic)
    if status:
        found = re.search(r"PARTLOG_([A-Z_]+)", err)
        assert found, err
        return found[1]
    lines = [line.split(" ", 2) for line in out.split("\n") if line[:1].isdigit()]
    return sorted((int(partition), int(offset), value) for partition, offset, value in lines)


def rows_of(table: pa.Table) -> list[Row]:
    """As the foreign reader returns them."""
    columns = table.set_column(table.column_names.index("timestamp"), "timestamp", table["timestamp"].cast(pa.int64()))
    return sorted(
        Row(
            each["partition"],
            each["offset"],
            -1 if each["timestamp"] is None else each["timestamp"] // 1000,
            each["timestampType"] == 1,
            each["key"],
            each["value"],
            tuple((header["key"].encode(), header["value"]) for header in each["headers"] or ()),
        )
        for each in columns.to_pylist()
    )


def as_java(rows: list[Row] | str) -> list[tuple[int, int, str]] | str:
    if isinstance(rows, str):
        return rows
    return [(row.partition, row.offset, re.sub("v+$", "", (row.value or b"").decode(errors="replace"))) for row in rows]
