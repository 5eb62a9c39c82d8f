"""Checks a root: all topics, their files, and every segment, in several processes.

A root moves while it is read: writers commit, merge and delete. Each fault is therefore looked at again, with the state of that later
moment, and is reported only if it is still there. A read that fails is made again. A file that was never read is
reported by name, and is not a fault.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.ondisk.features import Binds
from sparklog.ondisk.names import COMMITS, checkpoint_version_of, topic_folder, version_of
from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.version import Segment
from sparklog.store.store import Damaged
from sparklog.verify.asking import AskingStore, asking
from sparklog.verify.expected import Expected
from sparklog.verify.folders import Folders, listing, topics_in, unlistable, view_findings
from sparklog.verify.report import Counts, NotRead, Report, worst_first
from sparklog.verify.rounds import Looked, Rounds, in_read_files
from sparklog.verify.segments import Checked, bytes_of, check
from sparklog.verify.versions import Chain
from sparklog.verify.workers import Workers, cores

Progress = Callable[[int, int], None]
"""Called with the bytes of segments that were checked, and of all that are to be checked."""

SETTLES_S = (0.1, 0.4, 1.0, 2.0, 4.0)
"""How long to wait before what seems wrong is looked at again. Where nothing is in motion, the first time decides."""
_AT_WORK_MS = 60_000
"""A writer that committed no longer ago may still be publishing. By the clock of the writer: a copy of the root has that too."""
_MORE_LOOKS = 10
"""How often a topic is looked at beyond that, while nothing can be said of it: a store that fails now and then, or busy writers."""
_DENIED = "it is listed, and the store says that it is absent"
_UNIT_BYTES = 32 << 20
_UNIT_SEGMENTS = 2000
_WORTHWHILE_BYTES = 128 << 20
_SEGMENT_BYTES = 256 << 10
"""To open the files of a segment takes as long as to read that many bytes."""
_WORTHWHILE_TOPICS = 64
_TOPICS_AT_ONCE = 16


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
    store = AskingStore(root.store)
    root = Root(store)
    root.require()
    known, findings, waiting = topics_in(root)
    wanted = known if topics is None else sorted(set(arguments.texts("topics", topics)))
    for topic in wanted:
        if topic not in known and COMMITS not in store.unread:
            raise SparklogError("TOPIC_NOT_FOUND", topic=topic, root=root, topics=", ".join(known) or "none")
    if topics is None:
        waiting = [*waiting, *view_findings(root, set(known))]
    above = [NotRead(None, "folder", name or ".", why) for name, why in store.unread.items()]
    rounds = {topic: Rounds() for topic in wanted}
    with Workers(jobs) as workers:
        checking = _Checking(root, quick, workers)
        checking.once_more(rounds, progress)
        for wait in settles_s:
            # The faults of the last round are looked at again, as long as a topic moves or shows something else than before.
            if doubtful := {topic: each for topic, each in rounds.items() if each.is_doubtful()}:
                time.sleep(wait)
                checking.once_more(doubtful)
        for _ in range(_MORE_LOOKS if settles_s else 0):
            if still_open := {topic: each for topic, each in rounds.items() if each.is_open()}:
                time.sleep(settles_s[0])
                checking.once_more(still_open)
    everything, counts = list(findings), Counts()
    for each in rounds.values():
        assert each.looked
        everything += map(each.looked.told, each.still)
        waiting += each.looked.waiting
        above += each.not_checked()
        counts = counts.plus(each.counts())
    seconds = time.monotonic() - began
    return Report(str(root), quick, worst_first(everything), waiting, counts, seconds, list(dict.fromkeys(above)))


class _Checking:
    def __init__(self, root: Root, quick: bool, workers: Workers) -> None:
        self._root = root
        self._quick = quick
        self._workers = workers

    def once_more(self, rounds: dict[str, Rounds], progress: Progress | None = None) -> None:
        """Looks at these topics, and checks the segments that are not known to be right."""
        due = {looked.topic: rounds[looked.topic].look(looked) for looked in self._topics(list(rounds))}
        checked = self._segments([each for of_topic in due.values() for each in of_topic], progress)
        for topic, expected in due.items():
            rounds[topic].decide(expected, [checked[id(each)] for each in expected])

    def _topics(self, names: list[str]) -> list[Looked]:
        """Looks at the metadata of these topics."""
        units = [names[at : at + _TOPICS_AT_ONCE] for at in range(0, len(names), _TOPICS_AT_ONCE)]
        tasks = [(look, (self._root, unit)) for unit in units]
        done = dict(self._workers.run(tasks, len(names) >= _WORTHWHILE_TOPICS))
        return [looked for number in range(len(units)) for looked in done[number]]

    def _segments(self, expected: list[Expected], progress: Progress | None) -> dict[int, Checked]:
        """The checks of segments, by the `id` of its input."""
        units = _units(expected)
        total = bytes_of(expected)
        tasks = [(check, (self._root, unit, self._quick)) for unit in units]
        found: dict[int, Checked] = {}
        done = 0
        if progress:
            progress(0, total)
        for number, checked in self._workers.run(tasks, self._is_worthwhile(total, len(expected))):
            found.update(zip(map(id, units[number]), checked, strict=True))
            done += bytes_of(units[number])
            if progress:
                progress(done, total)
        return found

    def _is_worthwhile(self, size: int, segments: int) -> bool:
        return (0 if self._quick else size) + segments * _SEGMENT_BYTES >= _WORTHWHILE_BYTES


def look(root: Root, topics: list[str]) -> list[Looked]:
    """Looks at the metadata of some topics."""
    now = int(time.time() * 1000)
    return [_look(root, topic, range(now - _AT_WORK_MS, now + _AT_WORK_MS)) for topic in topics]


def _look(root: Root, topic: str, recent: range) -> Looked:
    store = asking(root)
    store.unread.clear()
    folder = topic_folder(topic)
    try:
        listed = listing(root, topic)
    except OSError as error:
        unread = [NotRead(topic, "folder", folder, str(error))]
        return Looked(topic, [], [], unread, [], Counts(topics=1), Counts(), (), set(), False, False)
    except Damaged as damage:
        return Looked(topic, [], [unlistable(topic, folder, damage)], [], [], Counts(topics=1), Counts(), (), set(), False, False)
    chain = Chain(root, topic, [entry.name for entry in listed], recent).replay()
    unread = [*_not_read(chain, topic, store.unread), *(NotRead(topic, _kind(file), file, _DENIED) for file in chain.denied)]
    folders = Folders(root, chain, listed)
    folders.run()
    findings, waiting = [*chain.findings, *folders.findings], folders.waiting
    if unread:
        findings, waiting = in_read_files(chain.findings), []  # a version that was not read may name a file, or delete one
    unread = [*unread, *(each for each in _not_read(chain, topic, store.unread) if each not in unread)]
    state, segments = chain.state, chain.segments
    if state is None and chain.newest >= 0 and not chain.findings and not unread:
        unread.append(NotRead(topic, "folder", folder, "the newest state could not be made"))
    return Looked(
        topic,
        _expected(chain, folders),
        findings,
        unread,
        waiting,
        Counts(topics=int(chain.newest >= 0), versions=chain.versions, checkpoints=chain.checkpoints),
        Counts(
            versions=len(chain.needed),
            checkpoints=chain.listed_checkpoints,
            segments=len(segments),
            bytes=sum(segment.bytes for segment in segments),
        ),
        (chain.newest, state.hash if state else None, tuple(entry.name for entry in listed)),
        chain.fresh,
        bool(state and state.deleted and state.time in recent),
        chain.sweeping,
    )


def _not_read(chain: Chain, topic: str, failed: Mapping[str, str]) -> list[NotRead]:
    """The files of a topic that could not be read. Nothing needs a version below the boundary."""
    versions = {file: version_of(file.rpartition("/")[2]) for file in failed}
    return [
        NotRead(topic, _kind(file), file, why)
        for file, why in sorted(failed.items())
        if (number := versions[file]) is None or number in chain.needed or number > chain.newest
    ]


def _kind(file: str) -> str:
    name = file.rpartition("/")[2]
    if version_of(name) is not None:
        return "version"
    if checkpoint_version_of(name) is not None:
        return "checkpoint"
    return "folder" if file.startswith(f"{COMMITS}/") else "view"


def _expected(chain: Chain, folders: Folders) -> list[Expected]:
    state = chain.state
    if state is None:
        return []
    tables: dict[int, Sequence[int]] = {}
    where_keys_go, writable = state.is_known_to(Binds.KEY_READERS), state.is_known_to(Binds.WRITERS)
    return [
        Expected(
            chain.topic,
            segment if where_keys_go else segment._replace(routed=False),
            state.starts[segment.partition] if segment.partition < len(state.starts) else 0,
            state.partitions,
            state.config.get("partitioner", ""),
            _table(state, segment, tables),
            int(state.config["max.message.bytes"]),
            tuple(sorted(chain.intervals)),
            chain.sent.get((segment.partition, segment.file, segment.position)),
            folders.has_view and writable and segment.in_view(state.config),
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
