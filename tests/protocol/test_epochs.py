"""A streaming query of many epochs, by the log alone: the log stays tidy. Short here, long with `make soak`."""

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from audits import audit_view
from logtool import LogTool

from bench.dump_log import check_segments
from sparklog import Log
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog

LIVE_MAX = 32
"""Live segments of a partition beside two for each 16 MiB of it."""
VERSION_FILES_MAX = 300
LINE = re.compile(r"epoch (\d+) ms ([\d.]+) slowest (\d+) cpu ([\d.]+) heap (\d+) live (\d+) versions (\d+)")


class Part(NamedTuple):
    """A tenth of the epochs, as `Epochs` of the Java tests prints it."""

    epoch: int
    ms: float
    slowest_ms: float
    cpu_ms: float
    heap: int
    live: int
    versions: int


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder on a disk that syncs for nothing, if there is one: the work is counted, and not the disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        yield Path(folder)


def run(classpath: str, root: Path, epochs: int, records: int, timeout: int, **config: object) -> list[Part]:
    words = [str(root), str(epochs), str(records), *(f"{key}={value}" for key, value in config.items())]
    command = ["java", "-Xmx256m", "-cp", classpath, "io.sparklog.kit.Epochs", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stderr
    print(f"\n{epochs} epochs of {records} records\n{done.stdout}")
    lines = [[float(word) if "." in word else int(word) for word in found] for found in LINE.findall(done.stdout)]
    parts = [Part(*line) for line in lines]  # type: ignore[arg-type]
    assert [part.epoch for part in parts] == [(n + 1) * epochs // 10 for n in range(10)]
    return parts


def require_each_once(root: Path, epochs: int, records: int) -> None:
    """Record `number` of each epoch is there once, and the offsets of a partition have no gap. 100 million records fit in memory."""
    seen = np.zeros(epochs * records, np.uint8)
    ends: Counter[int] = Counter()
    for batch in Log(root)["t"].scan(columns=["partition", "offset", "value"]):
        partition = batch["partition"][0].as_py()
        assert pc.all(pc.equal(batch["partition"], partition)).as_py()
        assert np.array_equal(batch["offset"].to_numpy(), np.arange(ends[partition], ends[partition] + batch.num_rows))
        ends[partition] += batch.num_rows
        parts = pc.extract_regex(batch["value"].cast(pa.string()), r"^e-(?P<epoch>\d+):0:(?P<number>\d+)$")
        epoch, number = (part.cast(pa.int64()).to_numpy(zero_copy_only=False) for part in parts.flatten())
        np.add.at(seen, epoch * records + number, 1)
    assert np.all(seen == 1), f"of {seen.size} records {np.sum(seen == 0)} are lost, {np.sum(seen > 1)} doubled"


def require_tidy(tool: LogTool, epochs: int, records: int) -> None:
    """The records are those of the epochs, and nothing else is there: files that no live segment names, and another view."""
    require_each_once(tool.root, epochs, records)
    log = TopicLog(Root.at(str(tool.root)), "t")
    state = log.newest()
    named = {segment.file for partition in range(8) for segment in log.segments(state, partition)}
    topic = tool.root / "_partlog" / "t"
    assert {str(file.relative_to(topic)) for file in topic.glob("data/*/*")} == named
    assert {folder.name for folder in topic.glob("data/*")} == {Path(file).parent.name for file in named}, "empty folders are left"
    assert not list(topic.glob("tmp/*"))
    assert len(list(topic.glob("*.checkpoint-*"))) <= 3
    audit_view(tool)


def many(tool: LogTool, root: Path, kafka: str, epochs: int, records: int, costlier_max: float, timeout: int) -> None:
    parts = run(tool.classpath, root, epochs, records, timeout, **{"file.delete.delay.ms": 0})
    assert max(part.live for part in parts) <= LIVE_MAX
    assert max(part.versions for part in parts) <= VERSION_FILES_MAX
    assert parts[-1].heap <= 1.2 * parts[1].heap + (1 << 20), "the driver's memory grows"
    # CPU time: other work on the machine hardly changes it.
    ratio = parts[-1].cpu_ms / parts[1].cpu_ms
    slower = parts[-1].ms / parts[1].ms
    print(f"a commit of the last tenth costs {ratio:.2f} times one of the second tenth, and takes {slower:.2f} times as long")
    assert ratio <= costlier_max
    there = LogTool(tool.classpath, root)
    require_tidy(there, epochs, records)
    checked = check_segments(kafka, sorted(root.glob("t-*/*.log")), epochs * records)
    assert checked.complaints == []


@pytest.mark.slow
def test_a_thousand_epochs(tool: LogTool, memory: Path, kafka_classpath: str) -> None:
    """Few live segments and version files, no file without a version that names it, and the Kafka view of what is live."""
    many(tool, memory / "root", kafka_classpath, 1_000, 8, 3.0, 850)


@pytest.mark.soak
@pytest.mark.parametrize("records", [1, 100, 10_000])
def test_ten_thousand_epochs(tool: LogTool, kafka_classpath: str, records: int) -> None:
    """As above, on the disk."""
    many(tool, tool.root, kafka_classpath, 10_000, records, 1.2, 7200)


@pytest.mark.soak
def test_a_hundred_thousand_epochs(tool: LogTool, kafka_classpath: str) -> None:
    """As above."""
    many(tool, tool.root, kafka_classpath, 100_000, 8, 1.2, 7200)
