"""Partitions change while a topic is written and read, and programs are killed: each key stays in order. FORMAT.md sections 7 and A.9."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from logtool import TIMEOUT_S, LogTool
from protocol import ordered_consumer
from rerouting import CHANGES, KEYS, OPERATOR_STEPS, World, run
from verifying import faults

from sparklog import Consumer, Log

CONSUMER_STEPS = ["polled", "told", "committed"]


def consume(world: World) -> None:
    """Lives of a consumer of one group, each up to a step; the last one reads all that is left."""
    while True:
        step = "none" if world.ended.is_set() else world.random.choice(CONSUMER_STEPS)
        words = [world.tool.root, world.folder / "offsets", world.folder / "said", step, world.random.randint(1, 8)]
        command = [sys.executable, ordered_consumer.__file__, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, env={"PYTHONPATH": ":".join(sys.path)})
        if step == "none":
            assert done.returncode == 0, done.stderr
            return
        assert done.returncode == -9, done.stderr


def told(world: World) -> Iterator[tuple[int, int, str, str] | None]:
    """The records that consumers wrote down; None where one began."""
    for line in (world.folder / "said").read_text().splitlines():
        partition, *rest = line.split(" ")
        yield None if partition == "begins" else (int(partition), int(rest[0]), rest[1], rest[2])


def check_consumed(world: World) -> dict[tuple[int, int], str]:
    """Each life of the consumer saw each key without a gap, and began at most where the one before it had come to."""
    known: Counter[str] = Counter()
    last: dict[str, int] = {}
    values: dict[tuple[int, int], str] = {}
    for record in told(world):
        if record is None:
            last = {}
            continue
        partition, offset, key, value = record
        index = world.index(key, value)
        place = f"key {key} at {partition}:{offset}"
        assert index == last.get(key, index - 1) + 1, f"record {index} of {place} comes after {last.get(key)}"
        assert index <= known[key], f"record {index} of {place} comes after {known[key] - 1}"
        last[key] = index
        known[key] = max(known[key], index + 1)
        assert values.setdefault((partition, offset), value) == value
    return values


def check_all(world: World, values: dict[tuple[int, int], str]) -> None:
    """A batch read has every record once; by routing epoch and offset, each key is in order."""
    root = world.tool.root
    read = {(p, o): value for p, its in world.tool.read().items() for o, value in enumerate(its)}
    assert read == values, "the consumers have not got what there is"
    reroutes = Log(root)["t"].describe()["routing"]["reroutes"]
    table = Log(root)["t"].read(columns=["partition", "offset", "key", "value"]).to_pylist()
    for row in table:
        assert values[row["partition"], row["offset"]] == row["value"].decode()

    def epoch(row: dict[str, int]) -> int:
        return sum(row["partition"] >= len(each["cut"]) or each["cut"][row["partition"]] <= row["offset"] for each in reroutes)

    order: dict[str, list[int]] = {f"k{key}": [] for key in range(KEYS)}
    for row in sorted(table, key=lambda row: (epoch(row), row["partition"], row["offset"])):
        order[row["key"].decode()].append(world.index(row["key"].decode(), row["value"].decode()))
    for key in range(KEYS):
        assert order[f"k{key}"] == list(world.expected(key)), key


def disorder(world: World) -> int:
    """How many records a consumer gets before one of the same key that was written earlier."""
    last: dict[str, int] = {}
    found = 0
    with Consumer(world.tool.root, "t", auto_offset_reset="earliest") as consumer:
        while batch := consumer.poll(max_records=150):
            for records in batch.values():
                for record in records:
                    index = world.index(key := record.key.decode(), record.value.decode())
                    found += index != last.get(key, -1) + 1
                    last[key] = index
    return found


@pytest.mark.slow
def test_each_key_stays_in_order(tool: LogTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tool, tmp_path, 1)
    run(world, [["admin.put"], ["admin.linked"], ["admin.put"], ["admin.linked"], ["admin.linked"]], lambda: consume(world))
    check_all(world, check_consumed(world))
    assert faults(world.tool.root, unfinished=True) == []
    assert disorder(world) == 0
    monkeypatch.setattr("sparklog.consumer.reroutes.until", lambda open, partition: 2**63 - 1)
    assert disorder(world) > 0, "without the barrier"


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_each_key_stays_in_order_for_long(tool: LogTool, tmp_path: Path, seed: int) -> None:
    world = World(tool, tmp_path, seed)
    run(world, [world.random.sample(OPERATOR_STEPS, 4) for _ in CHANGES], lambda: consume(world))
    check_all(world, check_consumed(world))
    assert faults(world.tool.root, unfinished=True) == []
    print(f"seed {seed}: {world.epochs} epochs, {world.refused} writers refused")
