"""Full disks, read-only disks, missing permissions, wrong clocks: nothing acknowledged is lost, and what to do is said."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from audits import POOLS, SPILLS, Writer, audit, view
from disks import formatted, mounted, needs_disk
from handmade import seeded
from logtool import TIMEOUT_S, LogTool, commits
from verifying import faults

pytestmark = pytest.mark.slow

POWERLESS = ("setpriv", "--inh-caps=-all", "--bounding-set=-all") if os.geteuid() == 0 else ()
"""Starts a process without the rights of root, which no permission of a file stops."""
WAY_OUT = "Check that the root can be reached, has room, and is writable for this user. Then run the write again."
MAKE_ROOM = (
    "(make room first: the folders of the Kafka view, such as orders-0/, may be deleted, since CALL partlog.publish makes them again)"
)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    with mounted("ext4", formatted("ext4", 128, tmp_path / "image"), tmp_path / "disk") as place:
        yield place


def failure(tool: LogTool, *words: str, **arguments: object) -> str:
    process = tool.start(*words, **arguments)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode != 0, out
    return err.splitlines()[0] if err.startswith("Exception") else err


def permitted(*paths: Path, write: bool) -> None:
    for path in paths:
        mode = path.stat().st_mode
        path.chmod(mode | 0o200 if write else mode & ~0o222)


def fill(tool: LogTool, disk: Path, times: int) -> None:
    """Two writers commit until the disk is full, which it is sooner or later."""
    chance = seeded()
    here = replace(tool, root=disk / "root")
    acknowledged, loads = {}, {}
    for life in range(times):
        room = chance.randrange(4096, 400_000)
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file:
            while (free := shutil.disk_usage(disk).free) > room:
                file.write(bytes(max(4096, (free - room) // 2)))
                os.fdatasync(file.fileno())  # Only then the disk has it, and says what is free.
        writers = [Writer(here, f"{name}{life}", load, partitions=2) for name, load in (("S", SPILLS), ("P", POOLS))]
        for writer in writers:
            writer.join()
        for writer in writers:
            (error, *_) = (line for line in writer.errors if line.startswith("Exception"))
            assert "No space left on device" in error and str(here.root) in error, error
            # A task's failure gets its way out from the sink.
            assert not re.search("PARTLOG_(?!COMMIT_UNKNOWN)", error) or MAKE_ROOM in error, error
            loads[writer.tag] = writer.load
            acknowledged |= dict.fromkeys(writer.acknowledged, writer.load)
        audit(here, acknowledged, loads)  # While it is full.
        filler.unlink()
    here.run("append", tag="next", tasks=POOLS.tasks, records=POOLS.records, partitions=2)
    assert "next-0" in audit(here, {**acknowledged, "next-0": POOLS}, {**loads, "next": POOLS})
    print(f"{times} times full, {len(acknowledged)} acknowledged commits")


@needs_disk("ext4")
def test_a_full_disk(tool: LogTool, disk: Path) -> None:
    """Commits fail with a way out, or are done; readers do not mind; with space again, the next writer goes on."""
    fill(tool, disk, 1)


def fill_up(disk: Path) -> None:
    """To the last byte: no file can grow, and none can be made that is not empty."""
    with (disk / "filler").open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
            os.fsync(file.fileno())


@needs_disk("ext4")
@pytest.mark.parametrize(
    "way", [("change", "what=records", "offsets=0:-1,1:-1"), ("change", "what=delete")], ids=["delete_records", "delete_topic"]
)
def test_room_can_be_made_on_a_disk_that_is_full_to_the_last_byte(tool: LogTool, disk: Path, way: tuple[str, ...]) -> None:
    """As docs/guide/operations.md says, in that order: the Kafka view of a topic, a version, a vacuum, `publish`."""
    here = replace(tool, root=disk / "root")
    here.run("append", tag="A", commits=8, partitions=2, records=40, big=20_000)
    here.run("append", topic="other", tag="O", commits=2, partitions=2)
    fill_up(disk)
    for words in (("append", "tag=B"), way):
        err = failure(here, *words)
        assert "No space left on device" in err and MAKE_ROOM in err, err
    for folder in here.root.glob("t-*"):
        shutil.rmtree(folder)
    here.run(*way)
    here.run("vacuum", clock=1, topic="t" if "what=records" in way else "other")
    blocks = os.statvfs(disk)  # with those that are reserved for root, as the filler took them too
    free = blocks.f_bfree * blocks.f_frsize
    assert free > 4_000_000, free
    here.run("append", tag="C", partitions=2, records=40, big=20_000)
    here.run("publish")
    lines = here.run("read")
    assert len(lines) == 80 + 1 and all("C-0:" in line for line in lines[:-1])
    assert commits(here.read("other")) == {"O-0": 20, "O-1": 20}
    assert faults(here.root) == []


@needs_disk("ext4")
@pytest.mark.soak
def test_a_disk_that_is_full_forty_times(tool: LogTool, disk: Path) -> None:
    """As above."""
    fill(tool, disk, 40)


@needs_disk("ext4")
def test_a_read_only_disk(tool: LogTool, disk: Path) -> None:
    """Readers do not mind. A writer says what is wrong, and where."""
    here = replace(tool, root=disk / "root")
    here.run("append", tag="A")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    err = failure(here, "append", tag="B")
    assert (
        f"to topic t under {here.root} failed" in err and "Read-only file system" in err and err.endswith(WAY_OUT) and MAKE_ROOM not in err
    ), err
    audit(here, {"A-0": POOLS}, {"A": POOLS})
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    here.run("append", tag="C")
    assert audit(here, {"A-0": POOLS, "C-0": POOLS}, {"A": POOLS, "C": POOLS}) == {"A-0", "C-0"}


def test_who_may_only_read_can_read(tool: LogTool) -> None:
    """Readers in Java and in Python need no right to write, and leave nothing behind. A writer says what it may not do."""
    tool.run("append", tag="A", commits=101)
    everything = [tool.root, *tool.root.rglob("*")]
    permitted(*everything, write=False)
    user = replace(tool, prefix=POWERLESS)
    assert commits(user.read()) == {f"A-{n}": 20 for n in range(101)}
    count = f"import sparklog; print(len(sparklog.Log({str(tool.root)!r}).topic('t').read()))"
    done = subprocess.run([*POWERLESS, sys.executable, "-c", count], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.stdout == "2020\n", done.stderr
    err = failure(user, "append", tag="B")
    assert f"AccessDeniedException: {tool.root}/_partlog/t/data/" in err and err.endswith(WAY_OUT) and MAKE_ROOM not in err, err
    assert sorted(everything) == sorted([tool.root, *tool.root.rglob("*")])
    permitted(*everything, write=True)


def test_who_may_not_write_the_view_commits(tool: LogTool) -> None:
    """The view is behind until a user with the right commits."""
    user = replace(tool, prefix=POWERLESS, java=("-Dorg.apache.logging.log4j.level=WARN",))
    user.run("append", tag="A")
    before = view(tool.root)
    folders = list(tool.root.glob("t-*"))
    permitted(*folders, write=False)
    process = user.start("append", tag="B")
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert "done B-0 1\n" in out and f"AccessDeniedException: {tool.root}/t-" in out, (out, err)
    assert view(tool.root) == before
    permitted(*folders, write=True)
    user.run("append", tag="C")
    assert commits(tool.read()) == {"A-0": 20, "B-0": 20, "C-0": 20}


@pytest.mark.parametrize("file", ["*.json", "data/*/pool.log"])
def test_who_may_not_read_a_file_is_told_which(tool: LogTool, file: str) -> None:
    """No record is left out in silence, in Java or in Python."""
    tool.run("append", tag="A")
    (denied,) = (tool.root / "_partlog/t").glob(file)
    denied.chmod(0)
    try:
        err = failure(replace(tool, prefix=POWERLESS), "read")
        assert str(denied) in err and ("AccessDenied" in err or "access is denied" in err), err
        count = f"import sparklog; sparklog.Log({str(tool.root)!r}).topic('t').read()"
        done = subprocess.run([*POWERLESS, sys.executable, "-c", count], capture_output=True, text=True, timeout=TIMEOUT_S)
        assert "PARTLOG_IO" in done.stderr and str(denied) in done.stderr and "the rights of this user" in done.stderr, done.stderr
    finally:
        denied.chmod(0o644)


def test_clocks_that_are_wrong_by_years(tool: LogTool) -> None:
    """Writers whose clocks are ten years apart take turns. The committed records do not depend on any clock."""
    delay = {"file.delete.delay.ms": 1000}
    acknowledged = {}
    for turn, days in enumerate([3650, -3650, 0]):
        lines = tool.run("append", tag=f"T{turn}", commits=40, clock=days, **delay)
        acknowledged |= {line.split()[1]: POOLS for line in lines}
    assert audit(tool, acknowledged, {f"T{turn}": POOLS for turn in range(3)}) == acknowledged.keys()
