"""The version files and checkpoints of a topic: every one is read, and all are replayed. FORMAT.md sections 5, 6 and 9."""

from __future__ import annotations

import hashlib
import itertools
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sparklog.batches.faults import TooNew
from sparklog.ondisk.config import require_known_to, usable
from sparklog.ondisk.features import Binds, Feature
from sparklog.ondisk.names import checkpoint_version_of, topic_file, version_file, version_of
from sparklog.ondisk.producers import Producers, Sent
from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.version import FILE_BYTES_MAX, Segment, Version
from sparklog.store.store import Absent, Damaged
from sparklog.verify import checkpoints, ongoing
from sparklog.verify.asking import asking
from sparklog.verify.checkpoints import Queries, Sound, Unsound, live_segments
from sparklog.verify.report import DAMAGE, GARBAGE, NEWER, REPAIRABLE, Finding
from sparklog.verify.writer_rules import Writers

_RESTORE = "restore the file from a copy; version files must not be edited"


class Kept(NamedTuple):
    """The last version that removed a data file, its time, and the least `versions.keep.ms` of the topic since then, both in ms."""

    version: int
    time: int
    keep: int


class Link(NamedTuple):
    """A version and its hash, which the next version must name. `sound`: whether its file is right by itself."""

    version: int
    hash: str
    sound: bool


@dataclass
class Chain:
    """A topic as its version files and checkpoints tell it. `replay` fills it.

    * state: the newest state; if it cannot be made, the last state that can be made, and `broken` is the version that stopped it.
    * segments: the segments whose bytes readers need.
    * named: the data files that a version or a checkpoint names.
    * sent: the batches of producers in segments, by partition, file and position, as the versions say that added the segments.
    * producers: the producers of the state.
    * removed: the data files that a version removed.
    * kept: the removed data files that `versions.keep.ms` keeps, for states before the removal.
    * fresh: the places in the Kafka view, as (partition, base offset), where a version of a `recent` time (ms since 1970) adds or removes
      a segment. Its writer may still be publishing.
    * needed, read: the versions from the boundary on whose files were listed or are known to be there; and the versions that were read.
    * denied: the files that were listed, and are absent by a later answer of the store. Versions below the boundary are left out.
    * sweeping: whether a version of a `recent` time raised the horizon. The process that put it may still be deleting the files below.
    """

    root: Root
    topic: str
    names: list[str]
    recent: range = range(0)
    state: State | None = None
    broken: int | None = None
    newest: int = -1
    versions: int = 0
    checkpoints: int = 0
    listed_checkpoints: int = 0
    deletions: set[int] = field(default_factory=set)
    intervals: set[int] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    sent: dict[tuple[int, str, int], dict[int, Sent]] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    kept: dict[str, Kept] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    below_boundary: list[str] = field(default_factory=list)
    fresh: set[tuple[int, int]] = field(default_factory=set)
    sweeping: bool = False
    needed: set[int] = field(default_factory=set)
    read: set[int] = field(default_factory=set)
    denied: list[str] = field(default_factory=list)
    producers: Producers = field(default_factory=Producers)
    is_newer: bool = False

    def __post_init__(self) -> None:
        self._link: Link | None = None
        self._queries: Queries = {}
        self._later: list[Version] = []
        self._sound: list[int] = []
        self._kept_from = 0
        """The greatest boundary that a checkpoint has."""
        self._numbered: list[tuple[int, Finding]] = []
        """Findings about version files. Their cost depends on the boundary, which is known in the end."""
        self._by_earlier: list[tuple[int, int, Finding]] = []
        """The same by the version before: its number, the number of the version, and the finding."""
        self._writers = Writers()
        self._unknown = ""

    def replay(self) -> Chain:
        """Reads and replays everything."""
        listed = sorted(number for name in self.names if (number := version_of(name)) is not None)
        kept = sorted((number, name) for name in self.names if (number := checkpoint_version_of(name)) is not None)
        self.newest = max([*listed, *(number for number, _ in kept)], default=-1)
        self.listed_checkpoints = len(kept)
        present = set(listed)
        waiting = list(kept)
        for number, data in zip(listed, self.root.store.at_once(self._listed_bytes, listed), strict=True):
            self._checkpoints_before(number, waiting)
            self._version(number, data)
            self._checkpoints_at(number, waiting)
        while not isinstance(data := self._bytes(self.newest + 1), (Absent, OSError)):
            self.newest += 1
            self._version(self.newest, data)
            present.add(self.newest)
        for number, name in waiting:
            self._checkpoint(number, name)
        self._end(present)
        return self

    def _file(self, name: str) -> str:
        return topic_file(self.topic, name)

    def _bytes(self, number: int) -> bytes | Absent | Damaged | OSError:
        """A version file, or why it cannot be read."""
        try:
            return self.root.store.read(self._file(version_file(number)), FILE_BYTES_MAX)
        except (Absent, Damaged, OSError) as error:
            return error

    def _listed_bytes(self, number: int) -> bytes | Absent | Damaged | OSError:
        """A version file that was listed. If it is absent then, it was deleted since; or an answer of the store is wrong."""
        return asking(self.root).until(lambda: self._bytes(number), lambda data: not isinstance(data, Absent))

    def _version(self, number: int, data: bytes | Absent | Damaged | OSError) -> None:
        """Replays the next version file if the state before it is known."""
        if isinstance(data, (Absent, OSError)):
            self._link = None
            self._state_ends(number)
            return
        self.read.add(number)
        if isinstance(data, Damaged):
            self._fault(number, "VERSION_CORRUPT", str(data), 0)
            self._link = None
        else:
            self._parsed(number, data)
        self.versions += 1

    def _parsed(self, number: int, data: bytes) -> None:
        before, self._link = self._link, Link(number, hashlib.sha256(data).hexdigest(), False)
        try:
            version = Version.read(data, self.topic, number)
        except Damaged as damage:
            self._fault(number, "VERSION_CORRUPT", str(damage), 0)
            self._state_ends(number)
            return
        except TooNew as reason:
            self._note(number, reason, "this version and the data files of the topic are not checked", "not known")
            self.is_newer = True
            self._state_ends(number)
            return
        self._link = self._link._replace(sound=True)
        if before and before.version == number - 1:
            self._follow(before, version)
        self.named |= {segment.file for segment in version.added}
        # The batches of a merge come from other versions.
        if version.features.has(Feature.PRODUCERS) and not version.removed:
            self._expect_producers(version)
        self._replay(version)

    def _expect_producers(self, version: Version) -> None:
        """The batches of producers in a partition are in order of offsets."""
        by_partition: dict[int, list[Sent]] = {}
        for each in version.producers:
            by_partition.setdefault(each.partition, []).append(each)
        for segment in version.added:
            sent = by_partition.get(segment.partition, [])
            first, last = (bisect_left(sent, offset, key=lambda sent: sent.batch.base) for offset in (segment.base, segment.end))
            self.sent[segment.partition, segment.file, segment.position] = {each.batch.base: each for each in sent[first:last]}

    def _note(self, number: int, reason: TooNew, part: str, impact: str) -> None:
        """Says once that a part of the topic is not checked."""
        if str(reason) != self._unknown:
            self._numbered.append((number, self._newer(f"{reason}: {part}", version_file(number), impact)))
        self._unknown = str(reason)

    def _newer(self, problem: str, name: str, impact: str) -> Finding:
        file = self._file(name)
        return Finding(NEWER, "FORMAT_TOO_NEW", problem, impact, "upgrade sparklog, and verify again", self.topic, file=file, byte=0)

    def _follow(self, before: Link, version: Version) -> None:
        """Checks that a version names the version before it. If not, one of the two files was changed after its commit."""
        file = self._file(version_file(before.version))
        if version.previous == before.hash:
            return
        problem = f"its hash is not the one that version {version.version} has as `previous`: one of the two files was changed"
        # A file that is damaged by itself was reported, and is the changed file.
        if before.sound:
            self._numbered.append((before.version, self._damage("VERSION_CORRUPT", problem, file, 0)))
            own = self._file(version_file(version.version))
            problem = f"`previous` is not the hash of version {before.version}: one of the two files was changed"
            self._by_earlier.append((before.version, version.version, self._damage("VERSION_CORRUPT", problem, own, 0)))

    def _replay(self, version: Version) -> None:
        state = self.state
        if self.broken is not None or (state is None and version.version > 0):
            self._later.append(version)
            return
        try:
            if state is None:
                after = State.first(self.topic, version)
            else:
                if version.version != state.version + 1:
                    self._later.append(version)
                    self._state_ends(version.version)
                    return
                if (version.topic_id == state.topic_id) == state.deleted:
                    raise Damaged("its `topicId` is that of the deleted topic" if state.deleted else "its `topicId` is another one")
                # A wrong link was reported; the content of the version is checked nevertheless.
                after = state.followed_by(version._replace(previous=state.hash))
            self._follow_producers(state, after, version)
        except Damaged as damage:
            self._fault(version.version, "VERSION_CORRUPT", str(damage), 0)
            self._state_ends(version.version)
            self._later.append(version)
            return
        for severity, condition, problem in (
            self._writers.problems(state, version, self._queries) if after.is_known_to(Binds.WRITERS) else ()
        ):
            self._numbered.append(
                (version.version, self._damage(condition, problem, self._file(version_file(version.version)), 0, severity))
            )
        self._take(after, version)

    def _follow_producers(self, before: State | None, after: State, version: Version) -> None:
        has = version.features.has(Feature.PRODUCERS) and not version.deleted
        if before is None or before.deleted or not has:
            self.producers, before = Producers(), None
        if has:
            ends = (*before.ends, *[0] * (after.partitions - before.partitions)) if before else after.starts
            self.producers.follow(version.producers, ends, version.time, after.config)

    def _take(self, after: State, version: Version) -> None:
        if self.state is None or self.state.deleted or version.deleted:
            self._queries = {}
        if version.deleted:
            self.deletions.add(version.version)
        own = version.query and version.query.id
        retention = int(usable(after.config, "transaction.retention.ms", "-1"))
        if retention >= 0:
            kept = {id: known for id, known in self._queries.items() if id == own or version.time - known[2] < retention}
            self._queries = kept
        if version.query and version.query.epoch >= self._queries.get(version.query.id, (-1, None, 0))[0]:
            self._queries[version.query.id] = (version.query.epoch, version.query.input, version.time)
        self.removed |= {segment.file for segment in version.removed}
        self._keep(after, version)
        if version.time in self.recent:
            self._freshen(self.state, version)
        self._now(after)

    def _keep(self, after: State, version: Version) -> None:
        """A shorter time to keep versions counts for earlier versions, too. A longer one does not: their files may be gone."""
        keep = 0 if after.deleted else int(usable(after.config, "versions.keep.ms", "0"))
        if "versions.keep.ms" in version.config or after.deleted:
            self.kept = {file: kept._replace(keep=min(kept.keep, keep)) for file, kept in self.kept.items() if keep}
        self.kept |= {segment.file: Kept(version.version, version.time, keep) for segment in version.removed if keep}

    def _freshen(self, before: State | None, version: Version) -> None:
        """Remembers the work that the writer of a version may still do."""
        self.fresh |= {(segment.partition, segment.base) for segment in version.added}
        if before:
            self.sweeping |= version.horizon > before.horizon
            removed = set(version.removed)
            all_move = version.deleted or "kafka.view" in version.config
            for partition in range(before.partitions) if all_move else {segment.partition for segment in removed}:
                for each in live_segments(before, partition):
                    if all_move or (partition, each.file, each.position) in removed:
                        self.fresh.add((partition, each.base))

    def _now(self, state: State) -> None:
        self.state = state
        try:
            require_known_to(Binds.WRITERS, state.features, None if state.deleted else state.config)
        except TooNew as reason:
            keys = "" if state.is_known_to(Binds.KEY_READERS) else "the places of keys, "
            part = f"{keys}the Kafka view and the rules of writers are not checked from this version on"
            self._note(state.version, reason, part, "no record: this version of sparklog reads, and cannot write")
        if interval := usable(state.config, "index.interval.bytes", ""):
            self.intervals.add(int(interval))

    def _state_ends(self, number: int) -> None:
        """From this version on the state is not known, until there is a checkpoint."""
        if self.broken is None and self.state is not None:
            self.broken = number
        elif self.broken is None and number == 0:
            self.broken = 0

    def _checkpoints_before(self, number: int, waiting: list[tuple[int, str]]) -> None:
        while waiting and waiting[0][0] < number:
            self._checkpoint(*waiting.pop(0))

    def _checkpoints_at(self, number: int, waiting: list[tuple[int, str]]) -> None:
        while waiting and waiting[0][0] == number:
            self._checkpoint(*waiting.pop(0))

    def _checkpoint(self, number: int, name: str) -> None:
        file = self._file(name)
        store = asking(self.root)
        found = store.until(lambda: self._sought(name, number), lambda each: isinstance(each, Sound | TooNew))
        if isinstance(found, Unsound) and file in store.unread:
            return
        if found is None:
            # On a disk, a look into the folder is right, and the file was deleted since: a writer has put a newer one.
            if store.is_far:
                self.denied.append(file)
            else:
                self.listed_checkpoints -= 1
            return
        self.checkpoints += 1
        if isinstance(found, Unsound):
            fix = "delete the file: readers skip it, and a later commit puts another one"
            impact = "no record; readers begin at an older checkpoint or at the first version, which takes longer"
            self.findings.append(Finding(REPAIRABLE, "CHECKPOINT_DAMAGED", str(found), impact, fix, self.topic, file=file, byte=found.byte))
            return
        if isinstance(found, TooNew):
            self.findings.append(self._newer(str(found), name, "no record: readers may begin at an older checkpoint"))
            return
        sound = found
        self._sound.append(number)
        self._kept_from = max(self._kept_from, sound.head.boundary)
        if not self._link or self._link.version != number:
            return  # Its version is gone, which is reported unless it may be.
        if self._link.hash != sound.head.hash and self._link.sound:
            problem = f"its `hash` is not that of version {number}: one of the two files was changed"
            self._wrong(file, problem)
            version = self._file(version_file(number))
            problem = f"its hash is not the one in the checkpoint of its version: one of the two files was changed ({file})"
            self._numbered.append((number, self._damage("VERSION_CORRUPT", problem, version, 0)))
            return
        if self.state is not None and self.broken is None and self.state.version == number:
            if differs := checkpoints.difference(sound, self.state, self._queries, self.producers):
                self._wrong(file, differs)
        else:
            self._resume(sound, number, file)

    def _sought(self, name: str, number: int) -> Sound | Unsound | TooNew | None:
        try:
            return checkpoints.read(self.root, self.topic, name, number)
        except (Unsound, TooNew) as fault:
            return fault

    def _wrong(self, file: str, problem: str) -> None:
        impact = "readers that begin at it fail, or see other records than were committed"
        fix = "delete the file: readers then begin at an older checkpoint or at the first version"
        self.findings.append(Finding(DAMAGE, "CHECKPOINT_WRONG", problem, impact, fix, self.topic, file=file, byte=0))

    def _resume(self, sound: Sound, number: int, file: str) -> None:
        """Goes on with the state of a checkpoint, as the versions up to it cannot be replayed."""
        own = next((version for version in reversed(self._later) if version.version == number), None)
        state = State.of(sound.file)
        if own:
            for name in ("topic_id", "time", "horizon", "boundary", "deleted", "features"):
                if getattr(own, name) != getattr(state, name):
                    self._wrong(file, f"its `{name}` is not that of version {number}")
                    return
            if not state.has_offsets(own):
                self._wrong(file, f"it has other offsets than version {number} names")
                return
            live = {segment._replace(routed=True) for partition in range(state.partitions) for segment in live_segments(state, partition)}
            if any(segment._replace(routed=True) not in live for segment in own.added):
                self._wrong(file, f"it lacks a segment that version {number} adds")
                return
        self.broken = None
        self.kept = {}
        self.removed |= {segment.file for version in self._later for segment in version.removed}
        self.deletions |= {version.version for version in self._later if version.deleted}
        self._later = []
        self._queries = dict(sound.queries)
        self.producers = Producers(sound.producers)
        self._now(state)
        for partition in range(state.partitions):
            self.named |= {segment.file for segment in live_segments(state, partition)}

    def _end(self, present: set[int]) -> None:
        state = self.state
        # Without a checkpoint that can be read, every version is needed.
        kept_from = max([self._kept_from, *(version.boundary for version in self._later)]) if self._sound else 0
        boundary = state.boundary if state else kept_from
        self.needed = {number for number in present if number >= boundary}
        store = asking(self.root)
        self.denied += [
            file for file in (self._file(version_file(number)) for number in sorted(self.needed - self.read)) if file not in store.unread
        ]
        for first, last in _absent(present, min(boundary, self.newest + 1), self.newest):
            problem = f"version {first} is missing" if first == last else f"versions {first} to {last} are missing"
            self._numbered.append((last, self._damage("VERSION_MISSING", problem, self._file(version_file(first)), None)))
        if self.newest >= 0 and state is None and self.broken is None:
            self.broken = self.newest
        # A file that a late writer put below the boundary says nothing about the version at the boundary.
        by_earlier = ((number, finding) for earlier, number, finding in self._by_earlier if earlier >= boundary or number < boundary)
        for number, finding in (*self._numbered, *by_earlier):
            self.findings.append(self._weighed(number, finding, boundary))
        self._live()
        if self.is_newer:
            # The segments of an older state may be gone.
            state, self.state, self.segments = None, None, []
        self.findings += ongoing.shared_bytes(self.topic, self.segments)
        if state and self.broken is None:
            self.findings += ongoing.boundary(state, self._sound)
            self.findings += ongoing.markers(state, self.names, self.read, self.deletions)
        self.below_boundary = [self._file(version_file(number)) for number in self.read if number < boundary]

    def _weighed(self, number: int, finding: Finding, boundary: int) -> Finding:
        if finding.severity == NEWER:
            return finding
        begin = max((version for version in self._sound if self.state and version <= self.state.version), default=-1)
        if number < boundary:
            impact, fix = (
                "no record: the file is below the boundary and counts for nothing. A late writer may have put it",
                "delete the file, or let the next clean-up do it",
            )
            return _with(finding, severity=GARBAGE, impact=impact, fix=fix)
        if self.broken is None and number < begin:
            impact = f"no record now: readers begin at the checkpoint of version {begin}. The history before it cannot be read"
            return _with(finding, impact=impact)
        return finding

    def _live(self) -> None:
        """The segments to check: the segments of the newest state, or the known ones."""
        state = self.state
        if state is None or self.broken is not None:
            self.removed |= {gone.file for version in self._later for gone in version.removed}
        if state is not None:
            self.segments = [each for partition in range(state.partitions) for each in live_segments(state, partition)]
        if self._later and self.broken is not None:
            gone = {(each.partition, each.file, each.position) for version in self._later for each in version.removed}
            known = dict.fromkeys([*self.segments, *(each for version in self._later for each in version.added)])
            self.segments = [each for each in known if (each.partition, each.file, each.position) not in gone]
        self.removed -= {segment.file for segment in self.segments}

    def _fault(self, number: int, condition: str, problem: str, byte: int | None, fix: str = _RESTORE) -> None:
        file = self._file(version_file(number))
        self._numbered.append((number, _with(self._damage(condition, problem, file, byte), fix=fix)))
        self._state_ends(number)

    def _damage(self, condition: str, problem: str, file: str, byte: int | None, severity: str = DAMAGE) -> Finding:
        impact = {
            "EPOCH_TWICE": "records of an epoch are there twice",
            "SEGMENT_TWICE": "records are there twice, or in two partitions",
        }.get(condition, "the topic cannot be read, or not as it was committed")
        return Finding(severity, condition, problem, impact, _RESTORE, self.topic, file=file, byte=byte)


def _with(finding: Finding, **fields: Any) -> Finding:
    return Finding(**{**vars(finding), **fields})


def _absent(present: set[int], least: int, most: int) -> list[tuple[int, int]]:
    """The runs of numbers from `least` to `most` that are not present, as (first, last). Their number is bounded by the present files."""
    bounds = [least - 1, *sorted(number for number in present if least <= number <= most), most + 1]
    return [(one + 1, other - 1) for one, other in itertools.pairwise(bounds) if other > one + 1]
