"""A Spark session that can reach HDFS and S3, and knows the settings of none of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import sparklog

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
}


@contextmanager
def session(s3a_jars: Path, **more: str) -> Iterator[SparkSession]:
    """A session with S3A and `more` settings. A test gives what a store needs in the options of its reads and writes, or sets it."""
    settings = {**SETTINGS, "spark.driver.extraClassPath": f"{s3a_jars}/*", **more}
    spark = sparklog.session(app_name="sparklog tests of stores", conf=settings)
    try:
        yield spark
    finally:
        jvm = spark.sparkContext._jvm
        spark.stop()
        # Those with which a JVM begins would be settings of its later sessions, too.
        for name in settings:
            jvm.java.lang.System.clearProperty(name)
