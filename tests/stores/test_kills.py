"""Writers are killed at each step on real HDFS and real S3, and servers in the middle of a commit: the next writer goes on by itself."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from audits import POOLS, SPILLS, Load, Writer, audit
from logtool import MERGE_BYTES, TIMEOUT_S, LogTool
from stores.hdfs import Hdfs
from stores.roots import in_hdfs, in_s3
from stores.s3 import S3

FEW_STEPS = ["task.sync", "commit.link", "commit.linked", "merge.put", "delete.file", "clean.version"]
"""The steps around which most differs, for `make test-stores`."""
STEPS = [
    *("task.write", "task.sync", "task.done"),
    *("commit.pool", "commit.read", "commit.put", "commit.link", "commit.linked", "commit.synced", "commit.look", "commit.done"),
    *("merge.write", "merge.put", "merge.linked"),
    *("delete.file", "checkpoint.put", "checkpoint.done", "clean.checkpoint", "clean.version"),
]
ADMIN_STEPS = ["admin.put", "admin.linked"]
TIDY = {"pace": 5, "merge": MERGE_BYTES, "file.delete.delay.ms": 0, "partitions": 2}
"""So that all of it happens within a few commits."""
COMMIT_STEPS = ["commit.pool", "commit.put", "commit.link", "commit.linked"]
LARGE = Load(1, 60, {"big": 200_000, "buffer": 1 << 20})
"""Data files of 12 MB."""


@pytest.fixture
def root(request: pytest.FixtureRequest, jvm: str) -> LogTool:
    """A new root in the store that the parameter names."""
    if request.param == "hdfs":
        return in_hdfs(request.getfixturevalue("hdfs"), jvm)
    request.getfixturevalue("settings_in_environment")
    return in_s3(request.getfixturevalue("s3"), jvm)


on_both = pytest.mark.parametrize("root", ["hdfs", "s3"], indirect=True)


def reached(process: Writer, step: str) -> None:
    """Waits until the writer pauses at the step."""
    until = time.monotonic() + TIMEOUT_S
    while f"partlog: pause at {step}\n" not in process.errors:
        assert process.process.poll() is None and time.monotonic() < until, process.errors
        time.sleep(0.01)


def kill_at(tool: LogTool, steps: list[str]) -> None:
    """Kills one writer after another, each at a step, and audits after each. A last one does all that is left to do."""
    acknowledged: dict[str, Load] = {}
    loads: dict[str, Load] = {}
    for turn, step in enumerate(steps):
        # A task whose records all travel to the driver writes no file.
        load = SPILLS if step.startswith("task") or turn % 2 == 0 else POOLS
        writer = Writer(tool, step.replace(".", "_"), load, 60, stop=f"{step}:pause:{1 + turn % 2}", **TIDY)
        reached(writer, step)
        writer.kill()
        loads[writer.tag] = load
        acknowledged |= dict.fromkeys(writer.acknowledged, load)
        audit(tool, acknowledged, loads)
    lines = tool.run("append", tag="end", commits=12, **TIDY)
    acknowledged |= {line.split()[1]: POOLS for line in lines}
    found = audit(tool, acknowledged, {**loads, "end": POOLS})
    assert len(found - acknowledged.keys()) <= len(steps), "more than was begun"
    print(f"{tool.root}: killed at {len(steps)} steps, {len(acknowledged)} acknowledged commits, {len(found)} there")


@pytest.mark.parametrize("root", ["hdfs"], indirect=True)
def test_writers_killed_at_steps(root: LogTool) -> None:
    kill_at(root, FEW_STEPS)


@pytest.mark.soak
@on_both
def test_writers_killed_at_every_step(root: LogTool) -> None:
    kill_at(root, STEPS)
    for step in ADMIN_STEPS:
        process = root.start("change", what="config", stop=f"{step}:pause", **{"segment.bytes": 1 << 29})
        assert process.stderr
        while f"partlog: pause at {step}" not in process.stderr.readline():
            assert process.poll() is None
        process.kill()
        process.communicate()
        root.run("append", tag=f"after_{step.replace('.', '_')}")
    assert len(root.read()) == 2
    kill_vacuum(root)


def kill_vacuum(tool: LogTool) -> None:
    """A writer dies before its commit. The vacuum that comes for its files is killed, too, and the next one ends the work."""
    writer = Writer(tool, "dies", SPILLS, 1, stop="commit.link:pause", **TIDY)
    reached(writer, "commit.link")
    writer.kill()
    there = tool.read()
    process = tool.start("vacuum", stop="delete.file:pause", clock=2)
    assert process.stderr
    while "partlog: pause at delete.file" not in process.stderr.readline():
        assert process.poll() is None
    process.kill()
    process.communicate()
    assert tool.read() == there
    assert "vacuumed 0 " not in tool.run("vacuum", clock=2)[-1]
    assert "vacuumed 0 " in tool.run("vacuum", clock=2)[-1]
    assert tool.read() == there


def die_while_writing(tool: LogTool) -> Callable[[], object]:
    """A writer that has written the bytes of a data file, and not ended it. Returns what kills it."""
    writer = Writer(tool, "dead", LARGE, 1, stop="task.sync:pause", **TIDY)
    reached(writer, "task.sync")
    return writer.kill


def goes_on(tool: LogTool) -> None:
    """Nothing of the dead writer is there. Others write, merge, delete, clean up, read and vacuum as if it had never been."""
    assert tool.run("read") == ["none"]
    began = time.monotonic()
    lines = tool.run("append", tag="next", commits=6, **TIDY)
    print(f"{tool.root}: six commits after it took {time.monotonic() - began:.1f} s")
    acknowledged = {line.split()[1]: POOLS for line in lines}
    for vacuum in (False, True):
        if vacuum:
            print(tool.run("vacuum", clock=2))
        assert audit(tool, acknowledged, {"dead": LARGE, "next": POOLS}) == {f"next-{n}" for n in range(6)}


def test_the_leases_of_the_dead_do_no_harm_in_hdfs(hdfs: Hdfs, jvm: str) -> None:
    """A file that a dead writer has open is nothing that the next writer waits for, and its lease ends when vacuum deletes it."""
    tool = in_hdfs(hdfs, jvm)
    die_while_writing(tool)()
    assert len(hdfs.open_below(str(tool.root))) == 1
    goes_on(tool)
    assert hdfs.open_below(str(tool.root)) == []


@pytest.mark.usefixtures("settings_in_environment")
def test_unfinished_uploads_of_the_dead_do_no_harm_in_s3(s3: S3, jvm: str) -> None:
    """They are in no listing, and cost room until a rule of the bucket ends them, which does no harm either."""
    tool = in_s3(s3, jvm, **{"fs.s3a.multipart.size": str(5 << 20)})
    below = str(tool.root).removeprefix(f"s3a://{s3.bucket}/")
    kill = die_while_writing(tool)
    until = time.monotonic() + TIMEOUT_S
    while not any(s3.parts(*upload) for upload in s3.unfinished(below)):
        assert time.monotonic() < until, "no part was sent"
        time.sleep(0.05)
    kill()
    left = s3.unfinished(below)
    assert len(left) == 1
    goes_on(tool)
    assert s3.unfinished(below) == left, "only a lifecycle rule of the bucket ends them"
    there = tool.read()
    s3.abort(*left[0])
    assert s3.unfinished(below) == []
    assert tool.read() == there


def survive(tool: LogTool, release: Path, steps: list[str], kill: Callable[[], Callable[[], object]]) -> None:
    """
    A server is killed while a writer is at a step, and comes again, or another takes its place, while the writer goes on.

    kill: kills it, lets another take its place if there is one, and returns what starts it again
    """
    acknowledged: dict[str, Load] = {}
    loads: dict[str, Load] = {}
    stalls: list[float] = []
    errors: list[str] = []
    for step in steps:
        release.unlink(missing_ok=True)
        tag = step.replace(".", "_")
        writer = Writer(tool, tag, SPILLS, 4, stop=f"{step}:pause:2", release=release, goesOn="true", **TIDY)
        reached(writer, step)
        release.touch()
        began = time.monotonic()
        start = kill()
        time.sleep(0.5)
        start()
        assert writer.join() == 0, writer.errors
        loads[tag] = SPILLS
        acknowledged |= dict.fromkeys(writer.acknowledged, SPILLS)
        stalls += [after - max(before, began) for before, after in zip(writer.at, writer.at[1:], strict=False)]
        errors += writer.outcomes.values()
        found = audit(tool, acknowledged, loads)
        untrue = [commit for commit, error in writer.outcomes.items() if error != "COMMIT_UNKNOWN" and commit in found]
        assert not untrue, f"said to have failed, and there: {untrue}"
    print(f"{tool.root}: {len(acknowledged)} acknowledged commits, errors {errors}, longest stall {max(stalls):.1f} s")


@pytest.mark.usefixtures("settings_in_environment")
def test_the_s3_server_is_killed_in_mid_commit(s3: S3, jvm: str, tmp_path: Path) -> None:
    def kill() -> Callable[[], object]:
        s3.kill()
        return s3.start

    survive(in_s3(s3, jvm), tmp_path / "release", ["commit.link"], kill)


@pytest.mark.soak
@pytest.mark.usefixtures("settings_in_environment")
def test_the_s3_server_is_killed_at_each_step_of_a_commit(s3: S3, jvm: str, tmp_path: Path) -> None:
    def kill() -> Callable[[], object]:
        s3.kill()
        return s3.start

    survive(in_s3(s3, jvm), tmp_path / "release", COMMIT_STEPS, kill)


@pytest.mark.soak
def test_the_active_name_node_is_killed_in_mid_commit(hdfs_ha: Hdfs, jvm: str, tmp_path: Path) -> None:
    def kill() -> Callable[[], object]:
        killed = hdfs_ha.failover()
        return lambda: hdfs_ha.start(killed)

    survive(in_hdfs(hdfs_ha, jvm), tmp_path / "release", COMMIT_STEPS, kill)


@pytest.mark.soak
def test_a_data_node_is_killed_in_mid_commit(hdfs_ha: Hdfs, jvm: str, tmp_path: Path) -> None:
    def kill() -> Callable[[], object]:
        hdfs_ha.kill("dn1")
        return lambda: hdfs_ha.start("dn1")

    survive(in_hdfs(hdfs_ha, jvm), tmp_path / "release", COMMIT_STEPS, kill)
