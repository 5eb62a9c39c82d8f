"""A driver of streaming queries is killed, stopped and put to sleep anywhere: each record is in the output once, each epoch is whole."""

import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from handmade import seeded
from spark.streaming_driver import NAMES, RUNNING
from spark.streams import Queries

pytestmark = pytest.mark.slow

Start = Callable[..., Queries]

BIG = 600_000
"""Bytes of half of the values: two of them in a partition get a file of their own."""
STEPS = {
    "sources.put": 0,
    "task.write": BIG,
    "task.sync": BIG,
    "task.done": BIG,
    "commit.pool": 0,
    "commit.read": 0,
    "commit.put": 0,
    "commit.link": BIG,
    "commit.linked": 0,
    "commit.synced": 0,
    "commit.done": 0,
    "publish.stamp": BIG,
    "publish.index": 0,
    "publish.log": BIG,
    "publish.done": 0,
    "checkpoint.put": 0,
    "checkpoint.done": 0,
}
"""The steps of FORMAT.md section L.2 that an epoch reaches, and how large its records are for that."""


@pytest.fixture
def queries(java_classpath: str, jvm_for_programs: dict[str, str], tmp_path: Path) -> Iterator[Start]:
    """Makes the queries with the given names. Their drivers end with the test."""
    made: list[Queries] = []

    def make(*names: str) -> Queries:
        made.append(Queries(java_classpath, tmp_path, *names, jvm=jvm_for_programs))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.fixture
def moments() -> random.Random:
    return seeded()


def killed(queries: Queries, kills: int, moments: random.Random) -> None:
    """Kills the driver at random moments; after each, what is there so far must be right."""
    begun = time.monotonic()
    queries.feed(500)
    for life in range(kills):
        driver = queries.start("always", maxOffsetsPerTrigger=moments.choice([7, 40, 90]))
        driver.until_says(RUNNING)
        if life % 5 == 1:
            queries.feed(40, topic=f"in-later-{life}", partitions=3)
        # The more of the queries, the slower their triggers.
        time.sleep(moments.random() * (1 + len(queries.names)))
        driver.kill()
        queries.check(whole=False)
        queries.feed(moments.choice([40, 400]), big=moments.choice([0, 10_000]))
    queries.run(maxOffsetsPerTrigger=400)
    epochs = queries.check()
    print(f"{', '.join(queries.names)}: {kills} kills, {epochs} epochs, {time.monotonic() - begun:.0f} s")


def stopped(queries: Queries, steps: list[str], action: str, moments: random.Random) -> None:
    """Stops a driver at each step, and starts the next one."""
    begun = time.monotonic()
    for n, step in enumerate(steps):
        queries.feed(60, topic=f"in-new-{n}" if step == "sources.put" else "in-a", big=STEPS[step])
        each_epoch = step.startswith(("task.", "commit.", "publish."))
        stop = f"{step}:{action}:{moments.choice([1, 2]) if each_epoch else 1}"
        driver = queries.start(stop=stop, maxOffsetsPerTrigger=25)
        status = driver.wait()
        assert f"partlog: {action} at {step}" in driver.text(), f"{stop} was not reached:\n{driver.text()}"
        assert (status == 0) == (action == "throw"), driver.text()
        queries.check(whole=action == "throw")
    queries.run()
    epochs = queries.check()
    print(f"{', '.join(queries.names)}: {action} at {len(steps)} steps, {epochs} epochs, {time.monotonic() - begun:.0f} s")


def overtaken(queries: Queries, stop: str) -> None:
    """A driver stops at a step; another one runs to the end; the first goes on."""
    queries.feed(200)
    release = queries.folder / "release"
    sleeper = queries.start("always", stop=f"{stop}:pause:2", release=release)
    sleeper.until_says("partlog: pause at")
    sleeper.send(signal.SIGSTOP)
    queries.feed(200)
    queries.run()
    queries.check()
    release.touch()
    sleeper.send(signal.SIGCONT)
    assert sleeper.wait() != 0, "two drivers cannot go on from one checkpoint"
    queries.check()


@pytest.mark.soak
def test_killed_at_random_moments(queries: Start, moments: random.Random) -> None:
    killed(queries(), 1, moments)


def test_stopped_at_steps(queries: Start, moments: random.Random) -> None:
    stopped(queries("append", "own"), ["sources.put", "commit.linked"], "halt", moments)


def test_a_driver_that_is_overtaken(queries: Start) -> None:
    overtaken(queries("append"), "commit.link")


@pytest.mark.soak
@pytest.mark.parametrize("names", [*((name,) for name in NAMES), NAMES], ids=lambda names: "-".join(names))
def test_killed_thirty_times(queries: Start, moments: random.Random, names: tuple[str, ...]) -> None:
    killed(queries(*names), 30, moments)


@pytest.mark.soak
@pytest.mark.parametrize("action", ["halt", "throw"])
@pytest.mark.parametrize("name", NAMES)
def test_stopped_at_every_step(queries: Start, moments: random.Random, name: str, action: str) -> None:
    each = queries(name)
    # So that a checkpoint is due within the first epochs.
    for topic in ("split-0", "split-1") if name == "split" else (name,):
        each.output.run("append", topic=topic, tag="before", commits=99, records=1)
    steps = [step for step in STEPS if not step.startswith("checkpoint.")]
    moments.shuffle(steps)
    stopped(each, ["checkpoint.put", "checkpoint.done", *steps, "sources.put"], action, moments)


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("step", ["commit.pool", "commit.link", "commit.linked", "commit.done"])
def test_overtaken_at_steps(queries: Start, name: str, step: str) -> None:
    overtaken(queries(name), step)


@pytest.mark.soak
def test_overtaken_at_random_moments(queries: Start, moments: random.Random) -> None:
    """The first driver sleeps anywhere, all queries at once, and wakes while a third one runs."""
    each = queries()
    each.feed(200)
    refused = 0
    for _ in range(10):
        sleeper = each.start("always", maxOffsetsPerTrigger=moments.choice([7, 40, 90]))
        sleeper.until_says(RUNNING)
        time.sleep(moments.random() * 6)
        sleeper.send(signal.SIGSTOP)
        each.feed(100)
        each.run()
        each.check()
        each.feed(200)
        other = each.start(maxOffsetsPerTrigger=moments.choice([7, 40, 90]))
        other.until_says(RUNNING)
        sleeper.send(signal.SIGCONT)
        refused += other.wait() != 0
        sleeper.kill()
        each.check(whole=False)
        each.run()
        each.check()
    print(f"10 drivers overtaken, {refused} drivers beside one that woke gave up")
