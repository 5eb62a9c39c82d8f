"""The commit protocol under attack: many writers, lost answers, interrupts, SIGKILL. Short here, long with `make soak`."""

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from audits import audit_view, read_by_python
from handmade import seeded
from logtool import MERGE_BYTES, TIMEOUT_S, LogTool, small_jvm

from sparklog import Log


def lose_answers(java_classpath: str, root: Path, seconds: int) -> None:
    seed = seeded().randrange(2**31)
    command = [*small_jvm(java_classpath), "-Xmx512m", "io.sparklog.kit.LostAnswers", str(root), str(seconds), str(seed)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=seconds + TIMEOUT_S, check=False)
    assert process.returncode == 0, process.stderr
    print(f"LostAnswers seed {seed}: {process.stdout}")
    assert "WRONG" not in process.stdout
    assert "done and there" in process.stdout and "faults 0" not in process.stdout, "nothing was tested"


def test_lost_answers_and_interrupts(java_classpath: str, tmp_path: Path) -> None:
    """I3, I6: a commit reported as done is in the log, one reported as not done is not, and no epoch is in it twice."""
    lose_answers(java_classpath, tmp_path / "root", 4)


@pytest.mark.soak
def test_lost_answers_and_interrupts_for_long(java_classpath: str, tmp_path: Path) -> None:
    """I3, I6"""
    lose_answers(java_classpath, tmp_path / "root", 300)


WRITERS: list[dict[str, int]] = [
    {"records": 130, "big": 9000, "tasks": 2},
    {"records": 130, "big": 9000, "tasks": 2},
    {"records": 10, "tasks": 3},
]
"""The commits of each writer: two stamp data files of their own, one travels to the driver."""


def kill_writers(tool: LogTool, kills: int) -> None:
    """
    Three writers at once, each with its own query, are killed at random moments. Each continues with its first unconfirmed epoch. Beside
    them a reader in Java and one in Python read all the time, while merges and clean-ups follow one another closely.
    """
    random = seeded()
    tidy = {"pace": 10, "merge": MERGE_BYTES, "file.delete.delay.ms": random.choice([0, 0, 300])}
    confirmed: list[set[int]] = [{0}, set(), set()]
    begun = time.monotonic()
    tool.run("append", tag="W0.L.E0", query="q0", epoch=0, partitions=1, **WRITERS[0], **tidy)
    start_s = time.monotonic() - begun
    errors: list[str] = []
    left = kills
    lock = threading.Lock()

    def write(writer: int) -> None:
        nonlocal left
        life = 0
        while True:
            with lock:
                if left <= 0:
                    return
                left -= 1
                moment = start_s * (random.uniform(0.5, 4) if random.random() < 0.9 else random.uniform(4, 10))
            epoch = max(confirmed[writer], default=-1) + 1
            tag = f"W{writer}.L{life}.E{epoch}"
            process = tool.start("append", tag=tag, commits=1000, query=f"q{writer}", epoch=epoch, partitions=1, **WRITERS[writer], **tidy)
            time.sleep(moment)
            process.kill()
            out, err = process.communicate(timeout=TIMEOUT_S)
            if "Exception" in err:
                errors.append(err[:1000])
            # The last line may be cut.
            confirmed[writer] |= {epoch + int(line.split()[1].rsplit("-", 1)[1]) for line in out.splitlines() if line.count(" ") == 2}
            life += 1

    def read(how: Callable[[], dict[int, list[str]]]) -> None:
        before: list[str] = []
        while any(thread.is_alive() for thread in threads):
            try:
                values = how().get(0, [])
                assert values[: len(before)] == before, "what was read before is not there any more"
                before = values
                reads[how] += 1
            except Exception as error:
                errors.append(repr(error))
                return

    reads: Counter[Callable[[], dict[int, list[str]]]] = Counter()
    readers = [tool.read, partial(read_by_python, tool.root)]
    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(len(WRITERS))]
    for thread in threads:
        thread.start()
    beside = [threading.Thread(target=read, args=(how,)) for how in readers]
    for thread in beside:
        thread.start()
    for thread in [*threads, *beside]:
        thread.join()
    assert not errors
    assert all(reads[how] > 0 for how in readers)
    topic = Log(tool.root).topic("t")
    values = [value.decode().rstrip("v") for value in topic.read()["value"].to_pylist()]
    for found in (values, tool.read()[0]):
        audit(found, confirmed)
    tool.run("append", tag=f"W0.end.E{max(confirmed[0], default=-1) + 2}", partitions=1, **tidy)
    audit_view(tool)
    print(
        f"{kills} kills, confirmed commits {[len(each) for each in confirmed]}, versions {topic.describe()['version']}, "
        f"reads beside in Java and in Python {[reads[how] for how in readers]}"
    )


def audit(values: list[str], confirmed: list[set[int]]) -> None:
    """Each commit is whole or absent; epochs are in order, each once; no confirmed epoch is missing."""
    records: Counter[tuple[int, int, str]] = Counter()
    last = [-1] * len(WRITERS)
    for value in values:
        tag = value.split(":")[0]
        head, number = tag.rsplit("-", 1)
        writer, _, first = head.split(".")
        which, epoch = int(writer[1:]), int(first[1:]) + int(number)
        records[which, epoch, tag] += 1
        assert epoch >= last[which], f"{tag} after epoch {last[which]}"
        last[which] = epoch
    for (writer, _, tag), count in records.items():
        assert count == WRITERS[writer]["records"] * WRITERS[writer]["tasks"], f"{tag} is there in part, or twice"
    epochs = [sorted(epoch for which, epoch, _ in records if which == writer) for writer in range(len(WRITERS))]
    for writer, found in enumerate(epochs):
        assert found == list(range(len(found))), f"epochs of writer {writer} are missing or there twice"
        assert confirmed[writer] <= set(found), f"confirmed epochs of writer {writer} are lost"


@pytest.mark.slow
def test_writers_killed_at_random_moments(tool: LogTool) -> None:
    """I1 to I5, I10"""
    kill_writers(tool, 12)


@pytest.mark.soak
def test_writers_killed_three_hundred_times(tool: LogTool) -> None:
    """I1 to I5, I10"""
    kill_writers(tool, 300)
