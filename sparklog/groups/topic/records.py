"""The records of a topic `__consumer_offsets`, which Kafka's group coordinator writes: their keys and values as Python objects."""

from __future__ import annotations

import struct
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import NamedTuple, TypeVar

T = TypeVar("T")

OFFSET_TYPES = (0, 1)
"""The types of keys of positions, which mean the same: a key of both has type 1 here."""
CLASSIC, EPOCH, MEMBER, ASSIGNMENT = 2, 3, 5, 8
"""The types of keys of a classic group with its members, of the epoch of a group of the newer protocol, and of its members."""


class RecordKey(NamedTuple):
    """The key of a record: its type, the group, and the fields that the type has."""

    type: int
    group: str
    topic: str = ""
    partition: int = -1
    member: str = ""


class CommittedOffset(NamedTuple):
    """A position. `topic_id` is None if the writer did not know it; `at` is in milliseconds since 1970-01-01 UTC."""

    offset: int
    metadata: str
    at: int
    topic_id: str | None


class Client(NamedTuple):
    """A member of a group, as it joined. `assignment` has partitions by the name of a topic, or by its id in the newer protocol."""

    id: str
    host: str
    instance: str | None
    topics: tuple[str, ...]
    pattern: str | None
    assignment: dict[str, list[int]]
    client_id: str


class Classic(NamedTuple):
    """A classic group: its generation, and its members."""

    generation: int
    members: list[Client]


class _Fields:
    """Reads fields one after another. ValueError if a field is missing or has a wrong form."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.is_flexible = False

    def take(self, length: int) -> bytes:
        if not 0 <= length <= len(self._data) - self._at:
            raise ValueError(f"a field of {length} bytes is to begin at byte {self._at} of {len(self._data)}")
        self._at += length
        return self._data[self._at - length : self._at]

    def number(self, format: str) -> int:
        (found,) = struct.unpack(format, self.take(struct.calcsize(format)))
        return int(found)

    def varint(self) -> int:
        found = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            found |= (byte & 127) << shift
            if byte < 128:
                return found
        raise ValueError(f"the number before byte {self._at} has more than 5 bytes")

    def length(self, format: str) -> int:
        """−1 for null."""
        return self.varint() - 1 if self.is_flexible else self.number(format)

    def some_text(self) -> str | None:
        length = self.length(">h")
        return None if length == -1 else self.take(length).decode()

    def text(self) -> str:
        found = self.some_text()
        if found is None:
            raise ValueError(f"the text before byte {self._at} is null")
        return found

    def octets(self) -> bytes:
        return self.take(max(0, self.length(">i")))

    def array(self, read: Callable[[], T]) -> list[T]:
        count = self.length(">i")
        if count > len(self._data) - self._at:
            raise ValueError(f"an array of {count} entries is to begin at byte {self._at} of {len(self._data)}")
        return [read() for _ in range(max(0, count))]

    def id(self) -> str:
        return urlsafe_b64encode(self.take(16)).decode().rstrip("=")

    def tags(self) -> dict[int, bytes]:
        if not self.is_flexible:
            return {}
        return {self.varint(): self.take(self.varint()) for _ in range(self.varint())}


def key(data: bytes) -> RecordKey | None:
    """The key of a record; None if it has a type without positions and members. ValueError if it cannot be read."""
    fields = _Fields(data)
    type = fields.number(">h")
    if type in OFFSET_TYPES:
        found = RecordKey(1, fields.text(), fields.text(), fields.number(">i"))
        if not found.topic or found.partition < 0:
            raise ValueError(f"a position is of topic {found.topic!r}, partition {found.partition}")
        return found
    if type in (CLASSIC, EPOCH):
        return RecordKey(type, fields.text())
    if type in (MEMBER, ASSIGNMENT):
        return RecordKey(type, fields.text(), member=fields.text())
    return None


def value(of: RecordKey, data: bytes) -> CommittedOffset | Classic | Client | int | dict[str, list[int]]:
    """The value of a record: a position, a classic group, a member, the epoch of a group, or the partitions of a member by topic id.

    ValueError if it cannot be read.
    """
    fields = _Fields(data)
    version = fields.number(">h")
    newest, flexible = {0: (4, 4), 1: (4, 4), CLASSIC: (4, 4)}.get(of.type, (0, 0))
    if not 0 <= version <= newest:
        raise ValueError(f"the version of the value is {version}, and may be up to {newest}")
    fields.is_flexible = version >= flexible
    if of.type in OFFSET_TYPES:
        return _committed(fields, version)
    if of.type == CLASSIC:
        return _classic(fields, version)
    if of.type == EPOCH:
        return fields.number(">i")
    if of.type == MEMBER:
        return _member(of.member, fields)
    fields.take(9)  # its epochs, and its state
    found = fields.array(lambda: (fields.id(), fields.array(lambda: fields.number(">i")), fields.tags()))
    return {topic_id: partitions for topic_id, partitions, _ in found}


def _committed(fields: _Fields, version: int) -> CommittedOffset:
    offset = fields.number(">q")
    if offset < 0:
        raise ValueError(f"the offset is {offset}")
    if version >= 3:
        fields.number(">i")
    metadata, at = fields.text(), fields.number(">q")
    if version == 1:
        fields.number(">q")
    id = fields.tags().get(0)
    if id is not None and len(id) != 16:
        raise ValueError(f"the id of the topic has {len(id)} bytes, not 16")
    known = id is not None and uuid.UUID(bytes=id).int != 0
    return CommittedOffset(offset, metadata, at, urlsafe_b64encode(id).decode().rstrip("=") if id is not None and known else None)


def _classic(fields: _Fields, version: int) -> Classic:
    fields.text()
    generation = fields.number(">i")
    fields.some_text(), fields.some_text()
    if version >= 2:
        fields.number(">q")

    def member() -> Client:
        id = fields.text()
        instance = fields.some_text() if version >= 3 else None
        client_id, host = fields.text(), fields.text()
        fields.take(8 if version >= 1 else 4)
        fields.octets()
        assignment = _assignment(fields.octets())
        fields.tags()
        return Client(id, host, instance, (), None, assignment, client_id)

    return Classic(generation, fields.array(member))


def _assignment(data: bytes) -> dict[str, list[int]]:
    """The partitions by topic. Empty if clients of another kind wrote the bytes, which the coordinator does not look at."""
    try:
        fields = _Fields(data)
        fields.number(">h")
        return dict(fields.array(lambda: (fields.text(), fields.array(lambda: fields.number(">i")))))
    except ValueError:
        return {}


def _member(id: str, fields: _Fields) -> Client:
    instance, _, client_id, host = fields.some_text(), fields.some_text(), fields.text(), fields.text()
    return Client(id, host, instance, tuple(fields.array(fields.text)), fields.some_text(), {}, client_id)
