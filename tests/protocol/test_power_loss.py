"""The power goes while writers commit: FORMAT.md section 11, I1, I2, I6, I8, I10, on real file systems. Long with `make soak`."""

import random
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from audits import POOLS, SPILLS, Load, Writer, audit, audit_view
from disks import mounted, needs_disk
from handmade import seeded
from logtool import MERGE_BYTES, LogTool
from protocol.powerless_disk import powerless

MEBIBYTES = 320
"""XFS wants that many. The images are sparse."""
EXT4, XFS = needs_disk("ext4"), needs_disk("xfs")
LOADS = {"spills": SPILLS, "pools": POOLS}


def cut_power(tool: LogTool, file_system: str, folder: Path, cuts: int, chance: random.Random) -> tuple[int, Counter[str]]:
    """
    Two writers share a disk, which is cut off `cuts` times; what that leaves is mounted elsewhere and audited.

    Returns how many commits were acknowledged before the last cut, and how many cuts kept what of the disk's cache.
    """
    kept: Counter[str] = Counter()
    images: list[tuple[Path, dict[str, Load]]] = []
    with powerless(file_system, MEBIBYTES, folder) as (disk, place):
        live = replace(tool, root=place / "root")
        # Where all pause, a disk may still hold an acknowledged commit in its cache: no later sync brings it out.
        arguments = {
            "pace": 10,
            "merge": MERGE_BYTES,
            "pause": chance.choice([0, 100]),
            "file.delete.delay.ms": chance.choice([0, 200, 60_000]),
        }
        writers = [Writer(live, tag, load, partitions=2, **arguments) for tag, load in LOADS.items()]
        try:
            for writer in writers:
                writer.wait_for(chance.randrange(3))  # Some cuts come before the first acknowledgement.
            for number in range(cuts):
                time.sleep(chance.uniform(0, 0.6))
                if chance.random() < 0.5:
                    writer = chance.choice(writers)
                    writer.wait_for(len(writer.acknowledged) + 1)
                acknowledged = {commit: writer.load for writer in writers for commit in list(writer.acknowledged)}
                images.append((folder / f"cut-{number}", acknowledged))
                kept[disk.cut(images[-1][0], chance)] += 1
            assert all(writer.process.poll() is None for writer in writers), [writer.errors for writer in writers]
        finally:
            for writer in writers:
                writer.kill()
    for image, acknowledged in images:
        with mounted(file_system, image, folder / "after") as place:
            after = replace(tool, root=place / "root")
            before = audit(after, acknowledged, LOADS)
            after.run("append", tag="next", tasks=POOLS.tasks, records=POOLS.records, partitions=2)
            audit_view(after, power_was_lost=True)
            found = audit(after, {**acknowledged, "next-0": POOLS}, {**LOADS, "next": POOLS})
            assert found == before | {"next-0"}
        image.unlink()
    return len(images[-1][1]), kept


@pytest.mark.parametrize(("file_system", "cuts"), [pytest.param("ext4", 2, marks=EXT4), pytest.param("xfs", 1, marks=XFS)])
def test_power_loss(tool: LogTool, tmp_path: Path, file_system: str, cuts: int) -> None:
    """No acknowledged record is lost, no reader is stuck, and the next writer goes on and makes the view right."""
    print(cut_power(tool, file_system, tmp_path, cuts, seeded()))


@pytest.mark.soak
@pytest.mark.parametrize("file_system", [pytest.param("ext4", marks=EXT4), pytest.param("xfs", marks=XFS)])
def test_a_hundred_power_losses(tool: LogTool, tmp_path: Path, file_system: str) -> None:
    """As above, 100 times on each file system."""
    chance, acknowledged, kept = seeded(), 0, Counter[str]()
    for _ in range(10):
        more, how = cut_power(tool, file_system, tmp_path, 10, chance)
        acknowledged += more
        kept += how
    print(f"{file_system}: 100 cuts, {acknowledged} acknowledged commits before the last cuts of 10 disks, kept of the cache: {kept}")
