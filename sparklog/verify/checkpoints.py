"""A checkpoint by itself, and against the state that the version files make. FORMAT.md section 6."""

from __future__ import annotations

import contextlib
import hashlib
from typing import NamedTuple

import google_crc32c

from sparklog.batches.faults import Unreadable, Vanished
from sparklog.ondisk.checkpoint import HEAD_BYTES_MAX, LINE_BYTES_MAX, Checkpoint, Head
from sparklog.ondisk.features import Feature
from sparklog.ondisk.fields import parse
from sparklog.ondisk.names import topic_file
from sparklog.ondisk.producers import LastBatches, Producers
from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.version import Segment
from sparklog.store.store import Absent, Damaged

Queries = dict[str, tuple[int, str | None, int]]
"""By id: epoch, input, and time of the last version with the epoch."""
_BLOCK_BYTES = 1 << 20
_TAIL_BYTES = len("\t00000000")


class Sound(NamedTuple):
    """A checkpoint that keeps to every rule of section 6, with the queries of its head and its producers."""

    file: Checkpoint
    queries: Queries
    producers: dict[tuple[int, int], LastBatches]

    @property
    def head(self) -> Head:
        """Its first line."""
        return self.file.head


class Unsound(Exception):
    """A checkpoint that breaks a rule, with the byte where it does."""

    def __init__(self, reason: object, byte: int) -> None:
        super().__init__(str(reason))
        self.byte = byte


def read(root: Root, topic: str, name: str, version: int) -> Sound | None:
    """The checkpoint of this name; None if it is gone. Unsound if it breaks a rule; TooNew if a later version of the format wrote it."""
    try:
        first = _read_lines(root, topic, name)
    except Absent:
        return None
    except (Damaged, OSError) as damage:
        raise Unsound(damage, 0) from None
    try:
        found = Checkpoint(root, topic, name, version, knowing=True)
        for live in State.of(found).live:
            live.all()
        queries = {query[0]: (query[1], query[2], query[3]) for query in parse(first)["queries"]}
    except Vanished:
        return None
    except Unreadable as reason:
        raise Unsound(reason, 0) from None
    return Sound(found, queries, found.producers)


def _read_lines(root: Root, topic: str, name: str) -> bytes:
    """Checks every line's checksum, and the name. Returns the JSON of line 1. No check looks behind the line of the last producer."""
    first, rest, at, total, left = None, b"", 0, 0, 1
    digest = hashlib.sha256()
    with root.store.open_at(topic_file(topic, name), 0) as file:
        while left and (block := file.read(at + len(rest), _BLOCK_BYTES)):
            *lines, rest = (rest + block).split(b"\n")
            if len(rest) > HEAD_BYTES_MAX:
                raise Unsound("it has a line that is too long", at)
            for line in lines:
                if not left:
                    break
                text = line[:-_TAIL_BYTES]
                total = google_crc32c.extend(total, text)
                digest.update(text)
                if len(line) > (HEAD_BYTES_MAX if first is None else LINE_BYTES_MAX):
                    raise Unsound("it has a line that is too long", at)
                if line[-_TAIL_BYTES:] != b"\t%08x" % total:
                    raise Unsound(f"the line at byte {at} has a wrong checksum", at)
                at += len(line) + 1
                left -= 1
                if first is None:
                    first, left = text, _lines(text)
    if first is None or left:
        raise Unsound("its last line is cut off", at)
    if f"-{digest.hexdigest()[:16]}." not in name:
        raise Unsound(f"its name does not have the first digits of its content's SHA-256, {digest.hexdigest()[:16]}", 0)
    return first


def _lines(text: bytes) -> int:
    """How many lines a head counts. If it is damaged, the error is found elsewhere."""
    with contextlib.suppress(Damaged, KeyError, TypeError):
        head = parse(text)
        knows = Feature.PRODUCERS.text in [feature["name"] for feature in head["features"]]
        lines: int = sum(head["segments"]) + (head.get("producers", 0) if knows else 0)
        return lines
    return 0


def difference(sound: Sound, state: State, queries: Queries, producers: Producers) -> str | None:
    """The difference between a checkpoint and the state at its version; None if they agree."""
    head = sound.head
    for name in (
        "topic_id",
        "hash",
        "time",
        "horizon",
        "boundary",
        "deleted",
        "starts",
        "ends",
        "features",
        "routing_if_known",
        *(() if state.deleted else ("config",)),
    ):
        here, there = getattr(head, name), getattr(state, name)
        if here != there:
            return f"its `{name.removesuffix('_if_known')}` is {_short(here)}, and the version has {_short(there)}"
    if sound.queries != queries:
        differing = {id for id in sound.queries.keys() | queries.keys() if sound.queries.get(id) != queries.get(id)}
        return f"it has another epoch of the query {_short(min(differing))} than the versions"
    if sound.producers != producers.known:
        either = sound.producers.keys() | producers.known.keys()
        partition, id = min(key for key in either if sound.producers.get(key) != producers.known.get(key))
        return f"it has other batches of producer {id} in partition {partition} than the versions"
    for partition in range(len(head.ends)):
        here = [sound.file.segment(line, partition) for line in sound.file.segments(partition)]
        there = live_segments(state, partition)
        if here != there:
            number = next((n for n, pair in enumerate(zip(here, there, strict=False)) if pair[0] != pair[1]), min(len(here), len(there)))
            base = (here if number < len(here) else there)[number].base
            return f"its segments of partition {partition} differ from those of the versions at offset {base}"
    return None


def live_segments(state: State, partition: int) -> list[Segment]:
    """The live segments of a partition in order of offsets, also segments wholly below the log start offset."""
    return state.live[partition].all()


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
