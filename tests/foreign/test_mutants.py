"""Three readers on mutants of roots: the same records, or all refuse. No reader hangs, crashes, or leaves the root."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import broken_bindings
import broken_reroutes
import pytest
from foreign.batches import Row
from foreign.mutants import Mutant
from foreign.three import as_java, foreign, java, python
from handmade import Record, Topic, batch, batches, draw_seed, featured, records
from logtool import LogTool
from odd_batches import RIGHT

OUTSIDE = b"a file outside of the root"


def plain(root: Path) -> None:
    """Two partitions, a merge, an index behind a segment, deleted records, and a checkpoint in the middle."""
    topic = Topic(root, partitions=2)
    first, second = topic.data(batches(records(5, "a"), records(4, "b"))), topic.data(batch(records(4, "p")), 1)
    topic.commit(first, second)
    indexed = topic.data(batches(*[records(3, "c")] * 6), name="p0-t0-0-0.log")
    with (topic.folder / indexed["file"]).open("ab") as file:
        for number in range(1, 6):
            file.write((3 * number + 2).to_bytes(4, "big") + (number * indexed["bytes"] // 6).to_bytes(4, "big"))
    topic.commit({**indexed, "index": 40})
    merged = topic.data(batches(records(5, "a"), records(4, "b")), name="p0-t0-0-1.log", base=0, end=9)
    topic.commit(merged, removed=[first], operation="merge")
    topic.checkpoint()
    topic.commit(operation="delete-records", starts=[3, 0])
    topic.append([Record(None, None), Record(b"", b"", headers=((b"h", None),))], 1)


def gone(root: Path) -> None:
    """A topic whose checkpoint is all that is left of its first versions, with codecs and gaps."""
    topic = Topic(root)
    for codec, payload in list(RIGHT.values())[::5]:
        octets = batch([], payload=payload, records=50, last_offset_delta=49, attributes=_CODECS.index(codec), base_timestamp=0)
        topic.commit(topic.data(octets, routed=False, maxTimestamp=2**50, minTimestamp=0))
    topic.commit(topic.data(batch(records(2), deltas=[0, 2], last_offset_delta=4) + batch([], 5, last_offset_delta=2), offsets="tiled"))
    topic.checkpoint()
    for version in range(len(topic.versions) - 1):
        topic.version_file(version).unlink()
    topic.append(records(3))


_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def rerouted(root: Path) -> None:
    topic = Topic(root, partitions=2)
    routed = broken_reroutes.grown(topic)
    names = featured("routing.slots")
    topic.checkpoint(features=names, routing=routed.routing())
    topic.commit(topic.data(batch(records(3)), routed=False), features=names)


def bound(root: Path) -> None:
    topic = Topic(root, partitions=2)
    made = broken_bindings.rerouted(topic)
    names = topic.versions[-1]["features"]
    topic.checkpoint(features=names, routing=made.routing())
    made.take(made.bind({0: [11]}, topic.data(batch(records(2)), routed=False)))


BASES: dict[str, Callable[[Path], None]] = {"plain": plain, "gone": gone, "rerouted": rerouted, "bound": bound}


def compared(classpath: str, folder: Path, seed: int, count: int) -> Counter[str]:
    """How often all readers returned the same records, and how often all refused."""
    for name, made in BASES.items():
        made(folder / "bases" / name)
        assert isinstance(foreign(folder / "bases" / name), list), foreign(folder / "bases" / name)
    # A name of a data file could lead there.
    outside = folder / "elsewhere"
    outside.mkdir()
    (outside / "pool.log").write_bytes(OUTSIDE)
    found: Counter[str] = Counter()
    for number in range(count):
        drawn = random.Random(f"{seed} {number}")
        base, root = drawn.choice(list(BASES)), folder / f"root-{number}"
        shutil.copytree(folder / "bases" / base, root)
        what = f"seed {seed}, mutant {number} of {base}, {Mutant(root, drawn).what}"
        tool = LogTool(classpath, root)
        mine, here, there = foreign(root), python(root), java(tool)
        if isinstance(mine, str):
            assert isinstance(here, str) and isinstance(there, str), (what, mine, here[:2], there[:2])
            found["refused"] += 1
        else:
            assert here == mine, (what, here, _difference(mine, here))
            assert there == as_java(mine), (what, there)
            found["same"] += 1
        shutil.rmtree(root)
    print(f"{count:,} mutants: {found['same']:,} with the same records, {found['refused']:,} refused by all")
    return found


def _difference(mine: list[Row], here: list[Row] | str) -> object:
    return here if isinstance(here, str) else sorted(set(mine) ^ set(here))[:4]


def test_mutants(java_classpath: str, tmp_path: Path) -> None:
    found = compared(java_classpath, tmp_path, draw_seed(), 200)
    assert min(found["same"], found["refused"]) > 40, found


@pytest.mark.slow
def test_many_mutants(java_classpath: str, tmp_path: Path) -> None:
    found = compared(java_classpath, tmp_path, draw_seed() + 1, 5_000)
    assert min(found["same"], found["refused"]) > 1_000, found


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize(("field", "values"), [("segments", [1, 2**63 - 1]), ("ends", [15, 6]), ("ends", [15, 9]), ("ends", [15, 4])])
def test_a_checkpoint_with_wrong_numbers(java_classpath: str, tmp_path: Path, field: str, values: list[int], goes_on: bool) -> None:
    """The version of the checkpoint names neither, so only the lines show the damage. Readers go on without the checkpoint.

    A version that follows is right, although it does not fit the numbers.
    """
    topic = Topic(tmp_path / "root", partitions=2)
    topic.commit(topic.data(batch(records(15))), topic.data(batch(records(5)), 1))
    topic.commit()
    topic.checkpoint(**{field: values})
    if goes_on:
        topic.append(records(2), 1)
    here = foreign(topic.root)
    assert len(here) == 20 + 2 * goes_on
    assert here == python(topic.root)
    assert as_java(here) == java(LogTool(java_classpath, topic.root))
