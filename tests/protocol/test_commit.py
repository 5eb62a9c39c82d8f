"""The commit protocol, interrupted on purpose: FORMAT.md sections 7, 11 and L.2. Each test names the invariants that it checks."""

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from audits import Load, Writer, view
from commit_steps import DONE, LARGE, NOT_DONE, WHOLE, step
from handmade import seeded
from logtool import HALTED, TIMEOUT_S, LogTool, commits


@pytest.mark.parametrize(
    ("first", "step"),
    # A new topic begins at offset 0, where relative and absolute offsets are equal. So creating it stamps nothing.
    [step(each, first) for first in ("creates", "appends") for each in NOT_DONE + DONE if (first, each) != ("creates", "publish.stamp")],
)
def test_a_writer_halted_at_a_step_leaves_before_or_after(
    tool: LogTool, committed: Callable[[], dict[str, int]], step: str, first: str
) -> None:
    """I2, I6, I10: a reader sees all of the commit or nothing of it, and the next write continues."""
    before = {} if first == "creates" else {"A-0": 20}
    if before:
        tool.run("append", tag="A")
    tool.run("append", tag="B", stop=f"{step}:halt", status=HALTED, **LARGE)
    after = {**before, "B-0": WHOLE} if step in DONE else before
    assert committed() == after

    tool.run("append", tag="C", **LARGE)
    assert committed() == {**after, "C-0": WHOLE}

    tool.run("publish")
    published = view(tool.root)
    for folder in tool.root.glob("t-*"):
        shutil.rmtree(folder)
    assert committed() == {**after, "C-0": WHOLE}
    tool.run("publish")
    assert view(tool.root) == published


@pytest.mark.parametrize("step", [step(each) for each in NOT_DONE + DONE])
def test_a_repeated_epoch_is_applied_once(tool: LogTool, committed: Callable[[], dict[str, int]], step: str) -> None:
    """I3: a query dies at any step and runs its epoch again: the topic has that epoch exactly once, and its whole view."""
    tool.run("append", tag="A", query="q", epoch=0)
    second = {**LARGE, "query": "q", "epoch": 1, "input": "0123456789abcdef"}
    tool.run("append", tag="B", stop=f"{step}:halt", status=HALTED, **second)
    tool.run("append", tag="B", **second)
    assert tool.run("publish") == ["published 0"]
    tool.run("append", tag="B", **second)
    assert committed() == {"A-0": 20, "B-0": WHOLE}


def test_a_restored_checkpoint_is_told_from_a_retry(tool: LogTool, committed: Callable[[], dict[str, int]]) -> None:
    """I3: a query goes on from an older checkpoint. Epochs with the same input are done; one with another input is refused."""
    same, other = {"query": "q", "input": "00000000000000aa"}, {"query": "q", "input": "00000000000000bb"}
    tool.run("append", tag="A", commits=3, epoch=0, **same)
    before = {f"A-{epoch}": 20 for epoch in range(3)}
    assert tool.run("append", tag="B", commits=3, epoch=0, **same) == [f"done B-{epoch} 2" for epoch in range(3)]
    for epoch, version in ((2, 2), (1, 1)):
        err = tool.failure("append", tag="B", epoch=epoch, **other)
        assert "PARTLOG_EPOCH_DIFFERS" in err and f"Topic t under {tool.root} has epochs of query q up to 2" in err, err
        assert f"version {version} applied it with input {same['input']}, and the write has input {other['input']}" in err, err
    assert committed() == before
    tool.run("append", tag="B", epoch=3, **other)
    assert committed() == {**before, "B-0": 20}


def test_a_lower_transaction_is_skipped_and_others_are_not(tool: LogTool, committed: Callable[[], dict[str, int]]) -> None:
    """I3"""
    tool.run("append", tag="A", txnAppId="q", txnVersion=5)
    tool.run("append", tag="B", txnAppId="q", txnVersion=4)
    tool.run("append", tag="C", txnAppId="other", txnVersion=4)
    assert committed() == {"A-0": 20, "C-0": 20}


@pytest.mark.parametrize("step", ["commit.put", "commit.link", "commit.linked", "commit.synced", "commit.look"])
def test_a_put_whose_answer_is_lost_is_settled_by_reading_back(tool: LogTool, committed: Callable[[], dict[str, int]], step: str) -> None:
    """I6: an exception before the link repeats the put; after one behind it, the commit finds itself done. Neither applies it twice."""
    tool.run("append", tag="A")
    lines = tool.run("append", tag="B", stop=f"{step}:throw")
    assert lines == ["done B-0 1"]
    assert committed() == {"A-0": 20, "B-0": 20}


@pytest.mark.parametrize("step", [step for step in DONE if step.startswith(("commit.done", "publish"))])
def test_an_error_after_the_commit_does_not_fail_it(tool: LogTool, committed: Callable[[], dict[str, int]], step: str) -> None:
    """I1: the work after a commit may fail; the commit is still done."""
    tool.run("append", tag="A")
    assert tool.run("append", tag="B", stop=f"{step}:throw", **LARGE) == ["done B-0 1"]
    assert committed() == {"A-0": 20, "B-0": WHOLE}


@pytest.mark.parametrize("step", ["task.write", "task.done", "commit.pool", "commit.read", "commit.put", "commit.link"])
def test_a_writer_that_is_overtaken_comes_after(tool: LogTool, tmp_path: Path, step: str) -> None:
    """I4, I5: A sleeps before its link, B commits, A continues: both are committed, B's offsets first. A also plans to create the topic."""
    release = tmp_path / "release"
    sleeper = tool.start("append", tag="A", stop=f"{step}:pause", release=release, **LARGE)
    assert sleeper.stderr is not None
    assert "pause at" in sleeper.stderr.readline()
    tool.run("append", tag="B")
    release.touch()
    out, err = sleeper.communicate(timeout=TIMEOUT_S)
    assert sleeper.returncode == 0, err
    assert out.split() == ["done", "A-0", "1"]
    partitions = tool.read()
    assert commits(partitions) == {"A-0": WHOLE, "B-0": 20}
    for values in partitions.values():
        tags = [value.split("-")[0] for value in values]
        assert tags == sorted(tags, reverse=True), "B returned while A slept, so it is first"


@pytest.mark.parametrize(
    ("setting", "value", "shown"),
    [
        ("partitions", "2", ["4 partitions by murmur3", "2 partitions by murmur3"]),
        ("compression.type", "zstd", ["compression.type none", "compression.type zstd"]),
        ("max.message.bytes", "300000000", ["max.message.bytes 1048588", "max.message.bytes 300000000"]),
        ("message.timestamp.type", "LogAppendTime", ["CreateTime", "LogAppendTime"]),
    ],
)
def test_a_creator_with_other_settings_loses_clearly(
    tool: LogTool, tmp_path: Path, committed: Callable[[], dict[str, int]], setting: str, value: str, shown: list[str]
) -> None:
    """I6: nothing of it is ever visible. Records written with its settings might be unreadable with the topic's."""
    release = tmp_path / "release"
    sleeper = tool.start("append", tag="A", stop="commit.link:pause", release=release, **{setting: value})
    assert sleeper.stderr is not None
    sleeper.stderr.readline()
    tool.run("append", tag="B")
    release.touch()
    _, err = sleeper.communicate(timeout=TIMEOUT_S)
    assert sleeper.returncode != 0
    assert "PARTLOG_ROUTING_CHANGED" in err and all(text in err for text in shown), err
    assert committed() == {"B-0": 20}


def test_a_version_file_that_no_reader_would_take_is_not_written(tool: LogTool, committed: Callable[[], dict[str, int]]) -> None:
    """I10: a string that exceeds the limits of FORMAT.md section 10."""
    tool.run("append", tag="A")
    before = sorted(tool.root.glob("_partlog/t/*.json"))
    assert "32769" in tool.failure("append", tag="B", query="q" * 32_769, epoch=0)
    assert sorted(tool.root.glob("_partlog/t/*.json")) == before
    tool.run("append", tag="C", query="q" * 32_768, epoch=0)
    assert committed() == {"A-0": 20, "C-0": 20}


def test_foreign_segments_are_not_replaced(tool: LogTool, committed: Callable[[], dict[str, int]]) -> None:
    """A new topic's Kafka view needs the names of a directory that somebody may have copied from a broker."""
    file = tool.root / "t-1" / "00000000000000000000.log"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"a broker's")
    err = tool.failure("append", tag="A")
    assert (
        "PARTLOG_FOREIGN_SEGMENTS" in err
        and "the partitions 1, but" in err
        and f"hold 1 segment files. The first of these files is {file}." in err
    )
    another = tool.root / "t-0" / "00000000000000000007.index"
    another.parent.mkdir()
    another.write_bytes(b"")
    err = tool.failure("append", tag="A")
    assert f"hold 2 segment files. The first of these files is {another}." in err, "all at once, not one an error"
    another.unlink()
    assert file.read_bytes() == b"a broker's" and committed() == {}
    file.rename(file.with_name("notes.txt"))
    tool.run("append", tag="B")
    assert committed() == {"B-0": 20}
    assert file.with_name("notes.txt").read_bytes() == b"a broker's"


def test_publish_repairs_what_it_can_and_reports_the_rest(tool: LogTool) -> None:
    """Anything in the place of the view's files is replaced. A damaged segment does not keep other segments out of the view."""
    tool.run("append", tag="A", **LARGE)
    good = view(tool.root)
    [*_, index] = sorted(tool.root.glob("t-*/*.index"))
    index.unlink()
    index.symlink_to("/nowhere")
    first = min(tool.root.glob("t-*/*.log"))
    header = bytearray(first.read_bytes())
    header[15] ^= 1  # the leader epoch, which no batch's CRC covers
    first.write_bytes(header)
    for file in tool.root.glob("t-[1-3]/*.timeindex"):
        file.unlink()
    err = tool.failure("publish")
    assert "PARTLOG_SEGMENT_CORRUPT" in err and "headers" in err
    damaged = str(first.relative_to(tool.root))
    assert {name: content for name, content in view(tool.root).items() if name != damaged} == {
        name: content for name, content in good.items() if name != damaged
    }


def test_two_processes_race_for_a_hundred_commits_each(tool: LogTool) -> None:
    """I3, I4, I5: both write to a topic that does not exist yet. No record is lost or doubled, and each writer's order is kept."""
    writers = [tool.start("append", tag=tag, commits=100) for tag in ("A", "B")]
    for writer in writers:
        out, err = writer.communicate(timeout=TIMEOUT_S)
        assert writer.returncode == 0, err
        assert len(out.splitlines()) == 100
    partitions = tool.read()
    assert commits(partitions) == {f"{tag}-{i}": 20 for tag in ("A", "B") for i in range(100)}
    for values in partitions.values():
        for tag in ("A", "B"):
            order = [int(value.split("-")[1].split(":")[0]) for value in values if value.startswith(tag)]
            assert order == sorted(order)
    # After 200 versions, both wrote checkpoints. A checkpoint must hold the same state as the versions.
    assert list(tool.root.glob("_partlog/t/*.checkpoint-*.jsonl"))


@pytest.mark.slow
def test_killed_at_random_moments(tool: LogTool) -> None:
    """I1, I2, I10: every reported commit is in the log, and at most one more; the next writer continues."""
    moments = seeded()
    load = Load(LARGE["tasks"], LARGE["records"], {"big": LARGE["big"]})
    reported: list[str] = []
    for life in range(12):
        writer = Writer(tool, f"L{life}", load, commits=100)
        if life % 3:
            writer.wait_for(life % 3)  # The others may be killed as they begin, however slow the machine is.
        time.sleep(moments.random() * 0.6)
        writer.kill()
        reported += writer.acknowledged
        found = commits(tool.read())
        assert set(found.values()) <= {WHOLE}, "a commit is seen in part"
        assert set(reported) <= set(found), "a reported commit is lost"
        assert len(found) - len(reported) <= life + 1, "more than was begun"
    tool.run("append", tag="end")
    assert commits(tool.read())["end-0"] == 20


@pytest.mark.slow
def test_a_task_holds_few_files_open(tool: LogTool) -> None:
    """I8: more partitions are spilled than the process may have open files. Each file is closed, and continued later."""
    lines = replace(tool, prefix=("prlimit", "--nofile=400")).run(
        "append", tag="A", partitions=600, tasks=1, records=2400, keys=2400, big=500, buffer=600_000, batch=4000
    )
    assert lines == ["done A-0 0"]
    assert commits(tool.read()) == {"A-0": 2400}
    files = list(tool.root.glob("_partlog/t/data/*/p*.log"))
    assert len(files) > 400
    assert len({file.name.split("-")[0] for file in files}) == len(files), "a partition has one file: each was gone on with"


def test_a_halt_at_a_checkpoint_costs_nothing(tool: LogTool, committed: Callable[[], dict[str, int]]) -> None:
    """I10"""
    tool.run("append", tag="A", commits=99)
    tool.run("append", tag="B", commits=3, stop="checkpoint.put:halt", status=HALTED)
    assert not list(tool.root.glob("_partlog/t/*.checkpoint-*"))
    tool.run("append", tag="C", stop="checkpoint.done:halt", status=HALTED)
    assert len(list(tool.root.glob("_partlog/t/*.checkpoint-*"))) == 1
    tool.run("append", tag="D")
    assert committed() == {**{f"A-{i}": 20 for i in range(99)}, "B-0": 20, "B-1": 20, "C-0": 20, "D-0": 20}


def test_a_damaged_checkpoint_is_skipped(tool: LogTool, committed: Callable[[], dict[str, int]]) -> None:
    """I7: a checkpoint only saves time."""
    tool.run("append", tag="A", commits=101)
    (checkpoint,) = tool.root.glob("_partlog/t/*.checkpoint-*")
    whole = checkpoint.read_bytes()
    chance = seeded()
    for _ in range(5):
        bit = chance.randrange(len(whole) * 8)
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        checkpoint.write_bytes(damaged)
        assert committed() == {f"A-{i}": 20 for i in range(101)}
    checkpoint.write_bytes(whole[: len(whole) // 2])
    assert committed() == {f"A-{i}": 20 for i in range(101)}


@pytest.mark.slow
def test_every_flipped_bit_of_a_version_file_is_noticed(tool: LogTool) -> None:
    """I7: a write refuses to continue from it, so nothing is lost."""
    tool.run("append", tag="A", commits=2)
    file = tool.root / "_partlog/t/00000000000000000000.json"
    whole = file.read_bytes()
    for bit in seeded().sample(range(len(whole) * 8), 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        assert "PARTLOG_VERSION_CORRUPT" in tool.failure("read"), f"bit {bit}"
    assert "PARTLOG_VERSION_CORRUPT" in tool.failure("append")
    file.write_bytes(whole)
    assert commits(tool.read()) == {"A-0": 20, "A-1": 20}


def test_a_missing_version_is_noticed(tool: LogTool) -> None:
    """I7"""
    tool.run("append", tag="A", commits=3)
    (tool.root / "_partlog/t/00000000000000000001.json").unlink()
    err = tool.failure("read")
    assert "PARTLOG_VERSION_MISSING" in err and "Version 1 of topic t" in err


def test_a_data_file_that_the_driver_does_not_see_is_not_committed(tool: LogTool, tmp_path: Path) -> None:
    """I2: a task's file is missing or too short when the driver commits it."""
    for damage, condition in (
        (Path.unlink, "FILE_NOT_SHARED"),
        (lambda file: file.write_bytes(b"short"), "FILE_LENGTH"),
    ):
        release = tmp_path / condition
        writer = tool.start("append", tag="B", stop="commit.pool:pause", release=release, **LARGE)
        assert writer.stderr is not None
        writer.stderr.readline()
        (file, *_) = sorted(tool.root.glob("_partlog/t/data/*/p*.log"))
        damage(file)
        release.touch()
        _, err = writer.communicate(timeout=TIMEOUT_S)
        assert writer.returncode != 0 and f"PARTLOG_{condition}" in err
        assert tool.read() == {}
        shutil.rmtree(tool.root)
