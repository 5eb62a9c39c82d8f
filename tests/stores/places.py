"""Roots in a store, written and read by Spark, with a count of what is read there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from stores.buckets import unique
from stores.faults import FaultProxy
from stores.hdfs import Hdfs
from stores.s3 import S3

from sparklog import Log
from sparklog.arguments import named_root
from sparklog.ondisk.root import Root

TIME = 1_000_000
"""The time of the record of the first number, in ms."""
HEADER_BYTES = 61


class Place:
    """A root, and the bytes that Spark asks for of its data files."""

    def __init__(self, spark: SparkSession, server: Hdfs | S3) -> None:
        self.spark, self.server = spark, server
        self.proxy = FaultProxy(server.endpoint) if isinstance(server, S3) else None
        if isinstance(server, S3):
            assert self.proxy
            self.root, self.settings = f"s3a://{server.bucket}/{unique('scans')}", server.settings(self.proxy.endpoint)
        else:
            self.root, self.settings = f"{server.uri}/{unique('scans')}", {}

    def open(self) -> Root:
        """The root, not through the proxy."""
        if isinstance(self.server, S3):
            return named_root(self.root, self.server.filesystem())
        return named_root(f"{self.root}?webhdfs={self.server.webhdfs[0]}")

    def log(self) -> Log:
        return Log(self.open())

    def through(self, proxy: FaultProxy) -> tuple[str, dict[str, Any]]:
        """The root and the options of a `Log` that asks through a proxy."""
        if isinstance(self.server, S3):
            return self.root, {"filesystem": self.server.filesystem(proxy.endpoint)}
        return f"{self.root}?webhdfs={proxy.endpoint.partition('//')[2]}", {}

    def write(self, topic: str, first: int, count: int, **options: str) -> None:
        frame = self.spark.range(first, first + count, numPartitions=1).selectExpr(
            "concat_ws('', transform(sequence(0, 15), n -> sha2(concat(id, ' ', n), 256))) AS value",
            f"timestamp_millis({TIME} + id) AS timestamp",
            "0 AS partition",
        )
        options = {"topic": topic, "partitions": "1", "merge": "false"} | options
        frame.write.format("partlog").options(**self.settings, **options).mode("append").save(self.root)

    def read(self, topic: str, **options: str) -> DataFrame:
        return self.spark.read.format("partlog").options(**self.settings, **{"subscribe": topic} | options).load(self.root)

    def spans(self) -> dict[str, list[tuple[int, int]]]:
        """The ranges that were asked for of each data file since `clear`."""
        assert self.proxy
        spans: dict[str, list[tuple[int, int]]] = {}
        for request in self.proxy.requests:
            if request.method == "GET" and request.key.endswith(".log"):
                assert request.span, request
                spans.setdefault(request.key, []).append(request.span)
        return spans

    def bytes_of(self, ask: Callable[[], object]) -> int:
        """The bytes of data files that are asked for; in HDFS, all that its client read."""
        if self.proxy:
            self.proxy.clear()
            ask()
            return sum(end - first for spans in self.spans().values() for first, end in spans)
        before = self._read()
        ask()
        return self._read() - before

    def _read(self) -> int:
        statistics = self.spark._jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
        return sum(each.getBytesRead() for each in statistics if each.getScheme() == "hdfs")

    def needed(self, topic: str, start: int = 0, end: int = 1 << 60, *, lead: bool = False) -> int:
        """The bytes of the batches with these offsets, and of the headers of all; with `lead` also of the batches before in the segment."""
        batches = list(self.log()[topic].batches(0))
        files = {batch.file for batch in batches if batch.last_offset >= start and batch.base_offset < end}
        wanted = [start <= batch.last_offset or (lead and batch.file in files) for batch in batches]
        return sum(
            batch.bytes if inside and batch.base_offset < end else HEADER_BYTES for batch, inside in zip(batches, wanted, strict=True)
        )
