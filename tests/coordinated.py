"""Records of a topic `__consumer_offsets`, written by hand as Kafka's coordinator writes them."""

import base64
import struct
from pathlib import Path

from handmade import TIME, Record, Topic

from sparklog import Log
from sparklog.groups.topic.topic_groups import TOPIC


def text(value: str | None) -> bytes:
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value.encode())) + value.encode()


def short_text(value: str | None) -> bytes:
    """Compact: the length and one, as a varint of one byte."""
    return b"\0" if value is None else bytes([len(value.encode()) + 1]) + value.encode()


def octets(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def position(group: str, topic: str, partition: int, offset: int | None, topic_id: str | None = None, version: int = 4) -> Record:
    """A position, in a version of its value; None as `offset` is a tombstone."""
    key = struct.pack(">h", 1) + text(group) + text(topic) + struct.pack(">i", partition)
    if offset is None:
        return Record(None, key, TIME)
    epoch = struct.pack(">i", 0) if version >= 3 else b""
    metadata = short_text("m") if version >= 4 else text("m")
    end = {1: struct.pack(">q", TIME + 1), 4: b"\0" if topic_id is None else b"\1\0\x10" + base64.urlsafe_b64decode(topic_id + "==")}
    value = struct.pack(">hq", version, offset) + epoch + metadata + struct.pack(">q", TIME) + end.get(version, b"")
    return Record(value, key, TIME)


def classic(group: str, generation: int, members: dict[str, dict[str, list[int]]]) -> Record:
    """A classic group, with the partitions of each member by topic."""

    def assignment(of: dict[str, list[int]]) -> bytes:
        topics = [text(topic) + struct.pack(f">i{len(each)}i", len(each), *each) for topic, each in of.items()]
        return struct.pack(">hi", 0, len(topics)) + b"".join(topics) + struct.pack(">i", -1)

    made = [
        text(id) + text(None) + text("client") + text("/127.0.0.1") + struct.pack(">ii", 1, 2) + octets(b"s") + octets(assignment(of))
        for id, of in members.items()
    ]
    value = struct.pack(">h", 3) + text("consumer") + struct.pack(">i", generation) + text("range") + text(None) + struct.pack(">q", TIME)
    return Record(value + struct.pack(">i", len(made)) + b"".join(made), struct.pack(">h", 2) + text(group), TIME)


def member(group: str, id: str, topics: list[str], owned: dict[str, list[int]]) -> list[Record]:
    """A group of the newer protocol with one member, and the partitions of the member by topic id."""
    keys = {type: struct.pack(">h", type) + text(group) + (text(id) if type > 3 else b"") for type in (3, 5, 8)}
    joined = b"\0\0" + b"\0\0" + short_text("client") + short_text("/127.0.0.1") + bytes([len(topics) + 1])
    joined += b"".join(map(short_text, topics)) + b"\0" + struct.pack(">i", 1000) + b"\0\0"
    parts = b"".join(
        base64.urlsafe_b64decode(id + "==") + bytes([len(each) + 1]) + struct.pack(f">{len(each)}i", *each) + b"\0"
        for id, each in owned.items()
    )
    has = b"\0\0" + struct.pack(">iib", 7, 6, 0) + bytes([len(owned) + 1]) + parts + b"\1\0"
    return [Record(b"\0\0" + struct.pack(">i", 7) + b"\0", keys[3]), Record(joined, keys[5]), Record(has, keys[8])]


def topic_of_groups(root: Path, *records: Record, partitions: int = 2, partition: int = 0) -> Topic:
    """The topic of groups of a root, with these records in a partition."""
    topic = Topic(root, TOPIC, partitions=partitions)
    if records:
        topic.append(list(records), partition, routed=False)
    return topic


def id_of(root: Path, topic: str) -> str:
    return str(Log(root)[topic].describe()["id"])
