"""Version files: the segments that each commit added and removed. FORMAT.md section 5."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import google_crc32c

from sparklog import shown
from sparklog.batches.header import HEADER_BYTES
from sparklog.ondisk.config import PARTITIONS_MAX, require_readable, usable
from sparklog.ondisk.features import Feature, Features
from sparklog.ondisk.fields import Fields, boolean, integer, parse, string
from sparklog.ondisk.names import INT64_MAX, is_data_file, is_identity, is_own_file
from sparklog.ondisk.producers import Sent, sent_of
from sparklog.ondisk.rebuilt import Rebuilt
from sparklog.ondisk.reroute import RoutingChange
from sparklog.ondisk.reroute import read as read_routing
from sparklog.store.store import Damaged

FILE_BYTES_MAX = 64 * 1024 * 1024
ENTRIES_MAX = 1_000_000
SEGMENT_BYTES_MAX = SEGMENT_OFFSETS_MAX = 2**31 - 1
INDEX_BYTES_MAX = 1 << 18
"""As many bytes as the index behind a segment of the greatest length may have."""

_TRAILER = re.compile(rb"crc32c:([0-9a-f]{8})\n")
_HASH = re.compile("[0-9a-f]{64}")
_INPUT = re.compile("[0-9a-f]{16}")
_PARTITION = re.compile("0|[1-9][0-9]{0,3}")
"""The numbers below `PARTITIONS_MAX`."""


DENSE = "dense"
TILED = "tiled"


def _number(least: int = 0, most: int = INT64_MAX) -> Callable[[object, str], int]:
    return lambda value, name: integer(value, name, least, most)


def _kind_of_offsets(value: object, name: str) -> str:
    if value not in (DENSE, TILED):
        raise Damaged(f"`{name}` is not {DENSE} or {TILED}")
    return string(value, name)


SEGMENT_FIELDS: dict[str, Callable[[object, str], Any]] = {
    "partition": _number(most=PARTITIONS_MAX - 1),
    "file": string,
    "position": _number(),
    "bytes": _number(most=SEGMENT_BYTES_MAX),
    "base": _number(),
    "end": _number(),
    "records": _number(),
    "batches": _number(least=1),
    "minTimestamp": _number(least=-1),
    "maxTimestamp": _number(least=-1),
    "offsets": _kind_of_offsets,
    "routed": boolean,
    "ordered": boolean,
    "headerCrc": _number(most=2**32 - 1),
}
"""The fields that each segment has, in the order of `Segment` and of a checkpoint's line, each with the check of its value."""


class Segment(NamedTuple):
    """A run of whole batches of one partition, with the offsets from `base` to before `end`. FORMAT.md section 5 defines the fields."""

    partition: int
    file: str
    position: int
    bytes: int
    base: int
    end: int
    records: int
    batches: int
    min_timestamp: int
    max_timestamp: int
    offsets: str
    routed: bool
    ordered: bool
    header_crc: int
    index_bytes: int = 0

    @classmethod
    def of_version(cls, fields: Fields, partitions: int) -> Segment:
        """The segment that a version file adds to a topic of so many partitions. Damaged if it breaks a rule."""
        return cls._of([fields.value(name) for name in SEGMENT_FIELDS], fields, partitions)

    @classmethod
    def of_line(cls, line: object, partitions: int) -> Segment:
        """The segment that a line of a checkpoint describes, of a topic of so many partitions. Damaged if it breaks a rule."""
        if type(line) is not list or not 0 <= len(line) - len(SEGMENT_FIELDS) <= 1:
            raise Damaged("a line does not describe a segment")
        values, others = line[: len(SEGMENT_FIELDS)], Fields(line[-1] if len(line) > len(SEGMENT_FIELDS) else {})
        if any(name in others for name in SEGMENT_FIELDS):
            raise Damaged("a line has a field of a segment twice")
        return cls._of(values, others, partitions)

    @classmethod
    def _of(cls, values: list[Any], others: Fields, partitions: int) -> Segment:
        """The segment with these values of the fields that each segment has, and with other fields."""
        segment = cls(*(check(value, name) for (name, check), value in zip(SEGMENT_FIELDS.items(), values, strict=True)))
        if "index" in others:
            segment = segment._replace(index_bytes=others.integer("index", most=INDEX_BYTES_MAX))
        return segment._checked(partitions)

    @property
    def dense(self) -> bool:
        """Whether each of its offsets has a record."""
        return self.offsets == DENSE

    @property
    def end_of_index(self) -> int:
        """The byte of the data file after the index of the segment; without one, the byte after its last batch."""
        return self.position + self.bytes + self.index_bytes

    @property
    def in_own_file(self) -> bool:
        """Whether it begins a data file of one partition: of its own, if the file ends where it ends. FORMAT.md section 8."""
        return is_own_file(self.file) and not self.position and not self.index_bytes

    def in_view(self, config: Mapping[str, str]) -> bool:
        """Whether it belongs in the Kafka view of a topic with this configuration, if it is live. FORMAT.md section 8."""
        view = usable(config, "kafka.view", "all")
        return view == "all" or (view == "merged" and self.in_own_file)

    def _checked(self, partitions: int) -> Segment:
        """This segment. Damaged if its numbers contradict each other."""
        if self.partition >= partitions:
            raise Damaged(f"a segment is of partition {self.partition}, and there are {partitions}")
        if not is_data_file(self.file):
            raise Damaged(f"{shown.value(self.file)!r} is not the name of a data file")
        if self.end <= self.base or self.end - self.base > SEGMENT_OFFSETS_MAX:
            raise Damaged(f"a segment has the offsets {self.base} to {self.end}")
        if self.records > self.end - self.base or (self.dense and self.records < self.end - self.base):
            raise Damaged(f"a segment has {self.records} records in {self.end - self.base} offsets")
        if self.bytes < self.batches * HEADER_BYTES:
            raise Damaged(f"a segment has {self.batches} batches in {self.bytes} bytes")
        if self.position + self.bytes > INT64_MAX:
            raise Damaged(f"a segment of {self.bytes} bytes begins at byte {self.position}")
        if self.min_timestamp > self.max_timestamp:
            raise Damaged(f"a segment has the times {self.min_timestamp} to {self.max_timestamp}")
        return self


class Removed(NamedTuple):
    """A live segment that a version removes."""

    partition: int
    file: str
    position: int


class Query(NamedTuple):
    """An epoch of a query, which a version applied. `input` is 16 hex digits that identify the records of the epoch, or None."""

    id: str
    epoch: int
    input: str | None


class Version(NamedTuple):
    """A version file. `hash` is the SHA-256 of its bytes; FORMAT.md section 5 defines the other fields."""

    hash: str
    topic_id: str
    version: int
    txn: str
    previous: str | None
    time: int
    operation: str
    writer: str
    query: Query | None
    horizon: int
    boundary: int
    deleted: bool
    features: Features
    routing: RoutingChange | None
    rebuilt: Rebuilt | None
    """The topic whose records it begins a topic with."""
    producers: Sequence[Sent]
    """The batches of producers among the batches that it adds."""
    config: dict[str, str]
    starts: dict[int, int]
    """The log start offsets after this version, by partition, of the partitions where they change."""
    ends: dict[int, int]
    removed: Sequence[Removed]
    added: Sequence[Segment]

    @classmethod
    def read(cls, data: bytes, topic: str, version: int) -> Version:
        """The version file with these bytes. Damaged if it breaks a rule; TooNew if a later version of the format wrote it."""
        line, more = summed_line(data)
        fields = Fields(parse(line))
        features = Features.read(fields)
        if more:
            raise Damaged(f"{len(more)} bytes follow its second line")
        require_own(fields, topic, version)
        previous = fields.value("previous")
        if version == 0 and previous is not None:
            raise Damaged("`previous` is not null in version 0")
        if version > 0 and not is_hash(previous):
            raise Damaged("`previous` is not a SHA-256")
        txn = fields.string("txn")
        if not is_identity(txn):
            raise Damaged("`txn` is not an identity")
        config = fields.strings("config")
        if version == 0:
            require_readable(config)
        topic_id = fields.string("topicId")
        routing = Fields(fields.value("routing")) if features.have_slots and "routing" in fields else None
        added = [Segment.of_version(Fields(entry), PARTITIONS_MAX) for entry in fields.array("added", ENTRIES_MAX)]
        read = cls(
            hash=hashlib.sha256(data).hexdigest(),
            topic_id=topic_id,
            version=version,
            txn=txn,
            previous=previous,
            time=fields.integer("time"),
            operation=fields.string("operation"),
            writer=fields.string("writer"),
            query=_query(fields.value("query")),
            horizon=fields.integer("horizon"),
            boundary=fields.integer("boundary"),
            deleted=fields.mark("deleted"),
            features=features,
            routing=read_routing(routing) if routing else None,
            rebuilt=Rebuilt.read(Fields(fields.value("rebuilt")), topic_id) if "rebuilt" in fields else None,
            producers=sent_of(fields, PARTITIONS_MAX, ((each.partition, each.base, each.end) for each in added))
            if features.has(Feature.PRODUCERS)
            else [],
            config=config,
            starts=_offsets(fields, "starts"),
            ends=_offsets(fields, "ends"),
            removed=[_removed(Fields(entry)) for entry in fields.array("removed", ENTRIES_MAX)],
            added=added,
        )
        if read.deleted and not read._only_deletes():
            raise Damaged("it deletes the topic, and does something else too")
        return read

    def _only_deletes(self) -> bool:
        changes = (self.query, self.routing, self.config, self.starts, self.ends, self.removed, self.added)
        return not any(changes) and self.horizon == self.version + 1 and self.boundary == self.version


def is_hash(value: object) -> bool:
    """Whether this is a SHA-256 in 64 hex digits."""
    return type(value) is str and bool(_HASH.fullmatch(value))


def require_own(fields: Fields, topic: str, version: int) -> None:
    """Checks that a file is about the topic and the version that its path names."""
    if fields.string("topic") != topic:
        raise Damaged(f"it belongs to the topic {shown.value(fields.string('topic'))}")
    if fields.integer("version") != version:
        raise Damaged(f"it is version {fields.integer('version')}")
    if not is_identity(fields.string("topicId")):
        raise Damaged("`topicId` is not an identity")


def _offsets(fields: Fields, name: str) -> dict[int, int]:
    offsets = fields.value(name)
    if type(offsets) is not dict or not all(map(_PARTITION.fullmatch, offsets)):
        raise Damaged(f"`{name}` is not an object of partitions")
    return {int(partition): integer(offset, name, 0, INT64_MAX) for partition, offset in offsets.items()}


def summed_line(data: bytes) -> tuple[bytes, bytes]:
    """The first line, whose checksum is right, and the bytes behind the second line."""
    line, _, rest = data.partition(b"\n")
    match = _TRAILER.match(rest)
    if not match:
        raise Damaged("it is not one line and its checksum")
    if int(match[1], 16) != (found := google_crc32c.value(line)):
        raise Damaged(f"its checksum is {match[1].decode()} where its bytes have {found:08x}")
    return line, rest[match.end() :]


def _query(value: object) -> Query | None:
    if value is None:
        return None
    fields = Fields(value)
    query = Query(fields.string("id"), fields.integer("epoch"), fields.value("input"))
    require_input(query.input)
    return query


def require_input(value: object) -> None:
    """Checks the input of an epoch."""
    if value is not None and not (type(value) is str and _INPUT.fullmatch(value)):
        raise Damaged("an input is neither null nor 16 hex digits")


def _removed(fields: Fields) -> Removed:
    removed = Removed(fields.integer("partition", most=PARTITIONS_MAX - 1), fields.string("file"), fields.integer("position"))
    if not is_data_file(removed.file):
        raise Damaged(f"{shown.value(removed.file)!r} is not the name of a data file")
    return removed
