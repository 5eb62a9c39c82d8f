"""A store behind a proxy that delays each request, and the numbers of requests to the store."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.harness import Bench, Side, cpu_seconds
from bench.stores import HDFS, S3, remove
from sparklog import Log

if TYPE_CHECKING:
    from stores.faults import Request


class Proxy:
    """A `FaultProxy` in a process of its own: clients that hold the interpreter of this process would wait for themselves."""

    def __init__(self, target: str) -> None:
        processes = multiprocessing.get_context("spawn")
        self._pipe, theirs = processes.Pipe()
        self._process = processes.Process(target=_serve, args=(target, theirs), daemon=True)
        self._process.start()
        self.endpoint: str = self._pipe.recv()
        self.address = self.endpoint.partition("//")[2]
        self._now = (0.0, float("inf"))

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send(None)
        self._process.join(10)

    def begin(self, delay_ms: float, bytes_per_s: float = float("inf")) -> None:
        """From now on requests are delayed, and are those that count."""
        self._now = (delay_ms / 1000, bytes_per_s)
        self._ask(*self._now)

    @contextmanager
    def near(self) -> Iterator[None]:
        """Nothing is delayed, and no bytes are held back."""
        kept = self._now
        self.begin(0)
        yield
        self._now = kept
        self._ask(*kept)

    def requests(self) -> Sequence[Request]:
        """Those since `begin`."""
        return list(self._ask())

    def _ask(self, *told: float) -> Any:
        self._pipe.send(told)
        return self._pipe.recv()


def _serve(target: str, pipe: Connection) -> None:
    """Sends the endpoint, and answers with the requests so far; a delay and a limit of bytes a second begin the next ones."""
    from stores.faults import FaultProxy

    with FaultProxy(target) as proxy:
        pipe.send(proxy.endpoint)
        while (told := pipe.recv()) is not None:
            pipe.send(list(proxy.requests))
            if told:
                proxy.delay_s, proxy.bytes_per_s = told
                proxy.clear()


class Store:
    """A store that is reached through a proxy."""

    def __init__(self, bench: Bench, name: str, uri: str, proxy: Proxy) -> None:
        self.bench, self.name, self.uri, self.proxy = bench, name, uri, proxy
        self._copies = 0

    def python(self, root: str) -> tuple[str, dict[str, Any]]:
        """The root and the options of a `Log` or a `Consumer`."""
        if self.name == HDFS:
            return f"{root}?webhdfs={self.proxy.address}", {}
        return root, {}

    def log(self, root: str) -> Log:
        """The root, as a process sees it that has not met it before."""
        where, options = self.python(root)
        return Log(where, **options)

    def options(self) -> dict[str, str]:
        """The options of reads and writes with Spark."""
        return {"fs.s3a.endpoint": self.proxy.endpoint} if self.name == S3 else {}

    def environment(self) -> dict[str, str]:
        """The environment of a process of Python that asks through the proxy."""
        told = json.loads(os.environ["STORES_S3_SETTINGS"])
        return {
            **os.environ,
            "AWS_ACCESS_KEY_ID": told["fs.s3a.access.key"],
            "AWS_SECRET_ACCESS_KEY": told["fs.s3a.secret.key"],
            "AWS_REGION": told["fs.s3a.endpoint.region"],
            "AWS_ENDPOINT_URL": self.proxy.endpoint,
        }

    def deltalake(self) -> dict[str, str]:
        """The storage options of deltalake."""
        names = {name.lower(): value for name, value in self.environment().items() if name.startswith("AWS_")}
        return {**names, "aws_allow_http": "true"}

    def copy(self, folder: Path) -> str:
        """A copy of a folder on the disk, which no process knows; of a root, all but the Kafka view."""
        self._copies += 1
        target = f"{self.uri}/{folder.name}-{self._copies}"
        part = "_partlog" if (folder / "_partlog").exists() else ""
        with self.proxy.near():
            if self.name == S3:
                from pyarrow import fs

                there = f"{target.partition('//')[2]}/{part}"
                fs.copy_files(str(folder / part), there, destination_filesystem=filesystem(self.proxy.address))
            else:
                jvm = self.bench.spark._jvm
                assert jvm
                path = jvm.org.apache.hadoop.fs.Path
                files = path(target).getFileSystem(self.bench.spark._jsparkSession.sessionState().newHadoopConf())
                files.mkdirs(path(target))
                files.copyFromLocalFile(path(str(folder / part)), path(f"{target}/{part}"))
        return target

    def delete(self, name: str) -> None:
        with self.proxy.near():
            remove(self.bench, f"{self.uri}/{name}")

    def measure(
        self,
        delay_ms: int,
        sides: Mapping[str, Side],
        *,
        before: Callable[[], object] | Mapping[str, Side] = lambda: None,
        bytes_per_s: float = float("inf"),
        records: int | None = None,
    ) -> None:
        """Runs the sides in turns, each after `before` or after its own, and keeps the median seconds and the requests of the last run."""
        if not self.bench.is_wanted(*sides):
            return
        seconds: dict[str, list[float]] = {what: [] for what in sides}
        cpu: dict[str, list[float]] = {what: [] for what in sides}
        requests: dict[str, Sequence[Request]] = {}
        order, processes = list(sides), [*self.bench.processes, os.getpid()]
        for _ in range(self.bench.rounds):
            random.shuffle(order)
            for what in order:
                with self.proxy.near():
                    (before[what] if isinstance(before, Mapping) else before)()
                self.proxy.begin(delay_ms, bytes_per_s)
                began, spent = time.perf_counter(), cpu_seconds(processes)
                sides[what]()
                seconds[what].append(time.perf_counter() - began)
                cpu[what].append(cpu_seconds(processes) - spent)
                requests[what] = self.proxy.requests()
        for what in sides:
            more: dict[str, Any] = {"each s": [round(each, 3) for each in seconds[what]], "CPU s": [round(each, 2) for each in cpu[what]]}
            self.note(delay_ms, what, statistics.median(seconds[what]), requests[what], records=records, **more)

    def note(
        self,
        delay_ms: int,
        what: str,
        seconds: float,
        requests: Sequence[Request],
        times: int = 1,
        records: int | None = None,
        **more: object,
    ) -> None:
        """Keeps the figures of requests that were made `times` times, and more figures."""
        from stores.faults import most_at_once, rounds

        kinds = Counter(map(_kind, requests))
        self.bench.note(
            f"{self.name} at {delay_ms} ms: {what}",
            **{
                "s": round(seconds, 3),
                "requests": _each(len(requests), times),
                "kinds": {kind: _each(number, times) for kind, number in sorted(kinds.items())},
                "at once": most_at_once(requests),
                "in a row": _each(rounds(requests), times),
                "bytes": _each(sum(each.sent for each in requests), times),
                **({"records": records} if records else {}),
                **more,
                "load": round(os.getloadavg()[0], 1),
            },
        )


def _each(number: int, times: int) -> float:
    return number if times == 1 else round(number / times, 1)


def _kind(request: Request) -> str:
    operation = re.search(r"(?:^|&)op=(\w+)", request.query)
    return operation[1] if operation else request.kind


@contextmanager
def s3(bench: Bench) -> Iterator[Store]:
    """Each way to S3 leads through the proxy: of our classes, of Hadoop for peers, and of Python, by the environment.

    The bucket is new: Hadoop has one client for a bucket, which keeps its first endpoint.
    """
    bucket = f"far-{random.SystemRandom().randrange(10**9)}"
    endpoint = f"fs.s3a.bucket.{bucket}.endpoint"
    with Proxy(os.environ["STORES_S3"]) as proxy:
        filesystem(proxy.address, allow_bucket_creation=True).create_dir(bucket)
        context = bench.spark.sparkContext._jsc
        assert context
        context.hadoopConfiguration().set(endpoint, proxy.endpoint)
        bench.spark.conf.set(f"spark.hadoop.{endpoint}", proxy.endpoint)  # CALL takes no options
        store = Store(bench, S3, f"s3a://{bucket}/distance", proxy)
        kept = dict(os.environ)
        os.environ.update(store.environment())
        try:
            yield store
        finally:
            os.environ.clear()
            os.environ.update(kept)


@contextmanager
def hdfs(bench: Bench) -> Iterator[Store]:
    """Python's way to the NameNode leads through the proxy."""
    with Proxy(os.environ["STORES_WEBHDFS"].partition(",")[0]) as proxy:
        yield Store(bench, HDFS, f"{os.environ['STORES_HDFS']}/distance", proxy)


def filesystem(address: str, **more: Any) -> Any:
    """The S3 server for pyarrow, at the address of a proxy."""
    from pyarrow.fs import S3FileSystem

    told = json.loads(os.environ["STORES_S3_SETTINGS"])
    keys = {"access_key": told["fs.s3a.access.key"], "secret_key": told["fs.s3a.secret.key"], "region": told["fs.s3a.endpoint.region"]}
    return S3FileSystem(**keys, endpoint_override=address, scheme="http", **more)
