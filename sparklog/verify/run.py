"""Checks a root: all topics, their files, and every segment, in several processes.

A root moves while it is read: writers commit, merge and delete. Each fault is therefore looked at again, with the state of that later
moment, and is reported only if it is still there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.ondisk.features import Binds
from sparklog.ondisk.names import is_own_file
from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.version import Segment
from sparklog.store.store import Damaged
from sparklog.verify.expected import Expected
from sparklog.verify.folders import Folders, listing, topics_in, view_findings
from sparklog.verify.report import DAMAGE, Counts, Finding, Report, Waiting, worst_first
from sparklog.verify.segments import bytes_of, check
from sparklog.verify.versions import Chain
from sparklog.verify.workers import Workers, cores

Progress = Callable[[int, int], None]
"""Called with the bytes of segments that were checked, and of all that are to be checked."""

SETTLES_S = (0.1, 0.4, 1.0, 2.0, 4.0)
"""How long to wait before what seems wrong is looked at again. Where nothing is in motion, the first time decides."""
_AT_WORK_MS = 60_000
"""A writer that committed no longer ago may still be publishing. By the clock of the writer: a copy of the root has that too."""
_OF_PUBLISHING = {"VIEW_MISSING", "VIEW_STRAY", "VIEW_WRONG", "INDEX_WRONG"}
_WAIT = "verify again in a minute, as a writer that committed less than a minute ago may still be at work here; if it stays, "
_UNIT_BYTES = 32 << 20
_UNIT_SEGMENTS = 2000
_WORTHWHILE_BYTES = 128 << 20
_SEGMENT_BYTES = 256 << 10
"""To open the files of a segment takes as long as to read that many bytes."""
_WORTHWHILE_TOPICS = 64
_TOPICS_AT_ONCE = 16


class Looked(NamedTuple):
    """The findings in a topic's metadata. `moment` differs if the topic has moved. `fresh` and `sweeping` are the fields of `Chain`;
    `deleting` says that the topic has just been deleted.
    """

    topic: str
    expected: list[Expected]
    findings: list[Finding]
    waiting: list[Waiting]
    counts: Counts
    moment: tuple[object, ...]
    fresh: set[tuple[int, int]]
    deleting: bool
    sweeping: bool

    def is_at_work(self, finding: Finding) -> bool:
        """Whether a writer that has just committed may still be at work on this."""
        if finding.condition == "MARKER_MISSING":
            return self.deleting
        if finding.condition == "ORPHAN":
            return self.sweeping
        return finding.condition in _OF_PUBLISHING and (finding.partition, finding.offset) in self.fresh

    def told(self, finding: Finding) -> Finding:
        """The finding, with a note if a writer may be at work on it."""
        return replace(finding, fix=_WAIT + finding.fix) if self.is_at_work(finding) else finding


def verify(
    root: Root,
    topics: Iterable[str] | None = None,
    *,
    quick: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
    settles_s: Sequence[float] = SETTLES_S,
) -> Report:
    """Checks the topics of a root, by default all. `Log.verify` explains the arguments; `settles_s` are the waits before a second look."""
    began = time.monotonic()
    quick, progress = arguments.boolean("quick", quick), arguments.function("progress", progress)
    jobs = cores() if jobs is None else arguments.positive("jobs", jobs)
    root.require()
    known, findings, waiting = topics_in(root)
    wanted = known if topics is None else sorted(set(arguments.texts("topics", topics)))
    for topic in wanted:
        if topic not in known:
            raise SparklogError("TOPIC_NOT_FOUND", topic=topic, root=root, topics=", ".join(known) or "none")
    if topics is None:
        waiting = [*waiting, *view_findings(root, set(known))]
    with Workers(jobs) as workers:
        checking = _Checking(root, quick, workers, progress)
        first = checking.topics(wanted)
        found = checking.segments([each for looked in first for each in looked.expected])
        seen = {looked.topic: [*looked.findings, *found.get(looked.topic, [])] for looked in first}
        decided = dict(seen)
        before = {looked.topic: looked for looked in first}
        for wait in settles_s:
            # The faults of the last round are looked at again, as long as a topic moves or shows something else than before.
            doubtful = [topic for topic in seen if seen[topic] and not checking.is_certain(topic)]
            if not doubtful:
                break
            time.sleep(wait)
            for looked in checking.topics(doubtful):
                topic = looked.topic
                seen[topic], decided[topic] = checking.again(before[topic], looked, seen[topic])
                before[topic] = looked
    everything = [*findings, *(before[topic].told(finding) for topic in decided for finding in decided[topic])]
    waiting = [*waiting, *(each for looked in before.values() for each in looked.waiting)]
    return Report(str(root), quick, worst_first(everything), waiting, checking.counts(before.values()), time.monotonic() - began)


class _Checking:
    def __init__(self, root: Root, quick: bool, workers: Workers, progress: Progress | None) -> None:
        self._root = root
        self._quick = quick
        self._workers = workers
        self._progress = progress
        self._checked = Counts()
        self._certain: set[str] = set()

    def topics(self, names: list[str]) -> list[Looked]:
        """Looks at the metadata of these topics."""
        units = [names[at : at + _TOPICS_AT_ONCE] for at in range(0, len(names), _TOPICS_AT_ONCE)]
        tasks = [(look, (self._root, unit)) for unit in units]
        done = dict(self._workers.run(tasks, len(names) >= _WORTHWHILE_TOPICS))
        return [looked for number in range(len(units)) for looked in done[number]]

    def segments(self, expected: list[Expected]) -> dict[str, list[Finding]]:
        """The findings in segments, by topic."""
        units = _units(expected)
        total = bytes_of(expected)
        tasks = [(check, (self._root, unit, self._quick)) for unit in units]
        found: dict[str, list[Finding]] = {}
        done = 0
        if self._progress:
            self._progress(0, total)
        for number, (findings, counts) in self._workers.run(tasks, self._is_worthwhile(total, len(expected))):
            for finding in findings:
                assert finding.topic is not None
                found.setdefault(finding.topic, []).append(finding)
            self._checked = self._checked.plus(counts)
            done += bytes_of(units[number])
            if self._progress:
                self._progress(done, total)
        return found

    def _is_worthwhile(self, size: int, segments: int) -> bool:
        return (0 if self._quick else size) + segments * _SEGMENT_BYTES >= _WORTHWHILE_BYTES

    def again(self, before: Looked, now: Looked, seen: list[Finding]) -> tuple[list[Finding], list[Finding]]:
        """The findings in segments that were wrong before or were not there; and the findings among them that were seen before too."""
        files = {finding.file for finding in seen}
        known = {each.segment for each in before.expected}
        doubtful = [each for each in now.expected if each.segment not in known or _concerns(each, files)]
        counted = self._checked
        found = [*now.findings, *check(self._root, doubtful, self._quick)[0]]
        self._checked = counted
        places = {finding.same_place() for finding in seen}
        fresh = {each.segment.file for each in doubtful if each.segment not in known}
        still = [finding for finding in found if finding.same_place() in places]
        at_work = any(now.is_at_work(finding) for finding in still)
        if before.moment == now.moment and {finding.same_place() for finding in still} == places and not at_work:
            self._certain.add(now.topic)
        return [*still, *(finding for finding in found if _is_of(finding, fresh) and finding not in still)], still

    def is_certain(self, topic: str) -> bool:
        """Whether the same was found twice while nothing moved."""
        return topic in self._certain

    def counts(self, looked: Iterable[Looked]) -> Counts:
        """How much was looked at."""
        counts = self._checked
        for each in looked:
            counts = counts.plus(each.counts)
        return counts


def look(root: Root, topics: list[str]) -> list[Looked]:
    """Looks at the metadata of some topics."""
    now = int(time.time() * 1000)
    return [_look(root, topic, range(now - _AT_WORK_MS, now + _AT_WORK_MS)) for topic in topics]


def _look(root: Root, topic: str, recent: range) -> Looked:
    try:
        listed = listing(root, topic)
    except (OSError, Damaged) as error:
        finding = Finding(
            DAMAGE, "IO", f"it cannot be listed: {error}", "the topic cannot be read", "make it readable", topic, file=f"_partlog/{topic}"
        )
        return Looked(topic, [], [finding], [], Counts(topics=1), (), set(), False, False)
    chain = Chain(root, topic, [entry.name for entry in listed], recent).read()
    folders = Folders(root, chain, listed)
    folders.run()
    state = chain.state
    counts = Counts(topics=int(chain.newest >= 0), versions=chain.versions, checkpoints=chain.checkpoints)
    return Looked(
        topic,
        _expected(chain, folders),
        [*chain.findings, *folders.findings],
        folders.waiting,
        counts,
        (chain.newest, state.hash if state else None, tuple(entry.name for entry in listed)),
        chain.fresh,
        bool(state and state.deleted and state.time in recent),
        chain.sweeping,
    )


def _expected(chain: Chain, folders: Folders) -> list[Expected]:
    state = chain.state
    if state is None:
        return []
    ends = {segment.file: 0 for segment in chain.segments}
    for segment in chain.segments:
        ends[segment.file] = max(ends[segment.file], segment.end_of_index)
    tables: dict[int, Sequence[int]] = {}
    where_keys_go = not state.features.unknown_to(Binds.KEY_READERS)
    return [
        Expected(
            chain.topic,
            segment if where_keys_go else segment._replace(routed=False),
            state.starts[segment.partition] if segment.partition < len(state.starts) else 0,
            state.partitions,
            state.config["partitioner"],
            _table(state, segment, tables),
            int(state.config["max.message.bytes"]),
            tuple(sorted(chain.intervals)),
            chain.sent.get((segment.partition, segment.file, segment.position)),
            folders.has_view and segment.in_view(state.config),
            _file_end(chain, segment.file) if segment.end_of_index == ends[segment.file] else None,
            folders.sizes.get(segment.file),
        )
        for segment in chain.segments
    ]


def _table(state: State, segment: Segment, known: dict[int, Sequence[int]]) -> Sequence[int] | None:
    """The slot table of the routing epoch of a segment; None without slots, and where it is forgotten."""
    routing = state.routing_if_known
    if not routing or not segment.routed or (not state.binds and segment.end <= state.starts[segment.partition]):
        return None
    after = state.reroutes_before(segment)
    if after not in known:
        known[after] = routing.table_after(after)
    return known[after]


def _file_end(chain: Chain, file: str) -> int | None:
    """The end of the last segment of a data file, also of a removed segment; None if that is not known."""
    return max(end for _, end in chain.extents[file]) if is_own_file(file) or file in chain.added else None


def _units(expected: list[Expected]) -> list[list[Expected]]:
    """The segments in parts of some megabytes; the largest come first, so that no process is left with a large part in the end."""
    units: list[list[Expected]] = []
    size = _UNIT_BYTES
    for each in expected:
        if size >= _UNIT_BYTES or len(units[-1]) >= _UNIT_SEGMENTS:
            units.append([])
            size = 0
        units[-1].append(each)
        size += each.segment.bytes
    return sorted(units, key=bytes_of, reverse=True)


def _concerns(each: Expected, files: set[str | None]) -> bool:
    view = f"{each.topic}-{each.segment.partition}/{each.segment.base:020d}"
    names = [f"_partlog/{each.topic}/{each.segment.file}", *(f"{view}{suffix}" for suffix in (".log", ".index", ".timeindex"))]
    return any(name in files for name in names)


def _is_of(finding: Finding, files: set[str]) -> bool:
    return finding.file is not None and any(finding.file.endswith(f"/{file}") for file in files)
