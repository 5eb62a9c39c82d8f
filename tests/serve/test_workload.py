"""Three servers, clients of them and other programs write and read one root while servers and clients die and sleep, and the disk is full.

The histories of the clients have no fault: `serve.histories` says which faults there are.
"""

import contextlib
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from disks import formatted, mounted, needs_disk
from handmade import draw_seed
from logtool import LogTool
from serve.histories import Place, summary
from serve.workload import START_S, Fleet, Group, Producer, SparkBeside, history, until

from sparklog import Log

TOPICS = {"t": 4, "short": 1}
"""With their partitions. Records of `short` expire and are deleted."""
SERVERS = 3
CATCH_UP_S = 240


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with mounted("ext4", formatted("ext4", 400, tmp_path / "image"), tmp_path / "disk") as place:
        yield place


class Acts:
    """Does acts in a thread of its own, each of them before the first one comes again. `counts` has how often."""

    def __init__(self, acts: list[Callable[[random.Random], object]], pauses_s: tuple[float, float], seed: int) -> None:
        self._acts, self._pauses_s, self._chance = acts, pauses_s, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.failure: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while True:
                for act in self._chance.sample(self._acts, len(self._acts)):
                    if self._over.wait(self._chance.uniform(*self._pauses_s)):
                        return
                    act(self._chance)
                    self.counts[act.__name__] += 1
        except BaseException as e:
            self.failure = e

    def end(self) -> None:
        self._over.set()
        self._thread.join()


def of_servers(fleet: Fleet) -> list[Callable[[random.Random], object]]:
    def kill_a_server(chance: random.Random) -> None:
        number = chance.randrange(SERVERS)
        fleet.kill(number)
        time.sleep(chance.uniform(0, 3))
        fleet.start(number)

    def freeze_a_server(chance: random.Random) -> None:
        number = chance.randrange(SERVERS)
        fleet.freeze(number)
        time.sleep(chance.choice([0.3, 2, 6, 12]))
        fleet.wake(number)

    def end_a_server(chance: random.Random) -> None:
        number = chance.randrange(SERVERS)
        fleet.end(number)
        fleet.start(number)

    def freeze_a_server_and_kill_another(chance: random.Random) -> None:
        first, second = chance.sample(range(SERVERS), 2)
        fleet.freeze(first)
        time.sleep(chance.uniform(0.5, 3))
        fleet.kill(second)
        fleet.start(second)
        fleet.wake(first)

    return [kill_a_server, freeze_a_server, end_a_server, freeze_a_server_and_kill_another]


def of_others(tool: LogTool, groups: list[Group], disk: Path) -> list[Callable[[random.Random], object]]:
    def fill_the_disk(chance: random.Random) -> None:
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))
            os.fsync(file.fileno())
            time.sleep(chance.uniform(1, 5))
        filler.unlink()

    def kill_a_member(chance: random.Random) -> None:
        chance.choice(groups).replace(chance.randrange(2))

    def freeze_a_member(chance: random.Random) -> None:
        group, number = chance.choice(groups), chance.randrange(2)
        group.freeze(number)
        time.sleep(chance.choice([1, 9]))
        group.wake(number)

    def merge(chance: random.Random) -> None:
        run("merge", topic=chance.choice(["t", "short"]))

    def vacuum(chance: random.Random) -> None:
        run("vacuum", topic="t")

    def delete_records(chance: random.Random) -> None:
        run("change", what="records", topic="short", offsets=f"0:{max(0, Log(tool.root).topic('short').end_offsets()[0] - 500)}")

    def delete_a_topic(chance: random.Random) -> None:
        run("change", what="delete", topic="gone")
        run("change", what="create", topic="gone")

    def run(*words: str, **arguments: object) -> None:
        process = tool.start(*words, **arguments)
        _, err = process.communicate(timeout=600)
        # Another process may have deleted or created the topic, or may have been faster with each commit.
        assert process.returncode == 0 or "PARTLOG_" in err, err

    return [fill_the_disk, kill_a_member, freeze_a_member, merge, vacuum, delete_records, delete_a_topic]


def work(classpath: str, disk: Path, seconds: float) -> None:
    seed = draw_seed()
    root = disk / "root"
    tool = LogTool(classpath, root)
    tool.run("append", tag="first", topic="t", partitions=TOPICS["t"], kafka_view="none")
    tool.run("append", tag="first", topic="short", partitions=1, kafka_view="none", retention_bytes=100_000, segment_bytes=20_000)
    tool.run("append", tag="first", topic="gone", partitions=1, kafka_view="none")
    places = [Place(topic, partition) for topic, partitions in TOPICS.items() for partition in range(partitions)]
    with Fleet(classpath, root, SERVERS) as fleet:
        chance = random.Random(seed)
        producers = [Producer(fleet.addresses, f"p{number}", places, 0.01, chance.randrange(2**32)) for number in range(3)]
        producers.append(Producer(fleet.addresses, "g", [Place("gone", 0)], 0.05, chance.randrange(2**32)))
        groups = [Group(fleet.addresses, protocol, protocol, list(TOPICS), chance) for protocol in ("classic", "consumer")]
        spark = SparkBeside(root, "t")
        until(lambda: bool(spark.done), START_S)
        acts = [
            Acts(of_servers(fleet), (1, 4), chance.randrange(2**32)),
            Acts(of_others(tool, groups, disk), (0.5, 3), chance.randrange(2**32)),
        ]
        try:
            until(lambda: any(each.failure for each in acts), seconds)
        finally:
            for each in acts:
                each.end()
            promised = spark.end()
            sends = [send for producer in producers for send in producer.end()]
            failed = [each.failure for each in acts if each.failure]
            if failed:
                for group in groups:
                    group.end()
        assert not failed, failed
        found = history(root, list(TOPICS), sends, groups, CATCH_UP_S)
        gone = [row["value"] for row in Log(root).topic("gone").read().to_pylist()]
    caught_up = all(group.has_read(found.kept) for group in groups)
    by_spark = Counter(value for each in found.kept.values() for value in each.values if value.startswith("spark."))
    acknowledged = sum(send.offset is not None for send in sends)
    polls = {group.name: sum(len(getattr(each, "records", ())) for each in found.groups[group.name]) for group in groups}
    print(f"{len(sends)} sends, {acknowledged} acknowledged, {len(spark.done)} writes of Spark, polled {polls}, caught up: {caught_up}")
    print(f"acts {dict(acts[0].counts + acts[1].counts)}, errors of producers {dict(sum((each.errors for each in producers), Counter()))}")
    print(f"errors of members { {group.name: dict(group.errors) for group in groups} }, of Spark {spark.errors}")
    print(f"starts that a full disk refused {len(fleet.refused_starts)}")
    assert fleet.ended == [], "servers ended by themselves"
    faults = found.faults()
    assert not faults, summary(faults)
    assert by_spark == dict.fromkeys(by_spark, 1) and set(promised) <= set(by_spark), "records of Spark are lost or doubled"
    assert len(gone) == len(set(gone))
    assert all(each.acknowledged > 0 for each in producers) and spark.done and all(polls.values()) and acts[0].counts, (
        "the run shows nothing"
    )
    assert Log(root).verify().ok, Log(root).verify()


@needs_disk("ext4")
@pytest.mark.slow
def test_a_minute_of_accidents_shows_no_fault(serve_classpath: str, disk: Path) -> None:
    work(serve_classpath, disk, 60)


@needs_disk("ext4")
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_ten_minutes_of_accidents_show_no_fault(serve_classpath: str, disk: Path) -> None:
    work(serve_classpath, disk, 600)
