"""`verify` finds every fault that is planted in a root, names its file and its byte, and says nothing of the root without it."""

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from handmade import draw_seed
from logtool import LogTool
from planting import PLANTS, Planted, Root, checked
from verify import plants_forged, plants_in_files

KINDS = (plants_in_files, plants_forged)
"""Modules that fill PLANTS."""
SAMPLE = 1
"""Faults of each kind in a short run."""
MANY = 25


@pytest.fixture(scope="module")
def written(java_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with checkpoints, merged, deleted, recreated and compressed topics, whose old version files and data files are gone."""
    root = tmp_path_factory.mktemp("planted") / "root"
    tool = LogTool(java_classpath, root)
    small = {"tasks": 2, "records": 10}
    spilled = {"tasks": 2, "records": 40, "big": 200, "buffer": 4000, "batch": 1000}
    kept = {"query": "q", "file.delete.delay.ms": 0, "pace": 2}
    tool.run("append", topic="t", tag="a", commits=8, epoch=0, merge=30_000, **spilled, **kept)
    tool.run("append", topic="t", tag="b", commits=3, epoch=8, **small, **kept)
    tool.run("append", topic="z", tag="a", commits=2, tasks=2, records=300, big=50, buffer=4000, batch=4000, **{"compression.type": "zstd"})
    tool.run("append", topic="d", tag="a", commits=2, **small)
    tool.run("change", topic="d", what="delete")
    tool.run("append", topic="r", tag="a", commits=2, **small)
    tool.run("change", topic="r", what="delete")
    tool.run("append", topic="r", tag="b", commits=2, **spilled)
    tool.run("change", topic="r", what="records", offsets="0:5,1:7")
    tool.run("change", topic="r", what="partitions", to=6)
    tool.run("append", topic="r", tag="c", commits=2, partitions=6, **small)
    assert checked(root).findings == []
    return root


def plant_many(written: Path, folder: Path, times: int) -> None:
    first = draw_seed()
    missed: list[str] = []
    found: Counter[str] = Counter()
    severities: Counter[str] = Counter()
    for number, kind in enumerate(PLANTS):
        some = random.Random(first + number)
        for _ in range(times):
            planted: Planted | None = None
            while planted is None:
                root = Root.copy(written, folder / "copy")
                planted = kind(root, some)
                report = checked(root.path) if planted else None
                shutil.rmtree(root.path)
            assert report is not None
            if why := planted.missed(report):
                missed.append(f"{kind.__name__}: {why}")
            found[kind.__name__] += 1
            severities.update({each.severity for each in report.findings})
    print(f"{sum(found.values())} faults of {len(found)} kinds: {dict(severities)}")
    assert missed == []


def test_faults_of_every_kind_are_found(written: Path, tmp_path: Path) -> None:
    plant_many(written, tmp_path, SAMPLE)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_hundreds_of_faults_are_found(written: Path, tmp_path: Path) -> None:
    plant_many(written, tmp_path, MANY)
