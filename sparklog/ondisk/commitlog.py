"""The commit log of a topic: from version files and checkpoints to states. FORMAT.md sections 5, 6 and 9."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import overload

from sparklog.errors import SparklogError
from sparklog.ondisk.checkpoint import Checkpoint
from sparklog.ondisk.faults import Absent, Damaged, TooNew, Unreadable
from sparklog.ondisk.files import path_without_links, read_whole
from sparklog.ondisk.names import COMMITS, checkpoint_version_of, is_topic, topic_file, topic_folder, version_file, version_of
from sparklog.ondisk.state import State
from sparklog.ondisk.version import FILE_BYTES_MAX, Segment, Version

_ATTEMPTS = 3
"""Files may be deleted between listing and reading: list again this often."""
_LISTED = 20
"""An error lists this many topics."""


def topics(root: str) -> list[str]:
    """The topics of a root, sorted."""
    return sorted(name for name in _names(root, COMMITS) if is_topic(name) and _holds_topic(_names(root, topic_folder(name))))


def _names(root: str, folder: str) -> list[str]:
    """The names in a folder below the root; empty if the folder does not exist."""
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


class CommitLog:
    """The commit log of one topic. Its methods raise SparklogErrors and nothing else."""

    def __init__(self, root: str, topic: str) -> None:
        self.root = root
        self.topic = topic
        self.folder = Path(root, topic_folder(topic))
        self._known: State | None = None
        self._seen: tuple[int, ...] | None = None
        self._reloaded: dict[str, State] = {}
        """By hash, the states that were loaded a second time because their checkpoint proved to be damaged."""

    def newest(self) -> State:
        """The newest state. Cheap if nothing was committed since the last call."""
        # The topic may have been deleted and created again. Then the version file that is known is another file.
        if self._known and self._seen and self._identity(self._known.version) == self._seen:
            self._known = self._go_on(self._known)
        else:
            self._known = self._load()
        self._seen = self._identity(self._known.version)
        return self._known

    def segments(self, state: State, partition: int, start: int | None = None, end: int | None = None) -> Iterator[Segment]:
        """The live segments that hold the offsets of a partition from `start` to before `end`, in order.

        The bounds must be between the log start offset and the end offset, which are also the defaults.
        """
        start = state.starts[partition] if start is None else start
        end = state.ends[partition] if end is None else end
        while start < end:
            current = self._reloaded.get(state.hash, state)
            try:
                for segment in current.segments(partition, start, end):
                    yield segment
                    start = segment.end
            except Unreadable as reason:
                self._without_checkpoint(current, reason)

    def history(self, limit: int | None = None) -> list[Version]:
        """The versions whose files exist, the newest last; with a limit, at most that number of the newest."""
        versions, _ = self._list()
        first = max(0, len(versions) - limit) if limit is not None else 0
        found: list[Version] = []
        for version in versions[first:]:
            read = self._read(version)
            if read is None and not found:
                continue  # old files may be deleted at any time
            if read is None or (found and version != found[-1].version + 1):
                raise self._missing(found[-1].version + 1, versions[-1])
            if found and read.previous != found[-1].hash:
                raise self._corrupt(version, f"it does not follow the existing version {found[-1].version}")
            found.append(read)
        return found

    def _load(self, until: int | None = None, avoiding: str | None = None) -> State:
        """The newest state, or the one at the version `until`; without the checkpoint `avoiding` and those newer than it."""
        for _ in range(_ATTEMPTS):
            versions, checkpoints = self._list()
            if not versions and not checkpoints:
                raise SparklogError("TOPIC_NOT_FOUND", topic=self.topic, root=self.root, topics=_listed(topics(self.root)))
            state = self._go_on(self._start(checkpoints, until, avoiding), until)
            newest = max([*versions, *(version for version, _ in checkpoints)]) if until is None else until
            if state and state.version >= newest:
                return state
        raise self._missing(state.version + 1 if state else 0, newest)

    def _start(self, checkpoints: list[tuple[int, str]], until: int | None, avoiding: str | None) -> State | None:
        """The state in the newest checkpoint that can be read; None if there is no such checkpoint."""
        candidates = [(version, name) for version, name in checkpoints if until is None or version <= until]
        if avoiding:
            candidates = [(version, name) for version, name in candidates if name < avoiding]
        for version, name in reversed(candidates):
            try:
                return State.of(Checkpoint(self.root, self.topic, name, version))
            except Unreadable:
                continue
            except TooNew as reason:
                raise SparklogError("FORMAT_TOO_NEW", file=self.folder / name, reason=reason) from None
        return None

    @overload
    def _go_on(self, state: State, until: int | None = None) -> State: ...
    @overload
    def _go_on(self, state: State | None, until: int | None = None) -> State | None: ...
    def _go_on(self, state: State | None, until: int | None = None) -> State | None:
        """The state after the version files that follow `state`; None if there is no state and no version 0."""
        while until is None or not state or state.version < until:
            version = self._read(state.version + 1 if state else 0)
            if version is None:
                break
            try:
                state = state.followed_by(version) if state else State.first(self.topic, version)
            except Unreadable as reason:
                assert state  # only a state from a checkpoint can be found unreadable
                state = self._without_checkpoint(state, reason)
            except Damaged as damage:
                raise self._corrupt(version.version, damage) from None
        return state

    def _without_checkpoint(self, state: State, reason: Unreadable) -> State:
        """The same state, loaded from an older checkpoint or from none."""
        same = self._load(state.version, avoiding=state.checkpoint) if state.checkpoint else None
        if not same or same.hash != state.hash:
            raise self._corrupt(state.version, reason)
        self._reloaded[state.hash] = same
        if self._known and self._known.hash == state.hash:
            self._known = same
        return same

    def _corrupt(self, version: int, reason: object) -> SparklogError:
        return SparklogError("VERSION_CORRUPT", file=self._path(version), reason=reason)

    def _read(self, version: int) -> Version | None:
        path = self._path(version)
        try:
            return Version.read(read_whole(self.root, topic_file(self.topic, version_file(version)), FILE_BYTES_MAX), self.topic, version)
        except Absent:
            return None
        except Damaged as damage:
            raise self._corrupt(version, damage) from None
        except TooNew as reason:
            raise SparklogError("FORMAT_TOO_NEW", file=path, reason=reason) from None
        except OSError as error:
            raise SparklogError("IO", file=path, cause=error) from None

    def _list(self) -> tuple[list[int], list[tuple[int, str]]]:
        """The versions and the checkpoints whose files exist, each from old to new."""
        names = _names(self.root, topic_folder(self.topic))
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
