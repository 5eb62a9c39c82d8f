"""A server in front of a root of many topics in S3, with requests that take a while: small requests of clients, and those to the store."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import confluent_kafka

from bench import far
from bench.harness import Bench, cpu_seconds
from bench.server import Client
from sparklog.serve.process import Server

TOPICS = 100
IDLE_S = 30
HEARTBEATS, EVERY_MS = 500, 20
PRODUCES_S = 10
"""The records a second of one producer, to a topic after another: each is a commit of its own."""


def run(bench: Bench, delays_ms: Sequence[int]) -> None:
    bench = replace(bench, beside=bench.beside or f"load {os.getloadavg()[0]:.1f} when it began")
    with (
        far.s3(bench) as store,
        _hadoop(bench, store),
        contextlib.closing(Client()) as client,
        Server(f"{store.uri}/served") as server,
    ):
        with store.proxy.near():
            for number in range(TOPICS):
                client.ask("create", server.address, f"t{number:03}", 1)
            client.ask("produce", server.address, "t000", 0, 10, 100, 0)
        for delay_ms in delays_ms:
            store.proxy.begin(delay_ms)
            _idle(bench, store, server, delay_ms)
            client.ask("probe", server.address, "t000", 50, EVERY_MS)  # the group begins
            _small(bench, client, server, delay_ms, "idle")
            with _produces(server.address):
                _small(bench, client, server, delay_ms, f"beside {PRODUCES_S} produces a second")


@contextlib.contextmanager
def _hadoop(bench: Bench, store: far.Store) -> Iterator[None]:
    """A server of this process reaches S3 through the proxy."""
    from stores.hdfs import write_settings

    folder = Path(bench.path("hadoop"))
    folder.mkdir(exist_ok=True)
    write_settings(folder / "core-site.xml", json.loads(os.environ["STORES_S3_SETTINGS"]) | store.options())
    os.environ["HADOOP_CONF_DIR"] = str(folder)  # far.s3 puts the environment back
    yield


def _idle(bench: Bench, store: far.Store, server: Server, delay_ms: int) -> None:
    """The requests of a server without clients."""
    time.sleep(IDLE_S)  # what the topics owed is done
    store.proxy.begin(delay_ms)
    spent = cpu_seconds([server.pid])
    time.sleep(IDLE_S)
    kinds = Counter(each.kind for each in store.proxy.requests())
    each_s = {kind: round(count / IDLE_S, 2) for kind, count in sorted(kinds.items())}
    percent = round((cpu_seconds([server.pid]) - spent) / IDLE_S * 100, 2)
    bench.note(f"S3 at {delay_ms} ms: serve, {TOPICS} topics, idle, a second", requests=each_s, **{"CPU percent": percent})


def _small(bench: Bench, client: Client, server: Server, delay_ms: int, when: str) -> None:
    figures = client.ask("probe", server.address, "t000", HEARTBEATS, EVERY_MS)
    names = ("heartbeat p50", "heartbeat p99", "heartbeat most", "fetch p50", "fetch p99", "fetch most")
    told = {name: round(float(figure), 1) for name, figure in zip(names, figures, strict=True)}
    bench.note(f"S3 at {delay_ms} ms: serve, {TOPICS} topics, milliseconds of small requests, {when}", **told)


@contextlib.contextmanager
def _produces(address: str) -> Iterator[None]:
    over, producer = threading.Event(), confluent_kafka.Producer({"bootstrap.servers": address, "linger.ms": 0})

    def produce() -> None:
        number = 0
        while not over.wait(1 / PRODUCES_S):
            producer.produce(f"t{number % TOPICS:03}", b"x" * 100)
            producer.poll(0)
            number += 1

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        producer.flush()
