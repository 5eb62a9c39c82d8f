"""`sparklog serve` beside a broker of Kafka, on one disk: fetches, produces, latency, small requests beside large ones, a steady hour."""

from __future__ import annotations

import contextlib
import os
import random
import statistics
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bench.broker import JARS, broker
from bench.harness import Bench, cpu_seconds
from sparklog import Log
from sparklog.serve.process import Server

PARTITIONS = 4
BYTES = 1_000
RECORDS = 150_000
"""The records of one turn of a side, in the comparisons of bytes a second."""
LINGERS_MS = (0, 5, 20)
RATE = 500
LATENCY_S = 6
STEADY_RATE = 100
LARGE, LARGE_BYTES = 16, 4 << 20
"""The producers of large requests, and the bytes of a request."""
SYNCED = "broker, flush.messages=1"
ASLEEP_S = 2.5
"""The upkeep after commits, and the writing of pages that were not synced, must not be beside the next side."""


class Client:
    """Kafka's own client, in a process that all sides share."""

    def __init__(self) -> None:
        command = ["java", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{JARS}/*"]
        source = str(Path(__file__).with_name("KafkaClient.java"))
        self._process = subprocess.Popen([*command, source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words: object) -> list[str]:
        """The words of the answer to a request; KafkaClient.java has the requests."""
        assert self._process.stdin and self._process.stdout
        print(*words, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().split()
        if not answer:
            raise SystemExit(f"Kafka's client ended at {' '.join(map(str, words))}; see its output above.")
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@dataclass
class Place:
    """A topic of a server that the client writes to, and reads."""

    address: str
    pid: int
    topic: str

    def create(self, client: Client, *config: str) -> None:
        client.ask("create", self.address, self.topic, PARTITIONS, *config)


def run(bench: Bench, minutes: int | None = None) -> None:
    """Compares the sides; with `minutes`, the server alone takes records at a steady rate for so long."""
    if not JARS.exists():
        raise SystemExit("Kafka's jars are missing: make kafka fetches them")
    bench = replace(bench, beside=bench.beside or f"load {os.getloadavg()[0]:.1f} when it began")
    root = bench.path("server")
    with contextlib.closing(Client()) as client, Server(root) as server:
        if minutes is not None:
            _steady(bench, client, Place(server.address, server.pid, "steady"), root, minutes)
            return
        with broker(Path(bench.path("server-broker")), "unused", 1) as (address, pid):
            sides = {
                "server": Place(server.address, server.pid, "t"),
                "broker": Place(address, pid, "plain"),
                SYNCED: Place(address, pid, "synced"),
            }
            for name, place in sides.items():
                place.create(client, *(["flush.messages=1"] if name == SYNCED else []))
            _produce(bench, client, sides, root)
            _fetch(bench, client, {name: place for name, place in sides.items() if name != SYNCED})
            _latency(bench, client, sides, root)
            _beside(bench, client, {name: place for name, place in sides.items() if name != "broker"})


def _turns(bench: Bench, sides: dict[str, Place]) -> Iterator[tuple[bool, str, Place]]:
    """The sides in a random order, round after round; whether a round counts, which the first does not."""
    for number in range(bench.rounds + 1):
        order = list(sides)
        random.shuffle(order)
        for name in order:
            os.sync()
            time.sleep(ASLEEP_S)
            yield number > 0, name, sides[name]


def _keep(bench: Bench, case: str, seconds: dict[str, list[float]], cpu: dict[str, list[float]]) -> None:
    """Times with the CPU seconds of each side's server alone, and both by byte."""
    bench.times(case, "server", seconds, records=RECORDS, cpu={name: statistics.median(used) for name, used in cpu.items()})
    size = RECORDS * BYTES
    figures: dict[str, object] = {}
    for name, times in seconds.items():
        figures[f"{name}, MB a second"] = round(size / statistics.median(times) / 1e6, 1)
        figures[f"{name}, CPU seconds a GB"] = round(statistics.median(cpu[name]) / size * 1e9, 2)
    for name, times in seconds.items():
        if name != "server":
            pairs = [theirs / ours for theirs, ours in zip(times, seconds["server"], strict=True)]
            figures[f"server to {name}, by rounds"] = f"{statistics.median(pairs):.2f} ({min(pairs):.2f} to {max(pairs):.2f})"
    bench.note(f"{case}, by bytes", **figures)


def _produce(bench: Bench, client: Client, sides: dict[str, Place], root: str) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    cpu: dict[str, list[float]] = {name: [] for name in sides}
    commits = []
    for counts, name, place in _turns(bench, sides):
        spent, version = cpu_seconds([place.pid]), _version(root, "t")
        took = float(client.ask("produce", place.address, place.topic, 5, RECORDS, BYTES, 0)[0])
        if counts:
            seconds[name].append(took)
            cpu[name].append(cpu_seconds([place.pid]) - spent)
            if name == "server":
                commits.append((_version(root, "t") - version) / took)
    _keep(bench, "serve: produce, linger 5 ms", seconds, cpu)
    bench.note("serve: commits a second at full speed", commits=round(statistics.median(commits), 1))


def _fetch(bench: Bench, client: Client, sides: dict[str, Place]) -> None:
    """Reads what the produces have written, from the start."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    cpu: dict[str, list[float]] = {name: [] for name in sides}
    for counts, name, place in _turns(bench, sides):
        spent = cpu_seconds([place.pid])
        took = float(client.ask("fetch", place.address, place.topic, PARTITIONS, RECORDS)[0])
        if counts:
            seconds[name].append(took)
            cpu[name].append(cpu_seconds([place.pid]) - spent)
    _keep(bench, "serve: fetch", seconds, cpu)


def _latency(bench: Bench, client: Client, sides: dict[str, Place], root: str) -> None:
    for linger in LINGERS_MS:
        found: dict[str, list[list[float]]] = {name: [] for name in sides}
        commits = []
        for counts, name, place in _turns(bench, sides):
            version = _version(root, "t")
            took, *figures = client.ask("produce", place.address, place.topic, linger, RATE * LATENCY_S, 100, RATE)
            if counts:
                found[name].append([float(each) for each in figures])
                if name == "server":
                    commits.append((_version(root, "t") - version) / float(took))
        told: dict[str, object] = {}
        for name, rounds in found.items():
            for which, values in zip(("p50", "p99"), zip(*rounds, strict=True), strict=False):
                told[f"{name} {which}"] = f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"
        bench.note(
            f"serve: milliseconds to an acknowledgement, {RATE} records a second, linger {linger} ms",
            **told,
            **{"commits a second": round(statistics.median(commits), 1)},
        )


def _beside(bench: Bench, client: Client, sides: dict[str, Place]) -> None:
    """Heartbeats and small fetches while nothing else is asked, and beside producers whose requests are large."""
    found: dict[str, list[list[float]]] = {f"{name}, {when}": [] for name in sides for when in ("idle", "beside")}
    with contextlib.closing(Client()) as other:
        for name, place in sides.items():
            synced = ["flush.messages=1"] if name == SYNCED else []
            replace(place, topic=f"large-{place.topic}").create(client, f"max.message.bytes={2 * LARGE_BYTES}", *synced)
        for counts, name, place in _turns(bench, sides):
            for when in ("idle", "beside"):
                if when == "beside":
                    other.ask("load", place.address, f"large-{place.topic}", LARGE, LARGE_BYTES)
                    time.sleep(ASLEEP_S)
                figures = client.ask("probe", place.address, place.topic, 500, 5)
                if when == "beside":
                    other.ask("rest")
                if counts:
                    found[f"{name}, {when}"].append([float(each) for each in figures])
    for name, rounds in found.items():
        told = [f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})" for values in zip(*rounds, strict=True)]
        named = dict(zip(("heartbeat p50", "heartbeat p99", "heartbeat most", "fetch p50", "fetch p99", "fetch most"), told, strict=True))
        bench.note(f"serve: milliseconds of small requests, {LARGE} producers of {LARGE_BYTES >> 20} MiB: {name}", **named)


def _steady(bench: Bench, client: Client, place: Place, root: str, minutes: int) -> None:
    """Notes each period, so that a figure that grows is seen."""
    place.create(client)
    client.ask("watch", place.address, place.topic)
    every = 5 if minutes > 10 else 1
    for minute in range(every, minutes + 1, every):
        spent = cpu_seconds([place.pid])
        count = STEADY_RATE * every * 60
        _, p50, p99, most = map(float, client.ask("produce", place.address, place.topic, 0, count, 100, STEADY_RATE))
        _, seen50, seen99, seen = map(float, client.ask("seen", count))
        bench.note(
            f"serve: {STEADY_RATE} records a second for {minutes} minutes, minute {minute}",
            **_sizes(root, place.topic),
            **{"heap MB": _heap_mb(place.pid), "RSS MB": _rss_mb(place.pid)},
            **{"ack p50": round(p50, 1), "ack p99": round(p99, 1), "ack most": round(most, 1)},
            **{"seen p50": round(seen50, 1), "seen p99": round(seen99, 1), "seen most": round(seen, 1)},
            **{"CPU percent": round((cpu_seconds([place.pid]) - spent) / (every * 60) * 100, 1), "load": round(os.getloadavg()[0], 1)},
        )


def _version(root: str, topic: str) -> int:
    return Log(root)[topic].commits(1)[0].version


def _sizes(root: str, topic: str) -> dict[str, int]:
    folder = Path(root) / "_partlog" / topic
    data = [file.stat().st_size for file in _files(folder / "data")]
    return {
        "version": _version(root, topic),
        "version files": len(list(folder.glob("*.json"))),
        "segments": len(Log(root)[topic].segments()),
        "data files": len(data),
        "data bytes": sum(data),
        "all bytes": sum(file.stat().st_size for file in _files(Path(root))),
    }


def _files(folder: Path) -> Iterator[Path]:
    """The files below a folder, while others delete files."""
    for name, _, files in os.walk(folder):
        for file in files:
            path = Path(name) / file
            if path.exists():
                yield path


def _heap_mb(pid: int) -> int:
    """The live objects of the heap, after a full collection."""
    subprocess.run(["jcmd", str(pid), "GC.run"], capture_output=True, check=True)
    said = subprocess.run(["jstat", "-gc", str(pid)], capture_output=True, text=True, check=True).stdout.splitlines()
    figures = dict(zip(said[0].split(), said[1].split(), strict=True))
    return round(sum(float(figures[name]) for name in ("S0U", "S1U", "EU", "OU")) / 1024)


def _rss_mb(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
