"""Owners of one group that overlap, and die at any step: it skips nothing, and loses no acknowledged commit."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from groups.group_world import Process, World
from handmade import draw_seed

from sparklog.groups.rows import Group, Position

STEPS = 250


def found(seeds: range, folder: Path, changed: Callable[[Process], None] = lambda _: None) -> str | None:
    for seed in seeds:
        if fault := World(seed, folder / str(seed), changed).run(STEPS):
            return f"seed {seed}, {fault}"
    return None


def test_the_group_skips_nothing_and_loses_no_acknowledged_commit(tmp_path: Path) -> None:
    assert found(range(6), tmp_path) is None


def test_commits_that_are_made_whatever_was_committed_before_are_found(tmp_path: Path) -> None:
    """The fault put back: a claim does not notice a commit after it read the positions, nor a commit the claim of another owner."""

    def changed(process: Process) -> None:
        engine = process.table.lake
        conditional = engine.append

        def append(rows: pa.Table, group: str, _: int | None, versions: Mapping[str, int], *__: object) -> int:
            while (version := conditional(rows, group, engine.last(group) + 1, {})) is None:
                pass
            return version

        engine.append = append  # type: ignore[method-assign]

    assert found(range(12), tmp_path, changed) is not None


def test_commits_of_an_owner_that_trusts_its_memory_are_found(tmp_path: Path) -> None:
    """Another fault: what a process remembers of a group is not compared with the number of its newest commit."""

    def changed(process: Process) -> None:
        generations = process.table.generations
        add = generations.add

        def trusting(name: str, generation: int, made: Callable[[Group], list[Position]]) -> int:
            while known := generations.remembered(name, generation):
                added = made(Group(name, list(known.values())))
                if not added or generations.commit(name, process.table.lake.last(name) + 1, generation, added):
                    return len(added)
            return add(name, generation, made)

        generations.add = trusting  # type: ignore[method-assign]

    assert found(range(12), tmp_path, changed) is not None


@pytest.mark.soak
def test_the_same_for_new_seeds(tmp_path: Path) -> None:
    first = draw_seed()
    assert found(range(first, first + 2_000), tmp_path) is None
