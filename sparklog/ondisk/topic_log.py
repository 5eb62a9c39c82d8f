"""The commit log of a topic: from version files and checkpoints to states. FORMAT.md sections 5, 6 and 9."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sparklog.errors import SparklogError
from sparklog.ondisk.checkpoint import Checkpoint
from sparklog.ondisk.faults import Absent, Damaged, TooNew, Unreadable
from sparklog.ondisk.files import path_without_links, read_whole
from sparklog.ondisk.names import (
    COMMITS,
    checkpoint_version_of,
    deleted_version_of,
    is_topic,
    topic_file,
    topic_folder,
    version_file,
    version_of,
)
from sparklog.ondisk.state import State
from sparklog.ondisk.version import FILE_BYTES_MAX, Segment, Version

_LISTED = 20
"""An error lists this many topics."""


def topics(root: str) -> list[str]:
    """The topics of a root, sorted."""
    return sorted(name for name in _names(root, COMMITS) if is_topic(name) and _may_be_there(root, name))


def _may_be_there(root: str, topic: str) -> bool:
    """Whether the folder of a topic holds one. One that cannot be listed may: who opens it is told why, and the others are still there."""
    try:
        return _holds_topic(_names_of(root, topic))
    except SparklogError:
        return True


def _names(root: str, folder: str) -> list[str]:
    """The names in a folder below the root; empty if the folder does not exist."""
    try:
        with os.scandir(path_without_links(root, f"{folder}/")) as entries:
            return [entry.name for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, Damaged) as error:
        raise SparklogError("IO", file=Path(root, folder), cause=error) from None


def _names_of(root: str, topic: str) -> list[str]:
    """The names in the folder of a topic.

    A listing may miss what comes or goes while it is made: all that it should show, if it takes so long that writers replace it. So one
    without a version is made again.
    """
    names = _names(root, topic_folder(topic))
    return names if _committed(names) else _names(root, topic_folder(topic))


def _committed(names: list[str]) -> list[int]:
    """The versions that names tell of, be it of a version file or of a checkpoint."""
    return [version for name in names for version in (version_of(name), checkpoint_version_of(name)) if version is not None]


def _holds_topic(names: list[str]) -> bool:
    """Whether what the names tell of is later than the last deletion. One that is under way is not seen here."""
    deleted = [version for name in names if (version := deleted_version_of(name)) is not None]
    return max(_committed(names), default=-1) > max(deleted, default=-1)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more or "none"


class _Kept(NamedTuple):
    """A state, and what told the file of its version from another one just before it was read."""

    state: State
    tag: tuple[int, ...] | None


class _Moved(Exception):
    """What was read need not belong together, as version files are deleted while others read.

    It is an error only if the next attempt meets the same: its listing told of no later version, it began at the same checkpoint, or
    without one though it tried the same ones and found the same of them gone, and ended at the same version.
    """

    def __init__(self, start: State | None, version: int, error: SparklogError, tried: list[tuple[str, bool]] | None = None) -> None:
        self.where = (start.checkpoint if start else tried, version, error.id)
        self.error = error


class TopicLog:
    """The commit log of one topic. Its methods raise SparklogErrors and nothing else. Threads may share it."""

    def __init__(self, root: str, topic: str) -> None:
        self.root = root
        self.topic = topic
        self.folder = Path(root, topic_folder(topic))
        self._known: _Kept | None = None
        self._reloaded: dict[str, State] = {}
        """By hash, the states that were loaded a second time because their checkpoint proved to be damaged."""

    def __reduce__(self) -> tuple[type[TopicLog], tuple[str, str]]:
        return TopicLog, (self.root, self.topic)

    def newest(self) -> State:
        """The newest state. Cheap if nothing was committed since the last call."""
        kept, found = self._known, None
        self._known = None  # after an error, the next call lists the folder
        if kept:
            with contextlib.suppress(_Moved):
                after = self._go_on(kept)
                # In this order: version files are deleted from the lowest on, so none was missed if the first is still there afterwards.
                if kept.tag and self._tag(kept.state.version) == kept.tag:
                    found = after
        found = self._known = found or self._load()
        if found.state.deleted:
            raise self._not_found()
        return found.state

    def is_followed(self, state: State) -> bool:
        """Whether the file of the version after this state's is there. It costs one stat, where `newest` needs two.

        Ask `newest` from time to time too: a version that was put and deleted since the last call is not seen here.
        """
        return self._tag(state.version + 1) is not None

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
        """The versions of the topic whose files exist, the newest last; with a limit, at most that number of the newest."""
        state = self.newest()
        found: list[Version] = []
        number, expected = state.version, state.hash
        # Backwards: a file that is not the one which the next version names is of a writer that slept, and below the boundary.
        while number >= 0 and (limit is None or len(found) < limit):
            read = self._read(number)
            if not read or read.hash != expected:
                boundary = self.newest().boundary
                if read and number >= boundary:
                    raise self._corrupt(number, f"it is not the version that {number + 1} follows")
                if not read and any(boundary <= version < number for version in self._list()[0]):
                    raise self._missing(number, state.version)
                break
            if read.topic_id != state.topic_id:
                break
            found.append(read)
            number, expected = number - 1, read.previous or ""
        return found[::-1]

    def _load(self) -> _Kept:
        before = None
        while True:
            versions, checkpoints = self._list()
            newest = max([*versions, *(version for version, _ in checkpoints)], default=-1)
            if newest < 0:
                raise self._not_found()
            try:
                return self._attempt(checkpoints, newest)
            except _Moved as now:
                # Where versions were committed meanwhile, files were deleted too, and a slow listing may miss what took their place.
                if before == (newest, now.where):
                    raise now.error from None
                before = newest, now.where

    def _attempt(self, checkpoints: list[tuple[int, str]], newest: int) -> _Kept:
        """The newest state, by a listing of the topic's folder; `newest` is the greatest version that it told of."""
        begin = self._start(checkpoints, newest)
        start = begin.state if begin else None
        tried = [(name, os.path.lexists(self.folder / name)) for _, name in ([] if start else checkpoints)]
        first = start.version if start else 0
        tag = begin.tag if begin else self._tag(first)
        kept = self._go_on(begin)
        reached = kept.state.version if kept else -1
        if not kept or reached < newest:
            raise _Moved(start, reached + 1, self._missing(reached + 1, newest), tried)
        # At the end and not before: version files are deleted from the lowest on, so while the first is there, so are those after it.
        # Without a checkpoint, that may be one of a writer that slept through the clean-up; but then there is a checkpoint.
        if (not start and not set(self._list()[1]) <= set(checkpoints)) or self._tag(first) != tag:
            raise _Moved(start, reached + 1, self._missing(first, newest), tried)
        return kept

    def _start(self, checkpoints: list[tuple[int, str]], newest: int) -> _Kept | None:
        """The state in the newest checkpoint that is not damaged; None if there is no such checkpoint.

        _Moved if the file of its version is gone, or another one.
        """
        for version, name in reversed(checkpoints):
            try:
                state = State.of(Checkpoint(self.root, self.topic, name, version))
            except Unreadable:
                continue
            except TooNew as reason:
                raise SparklogError("FORMAT_TOO_NEW", file=self.folder / name, reason=reason) from None
            tag = self._tag(version)
            data = self._bytes(version)
            if data is None:
                raise _Moved(state, version, self._missing(version, newest))
            if hashlib.sha256(data).hexdigest() != state.hash:
                raise _Moved(state, version, self._corrupt(version, f"it is not the version that {name} is of"))
            if state.agrees_with(self._parsed(data, version)):
                return _Kept(state, tag)
        return None

    def _go_on(self, kept: _Kept | None, until: int | None = None) -> _Kept | None:
        """The state after the version files that follow, at most up to `until`; None if there is no state and no version 0.

        _Moved if one does not follow the one before it.
        """
        while until is None or not kept or kept.state.version < until:
            number = kept.state.version + 1 if kept else 0
            # Before the file is read: if another takes its place in between, the tag is not that file's.
            tag = self._tag(number)
            version = self._read(number) if tag else None
            if version is None:
                break
            if kept and not kept.state.precedes(version):
                raise _Moved(kept.state, number, self._corrupt(number, f"it does not follow the existing version {number - 1}"))
            try:
                state = kept.state.followed_by(version) if kept else State.first(self.topic, version)
            except Unreadable as reason:
                assert kept  # only a state from a checkpoint can be found unreadable
                kept = kept._replace(state=self._without_checkpoint(kept.state, reason))
            except Damaged as damage:
                raise self._corrupt(number, damage) from None
            else:
                kept = _Kept(state, tag)
        return kept

    def _without_checkpoint(self, state: State, reason: Unreadable) -> State:
        """The same state, loaded from an older checkpoint or from none."""
        older = [each for each in self._list()[1] if each[1] < (state.checkpoint or "")]
        try:
            kept = self._go_on(self._start(older, state.version), state.version)
        except _Moved as moved:
            raise moved.error from None
        reached = kept.state.version if kept else -1
        if reached < state.version:
            raise self._missing(reached + 1, state.version)
        if not kept or kept.state.hash != state.hash:
            raise self._corrupt(state.version, reason)
        self._reloaded[state.hash] = kept.state
        known = self._known
        if known and known.state.hash == state.hash:
            self._known = known._replace(state=kept.state)
        return kept.state

    def _not_found(self) -> SparklogError:
        return SparklogError("TOPIC_NOT_FOUND", topic=self.topic, root=self.root, topics=_listed(topics(self.root)))

    def _corrupt(self, version: int, reason: object) -> SparklogError:
        return SparklogError("VERSION_CORRUPT", file=self._path(version), reason=reason)

    def _read(self, version: int) -> Version | None:
        data = self._bytes(version)
        return None if data is None else self._parsed(data, version)

    def _parsed(self, data: bytes, version: int) -> Version:
        try:
            return Version.read(data, self.topic, version)
        except Damaged as damage:
            raise self._corrupt(version, damage) from None
        except TooNew as reason:
            raise SparklogError("FORMAT_TOO_NEW", file=self._path(version), reason=reason) from None

    def _bytes(self, version: int) -> bytes | None:
        """The version file; None if it is absent."""
        try:
            return read_whole(self.root, topic_file(self.topic, version_file(version)), FILE_BYTES_MAX)
        except Absent:
            return None
        except Damaged as damage:
            raise self._corrupt(version, damage) from None
        except OSError as error:
            raise SparklogError("IO", file=self._path(version), cause=error) from None

    def _list(self) -> tuple[list[int], list[tuple[int, str]]]:
        """The versions and the checkpoints whose files exist, each from old to new."""
        names = _names_of(self.root, self.topic)
        versions = sorted(version for name in names if (version := version_of(name)) is not None)
        checkpoints = sorted((version, name) for name in names if (version := checkpoint_version_of(name)) is not None)
        return versions, checkpoints

    def _missing(self, version: int, newest: int) -> SparklogError:
        return SparklogError("VERSION_MISSING", version=version, topic=self.topic, root=self.root, newest=newest)

    def _path(self, version: int) -> Path:
        return self.folder / version_file(version)

    def _tag(self, version: int) -> tuple[int, ...] | None:
        """Distinguishes the file of a version from one that takes its place later; None if it is absent."""
        try:
            status = self._path(version).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise SparklogError("IO", file=self._path(version), cause=error) from None
        return status.st_ino, status.st_size, status.st_mtime_ns
