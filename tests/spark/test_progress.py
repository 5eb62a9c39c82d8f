"""The progress of real queries: read while they run, and watched until they end."""

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import sparklog


def test_watching_raises_the_error_of_the_query_as_it_is(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    query = rows.selectExpr("IF(value > 50, raise_error('too many'), value)").writeStream.format("noop").start()
    with pytest.raises(StreamingQueryException, match=r"\[USER_RAISED_EXCEPTION\] too many"):
        sparklog.progress(query).watch()
    now = sparklog.progress(query)
    assert now.message.startswith("Terminated with exception: [USER_RAISED_EXCEPTION] too many")
    assert (now.batch, now.rows) == (4, 10)
    assert f"Query {query.id}" not in capfd.readouterr().err, "it is silent where there is no terminal"
