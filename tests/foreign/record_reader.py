"""A record reader, written from docs/FORMAT.md alone: it has no code of sparklog. The numbers in comments are sections of that page."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import google_crc32c
from foreign.batches import SECTION, Refused, Row, rows
from foreign.fields import (
    CHECKPOINT,
    FEATURE,
    FEATURES,
    LINE,
    LOG_NAME,
    MAX,
    SEGMENT,
    VERSION,
    Test,
    array,
    check_rebuilt,
    check_segment,
    corrupt,
    decimal,
    fits,
    parsed,
    place,
    topic_name,
    whole,
)

NO_READERS = ("writers", "keyReaders")
"""5.1: `binds` of features that do not bind record readers."""


class State:
    """A topic after a version."""

    version = -1
    hash: str | None = None
    topic_id = ""
    tag: tuple[int, int, int] | None = None
    """The tag of the version file (9.1)."""
    horizon = boundary = 0
    deleted = True
    """So a version that begins a topic follows a deletion, or the state before version 0."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.config: dict[str, str] = {}
        self.features: dict[str, str] = {}
        self.feature_entries: list[dict[str, Any]] = []
        """With their further fields, which a writer keeps."""
        self.live: list[list[dict[str, Any]]] = []
        self.routing: Any = None

    def check_segments(self, every_offset: bool) -> None:
        """5.5, 7: no overlap; and if `every_offset`, no offset is missing."""
        for start, end, live in zip(self.starts, self.ends, self.live, strict=True):
            corrupt(all(one["end"] <= two["base"] for one, two in pairwise(live)), "segments overlap")
            if every_offset:
                held = [(segment["base"], segment["end"]) for segment in live if segment["end"] > start]
                at = min([start, *(base for base, _ in held[:1])])
                for base, until in held:
                    corrupt(base == at, "5.5, 7: a gap")
                    at = until
                corrupt(at == end, "5.5, 7: the segments do not end with the partition")


class Again(Exception):
    """9.1: the reader begins again; why, and the error if it does so twice."""

    def __init__(self, why: str, version: int, id: str = "VERSION_MISSING") -> None:
        super().__init__(why)
        self.reason = (why, version)
        self.id = id


class RecordReader:
    """Returns the records of topics."""

    FREE: ClassVar[tuple[str, ...]] = NO_READERS
    """5.1: `binds` of features that do not bind this class."""
    WORDS: ClassVar[dict[str, Test]] = {}
    """5.2: the values of the keys that bind this class, but for the two that bind all classes. None stands for no value."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        if not self.root.is_dir():
            raise Refused("ROOT_NOT_A_DIRECTORY" if self.root.exists() else "ROOT_NOT_FOUND", str(root))
        if not os.path.lexists(self.root / "_partlog"):
            raise Refused("ROOT_WITHOUT_LOG", str(root))

    def topics(self) -> list[str]:
        """1: the topics that a listing of names shows."""
        names = [name for name in self._listed("_partlog") if topic_name(name)]
        return sorted(name for name in names if _lists(self._names(name)))

    def read(self, topic: str) -> list[Row]:
        """All records, by partition and offset."""
        state = self.newest(topic)
        return [row for partition in range(len(state.ends)) for row in self._partition(topic, state, partition)]

    def _partition(self, topic: str, state: State, partition: int) -> list[Row]:
        found: list[Row] = []
        at, end = state.starts[partition], state.ends[partition]
        while True:
            try:
                for segment in state.live[partition]:
                    if segment["end"] > at and segment["base"] < end:
                        found += [row for row in self.segment(topic, state, segment) if at <= row.offset < end]
                        at = segment["end"]
                return found
            except FileNotFoundError as gone:  # 9.5
                before, state = state, self.newest(topic)
                if state.topic_id != before.topic_id or state.version == before.version:
                    raise Refused("SEGMENT_MISSING", str(gone)) from None
                if at < state.starts[partition]:
                    raise Refused("OFFSETS_EXPIRED", f"{topic}-{partition}: {at}") from None

    def segment(self, topic: str, state: State, segment: dict[str, Any]) -> list[Row]:
        """9.2."""
        shared = segment["file"].startswith("_shared/")
        octets, _ = self._bytes(segment["file"] if shared else f"_partlog/{topic}/{segment['file']}", "SEGMENT_CORRUPT", segment)
        if len(octets) < segment["bytes"]:
            raise Refused("SEGMENT_CORRUPT", f"{segment['file']} ends before the segment")
        return rows(octets, segment, max(SECTION, int(state.config["max.message.bytes"])))

    # 9.1

    def newest(self, topic: str) -> State:
        """The newest state of a topic."""
        before: object = None
        while True:
            tried: list[tuple[str, bool]] = []
            last = [0]
            try:
                state = self._attempt(topic, last, tried)
                if state.deleted:
                    raise Refused("TOPIC_NOT_FOUND", topic)
                self.check_class(state)
                return state
            except Again as again:
                reason = (again.reason, last, tried)
                if reason == before:
                    raise Refused(again.id, f"{topic}: {again}") from None
                before = reason

    def _attempt(self, topic: str, last: list[int], tried: list[tuple[str, bool]]) -> State:
        names = self._names(topic)
        if not any(kind != "deleted" for _, kind in names):
            names = self._names(topic)
        numbers = [number for number, kind in names if kind != "deleted"]
        if not numbers:
            raise Refused("TOPIC_NOT_FOUND", topic)
        last[0] = max(numbers)
        state, looked, tag, missing = State(), 0, None, "VERSION_MISSING"
        for number, kind in sorted((each for each in names if each[1].startswith("checkpoint")), reverse=True):
            name = f"{number:020d}.{kind}"
            try:
                head, state = self._checkpoint(topic, name, number)
            except FileNotFoundError:
                tried.append((name, True))
                continue
            except Refused as error:
                if error.id == "FORMAT_TOO_NEW":
                    raise
                missing = "IO" if error.id == "IO" else missing
                tried.append((name, False))
                continue
            tried.append((name, False))
            found = self._version_bytes(topic, number)
            if found is None or hashlib.sha256(found[0]).hexdigest() != state.hash:
                raise Again("another file than the checkpoint's", number, missing if found is None else "VERSION_CORRUPT")
            content = self.version(found[0], topic, number)
            try:
                self._compare(head, state, content)
            except Refused:
                state = State()
                continue
            looked, tag = number, found[1]
            state.tag = tag
            break
        while (found := self._version_bytes(topic, state.version + 1)) is not None:
            content = self.version(found[0], topic, state.version + 1)
            if state.version >= 0 and (content["previous"] != state.hash or (content["topicId"] == state.topic_id) == state.deleted):
                raise Again("it does not follow", state.version + 1, "VERSION_CORRUPT")
            if state.version < 0:
                tag = found[1]
            state = self.replayed(state, content, hashlib.sha256(found[0]).hexdigest())
            state.tag = found[1]
        if state.version < last[0]:
            raise Again("absent", state.version + 1, missing)
        now = self._version_bytes(topic, looked)
        if now is None or now[1] != tag:
            raise Again("the first file changed", looked, missing)
        if not looked and any(kind.startswith("ch") and f"{number:020d}.{kind}" not in dict(tried) for number, kind in self._names(topic)):
            raise Again("a new checkpoint", state.version)
        return state

    def _version_bytes(self, topic: str, number: int) -> tuple[bytes, tuple[int, int, int]] | None:
        try:
            return self._bytes(f"_partlog/{topic}/{number:020d}.json", "VERSION_CORRUPT")
        except FileNotFoundError:
            return None

    # 5.4

    def version(self, octets: bytes, topic: str, number: int) -> dict[str, Any]:
        """The content of a version file."""
        corrupt(len(octets) <= SECTION, "10: more than 64 MiB")
        line, _, rest = octets.partition(b"\n")
        sum = b"crc32c:%08x\n" % google_crc32c.value(line)
        corrupt(rest.startswith(sum), "5: the second line")
        content: dict[str, Any] = parsed(line)
        self.check_head(content, topic, number)
        corrupt(rest == sum, "5.4: bytes behind the second line")
        corrupt(fits(content, VERSION), "5.1: a field")
        corrupt((content["previous"] is None) == (number == 0), "5.4: previous")
        for segment in content["added"]:
            check_segment(segment)
        if "deleted" in content:
            corrupt(content["horizon"] == number + 1 and content["boundary"] == number, "5.4: a deletion")
            empty = ("config", "starts", "ends", "removed", "added", "query")
            corrupt("routing" not in content and not any(content[name] for name in empty), "5.4: a deletion that does more")
        if "rebuilt" in content:
            check_rebuilt(content["rebuilt"], content["topicId"])
        return content

    def check_head(self, content: Any, topic: str, number: int) -> None:
        """The fields that a version and the head of a checkpoint share, in the order of 5.4."""
        corrupt(fits(content, {"format": whole(1)}), "5.1: format")
        if content["format"] > 1:
            raise Refused("FORMAT_TOO_NEW", f"format {content['format']}")
        corrupt(array(lambda item: fits(item, FEATURE))(content.get("features")), "5.1: features")
        features = {each["name"]: each["binds"] for each in content["features"]}
        corrupt(len(features) == len(content["features"]), "5.1: a feature twice")
        if unknown := unknown_of(features, NO_READERS):
            raise Refused("FORMAT_TOO_NEW", ", ".join(unknown))
        for name in set(features) & set(FEATURES):
            binds, requires = FEATURES[name]
            corrupt(features[name] == binds and (requires is None or requires in features), f"5.4: the feature {name}")
        corrupt((content.get("topic"), content.get("version")) == (topic, number), "5.4: another topic or version")
        corrupt("deleted" not in content or content["deleted"] is True, "5.4: deleted")

    def check_class(self, state: State) -> None:
        """5.1, 5.2: the features and the values of the newest state that bind this class."""
        if unknown := unknown_of(state.features, self.FREE) or [key for key in self.WORDS if not self.WORDS[key](state.config.get(key))]:
            raise Refused("FORMAT_TOO_NEW", ", ".join(unknown))

    def check_numbers(self, config: dict[str, str]) -> None:
        """5.2: the keys that bind all classes."""
        corrupt(decimal(1, 10_000)(config.get("partitions")), "5.2: partitions")
        corrupt(decimal(128, 1 << 30)(config.get("max.message.bytes")), "5.2: max.message.bytes")

    # 5.5

    def replayed(self, before: State, content: dict[str, Any], hash: str) -> State:
        """The state after a version that follows."""
        begins = before.deleted
        after = State()
        after.version, after.hash, after.topic_id = content["version"], hash, content["topicId"]
        after.horizon, after.boundary, after.deleted = content["horizon"], content["boundary"], "deleted" in content
        corrupt(before.horizon <= after.horizon and before.boundary <= after.boundary, "5.5, 2")
        after.feature_entries = content["features"]
        after.features = {each["name"]: each["binds"] for each in content["features"]}
        if after.deleted:
            corrupt(not begins, "5.5: a deletion without a topic")
            return after
        after.config = {**({} if begins else before.config), **content["config"]}
        self.check_numbers(after.config)
        count, known = int(after.config["partitions"]), 0 if begins else len(before.ends)
        corrupt(count >= known, "5.5, 3: partitions fall")
        named = [each["partition"] for each in (*content["added"], *content["removed"])]
        corrupt(all(int(each) < count for each in (*named, *content["starts"], *content["ends"])), "5.5, 3: no such partition")
        starts, ends = (before.starts + [0] * (count - known), before.ends + [0] * (count - known)) if known else ([0] * count, [0] * count)
        after.starts, after.ends = list(starts), list(ends)
        for offsets, changed in ((after.starts, content["starts"]), (after.ends, content["ends"])):
            for partition, offset in changed.items():
                corrupt(begins or offset >= offsets[int(partition)], "5.5, 4: an offset falls")
                offsets[int(partition)] = offset
        corrupt(all(start <= end for start, end in zip(after.starts, after.ends, strict=True)), "5.5, 4: a start above its end")
        gone = [place(each) for each in content["removed"]]
        lives = [segment for live in before.live for segment in live]
        corrupt(len(set(gone)) == len(gone) and set(gone) <= set(map(place, lives)), "5.5, 5")
        after.live = [[] for _ in range(count)]
        for segment in lives:
            if place(segment) not in set(gone):
                after.live[segment["partition"]].append(segment)
        at = list(after.starts if begins else ends)
        edges = list(at)
        for segment in content["added"]:
            partition = segment["partition"]
            if segment["base"] >= edges[partition]:
                corrupt(segment["base"] == at[partition], "5.5, 6: a gap")
                at[partition] = segment["end"]
            else:
                corrupt(segment["end"] <= edges[partition], "5.5, 6: over the end")
            after.live[partition].append(segment)
        corrupt(at == after.ends, "5.5, 6: the ends")
        for live in after.live:
            live.sort(key=lambda segment: segment["base"])
        after.check_segments(bool(gone))
        if "rebuilt" in content:
            passed = content["rebuilt"]["passed"]
            corrupt(begins and (passed[0][1], passed[-1][1]) == (after.starts, after.ends), "5.5, 8")
        corrupt(begins or before.features.items() <= after.features.items(), "5.5, 9")
        return after

    # 6

    def _checkpoint(self, topic: str, name: str, number: int) -> tuple[dict[str, Any], State]:
        octets, _ = self._bytes(f"_partlog/{topic}/{name}", "VERSION_CORRUPT")
        lines = _Lines(octets)
        head = lines.next(SECTION)
        self.check_head(head, topic, number)
        corrupt(fits(head, CHECKPOINT), "6.1: a field of the head")
        ids = [query[0] for query in head["queries"]]
        corrupt(len(set(ids)) == len(ids), "6.1: a query twice")
        state = State()
        state.version, state.hash, state.topic_id = number, head["hash"], head["topicId"]
        state.horizon, state.boundary, state.deleted = head["horizon"], head["boundary"], "deleted" in head
        state.feature_entries = head["features"]
        state.features = {each["name"]: each["binds"] for each in head["features"]}
        state.starts, state.ends, state.config = head["starts"], head["ends"], head["config"]
        self.check_numbers(state.config)
        count = int(state.config["partitions"])
        corrupt(len(state.starts) == len(state.ends) == len(head["segments"]) == count, "6.2: not one entry for each partition")
        corrupt(all(start <= end for start, end in zip(state.starts, state.ends, strict=True)), "6.2: a start above its end")
        for partition, many in enumerate(head["segments"]):
            live: list[dict[str, Any]] = []
            for _ in range(many):
                values = lines.next(LINE)
                corrupt(isinstance(values, list) and len(values) in (14, 15), "6.1: a line")
                segment = dict(zip(SEGMENT, values, strict=False))
                more = values[14] if len(values) == 15 else {}
                corrupt(fits(segment, SEGMENT) and isinstance(more, dict) and not set(more) & set(SEGMENT), "6.1: a segment")
                check_segment({**segment, **more})
                corrupt(segment["partition"] == partition, "6.1: the order of lines")
                live.append({**segment, **more})
            corrupt(live == sorted(live, key=lambda segment: segment["base"]), "6.2: the order of base offsets")
            state.live.append(live)
        state.check_segments(True)
        if state.deleted:
            corrupt(state.starts == state.ends and not any(head["segments"]) and not head["queries"] and "routing" not in head, "6.2")
            state.starts = state.ends = []
            state.live, state.config = [], {}
        return head, state

    def _compare(self, head: dict[str, Any], state: State, content: dict[str, Any]) -> None:
        """6.2: the head and the version file of its hash."""
        same = ("topicId", "time", "horizon", "boundary")
        corrupt(all(head[name] == content[name] for name in same) and ("deleted" in head) == ("deleted" in content), "6.2: it differs")
        corrupt(state.features == {each["name"]: each["binds"] for each in content["features"]}, "6.2: the features")
        for name in ("starts", "ends"):
            for partition, offset in content[name].items():
                corrupt(int(partition) < len(head[name]) and head[name][int(partition)] == offset, f"6.2: {name}")
        corrupt(content["config"].items() <= head["config"].items(), "6.2: a setting")

    # 2: files

    def _names(self, topic: str) -> list[tuple[int, str]]:
        """The versions and kinds in names of files of the commit log."""
        found = [LOG_NAME.fullmatch(name) for name in self._listed(f"_partlog/{topic}")]
        return [(int(each[1]), each[2]) for each in found if each and int(each[1]) <= MAX]

    def _listed(self, folder: str) -> list[str]:
        try:
            return [each.name for each in self._path(folder, "IO").iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise Refused("IO", str(error)) from None

    def _path(self, name: str, id: str) -> Path:
        """2: a program follows no symbolic link below the root."""
        path = self.root
        for part in Path(name).parts:
            path /= part
            if path.is_symlink():
                raise Refused(id, f"{path} is a symbolic link")
        return path

    def _bytes(self, name: str, id: str, segment: dict[str, Any] | None = None) -> tuple[bytes, tuple[int, int, int]]:
        """The bytes of a file, or of a segment in it, and the tag of the file before it was read (9.1)."""
        path = self._path(name, id)
        try:
            about = path.lstat()
            if not stat.S_ISREG(about.st_mode):
                raise Refused(id, f"{path} is not a file")
            with path.open("rb") as file:
                if segment:
                    if segment["position"] + segment["bytes"] > about.st_size:
                        raise Refused(id, f"{path} ends before the segment")
                    file.seek(segment["position"])
                    return file.read(segment["bytes"]), (0, 0, 0)
                return file.read(SECTION + 1 if id == "VERSION_CORRUPT" and name.endswith(".json") else -1), (
                    about.st_ino,
                    about.st_size,
                    about.st_mtime_ns,
                )
        except FileNotFoundError:
            raise
        except OSError as error:
            raise Refused(id if error.errno == errno.ENOTDIR else "IO", str(error)) from None


class _Lines:
    """6.1: the lines of a checkpoint, one by one."""

    def __init__(self, octets: bytes) -> None:
        self._octets, self._at, self._sum = octets, 0, 0

    def next(self, most: int) -> Any:
        end = self._octets.find(b"\n", self._at, self._at + most + 1)
        corrupt(end >= 0, "6.2: a line that is too long, or is missing")
        line, sum = self._octets[self._at : end - 9], self._octets[end - 9 : end]
        self._at, self._sum = end + 1, google_crc32c.extend(self._sum, line)
        corrupt(sum == b"\t%08x" % self._sum, "6.2: a checksum")
        return parsed(line)


def unknown_of(features: dict[str, str], free: Iterable[str]) -> list[str]:
    """5.1: the unknown features, but for those whose `binds` is in `free`."""
    return [name for name, binds in features.items() if name not in FEATURES and binds not in free]


def _lists(names: Iterable[tuple[int, str]]) -> bool:
    """1: whether a program that lists topics lists a topic with these names."""
    markers = [number for number, kind in names if kind == "deleted"]
    return any(number > max(markers, default=-1) for number, kind in names if kind != "deleted")
