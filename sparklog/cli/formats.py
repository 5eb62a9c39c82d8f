"""Records as text, JSON lines, CSV, Arrow and Parquet. Columns are formatted as a whole where that can be done."""

from __future__ import annotations

import base64
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from sparklog.errors import SparklogError
from sparklog.show.display import readable

Sink = Callable[[pa.RecordBatch], None]
NAMES = ("text", "json", "csv", "arrow", "parquet")
_BINARY = pa.large_binary()
_TOKENS = {
    "t": "topic",
    "p": "partition",
    "o": "offset",
    "k": "key",
    "s": "value",
    "K": "key length",
    "S": "value length",
    "T": "timestamp",
    "h": "headers",
}
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}


@contextmanager
def sink(format: str, output: Path | None, columns: pa.Schema) -> Iterator[Sink]:
    """Where record batches go: standard output, or a file, which appears under its name when it is complete."""
    if output is None or str(output) == "-" or _is_standard_output(output):
        if format in ("arrow", "parquet") and (sys.stdout.isatty() or format == "parquet"):
            reason = "it is binary: name a file with --output" + (", or use a pipe" if format == "arrow" else "")
            raise SparklogError("OPTION_VALUE", option="--format", value=format, reason=reason)
        with _into(format, sys.stdout.buffer, columns, safe=sys.stdout.isatty()) as write:
            yield write
        sys.stdout.buffer.flush()
        return
    if not output.parent.is_dir() or output.is_dir():
        reason = "it must be a file, and is a directory"
        reason = reason if output.is_dir() else f"it must be in a directory that exists, and {output.parent} does not"
        raise SparklogError("OPTION_VALUE", option="--output", value=output, reason=reason)
    if output.exists() and not output.is_file():  # a pipe or a device keeps its place
        with output.open("wb") as file, _into(format, file, columns, safe=file.isatty()) as write:
            yield write
        return
    output = output.resolve()  # a link keeps its place too
    part = output.with_name(f".{output.name}.part")
    try:
        with part.open("wb") as file, _into(format, file, columns, safe=False) as write:
            yield write
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)


def _is_standard_output(output: Path) -> bool:
    """Whether a file is what standard output goes to, as /dev/stdout is."""
    try:
        return os.path.samestat(output.stat(), os.fstat(sys.stdout.fileno()))
    except OSError:
        return False


@contextmanager
def _into(format: str, file: BinaryIO, columns: pa.Schema, *, safe: bool) -> Iterator[Sink]:
    if format == "arrow":
        with pa.ipc.new_stream(file, columns) as stream:
            yield stream.write_batch
    elif format == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetWriter(file, columns, compression="zstd") as parquet:
            yield parquet.write_batch
    elif format == "json":
        yield lambda batch: _write(file, _json_lines(batch))
    elif format == "csv":
        file.write(b"topic,partition,offset,timestamp,key,value\n")
        yield lambda batch: _write(file, _csv_lines(batch, safe=safe))
    else:
        parts = parsed("%s\n" if format == "text" else format)
        yield lambda batch: _write(file, _text(batch, parts, safe=safe))


def _write(file: BinaryIO, data: bytes | memoryview) -> None:
    """Writes all of it. Standard output without a buffer (PYTHONUNBUFFERED) takes only a part where a signal comes."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def needed(format: str) -> list[str] | None:
    """The columns that a format needs; None for all."""
    if format == "text":
        return ["value"]
    if format in ("csv",):
        return ["topic", "partition", "offset", "timestamp", "key", "value"]
    if format in NAMES:
        return None
    names = [name.removesuffix(" length") for name, literal in parsed(format) if not literal]
    return list(dict.fromkeys(names)) or ["offset"]


def parsed(format: str) -> list[tuple[str, bool]]:
    """The parts of a format string of kcat's: each the name of a token, or a text and True."""
    parts: list[tuple[str, bool]] = []
    if format.isalpha():
        reason = f"it must be one of {', '.join(NAMES)}, or have tokens, such as %s"
        raise SparklogError("OPTION_VALUE", option="--format", value=format, reason=reason)
    for text, code, escape, token in re.findall(r"([^%\\]+)|\\x([0-9a-fA-F]{1,2})|\\(.)|%(.?)", format, re.DOTALL):
        if token and token in _TOKENS:
            parts.append((_TOKENS[token], False))
        elif code:
            parts.append((os.fsdecode(bytes([int(code, 16)])), True))
        elif text or escape or token == "%":
            parts.append((text or _ESCAPES.get(escape, escape) or "%", True))
        else:
            known = ", ".join(f"%{name} ({what})" for name, what in _TOKENS.items())
            reason = f"%{token} is not one of {known}, and %%"
            raise SparklogError("OPTION_VALUE", option="--format", value=format, reason=reason)
    return parts


def _text(batch: pa.RecordBatch, parts: list[tuple[str, bool]], *, safe: bool) -> bytes | memoryview:
    if not batch.num_rows:
        return b""
    columns: list[Any] = []
    for name, literal in parts:
        columns.append(pa.scalar(os.fsencode(name), _BINARY) if literal else _column(batch, name, safe=safe))
    joined = pc.binary_join_element_wise(*columns, pa.scalar(b"", _BINARY), null_handling="replace", null_replacement=b"")
    return _bytes_of(joined, batch.num_rows)


def _bytes_of(joined: Any, rows: int) -> bytes | memoryview:
    """The texts of a column, one after another."""
    if isinstance(joined, pa.Scalar):
        return bytes(joined.as_py()) * rows
    if isinstance(joined, pa.ChunkedArray):
        joined = joined.combine_chunks()
    _, offsets, data = joined.buffers()
    places = memoryview(offsets).cast("q")
    return memoryview(data)[places[joined.offset] : places[joined.offset + len(joined)]] if data is not None else b""


def _column(batch: pa.RecordBatch, name: str, *, safe: bool) -> Any:
    if name.endswith(" length"):
        lengths = pc.binary_length(batch.column(name.removesuffix(" length")))
        return pc.fill_null(lengths, -1).cast(pa.string()).cast(_BINARY)
    column = batch.column(name)
    if name in ("key", "value"):
        if safe:
            return pa.array([None if each is None else readable(each, None).encode() for each in column.to_pylist()], _BINARY)
        return column.cast(_BINARY)
    if name == "timestamp":
        return pc.divide(column.cast(pa.int64()), 1000).cast(pa.string()).cast(_BINARY)
    if name == "headers":
        texts = [
            ",".join(f"{each['key']}={'NULL' if each['value'] is None else each['value'].decode(errors='backslashreplace')}" for each in of)
            if of
            else ""
            for of in column.to_pylist()
        ]
        return pa.array([(readable(text, None) if safe else text).encode() for text in texts], _BINARY)
    return column.cast(pa.string()).cast(_BINARY)


def _json_lines(batch: pa.RecordBatch) -> bytes:
    columns = {name: batch.column(name) for name in batch.schema.names}
    topic = [quoted(name) for name in columns["topic"].to_pylist()]
    partitions, offsets = columns["partition"].to_pylist(), columns["offset"].to_pylist()
    millis = pc.divide(columns["timestamp"].cast(pa.int64()), 1000).to_pylist()
    headers = columns["headers"].to_pylist() if columns["headers"].null_count < batch.num_rows else [None] * batch.num_rows
    lines = [
        f'{{"topic":{name},"partition":{partition},"offset":{offset},"timestamp":{time}'
        f"{_json('key', key)}{_json('value', value)}{_headers(of)}}}\n"
        for name, partition, offset, time, key, value, of in zip(
            topic, partitions, offsets, millis, columns["key"].to_pylist(), columns["value"].to_pylist(), headers, strict=True
        )
    ]
    return "".join(lines).encode("ascii")


def _json(name: str, data: bytes | None) -> str:
    """A field: text, or if it is not UTF-8 a field `<name>_base64`."""
    if data is None:
        return f',"{name}":null'
    try:
        return f',"{name}":{quoted(data.decode())}'
    except UnicodeDecodeError:
        return f',"{name}_base64":"{base64.b64encode(data).decode()}"'


def _headers(headers: list[dict[str, Any]] | None) -> str:
    if not headers:
        return ""
    return ',"headers":[' + ",".join("{" + f'"key":{quoted(each["key"])}{_json("value", each["value"])}' + "}" for each in headers) + "]"


def _csv_lines(batch: pa.RecordBatch, *, safe: bool) -> bytes:
    import io

    from pyarrow import csv

    fields = ["topic", "partition", "offset", "timestamp", "key", "value"]
    arrays = []
    for name in fields:
        column = batch.column(name)
        if name in ("key", "value") and safe:
            column = pa.array([None if each is None else readable(each, None) for each in column.to_pylist()], pa.string())
        elif name in ("key", "value"):
            try:
                column = column.cast(pa.string())
            except pa.ArrowInvalid:
                texts = [None if each is None else each.decode(errors="backslashreplace") for each in column.to_pylist()]
                column = pa.array(texts, pa.string())
        elif name == "timestamp":
            column = pc.strftime(column.cast(pa.timestamp("ms", "UTC"), safe=False), "%Y-%m-%dT%H:%M:%SZ")
        arrays.append(column)
    into = io.BytesIO()
    csv.write_csv(pa.table(arrays, names=fields), into, csv.WriteOptions(include_header=False, quoting_style="needed"))
    return into.getvalue()
