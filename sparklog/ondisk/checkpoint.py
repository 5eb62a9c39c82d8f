"""Checkpoints: the state at a version. FORMAT.md section 6."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import google_crc32c

from sparklog.batches.faults import Unanswered, Unreadable, Vanished
from sparklog.ondisk.config import PARTITIONS_MAX, PRODUCERS_MAX, is_known_to, require_placement, require_readable
from sparklog.ondisk.features import Binds, Feature, Features
from sparklog.ondisk.fields import Fields, integer, parse
from sparklog.ondisk.names import INT64_MAX, topic_file
from sparklog.ondisk.producers import LastBatches, producer_of
from sparklog.ondisk.root import Root
from sparklog.ondisk.routing import Routing
from sparklog.ondisk.version import SEGMENT_FIELDS, Segment, is_hash, require_input, require_own
from sparklog.store.store import Absent, Damaged, File

HEAD_BYTES_MAX = 64 * 1024 * 1024
LINE_BYTES_MAX = 64 * 1024
_BLOCK_BYTES = 1024 * 1024
_TAIL_BYTES = 9
"""Each line ends with a tab and eight digits."""
_BASE, _END = map(list(SEGMENT_FIELDS).index, ("base", "end"))


class Head(NamedTuple):
    """Line 1 without the numbers of segments. Times are milliseconds since 1970-01-01 UTC."""

    topic_id: str
    version: int
    hash: str
    time: int
    horizon: int
    boundary: int
    deleted: bool
    features: Features
    producers: int
    """How many lines of producers follow the lines of the segments."""
    config: dict[str, str]
    routing_if_known: Routing | None
    starts: tuple[int, ...]
    ends: tuple[int, ...]


class Checkpoint:
    """A checkpoint file, whose lines are looked at when they are needed. Raises Unreadable; only the constructor raises TooNew.

    Threads may share it.
    """

    def __init__(self, root: Root, topic: str, name: str, version: int, *, knowing: bool = False) -> None:
        """`knowing`: whether the producers are read, too."""
        self.topic = topic
        self.name = name
        with _reading(), root.store.open_at(topic_file(topic, name), 0) as file:
            lines = _Lines(file)
            self.head, counts = _head(lines.take(1, HEAD_BYTES_MAX)[0], topic, version)
            self._firsts = [0, *itertools.accumulate(counts)]
            self._lines = lines.take(self._firsts[-1], LINE_BYTES_MAX)
            self._require_bounds()
            self.producers = _producers(lines.take(self.head.producers, LINE_BYTES_MAX), self.head.ends) if knowing else {}
            """By partition and id."""

    def segments(self, partition: int) -> Sequence[bytes]:
        """The lines of the live segments of a partition, for `segment`."""
        return self._lines[slice(*self._firsts[partition : partition + 2])] if partition < len(self._firsts) - 1 else ()

    def segment(self, line: bytes, partition: int) -> Segment:
        """The live segment of a partition that a line of `segments` describes."""
        with _reading():
            segment = Segment.of_line(parse(line), len(self.head.ends))
            if segment.partition != partition:
                raise Damaged(f"a segment of partition {segment.partition} is among those of partition {partition}")
        return segment

    def _require_bounds(self) -> None:
        """Checks that the segments of each partition go from its start to its end. So damage that a later use finds changes no offset.

        All first and last lines are parsed at once: a topic can have many partitions.
        """
        runs = [(first, end) for first, end in itertools.pairwise(self._firsts) if first < end]
        lines = (self._lines[at] for first, end in runs for at in (first, end - 1))
        try:
            bounds = iter([(line[_BASE], line[_END]) for line in json.loads(b"[%s]" % b",".join(lines))])
        except (ValueError, RecursionError, LookupError, TypeError):
            raise Damaged("a line does not describe a segment") from None
        for partition, (start, end) in enumerate(zip(self.head.starts, self.head.ends, strict=True)):
            base, reached = end, end
            if self._firsts[partition] < self._firsts[partition + 1]:
                (base, _), (_, reached) = next(bounds, (end, end)), next(bounds, (end, end))
            if type(base) is not int or type(reached) is not int or base > start or max(start, reached) != end:
                raise Damaged(f"it leaves partition {partition} without its first or its last offsets")


class _Lines:
    """The lines of a checkpoint from the first on. Nothing behind the lines that are taken is looked at."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._at = 0
        self._sum = 0
        self._rest = b""
        self._next = 0
        """Where the next line begins in `_rest`."""
        self._ended = False

    def take(self, count: int, bytes_max: int) -> list[bytes]:
        """The JSON of the next lines, whose checksums are right. Damaged if one is longer than that, or missing."""
        found: list[bytes] = []
        while len(found) < count:
            end = self._rest.find(b"\n", self._next)
            if (end if end >= 0 else len(self._rest)) - self._next > bytes_max:
                raise Damaged(f"it has a line of more than {bytes_max} bytes")
            if end < 0:
                self._read_block()
                continue
            text = self._rest[self._next : end - _TAIL_BYTES]
            self._sum = google_crc32c.extend(self._sum, text)
            if self._rest[max(self._next, end - _TAIL_BYTES) : end] != b"\t%08x" % self._sum:
                raise Damaged("a checksum in it is wrong")
            found.append(text)
            self._next = end + 1
        return found

    def _read_block(self) -> None:
        if self._ended:
            raise Damaged("it is cut off")
        block = self._file.read(self._at, _BLOCK_BYTES)
        self._ended = len(block) < _BLOCK_BYTES
        self._at += len(block)
        self._rest, self._next = self._rest[self._next :] + block, 0


def _producers(lines: list[bytes], ends: Sequence[int]) -> dict[tuple[int, int], LastBatches]:
    """The producers by partition and id."""
    found: dict[tuple[int, int], LastBatches] = {}
    before = (-1, -1)
    for line in lines:
        key, last = producer_of(parse(line), ends)
        if key <= before:
            raise Damaged(f"producer {key[1]} in partition {key[0]} is not in order")
        found[key] = last
        before = key
    return found


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except Absent:
        raise Vanished("it was deleted") from None
    except Damaged as damage:
        raise Unreadable(str(damage)) from None
    except OSError as error:
        raise Unanswered(str(error)) from None


def _head(line: bytes, topic: str, version: int) -> tuple[Head, tuple[int, ...]]:
    """The head, and the number of live segments of each partition."""
    fields = Fields(parse(line))
    features = Features.read(fields)
    require_own(fields, topic, version)
    config = fields.strings("config")
    require_readable(config)
    starts, ends, counts = (fields.integers(name, PARTITIONS_MAX) for name in ("starts", "ends", "segments"))
    if not len(starts) == len(ends) == len(counts) == int(config["partitions"]):
        raise Damaged("`starts`, `ends` or `segments` is not of all partitions")
    if any(start > end for start, end in zip(starts, ends, strict=True)):
        raise Damaged("a partition starts after its end")
    queries = fields.array("queries", most=INT64_MAX)
    for query in queries:
        if type(query) is not list or len(query) != 4 or type(query[0]) is not str:
            raise Damaged("`queries` holds something other than queries")
        integer(query[1], "queries", 0, INT64_MAX)
        require_input(query[2])
        integer(query[3], "queries", 0, INT64_MAX)
    if len({query[0] for query in queries}) != len(queries):
        raise Damaged("`queries` names one twice")
    if not is_hash(fields.value("hash")):
        raise Damaged("`hash` is not a SHA-256")
    head = Head(
        topic_id=fields.string("topicId"),
        version=version,
        hash=fields.string("hash"),
        time=fields.integer("time"),
        horizon=fields.integer("horizon"),
        boundary=fields.integer("boundary"),
        deleted=fields.mark("deleted"),
        features=features,
        producers=fields.integer("producers", most=PRODUCERS_MAX) if features.has(Feature.PRODUCERS) and "producers" in fields else 0,
        config=config,
        routing_if_known=Routing.read(Fields(fields.value("routing")), version, ends, unbound=features.has(Feature.UNBOUND))
        if features.have_slots and "routing" in fields and is_known_to(Binds.KEY_READERS, features, config)
        else None,
        starts=starts,
        ends=ends,
    )
    if not head.deleted and is_known_to(Binds.KEY_READERS, features, config):
        require_placement(config, features, routed=head.routing_if_known is not None)
    if head.deleted and (queries or any(counts) or starts != ends or head.routing_if_known or head.producers):
        raise Damaged("it is of a deleted topic, and has records, queries, slots or producers")
    return head, counts
