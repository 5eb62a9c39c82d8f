"""The commit log of a topic: from version files and checkpoints to states. FORMAT.md sections 5, 6 and 9."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple, TypeVar

from sparklog.batches.faults import TooNew, Unanswered, Unreadable
from sparklog.errors import SparklogError
from sparklog.ondisk.checkpoint import Checkpoint
from sparklog.ondisk.names import checkpoint_version_of, data_file, topic_file, version_file, version_of
from sparklog.ondisk.root import Root, holds_topic
from sparklog.ondisk.state import State
from sparklog.ondisk.version import FILE_BYTES_MAX, Segment, Version
from sparklog.store.store import Absent, Damaged

T = TypeVar("T")
_LISTED = 20
"""An error lists this many topics."""
_AHEAD = 16
"""At most this number of version files is asked for at once without a listing of them."""


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more or "none"


def _sorted(names: list[str]) -> tuple[list[int], list[tuple[int, str]]]:
    """The versions and the checkpoints of these names, each from old to new."""
    versions = sorted(version for name in names if (version := version_of(name)) is not None)
    checkpoints = sorted((version, name) for name in names if (version := checkpoint_version_of(name)) is not None)
    return versions, checkpoints


class _Kept(NamedTuple):
    """A state, and what told the file of its version from another one just before it was read."""

    state: State
    tag: Hashable | None


class _Moved(Exception):
    """The files that were read need not belong together, as version files are deleted while others read.

    It is an error only if the next attempt has no later version, begins at the same checkpoint, and ends at the same version. An attempt
    without a checkpoint must have found the same checkpoints, and the same of them gone.
    """

    def __init__(self, start: State | None, version: int, error: SparklogError, tried: list[tuple[str, bool]] | None = None) -> None:
        self.where = (start.checkpoint if start else tried, version, error.id)
        self.error = error


class TopicLog:
    """The commit log of one topic. Its methods raise SparklogErrors and nothing else. Threads may share it."""

    def __init__(self, root: Root, topic: str) -> None:
        self.root = root
        self.topic = topic
        self._known: _Kept | None = None
        self._reloaded: dict[str, State] = {}
        """By hash, the states that were loaded a second time because their checkpoint proved to be damaged."""

    def __reduce__(self) -> tuple[type[TopicLog], tuple[Root, str]]:
        return TopicLog, (self.root, self.topic)

    def location(self, file: str) -> str:
        """The full name of a file of the topic, given as version files name it, for messages."""
        return self.root.store.location(data_file(self.topic, file))

    def newest(self) -> State:
        """The newest state. Cheap if nothing was committed since the last call. CallError TOPIC_NOT_FOUND."""
        found = self.find()
        if not found:
            raise self.not_found()
        return found

    def not_found(self) -> SparklogError:
        """The error for a topic that does not exist. It lists the root, and each folder of a topic."""
        return SparklogError("TOPIC_NOT_FOUND", topic=self.topic, root=self.root, topics=_listed(self.root.topics()))

    def find(self, *, as_listed: bool = False) -> State | None:
        """The newest state; None if the topic does not exist.

        `as_listed` asks by the rule for lists of topics (FORMAT.md section 1): the names in its folder decide whether the topic exists.
        """
        kept, found = self._known, None
        try:
            if kept:
                with contextlib.suppress(_Moved):
                    after = self._go_on(kept)
                    # In this order: version files are deleted from the lowest on, so none was missed if the first is there afterwards.
                    if kept.tag and self._tag(kept.state.version) == kept.tag:
                        found = after
            found = found or self._load(as_listed)
        except BaseException:
            self._known = None  # the next call lists the folder
            raise
        self._known = found
        return None if not found or found.state.deleted else found.state

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
            if (current.starts, current.ends) != (state.starts, state.ends):
                raise self._corrupt(state.version, "its checkpoint had other offsets; the topic is right from the next call on")
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
        expected = state.hash
        # Backwards: if the next version names another file, the file belongs to a writer that slept, and is below the boundary.
        numbers = range(state.version, max(-1, state.version - (state.version + 1 if limit is None else limit)), -1)
        for number, read in zip(numbers, self.root.store.at_once(self._read, numbers), strict=True):
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
            expected = read.previous or ""
        return found[::-1]

    def at(self, version: int) -> State | None:
        """The state at a version, which a checkpoint up to it or version 0 leads to. None where their files are gone."""
        older = [each for each in self._list()[1] if each[0] <= version]
        with contextlib.suppress(_Moved):
            kept = self._go_on(self._start(older, version), version)
            if kept and kept.state.version == version:
                return kept.state
        return None

    def _load(self, as_listed: bool) -> _Kept | None:
        before = None
        while True:
            names = self.root.names_of(self.topic)
            versions, checkpoints = _sorted(names)
            newest = max([*versions, *(version for version, _ in checkpoints)], default=-1)
            if newest < 0 or (as_listed and not holds_topic(names)):
                return None
            try:
                return self._attempt(checkpoints, newest)
            except _Moved as now:
                # If versions were committed during the attempt, files were deleted too, and a slow listing may miss what took their place.
                if before == (newest, now.where):
                    raise now.error from None
                before = newest, now.where

    def _attempt(self, checkpoints: list[tuple[int, str]], newest: int) -> _Kept:
        """The newest state, by a listing of the topic's folder; `newest` is the greatest version that it told of."""
        if not checkpoints and self.root.store.lists_in_order:
            return self._from_zero(newest)
        failures: list[SparklogError] = []
        begin = self._start(checkpoints, newest, failures)
        start = begin.state if begin else None
        tried = [(name, self._tag_of(name) is not None) for _, name in ([] if start else checkpoints)]
        first = start.version if start else 0
        tag = begin.tag if begin else self._tag(first)
        kept = self._go_on(self._go_on(begin, newest))
        reached = kept.state.version if kept else -1
        if not kept or reached < newest:
            raise _Moved(start, reached + 1, self._missing(reached + 1, newest, failures), tried)
        # At the end and not before: version files are deleted from the lowest on, so while the first is there, so are those after it.
        # Without a checkpoint, a writer that slept through the clean-up may have put it; but then a checkpoint exists.
        if (not start and not set(self._list()[1]) <= set(checkpoints)) or self._tag(first) != tag:
            raise _Moved(start, reached + 1, self._missing(first, newest, failures), tried)
        return kept

    def _from_zero(self, newest: int) -> _Kept:
        """The newest state without a checkpoint: a last listing takes the place of all looks. FORMAT.md section K.1."""
        kept = None
        while True:
            kept = self._go_on(kept, newest)
            reached = kept.state.version if kept else -1
            if not kept or reached < newest:
                raise _Moved(None, reached + 1, self._missing(reached + 1, newest), [])
            versions, checkpoints = self._list()
            if checkpoints or versions[:1] != [0]:
                raise _Moved(None, reached + 1, self._missing(0, newest), [])
            if versions[-1] <= reached:
                return kept
            newest = versions[-1]

    def _start(self, checkpoints: list[tuple[int, str]], newest: int, failures: list[SparklogError] | None = None) -> _Kept | None:
        """The state in the newest checkpoint that is not damaged; None without such a checkpoint.

        _Moved if the file of its version is gone, or another one. `failures` gets the errors of checkpoints that may be whole.
        """
        failures = [] if failures is None else failures
        for version, name in reversed(checkpoints):
            file = self.root.store.begin(self._tagged, version)
            try:
                state = State.of(Checkpoint(self.root, self.topic, name, version))
            except Unreadable as reason:
                file.drop()
                if isinstance(reason, Unanswered):
                    failures.append(SparklogError("IO", file=self.location(name), cause=reason))
                continue
            except TooNew as reason:
                raise SparklogError("FORMAT_TOO_NEW", file=self.location(name), reason=reason) from None
            found = file.result()
            if found is None:
                raise _Moved(state, version, self._missing(version, newest, failures))
            tag, data = found
            if hashlib.sha256(data).hexdigest() != state.hash:
                raise _Moved(state, version, self._corrupt(version, f"it is not the version that {name} is of"))
            if state.agrees_with(self._parsed(data, version)):
                return _Kept(state, tag)
        return None

    def _go_on(self, kept: _Kept | None, until: int | None = None) -> _Kept | None:
        """The state after the version files that follow, at most up to `until`; None without a state and a version 0.

        _Moved if one does not follow the one before it.
        """
        for number, found in self._version_files(kept.state.version + 1 if kept else 0, until):
            if found is None:
                break
            tag, version = found[0], self._parsed(found[1], number)
            if kept and not kept.state.precedes(version):
                raise _Moved(kept.state, number, self._corrupt(number, f"it does not follow the existing version {number - 1}"))
            kept = _Kept(self._after(kept and kept.state, version), tag)
        return kept

    def _after(self, state: State | None, version: Version) -> State:
        """The state after a version that follows."""
        while True:
            try:
                return state.followed_by(version) if state else State.first(self.topic, version)
            except Unreadable as reason:
                assert state  # only a state from a checkpoint can be found unreadable
                state = self._without_checkpoint(state, reason)
            except Damaged as damage:
                fault = self._fault_of_checkpoint(state) if state else None
                if not state or not fault:
                    raise self._corrupt(version.version, damage) from None
                state = self._without_checkpoint(state, fault)

    def _fault_of_checkpoint(self, state: State) -> Unreadable | None:
        """The damage in a state's checkpoint, whose lines need not have been used yet; None without damage or checkpoint."""
        name = state.checkpoint or ""
        number = checkpoint_version_of(name)
        if number is None:
            return None
        try:
            for live in State.of(Checkpoint(self.root, self.topic, name, number)).live:
                live.all()
        except Unreadable as fault:
            return fault
        return None

    def _version_files(self, first: int, until: int | None) -> Iterator[tuple[int, tuple[Hashable, bytes] | None]]:
        """The version files from a number on, with their tags; None for an absent file.

        Files up to `until`, which a listing has, are read at once. Without `until`, the number of files at once grows with the files found.
        """
        store, begin = self.root.store, first
        while until is None or first <= until:
            end = first + min(max(1, first - begin), _AHEAD) if until is None else until + 1
            # A tag is taken before the file is read: if another file takes its place in between, the tag is not that file's.
            yield from zip(range(first, end), store.at_once(self._tagged, range(first, end)), strict=True)
            first = end

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

    def _corrupt(self, version: int, reason: object) -> SparklogError:
        return SparklogError("VERSION_CORRUPT", file=self._path(version), reason=reason)

    def _read(self, version: int) -> Version | None:
        data = self._got(version, self.root.store.read)
        return None if data is None else self._parsed(data, version)

    def _parsed(self, data: bytes, version: int) -> Version:
        """The version in a file. A store may give wrong bytes once: a file that is damaged is read once more before that is said."""
        try:
            try:
                return Version.read(data, self.topic, version)
            except Damaged:
                found = self._tagged(version)
                return Version.read(found[1] if found else data, self.topic, version)
        except Damaged as damage:
            raise self._corrupt(version, damage) from None
        except TooNew as reason:
            raise SparklogError("FORMAT_TOO_NEW", file=self._path(version), reason=reason) from None

    def _tagged(self, version: int) -> tuple[Hashable, bytes] | None:
        """The version file and its tag; None if it is absent."""
        return self._got(version, self.root.store.read_tagged)

    def _got(self, version: int, read: Callable[[str, int], T]) -> T | None:
        try:
            return read(topic_file(self.topic, version_file(version)), FILE_BYTES_MAX)
        except Absent:
            return None
        except Damaged as damage:
            raise self._corrupt(version, damage) from None
        except OSError as error:
            raise SparklogError("IO", file=self._path(version), cause=error) from None

    def _list(self) -> tuple[list[int], list[tuple[int, str]]]:
        """The versions and the checkpoints whose files exist, each from old to new."""
        return _sorted(self.root.names_of(self.topic))

    def _missing(self, version: int, newest: int, failures: list[SparklogError] | None = None) -> SparklogError:
        """Nothing is missing if a checkpoint above could not be read: the store failed."""
        if failures:
            return failures[0]
        return SparklogError("VERSION_MISSING", version=version, topic=self.topic, root=self.root, newest=newest)

    def _path(self, version: int) -> str:
        return self.location(version_file(version))

    def _tag(self, version: int) -> Hashable | None:
        """Distinguishes the file of a version from a later file of this name; None if it is absent."""
        return self._tag_of(version_file(version))

    def _tag_of(self, file: str) -> Hashable | None:
        try:
            return self.root.store.tag(topic_file(self.topic, file))
        except OSError as error:
            raise SparklogError("IO", file=self.location(file), cause=error) from None
