"""Rules that must hold for a topic after any accident, for the tests that kill, fill and unplug."""

import shutil
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from logtool import TIMEOUT_S, LogTool
from verifying import faults

from sparklog import Log, SparklogError


@dataclass(frozen=True)
class Load:
    """The records of each commit of a writer. Values name it: `<tag>-<commit>:<task>:<number>`."""

    tasks: int
    records: int
    options: dict[str, int] = field(default_factory=dict)

    def commit(self, tag: str) -> set[str]:
        return {f"{tag}:{task}:{number:06d}" for task in range(self.tasks) for number in range(self.records)}


SPILLS = Load(2, 40, {"big": 200, "buffer": 4000, "batch": 1000})
"""Tasks write data files of their own, which are linked into the view and stamped."""
POOLS = Load(2, 10)
"""All of it travels to the driver, into `pool.log`, and is copied into the view."""

NOTHING_THERE = {"ROOT_NOT_FOUND", "ROOT_WITHOUT_LOG", "TOPIC_NOT_FOUND"}


class Writer:
    """A process that commits until it is ended, and the commits that it acknowledged so far."""

    def __init__(self, tool: LogTool, tag: str, load: Load, commits: int = 1_000_000, **arguments: object) -> None:
        self.tag, self.load = tag, load
        sizes = {"tasks": load.tasks, "records": load.records, **load.options}
        self.process = tool.start("append", tag=tag, commits=commits, **sizes, **arguments)
        self.acknowledged: list[str] = []
        self.outcomes: dict[str, str] = {}
        """The ids of the errors of commits, of a writer that goes on after them."""
        self.at: list[float] = []
        """When it told of each commit."""
        self.errors: list[str] = []
        self._readers = [threading.Thread(target=self._listen), threading.Thread(target=self._complain)]
        for reader in self._readers:
            reader.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                if line.endswith("\n") and line.startswith(("done ", "error ")):  # The last one may be cut.
                    word, commit, rest = line.rstrip("\n").split(" ", 2)
                    self.at.append(time.monotonic())
                    if word == "done":
                        self.acknowledged.append(commit)
                    else:
                        self.outcomes[commit] = rest

    def _complain(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            self.errors += lines

    def wait_for(self, commits: int) -> None:
        """Waits until it has acknowledged that many."""
        until = time.monotonic() + TIMEOUT_S
        while len(self.acknowledged) < commits:
            assert self.process.poll() is None and time.monotonic() < until, self.errors
            time.sleep(0.01)

    def join(self) -> int:
        for reader in self._readers:
            reader.join()
        return self.process.wait()

    def kill(self) -> None:
        self.process.kill()
        self.join()


def read_by_python(root: Path | str, topic: str = "t") -> dict[int, list[str]]:
    """The values of each partition by offset, with the padding taken off."""
    try:
        table = Log(root).topic(topic).read(columns=["partition", "offset", "value"])
    except SparklogError as error:
        if error.id not in NOTHING_THERE:
            raise
        return {}
    partitions: dict[int, list[str]] = {}
    rows = zip(*(table[name].to_pylist() for name in ("partition", "offset", "value")), strict=True)
    for partition, offset, value in sorted(rows):
        values = partitions.setdefault(partition, [])
        assert offset == len(values), f"partition {partition} has offset {offset} where {len(values)} should be"
        values.append(value.decode().rstrip("v"))
    return partitions


def audit(tool: LogTool, acknowledged: dict[str, Load], loads: dict[str, Load]) -> set[str]:
    """
    Each acknowledged commit is there, each commit is whole or absent, each record is there once, both readers see the same, each writer's
    commits are in their order, and `Log.verify` finds nothing but what a killed writer leaves.

    acknowledged: by the name of the commit, `<tag>-<commit>`
    loads: by tag, of every writer that ever ran
    Returns the commits that are there.
    """
    root = tool.root if isinstance(tool.root, Path) else tool.python_root
    assert faults(root, unfinished=True) == []
    partitions = tool.read()
    assert read_by_python(root) == partitions, "the readers in Java and in Python differ"
    times = Counter(value for values in partitions.values() for value in values)
    assert set(times.values()) <= {1}, f"there more than once: {[value for value, n in times.items() if n > 1][:5]}"
    found: dict[str, set[str]] = {}
    for value in times:
        found.setdefault(value.split(":")[0], set()).add(value)
    lost = sorted(acknowledged.keys() - found.keys())
    assert not lost, f"acknowledged, and not there: {lost[:10]}"
    for commit, values in found.items():
        assert values == loads[commit.rpartition("-")[0]].commit(commit), f"commit {commit} is there in part"
    for partition, values in partitions.items():
        last: dict[str, int] = {}
        for value in values:
            tag, _, number = value.split(":")[0].rpartition("-")
            assert int(number) >= last.get(tag, 0), f"partition {partition}: {value} is after a later commit of its writer"
            last[tag] = int(number)
    return set(found)


def view(root: Path) -> dict[str, bytes]:
    """The Kafka view: every file in the partitions' folders, with its bytes."""
    return {str(file.relative_to(root)): file.read_bytes() for file in root.glob("t-*/*")}


def audit_view(tool: LogTool, power_was_lost: bool = False) -> None:
    """
    The Kafka view that the last commit left is the one that `publish` makes where there is none.

    power_was_lost: files may have the right length and other bytes; these are the only ones that `publish` repairs
    """
    found = view(tool.root)
    if power_was_lost:
        tool.run("publish")
    repaired = view(tool.root)
    for folder in tool.root.glob("t-*"):
        shutil.rmtree(folder)
    tool.run("publish")
    right = view(tool.root)
    sizes, sizes_right = ({name: len(content) for name, content in files.items()} for files in (found, right))
    assert sizes == sizes_right, f"the view differs in {sorted(sizes.items() ^ sizes_right.items())[:8]}"
    differing = sorted(name for name in right if repaired[name] != right[name])
    assert not differing, f"the view differs in the bytes of {differing[:5]}"
    assert faults(tool.root) == []
