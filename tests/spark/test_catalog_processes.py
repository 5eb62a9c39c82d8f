"""CREATE TABLE … AS SELECT by two processes of Spark at once, and by one that is killed: one topic whole, or none."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from commit_steps import DONE, NOT_DONE
from handmade import seeded
from pyspark.sql import SparkSession
from spark.statement_driver import Answer, Driver, run
from verifying import faults

from sparklog import Log

EXISTS = ("PARTLOG_TOPIC_EXISTS", "TABLE_OR_VIEW_ALREADY_EXISTS")
RECORDS = 60


def statement(root: Path, topic: str, tag: str, records: int = RECORDS, size: int = 100) -> str:
    """A CTAS by two tasks, of which each has a half of the records."""
    rows = f"SELECT concat('{tag}-', id) AS key, repeat('x', {size}) AS value FROM range(0, {records}, 1, 2)"
    options = "OPTIONS ('write.buffer.bytes' '1048576') TBLPROPERTIES ('partitions' = '3')"
    return f"CREATE TABLE partlog.`{root}`.{topic} USING partlog {options} AS {rows}"


def tags(root: Path, topic: str) -> dict[str, int]:
    """How many records there are of each statement, read without Spark."""
    if not root.exists() or topic not in Log(root).topics():
        return {}
    keys = Log(root).topic(topic).read(columns=["key"])["key"].to_pylist()
    assert len(set(keys)) == len(keys)
    return dict(Counter(bytes(key).decode().partition("-")[0] for key in keys))


@pytest.fixture
def driver(spark: SparkSession, tmp_path: Path) -> Iterator[Driver]:
    """A second process of Spark."""
    second = Driver(tmp_path / "said")
    yield second
    second.kill()


def race(spark: SparkSession, driver: Driver, root: Path, moments: random.Random, rounds: int) -> None:
    """In each round, both begin to create the same topic within a tenth of a second."""
    driver.ready()
    lost: Counter[str] = Counter()
    for number in range(rounds):
        topic, begin = f"t{number}", time.time() + 0.3
        one, two = (statement(root, topic, tag) for tag in ("one", "two"))
        driver.ask(begin + moments.random() / 10, two)
        answers: dict[str, Answer] = {"one": run(spark, begin + moments.random() / 10, one), "two": driver.answer()}
        won = [tag for tag, answer in answers.items() if answer is None]
        assert len(won) == 1, answers
        assert tags(root, topic) == {won[0]: RECORDS}
        assert [version.operation for version in Log(root).topic(topic).commits()] == ["write"]
        condition, text = next(answer for answer in answers.values() if answer is not None)
        assert condition in EXISTS
        assert topic in text and str(root) in text, text
        lost[condition] += 1
    assert faults(root) == []
    print(f"{rounds} races of two processes of Spark: {dict(lost)}")


@pytest.mark.slow
def test_one_of_two_processes_creates_the_table_and_one_that_is_killed_leaves_it_whole_or_none(
    spark: SparkSession, driver: Driver, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    race(spark, driver, root, random.Random(1), 3)
    driver.ask(0, statement(root, "killed", "dead", records=200_000))
    while not list(root.glob("_partlog/killed/**/*")) and driver.process.poll() is None:
        time.sleep(0.001)
    driver.kill()
    there = tags(root, "killed")
    assert there in ({}, {"dead": 200_000})
    answer = run(spark, 0, statement(root, "killed", "next"))
    assert (answer is None) == (there == {}), answer
    assert tags(root, "killed") == (there or {"next": RECORDS})
    assert faults(root, unfinished=True) == []


@pytest.mark.soak
def test_one_of_two_processes_creates_each_of_many_tables(spark: SparkSession, driver: Driver, tmp_path: Path) -> None:
    race(spark, driver, tmp_path / "root", seeded(), 60)


def killed(spark: SparkSession, folder: Path, step: str) -> None:
    """SIGKILL to Python and JVM where the statement has reached a step; then another process creates the topic, if it may."""
    root = folder / "root"
    doomed = Driver(folder / f"said-{step}", f"-Dpartlog.stop={step}:pause -Dpartlog.stop.release={folder / 'never'}")
    try:
        # Each partition has enough for a file of its own, or so little that the driver writes it.
        doomed.ask(0, statement(root, "t", "dead", records=12, size=100 if step == "commit.pool" else 600_000))
        doomed.until_says(f"partlog: pause at {step}")
    finally:
        doomed.kill()
    there = step in DONE
    assert tags(root, "t") == ({"dead": 12} if there else {})
    answer = run(spark, 0, statement(root, "t", "next"))
    assert (answer is None) != there, answer
    assert answer is None or answer[0] in EXISTS
    assert tags(root, "t") == ({"dead": 12} if there else {"next": RECORDS})
    assert faults(root, unfinished=True) == []


@pytest.mark.soak
@pytest.mark.parametrize("step", [step for step in NOT_DONE + DONE if step != "commit.look"])
def test_a_process_that_is_killed_at_a_step_leaves_the_table_whole_or_none(spark: SparkSession, tmp_path: Path, step: str) -> None:
    killed(spark, tmp_path, step)
