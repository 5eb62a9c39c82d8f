"""PyArrow, Polars and DuckDB read a topic directly."""

import pyarrow as pa
import pytest


def test_others_take_a_topic_as_it_is(log):
    import duckdb
    import polars

    table = log.read()
    assert pa.table(log).equals(table)
    assert pa.RecordBatchReader.from_stream(log).read_all().equals(table)
    assert polars.DataFrame(log).to_dict(as_series=False) == table.to_pydict()
    sums = 'SELECT count(*), sum(partition), sum("offset"), max(value) FROM '
    assert duckdb.sql(sums + "log").fetchall() == [(35, 10, 300 + 45, b"p-9")]
    part = log.scan(1, 3, columns=["value", "offset", "partition"])  # noqa: F841 # DuckDB finds it by its name
    assert duckdb.sql(sums + "part").fetchall() == [(7, 7, sum(range(3, 10)), b"p-9")]


def test_others_are_told_what_is_wrong(topic, log):
    import polars

    file = topic.folder / topic.versions[0]["added"][0]["file"]
    octets = bytearray(file.read_bytes())
    octets[-1] ^= 1
    file.write_bytes(octets)
    for take in (pa.table, polars.DataFrame):
        with pytest.raises(Exception, match=r"PARTLOG_BATCH_CORRUPT\] Topic t, partition 0"):
            take(log)


def test_what_others_take_is_not_copied(log):
    """By the addresses of the buffers: numpy, pandas and Polars look at the memory that holds the records."""
    import pandas
    import polars

    table = log.read(0, columns=["offset", "value"]).combine_chunks()
    offsets, values = (column.chunk(0) for column in table.columns)
    address = offsets.buffers()[1].address
    assert offsets.to_numpy().ctypes.data == address
    frame = table.to_pandas(types_mapper=pandas.ArrowDtype)
    assert pa.array(frame["offset"].array).buffers()[1].address == address
    assert polars.from_arrow(offsets).to_arrow().buffers()[1].address == address
    assert pa.array(frame["value"].array).buffers()[2].address == values.buffers()[2].address
