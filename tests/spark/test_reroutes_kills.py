"""A query with state for each key reads a topic whose partitions change, and its driver is killed. FORMAT.md section A.9."""

import time
from collections import defaultdict
from pathlib import Path

import pytest
from rerouting import CHANGES, KEYS, OPERATOR_STEPS, World, run
from spark.streams import Queries
from verifying import faults

from sparklog import Log

STEPS = ["sources.put", "task.write", "commit.read", "commit.put", "commit.link", "commit.linked", "commit.done", "publish.done"]


def check(queries: Queries, world: World) -> None:
    """Each record came once, and after the one before it of its key."""
    came: dict[int, list[tuple[int, int]]] = defaultdict(list)
    rows = Log(queries.output.root)["ordered"].read(columns=["key", "value"])
    for key, value in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        before, own = value.decode().split(" ")
        name = key.decode()
        came[int(name[1:])].append((-1 if before == "none" else world.index(name, before), world.index(name, own)))
    for key in range(KEYS):
        assert sorted(came[key]) == [(index - 1, index) for index in world.expected(key)], key
    assert faults(queries.input.root, unfinished=True) == []
    assert faults(queries.output.root, unfinished=True) == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_each_key_stays_in_order_over_kills(java_classpath: str, tmp_path: Path, seed: int) -> None:
    queries = Queries(java_classpath, tmp_path, "ordered")
    world = World(queries.input, tmp_path, seed)
    read = {"subscribe": "t", "maxOffsetsPerTrigger": 400}

    def lives() -> None:
        while not world.ended.is_set():
            step = world.random.choice([None, *STEPS])
            driver = queries.start("always", stop=step and f"{step}:halt:{world.random.randint(1, 4)}", **read)
            until = time.monotonic() + world.random.uniform(4, 16)
            while driver.process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            driver.kill()

    try:
        run(world, [world.random.sample(OPERATOR_STEPS, 4) for _ in CHANGES], lives)
        queries.run(**read)
    finally:
        queries.stop()
    check(queries, world)
    print(f"seed {seed}: {world.epochs} epochs, {len(queries.drivers)} drivers, {len(queries.epochs('ordered'))} micro-batches")
