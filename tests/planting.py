"""Faults that are planted in a root, and what `verify` must say of each, from docs/FORMAT.md alone."""

import json
import os
import random
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import google_crc32c
from handmade import Topic, split, summed

from sparklog import Log, arguments
from sparklog.ondisk.topic_log import TopicLog
from sparklog.verify import Finding, Report, verify


@dataclass(frozen=True)
class Planted:
    """Where a fault is, and what may be said of it. Files are relative to the root, and any of them may be named."""

    what: str
    files: tuple[str, ...]
    severities: set[str]
    conditions: set[str]
    bytes: tuple[int, int] | None = None
    """The byte that is named must be one of [first, end)."""

    def missed(self, report: Report) -> str | None:
        """Why the report does not tell of this fault; None if it does."""
        there = [each for each in report.findings if each.file in self.files]
        if not there:
            return f"{self.what}: none of {self.files} is named"
        right = [each for each in there if each.severity in self.severities and each.condition in self.conditions]
        if not right:
            return f"{self.what}: {[(each.severity, each.condition) for each in there]}, not {self.severities}, {self.conditions}"
        if self.bytes and not any(each.byte is not None and self.bytes[0] <= each.byte < self.bytes[1] for each in right):
            return f"{self.what}: the bytes {[each.byte for each in right]} are named, not one of {self.bytes}"
        return None


Plant = Callable[["Root", random.Random], Planted | None]
"""Plants a fault; None if this one cannot be planted where the random numbers say."""
PLANTS: list[Plant] = []


def plant(function: Plant) -> Plant:
    PLANTS.append(function)
    return function


@dataclass
class Live:
    """A live segment of a root."""

    topic: str
    partition: int
    file: str
    position: int
    bytes: int
    base: int
    end: int
    newest: bool

    @property
    def own(self) -> bool:
        return Path(self.file).name.startswith("p") and Path(self.file).name != "pool.log"

    @property
    def view(self) -> str:
        return f"{self.topic}-{self.partition}/{self.base:020d}"


@dataclass
class Root:
    """A root that faults are planted in."""

    path: Path
    live: list[Live] = field(default_factory=list)

    @classmethod
    def copy(cls, root: Path, to: Path) -> "Root":
        """A copy with the same hard links."""
        there: dict[int, Path] = {}
        for folder, _, names in os.walk(root):
            (to / Path(folder).relative_to(root)).mkdir(parents=True)
            for name in names:
                file = Path(folder, name)
                copied = to / file.relative_to(root)
                inode = file.stat().st_ino
                if inode in there:
                    os.link(there[inode], copied)
                else:
                    shutil.copy2(file, copied)
                    there[inode] = copied
        return cls(to, cls._segments(to))

    @staticmethod
    def _segments(root: Path) -> list[Live]:
        found = []
        for topic in Log(root).topics():
            log = TopicLog(arguments.named_root(root), topic)
            state = log.newest()
            for partition in range(state.partitions):
                live = state.live[partition]
                for segment in (live[number] for number in range(len(live))):
                    newest = any(segment.file == each.file for each in log.history(1)[-1].added)
                    place = (segment.position, segment.bytes, segment.base, segment.end)
                    found.append(Live(topic, partition, f"_partlog/{topic}/{segment.file}", *place, newest))
        return found

    def files(self, pattern: str) -> list[str]:
        return sorted(str(file.relative_to(self.path)) for file in self.path.glob(pattern))

    def versions(self, topic: str) -> list[str]:
        return self.files(f"_partlog/{topic}/*.json")

    def topics(self) -> list[str]:
        return sorted(path.name for path in (self.path / "_partlog").iterdir())

    def read(self, file: str) -> bytes:
        return (self.path / file).read_bytes()

    def write(self, file: str, octets: bytes) -> None:
        """In place, so that other names of the file stay its names."""
        with (self.path / file).open("r+b") as out:
            out.write(octets)
            out.truncate()

    def content(self, file: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.read(file).split(b"\n")[0])
        return content

    def forge(self, file: str, content: dict[str, Any]) -> None:
        """A version file with other content and a right checksum."""
        self.write(file, summed(json.dumps(content, separators=(",", ":")).encode()))

    def boundary(self, topic: str) -> int:
        return int(self.content(self.versions(topic)[-1])["boundary"])

    def weight(self, file: str) -> set[str]:
        """How bad it is to lose a version file."""
        topic = file.split("/")[1]
        return {"garbage"} if int(Path(file).name[:20]) < self.boundary(topic) else {"damage"}


VERSION = {"VERSION_CORRUPT"}
DATA = {"BATCH_CORRUPT", "SEGMENT_CORRUPT"}
CHECKPOINT = {"CHECKPOINT_DAMAGED"}


def flip(octets: bytes, bit: int) -> bytes:
    return octets[: bit // 8] + bytes([octets[bit // 8] ^ 1 << bit % 8]) + octets[bit // 8 + 1 :]


def any_version(root: Root, some: random.Random) -> str:
    return some.choice(root.files("_partlog/*/*.json"))


def newest_version(root: Root, some: random.Random) -> str:
    """The newest version of a topic that exists, if its file adds segments and no checkpoint is of it."""
    topics = [each for each in Log(root.path).topics() if root.content(root.versions(each)[-1])["added"]]
    topics = [each for each in topics if not root.files(f"_partlog/{each}/{Path(root.versions(each)[-1]).stem}.checkpoint*")]
    return root.versions(some.choice(topics))[-1]


def batch_at(root: Root, live: Live, some: random.Random) -> tuple[int, bytes]:
    """One of the batches of a segment, with its position in the file."""
    octets = root.read(live.file)[live.position : live.position + live.bytes]
    batches = split(octets)
    number = some.randrange(len(batches))
    return live.position + sum(map(len, batches[:number])), batches[number]


def put_batch(root: Root, live: Live, position: int, batch: bytes) -> None:
    """A batch of the same length, whose checksum is made right."""
    batch = batch[:17] + struct.pack(">I", google_crc32c.value(batch[21:])) + batch[21:]
    octets = root.read(live.file)
    root.write(live.file, octets[:position] + batch + octets[position + len(batch) :])


def checked(root: Path) -> Report:
    """The findings of `verify`, without a second look, as nothing moves."""
    return verify(arguments.topic_logs(root).root, jobs=1, settles_s=())


def view_files(root: Root, suffixes: tuple[str, ...]) -> list[str]:
    """The files of the view that are not the data files themselves."""
    own = {f"{live.view}.log" for live in root.live if live.own}
    found = [f"{live.view}{suffix}" for live in root.live for suffix in suffixes]
    return [file for file in found if file not in own and (root.path / file).stat().st_size]


class Unrouted(Topic):
    """Its segments do not claim to be routed, as the records of these tests are in any partition."""

    def data(self, octets: bytes, partition: int = 0, /, **fields: Any) -> dict[str, Any]:
        return super().data(octets, partition, **{"routed": False, **fields})


def found(root: Path) -> list[tuple[str, str]]:
    return [(each.severity, each.condition) for each in checked(root).findings]


def only(root: Path) -> Finding:
    [finding] = checked(root).findings
    return finding


def publish(topic: Topic, octets: bytes, base: int) -> Path:
    """The view of the segment at this offset, with these bytes as its copy. The batches are small, so the offset index is empty."""
    folder = topic.root / f"{topic.name}-0"
    folder.mkdir(exist_ok=True)
    times = [struct.unpack_from(">q", octets, 35)[0]]
    (folder / f"{base:020d}.index").write_bytes(b"")
    (folder / f"{base:020d}.timeindex").write_bytes(struct.pack(">qi", times[0], struct.unpack_from(">i", octets, 23)[0]))
    path = folder / f"{base:020d}.log"
    path.write_bytes(octets)
    return path
