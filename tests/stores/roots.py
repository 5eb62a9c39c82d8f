"""Roots on the stores, as the programs of the protocol's tests write them and as Python reads them."""

import os
import random
from collections.abc import Sequence
from pathlib import Path

from logtool import LogTool
from stores.hdfs import Hdfs
from stores.s3 import S3


def classpath(java_classpath: str, spark_jars: Path, jars: Sequence[Path]) -> str:
    """A plain JVM's, with all that Spark has, as Hadoop's clients need much of it, and more jars."""
    return os.pathsep.join(map(str, (java_classpath, *jars, spark_jars / "*")))


def _name() -> str:
    return f"root-{random.SystemRandom().randrange(10**12)}"


def in_hdfs(hdfs: Hdfs, classpath: str) -> LogTool:
    """A new root in HDFS."""
    root = f"{hdfs.uri}/races/{_name()}"
    return LogTool(classpath, root, settings=hdfs.settings, seen_as=f"{root}?webhdfs={','.join(hdfs.webhdfs)}")


def in_s3(s3: S3, classpath: str, endpoint: str | None = None, **settings: str) -> LogTool:
    """A new root in S3. Python finds the server by its environment: `buckets.environment`."""
    return LogTool(classpath, f"s3a://{s3.bucket}/races/{_name()}", settings={**s3.settings(endpoint), **settings})
