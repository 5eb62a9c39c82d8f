"""Checkpoints: the state at a version, read only as far as needed. FORMAT.md section 6."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import google_crc32c

from sparklog.batches.faults import Unreadable, Vanished
from sparklog.ondisk.config import PARTITIONS_MAX, PRODUCERS_MAX, is_known_to, require_placement, require_readable
from sparklog.ondisk.features import Binds, Feature, Features
from sparklog.ondisk.fields import Fields, integer, parse
from sparklog.ondisk.names import INT64_MAX, topic_file
from sparklog.ondisk.producers import LastBatches, producer_of
from sparklog.ondisk.root import Root
from sparklog.ondisk.routing import Routing
from sparklog.ondisk.version import (
    Segment,
    is_hash,
    require_input,
    require_own,
)
from sparklog.store.store import Absent, Damaged

HEAD_BYTES_MAX = 64 * 1024 * 1024
LINE_BYTES_MAX = 64 * 1024
_BLOCK_BYTES = 1024 * 1024
_TAIL_BYTES = 9
"""Each line ends with a tab and eight digits."""


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
    """A checkpoint file. Its constructor and its methods raise Unreadable; only the constructor raises TooNew.

    Threads may share it. The file stays open until its last segment was read, since writers delete it after newer checkpoints. One
    of less than a block is read at once.
    """

    def __init__(self, root: Root, topic: str, name: str, version: int) -> None:
        self.topic = topic
        self.name = name
        self._at = 0
        self._sum = 0
        self._rest = b""
        self._next = 0
        """Where the next line begins in `_rest`."""
        self._lines: list[bytes] = []
        self._lock = threading.Lock()
        with _reading():
            self._file = root.store.open_at(topic_file(topic, name), 0)
            self._close = weakref.finalize(self, self._file.close)
            self._read_to(1, HEAD_BYTES_MAX)
            self.head, counts = _head(self._lines.pop(), topic, version)
        self._firsts = [0]
        for count in counts:
            self._firsts.append(self._firsts[-1] + count)

    def segments(self, partition: int) -> Sequence[bytes]:
        """The lines of the live segments of a partition, for `segment`."""
        if partition >= len(self._firsts) - 1:
            return ()
        first, end = self._firsts[partition : partition + 2]
        with self._lock, _reading():
            self._read_to(end, LINE_BYTES_MAX)
            if end == self._firsts[-1]:
                self._close()
            return self._lines[first:end]

    def producers(self) -> dict[tuple[int, int], LastBatches]:
        """The producers by partition and id. Only before the last segment is read."""
        found: dict[tuple[int, int], LastBatches] = {}
        first = self._firsts[-1]
        with self._lock, _reading():
            self._read_to(first + self.head.producers, LINE_BYTES_MAX)
            before = (-1, -1)
            for line in self._lines[first:]:
                key, last = producer_of(parse(line), self.head.ends)
                if key <= before:
                    raise Damaged(f"producer {key[1]} in partition {key[0]} is not in order")
                found[key] = last
                before = key
            del self._lines[first:]
        return found

    def segment(self, line: bytes, partition: int) -> Segment:
        """The live segment of a partition that a line of `segments` describes."""
        with _reading():
            segment = Segment.of_line(parse(line), len(self.head.ends))
            if segment.partition != partition:
                raise Damaged(f"a segment of partition {segment.partition} is among those of partition {partition}")
        return segment

    def _read_to(self, count: int, bytes_max: int) -> None:
        """Reads on until this many lines are complete, checks them and nothing behind them, and keeps their JSON."""
        while len(self._lines) < count:
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
            self._lines.append(text)
            self._next = end + 1

    def _read_block(self) -> None:
        if not self._close.alive:
            raise Damaged("it is cut off")
        block = self._file.read(self._at, _BLOCK_BYTES)
        self._at += len(block)
        self._rest, self._next = self._rest[self._next :] + block, 0
        if len(block) < _BLOCK_BYTES:
            self._close()


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except Absent:
        raise Vanished("it was deleted") from None
    except (Damaged, OSError) as error:
        raise Unreadable(str(error)) from None


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
        if features.have_slots and "routing" in fields
        else None,
        starts=starts,
        ends=ends,
    )
    if not head.deleted and is_known_to(Binds.KEY_READERS, features, config):
        require_placement(config, features, routed=head.routing_if_known is not None)
    if head.deleted and (queries or any(counts) or starts != ends or head.routing_if_known or head.producers):
        raise Damaged("it is of a deleted topic, and has records, queries, slots or producers")
    return head, counts
