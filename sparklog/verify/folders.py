"""Every name below the root: names of the format, names that wait for their deletion, and the rest. FORMAT.md sections 2 and 12."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from sparklog.batches.header import HEADER_BYTES, Header
from sparklog.batches.records import Payload
from sparklog.ondisk.features import Binds
from sparklog.ondisk.names import (
    COMMITS,
    INT64_MAX,
    OTHERS,
    PROBE,
    SERVERS,
    SHARED,
    checkpoint_version_of,
    deleted_version_of,
    is_data_file,
    is_identity,
    is_shared,
    is_topic,
    topic_file,
    topic_folder,
    version_of,
    view_file_of,
    view_folder,
)
from sparklog.ondisk.root import Root
from sparklog.store.store import Absent, Damaged, Entry
from sparklog.verify.asking import asking
from sparklog.verify.report import DAMAGE, GARBAGE, REPAIRABLE, Finding, Waiting, tallied
from sparklog.verify.versions import Chain

_DATA_FOLDER = re.compile("([0-9]{20})-(.{22})")
_VIEW_FOLDER = re.compile("(.+)-(0|[1-9][0-9]{0,3})")
_CLOCKS_MS = 60_000
"""How far the clocks of machines may lie apart."""
_DAY_S = 24 * 60 * 60
_FIRST_BATCH_BYTES_MAX = 1 << 24
_NOTHING = "nothing: no reader looks there"


_KINDS = {"file": "a file", "folder": "a folder", "link": "a symbolic link", "other": "neither a file nor a folder"}


def topics_in(root: Root) -> tuple[list[str], list[Finding], list[Waiting]]:
    """The topics of a root, which is there, also deleted topics; and the faults above them."""
    findings: list[Finding] = []
    topics: list[str] = []
    strange: list[tuple[str, int]] = []
    above: list[Entry] = []
    try:
        above = root.store.entries("")
    except OSError:
        pass
    except Damaged as damage:
        findings.append(unlistable(None, ".", damage))
    for entry in above:
        if entry.name == COMMITS and not entry.is_folder:
            return topics, [_wrong_kind(COMMITS, entry, DAMAGE, "no topic can be read", "put the folder back")], []
        if entry.name not in (COMMITS, PROBE, SERVERS, SHARED) and not (_VIEW_FOLDER.fullmatch(entry.name)):
            strange.append((entry.name, 0))
    try:
        for entry in filled(root, COMMITS):
            file = f"{COMMITS}/{entry.name}"
            if entry.is_folder and is_topic(entry.name):
                topics.append(entry.name)
            elif is_topic(entry.name) and entry.kind == "link":
                findings.append(
                    _wrong_kind(file, entry, DAMAGE, "topics cannot be listed, and the topic cannot be read", "put the folder back")
                )
            else:
                findings.append(_unknown(None, file))
    except OSError:
        pass
    except Damaged as damage:
        findings.append(unlistable(None, COMMITS, damage))
    return topics, findings, tallied(None, "other", strange)


class Folders:
    """Looks at every name in the folders of a topic. `findings` and `waiting` are there after `run`."""

    def __init__(self, root: Root, chain: Chain, listed: list[Entry]) -> None:
        self._root = root
        self._chain = chain
        self._topic = chain.topic
        self._listed = listed
        self.findings: list[Finding] = []
        self.waiting: list[Waiting] = []
        self.has_view = False
        self.sizes: dict[str, int] = {}
        """The bytes of the live data files, as listed: only of a store over a network, where a further look at a file takes long."""
        self._unnamed = -1
        """The greatest planned version of a data file that no version names."""

    def run(self) -> None:
        """Does it."""
        for entry in self._listed:
            file = topic_file(self._topic, entry.name)
            if entry.name == OTHERS:
                continue
            if entry.name in ("data", "tmp"):
                if not entry.is_folder:
                    impact = "its data files cannot be read" if entry.name == "data" else "nothing can be written to the topic"
                    self.findings.append(_wrong_kind(file, entry, DAMAGE, impact, "put the folder back", self._topic))
                continue
            known = (version_of, checkpoint_version_of, deleted_version_of)
            if not any(number(entry.name) is not None for number in known):
                self.findings.append(_unknown(self._topic, file))
            elif deleted_version_of(entry.name) is not None and (not entry.is_file or entry.bytes):
                problem = f"a deletion marker is an empty file; this is {_KINDS[entry.kind]} of {entry.bytes} bytes"
                fix = "put an empty file in its place"
                self.findings.append(
                    Finding(GARBAGE, "MARKER_WRONG", problem, "nothing: only its name counts", fix, self._topic, file=file, byte=0)
                )
        self._temporary()
        if not self._chain.is_newer:
            self._data()
        if self._root.store.has_links:
            self._view()
        self.waiting += tallied(self._topic, "version", ((name, 0) for name in self._chain.below_boundary))

    def _inside(self, folder: str) -> list[Entry]:
        try:
            return self._root.store.entries(folder)
        except OSError:
            return []
        except Damaged as damage:
            self.findings.append(unlistable(self._topic, folder, damage))
            return []

    def _is_folder(self, name: str) -> bool:
        return any(entry.name == name and entry.is_folder for entry in self._listed)

    def _temporary(self) -> None:
        folder = topic_file(self._topic, "tmp")
        young = []
        for entry in self._inside(folder) if self._is_folder("tmp") else ():
            file = f"{folder}/{entry.name}"
            age = time.time() - entry.modified
            if entry.is_file and age < _DAY_S:
                young.append((file, entry.bytes))
            elif entry.is_file:
                problem = f"a writer left it {age / _DAY_S:.0f} days ago, with {entry.bytes:,} bytes"
                self.findings.append(Finding(GARBAGE, "LEFTOVER", problem, _NOTHING, _VACUUM, self._topic, file=file))
            else:
                self.findings.append(_unknown(self._topic, file))
        self.waiting += tallied(self._topic, "temporary", young)

    def _kept(self, live: set[str]) -> set[str]:
        """The data files of versions that are kept: none that is about as old as it must be, by a clock that may be another one."""
        now = time.time() * 1000
        kept = {file for file, each in self._chain.kept.items() if abs(now - each.time) < each.keep - _CLOCKS_MS}
        return {file for file in kept - live if not is_shared(file)} if self._chain.broken is None else set()

    def _data(self) -> None:
        live = {segment.file for segment in self._chain.segments if not is_shared(segment.file)}
        kept = self._kept(live)
        if self._is_folder("data"):
            kept -= self._in_data(live, kept)
        for file in sorted(kept):
            version = self._chain.kept[file].version
            problem = f"the data file does not exist. Version {version} removed it, and `versions.keep.ms` keeps the versions before"
            impact = f"no record now; reads of versions below {version} fail"
            fix = "restore the file from a copy, if such a version is needed"
            below = topic_file(self._topic, file)
            self.findings.append(Finding(DAMAGE, "SEGMENT_MISSING", problem, impact, fix, self._topic, file=below))

    def _in_data(self, live: set[str], kept: set[str]) -> set[str]:
        """The data files that are there."""
        base = topic_file(self._topic, "data")
        removed, unnamed, there = [], [], set()
        store = asking(self._root)
        try:
            # A file that a version names and a listing lacks may have been deleted; or the listing is wrong.
            tree = store.until(
                lambda: store.tree(base), lambda found: live | kept <= {_data_file(folder, e) for folder in found for e in found[folder]}
            )
        except (OSError, Damaged):
            tree = {}  # each folder is listed again, so that the faults name it
        for folder in tree[""] if tree else self._inside(base):
            name = f"{base}/{folder.name}"
            match = _DATA_FOLDER.fullmatch(folder.name)
            if not match or int(match[1]) > INT64_MAX or not is_identity(match[2]):
                self.findings.append(_unknown(self._topic, name))
                continue
            if not folder.is_folder:
                used = any(file.startswith(f"data/{folder.name}/") for file in live)
                impact = "its data files cannot be read" if used else _NOTHING
                self.findings.append(_wrong_kind(name, folder, DAMAGE if used else GARBAGE, impact, "put the folder back", self._topic))
                continue
            for entry in tree[folder.name] if tree else self._inside(name):
                file = f"data/{folder.name}/{entry.name}"
                below = topic_file(self._topic, file)
                there.add(file)
                if file in live:
                    if entry.is_file and not self._root.store.has_links:
                        self.sizes[file] = entry.bytes
                    continue
                if not is_data_file(file) or not entry.is_file:
                    self.findings.append(_unknown(self._topic, below))
                elif file in self._chain.removed or file in self._chain.named:
                    removed.append((below, entry.bytes))
                elif (no_writer := self._no_writer(int(match[1]))) is not None:
                    why, fix = no_writer
                    problem = f"no version names it, and {why}; it has {entry.bytes:,} bytes"
                    self.findings.append(Finding(GARBAGE, "ORPHAN", problem, _NOTHING, fix, self._topic, file=below))
                else:
                    unnamed.append((below, entry.bytes))
                    self._unnamed = max(self._unnamed, int(match[1]))
        self.waiting += tallied(self._topic, "removed", removed) + tallied(self._topic, "unnamed", unnamed)
        return there

    def _no_writer(self, planned: int) -> tuple[str, str] | None:
        """Why no writer that was planned at this version can commit now, and the fix. None if one can."""
        state = self._chain.state
        if state and planned < state.horizon:
            return f"its writer was planned at version {planned}, below the horizon {state.horizon}", _VACUUM
        if 0 <= self._chain.newest < planned - 1:
            fix = f"if version {planned - 1} was ever committed, restore it and those before it from a copy; otherwise delete the file"
            return f"its folder is of version {planned}, and the next version is {self._chain.newest + 1}", fix
        return None

    def _view(self) -> None:
        state = self._chain.state
        if state is None:
            if self._chain.newest < 0 and self._unnamed >= 0:
                self._lost()
            return
        if not state.is_known_to(Binds.WRITERS):
            return
        viewed: dict[int, set[int]] = {}
        for segment in self._chain.segments:
            if segment.in_view(state.config):
                viewed.setdefault(segment.partition, set()).add(segment.base)
        for partition in range(state.partitions):
            folder = view_folder(self._topic, partition)
            try:
                entry = self._root.store.look(folder)
            except OSError:
                continue
            if entry is None:
                continue
            self.has_view = True
            if not entry.is_folder:
                impact = "no record; the partition has no Kafka view"
                self.findings.append(_wrong_kind(folder, entry, REPAIRABLE, impact, "delete it, and CALL partlog.publish", self._topic))
                continue
            if self._chain.broken is None:
                self._strays(partition, folder, viewed.get(partition, set()), state.ends[partition])
        if not self.has_view and viewed:
            self.waiting.append(Waiting(self._topic, "view", 0, 0, view_folder(self._topic, 0)))

    def _lost(self) -> None:
        """The topic has data files and no version: the segments in its view were committed."""
        for folder in self._inside(""):
            match = _VIEW_FOLDER.fullmatch(folder.name)
            if match and match[1] == self._topic and folder.is_folder:
                for entry in self._inside(folder.name):
                    file, name = f"{folder.name}/{entry.name}", view_file_of(entry.name)
                    if name and name[1] == "log" and self._is_published(file, name[0]):
                        self._commit_lost("it holds records, and the topic has no version file", int(match[2]), name[0], file)

    def _commit_lost(self, problem: str, partition: int, base: int, file: str) -> None:
        impact, fix = f"the records from offset {base} on", "restore the missing version files from a copy, before the next commit"
        self.findings.append(Finding(DAMAGE, "COMMIT_LOST", problem, impact, fix, self._topic, partition, base, file, 0))

    def _strays(self, partition: int, folder: str, viewed: set[int], end: int) -> None:
        strange = []
        for entry in self._inside(folder):
            file = f"{folder}/{entry.name}"
            name = view_file_of(entry.name)
            if name is None:
                strange.append((file, 0))
                continue
            base, kind = name
            if base in viewed:
                continue
            assert self._chain.state
            if kind == "log" and base >= end and self._is_of_this_topic() and self._is_published(file, base):
                problem = f"it holds records from offset {base} on, and the partition ends at offset {end}: their version is missing"
                self._commit_lost(problem, partition, base, file)
            else:
                problem, fix = (
                    "no live segment that belongs in the view begins at that offset",
                    "CALL partlog.publish removes it; so may the next commit",
                )
                impact = "no record of sparklog; Kafka's tools see records that are not there"
                self.findings.append(Finding(REPAIRABLE, "VIEW_STRAY", problem, impact, fix, self._topic, partition, base, file))
        self.waiting += tallied(self._topic, "other", strange)

    def _is_of_this_topic(self) -> bool:
        """Whether the view can hold segments of this topic, and not of a deleted topic of its name whose view was not emptied."""
        deletions = [number for entry in self._listed if (number := deleted_version_of(entry.name)) is not None]
        return not deletions or self._unnamed > max(deletions)

    def _is_published(self, file: str, base: int) -> bool:
        """Whether a file of the view begins with a right batch at this offset. Only committed segments are published."""
        try:
            with self._root.store.open(file) as log:
                header = Header.read(log.read(0, HEADER_BYTES), 0, log.size)
                if header.base_offset != base or header.total_bytes > _FIRST_BATCH_BYTES_MAX:
                    return False
                Payload.of(header, memoryview(log.read(0, header.total_bytes)), base, _FIRST_BATCH_BYTES_MAX)
        except (Absent, Damaged, OSError):
            return False
        return True


_VACUUM = "CALL partlog.vacuum deletes it"


def view_findings(root: Root, topics: set[str]) -> Iterator[Waiting]:
    """Folders with names like the Kafka view's that do not belong to any of these topics."""
    try:
        listed = root.store.entries("")
    except (OSError, Damaged):
        return  # `topics_in` has said so.
    if not root.store.has_links:
        topics = set()  # no folder belongs to a view
    matches = [match for entry in listed if (match := _VIEW_FOLDER.fullmatch(entry.name))]
    yield from tallied(None, "other", [(match[0], 0) for match in matches if match[1] not in topics])


def _unknown(topic: str | None, file: str) -> Finding:
    problem = "the format has nothing with this name and of this kind"
    return Finding(GARBAGE, "UNKNOWN_FILE", problem, _NOTHING, "move it away, if it is not needed", topic, file=file)


def _wrong_kind(file: str, entry: Entry, severity: str, impact: str, fix: str, topic: str | None = None) -> Finding:
    return Finding(severity, "WRONG_KIND", f"{_KINDS[entry.kind]} is in the place of a folder", impact, fix, topic, file=file)


def _data_file(folder: str, entry: Entry) -> str:
    return f"data/{folder}/{entry.name}"


def unlistable(topic: str | None, file: str, damage: Damaged) -> Finding:
    """The fault that something else is in the place of a folder."""
    problem, impact = f"it cannot be listed: {damage}", "what is in it was not checked"
    return Finding(DAMAGE, "WRONG_KIND", problem, impact, "put the folder back", topic, file=file)


def listing(root: Root, topic: str) -> list[Entry]:
    """The entries of the folder of a topic. OSError if it cannot be listed; Damaged if a link is in its place."""
    return filled(root, topic_folder(topic))


def filled(root: Root, folder: str) -> list[Entry]:
    """The entries of a folder that is there. OSError also if the store lists nothing where a folder has something in it."""
    store = asking(root)
    found = store.until(lambda: store.entries(folder), lambda entries: bool(entries) or store.has_empty_folders)
    if not found and not store.has_empty_folders:
        store.unread[folder] = "the folder is there, and the store lists nothing in it"
        raise OSError(store.unread[folder])
    return found
