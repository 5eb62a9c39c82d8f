"""The commit log of a topic: from version files and checkpoints to what is committed. FORMAT.md sections 5, 6 and 9."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from sparklog.errors import SparklogError
from sparklog.ondisk.checkpoint import Checkpoint
from sparklog.ondisk.faults import Absent, Damaged, TooNew, Unreadable
from sparklog.ondisk.files import path_without_links, read_whole
from sparklog.ondisk.names import COMMITS, checkpoint_version_of, is_topic, version_file, version_of
from sparklog.ondisk.version import FILE_BYTES_MAX, Segment, Version, require_whole

_ATTEMPTS = 3
"""A listing can grow old before its files are read: old ones are deleted in time."""
_LISTED = 20


def topics(root: str) -> list[str]:
    """The topics of a root, sorted."""
    return sorted(name for name in _names(root, COMMITS) if is_topic(name) and _holds_topic(_names(root, f"{COMMITS}/{name}")))


def _names(root: str, folder: str) -> list[str]:
    """What is in a folder below the root; nothing where there is no such folder."""
    try:
        with os.scandir(path_without_links(root, f"{folder}/")) as entries:
            return [entry.name for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, Damaged) as error:
        raise SparklogError("IO", file=Path(root, folder), cause=error) from None


def _holds_topic(names: list[str]) -> bool:
    return any(version_of(name) is not None or checkpoint_version_of(name) is not None for name in names)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more or "none"


class _Live:
    """The live segments of a partition by offset: those of a checkpoint, read when they are asked for, and those since then."""

    def __init__(self, checkpoint: Checkpoint | None, partition: int, since: Iterable[Segment] = ()) -> None:
        self._checkpoint = checkpoint
        self._partition = partition
        self._since = list(since)
        self._read: Sequence[bytes] | None = None

    def and_then(self, added: Iterable[Segment]) -> _Live:
        return _Live(self._checkpoint, self._partition, [*self._since, *added])

    @property
    def _lines(self) -> Sequence[bytes]:
        if self._read is None:
            self._read = self._checkpoint.segments(self._partition) if self._checkpoint else ()
        return self._read

    def __len__(self) -> int:
        return len(self._lines) + len(self._since)

    def __getitem__(self, number: int) -> Segment:
        lines = self._lines
        if number >= len(lines):
            return self._since[number - len(lines)]
        assert self._checkpoint
        return self._checkpoint.segment(lines[number], self._partition)

    def find(self, offset: int) -> int:
        """The number of the last segment that begins at an offset or before it; −1 if none does."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self[middle].base <= offset:
                low = middle + 1
            else:
                high = middle
        return low - 1


class State:
    """A snapshot of a topic. It does not change."""

    topic: str
    topic_id: str
    version: int
    hash: str
    time: int
    horizon: int
    boundary: int
    config: Mapping[str, str]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def __init__(self, log: CommitLog, checkpoint: Checkpoint | None) -> None:
        self._log = log
        self._checkpoint = checkpoint
        self._live: dict[int, _Live] = {}
        self.topic = log.topic
        if checkpoint:
            head = checkpoint.head
            self.topic_id, self.version, self.hash, self.time = head.topic_id, head.version, head.hash, head.time
            self.horizon, self.boundary = head.horizon, head.boundary
            self.config, self.starts, self.ends = head.config, head.starts, head.ends
        else:
            self.version = -1
            self.horizon = self.boundary = 0
            self.config, self.starts, self.ends = {}, (), ()

    @property
    def partitions(self) -> int:
        return len(self.ends)

    def segments(self, partition: int, start: int, end: int) -> Iterator[Segment]:
        """The segments that hold these offsets of a partition, all of which must be between its start and its end."""
        while start < end:
            try:
                live = self._segments(partition)
                number = live.find(start)
                while start < end:
                    segment = live[number] if 0 <= number < len(live) else None
                    if not segment or not segment.base <= start < segment.end:
                        raise Unreadable(f"it has no segment of partition {partition} with offset {start}")
                    yield segment
                    start = segment.end
                    number += 1
            except Unreadable as reason:
                self._do_without_checkpoint(reason)

    def segments_of(self, partition: int) -> Iterator[Segment]:
        """The segments with what has not expired of a partition."""
        return self.segments(partition, self.starts[partition], self.ends[partition])

    def _segments(self, partition: int) -> _Live:
        if partition not in self._live:
            self._live[partition] = _Live(self._checkpoint, partition)
        return self._live[partition]

    def _do_without_checkpoint(self, reason: Unreadable) -> None:
        """Finds the same state in an older checkpoint or in none."""
        other = self._log.at(self.version, avoiding=self._checkpoint.name) if self._checkpoint else None
        if not other or other.hash != self.hash:
            raise self._log.corrupt(self.version, reason)
        self.__dict__ = other.__dict__

    def followed_by(self, version: Version) -> State:
        """The state after a version. Damaged if the version cannot come next."""
        if self.version >= 0 and version.previous != self.hash:
            raise Damaged(f"it does not follow the version {self.version} that is there")
        if self.version >= 0 and version.topic_id != self.topic_id:
            raise Damaged(f"it is of the topic with the id {version.topic_id}, not {self.topic_id}")
        if version.horizon < self.horizon or version.boundary < self.boundary:
            raise Damaged("its horizon or its boundary falls")
        if version.partitions < self.partitions:
            raise Damaged(f"it has {version.partitions} partitions where there were {self.partitions}")
        if _falls(self.starts, version.starts) or _falls(self.ends, version.ends):
            raise Damaged("an offset where a partition starts or ends falls")
        after = State.__new__(State)
        after.__dict__ |= self.__dict__
        after.topic_id, after.version, after.hash, after.time = version.topic_id, version.version, version.hash, version.time
        after.horizon, after.boundary = version.horizon, version.boundary
        after.config = {**self.config, **version.config}
        require_whole(after.config, version.partitions)
        after.starts, after.ends = version.starts, version.ends
        after._live = self._live_after(version)
        return after

    def _live_after(self, version: Version) -> dict[int, _Live]:
        live = dict(self._live)
        added: dict[int, list[Segment]] = {}
        for segment in version.added:
            added.setdefault(segment.partition, []).append(segment)
        removed: dict[int, set[tuple[str, int]]] = {}
        for gone in version.removed:
            removed.setdefault(gone.partition, set()).add((gone.file, gone.position))
        if sum(map(len, removed.values())) < len(version.removed):
            raise Damaged("it removes a segment twice")
        # A topic may begin at any offsets; partitions that are added to one begin at 0.
        before = version.starts if self.version < 0 else (*self.ends, *[0] * (version.partitions - self.partitions))
        for partition, (reached, end) in enumerate(zip(before, version.ends, strict=True)):
            for segment in added.get(partition, ()):
                if segment.base >= reached or partition not in removed:
                    if segment.base != reached:
                        raise Damaged(f"it adds to partition {partition}, which ends at offset {reached}, at offset {segment.base}")
                    reached = segment.end
            if reached != end:
                raise Damaged(f"what it adds to partition {partition} ends at offset {reached}, not at {end}")
            if partition in removed:
                live[partition] = self._replaced(partition, removed[partition], added.get(partition, []), version)
            elif partition in added:
                live[partition] = self._segments(partition).and_then(added[partition])
        return live

    def _replaced(self, partition: int, removed: set[tuple[str, int]], added: list[Segment], version: Version) -> _Live:
        """The live segments of a partition from which some were removed; together they must still hold all of it."""
        before = self._segments(partition)
        kept = [segment for segment in map(before.__getitem__, range(len(before))) if (segment.file, segment.position) not in removed]
        if len(kept) != len(before) - len(removed):
            raise Damaged(f"it removes a segment of partition {partition} that is not live")
        segments = sorted(kept + added, key=lambda segment: segment.base)
        reached = segments[0].base if segments else version.ends[partition]
        if reached > version.starts[partition]:
            raise Damaged(f"it leaves partition {partition} without its first offsets")
        for segment in segments:
            if segment.base != reached:
                raise Damaged(f"it leaves a gap or an overlap at offset {reached} of partition {partition}")
            reached = segment.end
        if reached != version.ends[partition]:
            raise Damaged(f"it leaves partition {partition} without its last offsets")
        return _Live(None, partition, segments)


def _falls(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    return any(old > new for old, new in zip(before, after, strict=False))


class CommitLog:
    """What is committed to a topic. SparklogErrors are all that goes wrong here."""

    def __init__(self, root: str, topic: str) -> None:
        self.root = root
        self.topic = topic
        self.folder = Path(root, COMMITS, topic)
        self._known: State | None = None
        self._seen: tuple[int, ...] | None = None

    def newest(self) -> State:
        """The newest state. Cheap where nothing has happened since it was last asked for."""
        # The topic may have been deleted and created again: then the file of the version that is known is another one.
        if self._known and self._seen and self._identity(self._known.version) == self._seen:
            self._known = self._go_on(self._known)
        else:
            self._known = self._load()
        self._seen = self._identity(self._known.version)
        return self._known

    def at(self, version: int, avoiding: str) -> State:
        """The state at a version, without a checkpoint that proved to be unreadable and those newer than it."""
        return self._load(version, avoiding)

    def history(self, limit: int | None = None) -> list[Version]:
        """The versions whose files are there, the newest last; with a limit, so many of the newest."""
        versions, _ = self._list()
        first = max(0, len(versions) - limit) if limit is not None else 0
        found: list[Version] = []
        for version in versions[first:]:
            read = self._read(version)
            if read is None and not found:
                continue  # old files may go at any time
            if read is None or (found and version != found[-1].version + 1):
                raise self._missing(found[-1].version + 1, versions[-1])
            if found and read.previous != found[-1].hash:
                raise self.corrupt(version, f"it does not follow the version {found[-1].version} that is there")
            found.append(read)
        return found

    def corrupt(self, version: int, reason: object) -> SparklogError:
        return SparklogError("VERSION_CORRUPT", file=self._path(version), reason=reason)

    def _load(self, until: int | None = None, avoiding: str | None = None) -> State:
        for _ in range(_ATTEMPTS):
            versions, checkpoints = self._list()
            if not versions and not checkpoints:
                raise SparklogError("TOPIC_NOT_FOUND", topic=self.topic, root=self.root, topics=_listed(topics(self.root)))
            state = self._go_on(self._start(checkpoints, until, avoiding), until)
            newest = max([*versions, *(version for version, _ in checkpoints)]) if until is None else until
            if state.version >= newest:
                return state
        raise self._missing(state.version + 1, newest)

    def _start(self, checkpoints: list[tuple[int, str]], until: int | None, avoiding: str | None) -> State:
        """The state in the newest checkpoint that can be read, or the one before version 0."""
        candidates = [(version, name) for version, name in checkpoints if until is None or version <= until]
        if avoiding:
            candidates = [(version, name) for version, name in candidates if name < avoiding]
        for version, name in reversed(candidates):
            try:
                return State(self, Checkpoint(self.root, self.topic, name, version))
            except Unreadable:
                continue
            except TooNew as reason:
                raise SparklogError("FORMAT_TOO_NEW", file=self.folder / name, reason=reason) from None
        return State(self, None)

    def _go_on(self, state: State, until: int | None = None) -> State:
        while until is None or state.version < until:
            version = self._read(state.version + 1)
            if version is None:
                break
            try:
                state = state.followed_by(version)
            except Unreadable as reason:
                state._do_without_checkpoint(reason)
            except Damaged as damage:
                raise self.corrupt(version.version, damage) from None
        return state

    def _read(self, version: int) -> Version | None:
        path = self._path(version)
        try:
            return Version.read(
                read_whole(self.root, f"{COMMITS}/{self.topic}/{version_file(version)}", FILE_BYTES_MAX), self.topic, version
            )
        except Absent:
            return None
        except Damaged as damage:
            raise self.corrupt(version, damage) from None
        except TooNew as reason:
            raise SparklogError("FORMAT_TOO_NEW", file=path, reason=reason) from None
        except OSError as error:
            raise SparklogError("IO", file=path, cause=error) from None

    def _list(self) -> tuple[list[int], list[tuple[int, str]]]:
        """The versions and the checkpoints that are there, each from old to new."""
        names = _names(self.root, f"{COMMITS}/{self.topic}")
        versions = sorted(version for name in names if (version := version_of(name)) is not None)
        checkpoints = sorted((version, name) for name in names if (version := checkpoint_version_of(name)) is not None)
        return versions, checkpoints

    def _missing(self, version: int, newest: int) -> SparklogError:
        return SparklogError("VERSION_MISSING", version=version, topic=self.topic, root=self.root, newest=newest)

    def _path(self, version: int) -> Path:
        return self.folder / version_file(version)

    def _identity(self, version: int) -> tuple[int, ...] | None:
        try:
            status = self._path(version).stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns
